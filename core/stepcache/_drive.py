"""Who fulfils what the flows wish for: a synchronous, an asynchronous and two streaming drivers.

A driver sends each effect's result back into the flow, or throws the port's exception into it at
the very line that wished, so that the flow's own ``try`` decides. All drivers run the same flow:
same text, same route, same trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import aclosing, closing, nullcontext
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, TypeAlias, TypeVar, cast

from stepcache._checked import answered, replied
from stepcache._effects import Effect, Embed, Flow, Generate, Get, Join, Put, Search, Settle
from stepcache._errors import PortError, UsageError
from stepcache._flights import Flights, Lead
from stepcache._leases import Leases
from stepcache._notices import hear, hear_no_more
from stepcache._patience import Patience, in_thread, is_cancelled
from stepcache._types import Entry, Outcome, Reply, Step
from stepcache._vectors import VectorMemo
from stepcache.protocols import Backend, Delta, Embedder, Store, StreamingBackend, Vector

__all__ = ["Piece", "Ports", "adrive", "astream", "drive", "refuse_awaitable", "stream"]

T = TypeVar("T")
Piece: TypeAlias = Delta | Step | Outcome
"""What a stream yields: pieces passed through, or verified steps; the outcome comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The objects one call may use."""

    store: Store
    embedder: Embedder
    backend: Backend | None
    flights: Flights
    max_wait: float
    """Seconds to wait for an equal request in flight."""
    embedding: Patience | None = None
    """How long the embedder is waited for; None for ever."""
    storing: Patience | None = None
    """How long the store is waited for; None for ever."""
    vectors: VectorMemo | None = None
    """What the embedder said before."""


def drive(flow: Flow[T], ports: Ports) -> T:
    """Run a flow to its end, synchronously; works inside a running event loop too."""
    lead, leases = Lead(ports.flights), Leases(ports.store, ports.max_wait)
    try:
        effect = next(flow)
        while True:
            result, error = _fulfil(effect, ports, lead, leases)
            effect = flow.send(result) if error is None else flow.throw(error)
    except StopIteration as stop:
        return cast("T", stop.value)
    except RuntimeError as error:
        # A model's own StopIteration, which Python turns into a RuntimeError inside generators.
        if isinstance(error.__cause__, StopIteration):
            raise error.__cause__ from None
        raise
    finally:
        if lead.idle and leases.held is None:
            flow.close()
        else:
            with leases, lead:
                flow.close()


async def adrive(flow: Flow[T], ports: Ports) -> T:
    """Run a flow to its end; ports may be synchronous or asynchronous."""
    lead, leases = Lead(ports.flights), Leases(ports.store, ports.max_wait)
    try:
        effect = next(flow)
        while True:
            effect = _feed(flow, await _afulfil(effect, ports, lead, leases))
    except StopIteration as stop:
        return cast("T", stop.value)
    finally:
        if lead.idle and leases.held is None:
            flow.close()
        else:
            async with leases:
                with lead:
                    flow.close()


def stream(flow: Flow[Outcome], ports: Ports) -> Generator[Piece, None, None]:
    """Run a flow and yield its answer in pieces; closing it early keeps nothing."""
    lead, leases = Lead(ports.flights), Leases(ports.store, ports.max_wait)
    live, shown = False, 0
    try:
        effect = next(flow)
        while True:
            backend = _streaming(effect, ports)
            if backend is None or not isinstance(effect, Generate):
                effect = _feed(flow, _fulfil(effect, ports, lead, leases))
                continue
            live = effect.watch is None
            reply: Reply | None = None
            seen = _Seen(effect.watch)
            if more := seen.begin():
                yield Step(index=0, text=more)
                shown += len(more)
            try:
                with closing(_as_sync(backend.stream(effect.call))) as items:
                    for item in items:
                        if isinstance(item, Reply):
                            reply = item
                        elif live:
                            yield item
                        elif more := seen.take(item):
                            yield Step(index=0, text=more)
                            shown += len(more)
            except Exception as error:  # noqa: BLE001 - the flow decides about any of them
                effect = flow.throw(error)
            except asyncio.CancelledError as error:
                effect = flow.throw(_port_cancelled(effect, error))
            else:
                effect = flow.send(reply or _broken())
    except StopIteration as stop:
        outcome: Outcome = stop.value
    finally:
        with leases, lead:
            flow.close()
    if not live:
        yield from _beyond(outcome.steps, shown)
    yield outcome


async def astream(flow: Flow[Outcome], ports: Ports) -> AsyncIterator[Piece]:
    """As :func:`stream`, asynchronously."""
    lead, leases = Lead(ports.flights), Leases(ports.store, ports.max_wait)
    live, shown = False, 0
    try:
        effect = next(flow)
        while True:
            backend = _streaming(effect, ports)
            if backend is None or not isinstance(effect, Generate):
                effect = _feed(flow, await _afulfil(effect, ports, lead, leases))
                continue
            live = effect.watch is None
            reply: Reply | None = None
            seen = _Seen(effect.watch)
            if more := seen.begin():
                yield Step(index=0, text=more)
                shown += len(more)
            try:
                async with aclosing(_as_async(backend.stream(effect.call))) as items:
                    async for item in items:
                        if isinstance(item, Reply):
                            reply = item
                        elif live:
                            yield item
                        elif more := seen.take(item):
                            yield Step(index=0, text=more)
                            shown += len(more)
            except Exception as error:  # noqa: BLE001 - the flow decides about any of them
                effect = flow.throw(error)
            except asyncio.CancelledError as error:
                effect = flow.throw(_port_cancelled(effect, error))
            else:
                effect = flow.send(reply or _broken())
    except StopIteration as stop:
        outcome: Outcome = stop.value
    finally:
        async with leases:
            with lead:
                flow.close()
    if not live:
        for step in _beyond(outcome.steps, shown):
            yield step
    yield outcome


# --- one effect --------------------------------------------------------------------------------


def _feed(flow: Flow[Any], done: tuple[Any, Exception | None]) -> Effect:
    """Send a result into the flow, or throw the port's exception at the line that wished."""
    result, error = done
    return flow.send(result) if error is None else flow.throw(error)


