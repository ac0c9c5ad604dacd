"""Chat completions as the engine's replies, and its outcomes as chat completions. Pure.

What is stored of an answer beside its text is a JSON record of our own: the fields of its message,
and the fields that let a browser read the response. Storage is not believed: a record that says
something impossible cannot be served.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from stepcache._admission import complete
from stepcache._types import JsonObject, Outcome, Reply, Usage
from stepcache.proxy._headers import RawHeaders
from stepcache.proxy._requests import ChatBody
from stepcache.proxy._sse import DONE, event
from stepcache.tool_calls import numbered_ids, renewed_ids, why_not_callable

__all__ = ["Chunks", "NotACompletion", "Stored", "completion_of", "reply_of", "usage_of"]

_VERSION = 1
_FINISHES = frozenset(("stop", "length", "tool_calls", "content_filter", "function_call"))
_CORS = b"access-control-"


class NotACompletion(ValueError):
    """A response that holds no chat completion."""


# --- the upstream's answer ---------------------------------------------------------------------


def reply_of(completion: object, tools: Sequence[JsonObject], headers: RawHeaders = ()) -> Reply:
    """A completion as a reply, with the record it can be rebuilt from.

    Args:
        completion: The body of a response, read.
        tools: What was offered; calls of anything else make the reply one that is not kept.
        headers: Of the response.

    Raises:
        NotACompletion: It is an error, or something else.
    """
    choices = _choices(completion)
    assert isinstance(completion, Mapping)
    messages = [dict(choice["message"]) for choice in choices]
    finish = [choice.get("finish_reason") for choice in choices]
    first, single = messages[0], len(messages) == 1
    content, refusal = first.get("content"), first.get("refusal")
    text = content if single and isinstance(content, str) else ""
    kept = [_kept(message, text_apart=single) for message in messages]
    simple = single and (content is None or isinstance(content, str))
    simple = simple and not {"tool_calls", "function_call", "audio"} & set(kept[0])
    browser = [
        [name.decode("latin-1"), value.decode("latin-1")]
        for name, value in headers
        if name.lower().startswith(_CORS)
    ]
    said = text or (refusal if single and isinstance(refusal, str) else "")
    record = None
    if browser or not simple or set(kept[0]) - {"content"}:
        items = [{"message": m, "finish_reason": f} for m, f in zip(kept, finish)]
        record = json.dumps(
            {"v": _VERSION, "text": _mark(said), "choices": items, "headers": browser}
        )
    refused = [isinstance(m.get("refusal"), str) and bool(m["refusal"]) for m in messages]
    return Reply(
        text=said,
        finish_reason=_text(finish[0]) if simple else _finish(messages, finish, tools),
        usage=usage_of(completion.get("usage")),
        message=record,
        model=_text(completion.get("model")),
        refusal=any(refused) or "content_filter" in finish,
        reusable=simple,
    )


def usage_of(usage: object) -> Usage:
    """The token counts in a response."""

    def count(name: str) -> int:
        value = usage.get(name) if isinstance(usage, Mapping) else None
        return value if isinstance(value, int) and value > 0 else 0

    return Usage(
        calls=1,
        prompt_tokens=count("prompt_tokens"),
        completion_tokens=count("completion_tokens"),
    )


def _choices(completion: object) -> list[Mapping[str, Any]]:
    if not isinstance(completion, Mapping) or completion.get("error"):
        raise NotACompletion("no completion")
    choices = completion.get("choices")
    if not isinstance(choices, list) or not choices:
        raise NotACompletion("no choices")
    for choice in choices:
        if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
            raise NotACompletion("a choice without a message")
    return sorted(choices, key=lambda choice: _place(choice.get("index")))


def _place(index: object) -> int:
    return index if isinstance(index, int) else 0


def _kept(message: dict[str, Any], *, text_apart: bool) -> dict[str, Any]:
    """What of a message is told again: all that says something, but for the text, which may have
    changed by then. Ids of calls are numbered."""
    kept = {name: value for name, value in message.items() if value not in (None, [], {})}
    kept.pop("role", None)
    if text_apart and isinstance(kept.get("content"), str):
        del kept["content"]
    if "content" not in message or message["content"] is None:
        kept["content"] = None
    return _renumbered(kept, numbered_ids)


def _renumbered(message: dict[str, Any], by: Any) -> dict[str, Any]:
    calls = message.get("tool_calls")
    return dict(by(message)) if isinstance(calls, list) and _objects(calls) else message


def _finish(
    messages: Sequence[Mapping[str, Any]], finish: Sequence[Any], tools: Sequence[JsonObject]
) -> str | None:
    """Why an answer that is more than a text ended; something incomplete where it may not be
    kept."""
    for message, reason in zip(messages, finish):
        if reason is not None and (not isinstance(reason, str) or not complete(reason)):
            return str(reason)
        why = _why_not_served(message, tools)
        if why is not None:
            return f"answer: {why}"
    return _text(finish[0])


def _why_not_served(message: Mapping[str, Any], tools: Sequence[JsonObject]) -> str | None:
    calls = message.get("tool_calls")
    if message.get("function_call"):
        return "it calls a function in the old form"
    if not calls:
        content = message.get("content")
        blank = content is None or (isinstance(content, str) and not content.strip())
        return "it is empty" if blank and not message.get("audio") else None
    if not _objects(calls):
        return "its calls cannot be read"
    read = []
    for call in calls:
        function = call.get("function")
        if call.get("type", "function") != "function" or not isinstance(function, Mapping):
            return "it calls something that is no function"
        read.append({"name": function.get("name"), "args": _loaded(function.get("arguments"))})
    return why_not_callable(read, tools)


# --- the engine's answer -----------------------------------------------------------------------


class Stored:
    """What an outcome can be told as.

    Args:
        outcome: Of the engine.
        tools: What this request offers.
    """

    def __init__(self, outcome: Outcome, tools: Sequence[JsonObject]) -> None:
        self.outcome = outcome
        record = _loaded(outcome.message) if outcome.message is not None else None
        self._record = record if isinstance(record, Mapping) else {}
        if self._record.get("v") != _VERSION:
            self._record = {}
        self.choices = self._read()
        self.servable = self._is_servable(tools)
        """False for a stored answer that must not be given; it has to be made anew."""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The fields by which browsers are let in, as they were for this very origin."""
        found = self._record.get("headers")
        if not isinstance(found, list):
            return []
        pairs = [pair for pair in found if isinstance(pair, list) and len(pair) == 2]
        texts = [(n, v) for n, v in pairs if isinstance(n, str) and isinstance(v, str)]
        encoded = [(n.encode("latin-1", "ignore"), v.encode("latin-1", "ignore")) for n, v in texts]
        return [
            (name, value)
            for name, value in encoded
            if name.lower().startswith(_CORS) and not {13, 10, 0} & set(name + value)
        ]

    def _read(self) -> list[dict[str, Any]]:
        """The choices, with new ids for their calls."""
        text = self.outcome.text
        finish = self.outcome.finish_reason
        if finish not in _FINISHES:
            finish = "stop" if complete(finish) else None
        plain = {"message": {"content": text}, "finish_reason": finish}
        found = self._record.get("choices")
        # What was said beside a text was said of that text.
        if not isinstance(found, list) or self._record.get("text") != _mark(text):
            return [plain]
        choices: list[dict[str, Any]] = []
        for item in found:
            message = item.get("message") if isinstance(item, Mapping) else None
            if not isinstance(message, Mapping):
                return [plain]
            renewed = _renumbered(dict(message), renewed_ids)
            told = {"content": text, **renewed} if len(found) == 1 else renewed
            if text and told.get("content") is None and "refusal" not in told:
                told["content"] = text
            choices.append({"message": told, "finish_reason": item.get("finish_reason")})
        return choices or [plain]

    def _is_servable(self, tools: Sequence[JsonObject]) -> bool:
        return all(_why_not_served(choice["message"], tools) is None for choice in self.choices)


