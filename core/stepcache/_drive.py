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
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutine
from typing import Any, TypeAlias, TypeVar, cast

from stepcache._effects import Effect, Embed, Flow, Generate, Get, Join, Put, Search, Settle
from stepcache._errors import EmbedderError, UsageError
from stepcache._flights import Flights, Lead
from stepcache._leases import Leases, kept
from stepcache._types import Outcome, Reply, Step
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


def drive(flow: Flow[T], ports: Ports) -> T:
    """Run a flow to its end, synchronously; works inside a running event loop too."""
    lead, leases = Lead(ports.flights), Leases(ports.store, ports.max_wait)
    try:
        effect = next(flow)
        while True:
            effect = _feed(flow, _fulfil(effect, ports, lead, leases))
    except StopIteration as stop:
        return cast("T", stop.value)
    except RuntimeError as error:
        # A model's own StopIteration, which Python turns into a RuntimeError inside generators.
        if isinstance(error.__cause__, StopIteration):
            raise error.__cause__ from None
        raise
    finally:
        flow.close()
        lead.release()
        leases.release()


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
        flow.close()
        lead.release()
        await leases.arelease()


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
            else:
                effect = flow.send(reply or _broken())
    except StopIteration as stop:
        outcome: Outcome = stop.value
    finally:
        flow.close()
        lead.release()
        leases.release()
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
            else:
                effect = flow.send(reply or _broken())
    except StopIteration as stop:
        outcome: Outcome = stop.value
    finally:
        flow.close()
        lead.release()
        await leases.arelease()
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
        if isinstance(effect, Join):
            outcome = lead.join(effect.key, ports.max_wait)
            if lead.leads(effect.key):
                leases.take(effect.key)
            return outcome, None
        result = refuse_awaitable(_port_name(effect), _call(effect, ports, lead, leases))
        return _finish(effect, result), None
    except Exception as error:  # noqa: BLE001 - the flow decides about any of them
        return None, error


async def _afulfil(
    effect: Effect, ports: Ports, lead: Lead, leases: Leases
) -> tuple[Any, Exception | None]:
    try:
        if isinstance(effect, Join):
            outcome = await lead.ajoin(effect.key, ports.max_wait)
            if lead.leads(effect.key):
                await leases.atake(effect.key)
            return outcome, None
        if _blocks(effect, ports):
            result = await asyncio.to_thread(_call, effect, ports, lead, leases)
        else:
            result = _call(effect, ports, lead, leases)
        if isawaitable(result):
            result = await result
        return _finish(effect, result), None
    except Exception as error:  # noqa: BLE001 - the flow decides about any of them
        return None, error


def _call(effect: Effect, ports: Ports, lead: Lead, leases: Leases) -> Any | Awaitable[Any]:
    match effect:
        case Get(scope, key):
            return ports.store.get(scope, key)
        case Embed(views):
            return ports.embedder.embed(views)
        case Search(scope, vector, limit):
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


def _finish(effect: Effect, result: Any) -> Any:
    if isinstance(effect, Put):
        return kept(result)
    if isinstance(effect, Embed):
        return _combined(result, len(effect.views))
    return result


def _combined(vectors: Any, views: int) -> Vector:
    """One unit vector for several views of a request: the direction of their sum."""
    import numpy as np

    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim != 2 or array.shape[0] != views or not np.isfinite(array).all():
        raise EmbedderError(
            f"the embedder returned shape {array.shape} for {views} texts: "
            "return a finite float32 array of shape (texts, dimension)"
        )
    total = array.sum(axis=0)
    length = float(np.linalg.norm(total))
    combined: Vector = total / length if length else total
    return combined


def _port_name(effect: Effect) -> str:
    match effect:
        case Embed():
            return "the embedder"
        case Generate():
            return "the backend"
        case _:
            return "the store"


def _blocks(effect: Effect, ports: Ports) -> bool:
    match effect:
        case Embed():
            port: object = ports.embedder
        case Get() | Put() | Search():
            port = ports.store
        case Generate():
            port = ports.backend
        case _:
            return False
    return bool(getattr(port, "blocking", False))


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
    yield from items


async def _as_async(
    items: Iterator[Delta | Reply] | AsyncIterator[Delta | Reply],
) -> AsyncGenerator[Delta | Reply, None]:
    if isinstance(items, AsyncIterator):
        try:
            async for item in items:
                yield item
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()
    else:
        for item in items:
            yield item


def _broken() -> Reply:
    """A stream that ended without its terminal event: what came is not an answer (law 5)."""
    return Reply(text="", finish_reason="interrupted")
