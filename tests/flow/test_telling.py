"""Who listens is told of every answer and every error, and can hurt neither."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from stepcache import (
    AnswerRejected,
    ConfigurationError,
    Message,
    ModelCall,
    Outcome,
    Policy,
    Request,
    StepCacheEngine,
)
from stepcache._telling import Watch
from stepcache.protocols import FailureListener, Listener, Timing
from stepcache.stores import MemoryStore
from stepcache.testing import AsyncScriptedBackend, FaultyStore, ScriptedBackend

RIGHT = "2x + 3 = 13\n\n2x = 10\n\nx = 5"
MATH = "Solve 2x + 3 = 13 for x."


def ask(text: str = MATH) -> Request:
    return Request(messages=(Message(role="user", text=text),))


class Heard:
    """A listener that takes everything down."""

    def __init__(self) -> None:
        self.answers: list[tuple[Outcome, Timing]] = []
        self.errors: list[tuple[Exception, Timing]] = []
        self.threads: list[int] = []

    def __call__(self, request: Request, outcome: Outcome, timing: Timing) -> None:
        self.answers.append((outcome, timing))
        self.threads.append(threading.get_ident())

    def failed(self, request: Request, error: Exception, timing: Timing) -> None:
        self.errors.append((error, timing))


class Failing:
    """A listener whose dashboard is down, whatever it is told."""

    def __call__(self, request: Request, outcome: Outcome, timing: Timing) -> None:
        raise RuntimeError(f"cannot send {request.text}")

    def failed(self, request: Request, error: Exception, timing: Timing) -> None:
        raise RuntimeError(f"cannot send {request.text}")


async def _all(pieces: Any) -> Any:
    return [piece async for piece in pieces][-1]


FACES: dict[str, Callable[[StepCacheEngine, Request], Any]] = {
    "resolve": lambda engine, request: engine.resolve(request),
    "aresolve": lambda engine, request: asyncio.run(engine.aresolve(request)),
    "stream": lambda engine, request: list(engine.stream(request))[-1],
    "astream": lambda engine, request: asyncio.run(_all(engine.astream(request))),
    "lookup": lambda engine, request: engine.lookup(request),
    "alookup": lambda engine, request: asyncio.run(engine.alookup(request)),
}


@pytest.mark.parametrize("face", FACES)
def test_every_listener_is_told_of_every_face(face: str) -> None:
    """Several at once, in order; one that raises keeps nothing from the others or the caller."""
    first, last = Heard(), Heard()
    engine = StepCacheEngine(
        backend=ScriptedBackend(lambda call: RIGHT), listeners=[first, Failing(), last]
    )
    engine.admit(ask(), _reply())
    outcome = FACES[face](engine, ask())
    assert outcome.text == RIGHT
    for heard in (first, last):
        assert [o for o, _ in heard.answers] == [outcome]
        timing = heard.answers[0][1]
        assert timing.face == face
        told = timing.proof + sum(part.seconds for part in timing.parts)
        assert 0 < told <= timing.seconds
        assert [(part.port, part.what) for part in timing.parts] == [("store", "get")]
        assert (timing.first is not None) == ("stream" in face)


def _reply() -> Any:
    from stepcache import Reply

    return Reply(text=RIGHT)


@pytest.mark.parametrize("face", ["resolve", "aresolve", "stream", "astream"])
def test_the_models_error_is_told_and_goes_through(face: str) -> None:
    """It is the very error the model raised, listener or not."""
    mine = ConnectionError("no route to host")

    def down(call: ModelCall) -> str:
        raise mine

    heard = Heard()
    engine = StepCacheEngine(backend=ScriptedBackend(down), listeners=[Failing(), heard])
    with pytest.raises(ConnectionError) as caught:
        FACES[face](engine, ask())
    assert caught.value is mine
    assert [e for e, _ in heard.errors] == [mine]
    assert heard.errors[0][1].face == face
    assert heard.answers == []


def test_a_rejection_is_told_with_its_outcome() -> None:
    """A policy that raises tells its listeners what it did not hand over."""
    heard = Heard()
    engine = StepCacheEngine(
        backend=ScriptedBackend(lambda call: "x = 4"),
        policy=Policy(on_reject="raise", fallback=False),
        listeners=[heard],
    )
    with pytest.raises(AnswerRejected):
        engine.resolve(ask())
    assert isinstance(heard.errors[0][0], AnswerRejected)
    assert heard.errors[0][0].outcome is not None


def test_what_a_listener_raises_is_said_once_and_quotes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its error may hold a prompt; the log holds the listener's name and the error's class."""
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: RIGHT), listeners=[Failing()])
    with caplog.at_level(logging.DEBUG, logger="stepcache"):
        for _ in range(3):
            engine.resolve(ask())
    assert caplog.messages == ["listener Failing raised RuntimeError; this is said once"]
    assert "2x" not in caplog.text