def completion_of(stored: Stored, body: ChatBody) -> dict[str, Any]:
    """The body of a response, under a new id; its usage is what was spent now."""
    return {
        **_opening(stored.outcome.model, body, "chat.completion"),
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": None, **choice["message"]},
                "logprobs": None,
                "finish_reason": choice["finish_reason"],
            }
            for index, choice in enumerate(stored.choices)
        ],
        "usage": _usage(stored.outcome.spent),
    }


class Chunks:
    """The events of one streamed answer, in order: ``begin``, texts, then the rest."""

    def __init__(self, body: ChatBody, model: str | None = None) -> None:
        self._counts = body.counts
        self._base = _opening(model, body, "chat.completion.chunk")
        self._told = 0
        self._begun = False

    def text(self, piece: str) -> Iterator[bytes]:
        """The first choice's text goes on."""
        if not self._begun:
            self._begun = True
            yield self._event(0, {"role": "assistant", "content": ""})
        if piece:
            self._told += len(piece)
            yield self._event(0, {"content": piece})

    def rest(self, stored: Stored, pieces: Sequence[str] = ()) -> Iterator[bytes]:
        """All that has not been told, and the end.

        Args:
            pieces: How the text is to be cut, where it is told only now.
        """
        for index, choice in enumerate(stored.choices):
            message = dict(choice["message"])
            content = message.pop("content", None)
            yield from self._beginning(index, message, "" if isinstance(content, str) else None)
            if isinstance(content, str):
                for piece in pieces if index == 0 and "".join(pieces) == content else (content,):
                    yield from self._going_on(index, piece)
            elif content is not None:
                yield self._event(index, {"content": content})
            if message.get("tool_calls"):
                calls = message["tool_calls"]
                numbered = [{"index": at, **call} for at, call in enumerate(calls)]
                yield self._event(index, {"tool_calls": numbered})
            yield self._event(index, {}, choice["finish_reason"])
        if self._counts:
            yield event({**self._base, "choices": [], "usage": _usage(stored.outcome.spent)})
        # A stream that came to no end of its own is not given one.
        if all(choice["finish_reason"] for choice in stored.choices):
            yield DONE

    def _beginning(
        self, index: int, message: Mapping[str, Any], content: str | None
    ) -> Iterator[bytes]:
        """The role, and what models say before their answer (their reasoning, for one)."""
        if index or not self._begun:
            yield self._event(index, {"role": "assistant", "content": content})
        other = {k: v for k, v in message.items() if k not in ("tool_calls", "role")}
        if other:
            yield self._event(index, other)

    def _going_on(self, index: int, piece: str) -> Iterator[bytes]:
        if index == 0:
            known = min(self._told, len(piece))
            self._told -= known
            piece = piece[known:]
        if piece:
            yield self._event(index, {"content": piece})

    def _event(self, index: int, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self._counts else {}
        return event({**self._base, "choices": [choice], **usage})


def _opening(model: str | None, body: ChatBody, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": model or body.model,
    }


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
    }


# --- small pieces ------------------------------------------------------------------------------


def _mark(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _loaded(text: object) -> Any:
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
