"""The upstream as the engine's backend, for one call of one client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import httpx

from stepcache._types import ModelCall, Reply
from stepcache.backends._wire import StreamState, WireError, parse_completion
from stepcache.protocols import Delta
from stepcache.proxy._answers import NotACompletion, reply_of
from stepcache.proxy._assembly import Assembly
from stepcache.proxy._errors import Answered, StreamBroken, UpstreamAnswered, UpstreamFailed
from stepcache.proxy._headers import RawHeaders, end_to_end
from stepcache.proxy._requests import ChatBody, payload_of, with_counts
from stepcache.proxy._sse import EventCutter, RawEvent
from stepcache.proxy._upstream import Upstream, decoded

__all__ = ["CallBackend", "ClientCall"]

_INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall:
    """One request as it came, and what was read of it."""

    method: str
    path: bytes
    query: bytes
    headers: RawHeaders
    """As they go on to the upstream."""
    raw: bytes
    body: ChatBody


class CallBackend:
    """Sends the client's own bytes for its own question, and bodies of ours for parts of it.

    Args:
        prefill: Whether the upstream goes on from a closing assistant message.
        constrain: Whether it takes ``response_format`` with a schema, whoever asks.
        count_streams: Whether to ask for a stream's token counts where the client does not; the
            client is not shown them.

    Attributes:
        asked: Set once the upstream is asked for anything.
        answered: The response to the client's own question; without its body if it streams.
        own: What that response was read as; None until it is whole.
    """

    def __init__(
        self,
        upstream: Upstream,
        call: ClientCall,
        *,
        prefill: bool = False,
        constrain: bool = False,
        count_streams: bool = False,
    ) -> None:
        self._upstream = upstream
        self._call = call
        self._prefill = prefill
        self._constrain = constrain
        self._counting = count_streams and call.body.streams and not call.body.counts
        self.asked = asyncio.Event()
        self.answered: Answered | None = None
        self.own: Reply | None = None

    async def generate(self, call: ModelCall, /) -> Reply:
        """Ask once and wait for the whole answer.

        Raises:
            UpstreamAnswered: The response is no chat completion.
            UpstreamFailed: There is no response.
        """
        own = call.purpose == "answer" and not self._call.body.streams
        response = await self._send(call, stream=False)
        async with aclosing(response):
            answered = await self._upstream.whole(response)
        try:
            completion = _read(answered)
            if not own:
                return parse_completion(completion, prefix=self._prefix(call))
            reply = reply_of(completion, self._call.body.tools, answered.headers)
        except (NotACompletion, WireError) as error:
            raise UpstreamAnswered(answered) from error
        self.answered, self.own = answered, reply
        return reply

    async def stream(self, call: ModelCall, /) -> AsyncIterator[Delta | Reply]:
        """Ask once and yield the pieces as they come, then the whole reply.

        The payload of a piece of the client's own answer is the raw event.

        Raises:
            UpstreamAnswered: The response is no stream of a chat completion.
            UpstreamFailed: There is no response, or it breaks off.
        """
        own = call.purpose == "answer"
        response = await self._send(call, stream=True)
        async with aclosing(response):
            if not _is_stream(response):
                raise UpstreamAnswered(await self._upstream.whole(response))
            if own:
                # The body is decoded on its way.
                headers = end_to_end(response.headers.raw, _OF_THE_BODY)
                self.answered = Answered(response.status_code, headers)
            items = self._own(response, call.live) if own else self._part(response, call)
            async with aclosing(items):
                async for item in items:
                    yield item

    async def _own(
        self, response: httpx.Response, live: bool
    ) -> AsyncGenerator[Delta | Reply, None]:
        assembly, heard = Assembly(), []
        async for raw, data in self._events(response):
            text = assembly.feed(data) if data is not None else ""
            if not live:
                heard.append(raw)
                if assembly.error:
                    raise StreamBroken("the upstream reports an error in its stream", heard)
            if data is None and raw.strip() and not raw.lstrip().startswith(b":"):
                assembly.spoil()
            if not (self._counting and assembly.counted):
                yield Delta(text, raw)
        assert self.answered is not None
        try:
            whole = assembly.completion()
            reply = reply_of(whole, self._call.body.tools, self.answered.headers)
        except NotACompletion:
            # Whoever reads the raw events has them; there is nothing to judge or to keep.
            if not live:
                raise StreamBroken("the upstream's stream holds no answer", heard) from None
            return
        self.own = reply if assembly.whole else replace(reply, finish_reason=_INTERRUPTED)
        yield self.own

    async def _part(
        self, response: httpx.Response, call: ModelCall
    ) -> AsyncGenerator[Delta | Reply, None]:
        state = StreamState(self._prefix(call))
        try:
            async for _, data in self._events(response):
                text = state.feed(data) if data is not None else ""
                if text:
                    yield Delta(text)
            if rest := state.rest():
                yield Delta(rest)
            reply = state.reply()
        except WireError as error:
            raise UpstreamFailed(str(error)) from error
        yield reply

    async def _events(self, response: httpx.Response) -> AsyncIterator[RawEvent]:
        cutter = EventCutter()
        try:
            async for chunk in response.aiter_bytes():
                for item in cutter.feed(chunk):
                    yield item
        except httpx.TransportError as error:
            raise self._upstream.failed(error) from error
        except httpx.DecodingError as error:
            raise UpstreamFailed("the upstream's stream is not encoded as it says") from error
        for item in cutter.rest():
            yield item

    async def _send(self, call: ModelCall, *, stream: bool) -> httpx.Response:
        self.asked.set()
        headers = [*end_to_end(self._call.headers, _CHANGED), _PLAIN]
        if call.purpose == "answer" and stream == self._call.body.streams:
            content = self._call.raw
            if self._counting:
                content = with_counts(self._call.body)
        else:
            # Under the client's key of idempotence only the client's own body may stand.
            headers = end_to_end(headers, (b"idempotency-key",))
            content = payload_of(
                self._call.body,
                call,
                prefill=self._prefill,
                constrain=self._constrain,
                stream=stream,
            )
        return await self._upstream.send(
            self._call.method, self._call.path, self._call.query, headers, content
        )

    def _prefix(self, call: ModelCall) -> str | None:
        return call.prefix if self._prefill else None


_PLAIN = (b"accept-encoding", b"identity")
_CHANGED = (b"accept-encoding", b"content-length")
_OF_THE_BODY = (b"content-length", b"content-encoding")


def _is_stream(response: httpx.Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return response.is_success and kind.partition(";")[0].strip().lower() == "text/event-stream"


def _read(answered: Answered) -> Any:
    if not 200 <= answered.status < 300:
        raise NotACompletion(f"status {answered.status}")
    try:
        return json.loads(decoded(answered))
    except (ValueError, RecursionError, httpx.DecodingError) as error:
        raise NotACompletion("no JSON") from error
