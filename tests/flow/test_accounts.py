"""What an outcome tells beside its answer: a stable code, each step's origin, the candidates."""

from __future__ import annotations

import json

import pytest

from stepcache import Control, Message, ModelCall, Outcome, Policy, Reply, Request, StepCacheEngine
from stepcache.testing import FaultyStore, ScriptedBackend

MATH = "Solve 2x + 3 = 13 for x."
ROME = "Describe Rome as a JSON object with keys name, country."
ANSWERS = {
    MATH: "2x + 3 = 13\n\n2x = 10\n\nx = 5",
    "Solve 7x = 21 for x.": "7x = 21\n\nx = 4",
    ROME: 'Here it is:\n\n{"name": "Rome", "country": "Italy"}',
    "Describe Oslo as a JSON object with keys name, country.": '{"name": "Oslo", "country": "N"}',
}


def _answer(call: ModelCall) -> str:
    if call.purpose == "patch":
        return '{"river": "Tiber"}'
    return ANSWERS.get(call.messages[-1].text, "x = 4")


def ask(text: str, **fields: object) -> Request:
    return Request(messages=(Message(role="user", text=text),), **fields)  # type: ignore[arg-type]


def told(*texts: str, policy: Policy | None = None, control: Control | None = None) -> Outcome:
    """The outcome of the last of some requests."""
    engine = StepCacheEngine(backend=ScriptedBackend(_answer), policy=policy)
    for text in texts[:-1]:
        engine.resolve(ask(text))
    return engine.resolve(ask(texts[-1]), control=control)


@pytest.mark.parametrize(
    ("texts", "route", "code", "task", "origins"),
    [
        ((MATH,), "miss", "nothing-near", "linear-equation", ("generated",) * 3),
        ((MATH, MATH), "exact", "same-request", "linear-equation", ("reused",) * 3),
        (
            (MATH, "Please find x if 13 = 3 + 2x."),
            "reuse",
            "same-demands",
            "linear-equation",
            ("reused",) * 3,
        ),
        (
            (MATH, "Solve 2x + 3 = 15 for x."),
            "adapt",
            "re-derived",
            "linear-equation",
            ("adapted",) * 3,
        ),
        (
            (ROME, "Describe Rome as a JSON object with keys name, country, river."),
            "patch",
            "missing-keys",
            "json",
            ("reused", "patched"),
        ),
        (
            (ROME, "Describe Oslo as a JSON object with keys name, country."),
            "skip",
            "differs",
            "json",
            ("generated",),
        ),
        (("Solve 7x = 21 for x.",), "fallback", None, "linear-equation", None),
        (("Name a river.",), "miss", "nothing-equal", "text", ("generated",)),
        ((" ",), "miss", "exact-only", None, ("generated",)),
    ],
)
def test_each_route_tells_its_code_and_the_origin_of_every_step(
    texts: tuple[str, ...],
    route: str,
    code: str | None,
    task: str | None,
    origins: tuple[str, ...] | None,
) -> None:
    """Codes are stable and quote nothing; there is one origin for each step."""
    outcome = told(*texts)
    assert (outcome.route, outcome.task) == (route, task)
    assert code is None or outcome.code == code
    assert origins is None or outcome.origins == origins
    assert len(outcome.origins) == len(outcome.steps)
    assert outcome.code


def test_a_fallback_goes_on_from_what_the_model_said() -> None:
    """What stands of the model's answer is generated, the end is the task's own."""
    outcome = told("Solve 7x = 21 for x.")
    assert outcome.steps[0].text.strip() == "7x = 21"
    assert outcome.origins == ("generated", "solved")


def test_controls_have_codes() -> None:
    """A bypass and a refresh say that they were asked for."""
    assert told(MATH, control=Control(bypass=True)).code == "bypass-asked"
    refreshed = told(MATH, MATH, control=Control(refresh=True))
    assert (refreshed.route, refreshed.code) == ("miss", "refresh")


def test_candidates_are_told_in_order_with_what_was_found_of_them() -> None:
    """The rejected one names its differences; the one taken names its plan."""
    oslo = "Describe Oslo as a JSON object with keys name, country."
    outcome = told(oslo, ROME, "Describe Rome as a JSON object with keys name, country, river.")
    found = {candidate.entry.prompt: candidate for candidate in outcome.candidates}
    assert set(found) == {ROME, oslo}
    taken, rejected = found[ROME], found[oslo]
    assert (taken.action, taken.code) == ("patch", outcome.code)
    assert [d.kind for d in taken.differences] == ["key-added"]
    assert (rejected.action, rejected.code) == ("rejected", "differs")
    assert any(not d.explained for d in rejected.differences)
    assert all(c.similarity is not None and c.similarity > 0 for c in outcome.candidates)


