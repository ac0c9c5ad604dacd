"""What a request asks of the cache, by its header fields."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from .conftest import Proxied, http

Make = Callable[..., Proxied]
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Name a river."}]}


def ask(proxy: Proxied, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    """One request."""
    return http.post(f"{proxy.url}/chat/completions", json={**CHAT, **more}, headers=headers)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("headers", "calls", "kept"),
    [
        ({"x-stepcache": "bypass"}, 2, False),
        ({"cache-control": "no-store"}, 2, False),
        ({"Cache-Control": "max-age=0, No-Store, no-cache"}, 2, False),
        ({"x-stepcache": "Refresh"}, 2, True),
        ({"cache-control": "no-cache"}, 2, True),
        ({"cache-control": "max-age=60"}, 1, True),
        ({"x-stepcache": "refresh", "cache-control": "no-store"}, 2, True),
    ],
)
def test_bypass_and_refresh(
    proxied: Make, headers: dict[str, str], calls: int, kept: bool, stream: bool
) -> None:
    """By our word or HTTP's own; ours comes first."""
    proxy = proxied()
    for _ in range(2):
        assert ask(proxy, headers, stream=stream).status_code == 200
    assert proxy.endpoint.calls == calls
    assert bool(proxy.engine.count()) is kept


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "headers", [{"x-stepcache": "only-if-cached"}, {"cache-control": "only-if-cached"}]
)
def test_only_if_cached(proxied: Make, headers: dict[str, str], stream: bool) -> None:
    """The upstream is not asked: 504 without an answer, as RFC 9111 says, else the answer."""
    proxy = proxied()
    refused = ask(proxy, headers, stream=stream)
    assert refused.status_code == 504
    assert refused.json()["error"]["code"] == "not_cached"
    assert proxy.endpoint.calls == 0
    ask(proxy)
    answer = ask(proxy, headers, stream=stream)
    assert (answer.status_code, answer.headers["x-stepcache-route"]) == (200, "exact")
    assert ("text/event-stream" in answer.headers["content-type"]) is stream
    assert proxy.endpoint.calls == 1


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"x-stepcache": "sometimes"}, "sometimes"),
        ({"x-stepcache": "bypass, refresh"}, "bypass, refresh"),
        ({"x-stepcache-ttl": "soon"}, "soon"),
        ({"x-stepcache-ttl": "-1"}, "-1"),
        ({"x-stepcache-ttl": "inf"}, "inf"),
        ({"x-stepcache-namespace": "n" * 300}, "256"),
        ({"x-stepcache-tags": "stepcache:x"}, "stepcache:"),
    ],
)
def test_what_cannot_be_wished_is_said(proxied: Make, headers: dict[str, str], named: str) -> None:
    """400 in OpenAI's shape, with the value and what to use."""
    proxy = proxied()
    answer = ask(proxy, headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert named in answer.json()["error"]["message"]
    assert proxy.endpoint.calls == 0


def test_lifetime_and_tags(proxied: Make) -> None:
    """An entry is served for so long, and forgotten by its tag."""
    proxy = proxied()
    ask(proxy, {"x-stepcache-ttl": "0.05", "x-stepcache-tags": "geo, rivers"})
    time.sleep(0.1)
    ask(proxy, {"x-stepcache-tags": "geo, rivers"})
    assert proxy.endpoint.calls == 2
    assert proxy.engine.forget(tag="rivers") == 1
    ask(proxy)
    assert proxy.endpoint.calls == 3
