"""Between LangChain's messages and StepCache's values. Pure; revives no objects.

What is stored of an answer is a JSON record of our own: a version, the content and a white list of
fields. Nothing that LangChain's ``dumps`` writes is ever handed to its ``load``.
"""

from __future__ import annotations

import json
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
from langchain_core.outputs import ChatGeneration, Generation
from pydantic import BaseModel

from langchain_stepcache._tools import numbered_ids, renewed_ids, why_not_callable
from stepcache import Contract, Message, Outcome, Reply, Usage

__all__ = [
    "calls_in",
    "contract_of",
    "from_neutral",
    "generations_record",
    "identity_of",
    "message_from",
    "neutral_messages",
    "reply_from",
    "restored_generations",
    "usage_metadata",
]

_VERSION = 1
_THOUGHTS = frozenset(("reasoning", "thinking", "redacted_thinking"))
_ROLES = {"human": "user", "ai": "assistant"}
# Kept of an answer beside its text: what its reader can see. Ids, times and token counts of the
# call that made it belong to that call.
_KEPT_ADDITIONAL = ("refusal", "reasoning_content", "function_call", "parsed", "audio")
_DROPPED_METADATA = frozenset({"id", "token_usage", "usage", "logprobs", "created", "headers"})
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


# --- requests ----------------------------------------------------------------------------------


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
    text = _plain_text(content)
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


# --- answers -----------------------------------------------------------------------------------


def reply_from(
    generation: ChatGeneration,
    llm_output: Mapping[str, Any] | None = None,
    tools: Sequence[Any] = (),
) -> Reply:
    """A generation as a reply, with the record it can be rebuilt from.

    Args:
        tools: What was offered to the model; calls of anything else make the reply one that is not
            kept.
    """
    message = generation.message
    metadata = {
        **(llm_output or {}),
        **(generation.generation_info or {}),
        **message.response_metadata,
    }
    tool_calls = list(getattr(message, "tool_calls", None) or [])
    invalid = list(getattr(message, "invalid_tool_calls", None) or [])
    text = _plain_text(message.content)
    if text is None and not tool_calls and not invalid and _says_nothing(message.content):
        text = ""
    record = {
        "v": _VERSION,
        "kind": "chat",
        "content": message.content if text is None else None,
        "blocks": isinstance(message.content, list),
        "name": message.name,
        "tool_calls": tool_calls,
        "invalid_tool_calls": invalid,
        "additional_kwargs": _kept_additional(message.additional_kwargs),
        "response_metadata": {
            k: v for k, v in metadata.items() if k not in _DROPPED_METADATA and _is_json(v)
        },
        "generation_info": {
            k: v
            for k, v in (generation.generation_info or {}).items()
            if k not in _DROPPED_METADATA and _is_json(v)
        },
    }
    encoded = _dumped(numbered_ids(record))
    refused = "it could not be read" if invalid else why_not_callable(tool_calls, tools)
    finish_reason = f"tool call: {refused}" if refused else _finish_reason(metadata)
    return Reply(
        text=text or "",
        # What cannot be written down cannot be given back whole.
        finish_reason=finish_reason if encoded is not None else "not writable",
        usage=_usage(message, metadata),
        message=encoded,
        model=_text(metadata.get("model_name") or metadata.get("model")),
        refusal=_refuses(message),
        reusable=text is not None and not tool_calls and not invalid and encoded is not None,
    )


def message_from(
    outcome: Outcome, *, parsed: bool = False
) -> tuple[AIMessage, dict[str, Any] | None]:
    """A fresh message for an outcome, without an id, and its generation info.

    Usage is what this request spent. The outcome's summary stands in
    ``response_metadata["stepcache"]``.

    Args:
        parsed: Whether the caller's parser looks for the parsed answer beside its text.
    """
    record = _record(outcome.message, "chat") or {}
    return _restored(record, outcome.text, outcome, parsed=parsed)


