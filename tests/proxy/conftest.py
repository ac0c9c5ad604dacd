"""Proxies before real HTTP servers on loopback: a small model, and an upstream of any behaviour."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import openai
import pytest
import uvicorn

from stepcache import StepCacheEngine
from stepcache.proxy import ProxyServer, ProxySettings, create_app
from stepcache.testing.endpoint import ScriptedEndpoint
from stepcache.testing.obliging import obliging

PATIENCE = 120.0
"""Seconds without a byte; only notices what has got stuck."""


class http:  # noqa: N801 - it stands where the module of that name would
    """httpx's functions, with patience: a busy machine is no failure."""

    get = staticmethod(partial(httpx.get, timeout=PATIENCE))
    post = staticmethod(partial(httpx.post, timeout=PATIENCE))
    request = staticmethod(partial(httpx.request, timeout=PATIENCE))
    stream = staticmethod(partial(httpx.stream, timeout=PATIENCE))


FACTS = {"name": "Rome", "country": "Italy", "river": "Tiber"}


def small_model(request: dict[str, Any]) -> Any:
    """Solves two equations, knows a city, and otherwise does what it is asked."""
    text = str(request["messages"][-1]["content"])
    if "2x + 3 = 13" in text:
        return "2x + 3 = 13\n\n2x = 10\n\nx = 5"
    if "Rome" in text:
        return json.dumps({key: value for key, value in FACTS.items() if key in text})
    return obliging(request)


@dataclass
class Proxied:
    """A proxy, and the endpoint behind it."""

    url: str
    endpoint: ScriptedEndpoint
    engine: StepCacheEngine

    @property
    def root(self) -> str:
        """Address without the version."""
        return self.url.removesuffix("/v1")

    def client(self, **fields: Any) -> openai.OpenAI:
        """The official client."""
        return openai.OpenAI(**{"base_url": self.url, "api_key": "k", "max_retries": 0, **fields})


@pytest.fixture
def proxied() -> Iterator[Callable[..., Proxied]]:
    """Makes proxies before the small model, or before another script."""
    with ExitStack() as stack:

        def make(script: Any = small_model, engine: Any = None, **settings: Any) -> Proxied:
            endpoint = stack.enter_context(ScriptedEndpoint(script))
            engine = engine if engine is not None else StepCacheEngine()
            app = create_app(endpoint.url, engine=engine, settings=ProxySettings(**settings))
            server = stack.enter_context(ProxyServer(app))
            return Proxied(server.url, endpoint, engine)

        yield make


@dataclass
class Seen:
    """One request that reached the upstream."""

    method: str
    path: bytes
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Upstream:
    """An upstream that does what a test says, and remembers what it was asked."""

    def __init__(self, script: Callable[[Seen, Any, Any], Awaitable[None]]) -> None:
        self.seen: list[Seen] = []
        self.script = script
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                lifespan="off",
                interface="asgi3",
                log_level="critical",
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    @property
    def url(self) -> str:
        """Base URL, with its version."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        seen = Seen(
            scope["method"], scope["raw_path"], scope["query_string"], scope["headers"], body
        )
        self.seen.append(seen)
        await self.script(seen, receive, send)

    def __enter__(self) -> Upstream:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()


async def say(
    send: Any, status: int, headers: dict[str, str] | list[tuple[bytes, bytes]], *body: bytes
) -> None:
    """Send one response, in as many pieces."""
    if isinstance(headers, dict):
        headers = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for piece in body:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Upstream, StepCacheEngine, str]]:
    """An upstream, and the engine and the address of a proxy with the default settings before it:
    one for all tests of a file, for starting and ending servers takes longer than the tests do."""
    engine = StepCacheEngine()
    with (
        Upstream(say) as upstream,
        ProxyServer(create_app(upstream.url, engine=engine)) as server,
    ):
        yield upstream, engine, server.url


@pytest.fixture
def behind(
    pair: tuple[Upstream, StepCacheEngine, str],
) -> Iterator[Callable[..., tuple[Upstream, str]]]:
    """Makes an upstream with a script, and a proxy before it, with nothing stored."""
    with ExitStack() as stack:

        def make(script: Any, **settings: Any) -> tuple[Upstream, str]:
            if not settings:
                upstream, engine, url = pair
                upstream.script, upstream.seen = script, []
                engine.clear()
                return upstream, url
            upstream = stack.enter_context(Upstream(script))
            app = create_app(upstream.url, settings=ProxySettings(**settings))
            return upstream, stack.enter_context(ProxyServer(app)).url

        yield make


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for something that another thread does; the limit only notices what has got stuck."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.01)
