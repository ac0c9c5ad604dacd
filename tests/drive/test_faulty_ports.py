"""Ports that answer something else than they should, and cancellations that are theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stepcache import Message, Outcome, Reply, Request, StepCacheEngine, UsageError
from stepcache.embedders import LexicalEmbedder
from stepcache.protocols import Match
from stepcache.stores import MemoryStore
from stepcache.testing import ScriptedBackend

ASKED = "Solve 2x + 3 = 13 for x."
ANSWER = "2x + 3 = 13\n\n2x = 10\n\nx = 5"


def ask(text: str = ASKED) -> Request:
    return Request(messages=(Message(role="user", text=text),))


class Answering(MemoryStore):
    """A store whose every answer goes through a function."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.change: Callable[[Any], Any] = lambda good: good
        self.later = change

    def get(self, scope: str, key: str, /) -> Any:
        return self.change(super().get(scope, key))

    def search(self, scope: str, vector: Any, fingerprint: str, /, *, limit: int) -> Any:
        return self.change(super().search(scope, vector, fingerprint, limit=limit))


def of_another_scope(good: Any) -> Any:
    if isinstance(good, tuple):
        return tuple(replace(m, entry=replace(m.entry, scope="other")) for m in good)
    return good and replace(good, scope="other")


def of_another_key(good: Any) -> Any:
    if isinstance(good, tuple):
        return good
    return good and replace(good, exact_key="other", canonical_key="other")


def hollow(good: Any) -> Any:
    if isinstance(good, tuple):
        return tuple(Match(replace(m.entry, steps=(None,)), float("nan")) for m in good)
    return good and replace(good, steps=("x = 7",))


@pytest.mark.parametrize(
    "change",
    [
        lambda good: 7,
        lambda good: "x = 7",
        lambda good: [object()],
        lambda good: {"text": "x = 7"},
        of_another_scope,
        of_another_key,
        hollow,
    ],
)
@pytest.mark.parametrize("asked", [ASKED, "Please find x if 13 = 3 + 2x.", "Solve 4x = 20 for x."])
async def test_a_store_that_answers_rubbish_is_a_miss(
    change: Callable[[Any], Any], asked: str
) -> None:
    """The model is asked as if nothing were stored, and the trace says what the store did."""
    store = Answering(change)
    backend = ScriptedBackend(lambda call: ANSWER if "2x" in call.messages[-1].text else "x = 5")
    engine = StepCacheEngine(store=store, backend=backend)
    engine.resolve(ask())
    store.change = store.later
    for outcome in (engine.resolve(ask(asked)), await engine.aresolve(ask(asked))):
        assert outcome.text.endswith("x = 5")
        if change is not of_another_key:  # what is found by similarity is proven all the same
            assert outcome.route in ("miss", "skip"), outcome.trace.render()
            assert "store failed" in outcome.trace.names()


class Shapeless(LexicalEmbedder):
    """An embedder whose vectors have another length than it says."""

    def embed(self, texts: Any, /) -> Any:
        return np.ones((len(texts), 3), dtype=np.float32)


def test_vectors_of_another_length_are_refused() -> None:
    """They would be compared with nothing, or break the index for everybody."""
    engine = StepCacheEngine(embedder=Shapeless(), backend=ScriptedBackend([ANSWER]))
    outcome = engine.resolve(ask())
    assert outcome.text == ANSWER
    assert "embedder failed" in outcome.trace.names()


class Mute:
    """A model that answers something that is no reply."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def generate(self, call: Any, /) -> Any:
        return self.said

    def stream(self, call: Any, /) -> Any:
        yield self.said


@pytest.mark.parametrize("said", [None, "x = 5", 7, Reply(text=None)])  # type: ignore[arg-type]
def test_a_backend_that_gives_no_reply_is_told_so(said: Any) -> None:
    """In one sentence that names what came and what should have."""
    engine = StepCacheEngine(backend=Mute(said))
    with pytest.raises(UsageError, match=r"return a stepcache\.Reply"):
        engine.resolve(ask())
    with pytest.raises(UsageError, match=r"return a stepcache\.Reply"):
        list(engine.stream(ask("Write a line.")))
    assert engine.count() == 0


class Cancelling(MemoryStore):
    """A store whose connection is cancelled under it, while nobody cancelled the request."""

    async def get(self, scope: str, key: str, /) -> Any:  # type: ignore[override]
        raise asyncio.CancelledError

    async def search(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        raise asyncio.CancelledError

    async def acquire(self, *args: Any) -> Any:
        raise asyncio.CancelledError

    async def put_leased(self, *args: Any, **kwargs: Any) -> Any:
        raise asyncio.CancelledError


async def test_a_cancellation_of_the_stores_own_is_a_miss() -> None:
    """Only a cancelled task is cancelled: what a port lets out by itself is its failure."""
    engine = StepCacheEngine(store=Cancelling(), backend=ScriptedBackend(lambda call: ANSWER))
    outcome = await engine.aresolve(ask())
    assert outcome.text == ANSWER
    assert "store failed: PortError: the store was cancelled" in outcome.trace.render()
    pieces = [piece async for piece in engine.astream(ask())]
    assert isinstance(pieces[-1], Outcome)


class Waiting(MemoryStore):
    """A store that never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def get(self, scope: str, key: str, /) -> Any:  # type: ignore[override]
        self.reached.set()
        await asyncio.Event().wait()


async def test_a_cancelled_request_is_cancelled() -> None:
    """The caller's own cancellation is never taken for a port's failure."""
    store = Waiting()
    engine = StepCacheEngine(store=store, backend=ScriptedBackend(lambda call: ANSWER))
    task = asyncio.ensure_future(engine.aresolve(ask()))
    await store.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


class Stopping(MemoryStore):
    """A blocking store that lets a ``StopIteration`` out."""

    blocking = True

    def get(self, scope: str, key: str, /) -> Any:
        raise StopIteration

    def acquire(self, *args: Any) -> Any:
        raise StopIteration

    def put_leased(self, *args: Any, **kwargs: Any) -> Any:
        raise StopIteration


async def test_a_stop_iteration_in_a_worker_thread_ends() -> None:
    """No future takes one, so waiting for it would never end."""
    engine = StepCacheEngine(store=Stopping(), backend=ScriptedBackend(lambda call: ANSWER))
    outcome = await asyncio.wait_for(engine.aresolve(ask()), 60)
    assert outcome.text == ANSWER
    assert "store failed" in outcome.trace.names()


class Restless:
    """A listener whose own waiting is cancelled under it."""

    async def __call__(self, request: Any, outcome: Any, seconds: float, /) -> None:
        raise asyncio.CancelledError


async def test_a_listeners_own_cancellation_is_nobody_elses() -> None:
    """It is warned of like any other of its faults."""
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: ANSWER), listeners=(Restless(),))
    assert (await engine.aresolve(ask())).text == ANSWER