def test_what_asks_no_model_ends_the_search() -> None:
    """An adapted answer costs nothing more, so candidates behind it are not looked at."""
    outcome = told(MATH, "Solve 7x = 21 for x.", "Solve 2x + 3 = 15 for x.")
    assert outcome.route == "adapt"
    assert [candidate.action for candidate in outcome.candidates] == ["adapt"]


def test_of_several_patches_the_smallest_is_taken() -> None:
    """Near is not cheap: the plan with the least to pay is, wherever its candidate stands."""
    described = "Describe Rome as a JSON object with keys {}."
    engine = StepCacheEngine(backend=ScriptedBackend(_answer), policy=Policy(max_patched_share=1.0))
    more = ("country", "mayor", "lake", "area", "founded", "motto", "anthem", "patron")
    engine.admit(ask(described.format("name")), Reply(text='{"name": "Rome"}'))
    rich = json.dumps(dict.fromkeys(("name", *more), "x"))
    engine.admit(ask(described.format(", ".join(("name", *more)))), Reply(text=rich))
    outcome = engine.resolve(ask(described.format("name, country, river")))
    poor, cheap = outcome.candidates
    assert (poor.similarity or 0) > (cheap.similarity or 1)
    assert (poor.action, cheap.action) == ("patch", "patch")
    assert outcome.text == '{"name": "x", "country": "x", "river": "Tiber"}'


def test_a_patch_that_fails_says_so() -> None:
    """The candidate was good enough, its missing part was not to be had."""
    backend = ScriptedBackend(lambda call: "no" if call.purpose == "patch" else _answer(call))
    engine = StepCacheEngine(backend=backend)
    engine.resolve(ask(ROME))
    outcome = engine.resolve(ask("Describe Rome as a JSON object with keys name, country, river."))
    assert (outcome.route, outcome.code) == ("skip", "patch-failed")
    assert [c.action for c in outcome.candidates] == ["patch"]


def test_a_broken_store_leaves_a_miss_with_its_reason() -> None:
    """Codes say why nothing was served, the trace that the store failed."""
    from stepcache.stores import MemoryStore

    engine = StepCacheEngine(
        store=FaultyStore(MemoryStore()), backend=ScriptedBackend(lambda call: ANSWERS[MATH])
    )
    outcome = engine.resolve(ask(MATH))
    assert (outcome.route, outcome.code) == ("miss", "nothing-near")
    assert "store failed" in outcome.trace.names()


def test_another_tasks_entry_has_no_say() -> None:
    """An answer kept under an earlier version of its task is told as retired."""
    from stepcache.tasks.linear_equation import LinearEquationTask

    class Newer(LinearEquationTask):
        version = "later"

    old = StepCacheEngine(backend=ScriptedBackend(lambda call: ANSWERS[MATH]))
    old.resolve(ask(MATH))
    new = StepCacheEngine(
        store=old.store, tasks=[Newer()], backend=ScriptedBackend(lambda call: ANSWERS[MATH])
    )
    outcome = new.lookup(ask("Solve 2x + 3 = 15 for x."))
    assert [(c.action, c.code) for c in outcome.candidates] == [("rejected", "retired")]
    assert not outcome.served


def test_every_face_tells_the_same_account() -> None:
    """Code, task, origins and candidates are those of the synchronous call (law 9)."""
    import asyncio

    texts = (ROME, "Describe Rome as a JSON object with keys name, country, river.")

    async def asynchronously() -> Outcome:
        engine = StepCacheEngine(backend=ScriptedBackend(_answer))
        await engine.aresolve(ask(texts[0]))
        return await engine.aresolve(ask(texts[1]))

    def streamed() -> Outcome:
        engine = StepCacheEngine(backend=ScriptedBackend(_answer))
        last: object = None
        for text in texts:
            *_, last = engine.stream(ask(text))
        assert isinstance(last, Outcome)
        return last

    one, two, three = told(*texts), asyncio.run(asynchronously()), streamed()
    assert one == two == three
    seen = [[(c.entry.id, c.action, c.similarity) for c in o.candidates] for o in (one, two, three)]
    assert seen[0] == seen[1] == seen[2]


def test_a_follower_tells_that_it_joined() -> None:
    """Who shares an answer in flight has reused every step of it."""
    import threading

    entered, go = threading.Event(), threading.Event()

    def slow(call: ModelCall) -> Reply:
        entered.set()
        assert go.wait(60)
        return Reply(text=ANSWERS[MATH])

    engine = StepCacheEngine(backend=ScriptedBackend(slow))
    outcomes: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(engine.resolve(ask(MATH))))
        for _ in range(2)
    ]
    threads[0].start()
    assert entered.wait(60)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(60)
    follower = next(o for o in outcomes if o.route == "exact")
    assert follower.code in ("in-flight", "same-request")
    assert follower.origins == ("reused",) * 3
