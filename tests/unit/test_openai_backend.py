"""The OpenAI-compatible backends against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache._errors import ConfigurationError
from stepcache._types import Message, ModelCall, Reply, Usage
from stepcache.backends import AsyncOpenAICompatibleBackend, OpenAICompatibleBackend
from stepcache.backends._wire import EchoFilter
from stepcache.protocols import Delta, StreamingBackend


@dataclass
class Endpoint:
    """A chat-completions server that answers as told and keeps what it was asked."""

    url: str = ""
    status: int = 200
    kind: str = "application/json"
    body: bytes = b""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def answer(self, message: dict[str, Any], **rest: Any) -> None:
        """Answer with one whole completion."""
        choice = {"index": 0, "message": message, "finish_reason": rest.pop("finish", "stop")}
        body = {"id": "c1", "model": "served-name", "choices": [choice], **rest}
        self.status, self.kind, self.body = 200, "application/json", json.dumps(body).encode()

    def events(self, *events: dict[str, Any] | str, end: str = "\n\n") -> None:
        """Answer with a stream of server-sent events."""
        lines = [e if isinstance(e, str) else f"data: {json.dumps(e)}" for e in events]
        self.status, self.kind = 200, "text/event-stream"
        self.body = (end.join(lines) + end).encode()


def chunk(content: str | None = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """One streamed chunk."""
    delta = {**({} if content is None else {"content": content}), **delta}
    return {"model": "served-name", "choices": [{"delta": delta, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}
DONE = "data: [DONE]"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    told = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            told.asked.append(json.loads(self.rfile.read(length)))
            told.headers.append({k.lower(): v for k, v in self.headers.items()})
            told.paths.append(self.path)
            self.send_response(told.status)
            self.send_header("Content-Type", told.kind)
            self.send_header("Content-Length", str(len(told.body)))
            self.end_headers()
            self.wfile.write(told.body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


class Face:
    """Both clients behind one synchronous face, so that each test holds for both."""

    def __init__(self, kind: type, *args: Any, **kwargs: Any) -> None:
        self.kind, self.args, self.kwargs = kind, args, kwargs

    def generate(self, call: ModelCall) -> Reply:
        if self.kind is OpenAICompatibleBackend:
            with OpenAICompatibleBackend(*self.args, **self.kwargs) as backend:
                return backend.generate(call)

        async def ask() -> Reply:
            async with AsyncOpenAICompatibleBackend(*self.args, **self.kwargs) as backend:
                return await backend.generate(call)

        return asyncio.run(ask())

    def stream(
        self, call: ModelCall, into: list[Delta | Reply] | None = None
    ) -> list[Delta | Reply]:
        items: list[Delta | Reply] = [] if into is None else into
        if self.kind is OpenAICompatibleBackend:
            with OpenAICompatibleBackend(*self.args, **self.kwargs) as backend:
                items.extend(backend.stream(call))
            return items

        async def ask() -> None:
            async with AsyncOpenAICompatibleBackend(*self.args, **self.kwargs) as backend:
                async for item in backend.stream(call):
                    items.append(item)  # noqa: PERF401 - what came before an error is looked at

        asyncio.run(ask())
        return items


@pytest.fixture(params=[OpenAICompatibleBackend, AsyncOpenAICompatibleBackend])
def kind(request: pytest.FixtureRequest) -> type:
    return request.param


def ask(text: str = "hello", **rest: Any) -> ModelCall:
    rest.setdefault("purpose", "answer")
    return ModelCall(messages=(Message(role="user", text=text),), **rest)


def test_reads_text_usage_model_and_finish_reason(kind: type, endpoint: Endpoint) -> None:
    """A plain completion becomes a reply with everything the endpoint said."""
    endpoint.answer(
        {"role": "assistant", "content": "hi"}, usage={"prompt_tokens": 5, "completion_tokens": 2}
    )
    reply = Face(kind, endpoint.url, "m").generate(ask())
    assert reply == Reply(
        text="hi",
        finish_reason="stop",
        usage=Usage(calls=1, prompt_tokens=5, completion_tokens=2),
        model="served-name",
    )


def test_sends_messages_params_key_and_headers(kind: type, endpoint: Endpoint) -> None:
    """The request carries the turns with their extras, the parameters, the key and the headers."""
    endpoint.answer({"content": "x"})
    image = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    call = ModelCall(
        purpose="answer",
        messages=(
            Message(role="system", text="be brief"),
            Message(role="user", text="see", extra={"content": tuple(image), "name": "ann"}),
        ),
    )
    face = Face(
        kind,
        endpoint.url + "/",
        "m",
        api_key="k-1",
        params={"temperature": 0, "seed": 3},
        headers={"X-Team": "blue"},
    )
    face.generate(call)
    assert endpoint.asked == [
        {
            "model": "m",
            "temperature": 0,
            "seed": 3,
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": image, "name": "ann"},
            ],
        }
    ]
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.headers[0]["authorization"] == "Bearer k-1"
    assert endpoint.headers[0]["x-team"] == "blue"
    assert endpoint.headers[0]["content-type"] == "application/json"


def test_prefix_is_sent_only_where_the_endpoint_can_go_on(kind: type, endpoint: Endpoint) -> None:
    """With prefill a prefix is a closing assistant turn; without it the messages stand alone."""
    endpoint.answer({"content": "x = 5"})
    call = ask("go on", purpose="patch", prefix="2x = 10\n")
    Face(kind, endpoint.url, "m", prefill=True).generate(call)
    Face(kind, endpoint.url, "m").generate(call)
    Face(kind, endpoint.url, "m", prefill={"continue_final_message": True}).generate(call)
    turns = [asked["messages"] for asked in endpoint.asked]
    assert turns[0][-1] == {"role": "assistant", "content": "2x = 10\n"}
    assert [turn["role"] for turn in turns[1]] == ["user"]
    assert turns[2] == turns[0]
    assert endpoint.asked[2]["continue_final_message"] is True
    assert "continue_final_message" not in endpoint.asked[0]


@pytest.mark.parametrize("content", ["2x = 10\nx = 5", "x = 5"])
def test_an_echoed_prefix_is_cut_off(kind: type, endpoint: Endpoint, content: str) -> None:
    """Whether or not the endpoint repeats the prefix, the reply is only what is new."""
    endpoint.answer({"content": content})
    call = ask("go on", purpose="patch", prefix="2x = 10\n")
    assert Face(kind, endpoint.url, "m", prefill=True).generate(call).text == "x = 5"


@pytest.mark.parametrize("content", ["2x = 10\nx = 5", "x = 5", "2x", ""])
def test_an_echoed_prefix_is_cut_off_a_stream(kind: type, endpoint: Endpoint, content: str) -> None:
    """The same holds letter by letter, also when the answer ends inside the would-be echo."""
    endpoint.events(*(chunk(letter) for letter in content), chunk(finish="stop"), DONE)
    call = ask("go on", purpose="patch", prefix="2x = 10\n")
    items = Face(kind, endpoint.url, "m", prefill=True).stream(call)
    expected = content.removeprefix("2x = 10\n")
    assert "".join(item.text for item in items[:-1]) == expected
    assert isinstance(items[-1], Reply)
    assert items[-1].text == expected


@given(prefix=st.text("ab", max_size=6), text=st.text("ab", max_size=12), cut=st.integers(1, 4))
def test_echo_filter_equals_removing_the_prefix(prefix: str, text: str, cut: int) -> None:
    """However a text is cut into pieces, filtering equals removing the prefix from the whole."""
    echo = EchoFilter(prefix)
    pieces = [text[i : i + cut] for i in range(0, len(text), cut)]
    assert "".join(map(echo.feed, pieces)) + echo.flush() == text.removeprefix(prefix)


def test_schema_constrains_patches_only(kind: type, endpoint: Endpoint) -> None:
    """A part's schema goes along with a patch, never with an answer, and not when told not to."""
    endpoint.answer({"content": "{}"})
    schema = {"type": "object", "required": ["area"]}
    Face(kind, endpoint.url, "m").generate(ask(purpose="patch", schema=schema))
    Face(kind, endpoint.url, "m").generate(ask(purpose="answer", schema=schema))
    Face(kind, endpoint.url, "m", constrain=False).generate(ask(purpose="patch", schema=schema))
    assert endpoint.asked[0]["response_format"]["json_schema"]["schema"] == schema
    assert endpoint.asked[0]["response_format"]["type"] == "json_schema"
    assert "response_format" not in endpoint.asked[1]
    assert "response_format" not in endpoint.asked[2]