async def test_a_blocking_listener_holds_up_no_other_call() -> None:
    """It waits, in a thread, for what only another task of the same loop can do."""
    answered = threading.Event()

    class Slow(Heard):
        blocking = True

        def __call__(self, request: Request, outcome: Outcome, timing: Timing) -> None:
            assert answered.wait(60)
            super().__call__(request, outcome, timing)

    slow = Slow()
    engine = StepCacheEngine(
        backend=AsyncScriptedBackend(lambda call: "The Elbe."), listeners=[slow]
    )
    plain = StepCacheEngine(backend=AsyncScriptedBackend(lambda call: "The Elbe."))
    waiting = asyncio.create_task(engine.aresolve(ask("Name a river.")))
    await asyncio.wait_for(plain.aresolve(ask("Name a lake.")), 60)
    answered.set()
    assert (await asyncio.wait_for(waiting, 60)).text == "The Elbe."
    assert slow.answers
    assert slow.threads[0] != threading.get_ident()


async def test_a_listener_may_be_asynchronous(caplog: pytest.LogCaptureFixture) -> None:
    """Asynchronous calls await it; a synchronous one says that it cannot, and answers."""
    heard: list[str] = []

    async def listen(request: Request, outcome: Outcome, timing: Timing) -> None:
        await asyncio.sleep(0)
        heard.append(outcome.route)

    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: RIGHT), listeners=[listen])
    await engine.aresolve(ask())
    assert [piece async for piece in engine.astream(ask())]
    assert heard == ["miss", "exact"]
    assert engine.resolve(ask()).route == "exact"
    assert heard == ["miss", "exact"]
    assert "asynchronous" in caplog.text


def test_the_time_goes_to_who_takes_it() -> None:
    """A port's time is its own even when it raises, which is told; all else is the engine's."""
    heard = Heard()
    engine = StepCacheEngine(
        store=FaultyStore(MemoryStore()),
        backend=ScriptedBackend(lambda call: RIGHT),
        listeners=[heard],
    )
    assert engine.resolve(ask()).text == RIGHT
    timing = heard.answers[0][1]
    assert min(timing.proof, *map(timing.of, ("store", "embedder", "model"))) > 0
    assert [part.at for part in timing.parts] == sorted(part.at for part in timing.parts)
    faults = {part.port for part in timing.parts if part.error}
    assert faults == {"store"}
    assert [part.what for part in timing.parts if part.port == "model"] == ["answer"]


def test_nobody_listens_and_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without listeners no watch is made, on any face."""
    made: list[str] = []
    original = Watch.__init__

    def noting(self: Watch, face: Any) -> None:
        made.append(face)
        original(self, face)

    monkeypatch.setattr(Watch, "__init__", noting)
    for listeners in ((), (Heard(),)):
        engine = StepCacheEngine(backend=ScriptedBackend(lambda call: RIGHT), listeners=listeners)
        for face in FACES.values():
            face(engine, ask())
        assert made == (list(FACES) if listeners else [])


def test_listeners_that_cannot_work_are_refused() -> None:
    """A single one without its list, and what cannot be called."""
    with pytest.raises(ConfigurationError, match="pass a list of listeners"):
        StepCacheEngine(listeners=Heard())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="listeners holds 'loud'"):
        StepCacheEngine(listeners=["loud"])  # type: ignore[list-item]
    heard = Heard()
    assert StepCacheEngine(listeners=[heard]).listeners == (heard,)
    assert isinstance(heard, Listener)
    assert isinstance(heard, FailureListener)
