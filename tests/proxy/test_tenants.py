"""Who is asking: keys keep entries apart, and are kept nowhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from stepcache import StepCacheEngine

from .conftest import Proxied, http

Make = Callable[..., Proxied]
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Name a river."}]}


def route(proxy: Proxied, headers: dict[str, str], **more: Any) -> str:
    """The way one request went."""
    answer = http.post(f"{proxy.url}/chat/completions", json={**CHAT, **more}, headers=headers)
    return str(answer.headers["x-stepcache-route"])


@pytest.mark.parametrize(
    "field", ["authorization", "api-key", "x-api-key", "cookie", "openai-organization"]
)
def test_two_keys_never_share(proxied: Make, field: str) -> None:
    """Each client has entries of its own, and nobody's are not everybody's."""
    proxy = proxied()
    for headers in ({field: "Bearer ann"}, {field: "Bearer bob"}, {}):
        assert route(proxy, headers) == "miss"
        assert route(proxy, headers) == "exact"
    assert proxy.endpoint.calls == 3


def test_no_name_leads_over_the_wall(proxied: Make) -> None:
    """A namespace a client gives is within its own entries, whatever it is called."""
    proxy = proxied(engine=StepCacheEngine(namespace="house"))
    ann = {"authorization": "Bearer ann"}
    assert route(proxy, ann) == "miss"
    (kept,) = proxy.engine.store.entries()  # type: ignore[attr-defined]
    names = ["", "house", "/house/", "open/house/", "x/../../house", *kept.tags]
    for name in names:
        headers = {"authorization": "Bearer bob", "x-stepcache-namespace": name}
        assert route(proxy, headers) == "miss"
    assert route(proxy, {**ann, "x-stepcache-namespace": "other"}) == "miss"
    assert route(proxy, {**ann, "x-stepcache-namespace": "other"}) == "exact"
    assert route(proxy, ann) == "exact"


def test_namespaces_of_proxies_do_not_run_into_each_other(proxied: Make) -> None:
    """``a`` with a client's ``b/c`` is not ``a/b`` with a client's ``c``, over one store."""
    first = StepCacheEngine(namespace="a")
    second = StepCacheEngine(namespace="a/b", store=first.store)
    assert route(proxied(engine=first), {"x-stepcache-namespace": "b/c"}) == "miss"
    assert route(proxied(engine=second), {"x-stepcache-namespace": "c"}) == "miss"


def test_sharing_keys_is_asked_for(proxied: Make) -> None:
    """Then all clients have the same entries; namespaces still part them."""
    proxy = proxied(share_keys=True)
    assert route(proxy, {"authorization": "Bearer ann"}) == "miss"
    assert route(proxy, {"authorization": "Bearer bob"}) == "exact"
    assert route(proxy, {"x-stepcache-namespace": "n"}) == "miss"


def test_fields_that_may_change_an_answer_are_identity(proxied: Make) -> None:
    """Unknown ones are; what varies from call to call is not, nor what is named as such."""
    proxy = proxied(ignored_headers=("X-Build",))
    assert route(proxy, {}) == "miss"
    for noise in ("user-agent", "x-request-id", "traceparent", "x-stainless-lang", "X-Build"):
        assert route(proxy, {noise: "something else"}) == "exact"
    for other in ("openai-beta", "x-portkey-config", "accept-language"):
        assert route(proxy, {other: "something else"}) == "miss"
        assert route(proxy, {other: "something else"}) == "exact"
    address = f"{proxy.url}/chat/completions?api-version=2"
    assert http.post(address, json=CHAT).headers["x-stepcache-route"] == "miss"


def test_paths_are_endpoints(proxied: Make) -> None:
    """The same body at another path is another model's."""
    proxy = proxied()
    assert route(proxy, {}) == "miss"
    # The scripted endpoint answers at any path.
    for path in ("/chat/completions", "/openai/deployments/x/chat/completions"):
        answer = http.post(f"{proxy.root}{path}", json=CHAT)
        assert answer.headers["x-stepcache-route"] == "miss"


def test_keys_are_kept_and_logged_nowhere(
    proxied: Make, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the store, not in the log, not in what the engine's listeners are told."""
    caplog.set_level(logging.DEBUG, logger="stepcache")
    told: list[Any] = []
    engine = StepCacheEngine(
        store=tmp_path / "answers.db",
        listeners=[lambda request, outcome, seconds: told.append((request, outcome))],
    )
    proxy = proxied(engine=engine)
    headers = {"authorization": "Bearer sk-very-secret", "cookie": "session=very-secret"}
    assert route(proxy, headers) == "miss"
    assert route(proxy, headers, stream=True) == "exact"
    assert told
    for file in tmp_path.iterdir():
        assert b"very-secret" not in file.read_bytes()
    assert "very-secret" not in repr(told)
    assert "very-secret" not in caplog.text


def test_browsers_are_let_in_as_the_upstream_does(proxied: Make) -> None:
    """A hit carries the fields that a miss had for that origin, and no other origin's."""
    from stepcache.proxy import ProxyServer, create_app

    from .conftest import Upstream, say

    async def script(seen: Any, receive: Any, send: Any) -> None:
        origin = dict(seen.headers).get(b"origin", b"none")
        body = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}'
        allowed = [(b"content-type", b"application/json"), (b"access-control-allow-origin", origin)]
        await say(send, 200, allowed, body)

    with Upstream(script) as upstream, ProxyServer(create_app(upstream.url)) as server:
        for origin in ("https://a.test", "https://b.test", "https://a.test"):
            for more in ({}, {"stream": True}):
                answer = http.post(
                    f"{server.url}/chat/completions",
                    json={**CHAT, **more},
                    headers={"origin": origin},
                )
                assert answer.headers["access-control-allow-origin"] == origin
        assert len(upstream.seen) == 2
