"""The chat-completions wire format, as pure functions: what is sent, and what comes back.

Source: the OpenAI API reference, "Chat completions" and "Streaming", and what llama.cpp, vLLM and
Ollama answer in practice. The two clients of ``_openai`` do the I/O around this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stepcache._types import JsonObject, Message, ModelCall, Reply, Usage

__all__ = ["EchoFilter", "StreamState", "WireError", "parse_completion", "payload_for", "sse_data"]

# A part of an answer must not be held to the shape demanded of the whole one.
_WHOLE_ANSWER_ONLY = ("response_format", "tools", "tool_choice", "parallel_tool_calls")


class WireError(ValueError):
    """The endpoint sent something that is no chat completion."""


def payload_for(
    call: ModelCall,
    *,
    model: str,
    params: JsonObject,
    prefill: JsonObject | None,
    constrain: bool,
    stream: bool,
) -> dict[str, Any]:
    """The request body of one call.

    Args:
        prefill: Extra fields to send along with an assistant prefix, or None where the endpoint
            cannot continue an assistant turn.
        constrain: Whether the schema of a part is sent as ``response_format``.
    """
    body: dict[str, Any] = {"model": model, **params}
    body["messages"] = [_message(message) for message in call.messages]
    if call.purpose == "patch":
        for name in _WHOLE_ANSWER_ONLY:
            body.pop(name, None)
    if prefill is not None and call.prefix:
        body["messages"].append({"role": "assistant", "content": call.prefix})
        body.update(prefill)
    elif constrain and call.purpose == "patch" and call.schema is not None:
        # Not together with a prefix: a grammar is about a whole reply, never about the rest of one.
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "part", "schema": _plain(call.schema)},
        }
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body


def parse_completion(body: object, *, prefix: str | None = None) -> Reply:
    """The reply in a whole (not streamed) response body.

    Args:
        prefix: The assistant prefix that was sent; cut off where the endpoint echoes it.

    Raises:
        WireError: The body is an error object or holds no choice.
    """
    if not isinstance(body, Mapping):
        raise WireError(f"a JSON object was expected, got {type(body).__name__}")
    _refuse_error(body)
    choice = _first_choice(body)
    message = choice.get("message") if choice is not None else None
    if choice is None or not isinstance(message, Mapping):
        raise WireError("the body holds no choices[0].message")
    text, rich = _content(message.get("content"))
    return _reply(
        text=text.removeprefix(prefix or ""),
        refusal=_text(message.get("refusal")),
        finish_reason=_text(choice.get("finish_reason")),
        usage=_usage(body.get("usage")),
        model=_text(body.get("model")),
        message=message if rich or message.get("tool_calls") or message.get("audio") else None,
    )


def sse_data(lines: Iterator[str]) -> Iterator[str]:
    """The ``data`` of every server-sent event (WHATWG HTML, 9.2.6); other fields are ignored."""
    reader = SseReader()
    for line in lines:
        data = reader.feed(line)
        if data is not None:
            yield data
    data = reader.feed("")
    if data is not None:
        yield data


class SseReader:
    """Server-sent events, line by line."""

    def __init__(self) -> None:
        self._data: list[str] = []

    def feed(self, line: str) -> str | None:
        """The data of the event that this line (without its end) closes, or None."""
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            return None
        data, self._data = self._data, []
        return "\n".join(data) if data else None


class EchoFilter:
    """Cuts a sent prefix off the front of a stream, if the endpoint repeats it.

    llama.cpp repeats it in whole answers and leaves it out of streams; others do as they like.
    """

    def __init__(self, prefix: str | None) -> None:
        self._prefix = prefix or ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """What of ``piece``, and of what was held back before, is surely new text."""
        if not self._prefix:
            return piece
        self._held += piece
        if len(self._held) < len(self._prefix) and self._prefix.startswith(self._held):
            return ""
        return self.flush()

    def flush(self) -> str:
        """What is left when no more will come."""
        text = self._held.removeprefix(self._prefix)
        self._prefix = self._held = ""
        return text


class StreamState:
    """What a stream of chunks adds up to."""

    def __init__(self, prefix: str | None = None) -> None:
        self.done = False
        self._echo = EchoFilter(prefix)
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._tools: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None
        self._usage = Usage(calls=1)
        self._model: str | None = None

    def feed(self, data: str) -> str:
        """Take the data of one event; the new text in it, empty where there is none.

        Raises:
            WireError: The data is not JSON, or an error the endpoint reports in mid-stream.
        """
        if data.strip() == "[DONE]":
            self.done = True
            return ""
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise WireError(
                f"the stream holds an event that is not JSON: {data[:200]!r}"
            ) from error
        if not isinstance(chunk, Mapping):
            raise WireError(f"the stream holds an event that is no object: {data[:200]!r}")
        _refuse_error(chunk)
        self._model = self._model or _text(chunk.get("model"))
        if isinstance(chunk.get("usage"), Mapping):
            self._usage = _usage(chunk["usage"])
        choice = _first_choice(chunk)
        if choice is None:
            return ""
        self._finish = _text(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        return self._keep(self._take(delta)) if isinstance(delta, Mapping) else ""

    def rest(self) -> str:
        """Text held back so far that turned out to be no echo. Call once, at the end."""
        return self._keep(self._echo.flush())

    def reply(self) -> Reply:
        """The whole reply, once the endpoint has said that it is whole.

        Raises:
            WireError: The stream ended before that.
        """
        if not self.done and self._finish is None:
            raise WireError("the stream ended without [DONE] or a finish_reason: it is cut off")
        message: dict[str, Any] | None = None
        if self._tools:
            tools = [self._tools[index] for index in sorted(self._tools)]
            message = {"role": "assistant", "content": "".join(self._text), "tool_calls": tools}
        return _reply(
            text="".join(self._text),
            refusal="".join(self._refusal) or None,
            finish_reason=self._finish,
            usage=self._usage,
            model=self._model,
            message=message,
        )

    def _keep(self, piece: str) -> str:
        if piece:
            self._text.append(piece)
        return piece

    def _take(self, delta: Mapping[str, Any]) -> str:
        self._refusal.append(_text(delta.get("refusal")) or "")
        calls = delta.get("tool_calls")
        for position, part in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(part, Mapping):
                self._take_tool(position, part)
        return self._echo.feed(_content(delta.get("content"))[0])

    def _take_tool(self, position: int, part: Mapping[str, Any]) -> None:
        index = part.get("index")
        slot = self._tools.setdefault(
            index if isinstance(index, int) else position,
            {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
        )
        slot["id"] = slot["id"] or _text(part.get("id")) or ""
        function = part.get("function")
        if isinstance(function, Mapping):
            for name in ("name", "arguments"):
                slot["function"][name] += _text(function.get(name)) or ""


def _message(message: Message) -> dict[str, Any]:
    # ``extra`` last: content that is more than text (images) takes the place of the text.
    return {"role": message.role, "content": message.text, **_plain(message.extra)}


def _plain(value: Any) -> Any:
    """Read-only mappings and tuples as the dicts and lists that ``json`` writes."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _reply(
    *,
    text: str,
    refusal: str | None,
    finish_reason: str | None,
    usage: Usage,
    model: str | None,
    message: Mapping[str, Any] | None,
) -> Reply:
    return Reply(
        text=text or refusal or "",
        finish_reason=finish_reason,
        usage=usage,
        model=model,
        refusal=bool(refusal) or finish_reason == "content_filter",
        reusable=message is None,
        message=None if message is None else json.dumps(message),
    )


def _refuse_error(body: Mapping[str, Any]) -> None:
    error = body.get("error")
    if error:
        raise WireError(f"the endpoint reports an error: {json.dumps(error)[:500]}")


def _first_choice(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return None


def _content(content: object) -> tuple[str, bool]:
    """The text of a message's content, and whether it holds more than text."""
    if content is None:
        return "", False
    if isinstance(content, str):
        return content, False
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        return "".join(texts), len(texts) != len(content)
    raise WireError(f"message.content is {type(content).__name__}, neither text nor parts")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _usage(usage: object) -> Usage:
    def count(name: str) -> int:
        value = usage.get(name) if isinstance(usage, Mapping) else None
        return value if isinstance(value, int) and value > 0 else 0

    return Usage(
        calls=1,
        prompt_tokens=count("prompt_tokens"),
        completion_tokens=count("completion_tokens"),
    )
