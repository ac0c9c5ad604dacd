"""``explain`` says of every labelled pair what the engine then really does, in both orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from stepcache import Message, ModelCall, Reply, Request, StepCacheEngine
from stepcache.evaluation import read_pairs
from stepcache.explain import explain


class Watched:
    """A model that gives one answer, and remembers what it was asked for."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.purposes: list[str] = []

    def generate(self, call: ModelCall, /) -> Reply:
        """The answer."""
        self.purposes.append(call.purpose)
        return Reply(text=self.answer)


def request(messages: tuple[Message, ...]) -> Request:
    """A request of a conversation."""
    return Request(messages=messages)


def test_explain_agrees_with_the_engine_on_all_pairs(
    external_path: Callable[[str], Path],
) -> None:
    """Route, answer and what the model is asked for first, for each pair and order."""
    pairs = read_pairs(external_path("pairs.jsonl"))
    assert len(pairs) >= 1_400
    seen: Counter[tuple[str, bool]] = Counter()
    wrong: list[str] = []
    for pair in pairs:
        for order, (a, b) in {"a->b": (pair.a, pair.b), "b->a": (pair.b, pair.a)}.items():
            kept = pair.answer_a if order == "a->b" else pair.answer_b
            answer = kept or f"This is the answer to {pair.id}."
            told = explain(None, request(a), answer, request(b))
            engine = StepCacheEngine()
            first = engine.resolve(request(a), backend=Watched(answer))
            model = Watched("Some other answer.")
            # A look-up says what the cache alone does; resolving, what the model is asked for.
            looked = engine.lookup(request(b))
            if looked.served:
                same = (looked.route, looked.text) == (
                    told.inspection.route,
                    told.inspection.outcome.text,
                )
                asked = None
            else:
                done = engine.resolve(request(b), backend=model)
                asked = model.purposes[0]
                route = told.inspection.route
                same = asked == "patch" if route == "patch" else looked.route == route
                same = same and (route == "patch" or done.route in (route, "fallback"))
            agrees = (
                same
                and told.served is looked.served
                and told.inspection.asks == asked
                and told.kept is (first.entry_id is not None)
            )
            if not agrees:
                wrong.append(f"{pair.id} {order}: {told.inspection.route}, really {looked.route}")
            seen[told.inspection.route, told.served] += 1
    print(f"\n{dict(seen)}")
    assert wrong == []
    assert sum(seen.values()) == 2 * len(pairs)
    assert {"reuse", "adapt", "skip", "miss"} <= {route for route, _ in seen}
