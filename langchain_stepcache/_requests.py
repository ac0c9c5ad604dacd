"""LangChain's calls as StepCache's requests. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import BaseModel

from stepcache import Contract, Message

__all__ = [
    "contract_of",
    "from_neutral",
    "identity_of",
    "neutral_message",
    "neutral_messages",
    "plain_text",
]

_ROLES = {"human": "user", "ai": "assistant"}
# Attributes that say where an answer comes from; LangChain's identifying parameters leave them out.
_ENDPOINT = (
    "base_url",
    "openai_api_base",
    "azure_endpoint",
    "endpoint",
    "endpoint_url",
    "api_base",
    "openai_organization",
    "organization",
    "default_headers",
    "default_query",
)
_MACHINERY = frozenset(
    (
        *("cache", "verbose", "callbacks", "tags", "metadata", "name", "rate_limiter", "profile"),
        *("disable_streaming", "streaming", "stream_usage", "max_retries", "request_timeout", "i"),
    )
)


def neutral_messages(messages: Sequence[BaseMessage]) -> tuple[Message, ...]:
    """LangChain messages as role, text and extra; volatile metadata left out.

    Ids of tool calls are chance, so they are numbered in order of appearance: the second run of an
    agent is then the same request as the first.
    """
    numbers: dict[str, int] = {}
    return tuple(
        neutral_message(
            kind=message.type,
            content=message.content,
            name=message.name,
            tool_calls=getattr(message, "tool_calls", None) or [],
            tool_call_id=getattr(message, "tool_call_id", None),
            status=getattr(message, "status", None),
            role=getattr(message, "role", None),
            numbers=numbers,
        )
        for message in messages
    )


def neutral_message(
    *,
    kind: str,
    content: Any,
    name: str | None,
    tool_calls: Sequence[Mapping[str, Any]],
    tool_call_id: str | None,
    status: str | None,
    role: str | None,
    numbers: dict[str, int],
) -> Message:
    """One message of either form: a live object's fields, or those of its serialised record."""
    extra: dict[str, Any] = {}
    text = plain_text(content)
    if text is None:
        text, extra["content"] = "", content
    if name:
        extra["name"] = name
    if tool_calls:
        extra["tool_calls"] = [
            {
                "name": call.get("name"),
                "args": call.get("args"),
                "id": numbers.setdefault(str(call.get("id")), len(numbers)),
            }
            for call in tool_calls
        ]
    if tool_call_id is not None:
        extra["tool_call_id"] = numbers.setdefault(tool_call_id, len(numbers))
    if status not in (None, "success"):
        extra["status"] = status
    return Message(role=role or _ROLES.get(kind, kind), text=text, extra=extra)


def from_neutral(
    messages: Sequence[Message], originals: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """Neutral messages as LangChain's; those that equal an original's are that original."""
    neutral = neutral_messages(originals)
    built: list[BaseMessage] = []
    for index, message in enumerate(messages):
        if index < len(originals) and neutral[index] == message:
            built.append(originals[index])
        else:
            built.append(_built(message))
    return built


def _built(message: Message) -> BaseMessage:
    match message.role:
        case "user":
            return HumanMessage(message.text)
        case "assistant":
            return AIMessage(message.text)
        case "system":
            return SystemMessage(message.text)
        case "tool":
            return ToolMessage(message.text, tool_call_id=str(message.extra.get("tool_call_id")))
        case role:
            return ChatMessage(content=message.text, role=role)


def contract_of(
    kwargs: Mapping[str, Any], known: Mapping[str, Any] | None = None
) -> tuple[Contract, dict[str, Any]]:
    """The output contract in a call's keyword arguments, and the arguments that are left.

    Args:
        known: The schema behind a bare ``json_object``, where the host has told it.
    """
    rest = dict(kwargs)
    tools = rest.pop("tools", None) or ()
    tool_choice = rest.pop("tool_choice", None)
    response_format = rest.pop("response_format", None)
    schema, other, opaque = _schema_of(response_format)
    if opaque and known is not None:
        schema, opaque = known, False
    if not isinstance(tools, (list, tuple)) or not all(isinstance(t, Mapping) for t in tools):
        rest["tools"], tools, opaque = str(type(tools)), (), True
    contract = Contract(
        tools=tuple(tools),
        tool_choice=tool_choice,
        # The caller may change it while the model is asked; what is kept is what was asked.
        schema=deepcopy(schema),
        response_format=other,
        opaque=opaque,
    )
    return contract, rest


def _schema_of(response_format: Any) -> tuple[Mapping[str, Any] | None, Any, bool]:
    """Schema, remaining identity, and whether the demand cannot be read."""
    if response_format is None:
        return None, None, False
    if isinstance(response_format, type) and issubclass(response_format, BaseModel):
        # The model is told the name and the schema; where the class lives it cannot know.
        return response_format.model_json_schema(), {"class": response_format.__name__}, False
    if isinstance(response_format, Mapping):
        inner = response_format.get("json_schema")
        if isinstance(inner, Mapping) and isinstance(inner.get("schema"), Mapping):
            other = {**response_format, "json_schema": {**inner, "schema": None}}
            return inner["schema"], other, False
    return None, response_format, True


def identity_of(llm: Any) -> dict[str, Any]:
    """What tells one chat model from another, read from its live attributes."""
    identity: dict[str, Any] = {"class": f"{type(llm).__module__}.{type(llm).__qualname__}"}
    params = dict(getattr(llm, "_identifying_params", None) or {})
    if not params:
        fields = type(llm).model_fields
        params = {n: getattr(llm, n, None) for n in fields if n not in _MACHINERY}
    params.pop("stream", None)
    identity["params"] = {name: _structural(value) for name, value in params.items()}
    for name in _ENDPOINT:
        value = getattr(llm, name, None)
        if value is not None:
            identity[name] = _structural(value)
    return identity


def _structural(value: Any, depth: int = 0) -> Any:
    """A JSON form of a model's attribute: machinery is its class, never its address."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if depth < 8 and isinstance(value, Mapping):
        return {str(k): _structural(v, depth + 1) for k, v in value.items()}
    if depth < 8 and isinstance(value, (list, tuple)):
        return [_structural(v, depth + 1) for v in value]
    if depth < 8 and isinstance(value, BaseMessage):
        return [value.type, _structural(value.content, depth + 1)]
    return f"{type(value).__module__}.{type(value).__qualname__}"


def plain_text(content: Any) -> str | None:
    """The text of a message that is nothing but one text; None when there is more to it."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1:
        block = content[0]
        if isinstance(block, str):
            return block
        if isinstance(block, Mapping) and block.get("type") == "text":
            text = block.get("text")
            if isinstance(text, str) and set(block) <= {"type", "text", "id", "index"}:
                return text
    return None