def calls_in(outcome: Outcome) -> list[Any]:
    """The tool calls an outcome's answer makes."""
    record = _record(outcome.message, "chat") or {}
    calls = record.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _restored(
    record: Mapping[str, Any], text: str, outcome: Outcome, *, parsed: bool = False
) -> tuple[AIMessage, dict[str, Any] | None]:
    record = renewed_ids(record)
    additional = dict(record.get("additional_kwargs") or {})
    if parsed or "parsed" in additional:
        # From the text itself: a patch changed it, and field aliases are only in it.
        additional["parsed"] = _parsed(text)
    content: Any = record.get("content")
    if content is None:
        content = [{"type": "text", "text": text}] if record.get("blocks") else text
    message = AIMessage(
        content=content,
        name=record.get("name"),
        tool_calls=record.get("tool_calls") or [],
        invalid_tool_calls=record.get("invalid_tool_calls") or [],
        additional_kwargs=additional,
        response_metadata={
            **(record.get("response_metadata") or {}),
            "stepcache": outcome.summary(),
        },
        usage_metadata=usage_metadata(outcome.spent),
    )
    return message, record.get("generation_info") or None


def usage_metadata(usage: Usage) -> Any:
    """LangChain's usage fields, all three of them; None where a model was asked and did not say
    what that cost."""
    if usage.calls and not usage.tokens:
        return None
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
    }


def generations_record(generations: Sequence[Generation]) -> str | None:
    """A record of several generations, or of plain ones, that are served as they came; None when
    one of them has no JSON form."""
    items: list[dict[str, Any]] = []
    for generation in generations:
        if isinstance(generation, ChatGeneration):
            reply = reply_from(generation)
            items.append({"text": reply.text, "chat": _record(reply.message, "chat")})
        else:
            info = generation.generation_info
            items.append({"text": generation.text, "generation_info": info})
    return _dumped({"v": _VERSION, "kind": "generations", "items": items})


def restored_generations(outcome: Outcome) -> list[Generation] | None:
    """What :func:`generations_record` was given; None when the outcome holds something else."""
    record = _record(outcome.message, "generations")
    if record is None:
        return None
    restored: list[Generation] = []
    for item in record["items"]:
        if "chat" in item:
            message, info = _restored(item["chat"] or {}, item["text"], outcome)
            restored.append(ChatGeneration(message=message, generation_info=info))
        else:
            info = item["generation_info"]
            restored.append(Generation(text=item["text"], generation_info=info))
    return restored


# --- small pieces ------------------------------------------------------------------------------


def _plain_text(content: Any) -> str | None:
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


def _says_nothing(content: Any) -> bool:
    """Whether content in blocks is no answer: thoughts and blank texts only."""
    return all(
        isinstance(block, Mapping)
        and (
            block.get("type") in _THOUGHTS
            or (block.get("type") == "text" and not str(block.get("text") or "").strip())
        )
        for block in content
    )


def _refuses(message: BaseMessage) -> bool:
    if message.additional_kwargs.get("refusal"):
        return True
    content = message.content if isinstance(message.content, list) else []
    blocks = [
        block.get("value") if block.get("type") == "non_standard" else block
        for block in content
        if isinstance(block, Mapping)
    ]
    return any(isinstance(block, Mapping) and block.get("type") == "refusal" for block in blocks)


def _finish_reason(metadata: Mapping[str, Any]) -> str | None:
    for name in ("finish_reason", "stop_reason", "done_reason"):
        if isinstance(metadata.get(name), str):
            return str(metadata[name])
    return None


def _usage(message: BaseMessage, metadata: Mapping[str, Any]) -> Usage:
    usage = getattr(message, "usage_metadata", None)
    if usage:
        return Usage(
            calls=1,
            prompt_tokens=int(usage.get("input_tokens") or 0),
            completion_tokens=int(usage.get("output_tokens") or 0),
        )
    counted = metadata.get("token_usage")
    if isinstance(counted, Mapping):
        return Usage(
            calls=1,
            prompt_tokens=int(counted.get("prompt_tokens") or 0),
            completion_tokens=int(counted.get("completion_tokens") or 0),
        )
    return Usage(calls=1)


def _kept_additional(additional: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in _KEPT_ADDITIONAL:
        value = additional.get(name)
        if isinstance(value, BaseModel):
            value = value.model_dump(mode="json")
        if value is not None and _is_json(value):
            kept[name] = value
    return kept


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _is_json(value: Any) -> bool:
    return _dumped(value) is not None


def _dumped(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _record(message: str | None, kind: str) -> dict[str, Any] | None:
    if message is None:
        return None
    try:
        record = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if isinstance(record, dict) and record.get("v") == _VERSION and record.get("kind") == kind:
        return record
    return None
