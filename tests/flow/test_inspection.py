"""A look at a decision says what the engine then does, and changes and asks nothing."""

from __future__ import annotations

from typing import Any

import pytest

from stepcache import Control, Message, Policy, Reply, Request, StepCacheEngine
from stepcache.embedders import LexicalEmbedder
from stepcache.stores import MemoryStore
from stepcache.testing import CountingEmbedder, FaultyStore, ScriptedBackend

MATH = "Solve 2x + 3 = 13 for x."
RIGHT = "2x + 3 = 13\n\n2x = 10\n\nx = 5"
CITY = "Describe Paris as a JSON object with keys name, country."
PARIS = '{"name": "Paris", "country": "France"}'
SEA = "Name a sea."


def ask(text: str, **fields: Any) -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),), **fields)


def answer(call: Any) -> str:
    """What a good model says."""
    text = call.messages[0].text
    return RIGHT if "2x" in text else PARIS if "JSON" in text else "The Aral Sea."


@pytest.fixture
def engine() -> StepCacheEngine:
    """Holds an answer of each family."""
    engine = StepCacheEngine(backend=ScriptedBackend(answer))
    for text in (MATH, CITY, SEA):
        assert engine.resolve(ask(text)).entry_id
    return engine


@pytest.mark.parametrize(
    ("text", "route", "asks"),
    [
        (MATH, "exact", None),
        ("Please find x if 13 = 3 + 2x.", "reuse", None),
        ("Solve 2x + 3 = 15 for x.", "adapt", None),
        ("Solve 2x + 3 > 13 for x.", "miss", "answer"),
        ("Describe Paris as a JSON object with keys name, country, language.", "patch", "patch"),
        ("Describe Rome as a JSON object with keys name, country.", "skip", "answer"),
        ("name a sea", "reuse", None),
        ("Name a lake.", "miss", "answer"),
        ("", "miss", "answer"),
    ],
)
def test_it_says_what_then_happens(
    engine: StepCacheEngine, text: str, route: str, asks: str | None
) -> None:
    """Route, answer, reason and the model's part are those of the look-up that follows."""
    seen = engine.inspect(ask(text))
    assert (seen.route, seen.asks) == (route, asks)
    calls: list[str] = []

    def model(call: Any) -> str:
        calls.append(call.purpose)
        return '{"language": "French"}'

    done = engine.lookup(ask(text), backend=ScriptedBackend(model))
    assert done.route == route
    assert done.reason == seen.outcome.reason
    assert calls == ([asks] if asks == "patch" else [])
    if asks is None:
        assert (seen.outcome.text, seen.outcome.steps) == (done.text, done.steps)
        assert seen.source is not None
    events = [event for event in done.trace.events if event.name not in ("admitted", "patch")]
    assert list(seen.outcome.trace.events) == events


def test_it_changes_nothing() -> None:
    """No entry, no count, no model call, no listener, no flight; asynchronously as well."""
    heard: list[Any] = []
    engine = StepCacheEngine(
        backend=ScriptedBackend(answer), listeners=[lambda *told: heard.append(told)]
    )
    engine.resolve(ask(MATH))
    before = (engine.count(), engine.routes, len(heard), engine.backend.calls)  # type: ignore[union-attr]
    kept = list(engine.store.entries())  # type: ignore[attr-defined]
    for text in (MATH, "Find x if 13 = 3 + 2x.", "Solve 2x + 3 = 15 for x.", SEA):
        engine.inspect(ask(text))
    after = (engine.count(), engine.routes, len(heard), engine.backend.calls)  # type: ignore[union-attr]
    assert after == before
    assert list(engine.store.entries()) == kept  # type: ignore[attr-defined]


async def test_law_9_it_is_the_same_asynchronously(engine: StepCacheEngine) -> None:
    """One flow, both drivers."""
    for text in (MATH, "Solve 2x + 3 = 15 for x.", "Name a lake."):
        assert await engine.ainspect(ask(text)) == engine.inspect(ask(text))


def test_a_stored_answer_taken_for_absent(engine: StepCacheEngine) -> None:
    """Why a request missed can be seen after its answer was kept."""
    near = engine.resolve(ask("Describe Rome as a JSON object with keys name, country."))
    again = ask("Describe Rome as a JSON object with keys name, country.")
    assert engine.inspect(again).route == "exact"
    before = engine.inspect(again, without=near.entry_id)
    assert (before.route, before.outcome.reason) == (near.route, near.reason)
    assert [c.entry.prompt for c in before.candidates] == [CITY]
    assert [d.kind for d in before.candidates[0].differences] == ["name"]


def test_the_scope_of_an_entry_stands_in_for_what_is_not_known(engine: StepCacheEngine) -> None:
    """Model, parameters and earlier turns need not be told where an entry has them."""
    turns = (Message(role="system", text="Be brief."), Message(role="user", text=SEA))
    told = Request(messages=turns, model="m", params={"temperature": 0.3}, namespace="ann")
    entry_id = engine.resolve(told).entry_id
    entry = engine.store.find(str(entry_id))  # type: ignore[attr-defined]
    assert entry.scope != engine.inspect(ask(SEA)).scope
    seen = engine.inspect(ask(SEA), scope=entry.scope)
    assert (seen.route, seen.outcome.entry_id, seen.scope) == ("exact", entry_id, entry.scope)


def test_verdicts_of_what_was_considered(engine: StepCacheEngine) -> None:
    """Each step's verdict is there, also where the plan was to leave the entry alone."""
    seen = engine.inspect(ask("Describe Paris as a JSON object with keys name, country, area."))
    (candidate,) = seen.candidates
    assert [(v.status.value, v.code) for v in candidate.verdicts] == [("fail", "missing-keys")]
    assert seen.call is not None
    assert "area" in seen.call.messages[-1].text


def test_what_stands_aside_and_what_fails(engine: StepCacheEngine) -> None:
    """Bypasses are told, and a broken port is a miss here too."""
    assert engine.inspect(ask(MATH), control=Control(bypass=True)).route == "bypass"
    assert engine.inspect(ask(MATH), control=Control(refresh=True)).asks == "answer"
    broken = StepCacheEngine(store=FaultyStore(MemoryStore(), {"get", "search"}))
    seen = broken.inspect(ask(MATH))
    assert (seen.route, seen.asks) == ("miss", "answer")
    assert "store failed" in seen.outcome.trace.names()


def test_a_reported_answer_is_not_promised() -> None:
    """What a report forbids is forbidden to a look as well."""
    other = "Solve 2x + 3 = 15 for x."
    engine = StepCacheEngine(backend=ScriptedBackend(answer), policy=Policy(canonical=False))
    engine.admit(ask(MATH), Reply(text=RIGHT))
    adapted = engine.resolve(ask(other))
    assert adapted.route == "adapt"
    assert engine.report_bad(str(adapted.entry_id))
    assert engine.inspect(ask(other)).asks == "answer"


def test_an_embedding_is_all_it_costs() -> None:
    """A look embeds once, as a look-up does."""
    embedder = CountingEmbedder(LexicalEmbedder())
    engine = StepCacheEngine(embedder=embedder, backend=ScriptedBackend(answer))
    engine.resolve(ask(CITY))
    before = embedder.calls
    engine.inspect(ask("Describe Rome as a JSON object with keys name, country."))
    assert embedder.calls == before + 1
