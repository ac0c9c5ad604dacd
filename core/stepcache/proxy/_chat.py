"""One chat completion: looked up, asked for, and told in the client's own way."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from stepcache._types import Control, Outcome, Step
from stepcache.engine import StepCacheEngine
from stepcache.protocols import Delta
from stepcache.proxy._answers import Chunks, Stored, completion_of
from stepcache.proxy._asgi import JSON, Responder
from stepcache.proxy._backend import CallBackend, ClientCall
from stepcache.proxy._errors import Answered, StreamBroken, UpstreamAnswered, UpstreamFailed
from stepcache.proxy._headers import told
from stepcache.proxy._passing import hand_over, report_failure
from stepcache.proxy._pieces import Piece, Pieces
from stepcache.proxy._sse import comment, event
from stepcache.proxy._tally import Tally
from stepcache.proxy._upstream import Upstream

__all__ = ["Chat", "Fault"]

_log = logging.getLogger("stepcache.proxy")

_EVENTS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class Fault(Exception):
    """Something of ours failed before the client was told anything: hand the request on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Answers the chat completions of one proxy."""

    engine: StepCacheEngine
    upstream: Upstream
    tally: Tally
    prefill: bool = False
    constrain: bool = False
    count_streams: bool = False

    async def answer(self, call: ClientCall, control: Control, responder: Responder) -> None:
        """Answer one call, asking the upstream for what cannot be proven.

        Raises:
            Fault: Nothing has been sent yet, and the fault is not the upstream's.
        """
        way = self._streamed if call.body.streams else self._whole
        try:
            try:
                served = await way(call, control, responder)
                if not served:
                    # What is stored calls what is not offered, or cannot be read.
                    await way(call, replace(control, refresh=True), responder)
            except UpstreamAnswered as error:
                self.tally.upstream_errors += 1
                await hand_over(responder, error.answered)
            except UpstreamFailed as error:
                await report_failure(responder, error, self.tally)
        except Exception as error:
            if responder.started:
                raise
            _log.warning("the cache failed (%s); the request is handed on", type(error).__name__)
            raise Fault from error

    async def look_up(self, call: ClientCall, control: Control, responder: Responder) -> None:
        """Answer one call from the cache alone; without an answer there 504, as RFC 9111 says.

        Raises:
            Fault: As :meth:`answer`.
        """
        try:
            outcome = await self.engine.alookup(call.body.request, control=control)
            stored = Stored(outcome, call.body.tools)
        except Exception as error:
            raise Fault from error
        if not outcome.served or not stored.servable:
            message = "no stored answer satisfies this request, and no model may be asked"
            await responder.error(504, message, kind="cache_miss", code="not_cached")
            return
        self.tally.note(outcome)
        if call.body.streams:
            await self._tell_stream(call, stored, responder)
        else:
            await self._tell_whole(call, stored, responder)

    # --- in one piece ----------------------------------------------------------------------------

    async def _whole(self, call: ClientCall, control: Control, responder: Responder) -> bool:
        backend = self._backend(call)
        outcome = await self.engine.aresolve(call.body.request, backend=backend, control=control)
        stored = Stored(outcome, call.body.tools)
        own = _own_answer(outcome, backend)
        if own is None and backend.own is None and not stored.servable:
            return False
        self.tally.note(outcome)
        if own is not None:
            await hand_over(responder, own, told(outcome))
        else:
            await self._tell_whole(call, stored, responder)
        return True

    async def _tell_whole(self, call: ClientCall, stored: Stored, responder: Responder) -> None:
        headers = [JSON, *stored.headers, *told(stored.outcome)]
        answer = Answered(200, headers, _json(completion_of(stored, call.body)))
        await hand_over(responder, answer)

    # --- as a stream -----------------------------------------------------------------------------

    async def _streamed(self, call: ClientCall, control: Control, responder: Responder) -> bool:
        backend = self._backend(call)
        stream = self.engine.astream(call.body.request, backend=backend, control=control)
        async with Pieces(stream, backend.asked) as pieces:
            try:
                first = await pieces.first()
            except StreamBroken as error:
                assert backend.answered is not None
                self.tally.upstream_errors += 1
                events = Answered(200, backend.answered.headers, b"".join(error.events))
                await hand_over(responder, events)
                return True
            if not first:
                raise RuntimeError("the engine ended without an outcome")
            if isinstance(first[0], Delta):
                await self._pass_on(first, pieces, backend, responder)
            elif isinstance(first[-1], Outcome):
                stored = Stored(first[-1], call.body.tools)
                if backend.own is None and not stored.servable:
                    return False
                self.tally.note(first[-1])
                await self._tell_stream(call, stored, responder)
            else:
                await self._tell_steps(first, pieces, call, responder)
        return True

    async def _tell_stream(self, call: ClientCall, stored: Stored, responder: Responder) -> None:
        """An answer that is there already."""
        outcome = stored.outcome
        chunks = Chunks(call.body, outcome.model)
        await responder.start(200, [*_EVENTS, *stored.headers, *told(outcome)])
        events = chunks.rest(stored, [step.text for step in outcome.steps])
        await responder.more(b"".join(events) + _said(outcome), last=True)

    async def _tell_steps(
        self, first: Iterable[Piece], pieces: Pieces, call: ClientCall, responder: Responder
    ) -> None:
        """Verified steps, as the engine lets them go."""
        chunks = Chunks(call.body)
        await responder.start(200, _EVENTS)
        try:
            for piece in first:
                await self._tell_piece(piece, chunks, call, responder)
            async for piece in pieces:
                await self._tell_piece(piece, chunks, call, responder)
        except UpstreamFailed as error:
            await self._break_off(responder, error)
        except UpstreamAnswered:
            await self._break_off(responder, UpstreamFailed("the upstream refused to go on"))

    async def _tell_piece(
        self, piece: Piece, chunks: Chunks, call: ClientCall, responder: Responder
    ) -> None:
        if isinstance(piece, Outcome):
            self.tally.note(piece)
            events = chunks.rest(Stored(piece, call.body.tools))
            await responder.more(b"".join(events) + _said(piece), last=True)
        elif isinstance(piece, Step | Delta):
            await responder.more(b"".join(chunks.text(piece.text)))

    async def _pass_on(
        self, first: Iterable[Piece], pieces: Pieces, backend: CallBackend, responder: Responder
    ) -> None:
        """The upstream's own events, untouched; what became of them is said after the last."""
        assert backend.answered is not None
        await responder.start(backend.answered.status, backend.answered.headers)
        try:
            for piece in first:
                await self._pass_piece(piece, responder)
            async for piece in pieces:
                await self._pass_piece(piece, responder)
        except UpstreamFailed as error:
            await self._break_off(responder, error)
        except Exception as error:
            if backend.own is None:
                raise
            # The client has the whole answer; that it could not be kept is none of its business.
            self.tally.faults += 1
            _log.warning("an answer was not kept (%s)", type(error).__name__)
            await responder.more(b"", last=True)
        else:
            if backend.own is None:
                self.tally.upstream_errors += 1

    async def _pass_piece(self, piece: Piece, responder: Responder) -> None:
        if isinstance(piece, Outcome):
            self.tally.note(piece)
            await responder.more(_said(piece), last=True)
        elif isinstance(piece, Delta):
            payload = piece.payload
            await responder.more(payload if isinstance(payload, bytes) else b"")

    async def _break_off(self, responder: Responder, error: UpstreamFailed) -> None:
        """Say why, where it can be read, and leave the response unfinished: a part must not pass
        for the whole."""
        self.tally.upstream_errors += 1
        if isinstance(error, StreamBroken) and error.events:
            await responder.more(error.events[-1])
            return
        said = {"message": str(error), "type": "upstream_error", "param": None, "code": None}
        await responder.more(event({"error": said}))

    def _backend(self, call: ClientCall) -> CallBackend:
        return CallBackend(
            self.upstream,
            call,
            prefill=self.prefill,
            constrain=self.constrain,
            count_streams=self.count_streams,
        )


def _own_answer(outcome: Outcome, backend: CallBackend) -> Answered | None:
    """The upstream's own response, where its answer is what is served."""
    if backend.own is None or outcome.route not in ("miss", "skip", "bypass"):
        return None
    return backend.answered if outcome.text == backend.own.text else None


def _said(outcome: Outcome) -> bytes:
    """The route and its cost as a comment: a stream's head is out before they are known."""
    pairs = [
        f"{name.decode('ascii').removeprefix('X-StepCache-').lower()}={value.decode('ascii')}"
        for name, value in told(outcome)
    ]
    return comment(f"stepcache {' '.join(pairs)}")


def _json(value: object) -> bytes:
    return json.dumps(value).encode("ascii")
