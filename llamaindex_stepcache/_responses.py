"""LlamaIndex's responses as replies to the engine, and outcomes as responses.

What is stored of an answer is a JSON record of our own: a version, the message's blocks and a white
list of fields. Reading one back goes through the host's validators, builds new objects every time,
and gives up on anything that does not fit, for a store is an untrusted input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
    TextBlock,
)

from llamaindex_stepcache._calls import put_arguments, refresh_ids
from llamaindex_stepcache._identity import plain
from stepcache import Outcome, Reply, Usage

__all__ = [
    "arguments_of",
    "chat_response",
    "completion_response",
    "finish_reason_of",
    "text_of",
    "to_reply",
    "usage_of",
]

_VERSION = 1
_PLAIN_BLOCKS = frozenset({"text", "thinking"})
_KEPT = ("tool_calls", "function_call", "refusal", "reasoning_content", "citations", "annotations")
UNRECORDABLE = "unrecordable"
"""Finish reason of a reply whose message has no JSON form: served as it is, never kept."""
OTHER_THAN_DEMANDED = "other_than_demanded"
"""Finish reason of a reply without the one tool call that was to be the answer: never kept."""


# --- replies -----------------------------------------------------------------------------------


def to_reply(
    response: ChatResponse | CompletionResponse,
    *,
    finish_reason: str | None = None,
    usage: Usage | None = None,
    tool: str | None = None,
) -> Reply:
    """What the model answered, with a record to rebuild it from.

    Args:
        response: A whole response, or the last chunk of a stream.
        finish_reason: Known from an earlier chunk.
        usage: Known from an earlier chunk.
        tool: The tool whose arguments are the answer, where one was demanded.
    """
    rich = _is_rich(response)
    record = _record(response)
    text = text_of(response)
    arguments = arguments_of(response, tool)
    if arguments is not None:
        rich, text = False, arguments
    elif tool is not None:
        # Not what was demanded. The host will say so, or ask again; nobody else is to have it.
        rich, finish_reason = True, OTHER_THAN_DEMANDED
    reason = finish_reason or finish_reason_of(response)
    if record is None:
        reason = UNRECORDABLE
    model = _get(response.raw, "model")
    return Reply(
        text=text,
        finish_reason=reason,
        usage=usage or usage_of(response),
        message=record,
        model=model if isinstance(model, str) else None,
        refusal=_refused(response),
        reusable=not rich,
    )


def text_of(response: ChatResponse | CompletionResponse) -> str:
    """The text of an answer; what stands beside it is in the record."""
    if isinstance(response, ChatResponse):
        return response.message.content or ""
    return response.text


def arguments_of(response: ChatResponse | CompletionResponse, tool: str | None) -> str | None:
    """The arguments of a call of ``tool``, as JSON text, where that is the whole answer."""
    if tool is None or not isinstance(response, ChatResponse) or text_of(response):
        return None
    message = response.message
    calls = [block for block in message.blocks if block.block_type == "tool_call"]
    if not calls:
        calls = message.additional_kwargs.get("tool_calls") or []
    if not isinstance(calls, (list, tuple)) or len(calls) != 1:
        return None
    name, arguments = _named_call(calls[0])
    if name != tool or isinstance(arguments, str):
        return arguments if name == tool else None
    try:
        return json.dumps(plain(arguments), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _named_call(call: Any) -> tuple[Any, Any]:
    """Name and arguments of a tool call in any of the forms providers give it."""
    function = _get(call, "function")
    if function is not None:
        return _get(function, "name"), _get(function, "arguments")
    if _get(call, "tool_name") is not None:
        return _get(call, "tool_name"), _get(call, "tool_kwargs")
    arguments = _get(call, "input")
    return _get(call, "name"), arguments if arguments is not None else _get(call, "arguments")


def finish_reason_of(response: ChatResponse | CompletionResponse) -> str | None:
    """Why the model stopped, as its provider says it; None where it does not say."""
    raw = response.raw
    places = (_first(raw, "choices"), _first(raw, "candidates"), raw)
    for place in places:
        for name in ("finish_reason", "stop_reason", "done_reason"):
            reason = _get(place, name)
            if isinstance(reason, Enum):
                reason = reason.name
            if isinstance(reason, str) and reason:
                return reason
    return None


def usage_of(response: ChatResponse | CompletionResponse) -> Usage:
    """Tokens of one call, 0 where the provider does not tell."""
    kwargs = dict(response.additional_kwargs)
    if isinstance(response, ChatResponse):
        kwargs = {**response.message.additional_kwargs, **kwargs}
    places = (_get(response.raw, "usage"), _get(response.raw, "usage_metadata"), kwargs)
    return Usage(
        calls=1,
        prompt_tokens=_count(places, "prompt_tokens", "input_tokens", "prompt_token_count"),
        completion_tokens=_count(
            places, "completion_tokens", "output_tokens", "candidates_token_count"
        ),
    )


def _count(places: Sequence[Any], *names: str) -> int:
    for place in places:
        for name in names:
            value = _get(place, name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return 0


def _get(place: Any, name: str) -> Any:
    if isinstance(place, Mapping):
        return place.get(name)
    return getattr(place, name, None)


def _first(place: Any, name: str) -> Any:
    items = _get(place, name)
    return items[0] if isinstance(items, (list, tuple)) and items else None


def _is_rich(response: ChatResponse | CompletionResponse) -> bool:
    """Whether the answer holds more than words: tool calls, images, citations."""
    kwargs = response.additional_kwargs
    if isinstance(response, ChatResponse):
        if any(block.block_type not in _PLAIN_BLOCKS for block in response.message.blocks):
            return True
        kwargs = response.message.additional_kwargs
    return bool(kwargs.get("tool_calls") or kwargs.get("function_call"))


def _refused(response: ChatResponse | CompletionResponse) -> bool:
    choice = _first(response.raw, "choices")
    said = [_get(_get(choice, "message"), "refusal"), _get(_get(choice, "delta"), "refusal")]
    if isinstance(response, ChatResponse):
        said.append(response.message.additional_kwargs.get("refusal"))
    return any(isinstance(words, str) and words for words in said)


def _record(response: ChatResponse | CompletionResponse) -> str | None:
    record: dict[str, Any] = {"v": _VERSION}
    kwargs = response.additional_kwargs
    if isinstance(response, ChatResponse):
        kwargs = response.message.additional_kwargs
        record["role"] = str(response.message.role.value)
        record["blocks"] = [plain(block) for block in response.message.blocks]
    record["additional_kwargs"] = {k: plain(kwargs[k]) for k in _KEPT if kwargs.get(k)}
    try:
        return json.dumps(record, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


# --- responses ---------------------------------------------------------------------------------


def chat_response(
    outcome: Outcome, original: ChatResponse | None = None, *, tool: str | None = None
) -> ChatResponse:
    """A new response for an outcome; ``additional_kwargs["stepcache"]`` tells how it came about.

    The summary is on the response only: a message travels on into the next request.

    Args:
        original: The model's own response where one was asked; kept as it is, beside the summary,
            where its text is what is served.
        tool: The tool whose arguments are the answer, where one was demanded.
    """
    if original is not None:
        arguments = arguments_of(original, tool)
        if (text_of(original) if arguments is None else arguments) == outcome.text:
            return original.model_copy(update=_told(outcome, original))
    return ChatResponse(
        message=_rebuilt(outcome, tool), raw=_raw(outcome), additional_kwargs=_new(outcome)
    )


def completion_response(
    outcome: Outcome, original: CompletionResponse | None = None, *, tool: str | None = None
) -> CompletionResponse:
    """As :func:`chat_response`, for ``complete``, which calls no tools."""
    if original is not None and text_of(original) == outcome.text:
        return original.model_copy(update=_told(outcome, original))
    kept = _read(outcome.message).get("additional_kwargs")
    kept = kept if isinstance(kept, dict) else {}
    return CompletionResponse(
        text=outcome.text, raw=_raw(outcome), additional_kwargs={**kept, **_new(outcome)}
    )


def _told(outcome: Outcome, original: ChatResponse | CompletionResponse) -> dict[str, Any]:
    told: dict[str, Any] = {"additional_kwargs": {**original.additional_kwargs}}
    if outcome.spent.tokens:
        told["additional_kwargs"].update(_tokens(outcome.spent))
    told["additional_kwargs"]["stepcache"] = outcome.summary()
    if outcome.spent.calls != 1:
        # The raw usage is of one call only, and counters read it first.
        told["raw"] = _raw(outcome)
    return told


def _new(outcome: Outcome) -> dict[str, Any]:
    return {**_tokens(outcome.spent), "stepcache": outcome.summary()}


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
    }


def _raw(outcome: Outcome) -> dict[str, Any]:
    return {
        "model": outcome.model,
        "finish_reason": outcome.finish_reason,
        "usage": _tokens(outcome.spent),
    }


def _rebuilt(outcome: Outcome, tool: str | None) -> ChatMessage:
    record = _read(outcome.message)
    blocks, kwargs = record.get("blocks"), record.get("additional_kwargs") or {}
    readable = isinstance(blocks, list) and isinstance(kwargs, dict)
    if readable and (put_arguments(record, outcome.text, tool) or _text_in(record) == outcome.text):
        refresh_ids(record)
        try:
            return ChatMessage.model_validate(
                {
                    "role": record.get("role", "assistant"),
                    "blocks": blocks,
                    "additional_kwargs": _opened(kwargs),
                }
            )
        except ValueError:
            pass
    # Other words than were recorded: the thoughts beside those are not about these.
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=[TextBlock(text=outcome.text)])


class _Open(dict[str, Any]):
    """A dict that can also be read by attribute, as the providers' own tool-call objects are."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return _Open({key: _opened(item) for key, item in value.items()})
    return [_opened(item) for item in value] if isinstance(value, list) else value


def _text_in(record: dict[str, Any]) -> str:
    blocks = [block for block in record["blocks"] if isinstance(block, Mapping)]
    return "\n".join(str(b.get("text", "")) for b in blocks if b.get("block_type") == "text")


def _read(message: str | None) -> dict[str, Any]:
    try:
        record = json.loads(message) if message else None
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) and record.get("v") == _VERSION else {}
