"""A deterministic endpoint that speaks the OpenAI protocol over loopback HTTP."""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

with warnings.catch_warnings():
    # Of the oldest supported host, as it is imported over a newer pydantic.
    warnings.filterwarnings("ignore", "The 'validate_default' attribute", UserWarning)
    from llama_index.llms.openai_like import OpenAILike

SECRET = "sk-never-to-be-kept"
_EQUATION = re.compile(r"(-?\d*)([a-z]) ?([+-]) ?(\d+) ?= ?(-?\d+)")
_ONLY = re.compile(r"only the keys: ([^.]+)\.")
_KEYS = re.compile(r"keys:? ([^.\n]+)")


@dataclass
class Endpoint:
    """A small model: right about linear equations, dutiful about JSON, talkative otherwise."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    """Any other value than 200 is answered with an error."""
    finish: str | None = "stop"
    """The finish reason to claim; None ends a stream without one."""
    wrong: int = 0
    """How many of the next answers to equations are to be wrong."""
    delivered: int = 0
    """Tokens told of so far, prompt and completion."""

    @property
    def calls(self) -> int:
        return len(self.asked)

    def answer(self, body: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Content and tool calls for a request."""
        if "prompt" in body:
            return self._say(body["prompt"]), []
        messages = body["messages"]
        said = [m for m in messages if m["role"] == "user"]
        text = _text(said[-1]) if said else ""
        tools = body.get("tools") or []
        if tools and messages[-1]["role"] != "tool" and body.get("tool_choice") != "none":
            function = tools[0]["function"]
            arguments = json.dumps(_sample(function.get("parameters") or {}, text))
            call = {"name": function["name"], "arguments": arguments}
            return "", [{"id": f"call_{self.calls}", "type": "function", "function": call}]
        form = body.get("response_format") or {}
        if form.get("type") == "json_schema":
            return json.dumps(_sample(form["json_schema"]["schema"], text)), []
        return self._say(text), []

    def _say(self, text: str) -> str:
        keys = _ONLY.search(text) or _KEYS.search(text)
        if keys and "JSON" in text:
            names = re.findall(r"[a-z_]+", keys[1].replace(" and ", ", "))
            return json.dumps({name: f"{name} of it" for name in names})
        equation = _EQUATION.search(text)
        if equation is None:
            return f"You said {len(text)} characters. They began with {text[:12]!r}. That is all."
        a, v, sign, b, c = equation.groups()
        factor = {"": 1, "-": -1}.get(a) or int(a)
        rest = int(c) - int(sign + b)
        self.wrong, off = max(0, self.wrong - 1), int(self.wrong > 0)
        move = "Subtract" if sign == "+" else "Add"
        return (
            f"{move} {b} {'from' if sign == '+' else 'to'} both sides: {a}{v} = {rest}\n\n"
            f"Divide both sides by {factor}: {v} = {Fraction(rest, factor) + off}"
        )


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(p.get("text", "") for p in content)


def _sample(schema: dict[str, Any], text: str) -> Any:
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return {k: _sample(v, text) for k, v in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [_sample(schema.get("items") or {}, text)]
    if kind in ("integer", "number"):
        found = re.search(r"\d+", text)
        return int(found[0]) if found else 1
    if kind == "boolean":
        return True
    found = re.search(r"'([^']+)'", text)
    return found[1] if found else "some words"


class _Handler(BaseHTTPRequestHandler):
    endpoint: Endpoint

    def log_message(self, *_: Any) -> None:
        """Stay silent."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        endpoint = self.endpoint
        endpoint.asked.append(body)
        if endpoint.status != 200:
            self._whole({"error": {"message": "the model is out"}}, endpoint.status)
            return
        content, calls = endpoint.answer(body)
        finish = "tool_calls" if calls else endpoint.finish
        prompt = len(json.dumps(body.get("messages", body.get("prompt"))).split())
        done = len((content + json.dumps(calls)).split())
        usage = {"prompt_tokens": prompt, "completion_tokens": done, "total_tokens": prompt + done}
        endpoint.delivered += prompt + done
        base = {"id": f"c{endpoint.calls}", "created": 1, "model": body["model"]}
        if self.path.endswith("/chat/completions") and body.get("stream"):
            self._stream(base, content, calls, finish, usage, body)
        elif self.path.endswith("/chat/completions"):
            message = {"role": "assistant", "content": content or None}
            if calls:
                message["tool_calls"] = calls
            choice = {"index": 0, "finish_reason": finish, "message": message}
            self._whole({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        else:
            choice = {"index": 0, "finish_reason": finish, "text": content, "logprobs": None}
            self._whole({**base, "object": "text_completion", "choices": [choice], "usage": usage})

    def _whole(self, body: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, base, content, calls, finish, usage, body) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        choices: list[list[dict[str, Any]]] = [_choice({"role": "assistant", "content": ""})]
        choices += [_choice({"tool_calls": [{"index": 0, **call}]}) for call in calls]
        choices += [
            _choice({"content": piece}) for piece in re.findall(r"\S*\s*", content) if piece
        ]
        if finish is not None:
            choices.append(_choice({}, finish))
        chunks: list[dict[str, Any]] = [{"choices": choice} for choice in choices]
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({"choices": [], "usage": usage})
        try:
            for chunk in chunks:
                event = {**base, "object": "chat.completion.chunk", **chunk}
                self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reader closed early, which some tests do
        self.close_connection = True


def _choice(delta: dict[str, Any], finish: str | None = None) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": delta, "finish_reason": finish}]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A running endpoint that counts what it is asked."""
    endpoint = Endpoint()
    handler = type("Handler", (_Handler,), {"endpoint": endpoint})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield endpoint
    server.shutdown()
    server.server_close()


@pytest.fixture
def inner(endpoint: Endpoint) -> Callable[..., OpenAILike]:
    """Makes an ordinary LlamaIndex LLM at the endpoint."""

    def make(**changes: Any) -> OpenAILike:
        settings: dict[str, Any] = {
            "model": "small",
            "api_base": endpoint.url,
            "api_key": SECRET,
            "is_chat_model": True,
            "is_function_calling_model": True,
            "max_retries": 0,
            "temperature": 0.0,
            "timeout": 20.0,
        }
        return OpenAILike(**{**settings, **changes})

    return make
