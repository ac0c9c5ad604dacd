"""Walls, labels and reports: what one call asks of the cache, and what is taken out of it again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepcache import Control, Message, Policy, Reply, Request, StepCacheEngine, UsageError
from stepcache.protocols import Store
from stepcache.stores import MemoryStore, SQLiteStore
from stepcache.testing import Clock, FaultyStore, ScriptedBackend

MATH = "Solve 2x + 3 = 13 for x."
REWORDED = "Please find x if 13 = 3 + 2x."
RIVER = "Name a river."
RIGHT = "2x + 3 = 13\n\n2x = 10\n\nx = 5"
SHORTER = "2x = 10\n\nx = 5"


@pytest.fixture(params=["memory", "sqlite"])
def store(request: Any, tmp_path: Path) -> Iterator[Store]:
    """Both local stores."""
    opened: Any = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "c.db")
    yield opened
    opened.close()


def ask(text: str) -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),))


def test_a_call_may_name_its_wall(store: Store) -> None:
    """The call's namespace comes before the engine's, and "" is a namespace too."""
    backend = ScriptedBackend(lambda call: "The Elbe.")
    engine = StepCacheEngine(store=store, backend=backend, namespace="own")
    for namespace in (None, "ann", "bob", ""):
        for route in ("miss", "exact"):
            outcome = engine.resolve(ask(RIVER), control=Control(namespace=namespace))
            assert outcome.route == route
    assert engine.resolve(ask(RIVER), control=Control(namespace="own")).route == "exact"


def test_forgetting_by_entry_tag_and_namespace(store: Store) -> None:
    """What was asked for goes, everything else stays; tags are inherited by re-worded answers."""
    engine = StepCacheEngine(store=store, backend=ScriptedBackend(lambda call: RIGHT))

    def fill() -> None:
        engine.clear()
        for namespace in ("ann", "bob", ""):
            for tag in ("old", "new"):
                text = f"{MATH if tag == 'old' else 'Name a river.'}"
                engine.resolve(ask(text), control=Control(namespace=namespace, tags=(tag,)))
            engine.resolve(ask(REWORDED), control=Control(namespace=namespace, tags=("again",)))

    fill()
    assert engine.count() == 9
    assert engine.forget(tag="old") == 6
    assert engine.count() == 3
    fill()
    assert engine.forget(tag="again") == 3
    assert engine.forget(namespace="ann") == 2
    assert engine.forget(namespace="") == 2
    assert engine.forget(namespace="ann") == 0
    fill()
    assert engine.forget(tag="new", namespace="bob") == 1
    outcome = engine.resolve(ask(MATH), control=Control(namespace="bob"))
    assert outcome.route == "exact"
    assert outcome.entry_id is not None
    assert engine.forget(outcome.entry_id) == 1
    assert engine.forget(outcome.entry_id) == 0
    assert engine.forget(tag="unknown") == 0


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_forgetting_by_age_and_predicate(kind: str, tmp_path: Path) -> None:
    """Each alone and together with a tag; reports on bad answers are never what is meant."""
    clock = Clock(time.time() - 100)
    store: Any = MemoryStore(clock=clock)
    if kind == "sqlite":
        store = SQLiteStore(tmp_path / "c.db", clock=clock)
    engine = StepCacheEngine(store=store, backend=ScriptedBackend(lambda call: "An answer."))
    for name in ("Elbe", "Oder", "Rhine", "Isar", "Bad"):
        tags = ("even",) if name in ("Oder", "Isar") else ()
        outcome = engine.resolve(ask(f"Where is the {name}?"), control=Control(tags=tags))
        clock.advance(10)
    assert engine.report_bad(str(outcome.entry_id))
    assert store.count() == 5
    assert engine.forget(tag="even", older_than=85) == 1
    assert engine.forget(where=lambda entry: "Elbe" in entry.prompt) == 1
    assert engine.forget(older_than=75, where=lambda entry: False) == 0
    assert engine.forget(older_than=75) == 1
    assert [entry.prompt for entry in store.entries() if entry.prompt] == ["Where is the Isar?"]
    assert engine.forget(where=lambda entry: True) == 1
    assert store.count() == 1, "the report stays"
    store.close()


def test_what_to_forget_must_be_said() -> None:
    """Nothing named, too much named, or a store that cannot list: an error with the way out."""
    engine = StepCacheEngine()
    with pytest.raises(UsageError, match="clear"):
        engine.forget()
    with pytest.raises(UsageError, match="not both"):
        engine.forget("entry", tag="tag")
    for age in (-1, float("nan"), "1h", True):
        with pytest.raises(UsageError, match=r"older_than is .*: use seconds"):
            engine.forget(older_than=age)  # type: ignore[arg-type]
    mute = StepCacheEngine(store=FaultyStore(MemoryStore(), set()))
    for act in (lambda: mute.forget(tag="a"), lambda: mute.report_bad("a")):
        with pytest.raises(UsageError, match="BrowsableStore"):
            act()


def test_a_reported_answer_goes_and_stays_away(store: Store) -> None:
    """Under other words too; another answer is welcome, and the report outlives the engine."""
    backend = ScriptedBackend(lambda call: RIGHT)
    engine = StepCacheEngine(store=store, backend=backend)
    entry = engine.resolve(ask(MATH)).entry_id
    assert entry is not None
    assert engine.resolve(ask(REWORDED)).route == "reuse"
    assert engine.report_bad(entry)
    assert engine.count() == 0
    assert not engine.report_bad(entry)
    again = StepCacheEngine(store=store, backend=backend)
    for text in (MATH, MATH, REWORDED):
        outcome = again.resolve(ask(text))
        assert (outcome.route, outcome.entry_id) == ("miss", None)
        assert "reported" in outcome.trace.names()
    assert again.count() == 0
    other = StepCacheEngine(store=store, backend=ScriptedBackend([SHORTER]))
    assert [other.resolve(ask(text)).route for text in (MATH, REWORDED)] == ["miss", "reuse"]


def test_a_reported_answer_is_not_derived_again(store: Store) -> None:
    """From another entry the same wrong text would follow: the model is asked instead."""
    backend = ScriptedBackend(lambda call: RIGHT if "13" in call.messages[-1].text else "x = 6")
    engine = StepCacheEngine(store=store, backend=backend)
    other = "Solve 2x + 3 = 15 for x."
    engine.resolve(ask(MATH))
    adapted = engine.resolve(ask(other))
    assert adapted.route == "adapt"
    assert engine.report_bad(str(adapted.entry_id))
    outcome = engine.resolve(ask(other))
    assert outcome.route == "skip"
    assert outcome.text == "x = 6"
    assert engine.resolve(ask(MATH)).route == "exact"


def test_reports_do_not_count_and_go_with_everything(store: Store) -> None:
    """``count`` tells of answers; ``clear`` makes a clean start."""
    engine = StepCacheEngine(store=store, backend=ScriptedBackend(lambda call: "The Elbe."))
    entry = engine.resolve(ask(RIVER)).entry_id
    engine.report_bad(str(entry))
    engine.resolve(ask("Name a lake."))
    assert engine.count() == 1
    assert engine.forget(namespace="") == 1
    engine.resolve(ask("Name a lake."))
    assert engine.clear() == 1
    assert engine.resolve(ask(RIVER)).entry_id is not None


def test_a_message_without_text_can_be_reported(store: Store) -> None:
    """The host's record stands for the answer where there is no text."""
    engine = StepCacheEngine(store=store)
    reply = Reply(text="", message='{"calls": 1}', reusable=False)
    entry = engine.admit(ask(RIVER), reply)
    assert engine.report_bad(str(entry))
    assert engine.admit(ask(RIVER), reply) is None
    assert engine.admit(ask(RIVER), Reply(text="", message="{}", reusable=False)) is not None


