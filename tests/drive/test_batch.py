"""Several requests at once: embedded together, each thing asked once, answered as one by one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stepcache import Control, Message, ModelCall, Outcome, Reply, Request, StepCacheEngine
from stepcache.embedders import LexicalEmbedder
from stepcache.testing import (
    AsyncScriptedBackend,
    CountingEmbedder,
    FaultyEmbedder,
    ScriptedBackend,
)

CITIES = ("Rome", "Oslo", "Lima", "Cairo", "Quito", "Perth")
JSON = [f"Describe {city} as a JSON object with keys name, country." for city in CITIES]
EQUATION, REWORDED = "Solve 2x + 3 = 13 for x.", "Please solve for x: 13 = 3 + 2x"


def ask(text: str) -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),))


def answer(call: ModelCall) -> str:
    """What a model might say."""
    text = call.messages[-1].text
    if text in (EQUATION, REWORDED):
        return "2x = 10\n\nx = 5"
    if text in JSON:
        return f'{{"name": "{CITIES[JSON.index(text)]}", "country": "here"}}'
    return f"About {text}"


Many = Callable[[StepCacheEngine, Sequence[str]], list[Outcome]]


def together(engine: StepCacheEngine, texts: Sequence[str]) -> list[Outcome]:
    """All of them in one call."""
    return engine.resolve_many([ask(text) for text in texts])


def together_awaited(engine: StepCacheEngine, texts: Sequence[str]) -> list[Outcome]:
    """All of them in one asynchronous call."""
    return asyncio.run(engine.aresolve_many([ask(text) for text in texts]))


both = pytest.mark.parametrize("many", [together, together_awaited])


@both
def test_what_all_need_is_embedded_in_one_call(many: Many) -> None:
    """Hits, requests that no vector can help, and repeats need none; all others share one call."""
    embedder = CountingEmbedder(LexicalEmbedder())
    engine = StepCacheEngine(backend=ScriptedBackend(answer), embedder=embedder)
    engine.resolve(ask(JSON[0]))
    before = embedder.calls
    outcomes = many(engine, [*JSON, EQUATION, REWORDED, "Name a river.", JSON[3], ""])
    assert embedder.calls == before + 1
    assert len(embedder.texts) == 2 + 2 * 6
    assert [o.text for o in outcomes[:6]] == [
        f'{{"name": "{city}", "country": "here"}}' for city in CITIES
    ]
    assert engine.count() == 10


@both
def test_the_outcomes_are_those_of_one_by_one(many: Many) -> None:
    """Law 9: same text, route and trace, in order, for repeats and other wordings too."""
    script = [
        EQUATION,
        "Name a river.",
        REWORDED,
        "Name  a river.",
        EQUATION,
        "Name a lake.",
        REWORDED,
    ]
    alone = StepCacheEngine(backend=ScriptedBackend(answer))
    expected = [alone.resolve(ask(text)) for text in script]
    backend = ScriptedBackend(answer)
    outcomes = many(StepCacheEngine(backend=backend), script)
    assert [(o.text, o.route, o.trace.render()) for o in outcomes] == [
        (o.text, o.route, o.trace.render()) for o in expected
    ]
    assert [o.route for o in outcomes][2:5:2] == ["reuse", "exact"]


@both
def test_one_model_call_for_what_is_the_same(many: Many) -> None:
    """In the same words or others, and where the answer is not kept."""
    backend = ScriptedBackend(answer)
    many(StepCacheEngine(backend=backend), [EQUATION, REWORDED] * 6)
    assert len(backend.calls) == 1

    class Cut:
        calls = 0

        def generate(self, call: ModelCall) -> Reply:
            self.calls += 1
            return Reply(text="The El", finish_reason="length")

    cut = Cut()
    engine = StepCacheEngine(backend=cut)
    outcomes = many(engine, ["Name a river."] * 8)
    assert (cut.calls, engine.count()) == (1, 0)
    assert {o.text for o in outcomes} == {"The El"}
    assert sum(engine.routes.values()) == 8


def test_a_refreshed_batch_asks_once_for_each() -> None:
    """Equal requests share the new answer."""
    backend = ScriptedBackend(answer)
    engine = StepCacheEngine(backend=backend)
    texts = ["Name a river.", "Name a lake."] * 3
    engine.resolve_many([ask(text) for text in texts])
    engine.resolve_many([ask(text) for text in texts], control=Control(refresh=True))
    assert len(backend.calls) == 4


@both
def test_an_embedder_that_fails_costs_nothing_else(many: Many) -> None:
    """Every request is answered, and says in its trace what it met."""
    embedder = FaultyEmbedder(LexicalEmbedder())
    engine = StepCacheEngine(backend=ScriptedBackend(answer), embedder=embedder)
    outcomes = many(engine, JSON)
    assert [o.route for o in outcomes] == ["miss"] * 6
    assert all("embedder failed" in o.trace.render() for o in outcomes)
    embedder.fail_on.clear()
    assert [o.route for o in many(engine, JSON)] == ["exact"] * 6


@both
@pytest.mark.parametrize("rows", [3, 99])
def test_an_embedder_that_cannot_count_is_not_believed(many: Many, rows: int) -> None:
    """Vectors that are not one for each text are nobody's."""

    class Odd(LexicalEmbedder):
        def embed(self, texts: Sequence[str], /) -> Any:
            return super().embed(
                [*texts, *["more"] * rows][: len(texts) if len(texts) == 2 else rows]
            )

    engine = StepCacheEngine(backend=ScriptedBackend(answer), embedder=Odd())
    assert {o.route for o in many(engine, JSON)} <= {"miss", "skip"}
    assert engine.count() == 6
    near = engine.resolve(ask("Describe Oslo as a JSON object with keys name, country, river."))
    assert near.candidates[0].entry.prompt == JSON[1]