def _fulfil(
    effect: Effect, ports: Ports, lead: Lead, leases: Leases
) -> tuple[Any, Exception | None]:
    try:
        if type(effect) is Join:
            outcome = lead.join(effect.key, ports.max_wait)
            if lead.leads(effect.key):
                leases.take(effect.key)
            return outcome, None
        if type(effect) is Embed and (vector := _remembered(effect, ports)) is not None:
            return vector, None
        patience = _patience(effect, ports)
        token = hear(_notices(effect))
        try:
            if patience is None or _at_once(effect, ports):
                result = _call(effect, ports, lead, leases)
            else:
                result = patience.call(_call, effect, ports, lead, leases)
        finally:
            hear_no_more(token)
        if type(result) not in _THERE and isawaitable(result):
            refuse_awaitable(_port_name(effect), result)
        return _answered(effect, result, ports), None
    except Exception as error:  # noqa: BLE001 - the flow decides about any of them
        return None, error
    except asyncio.CancelledError as error:
        return None, _port_cancelled(effect, error)


async def _afulfil(
    effect: Effect, ports: Ports, lead: Lead, leases: Leases
) -> tuple[Any, Exception | None]:
    try:
        if type(effect) is Join:
            outcome = await lead.ajoin(effect.key, ports.max_wait)
            if lead.leads(effect.key):
                await leases.atake(effect.key)
            return outcome, None
        if type(effect) is Embed and (vector := _remembered(effect, ports)) is not None:
            return vector, None
        patience, blocks = _patience(effect, ports), _blocks(effect, ports)
        token = hear(_notices(effect))
        try:
            if patience is not None and not _at_once(effect, ports):
                call = (_call, effect, ports, lead, leases)
                result = await patience.acall(*call, threaded=blocks)
            elif blocks:
                result = await in_thread(_call, effect, ports, lead, leases)
            else:
                result = _call(effect, ports, lead, leases)
            if type(result) not in _THERE and isawaitable(result):
                result = await result
        finally:
            hear_no_more(token)
        return _answered(effect, result, ports), None
    except Exception as error:  # noqa: BLE001 - the flow decides about any of them
        return None, error
    except asyncio.CancelledError as error:
        return None, _port_cancelled(effect, error)


def _call(effect: Effect, ports: Ports, lead: Lead, leases: Leases) -> Any | Awaitable[Any]:
    match effect:
        case Get():
            return ports.store.get(effect.scope, effect.key)
        case Embed(views):
            return ports.embedder.embed(views)
        case Search(scope, vector, limit, _):
            return ports.store.search(scope, vector, ports.embedder.fingerprint, limit=limit)
        case Put(entry, vector, ttl) if leases.held is not None:
            key, token = leases.held
            return cast("Any", ports.store).put_leased(
                entry, vector, ports.embedder.fingerprint, key=key, token=token, ttl=ttl
            )
        case Put(entry, vector, ttl):
            return ports.store.put(entry, vector, ports.embedder.fingerprint, ttl=ttl)
        case Generate(call, _):
            if ports.backend is None:
                raise UsageError("the model is needed, but no backend was given to this call")
            return ports.backend.generate(call)
        case Settle(key, outcome):
            lead.settle(key, outcome)
            return None
        case Join():
            raise AssertionError("joining is the driver's own doing")


def _remembered(embed: Embed, ports: Ports) -> Vector | None:
    if ports.vectors is None:
        return None
    return ports.vectors.get(ports.embedder.fingerprint, embed.views)


