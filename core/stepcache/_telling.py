"""Who is told of an answer, and what it took. With nobody to tell, nothing is measured.

Flows know no clock. A watch stands around one: it hands on what the flow wishes for and counts the
time until the answer comes to the port that gives it, and all other time to the flow itself, which
does nothing but parse, compare, verify and plan.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from inspect import isawaitable, iscoroutine
from typing import Any, TypeVar

from stepcache._effects import Effect, Embed, Flow, Generate, Get, Join, Put, Search, Settle
from stepcache._errors import ConfigurationError
from stepcache._patience import in_thread, is_cancelled
from stepcache._types import Outcome, Request
from stepcache.protocols import Face, Listener, Part, PortName, Timing

__all__ = ["Telling", "Watch"]

T = TypeVar("T")
_log = logging.getLogger("stepcache")

_PORTS: dict[type, tuple[PortName, str]] = {
    Embed: ("embedder", "embed"),
    Generate: ("model", "answer"),
    Get: ("store", "get"),
    Join: ("wait", "join"),
    Put: ("store", "put"),
    Search: ("store", "search"),
    Settle: ("wait", "settle"),
}


class Watch:
    """The time one request takes, by who takes it."""

    __slots__ = ("_face", "_first", "_parts", "_proof", "_started")

    def __init__(self, face: Face) -> None:
        self._face: Face = face
        self._proof = 0.0
        self._parts: list[Part] = []
        self._first: float | None = None
        self._started = time.perf_counter()

    def around(self, flow: Flow[T]) -> Flow[T]:
        """The same flow, with its time taken."""
        at = time.perf_counter()
        try:
            effect: Effect = next(flow)
            while True:
                now = time.perf_counter()
                self._proof += now - at
                try:
                    result: Any = yield effect
                except Exception as error:  # noqa: BLE001 - the flow decides about any of them
                    at = time.perf_counter()
                    self._note(effect, now, at, type(error).__name__)
                    effect = flow.throw(error)
                else:
                    at = time.perf_counter()
                    self._note(effect, now, at)
                    effect = flow.send(result)
        except StopIteration as stop:
            self._proof += time.perf_counter() - at
            value: T = stop.value
            return value
        finally:
            flow.close()

    def piece(self) -> None:
        """A piece of a stream is there."""
        if self._first is None:
            self._first = time.perf_counter() - self._started

    def timing(self) -> Timing:
        """What was taken up to now."""
        seconds = time.perf_counter() - self._started
        return Timing(
            face=self._face,
            seconds=seconds,
            proof=self._proof,
            first=self._first,
            parts=tuple(self._parts),
        )

    def _note(self, effect: Effect, start: float, end: float, error: str | None = None) -> None:
        port, what = _PORTS[type(effect)]
        if isinstance(effect, Generate):
            what = effect.call.purpose
        begun, seconds = start - self._started, end - start
        self._parts.append(Part(port=port, what=what, at=begun, seconds=seconds, error=error))


class Telling:
    """The listeners of one engine. What goes wrong in one is logged, and nobody else's trouble.

    Raises:
        ConfigurationError: One of them cannot be called.
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        if callable(listeners):
            raise ConfigurationError(f"listeners is {listeners!r}: pass a list of listeners")
        self.listeners = tuple(listeners)
        for listener in self.listeners:
            if not callable(listener):
                raise ConfigurationError(
                    f"listeners holds {listener!r}: "
                    "pass functions or objects called with (request, outcome, timing)"
                )
        self._of_failures: tuple[Any, ...] = tuple(
            each for each in self.listeners if callable(getattr(each, "failed", None))
        )
        self._warned: set[int] = set()

    def watch(self, face: Face) -> Watch | None:
        """A watch where somebody wants to know."""
        return Watch(face) if self.listeners else None

    def tell(self, request: Request, outcome: Outcome, timing: Timing) -> None:
        """Tell of an answer."""
        for listener in self.listeners:
            self._now(listener, listener, request, outcome, timing)

    def tell_failure(self, request: Request, error: Exception, timing: Timing) -> None:
        """Tell of an error that goes on to the caller."""
        for listener in self._of_failures:
            self._now(listener, listener.failed, request, error, timing)

    async def atell(self, request: Request, outcome: Outcome, timing: Timing) -> None:
        """As :meth:`tell`; listeners may be asynchronous, and blocking ones go to a thread."""
        for listener in self.listeners:
            await self._await(listener, listener, request, outcome, timing)

    async def atell_failure(self, request: Request, error: Exception, timing: Timing) -> None:
        """As :meth:`tell_failure`, in the manner of :meth:`atell`."""
        for listener in self._of_failures:
            await self._await(listener, listener.failed, request, error, timing)

    def _now(self, listener: object, call: Callable[..., object], *args: object) -> None:
        try:
            result = call(*args)
            if isawaitable(result):
                if iscoroutine(result):
                    result.close()
                self._warn(listener, "is asynchronous: synchronous calls cannot tell it")
        except Exception as error:  # noqa: BLE001 - a listener's fault is nobody else's
            self._warn(listener, f"raised {type(error).__name__}")

    async def _await(self, listener: object, call: Callable[..., object], *args: object) -> None:
        try:
            if getattr(listener, "blocking", False):
                result = await in_thread(call, *args)
            else:
                result = call(*args)
            if isawaitable(result):
                await result
        except Exception as error:  # noqa: BLE001 - a listener's fault is nobody else's
            self._warn(listener, f"raised {type(error).__name__}")
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            self._warn(listener, "was cancelled")

    def _warn(self, listener: object, what: str) -> None:
        """Say it once: a listener that is down is down for every request."""
        if id(listener) not in self._warned:
            self._warned.add(id(listener))
            name = getattr(listener, "__qualname__", type(listener).__qualname__)
            # The error's own text may quote a request.
            _log.warning("listener %s %s; this is said once", name, what)