def test_a_prefix_goes_without_a_schema(kind: type, endpoint: Endpoint) -> None:
    """A grammar describes a whole reply, so it is not sent with the start of one."""
    endpoint.answer({"content": "}"})
    call = ask(purpose="patch", schema={"type": "object"}, prefix="{")
    Face(kind, endpoint.url, "m", prefill=True).generate(call)
    assert "response_format" not in endpoint.asked[0]


def test_demands_on_the_whole_answer_do_not_bind_a_part(kind: type, endpoint: Endpoint) -> None:
    """Tools and the answer's format in the parameters are left out when a part is asked for."""
    endpoint.answer({"content": "x"})
    params = {"response_format": {"type": "json_object"}, "tools": [], "temperature": 0}
    face = Face(kind, endpoint.url, "m", params=params)
    face.generate(ask())
    face.generate(ask(purpose="patch"))
    assert {"response_format", "tools", "temperature"} <= endpoint.asked[0].keys()
    assert endpoint.asked[1].keys() == {"model", "messages", "temperature"}


def test_tool_calls_are_kept_but_not_reusable(kind: type, endpoint: Endpoint) -> None:
    """A reply that calls tools keeps its message whole and is for equal requests only."""
    call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    endpoint.answer(message, finish="tool_calls")
    reply = Face(kind, endpoint.url, "m").generate(ask())
    assert (reply.text, reply.reusable, reply.finish_reason) == ("", False, "tool_calls")
    assert json.loads(reply.message or "") == message


