"""Law 11 over HTTP: whatever fails, the client gets what the upstream alone would have given."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest

from stepcache import StepCacheEngine
from stepcache.embedders import LexicalEmbedder
from stepcache.proxy import ProxyServer, ProxySettings, create_app
from stepcache.stores import MemoryStore
from stepcache.testing import FaultyEmbedder, FaultyStore
from stepcache.testing.endpoint import ScriptedEndpoint

from .conftest import PATIENCE, Proxied, Upstream, http, say, until

Make = Callable[..., tuple[Upstream, str]]
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Name a river."}]}
EQUATION: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Solve 2x + 3 = 13 for x."}],
}


ERROR = b'data: {"error": {"message": "out of memory"}}\n\n'


def chunk(text: str, finish: str | None = None) -> bytes:
    """One event of a stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def said_in(stream: str) -> str:
    """The text that a body says, whole or streamed."""
    events = [
        line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: {")
    ]
    choices = [json.loads(event)["choices"][0] for event in events or [stream]]
    return "".join(
        c.get("message", c.get("delta"))["content"]
        for c in choices
        if c.get("message") or c["delta"]
    )


def read_into(received: list[bytes], url: str, body: dict[str, Any]) -> None:
    """Read a response as far as it goes."""
    with http.stream("POST", url, json=body) as answer:
        received.extend(answer.iter_raw())


@pytest.mark.parametrize("body", [CHAT, EQUATION], ids=["text", "equation"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_upstream_errors_pass_unchanged(
    behind: Make, status: int, stream: bool, body: dict[str, Any]
) -> None:
    """Status, body and fields such as Retry-After, each time: an error is never kept."""
    said = b'{"error": {"message": "theirs", "type": "t", "code": "c"}, "more": 1}'

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await say(send, status, {"content-type": "application/json", "retry-after": "7"}, said)

    upstream, url = behind(script)
    for _ in range(2):
        answer = http.post(f"{url}/chat/completions", json={**body, "stream": stream})
        assert (answer.status_code, answer.content) == (status, said)
        assert answer.headers["retry-after"] == "7"
    assert len(upstream.seen) == 2
    with pytest.raises(openai.APIStatusError) as raised:
        openai.OpenAI(base_url=url, api_key="k", max_retries=0).chat.completions.create(**body)
    assert raised.value.status_code == status
    assert raised.value.body == {"message": "theirs", "type": "t", "code": "c"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("application/json", b'{"choices": []}'),
        ("application/json", b"{broken"),
        ("text/html", b"<h1>A gateway's page</h1>"),
        ("application/json", b'{"choices": [{"message": "no object"}]}'),
    ],
)
def test_what_is_no_completion_passes_unchanged(
    behind: Make, kind: str, said: bytes, stream: bool
) -> None:
    """With status 200 too, and it is not kept."""

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await say(send, 200, {"content-type": kind}, said)

    upstream, url = behind(script)
    for _ in range(2):
        answer = http.post(f"{url}/chat/completions", json={**CHAT, "stream": stream})
        assert (answer.status_code, answer.content) == (200, said)
    assert len(upstream.seen) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_is_not_there_is_a_clear_502(stream: bool) -> None:
    """In OpenAI's shape, for chats and for everything else; the proxy lives on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    app = create_app(f"http://127.0.0.1:{port}/v1")
    with ProxyServer(app) as server:
        for path in ("chat/completions", "embeddings"):
            answer = http.post(f"{server.url}/{path}", json={**CHAT, "stream": stream})
            assert answer.status_code == 502
            error = answer.json()["error"]
            assert f"127.0.0.1:{port} cannot be reached" in error["message"]
            assert (error["type"], error["code"]) == ("upstream_error", "upstream_unreachable")
        with pytest.raises(openai.InternalServerError, match="cannot be reached"):
            openai.OpenAI(base_url=server.url, api_key="k", max_retries=0).chat.completions.create(
                **CHAT
            )
        health = http.get(server.url.removesuffix("v1") + "stepcache/health")
        assert health.json()["status"] == "ok"


def test_an_upstream_that_takes_too_long_is_a_504(behind: Make) -> None:
    """Only where a limit was set."""

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await receive()

    _, url = behind(script, timeout=0.2)
    answer = http.post(f"{url}/chat/completions", json=CHAT)
    assert answer.status_code == 504
    assert answer.json()["error"]["code"] == "upstream_timeout"


@pytest.mark.parametrize("body", [CHAT, EQUATION], ids=["text", "equation"])
def test_a_stream_that_breaks_off_does_not_pass_for_a_whole_one(
    behind: Make, body: dict[str, Any]
) -> None:
    """The client has what came, is told, and the response stays unfinished; nothing is kept."""

    async def script(seen: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for text in ("2x + 3 = 13\n\n", "2x = 10\n\n"):
            await send({"type": "http.response.body", "body": chunk(text), "more_body": True})
            await asyncio.sleep(0.05)
        # Returning without an end: the server cuts the connection.

    upstream, url = behind(script)
    for _ in range(2):
        received: list[bytes] = []
        with pytest.raises(httpx.RemoteProtocolError):
            read_into(received, f"{url}/chat/completions", {**body, "stream": True})
        said = b"".join(received)
        assert b'"error"' in said
        assert b"[DONE]" not in said
    assert len(upstream.seen) == 2
    client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    with pytest.raises((openai.APIError, httpx.RemoteProtocolError)):
        list(client.chat.completions.create(**body, stream=True))


@pytest.mark.parametrize(
    ("body", "ending"),
    [(CHAT, b""), (CHAT, ERROR), (EQUATION, ERROR)],
    ids=["cut", "text", "equation"],
)
def test_a_stream_without_an_end_of_its_own_is_not_kept(
    behind: Make, body: dict[str, Any], ending: bytes
) -> None:
    """No finish and no [DONE], or an error in mid-stream: the client sees that, each time."""

    async def script(seen: Any, receive: Any, send: Any) -> None:
        await say(send, 200, {"content-type": "text/event-stream"}, chunk("The El"), ending)

    upstream, url = behind(script)
    for _ in range(2):
        answer = http.post(f"{url}/chat/completions", json={**body, "stream": True})
        assert b"The El" in answer.content
        assert ending in answer.content
        assert b"[DONE]" not in answer.content
    assert len(upstream.seen) == 2


class BrokenEngine(StepCacheEngine):
    """An engine with a fault that no port explains."""

    async def aresolve(self, *args: Any, **kwargs: Any) -> Any:
        """Fail."""
        raise ZeroDivisionError("secret-prompt-text")

    async def astream(self, *args: Any, **kwargs: Any) -> Any:
        """Fail."""
        raise ZeroDivisionError("secret-prompt-text")
        yield

    async def acount(self) -> int:
        """Fail."""
        raise OSError


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "engine",
    [
        lambda: StepCacheEngine(store=FaultyStore(MemoryStore())),
        lambda: StepCacheEngine(embedder=FaultyEmbedder(LexicalEmbedder())),
        BrokenEngine,
    ],
    ids=["store", "embedder", "engine"],
)
def test_a_broken_cache_is_never_seen(
    proxied: Callable[..., Proxied],
    engine: Callable[[], StepCacheEngine],
    stream: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Answers come, and nothing in the log quotes anybody."""
    caplog.set_level(logging.DEBUG)
    proxy = proxied(engine=engine())
    for body in (CHAT, EQUATION, EQUATION):
        answer = http.post(f"{proxy.url}/chat/completions", json={**body, "stream": stream})
        assert answer.status_code == 200
        assert "river" in answer.text or "x = 5" in said_in(answer.text)
    assert http.get(f"{proxy.root}/stepcache/health").status_code == 200
    assert http.get(f"{proxy.root}/stepcache/stats").status_code == 200
    ours = [record for record in caplog.records if record.name.startswith("stepcache")]
    assert not any("secret" in r.getMessage() or "river" in r.getMessage() for r in ours)
    assert not any(record.exc_info for record in ours)


def test_a_listener_in_the_way_of_nobody(proxied: Callable[..., Proxied]) -> None:
    """A store that fails only when it keeps costs the entry, not the answer."""
    proxy = proxied(engine=StepCacheEngine(store=FaultyStore(MemoryStore(), {"put"})))
    for _ in range(2):
        answer = http.post(f"{proxy.url}/chat/completions", json=CHAT)
        assert answer.status_code == 200
        assert "x-stepcache-entry" not in answer.headers
    assert proxy.endpoint.calls == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_stored_call_that_nobody_offers_is_made_anew(
    proxied: Callable[..., Proxied], stream: bool
) -> None:
    """Storage is not believed: a record that was tampered with is asked for again."""
    from dataclasses import replace

    proxy = proxied()
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    body = {**CHAT, "tools": [tool], "stream": stream}
    url = f"{proxy.url}/chat/completions"
    http.post(url, json=body)
    for message in ('{"v": 1, "choices": 7}', None, "not JSON"):
        (entry,) = proxy.engine.store.entries()  # type: ignore[attr-defined]
        assert "weather" in str(entry.message)
        bad = str(entry.message).replace("weather", "delete") if message is None else message
        proxy.engine.store.put(replace(entry, message=bad), None, "")
        calls = proxy.endpoint.calls
        answer = http.post(url, json=body)
        assert '"weather"' in answer.text
        assert proxy.endpoint.calls == calls + 1


class Slow:
    """An upstream that waits to be let go, and knows who hung up."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.gone = threading.Event()

    async def __call__(self, seen: Any, receive: Any, send: Any) -> None:
        """Begin a stream, if one is asked for, and wait for the client to go."""
        if b'"stream": true' in seen.body or b'"stream":true' in seen.body:
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            first = {"type": "http.response.body", "body": chunk("The "), "more_body": True}
            await send(first)
        self.asked.release()
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone.set()


@pytest.mark.parametrize("path", ["chat/completions", "completions"])
@pytest.mark.parametrize("stream", [False, True])
def test_who_hangs_up_stops_the_upstream(behind: Make, stream: bool, path: str) -> None:
    """Before the first byte and in the middle of a stream; the proxy forgets the request."""
    slow = Slow()
    _, url = behind(slow)
    body = json.dumps({**CHAT, "stream": stream}).encode()
    address = httpx.URL(url)
    with socket.create_connection((address.host, address.port or 80)) as raw:
        head = f"POST /v1/{path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        raw.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert slow.asked.acquire(timeout=PATIENCE)
        if stream:
            assert b"200" in raw.recv(4096)
    assert slow.gone.wait(PATIENCE)
    stats = url.removesuffix("v1") + "stepcache/stats"
    until(lambda: http.get(stats).json()["in_flight"] == 0)


def test_a_leader_that_hangs_up_hands_over(behind: Make) -> None:
    """Two clients ask the same; the first goes; the second is answered all the same."""
    slow = Slow()
    answers: list[httpx.Response] = []

    async def script(seen: Any, receive: Any, send: Any) -> None:
        if len(upstream.seen) == 1:
            await slow(seen, receive, send)
            return
        choice = {"index": 0, "message": {"role": "assistant", "content": "The Elbe."}}
        body = json.dumps({"choices": [{**choice, "finish_reason": "stop"}]}).encode()
        await say(send, 200, {"content-type": "application/json"}, body)

    upstream, url = behind(script)
    body = json.dumps(CHAT).encode()
    address = httpx.URL(url)
    follower = threading.Thread(
        target=lambda: answers.append(
            http.post(f"{url}/chat/completions", content=body, headers=json_type)
        )
    )
    json_type = {"content-type": "application/json"}
    with socket.create_connection((address.host, address.port or 80)) as raw:
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        raw.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert slow.asked.acquire(timeout=PATIENCE)
        follower.start()
        stats = url.removesuffix("v1") + "stepcache/stats"
        until(lambda: http.get(stats).json()["in_flight"] == 2)
        assert len(upstream.seen) == 1
    follower.join(PATIENCE)
    assert answers[0].json()["choices"][0]["message"]["content"] == "The Elbe."
    assert len(upstream.seen) == 2


@pytest.fixture
def scripted() -> Iterator[ScriptedEndpoint]:
    """An endpoint with one answer."""
    with ScriptedEndpoint(lambda request: "The Elbe.") as endpoint:
        yield endpoint


def test_the_store_is_closed_with_the_server(scripted: ScriptedEndpoint, tmp_path: Any) -> None:
    """What was kept is there for the next process."""
    for route in ("miss", "exact"):
        engine = StepCacheEngine(store=tmp_path / "answers.db")
        with ProxyServer(create_app(scripted.url, engine=engine, settings=ProxySettings())) as px:
            answer = http.post(f"{px.url}/chat/completions", json=CHAT)
            assert answer.headers["x-stepcache-route"] == route
        with pytest.raises(Exception, match="closed"):
            engine.count()
    assert scripted.calls == 1
