"""The ASGI application: chat completions through the engine, everything else handed on."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from inspect import isawaitable
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route

from stepcache._errors import ConfigurationError, UsageError
from stepcache.engine import StepCacheEngine
from stepcache.proxy._asgi import Body, Gone, Receive, Responder, Scope, Send, raw_path, while_there
from stepcache.proxy._backend import ClientCall
from stepcache.proxy._chat import Chat, Fault
from stepcache.proxy._headers import (
    credentials_of,
    forwarded,
    identity_of,
    value_of,
    wishes_of,
)
from stepcache.proxy._passing import hand_on
from stepcache.proxy._requests import ChatBody, Unreadable, read_body
from stepcache.proxy._tally import Tally
from stepcache.proxy._upstream import Upstream

__all__ = ["ProxySettings", "create_app"]

_log = logging.getLogger("stepcache.proxy")
_CHAT = b"/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """What a proxy is told beside its upstream and its engine."""

    share_keys: bool = False
    """Let clients with different credentials share entries. Whoever reaches the proxy is then
    served what is stored, without the upstream having been shown a key."""
    ignored_headers: tuple[str, ...] = ()
    """Request fields that change no answer, beside the well-known ones."""
    prefill: bool = False
    """Whether the upstream goes on from a closing assistant message (llama.cpp does)."""
    constrain: bool = False
    """Whether the upstream takes ``response_format`` with a JSON Schema for a missing part; a
    client that uses one itself has said so."""
    count_streams: bool = False
    """Ask for the token counts of streams whose client does not; without them nobody knows what a
    repeat of such a stream saves. The counts are not shown to the client."""
    timeout: float | None = None
    """Seconds without a byte after which the upstream is given up; None waits for it as long as
    the client does."""
    max_body: int = 4 << 20
    """Bytes; longer requests are handed on without being looked at."""

    def __post_init__(self) -> None:
        if not self.max_body > 0:
            raise ConfigurationError(f"max_body is {self.max_body!r}: use bytes above 0")


def create_app(
    upstream: str,
    *,
    engine: StepCacheEngine | None = None,
    settings: ProxySettings | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """An OpenAI-compatible proxy, as an application for any ASGI server.

    ``POST .../chat/completions`` goes through the engine; every other path and method is handed on
    byte for byte. ``/stepcache/health`` and ``/stepcache/stats`` are the proxy's own. The
    application closes the engine's store when it is shut down.

    Args:
        upstream: Address of the API, e.g. ``http://127.0.0.1:8000/v1``.
        engine: What answers; None takes a default one, in memory.
        settings: Everything else; None takes the safe defaults.
        routes: More paths of the proxy's own, such as one for metrics; they come first.

    Raises:
        ConfigurationError: The address or a setting cannot work.
    """
    settings = settings if settings is not None else ProxySettings()
    proxy = _Proxy(
        engine if engine is not None else StepCacheEngine(),
        Upstream(upstream, timeout=settings.timeout),
        settings,
    )
    return Starlette(
        routes=[
            *routes,
            Route("/stepcache/health", proxy.health),
            Route("/stepcache/stats", proxy.stats),
            Mount("/", app=proxy.serve),
        ],
        lifespan=proxy.lifespan,
    )


class _Proxy:
    def __init__(
        self, engine: StepCacheEngine, upstream: Upstream, settings: ProxySettings
    ) -> None:
        self.engine = engine
        self.upstream = upstream
        self.settings = settings
        self.tally = Tally()
        self.ignored = frozenset(
            name.lower().encode("latin-1", "replace") for name in settings.ignored_headers
        )
        self.chat = Chat(
            engine=engine,
            upstream=upstream,
            tally=self.tally,
            prefill=settings.prefill,
            constrain=settings.constrain,
            count_streams=settings.count_streams,
        )
        self.started = time.monotonic()

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await self.upstream.close()
        closing: Any = self.engine.store.close()
        if isawaitable(closing):
            await closing

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        responder, body = Responder(send), Body(receive)
        self.tally.in_flight += 1
        try:
            call = await self._read(scope, body)
            await while_there(body, self._answer(scope, body, call, responder))
        except Gone:
            pass
        finally:
            self.tally.in_flight -= 1

    async def _answer(
        self, scope: Scope, body: Body, call: ClientCall | None, responder: Responder
    ) -> None:
        if call is not None:
            try:
                await self._through_cache(scope, call, responder)
                return
            except Fault:
                self.tally.faults += 1
        else:
            self.tally.passed_through += 1
        await hand_on(self.upstream, scope, body, responder, self.tally)

    async def _through_cache(self, scope: Scope, call: ClientCall, responder: Responder) -> None:
        try:
            wishes = wishes_of(scope["headers"])
        except UsageError as error:
            await responder.error(400, str(error), kind="invalid_request_error")
            return
        if wishes.only_if_cached:
            await self.chat.look_up(call, wishes.control, responder)
        else:
            await self.chat.answer(call, wishes.control, responder)

    async def _read(self, scope: Scope, body: Body) -> ClientCall | None:
        """The call, if it is one for the cache; None hands it on unread."""
        headers = forwarded(scope["headers"])
        path = raw_path(scope)
        kind = (value_of(headers, "content-type") or "").partition(";")[0].strip().lower()
        if scope["method"] != "POST" or not path.endswith(_CHAT) or kind != "application/json":
            return None
        if not await body.gather(self.settings.max_body):
            return None
        try:
            chat = self._understood(scope, headers, path, body.head)
        except Unreadable as error:
            _log.info("a request is handed on unread: %s", error)
            return None
        except Exception as error:  # noqa: BLE001 - ours, and no reason to fail anybody
            _log.warning("a request could not be read (%s)", type(error).__name__)
            self.tally.faults += 1
            return None
        query: bytes = scope.get("query_string", b"")
        return ClientCall(
            method="POST", path=path, query=query, headers=headers, raw=body.head, body=chat
        )

    def _understood(
        self, scope: Scope, headers: list[tuple[bytes, bytes]], path: bytes, raw: bytes
    ) -> ChatBody:
        query: bytes = scope.get("query_string", b"")
        return read_body(
            raw,
            endpoint=self.upstream.address(path.removesuffix(_CHAT)),
            namespace=self._namespace(scope, headers),
            headers=identity_of(headers, self.ignored),
            query=query.decode("latin-1"),
        )

    def _namespace(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> str:
        """The wall around a client's entries: no name that a client gives leads over it."""
        tenant = "shared" if self.settings.share_keys else credentials_of(headers) or "open"
        named = (value_of(scope["headers"], "x-stepcache-namespace") or "").strip()
        return "/".join((tenant, quote(self.engine.namespace, safe=""), quote(named, safe="")))

    async def health(self, request: HttpRequest) -> JSONResponse:
        """Whether the proxy is up. A store that fails stops nobody, so it is only told."""
        store = "ok" if await self._entries() is not None else "failing"
        return JSONResponse({"status": "ok", "store": store, "version": version("stepcache")})

    async def stats(self, request: HttpRequest) -> JSONResponse:
        """Numbers, and no texts."""
        return JSONResponse(
            {
                **self.tally.as_dict(),
                "entries": await self._entries(),
                "uptime_seconds": round(time.monotonic() - self.started, 3),
            }
        )

    async def _entries(self) -> int | None:
        try:
            return await self.engine.acount()
        except Exception:  # noqa: BLE001 - any store's error
            return None
