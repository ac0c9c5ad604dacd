"""Everything that is no chat completion, and every request that is not understood, passes through
byte for byte."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from .conftest import Upstream, http, say

Make = Callable[..., tuple[Upstream, str]]


async def echo(seen: Any, receive: Any, send: Any) -> None:
    """Answer with the request's body, in two pieces."""
    half = len(seen.body) // 2
    headers = {"content-type": "application/octet-stream", "x-asked": seen.method}
    await say(send, 200, headers, seen.body[:half], seen.body[half:])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/a%2Fb?x=1&y=%20"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/responses"),
        ("DELETE", "/v1/files/file-1"),
        ("PUT", "/anything/at/all"),
        ("PATCH", "/v1/unknown"),
        ("OPTIONS", "/v1/chat/completions"),
        ("GET", "/v1/chat/completions"),
        ("GET", "/api/tags"),
        ("POST", "/stepcache/health"),
    ],
)
def test_method_path_query_and_body_arrive_as_they_left(
    behind: Make, method: str, path: str
) -> None:
    """The upstream sees what the client sent, and the client what the upstream answered."""
    upstream, url = behind(echo)
    content = bytes(range(256)) * 40 if method in ("POST", "PUT", "PATCH") else None
    # Not by httpx's own URL, which would write the path anew.
    target = httpx.URL(url.removesuffix("/v1")).copy_with(raw_path=path.encode())
    answer = http.request(method, target, content=content)
    seen = upstream.seen[0]
    assert seen.method == answer.headers["x-asked"] == method
    assert seen.path + (b"?" + seen.query if seen.query else b"") == path.encode()
    assert seen.body == (content or b"")
    if content is not None:
        assert answer.content == content
    assert not any(name.startswith("x-stepcache") for name in answer.headers)


@pytest.mark.parametrize("status", [200, 201, 204, 301, 304, 404, 418, 503])
def test_status_and_headers_come_back(behind: Make, status: int) -> None:
    """Redirects are the client's to follow, repeated fields stay repeated, hop-by-hop ones go."""

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await say(
            send,
            status,
            [
                (b"location", b"https://elsewhere.test/"),
                (b"set-cookie", b"a=1"),
                (b"set-cookie", b"b=2"),
                (b"server", b"theirs"),
                (b"x-hop", b"1"),
                (b"connection", b"x-hop"),
            ],
        )

    upstream, url = behind(script)
    for _ in range(2):
        answer = http.get(f"{url}/things")
        assert answer.status_code == status
        assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
        assert answer.headers.get_list("server") == ["theirs"]
        assert answer.headers["location"] == "https://elsewhere.test/"
        assert "x-hop" not in answer.headers
    # One client's cookies are not the next one's.
    assert not any(name == b"cookie" for name, _ in upstream.seen[1].headers)


def test_request_headers_pass_and_ours_do_not(behind: Make) -> None:
    """The client's fields arrive, unknown ones too; the proxy adds none and keeps its own."""
    upstream, url = behind(echo)
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as raw:
        raw.sendall(
            b"GET /v1/models HTTP/1.1\r\nHost: me\r\nAuthorization: Bearer k\r\nX-One: 1\r\n"
            b"X-StepCache: bypass\r\nX-StepCache-Namespace: n\r\nConnection: close, X-Hop\r\n"
            b"X-Hop: 1\r\nTE: trailers\r\n\r\n"
        )
        while raw.recv(4096):
            pass
    names = {name for name, _ in upstream.seen[0].headers}
    assert names == {b"host", b"authorization", b"x-one"} | ({b"connection"} & names)
    assert (b"authorization", b"Bearer k") in upstream.seen[0].headers


def test_encoded_bodies_stay_encoded(behind: Make) -> None:
    """What was compressed arrives compressed, to the byte."""
    packed = gzip.compress(b"x" * 1000)

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await say(send, 200, {"content-encoding": "gzip"}, packed)

    _, url = behind(script)
    with http.stream("GET", f"{url}/things", headers={"accept-encoding": "gzip"}) as answer:
        assert b"".join(answer.iter_raw()) == packed
        assert answer.headers["content-encoding"] == "gzip"


def test_answers_pass_as_they_come(behind: Make) -> None:
    """The first piece is there before the last is said."""
    import asyncio
    import threading

    go_on = threading.Event()

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await asyncio.to_thread(go_on.wait, 30)
        await send({"type": "http.response.body", "body": b"last"})

    _, url = behind(script)
    with http.stream("POST", f"{url}/completions", content=b"{}") as answer:
        pieces = answer.iter_raw()
        assert next(pieces) == b"first"
        go_on.set()
        assert b"".join(pieces) == b"last"


def test_bodies_pass_as_they_come(behind: Make) -> None:
    """A body in pieces, of unknown length, arrives whole."""
    upstream, url = behind(echo)

    def pieces() -> Any:
        for _ in range(50):
            yield b"y" * 10_000

    assert http.post(f"{url}/files", content=pieces()).content == b"y" * 500_000
    assert upstream.seen[0].body == b"y" * 500_000


CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not JSON",
        b"[]",
        b'{"model": "m"}',
        b'{"messages": [], "model": "m"}',
        b'{"messages": "hi", "model": "m"}',
        b'{"messages": [{"content": "hi"}], "model": "m"}',
        b'{"messages": [{"role": "user", "content": "hi"}], "temperature": NaN}',
        b'{"messages": [{"role": "user", "content": "hi"}], "n": 1, "n": 2}',
        b'{"messages": [{"role": "user", "content": "hi"}], "stream": "yes"}',
        b'{"messages": [{"role": "user", "content": "hi"}], "tools": "all"}',
        b'{"messages": [{"role": "user", "content": "hi"}], "stepcache:headers": 1}',
        b'{"messages": [{"role": "assistant", "tool_calls": [{"id": 1}]}]}',
        b'{"messages": [{"role": "user", "content": "hi"}], "a": '
        + b"[" * 9999
        + b"]" * 9999
        + b"}",
        b'{"messages": [{"role": "user", "content": "hi"}], "a": ' + b"9" * 9999 + b"}",
        b"\xff\xfe\x00",
        gzip.compress(json.dumps(CHAT).encode()),
    ],
    ids=range(17),
)
def test_what_is_not_understood_is_the_upstreams_business(behind: Make, body: bytes) -> None:
    """A broken chat request arrives to the byte, each time, and its answer comes back."""

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await say(send, 422, {"content-type": "application/json"}, b'{"error": "as it is"}')

    upstream, url = behind(script)
    for _ in range(2):
        answer = http.post(
            f"{url}/chat/completions", content=body, headers={"content-type": "application/json"}
        )
        assert (answer.status_code, answer.content) == (422, b'{"error": "as it is"}')
    assert [seen.body for seen in upstream.seen] == [body, body]


def test_long_requests_and_other_types_pass_unread(behind: Make) -> None:
    """Above ``max_body`` nothing is looked at; nor is what does not call itself JSON."""

    async def script(seen: Any, receive: Any, send: Any) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": "Yes."}}
        body = json.dumps({"choices": [{**choice, "finish_reason": "stop"}]}).encode()
        await say(send, 200, {"content-type": "application/json"}, body)

    upstream, url = behind(script, max_body=2000)
    long = {**CHAT, "messages": [{"role": "user", "content": "x" * 3000}]}
    for _ in range(2):
        answer = http.post(f"{url}/chat/completions", json=long)
        assert "x-stepcache-route" not in answer.headers
        http.post(f"{url}/chat/completions", content=json.dumps(CHAT))
        http.post(f"{url}/chat/completions", json=CHAT)
    assert len(upstream.seen) == 5
    assert json.loads(upstream.seen[0].body) == long


def test_the_clients_own_bytes_are_what_is_asked(behind: Make) -> None:
    """A miss is sent as it came, spaces and order included, and answered byte for byte."""
    said = b'{"choices":[ {"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}] }'

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await say(send, 200, {"content-type": "application/json", "x-ratelimit": "9"}, said)

    upstream, url = behind(script)
    body = b'{ "messages":[{"content":"hi","role":"user"}] ,\n"model":"m", "top_p": 1.0}'
    answer = http.post(
        f"{url}/chat/completions", content=body, headers={"content-type": "application/json"}
    )
    assert upstream.seen[0].body == body
    assert answer.content == said
    assert answer.headers["x-ratelimit"] == "9"
    assert answer.headers["x-stepcache-route"] == "miss"


def test_a_streamed_miss_passes_byte_for_byte(behind: Make) -> None:
    """The upstream's events are not written anew; what the proxy has to say comes after them."""
    said = (
        b": a comment\r\n\r\n"
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Ye"}}],"x":1}\r\n\r\n'
        b'data:{"choices":[{"index":0,"delta":{"content":"s."},"finish_reason":"stop"}]}\n\n'
        b"data: [DONE]\n\n"
    )

    async def script(seen: Any, receive: Any, send: Any) -> None:
        pieces = [said[at : at + 7] for at in range(0, len(said), 7)]
        await say(send, 200, {"content-type": "text/event-stream"}, *pieces)

    upstream, url = behind(script)
    body = {**CHAT, "stream": True}
    first = http.post(f"{url}/chat/completions", json=body).content
    assert first.startswith(said)
    assert first.removeprefix(said).startswith(b": stepcache route=miss")
    again = http.post(f"{url}/chat/completions", json=CHAT)
    assert again.json()["choices"][0]["message"]["content"] == "Yes."
    assert len(upstream.seen) == 1


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("/v1", b"/v1/chat/completions"),
        ("", b"/v1/chat/completions"),
        ("/v1/", b"/v1/chat/completions"),
        ("/openai/v1", b"/openai/v1/chat/completions"),
    ],
)
def test_the_upstreams_path_stands_before_the_clients(
    behind: Make, address: str, asked: bytes
) -> None:
    """Whether or not an address ends in its version, that is not doubled."""
    from stepcache.proxy import ProxyServer, create_app

    upstream, _ = behind(echo)
    root = upstream.url.removesuffix("/v1")
    with ProxyServer(create_app(root + address)) as server:
        http.post(f"{server.url}/chat/completions", json=CHAT)
    assert upstream.seen[0].path == asked


@pytest.mark.parametrize("target", [b"@elsewhere.test/", b"http://elsewhere.test/", b"*"])
def test_a_target_that_is_no_path_is_refused(behind: Make, target: bytes) -> None:
    """No request line leads anywhere but to the upstream."""
    upstream, url = behind(echo)
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as raw:
        raw.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 40")
    assert upstream.seen == []