def _answered(effect: Effect, result: Any, ports: Ports) -> Any:
    result = answered(effect, result, ports.embedder)
    if type(effect) is Embed and ports.vectors is not None:
        ports.vectors.put(ports.embedder.fingerprint, effect.views, result)
    return result


def _port_cancelled(effect: Effect, error: asyncio.CancelledError) -> Exception:
    """A cancellation that came out of a port, as the port's failure.

    Raises:
        asyncio.CancelledError: It is the caller's own, or the model's while the answer is asked
            for.
    """
    own = isinstance(effect, (Join, Settle)) or is_cancelled()
    if own or (isinstance(effect, Generate) and effect.call.purpose == "answer"):
        raise error
    return PortError(f"{_port_name(effect)} was cancelled")


def _port_name(effect: Effect) -> str:
    match effect:
        case Embed():
            return "the embedder"
        case Generate():
            return "the backend"
        case _:
            return "the store"


def _port(effect: Effect, ports: Ports) -> object:
    match effect:
        case Embed():
            return ports.embedder
        case Get() | Put() | Search():
            return ports.store
        case Generate():
            return ports.backend
        case _:
            return None


def _blocks(effect: Effect, ports: Ports) -> bool:
    """Whether a port says that it blocks, or, where it is not waited for for ever, may do so."""
    said = getattr(_port(effect, ports), "blocking", None)
    if said is None and _patience(effect, ports) is not None:
        method = "embed" if isinstance(effect, Embed) else type(effect).__name__.lower()
        return not iscoroutinefunction(getattr(_port(effect, ports), method, None))
    return bool(said)


def _at_once(effect: Effect, ports: Ports) -> bool:
    """Whether a port says that it never makes anybody wait."""
    return getattr(_port(effect, ports), "blocking", None) is False


def _patience(effect: Effect, ports: Ports) -> Patience | None:
    if type(effect) in _OF_THE_STORE:
        return ports.storing
    return ports.embedding if type(effect) is Embed else None


def _notices(effect: Effect) -> list[str] | None:
    return getattr(effect, "notices", None)


_OF_THE_STORE = frozenset((Get, Put, Search))
_THERE = frozenset((Entry, Reply, bool, tuple, type(None)))
"""Types of answers that nobody has to await."""


def refuse_awaitable(port: str, result: Any) -> Any:
    """A port's answer under a synchronous call, where nobody can await.

    Raises:
        UsageError: It is an awaitable.
    """
    if not isawaitable(result):
        return result
    if iscoroutine(result):
        result.close()
    raise UsageError(f"{port} is asynchronous: use aresolve, astream or alookup")


# --- streaming ---------------------------------------------------------------------------------


class _Seen:
    """The text of a watched stream so far, and who says what of it may be shown."""

    __slots__ = ("_text", "_watch")

    def __init__(self, watch: Callable[[str], str] | None) -> None:
        self._watch = watch
        self._text = ""

    def begin(self) -> str:
        """What may be shown before the model has said a word."""
        return self._watch("") if self._watch is not None else ""

    def take(self, delta: Delta) -> str:
        """What may be shown now; asked for only where a line may have ended."""
        ended = "\n" in self._text[-1:] or "\n" in delta.text
        self._text += delta.text
        return self._watch(self._text) if ended and self._watch is not None else ""


def _beyond(steps: Sequence[Step], shown: int) -> Iterator[Step]:
    """The steps of a text of which so many characters have been shown already."""
    for step in steps:
        if shown < len(step.text):
            yield replace(step, text=step.text[shown:]) if shown else step
        shown = max(0, shown - len(step.text))


def _streaming(effect: Effect, ports: Ports) -> StreamingBackend | None:
    if isinstance(effect, Generate) and (effect.call.live or effect.watch is not None):
        backend = ports.backend
        if backend is not None and hasattr(backend, "stream"):
            return cast("StreamingBackend", backend)
    return None


def _as_sync(
    items: Iterator[Delta | Reply] | AsyncIterator[Delta | Reply],
) -> Generator[Delta | Reply, None, None]:
    if not isinstance(items, Iterator):
        raise UsageError("the backend streams asynchronously: use astream")
    with closing(items) if isinstance(items, Generator) else nullcontext():
        for item in items:
            yield _piece(item)


async def _as_async(
    items: Iterator[Delta | Reply] | AsyncIterator[Delta | Reply],
) -> AsyncGenerator[Delta | Reply, None]:
    if isinstance(items, AsyncIterator):
        try:
            async for item in items:
                yield _piece(item)
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()
    else:
        for item in items:
            yield _piece(item)


def _piece(item: Any) -> Delta | Reply:
    return item if isinstance(item, Delta) else replied(item)


def _broken() -> Reply:
    """A stream that ended without its terminal event: what came is not an answer (law 5)."""
    return Reply(text="", finish_reason="interrupted")