def test_whether_it_was_reported_must_be_known() -> None:
    """A store that cannot say keeps nothing; the answer itself is handed over."""
    store = FaultyStore(MemoryStore(), {"get"})
    engine = StepCacheEngine(store=store, backend=ScriptedBackend(lambda call: "The Elbe."))
    outcome = engine.resolve(ask(RIVER))
    assert (outcome.text, outcome.entry_id, engine.count()) == ("The Elbe.", None, 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Control()),
        ("bypass", Control(bypass=True)),
        ("refresh", Control(refresh=True)),
        (Control(ttl=3), Control(ttl=3)),
        ({"bypass": False}, Control()),
        ({"tags": "one"}, Control(tags=("one",))),
        (
            {"tags": ["a", "b"], "ttl": 2, "namespace": ""},
            Control(tags=("a", "b"), ttl=2, namespace=""),
        ),
    ],
)
def test_what_callers_write_is_read(value: object, expected: Control) -> None:
    """Every form a caller may use, the false but valid values included."""
    assert Control.of(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "bypas", 1, True, {"bypas": True}, {"ttl": 0}, {"ttl": -1}, {"ttl": True}, {"ttl": "9"},
        {"tags": [1]}, {"tags": 7}, {"namespace": 3}, {"bypass": "no"}, {"refresh": 1},
        {"tags": ["stepcache:namespace:x"]}, {"stream_unverified": "yes"},
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(value: object) -> None:
    """A misspelled wish must not be a wish unheard."""
    with pytest.raises(UsageError):
        Control.of(value)


def test_a_call_has_a_time_to_live() -> None:
    """The call's own comes before the policy's."""
    now = [1000.0]
    store = MemoryStore(clock=lambda: now[0])
    backend = ScriptedBackend(lambda call: "The Elbe.")
    engine = StepCacheEngine(store=store, backend=backend, policy=Policy(ttl=100))
    engine.resolve(ask(RIVER), control=Control(ttl=10))
    now[0] += 11
    assert engine.resolve(ask(RIVER)).route == "miss"
    now[0] += 11
    assert engine.resolve(ask(RIVER)).route == "exact"


def _asynchronous() -> Any:
    """A store that answers with awaitables."""

    def method(name: str) -> Any:
        async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(self.inner, name)(*args, **kwargs)

        return call

    names = ("get", "search", "put", "remove", "clear", "count", "close", "find", "entries")
    made = type("Asynchronous", (), {name: method(name) for name in names})()
    made.inner = MemoryStore()
    return made


async def test_upkeep_of_an_asynchronous_store() -> None:
    """The same by await; without it, the error says so."""
    engine = StepCacheEngine(
        store=_asynchronous(), backend=ScriptedBackend(lambda call: "The Elbe.")
    )
    kept = await engine.aresolve(ask(RIVER), control=Control(tags=("t",)))
    await engine.aresolve(ask("Name a lake."), control=Control(namespace="ann"))
    assert await engine.acount() == 2
    with pytest.raises(UsageError, match="asynchronous"):
        engine.count()
    assert await engine.areport_bad(str(kept.entry_id))
    assert (await engine.aresolve(ask(RIVER))).entry_id is None
    assert await engine.aforget(namespace="ann") == 1
    await engine.aresolve(ask("Name a sea."))
    assert await engine.aclear() == 1
    assert await engine.acount() == 0
