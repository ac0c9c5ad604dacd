"""The façade: the one module that picks defaults and joins flows, drivers and ports."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias, TypeVar, cast, get_args

from stepcache import _batch, _flow, _inspection
from stepcache._drive import Piece, Ports, adrive, astream, drive, refuse_awaitable, stream
from stepcache._effects import Flow
from stepcache._errors import (
    ConfigurationError,
    EmbedderError,
    NamespaceRequired,
    PortError,
    StoreError,
    UsageError,
)
from stepcache._flights import Flights
from stepcache._forking import fork_safe_lock
from stepcache._inspection import Inspection
from stepcache._memo import apart
from stepcache._patience import Patience
from stepcache._reports import REPORTS, has_namespace, report_of
from stepcache._selection import Selection
from stepcache._telling import Telling
from stepcache._types import Control, Entry, Outcome, Policy, Reply, Request, Route
from stepcache._vectors import VectorMemo
from stepcache.protocols import (
    Backend,
    BrowsableStore,
    Embedder,
    Face,
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
        listeners: Called with ``(request, outcome, timing)`` after each answer; see
            :mod:`stepcache.telemetry` for ready ones.

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
        self._telling = Telling(listeners)
        self._setup = _flow.Setup(
            tasks=chosen,
            policy=self.policy,
            verifiers=_bounded(verifiers, self.policy),
            clock=time.monotonic,
        )
        self._flights = Flights()
        self._embedding = _waiting("the embedder", self.policy.max_embed_seconds, EmbedderError)
        self._storing = _waiting("the store", self.policy.max_store_seconds, StoreError)
        self._vectors = VectorMemo()
        self._own_ports: Ports | None = None
        self._counts: dict[str, int] = dict.fromkeys(get_args(Route), 0)
        self._lock = fork_safe_lock()

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self._setup.tasks

    @property
    def verifiers(self) -> tuple[Verifier, ...]:
        return self._setup.verifiers

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return self._telling.listeners

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
        flow = _flow.resolve(request, self._setup, control)
        return self._run("resolve", request, flow, self._ports(backend))

    async def aresolve(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Outcome:
        """As :meth:`resolve`; ports may be asynchronous."""
        request, control = self._taken(request, control)
        flow = _flow.resolve(request, self._setup, control)
        return await self._arun("aresolve", request, flow, self._ports(backend))

    def stream(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Iterator[Piece]:
        """Answer in pieces: verified steps, or the model's own pieces where nothing is to be
        verified; the :class:`~stepcache.Outcome` comes last. Closing early keeps nothing."""
        request, control = self._taken(request, control)
        flow = _flow.resolve(request, self._setup, control, streaming=True)
        watch = self._telling.watch("stream")
        pieces = stream(flow if watch is None else watch.around(flow), self._ports(backend))
        try:
            for piece in pieces:
                if isinstance(piece, Outcome):
                    self._count(piece)
                    if watch is not None:
                        self._telling.tell(request, piece, watch.timing())
                elif watch is not None:
                    watch.piece()
                yield piece
        except Exception as error:
            if watch is not None:
                self._telling.tell_failure(request, error, watch.timing())
            raise
        finally:
            pieces.close()

    async def astream(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> AsyncIterator[Piece]:
        """As :meth:`stream`; ports may be asynchronous."""
        request, control = self._taken(request, control)
        flow = _flow.resolve(request, self._setup, control, streaming=True)
        watch = self._telling.watch("astream")
        pieces = astream(flow if watch is None else watch.around(flow), self._ports(backend))
        try:
            async for piece in pieces:
                if isinstance(piece, Outcome):
                    self._count(piece)
                    if watch is not None:
                        await self._telling.atell(request, piece, watch.timing())
                elif watch is not None:
                    watch.piece()
                yield piece
        except Exception as error:
            if watch is not None:
                await self._telling.atell_failure(request, error, watch.timing())
            raise
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
        """Answer several requests at once, in their order.

        What they need embedded is embedded in one call. Those that ask the same, in these or other
        words, are answered one after another, so that the model is asked once.

        Args:
            max_concurrency: Requests under way at a time; 1 answers one after another.

        Raises:
            Exception: The first error in the order of the requests, after all have ended.
        """
        if _checked_concurrency(max_concurrency) == 1 or len(requests) < 2:
            return [self.resolve(r, backend=backend, control=control) for r in requests]
        taken = [self._taken(request, control) for request in requests]
        ports = self._ports(backend)
        ahead = [drive(_batch.look_ahead(r, self._setup, c), ports) for r, c in taken]
        ports = _batch.embedded(ahead, ports)
        batch = _batch.Batch(taken, ahead, self._setup)

        def answer(numbers: Sequence[int]) -> None:
            for number in numbers:
                with batch.outcome_of(number) as told:
                    flow = batch.flow(number)
                    told.append(self._run("resolve", taken[number][0], flow, ports))

        with ThreadPoolExecutor(min(max_concurrency, len(batch.groups))) as pool:
            futures = [pool.submit(copy_context().run, answer, group) for group in batch.groups]
        for future in futures:
            future.result()
        return batch.outcomes()

    async def aresolve_many(
        self,
        requests: Sequence[Request],
        *,
        backend: Backend | None = None,
        control: Control | None = None,
        max_concurrency: int = 8,
    ) -> list[Outcome]:
        """As :meth:`resolve_many`; ports may be asynchronous."""
        if _checked_concurrency(max_concurrency) == 1 or len(requests) < 2:
            return [await self.aresolve(r, backend=backend, control=control) for r in requests]
        taken = [self._taken(request, control) for request in requests]
        ports = self._ports(backend)
        ahead = [await adrive(_batch.look_ahead(r, self._setup, c), ports) for r, c in taken]
        ports = await _batch.aembedded(ahead, ports)
        batch = _batch.Batch(taken, ahead, self._setup)
        room = asyncio.Semaphore(max_concurrency)

        async def answer(numbers: Sequence[int]) -> None:
            async with room:
                for number in numbers:
                    with batch.outcome_of(number) as told:
                        flow = batch.flow(number)
                        told.append(await self._arun("aresolve", taken[number][0], flow, ports))

        await asyncio.gather(*(answer(group) for group in batch.groups))
        return batch.outcomes()

    # --- for hosts that ask the model themselves ----------------------------------------------

    def lookup(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Outcome:
        """Answer from the cache only; with a backend, a missing part may be asked for.

        ``outcome.served`` is False when the caller has to ask the model for the whole answer.
        """
        request, control = self._taken(request, control)
        ports = self._ports(backend)
        may_patch = ports.backend is not None
        flow = _flow.lookup(request, self._setup, control, may_patch=may_patch)
        return self._run("lookup", request, flow, ports)

    async def alookup(
        self, request: Request, *, backend: Backend | None = None, control: Control | None = None
    ) -> Outcome:
        """As :meth:`lookup`; ports may be asynchronous."""
        request, control = self._taken(request, control)
        ports = self._ports(backend)
        may_patch = ports.backend is not None
        flow = _flow.lookup(request, self._setup, control, may_patch=may_patch)
        return await self._arun("alookup", request, flow, ports)

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

    # --- looking -------------------------------------------------------------------------------

    def inspect(
        self,
        request: Request,
        *,
        control: Control | None = None,
        scope: str | None = None,
        without: str | None = None,
    ) -> Inspection:
        """What would be done with a request now, and why; nothing is asked, kept or counted.

        Args:
            scope: The scope of a stored entry, to take the request for being of that one's model,
                parameters, namespace and earlier turns; None finds the request's own.
            without: Id of an entry to take for absent, e.g. to see why a request missed whose
                answer has been kept since.
        """
        request, control = self._taken(request, control)
        flow = _inspection.inspect(request, self._setup, control, scope=scope, without=without)
        return drive(flow, self._ports(None))

    async def ainspect(
        self,
        request: Request,
        *,
        control: Control | None = None,
        scope: str | None = None,
        without: str | None = None,
    ) -> Inspection:
        """As :meth:`inspect`; ports may be asynchronous."""
        request, control = self._taken(request, control)
        flow = _inspection.inspect(request, self._setup, control, scope=scope, without=without)
        return await adrive(flow, self._ports(None))

    # --- upkeep --------------------------------------------------------------------------------

    def forget(
        self,
        entry_id: str | None = None,
        *,
        tag: str | None = None,
        namespace: str | None = None,
        older_than: float | None = None,
        where: Callable[[Entry], bool] | None = None,
    ) -> int:
        """Remove entries; returns how many went. Store errors are raised.

        Args:
            entry_id: The entry of an answer, as its outcome names it; with a namespace, only if it
                is one of that namespace's.
            tag: All entries that carry this tag.
            namespace: All entries kept under this namespace, "" being the default one. Where the
                policy requires a namespace, the engine's own stands in for none.
            older_than: All entries kept more than so many seconds ago.
            where: All entries this predicate takes. Of several that are named, all have to hold.

        Raises:
            UsageError: Nothing is named, or the store cannot list its entries.
            NamespaceRequired: The policy requires a namespace, and none is named.
        """
        chosen = Selection(tag=tag, namespace=namespace, older_than=older_than, where=where)
        return _now_all(self._forgetting(entry_id, chosen))

    async def aforget(
        self,
        entry_id: str | None = None,
        *,
        tag: str | None = None,
        namespace: str | None = None,
        older_than: float | None = None,
        where: Callable[[Entry], bool] | None = None,
    ) -> int:
        """As :meth:`forget`; the store may be asynchronous."""
        chosen = Selection(tag=tag, namespace=namespace, older_than=older_than, where=where)
        return await _await_all(self._forgetting(entry_id, chosen))

    def report_bad(self, entry_id: str, *, namespace: str | None = None) -> bool:
        """Remove an entry whose answer was bad, and keep that answer from being admitted again.

        The report is about one answer to one demand: the same text for a re-worded request goes
        too, and is not admitted; another answer to the same request is welcome. It is kept in the
        store, where :meth:`clear` removes it with everything else.

        Args:
            entry_id: The entry of an answer, as its outcome names it.
            namespace: Do so only if it is an entry of this namespace.

        Returns:
            False when there is no such entry; nothing is remembered then.

        Raises:
            UsageError: The store cannot find entries by id.
            NamespaceRequired: The policy requires a namespace, and none is named.
        """
        return _now_all(self._reporting(entry_id, namespace))

    async def areport_bad(self, entry_id: str, *, namespace: str | None = None) -> bool:
        """As :meth:`report_bad`; the store may be asynchronous."""
        return await _await_all(self._reporting(entry_id, namespace))

    def clear(self, namespace: str | None = None) -> int:
        """Remove every entry; returns how many. Store errors are raised.

        Args:
            namespace: Only what was kept under this namespace, reports included. Where the policy
                requires a namespace, the engine's own stands in for none.

        Raises:
            NamespaceRequired: The policy requires a namespace, and none is named.
        """
        return _now_all(self._clearing(namespace))

    async def aclear(self, namespace: str | None = None) -> int:
        """As :meth:`clear`; the store may be asynchronous."""
        return await _await_all(self._clearing(namespace))

    def count(self, namespace: str | None = None) -> int:
        """Live entries; with a namespace, or where the policy requires one, those of one alone."""
        return _now_all(self._counting(namespace))

    async def acount(self, namespace: str | None = None) -> int:
        """As :meth:`count`; the store may be asynchronous."""
        return await _await_all(self._counting(namespace))

    def close(self) -> None:
        """Let go of the store's files and connections."""
        _now(self.store.close())

    @property
    def routes(self) -> dict[str, int]:
        """How many requests went each route so far: those taken, in the order of `Route`."""
        with self._lock:
            return {route: count for route, count in self._counts.items() if count}

    # --- inside --------------------------------------------------------------------------------

    def _forgetting(self, entry_id: str | None, chosen: Selection) -> _Upkeep[int]:
        wall = self._wall(chosen.namespace)
        if entry_id is not None:
            if not replace(chosen, namespace=None).names_nothing:
                raise UsageError("name an entry, or what all that go have in common, not both")
            if wall is not None and not (yield from self._found(entry_id, wall)):
                return 0
            return int((yield self.store.remove(entry_id)))
        chosen = replace(chosen, namespace=wall) if not chosen.names_nothing else chosen
        if chosen.names_nothing:
            raise UsageError(
                "name an entry, a tag, a namespace, an age or a predicate; "
                "clear() removes everything"
            )
        now = time.time()
        entries = yield _browsable(self.store).entries()
        gone = [entry.id for entry in entries if chosen.takes(entry, now)]
        removed = 0
        for each in gone:
            removed += bool((yield self.store.remove(each)))
        return removed

    def _wall(self, namespace: str | None) -> str | None:
        """The namespace that upkeep has to stay within; None for all.

        Raises:
            NamespaceRequired: There has to be one.
        """
        if not self.policy.require_namespace:
            return namespace
        return self._required(self.namespace if namespace is None else namespace)

    def _required(self, namespace: str) -> str:
        if not namespace.strip():
            raise NamespaceRequired(
                "this call names no namespace, and the policy requires one "
                "(Policy.require_namespace): pass namespace= to the engine or face, to the "
                "request, or with the call's cache control"
            )
        return namespace

    def _found(self, entry_id: str, wall: str | None) -> _Upkeep[Entry | None]:
        """An entry by its id, if it is one of a namespace's."""
        entry: Entry | None = yield _browsable(self.store).find(entry_id)
        foreign = entry is not None and wall is not None and not has_namespace(entry, wall)
        return None if foreign else entry

    def _reporting(self, entry_id: str, namespace: str | None) -> _Upkeep[bool]:
        entry = yield from self._found(entry_id, self._wall(namespace))
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

    def _clearing(self, namespace: str | None) -> _Upkeep[int]:
        wall = self._wall(namespace)
        if wall is None:
            reports = int((yield self.store.count(REPORTS)))
            return int((yield self.store.clear())) - reports
        entries = yield _browsable(self.store).entries()
        removed = 0
        for entry in [entry for entry in entries if has_namespace(entry, wall)]:
            gone = bool((yield self.store.remove(entry.id)))
            removed += gone and entry.scope != REPORTS
        return removed

    def _counting(self, namespace: str | None) -> _Upkeep[int]:
        wall = self._wall(namespace)
        if wall is None:
            return int((yield self.store.count())) - int((yield self.store.count(REPORTS)))
        entries = yield _browsable(self.store).entries()
        return sum(entry.scope != REPORTS and has_namespace(entry, wall) for entry in entries)

    def _taken(self, request: Request, control: Control | None) -> tuple[Request, Control]:
        if not isinstance(request, Request):
            raise UsageError(f"got {type(request).__name__}: pass a stepcache.Request")
        control = control if control is not None else _NO_WISHES
        namespace = control.namespace
        if namespace is None:
            namespace = request.namespace or self.namespace
        if self.policy.require_namespace:
            if not control.bypass:
                self._required(namespace)
            apart(namespace)
        if namespace != request.namespace:
            request = replace(request, namespace=namespace)
        return request, control

    def _ports(self, backend: Backend | None) -> Ports:
        if backend is None:
            own = self._own_ports
            if (
                own is not None
                and own.backend is self.backend
                and own.store is self.store
                and own.embedder is self.embedder
            ):
                return own
        ports = Ports(
            store=self.store,
            embedder=self.embedder,
            backend=backend if backend is not None else self.backend,
            flights=self._flights,
            max_wait=self.policy.max_wait,
            embedding=self._embedding,
            storing=self._storing,
            vectors=self._vectors,
        )
        if backend is None:
            self._own_ports = ports
        return ports

    def _run(self, face: Face, request: Request, flow: Flow[Outcome], ports: Ports) -> Outcome:
        if self.policy.require_namespace:
            apart(request.namespace)
        watch = self._telling.watch(face)
        if watch is None:
            return self._count(drive(flow, ports))
        try:
            outcome = drive(watch.around(flow), ports)
        except Exception as error:
            self._telling.tell_failure(request, error, watch.timing())
            raise
        self._telling.tell(request, self._count(outcome), watch.timing())
        return outcome

    async def _arun(
        self, face: Face, request: Request, flow: Flow[Outcome], ports: Ports
    ) -> Outcome:
        if self.policy.require_namespace:
            apart(request.namespace)
        watch = self._telling.watch(face)
        if watch is None:
            return self._count(await adrive(flow, ports))
        try:
            outcome = await adrive(watch.around(flow), ports)
        except Exception as error:
            await self._telling.atell_failure(request, error, watch.timing())
            raise
        await self._telling.atell(request, self._count(outcome), watch.timing())
        return outcome

    def _count(self, outcome: Outcome) -> Outcome:
        with self._lock:
            self._counts[outcome.route] += 1
        return outcome


def _bounded(verifiers: Sequence[Verifier], policy: Policy) -> tuple[Verifier, ...]:
    """The verifiers, of which those that say that they block are not waited for without end."""
    seconds = policy.max_verify_seconds
    if seconds is None:
        return tuple(verifiers)
    return tuple(
        partial(Patience("the verifier", seconds, PortError).call, verifier)
        if getattr(verifier, "blocking", False)
        else verifier
        for verifier in verifiers
    )


def _checked_concurrency(value: int) -> int:
    if value < 1:
        raise UsageError(f"max_concurrency is {value}: use at least 1")
    return value


def _waiting(port: str, seconds: float | None, error: type[PortError]) -> Patience | None:
    return None if seconds is None else Patience(port, seconds, error)


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
