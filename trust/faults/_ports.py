"""Ports that note each exchange, and fail in a chosen way at a chosen one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stepcache import Reply
from stepcache._types import Entry, Step
from stepcache.protocols import Delta, Match

__all__ = ["FAULTS", "ModelDown", "Plan", "backend_for", "embedder_for", "store_for"]

HANGS = 0.25
"""Seconds a hanging port hangs: more than the budget of a trial, which is 0.05."""


class ModelDown(Exception):
    """The model's own error."""


@dataclass(slots=True)
class Plan:
    """What is to fail, and what has happened so far."""

    at: int | None = None
    """Number of the exchange that fails; None notes them only."""
    fault: str = ""
    calls: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)
    waiting: Any = None
    """Called when an asynchronous port begins to wait for ever."""
    struck: bool = False

    def next(self, name: str) -> str:
        """Note an exchange; the fault it has to suffer, or nothing."""
        with self.lock:
            number = len(self.calls)
            self.calls.append(name)
        if number == self.at:
            self.struck = True
            return self.fault
        return ""


def _raiser(error: type[BaseException]) -> Callable[[Any], Any]:
    def fail(good: Any) -> Any:
        raise error("broken on purpose")

    return fail


def _foreign(good: Any) -> Any:
    """Somebody else's entry."""
    other = Entry(
        id="foreign",
        scope="another scope",
        exact_key="another key",
        canonical_key="another key",
        prompt="What is Ann's password?",
        constraints=None,
        steps=(Step(index=0, text="hunter2"),),
    )
    return _with_entry(good, other)


def _with_entry(good: Any, entry: Any) -> Any:
    if isinstance(good, tuple):
        return tuple(Match(entry, 1.0) for _ in range(2))
    return entry


def _elsewhere(good: Any) -> Any:
    """The right scope, another request's answer."""
    wrong = (Step(index=0, text="hunter2"),)
    if isinstance(good, Entry):
        return replace(good, exact_key="0" * 64, canonical_key="0" * 64, steps=wrong)
    if isinstance(good, tuple) and good and isinstance(good[0], Match):
        return tuple(replace(m, entry=replace(m.entry, steps=wrong)) for m in good)
    return good


def _changed(entry: Any, **fields: Any) -> Any:
    return replace(entry, **fields)


def _hollow(good: Any) -> Any:
    """The right keys around parts of wrong types."""
    if isinstance(good, Entry):
        return _changed(good, steps=("hunter2",), usage="?", constraints="?", tags=7)
    if isinstance(good, tuple) and good and isinstance(good[0], Match):
        entry = _changed(good[0].entry, steps=(None,), constraints={"task": "json"})
        return (Match(entry, float("nan")), Match(entry, 1.0), "no match")
    return [object()]


_FAULTS: dict[str, Callable[[Any], Any]] = {
    **{
        f"raises {error.__name__}": _raiser(error)
        for error in (
            *(RuntimeError, OSError, MemoryError, RecursionError, StopIteration, TimeoutError),
            *(asyncio.CancelledError, asyncio.QueueEmpty, StopAsyncIteration, GeneratorExit),
            *(KeyboardInterrupt, SystemExit),
        )
    },
    "returns None": lambda good: None,
    "returns True": lambda good: True,
    "returns a number": lambda good: 7,
    "returns a text": lambda good: "hunter2",
    "returns an empty list": lambda good: [],
    "returns an object": lambda good: object(),
    "returns a dict": lambda good: {"text": "hunter2"},
    "returns NaN vectors": lambda good: np.full((2, 256), np.nan, dtype=np.float32),
    "returns one vector": lambda good: np.ones(256, dtype=np.float32),
    "returns another dimension": lambda good: np.ones((2, 7), dtype=np.float32),
    "returns a foreign entry": _foreign,
    "returns another answer": _elsewhere,
    "returns hollow values": _hollow,
    "answers late": lambda good: good,
    "hangs": lambda good: good,
}
FAULTS = tuple(_FAULTS)


def _struck(plan: Plan, name: str, call: Callable[[], Any]) -> Any:
    fault = plan.next(name)
    if not fault:
        return call()
    if fault == "answers late":
        time.sleep(0.002)
    if fault == "hangs":
        time.sleep(HANGS)
    return _FAULTS[fault](call())


async def _astruck(plan: Plan, name: str, call: Callable[[], Any]) -> Any:
    fault = plan.next(name)
    await asyncio.sleep(0)
    if fault == "answers late":
        await asyncio.sleep(0.002)
    if fault == "waits for ever":
        if plan.waiting is not None:
            plan.waiting()
        await asyncio.Event().wait()
    if fault == "hangs":
        await asyncio.sleep(HANGS)
    return _FAULTS[fault](call()) if fault in _FAULTS else call()


_STORE = ("get", "search", "put", "remove", "clear", "count", "find", "entries")
_LEASES = ("acquire", "renew", "release", "put_leased")


def store_for(inner: Any, plan: Plan, *, asynchronous: bool = False) -> Any:
    """A store over another one."""
    names = [name for name in (*_STORE, *_LEASES) if hasattr(inner, name)]
    holder = {
        name: _method(inner, name, f"store.{name}", plan, asynchronous=asynchronous)
        for name in names
    }
    holder["close"] = lambda self: None
    kind = type("FaultyStore", (), {**holder, "blocking": getattr(inner, "blocking", False)})
    if asynchronous:
        kind.blocking = False  # type: ignore[attr-defined]
    return kind()


def _method(inner: Any, name: str, told: str, plan: Plan, *, asynchronous: bool) -> Any:
    method = getattr(inner, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _struck(plan, told, lambda: method(*args, **kwargs))

    async def acall(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await _astruck(plan, told, lambda: method(*args, **kwargs))

    return acall if asynchronous else call


def embedder_for(inner: Any, plan: Plan, *, asynchronous: bool = False) -> Any:
    """An embedder over another one."""
    call = _method(inner, "embed", "embedder.embed", plan, asynchronous=asynchronous)
    holder = {"embed": call, "fingerprint": inner.fingerprint, "dimension": inner.dimension}
    return type("FaultyEmbedder", (), holder)()


class _Model:
    def __init__(self, answer: Callable[[Any], Reply], plan: Plan) -> None:
        self._answer = answer
        self._plan = plan

    def generate(self, call: Any, /) -> Any:
        """Answer at once."""
        return _struck(self._plan, f"model.{call.purpose}", lambda: self._answer(call))

    def stream(self, call: Any, /) -> Iterator[Any]:
        """Answer word by word."""
        whole = _struck(self._plan, f"model.{call.purpose}", lambda: self._answer(call))
        yield from _pieces(whole)


class _AsyncModel:
    def __init__(self, answer: Callable[[Any], Reply], plan: Plan) -> None:
        self._answer = answer
        self._plan = plan

    async def generate(self, call: Any, /) -> Any:
        """Answer at once."""
        return await _astruck(self._plan, f"model.{call.purpose}", lambda: self._answer(call))

    async def stream(self, call: Any, /) -> AsyncIterator[Any]:
        """Answer word by word."""
        told = f"model.{call.purpose}"
        for piece in _pieces(await _astruck(self._plan, told, lambda: self._answer(call))):
            yield piece


def _pieces(whole: Any) -> Iterator[Any]:
    if isinstance(whole, Reply):
        for word in whole.text.splitlines(keepends=True):
            yield Delta(word)
    yield whole


def backend_for(answer: Callable[[Any], Reply], plan: Plan, *, asynchronous: bool) -> Any:
    """The scene's model."""
    return _AsyncModel(answer, plan) if asynchronous else _Model(answer, plan)
