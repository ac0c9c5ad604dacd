"""Bodies of chat-completions requests as StepCache's requests, and questions of ours as bodies.

Source: the OpenAI API reference, "Chat completions", and the fields that vLLM, llama.cpp and Ollama
add. What is not understood makes the body *unreadable*: it is handed on as it is. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from stepcache._types import Contract, JsonObject, Message, ModelCall, Request
from stepcache.backends._wire import payload_for

__all__ = ["ChatBody", "Unreadable", "payload_of", "read_body", "with_counts"]

_RESERVED = "stepcache:headers"
"""Under this name a request's parameters hold the header fields that may change an answer."""

_CONTRACT = ("messages", "tools", "tool_choice", "response_format")
_TRANSPORT = ("stream", "stream_options")
# Demands on the answer's form that no task reads: such answers are reused byte for byte.
_GRAMMARS = frozenset(
    (
        *("grammar", "json_schema", "structured_outputs", "guided_json", "guided_regex"),
        *("guided_choice", "guided_grammar", "format", "functions", "function_call", "modalities"),
        *("audio", "continue_final_message", "prompt", "regex", "ebnf", "structural_tag"),
    )
)


class Unreadable(ValueError):
    """A body that is not understood; the upstream will know what to say of it."""


@dataclass(frozen=True, slots=True)
class ChatBody:
    """A body that was understood."""

    fields: dict[str, Any]
    """The body itself."""
    request: Request

    @property
    def streams(self) -> bool:
        return self.fields.get("stream") is True

    @property
    def counts(self) -> bool:
        """Whether a stream is to end with its token counts."""
        options = self.fields.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True

    @property
    def model(self) -> str:
        """The model asked for, empty where none is named."""
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""

    @property
    def tools(self) -> tuple[JsonObject, ...]:
        return self.request.contract.tools


def read_body(
    raw: bytes, *, endpoint: str, namespace: str, headers: Sequence[Any] = (), query: str = ""
) -> ChatBody:
    """The request in a body.

    Args:
        endpoint: Address of the upstream's API, for the model's identity.
        namespace: The wall around this client's entries.
        headers: Header fields that may change an answer.
        query: The address's query, which may too.

    Raises:
        Unreadable: The body is not JSON, or says something that is not understood.
    """
    fields = _object(raw)
    if _RESERVED in fields:
        raise Unreadable("a name of ours is used")
    for name in _TRANSPORT:
        _check(fields.get(name), name)
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Unreadable("there are no messages")
    numbers: dict[str, int] = {}
    params: dict[str, Any] = {
        name: value for name, value in fields.items() if name not in (*_CONTRACT, *_TRANSPORT)
    }
    if headers or query:
        params[_RESERVED] = [list(headers), query]
    model = fields.get("model")
    return ChatBody(
        fields,
        Request(
            messages=tuple(_message(message, numbers) for message in messages),
            model=f"{endpoint} {model}" if isinstance(model, str) else endpoint,
            params=params,
            contract=_contract(fields),
            namespace=namespace,
        ),
    )


def payload_of(
    body: ChatBody, call: ModelCall, *, prefill: bool, constrain: bool, stream: bool
) -> bytes:
    """The body of a question that the client did not ask itself: a missing part, a second try.

    Args:
        prefill: Whether the upstream goes on from a closing assistant message.
        constrain: Whether the schema of a part may be sent along.
    """
    model = body.model
    payload = payload_for(
        call,
        model=model,
        params={
            name: value
            for name, value in body.fields.items()
            if name not in ("messages", "model", *_TRANSPORT)
        },
        prefill={} if prefill else None,
        constrain=constrain or _has_schema(body.fields.get("response_format")),
        stream=stream,
    )
    if not model:
        del payload["model"]
    # The client's own messages as they came: what identity leaves out, the model must still see.
    for at, message in enumerate(call.messages):
        if at < len(body.request.messages) and message == body.request.messages[at]:
            payload["messages"][at] = body.fields["messages"][at]
    return json.dumps(payload).encode("ascii")


def with_counts(body: ChatBody) -> bytes:
    """The client's own body, asking for a stream's token counts too."""
    options = {**(body.fields.get("stream_options") or {}), "include_usage": True}
    return json.dumps({**body.fields, "stream_options": options}).encode("ascii")


# --- reading -----------------------------------------------------------------------------------


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw, object_pairs_hook=_unambiguous, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        raise Unreadable("the body is not JSON") from error
    if not isinstance(value, dict):
        raise Unreadable("the body is no object")
    return value


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a name given twice nobody knows which value the upstream will take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is given twice")
    return found


def _no_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check(value: Any, name: str) -> None:
    kinds: tuple[type, ...] = (bool,) if name == "stream" else (dict,)
    if value is not None and not isinstance(value, kinds):
        raise Unreadable(f"{name} is of another kind")


def _message(message: Any, numbers: dict[str, int]) -> Message:
    """One turn. Ids of tool calls are chance, so they are numbered in order of appearance: the
    second run of an agent is then the same request as the first."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise Unreadable("a message has no role")
    extra = {k: v for k, v in message.items() if k not in ("role", "content") and v is not None}
    text = _text(message.get("content"))
    if text is None:
        text, extra["content"] = "", message["content"]
    calls = extra.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise Unreadable("tool_calls is no list of objects")
        extra["tool_calls"] = [
            {**call, "id": _numbered(call["id"], numbers)} if "id" in call else call
            for call in calls
        ]
    if "tool_call_id" in extra:
        extra["tool_call_id"] = _numbered(extra["tool_call_id"], numbers)
    return Message(role=message["role"], text=text, extra=extra)


def _numbered(given: Any, numbers: dict[str, int]) -> int:
    if not isinstance(given, str):
        raise Unreadable("the id of a tool call is no text")
    return numbers.setdefault(given, len(numbers))


def _text(content: Any) -> str | None:
    """The text of content that is nothing but one text; None when there is more to it."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        part = content[0]
        if part.get("type") == "text" and set(part) == {"type", "text"}:
            return part["text"] if isinstance(part["text"], str) else None
    return None


def _contract(fields: Mapping[str, Any]) -> Contract:
    tools = fields.get("tools") or ()
    if not isinstance(tools, (list, tuple)) or not all(isinstance(tool, dict) for tool in tools):
        raise Unreadable("tools is no list of objects")
    response_format = fields.get("response_format")
    schema: JsonObject | None = None
    opaque = any(fields.get(name) is not None for name in _GRAMMARS)
    if isinstance(response_format, dict) and response_format.get("type") == "json_schema":
        inner = response_format.get("json_schema")
        if isinstance(inner, dict) and isinstance(inner.get("schema"), dict):
            schema = inner["schema"]
            response_format = {**response_format, "json_schema": {**inner, "schema": None}}
        else:
            opaque = True
    elif response_format is not None and response_format not in (
        {"type": "text"},
        {"type": "json_object"},
    ):
        opaque = True
    return Contract(
        tools=tuple(tools),
        tool_choice=fields.get("tool_choice"),
        schema=schema,
        response_format=response_format,
        opaque=opaque,
    )


def _has_schema(response_format: Any) -> bool:
    """Whether the client itself holds the answer to a schema, so that the upstream can do it."""
    return isinstance(response_format, Mapping) and response_format.get("type") == "json_schema"