def test_streamed_tool_calls_are_put_together(kind: type, endpoint: Endpoint) -> None:
    """Pieces of tool calls join by index into the same message a whole answer would hold."""
    endpoint.events(
        chunk(tool_calls=[{"index": 0, "id": "t1", "function": {"name": "f", "arguments": ""}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"a"'}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        chunk(finish="tool_calls"),
        DONE,
    )
    reply = Face(kind, endpoint.url, "m").stream(ask())[-1]
    assert isinstance(reply, Reply)
    assert not reply.reusable
    tools = json.loads(reply.message or "")["tool_calls"]
    assert tools == [
        {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    ]


def test_a_refusal_is_marked(kind: type, endpoint: Endpoint) -> None:
    """A refusal is told apart from an answer, whole and streamed, in either way of saying so."""
    endpoint.answer({"content": None, "refusal": "I will not"})
    reply = Face(kind, endpoint.url, "m").generate(ask())
    assert (reply.text, reply.refusal) == ("I will not", True)
    endpoint.answer({"content": "par"}, finish="content_filter")
    assert Face(kind, endpoint.url, "m").generate(ask()).refusal
    endpoint.events(chunk(refusal="I will"), chunk(refusal=" not", finish="stop"), DONE)
    assert Face(kind, endpoint.url, "m").stream(ask())[-1] == Reply(
        text="I will not", refusal=True, model="served-name"
    )


def test_content_in_parts_is_joined(kind: type, endpoint: Endpoint) -> None:
    """Text parts join; anything else in between makes the reply more than text."""
    endpoint.answer({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})
    assert Face(kind, endpoint.url, "m").generate(ask()).text == "ab"
    endpoint.answer({"content": [{"type": "text", "text": "a"}, {"type": "image"}]})
    reply = Face(kind, endpoint.url, "m").generate(ask())
    assert (reply.text, reply.reusable) == ("a", False)


def test_streams_pieces_then_the_whole(kind: type, endpoint: Endpoint) -> None:
    """A stream yields each piece and closes with the whole reply, its usage and its reason."""
    endpoint.events(
        ": keep-alive",
        chunk("he", role="assistant"),
        chunk("llo"),
        chunk(finish="stop"),
        USAGE,
        DONE,
    )
    items = Face(kind, endpoint.url, "m").stream(ask())
    assert items == [
        Delta("he"),
        Delta("llo"),
        Reply(
            text="hello",
            usage=Usage(calls=1, prompt_tokens=11, completion_tokens=7),
            model="served-name",
        ),
    ]
    assert endpoint.asked[0]["stream"] is True
    assert endpoint.asked[0]["stream_options"] == {"include_usage": True}


def test_line_ends_do_not_matter(kind: type, endpoint: Endpoint) -> None:
    """Events closed by CRLF, and a last one closed by the connection only, read the same."""
    endpoint.events(chunk("a"), chunk("b", finish="stop"), end="\r\n\r\n")
    endpoint.body = endpoint.body.rstrip()
    assert Face(kind, endpoint.url, "m").stream(ask())[-1] == Reply(text="ab", model="served-name")


def test_a_stream_cut_short_raises_and_gives_no_reply(kind: type, endpoint: Endpoint) -> None:
    """Without a finish reason or [DONE] the pieces arrive but no whole reply does."""
    endpoint.events(chunk("half an ans"))
    seen: list[Delta | Reply] = []
    with pytest.raises(httpx.RemoteProtocolError, match="cut off"):
        Face(kind, endpoint.url, "m").stream(ask(), seen)
    assert not any(isinstance(item, Reply) for item in seen)


@pytest.mark.parametrize(
    "event", ['data: {"error": {"message": "out of memory"}}', "data: {oops", "data: [1]"]
)
def test_a_broken_stream_raises(kind: type, endpoint: Endpoint, event: str) -> None:
    """An error in mid-stream, and data that is no chunk, are errors and not answers."""
    endpoint.events(chunk("a"), event, DONE)
    with pytest.raises(httpx.RemoteProtocolError):
        Face(kind, endpoint.url, "m").stream(ask())


def test_a_whole_answer_to_a_stream_request_is_taken(kind: type, endpoint: Endpoint) -> None:
    """An endpoint that ignores the wish to stream still gives its answer, as one piece."""
    endpoint.answer({"content": "all of it"})
    items = Face(kind, endpoint.url, "m").stream(ask())
    assert items[0] == Delta("all of it")
    assert isinstance(items[-1], Reply)


@pytest.mark.parametrize("way", ["generate", "stream"])
def test_an_error_status_carries_the_start_of_the_body(
    kind: type, endpoint: Endpoint, way: str
) -> None:
    """The endpoint's own words reach the user, up to 500 characters; the key never does."""
    endpoint.status, endpoint.kind = 429, "application/json"
    endpoint.body = b"slow down " + b"x" * 600
    with pytest.raises(httpx.HTTPStatusError) as caught:
        getattr(Face(kind, endpoint.url, "m", api_key="secret-key"), way)(ask())
    text = str(caught.value)
    assert "429" in text
    assert "slow down" in text
    assert text.count("x") < 500
    assert "secret-key" not in text
    assert caught.value.response.status_code == 429


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"error": "no"}', b"[" * 100_000, b"\xff"],
)
def test_a_body_that_is_no_completion_raises(kind: type, endpoint: Endpoint, body: bytes) -> None:
    """Anything else with status 200 is an error that says so."""
    endpoint.body = body
    with pytest.raises(httpx.DecodingError, match="no chat completion"):
        Face(kind, endpoint.url, "m").generate(ask())


def test_missing_figures_are_nothing_spent(kind: type, endpoint: Endpoint) -> None:
    """Usage an endpoint leaves out, or gives as nonsense, counts one call and no tokens."""
    endpoint.answer({"content": "x"}, usage={"prompt_tokens": "many", "completion_tokens": -3})
    assert Face(kind, endpoint.url, "m").generate(ask()).usage == Usage(calls=1)


def test_an_odd_prompt_reaches_the_endpoint(kind: type, endpoint: Endpoint) -> None:
    """A NUL byte and a lone surrogate are sent as they are, for the endpoint to judge."""
    endpoint.answer({"content": "x"})
    Face(kind, endpoint.url, "m").generate(ask("a\x00b\ud800"))
    assert endpoint.asked[0]["messages"][0]["content"] == "a\x00b\ud800"


def test_nobody_listening_raises_the_transports_error(kind: type) -> None:
    """A closed port is a connection error, unwrapped."""
    with pytest.raises(httpx.ConnectError):
        Face(kind, "http://127.0.0.1:9/v1", "m").generate(ask())


@pytest.mark.parametrize(
    "bad",
    [
        {"base_url": "localhost:8080"},
        {"base_url": "http://user:pw@host/v1"},
        {"base_url": "http://host/v1?x=1"},
        {"model": ""},
        {"timeout": 0},
        {"params": {"stream": True}},
        {"params": {"n": 2}},
    ],
)
def test_a_set_up_that_cannot_work_is_refused(kind: type, bad: dict[str, Any]) -> None:
    """A constructor says at once what is wrong."""
    arguments = {"base_url": "http://127.0.0.1:9/v1", "model": "m", **bad}
    with pytest.raises(ConfigurationError):
        kind(**arguments)


def test_identity_is_endpoint_and_model_without_credentials(kind: type) -> None:
    """The identity tells endpoints and models apart and holds no key."""
    one = kind("http://a.example/v1/", "m", api_key="secret-key")
    assert one.identity == kind("http://a.example/v1", "m").identity
    assert one.identity != kind("http://b.example/v1", "m").identity
    assert one.identity != kind("http://a.example/v1", "n").identity
    assert "secret-key" not in one.identity + repr(one)
    assert isinstance(one, StreamingBackend)


def test_one_async_backend_serves_several_loops(endpoint: Endpoint) -> None:
    """Each event loop gets its own connections, so a second ``asyncio.run`` works."""
    endpoint.answer({"content": "x"})
    backend = AsyncOpenAICompatibleBackend(endpoint.url, "m")

    async def once() -> str:
        reply = await backend.generate(ask())
        await backend.close()
        return reply.text

    assert [asyncio.run(once()), asyncio.run(once())] == ["x", "x"]
