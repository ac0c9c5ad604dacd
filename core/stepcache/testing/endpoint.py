"""An OpenAI-compatible chat endpoint on loopback with scripted answers: real HTTP, no model."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from stepcache._types import Reply

__all__ = ["ScriptedEndpoint"]

_PIECE = 8
"""Characters of a tool call's arguments in one event of a stream."""

Script = Callable[[Mapping[str, Any]], "str | Reply | int | dict[str, Any]"]


class ScriptedEndpoint:
    """Serves ``POST /v1/chat/completions``, streaming included, and counts what it was asked.

    Args:
        answer: From the request's JSON to the answer: a text, a ``Reply`` (finish reason, refusal,
            usage), a whole assistant message as a dictionary (tool calls), or an HTTP status to
            fail with.

    Tokens are counted as words, in ``usage`` of every answer and in :attr:`tokens`. Streams honour
    ``stream_options.include_usage`` and send a tool call's arguments in pieces; the model asked for
    is the model named in the answer.

    Example:
        ```python
        with ScriptedEndpoint(lambda request: "x = 5") as endpoint:
            model = ChatOpenAI(base_url=endpoint.url, api_key="none", model="scripted")
        ```
    """

    def __init__(self, answer: Script) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.tokens = 0
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Base URL, with ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def calls(self) -> int:
        """Requests so far."""
        return len(self.requests)

    def __enter__(self) -> ScriptedEndpoint:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def replied(self, request: dict[str, Any]) -> tuple[dict[str, Any], str, dict[str, int]] | int:
        """Message, finish reason and usage for one request, or a status to fail with."""
        with self._lock:
            self.requests.append(request)
        answer = self.answer(request)
        if isinstance(answer, int):
            return answer
        reason = "stop"
        if isinstance(answer, dict):
            message = {"role": "assistant", "content": None, **answer}
            reason = "tool_calls" if message.get("tool_calls") else "stop"
        elif isinstance(answer, Reply):
            message = {"role": "assistant", "content": answer.text}
            if answer.refusal:
                message.update(content=None, refusal=answer.text)
            reason = answer.finish_reason or "stop"
        else:
            message = {"role": "assistant", "content": answer}
        prompt = sum(len(str(m.get("content") or "").split()) for m in request["messages"])
        completion = len(_said(message).split())
        total = prompt + completion
        with self._lock:
            self.tokens += total
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": total,
        }
        return message, reason, usage


def _said(message: Mapping[str, Any]) -> str:
    """What of a message counts as made by the model; ids are chance."""
    if message.get("content") or message.get("refusal"):
        return str(message.get("content") or message["refusal"])
    calls = message.get("tool_calls") or ()
    return " ".join(f"{c['function']['name']} {c['function']['arguments']}" for c in calls)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no error of ours; anything else shows in its answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: ScriptedEndpoint

    def log_message(self, *args: object) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        """Answer one request."""
        length = int(self.headers.get("content-length") or 0)
        request = json.loads(self.rfile.read(length))
        replied = self.endpoint.replied(request)
        if isinstance(replied, int):
            self._json({"error": {"message": "scripted failure"}}, replied)
            return
        message, reason, usage = replied
        base = {"id": f"chat-{self.endpoint.calls}", "created": 1, "model": request.get("model")}
        if request.get("stream"):
            self._stream(_events(base, request, message, reason, usage))
            return
        choice = {"index": 0, "finish_reason": reason, "message": message}
        choices = [{**choice, "index": i} for i in range(request.get("n") or 1)]
        self._json({**base, "object": "chat.completion", "usage": usage, "choices": choices}, 200)

    def _json(self, value: object, status: int) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


def _events(
    base: dict[str, Any],
    request: Mapping[str, Any],
    message: dict[str, Any],
    reason: str,
    usage: dict[str, int],
) -> Iterator[dict[str, Any]]:
    def event(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**base, "object": "chat.completion.chunk", "choices": [choice]}

    yield event({"role": "assistant", "content": ""})
    for piece in re.findall(r"\S+\s*|\s+", str(message.get("content") or "")):
        yield event({"content": piece})
    for index, call in enumerate(message.get("tool_calls") or ()):
        arguments = str(call["function"]["arguments"])
        opening = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield event({"tool_calls": [opening]})
        for at in range(0, len(arguments), _PIECE):
            part = {"index": index, "function": {"arguments": arguments[at : at + _PIECE]}}
            yield event({"tool_calls": [part]})
    if message.get("refusal"):
        yield event({"refusal": message["refusal"]})
    yield event({}, reason)
    if (request.get("stream_options") or {}).get("include_usage"):
        yield {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}
