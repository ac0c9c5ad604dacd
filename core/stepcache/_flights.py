"""Law 8: equal requests in flight share one model call, across threads and tasks of a process.

The first to ask leads; the others wait for its outcome. A leader that fails or is cancelled hands
over: whoever wakes first leads next. Whoever would wait for itself (a nested call, a generator
paused in the same thread) is let through instead of being locked up.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Self

from stepcache._forking import call_in_child, fork_safe_lock
from stepcache._types import Outcome

__all__ = ["Flights", "Lead"]

_held: ContextVar[frozenset[tuple[int, str]]] = ContextVar("stepcache_held", default=frozenset())


@dataclass(slots=True, eq=False)
class _Flight:
    landed: Future[Outcome | None]
    thread: int
    asynchronous: bool
    leader: weakref.ref[Lead]

    @property
    def over(self) -> bool:
        """Whether nobody leads any more: it has landed, or its leader was struck down by an
        interrupt before it could say so."""
        return self.landed.done() or self.leader() is None


class Lead:
    """What one driver leads; released when its flow ends, however it ends.

    An interrupt may strike between any two lines here. So what is led is written down before it is
    taken off the ground, and struck out after it has landed; landing twice does no harm.
    """

    __slots__ = ("__weakref__", "_flights", "_held_keys")

    def __init__(self, flights: Flights) -> None:
        self._flights = flights
        self._held_keys: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def idle(self) -> bool:
        """Whether nothing is led, so that there is nothing to release."""
        return not self._held_keys

    def join(self, key: str, timeout: float) -> Outcome | None:
        """Wait for an equal request's outcome, at most ``timeout`` seconds; None: you lead."""
        while True:
            flight = self._enter(key, asynchronous=False)
            if flight is None:
                return None
            try:
                outcome = flight.landed.result(timeout)
            except FutureTimeout:
                return None
            if outcome is not None:
                return outcome

    async def ajoin(self, key: str, timeout: float) -> Outcome | None:
        """As :meth:`join`, without blocking the event loop."""
        while True:
            flight = self._enter(key, asynchronous=True)
            if flight is None:
                return None
            try:
                outcome = await asyncio.wait_for(_landing(flight.landed), timeout)
            except TimeoutError:
                return None
            if outcome is not None:
                return outcome

    def leads(self, key: str) -> bool:
        """Whether this driver leads, rather than having been let through or waited too long."""
        return key in self._held_keys

    def settle(self, key: str, outcome: Outcome) -> None:
        """Hand an outcome to the followers."""
        if key in self._held_keys:
            self._land(key, outcome)

    def release(self) -> None:
        """Let the followers of everything unsettled lead themselves."""
        for key in tuple(self._held_keys):
            self._land(key, None)

    def _land(self, key: str, outcome: Outcome | None) -> None:
        self._flights.land(key, outcome, self)
        _held.set(_held.get() - {self._mark(key)})
        self._held_keys.remove(key)

    def _mark(self, key: str) -> tuple[int, str]:
        return id(self._flights), key

    def _enter(self, key: str, *, asynchronous: bool) -> _Flight | None:
        self._held_keys.append(key)
        flight = self._flights.enter(key, self, asynchronous=asynchronous)
        if flight is None:
            _held.set(_held.get() | {self._mark(key)})
            return None
        self._held_keys.remove(key)
        if self._mark(key) in _held.get():
            return None
        same_thread = flight.thread == threading.get_ident()
        if same_thread and not (asynchronous and flight.asynchronous):
            return None
        return flight


class Flights:
    """The requests in flight of one engine."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._flights: dict[str, _Flight] = {}
        call_in_child(self)

    def __len__(self) -> int:
        return len(self._flights)

    def after_fork(self) -> None:
        """Nobody is under way in a forked child: its leaders are threads of its parent."""
        self._flights = {}

    def enter(self, key: str, leader: Lead, *, asynchronous: bool) -> _Flight | None:
        """The flight of an equal request, or None after registering the caller as its leader."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None and not flight.over:
                return flight
            thread = threading.get_ident()
            self._flights[key] = _Flight(Future(), thread, asynchronous, weakref.ref(leader))
            return None

    def land(self, key: str, outcome: Outcome | None, leader: Lead) -> None:
        """End a flight of this leader's, if it is still under way; None makes its followers
        lead."""
        flight = self._flights.get(key)
        if flight is None or flight.leader() is not leader:
            return
        if not flight.landed.done():
            flight.landed.set_result(outcome)
        with self._lock:
            if self._flights.get(key) is flight:
                del self._flights[key]


async def _landing(landed: Future[Outcome | None]) -> Outcome | None:
    """Await a future of another thread. Cancelling the wait leaves the future alone."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def land() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def wake(_: object) -> None:
        with suppress(RuntimeError):  # the follower's loop has closed: nobody waits any more
            loop.call_soon_threadsafe(land)

    landed.add_done_callback(wake)
    await waiter
    return landed.result()
