"""StepCache's answers as LangChain's messages, and back. Pure; revives no objects.

What is stored of an answer is a JSON record of our own: a version, the content and a white list of
fields. Nothing that LangChain's ``dumps`` writes is ever handed to its ``load``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, Generation
from pydantic import BaseModel

from langchain_stepcache._requests import plain_text
from langchain_stepcache._sound import UNREADABLE, is_sound
from stepcache import Outcome, Reply, Usage
from stepcache.tool_calls import numbered_ids, renewed_ids, why_not_callable

__all__ = [
    "generations_record",
    "message_from",
    "record_of",
    "reply_from",
    "restored_generations",
    "uncallable",
    "usage_metadata",
]

_VERSION = 1
_THOUGHTS = frozenset(("reasoning", "thinking", "redacted_thinking"))
# Kept of an answer beside its text: what its reader can see. Ids, times and token counts of the
# call that made it belong to that call.
_KEPT_ADDITIONAL = ("refusal", "reasoning_content", "function_call", "parsed", "audio")
_SELDOM = ("name", "tool_calls", "invalid_tool_calls")
_FIELDS = ("additional_kwargs", "response_metadata", "generation_info")
_LONGEST_REMEMBERED = 4_096
_DROPPED_METADATA = frozenset({"id", "token_usage", "usage", "logprobs", "created", "headers"})


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
    text = plain_text(message.content)
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


def record_of(outcome: Outcome) -> dict[str, Any]:
    """The stored record of an outcome's answer; empty where there is none that can be read, and
    ``unreadable`` where without it there is no answer."""
    message = outcome.message
    short = message is not None and len(message) <= _LONGEST_REMEMBERED
    record = (_flat(message) if short and message is not None else None) or _sound(message)
    if record is not None:
        return record
    return {} if outcome.text else {"kind": UNREADABLE}


def message_from(
    outcome: Outcome, *, parsed: bool = False, record: Mapping[str, Any] | None = None
) -> tuple[AIMessage, dict[str, Any] | None]:
    """A fresh message for an outcome, without an id, and its generation info.

    Usage is what this request spent. The outcome's summary stands in
    ``response_metadata["stepcache"]``.

    Args:
        parsed: Whether the caller's parser looks for the parsed answer beside its text.
        record: The outcome's record, where the caller has read it already.
    """
    record = record_of(outcome) if record is None else record
    chat = record if record.get("kind") == "chat" else {}
    return _restored(chat, outcome.text, outcome, parsed=parsed)


def uncallable(record: Mapping[str, Any], tools: Sequence[Any]) -> bool:
    """Whether a stored answer calls what is not offered, or cannot be read: storage is not
    believed."""
    if record.get("kind") == UNREADABLE:
        return True
    calls = record.get("tool_calls") if record.get("kind") == "chat" else None
    return isinstance(calls, list) and bool(calls) and why_not_callable(calls, tools) is not None


def _restored(
    record: Mapping[str, Any], text: str, outcome: Outcome, *, parsed: bool = False
) -> tuple[AIMessage, dict[str, Any] | None]:
    record = renewed_ids(record)
    additional = dict(record.get("additional_kwargs") or {})
    if parsed or "parsed" in additional:
        # From the text itself: a patch changed it, and field aliases are only in it.
        additional["parsed"] = _parsed(text)
    # Beside a text there is no other content: the text is what was proven.
    content: Any = None if text else record.get("content")
    if content is None:
        content = [{"type": "text", "text": text}] if record.get("blocks") else text
    said = {name: record[name] for name in _SELDOM if record.get(name)}
    message = AIMessage(
        content=content,
        additional_kwargs=additional,
        response_metadata={
            **(record.get("response_metadata") or {}),
            "stepcache": outcome.summary(),
        },
        usage_metadata=usage_metadata(outcome.spent),
        **said,
    )
    info = record.get("generation_info")
    return message, dict(info) if info else None


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
            items.append({"text": reply.text, "chat": _loaded(reply.message)})
        else:
            info = generation.generation_info
            items.append({"text": generation.text, "generation_info": info})
    return _dumped({"v": _VERSION, "kind": "generations", "items": items})


def restored_generations(record: Mapping[str, Any], outcome: Outcome) -> list[Generation] | None:
    """What :func:`generations_record` was given; None when the record is of something else."""
    if record.get("kind") != "generations":
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


def _sound(message: str | None) -> dict[str, Any] | None:
    record = _loaded(message)
    return record if record is not None and is_sound(record) else None


@lru_cache(maxsize=512)
def _flat(message: str) -> dict[str, Any] | None:
    """A record of an answer that is text and no more, so that all messages made of it may share
    what is in it; None for any other. Of such, those of one model are nearly all alike."""
    record = _sound(message)
    if record is None or record.get("kind") != "chat":
        return None
    values = [value for name in _FIELDS for value in (record.get(name) or {}).values()]
    calls = record.get("tool_calls") or record.get("invalid_tool_calls")
    nested = any(isinstance(value, (dict, list)) for value in (record.get("content"), *values))
    return None if calls or nested else record


def _loaded(message: str | None) -> dict[str, Any] | None:
    if message is None:
        return None
    try:
        record = json.loads(message)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("v") == _VERSION else None
