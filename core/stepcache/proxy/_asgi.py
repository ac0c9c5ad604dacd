"""Small tools for ASGI: reading bodies, noticing who has gone, and sending. No framework."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping, Sequence
from typing import Any, TypeAlias

from stepcache.proxy._errors import error_body
from stepcache.proxy._headers import RawHeaders

__all__ = [
    "JSON",
    "Body",
    "Gone",
    "Receive",
    "Responder",
    "Scope",
    "Send",
    "raw_path",
    "while_there",
]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = (b"content-type", b"application/json")


class Gone(Exception):
    """The client has hung up while its request was being read."""


def raw_path(scope: Scope) -> bytes:
    """The path as the client wrote it."""
    raw: bytes | None = scope.get("raw_path")
    return raw if raw is not None else scope["path"].encode("utf-8")


class Body:
    """A request's body, as far as it has been read and as it comes.

    Attributes:
        head: What :meth:`gather` has read.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._more = True
        self.head = b""
        self.complete = asyncio.Event()
        """Set once all of the body has been read."""

    async def gather(self, limit: int) -> bool:
        """Read into ``head`` until the end, or until there are more than ``limit`` bytes.

        Returns:
            Whether that was the whole body.

        Raises:
            Gone: The client has hung up.
        """
        chunks, size = [], 0
        while self._more and size <= limit:
            chunk = await self._next()
            chunks.append(chunk)
            size += len(chunk)
        self.head = b"".join(chunks)
        return not self._more and size <= limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.head:
            yield self.head
        while self._more:
            chunk = await self._next()
            if chunk:
                yield chunk

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Gone
        self._more = bool(message.get("more_body"))
        if not self._more:
            self.complete.set()
        chunk: bytes = message.get("body", b"")
        return chunk

    async def hung_up(self) -> None:
        """Return once the client has gone; it cannot be told while its request is being read."""
        await self.complete.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def while_there(body: Body, work: Coroutine[Any, Any, None]) -> None:
    """Do some work for a client, and stop when it hangs up.

    Raises:
        Exception: What the work raises.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(body.hung_up())
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.wait((task, gone))
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


class Responder:
    """Sends one response.

    Attributes:
        started: Whether its head is out, so that no other can be sent.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def whole(self, status: int, headers: RawHeaders, body: bytes) -> None:
        """A response in one piece."""
        if not any(name.lower() == b"content-length" for name, _ in headers):
            headers = [*headers, (b"content-length", str(len(body)).encode("ascii"))]
        await self.start(status, headers)
        await self.more(body, last=True)

    async def error(self, status: int, message: str, **shape: str | None) -> None:
        """An error of ours."""
        kind = shape.pop("kind", None) or "upstream_error"
        await self.whole(status, [JSON], error_body(message, kind=kind, **shape))

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """The head."""
        self.started = True
        lowered = [(name.lower(), value) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": lowered})

    async def more(self, body: bytes, *, last: bool = False) -> None:
        """A piece of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": not last})