def test_an_asynchronous_embedder_embeds_together_too() -> None:
    """It is awaited once for all."""
    inner = LexicalEmbedder()

    class Awaited:
        fingerprint, dimension, calls = inner.fingerprint, inner.dimension, 0

        async def embed(self, texts: Sequence[str], /) -> Any:
            self.calls += 1
            return inner.embed(texts)

    embedder = Awaited()
    engine = StepCacheEngine(backend=AsyncScriptedBackend(answer), embedder=embedder)
    outcomes = together_awaited(engine, JSON)
    assert embedder.calls == 1
    assert {o.route for o in outcomes} <= {"miss", "skip"}


@both
def test_the_first_error_is_raised_after_all_have_ended(many: Many) -> None:
    """The others are answered and kept."""

    class Own(Exception):
        pass

    def failing(call: ModelCall) -> str:
        text = call.messages[-1].text
        if text.startswith("bad"):
            raise Own(text)
        return f"About {text}"

    engine = StepCacheEngine(backend=ScriptedBackend(failing))
    with pytest.raises(Own, match="bad 1"):
        many(engine, ["good 1", "bad 1", "good 2", "bad 2", "good 3", "bad 1"])
    assert engine.count() == 3


def test_no_more_than_so_many_are_under_way() -> None:
    """``max_concurrency`` bounds the calls of the model at a time, and is reached."""
    lock, now, most = threading.Lock(), [0], [0]
    full = threading.Barrier(3)

    class Model:
        def generate(self, call: ModelCall) -> Reply:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            full.wait(60)
            with lock:
                now[0] -= 1
            return Reply(text=f"About {call.messages[-1].text}")

    engine = StepCacheEngine(backend=Model())
    outcomes = engine.resolve_many([ask(f"{n}") for n in range(9)], max_concurrency=3)
    assert [o.text for o in outcomes] == [f"About {n}" for n in range(9)]
    assert most == [3]
