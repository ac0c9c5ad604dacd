"""Drivers: errors come through as they are, awaitables are refused where nobody awaits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from stepcache import Message, ModelCall, Outcome, Reply, Request, Step, StepCacheEngine, UsageError
from stepcache.protocols import Delta
from stepcache.testing import AsyncScriptedBackend, ScriptedBackend


def ask(text: str = "Name a river.") -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),))


class OwnError(Exception):
    """An error only the user's model knows."""


@pytest.mark.parametrize(
    "error",
    [OwnError("mine"), StopIteration("no more"), RuntimeError("plain"), KeyboardInterrupt()],
)
def test_the_models_own_error_passes_through(error: BaseException) -> None:
    """The very exception object the model raised reaches the caller."""

    class Failing:
        def generate(self, call: ModelCall) -> Reply:
            raise error

    engine = StepCacheEngine(backend=Failing())
    for prompt in ("Name a river.", "Solve 2x + 3 = 13 for x.", ""):
        with pytest.raises(type(error)) as caught:
            engine.resolve(ask(prompt))
        assert caught.value is error


async def test_the_models_own_error_passes_through_async() -> None:
    """The asynchronous driver does not wrap it either."""
    error = OwnError("mine")

    class Failing:
        async def generate(self, call: ModelCall) -> Reply:
            raise error

    with pytest.raises(OwnError) as caught:
        await StepCacheEngine(backend=Failing()).aresolve(ask())
    assert caught.value is error


def test_an_asynchronous_port_needs_an_asynchronous_call() -> None:
    """Under a synchronous call it is refused with the name of what to use, and is not left
    unawaited."""
    engine = StepCacheEngine(backend=AsyncScriptedBackend(["The Elbe."]))
    with pytest.raises(UsageError, match="aresolve"):
        engine.resolve(ask())


async def test_a_synchronous_call_works_inside_a_running_loop() -> None:
    """As in a notebook."""
    engine = StepCacheEngine(backend=ScriptedBackend(["The Elbe."]))
    assert engine.resolve(ask()).text == "The Elbe."


async def test_a_synchronous_port_works_under_an_asynchronous_call() -> None:
    """Ports may be of either kind."""
    engine = StepCacheEngine(backend=ScriptedBackend(["The Elbe."]))
    assert (await engine.aresolve(ask())).text == "The Elbe."


def test_without_a_backend_the_need_is_named() -> None:
    """Asking for what nobody can give says so."""
    with pytest.raises(UsageError, match="no backend"):
        StepCacheEngine().resolve(ask())


class Pieces:
    """A model that streams, and can break off."""

    def __init__(self, whole: bool = True, error: Exception | None = None) -> None:
        self.whole = whole
        self.error = error
        self.closed = False

    def generate(self, call: ModelCall) -> Reply:
        """The whole at once."""
        return Reply(text="The Elbe.")

    def stream(self, call: ModelCall) -> Iterator[Delta | Reply]:
        """In pieces; breaks off when told to."""
        try:
            yield Delta("The ", payload="chunk 1")
            if self.error is not None:
                raise self.error
            yield Delta("Elbe.", payload="chunk 2")
            if self.whole:
                yield Reply(text="The Elbe.")
        finally:
            self.closed = True


class AsyncPieces(Pieces):
    """The same, asynchronously."""

    async def stream(self, call: ModelCall) -> AsyncIterator[Delta | Reply]:  # type: ignore[override]
        """In pieces."""
        for item in super().stream(call):
            yield item


async def _astreamed(engine: StepCacheEngine, request: Request) -> list[Any]:
    return [piece async for piece in engine.astream(request)]


@pytest.mark.parametrize("kind", [Pieces, AsyncPieces])
def test_a_miss_streams_through_untouched_and_is_kept(kind: type[Pieces]) -> None:
    """The model's own chunks pass; the second time the answer streams from the cache."""
    engine = StepCacheEngine(backend=kind())
    if kind is Pieces:
        first, second = list(engine.stream(ask())), list(engine.stream(ask()))
    else:
        first, second = (asyncio.run(_astreamed(engine, ask())) for _ in range(2))
    assert [p.payload for p in first[:-1]] == ["chunk 1", "chunk 2"]
    assert first[-1].route == "miss"
    assert all(isinstance(p, Step) for p in second[:-1])
    assert second[-1].route == "exact"


def test_closing_a_stream_early_keeps_nothing() -> None:
    """A reader that leaves closes the model's stream, and nothing half is kept."""
    backend = Pieces()
    engine = StepCacheEngine(backend=backend)
    stream = engine.stream(ask())
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert backend.closed
    assert engine.count() == 0
    assert len(engine._flights) == 0


def test_a_stream_without_an_end_is_no_answer() -> None:
    """Pieces without a terminal reply reach the reader, and are not kept."""
    engine = StepCacheEngine(backend=Pieces(whole=False))
    *pieces, outcome = engine.stream(ask())
    assert "".join(p.text for p in pieces) == "The Elbe."
    assert isinstance(outcome, Outcome)
    assert outcome.finish_reason == "interrupted"
    assert engine.count() == 0


def test_an_error_inside_a_stream_passes_through() -> None:
    """What the model raises between two chunks reaches the reader as it is."""
    error = OwnError("cut")
    engine = StepCacheEngine(backend=Pieces(error=error))
    stream = engine.stream(ask())
    next(stream)
    with pytest.raises(OwnError) as caught:
        next(stream)
    assert caught.value is error
    assert engine.count() == 0


def test_a_recognised_family_streams_verified_steps() -> None:
    """Where an answer can be judged, nothing is said before it has been."""

    class Wrong(Pieces):
        def stream(self, call: ModelCall) -> Iterator[Delta | Reply]:
            yield Delta("x = 7")
            yield Reply(text="x = 7")

        def generate(self, call: ModelCall) -> Reply:
            return Reply(text="x = 7")

    engine = StepCacheEngine(backend=Wrong())
    *pieces, outcome = engine.stream(ask("Solve 2x + 3 = 13 for x."))
    assert all(isinstance(piece, Step) for piece in pieces)
    assert "".join(piece.text for piece in pieces).strip().endswith("x = 5")
    assert isinstance(outcome, Outcome)
    assert outcome.route == "fallback"


def test_batches_keep_order_and_share_equal_requests() -> None:
    """Outcomes come in the order of the requests; equal ones cost one call."""
    backend = ScriptedBackend(lambda call: call.messages[-1].text.upper())
    engine = StepCacheEngine(backend=backend)
    names = ["elbe", "oder", "elbe", "rhein", "elbe", "oder"]
    outcomes = engine.resolve_many([ask(name) for name in names], max_concurrency=6)
    assert [o.text for o in outcomes] == [name.upper() for name in names]
    assert len(backend.calls) == 3


def test_a_blocking_port_leaves_the_event_loop_free() -> None:
    """A port that says it blocks runs in a worker thread under asynchronous calls."""
    import threading

    seen: list[int] = []

    class Blocking:
        blocking = True

        def generate(self, call: ModelCall) -> Reply:
            seen.append(threading.get_ident())
            return Reply(text="The Elbe.")

    asyncio.run(StepCacheEngine(backend=Blocking()).aresolve(ask()))
    assert seen != [threading.get_ident()]
