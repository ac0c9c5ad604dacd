"""The façade: the one module that picks defaults and joins flows, drivers and ports."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from inspect import isawaitable
from typing import Any, TypeAlias, TypeVar, cast

from stepcache import _flow
from stepcache._drive import Piece, Ports, adrive, astream, drive, refuse_awaitable, stream
from stepcache._errors import ConfigurationError, UsageError
from stepcache._flights import Flights
from stepcache._reports import REPORTS, has_namespace, report_of
from stepcache._types import Control, Outcome, Policy, Reply, Request
from stepcache.protocols import (
    Backend,
    BrowsableStore,
    Embedder,
    Listener,
    Maybe,
    Store,
    Task,
    Verifier,
)

__all__ = ["StepCacheEngine", "default_tasks"]

T = TypeVar("T")

_NO_WISHES = Control()
"""Of a call that says nothing; making one checks every field."""
_Upkeep: TypeAlias = Generator[Any, Any, T]
"""Upkeep as a generator that yields what the store answers and is sent the answer itself."""


def default_tasks() -> tuple[Task, ...]:
    """JSON, linear equations, and text for the rest; the first that accepts a request takes it."""
    from stepcache.tasks.json_answer import JsonAnswerTask
    from stepcache.tasks.linear_equation import LinearEquationTask
    from stepcache.tasks.text import TextTask

    return (JsonAnswerTask(), LinearEquationTask(), TextTask())


class StepCacheEngine:
    """Keeps answers as steps and serves what can be proven of them; framework-neutral.

    Args:
        store: Where entries live: None (memory), a path or ``sqlite:///`` URL, or any ``Store``.
        embedder: What finds similar requests; None takes the built-in lexical one, which needs no
            download.
        namespace: The wall around this engine's entries; requests may name their own.
        tasks: Families of answers, first that accepts wins; None takes :func:`default_tasks`.
        verifiers: Further checks on every step, plain functions included.
        policy: Every knob; None takes the safe defaults.
        ttl: Seconds entries may be served, shorthand for ``Policy(ttl=...)``.
        backend: The model for calls that bring none of their own.
        listeners: Called with ``(request, outcome, seconds)`` after each answer.

    Raises:
        ConfigurationError: An argument cannot work; the message says which, why and the fix.
    """

    def __init__(
        self,
        *,
        store: str | os.PathLike[str] | Store | None = None,
        embedder: Embedder | None = None,
        namespace: str = "",
        tasks: Sequence[Task] | None = None,
        verifiers: Sequence[Verifier] = (),
        policy: Policy | None = None,
        ttl: float | None = None,
        backend: Backend | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        from stepcache.embedders import LexicalEmbedder
        from stepcache.stores import open_store

        policy = policy if policy is not None else Policy()
        if not isinstance(policy, Policy):
            raise ConfigurationError(f"policy is {policy!r}: pass a stepcache.Policy")
        if not isinstance(namespace, str):
            raise ConfigurationError(f"namespace is {namespace!r}: pass a string")
        embedder = embedder if embedder is not None else LexicalEmbedder()
        if not isinstance(embedder, Embedder):
            raise ConfigurationError(
                f"embedder is {embedder!r}: pass an object with fingerprint, dimension and embed()"
            )
        chosen = tuple(tasks) if tasks is not None else default_tasks()
        for task in chosen:
            if not isinstance(task, Task):
                raise ConfigurationError(
                    f"tasks holds {task!r}: pass objects with the methods of stepcache.Task"
                )
        self.policy = replace(policy, ttl=ttl) if ttl is not None else policy
        self.namespace = namespace
        self.store = open_store(store)
        self.embedder = embedder
        self.backend = backend
        self.listeners = tuple(listeners)
        self._setup = _flow.Setup(tasks=chosen, policy=self.policy, verifiers=tuple(verifiers))
        self._flights = Flights()
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self._setup.tasks

    # --- answering -----------------------------------------------------------------------------

    def resolve(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Outcome:
        """Answer a request, asking the model for what cannot be proven.

        Raises:
            UsageError: No backend, or an asynchronous port.
            AnswerRejected: Nothing passed the final check, and the policy asks to raise.
            Exception: Whatever the model raises, as it is.
        """
        request, control = self._taken(request, control)
        started = time.perf_counter()
        flow = _flow.resolve(request, self._setup, control)
        return self._told(request, drive(flow, self._ports(backend)), started)

    async def aresolve(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Outcome:
        """As :meth:`resolve`; ports may be asynchronous."""
        request, control = self._taken(request, control)
        started = time.perf_counter()
        flow = _flow.resolve(request, self._setup, control)
        return self._told(request, await adrive(flow, self._ports(backend)), started)

    def stream(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Iterator[Piece]:
        """Answer in pieces: verified steps, or the model's own pieces where nothing is to be
        verified; the :class:`~stepcache.Outcome` comes last. Closing early keeps nothing."""
        request, control = self._taken(request, control)
        started = time.perf_counter()
        flow = _flow.resolve(request, self._setup, control, streaming=True)
        pieces = stream(flow, self._ports(backend))
        try:
            for piece in pieces:
                if isinstance(piece, Outcome):
                    self._told(request, piece, started)
                yield piece
        finally:
            pieces.close()

    async def astream(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> AsyncIterator[Piece]:
        """As :meth:`stream`; ports may be asynchronous."""
        request, control = self._taken(request, control)
        started = time.perf_counter()
        flow = _flow.resolve(request, self._setup, control, streaming=True)
        pieces = astream(flow, self._ports(backend))
        try:
            async for piece in pieces:
                if isinstance(piece, Outcome):
                    self._told(request, piece, started)
                yield piece
        finally:
            await cast("Any", pieces).aclose()

    def resolve_many(
        self,
        requests: Sequence[Request],
        *,
        backend: Backend | None = None,
        control: Control | None = None,
        max_concurrency: int = 8,
    ) -> list[Outcome]:
        """Answer several requests at once, in their order; equal ones share one model call.

        Args:
            max_concurrency: Requests under way at a time; 1 answers one after another.

        Raises:
            Exception: The first error in the order of the requests, after all have ended.
        """
        if max_concurrency < 1:
            raise UsageError(f"max_concurrency is {max_concurrency}: use at least 1")
        if max_concurrency == 1 or len(requests) < 2:
            return [self.resolve(r, backend=backend, control=control) for r in requests]
        with ThreadPoolExecutor(min(max_concurrency, len(requests))) as pool:
            futures = [
                pool.submit(copy_context().run, self._resolve_one, request, backend, control)
                for request in requests
            ]
        return [future.result() for future in futures]

    def _resolve_one(
        self, request: Request, backend: Backend | None, control: Control | None
    ) -> Outcome:
        return self.resolve(request, backend=backend, control=control)

    # --- for hosts that ask the model themselves ----------------------------------------------

    def lookup(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Outcome:
        """Answer from the cache only; with a backend, a missing part may be asked for.

        ``outcome.served`` is False when the caller has to ask the model for the whole answer.
        """
        request, control = self._taken(request, control)
        started = time.perf_counter()
        ports = self._ports(backend)
        may_patch = ports.backend is not None
        flow = _flow.lookup(request, self._setup, control, may_patch=may_patch)
        return self._told(request, drive(flow, ports), started)

    async def alookup(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Outcome:
        """As :meth:`lookup`; ports may be asynchronous."""
        request, control = self._taken(request, control)
        started = time.perf_counter()
        ports = self._ports(backend)
        may_patch = ports.backend is not None
        flow = _flow.lookup(request, self._setup, control, may_patch=may_patch)
        return self._told(request, await adrive(flow, ports), started)

    def admit(
        self, request: Request, reply: Reply, *, control: Control | None = None
    ) -> str | None:
        """Keep an answer made elsewhere, if it may be kept; returns the entry's id or None."""
        request, control = self._taken(request, control)
        flow = _flow.admit(request, reply, self._setup, control)
        return drive(flow, self._ports(None))

    async def aadmit(
        self, request: Request, reply: Reply, *, control: Control | None = None
    ) -> str | None:
        """As :meth:`admit`; ports may be asynchronous."""
        request, control = self._taken(request, control)
        flow = _flow.admit(request, reply, self._setup, control)
        return await adrive(flow, self._ports(None))

    # --- upkeep --------------------------------------------------------------------------------

    def forget(
        self,
        entry_id: str | None = None,
        *,
        tag: str | None = None,
        namespace: str | None = None,
    ) -> int:
        """Remove entries; returns how many went. Store errors are raised.

        Args:
            entry_id: The entry of an answer, as its outcome names it.
            tag: All entries that carry this tag.
            namespace: All entries kept under this namespace, "" being the default one. With a tag,
                those that carry both.

        Raises:
            UsageError: Nothing is named, or the store cannot list its entries.
        """
        return _now_all(self._forgetting(entry_id, tag, namespace))

    async def aforget(
        self,
        entry_id: str | None = None,
        *,
        tag: str | None = None,
        namespace: str | None = None,
    ) -> int:
        """As :meth:`forget`; the store may be asynchronous."""
        return await _await_all(self._forgetting(entry_id, tag, namespace))

    def report_bad(self, entry_id: str) -> bool:
        """Remove an entry whose answer was bad, and keep that answer from being admitted again.

        The report is about one answer to one demand: the same text for a re-worded request goes
        too, and is not admitted; another answer to the same request is welcome. It is kept in the
        store, where :meth:`clear` removes it with everything else.

        Args:
            entry_id: The entry of an answer, as its outcome names it.

        Returns:
            False when there is no such entry; nothing is remembered then.

        Raises:
            UsageError: The store cannot find entries by id.
        """
        return _now_all(self._reporting(entry_id))

    async def areport_bad(self, entry_id: str) -> bool:
        """As :meth:`report_bad`; the store may be asynchronous."""
        return await _await_all(self._reporting(entry_id))

    def clear(self) -> int:
        """Remove every entry of the store; returns how many. Store errors are raised."""
        return _now_all(self._clearing())

    async def aclear(self) -> int:
        """As :meth:`clear`; the store may be asynchronous."""
        return await _await_all(self._clearing())

    def count(self) -> int:
        """Live entries in the store."""
        return _now_all(self._counting())

    async def acount(self) -> int:
        """As :meth:`count`; the store may be asynchronous."""
        return await _await_all(self._counting())

    def close(self) -> None:
        """Let go of the store's files and connections."""
        _now(self.store.close())

    @property
    def routes(self) -> dict[str, int]:
        """How many requests went each route so far."""
        with self._lock:
            return dict(self._counts)

    # --- inside --------------------------------------------------------------------------------

    def _forgetting(
        self, entry_id: str | None, tag: str | None, namespace: str | None
    ) -> _Upkeep[int]:
        if entry_id is not None:
            if tag is not None or namespace is not None:
                raise UsageError("name an entry, or a tag and a namespace, not both")
            return int((yield self.store.remove(entry_id)))
        if tag is None and namespace is None:
            raise UsageError("name an entry, a tag or a namespace; clear() removes everything")
        gone = [
            entry.id
            for entry in (yield _browsable(self.store).entries())
            if entry.scope != REPORTS
            and (tag is None or tag in entry.tags)
            and (namespace is None or has_namespace(entry, namespace))
        ]
        removed = 0
        for each in gone:
            removed += bool((yield self.store.remove(each)))
        return removed

    def _reporting(self, entry_id: str) -> _Upkeep[bool]:
        entry = yield _browsable(self.store).find(entry_id)
        if entry is None:
            return False
        # First the report: whatever comes between, the answer does not come back.
        yield self.store.put(report_of(entry), None, self.embedder.fingerprint)
        yield self.store.remove(entry_id)
        while entry.canonical_key is not None:
            twin = yield self.store.get(entry.scope, entry.canonical_key)
            if twin is None or twin.text != entry.text or not (yield self.store.remove(twin.id)):
                break
        return True

    def _clearing(self) -> _Upkeep[int]:
        reports = int((yield self.store.count(REPORTS)))
        return int((yield self.store.clear())) - reports

    def _counting(self) -> _Upkeep[int]:
        return int((yield self.store.count())) - int((yield self.store.count(REPORTS)))

    def _taken(self, request: Request, control: Control | None) -> tuple[Request, Control]:
        if not isinstance(request, Request):
            raise UsageError(f"got {type(request).__name__}: pass a stepcache.Request")
        control = control if control is not None else _NO_WISHES
        namespace = control.namespace
        if namespace is None:
            namespace = request.namespace or self.namespace
        if namespace != request.namespace:
            request = replace(request, namespace=namespace)
        return request, control

    def _ports(self, backend: Backend | None) -> Ports:
        return Ports(
            store=self.store,
            embedder=self.embedder,
            backend=backend if backend is not None else self.backend,
            flights=self._flights,
            max_wait=self.policy.max_wait,
        )

    def _told(self, request: Request, outcome: Outcome, started: float) -> Outcome:
        with self._lock:
            self._counts[outcome.route] += 1
        if self.listeners:
            seconds = time.perf_counter() - started
            for listener in self.listeners:
                with suppress(Exception):  # a listener's fault is nobody else's
                    listener(request, outcome, seconds)
        return outcome


def _browsable(store: Store) -> BrowsableStore:
    if not isinstance(store, BrowsableStore):
        raise UsageError(
            f"{type(store).__name__} cannot browse its entries: "
            "give it the methods of stepcache.protocols.BrowsableStore"
        )
    return store


def _now_all(upkeep: _Upkeep[T]) -> T:
    """Run upkeep on a store that answers at once."""
    try:
        wish = next(upkeep)
        while True:
            wish = upkeep.send(_now(wish))
    except StopIteration as stop:
        return cast("T", stop.value)


async def _await_all(upkeep: _Upkeep[T]) -> T:
    """Run upkeep on a store of either kind."""
    try:
        wish = next(upkeep)
        while True:
            wish = upkeep.send(await wish if isawaitable(wish) else wish)
    except StopIteration as stop:
        return cast("T", stop.value)


def _now(result: Maybe[T]) -> T:
    return cast("T", refuse_awaitable("the store", result))
