"""What the chunks of a streamed completion add up to: the completion sent in one piece. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["Assembly"]

_SAID_ONCE = frozenset(("id", "role", "type", "object", "format", "signature"))
"""Texts that a later piece repeats; all others go on."""

_MAX_CHARS = 4 << 20
_MAX_DEPTH = 16
_MAX_INDEX = 1024


class Assembly:
    """Adds up chunks; remembers nothing it cannot vouch for."""

    def __init__(self) -> None:
        self.done = False
        self.error = False
        """Whether the stream reports an error itself."""
        self.counted = False
        """Whether the last event held token counts and nothing else."""
        self._sound = True
        self._size = 0
        self._top: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}

    def feed(self, data: str) -> str:
        """Take one event's data; the new text of the first choice, empty where there is none."""
        self.counted = False
        if data.strip() == "[DONE]":
            self.done = True
            return ""
        self._size += len(data)
        try:
            if self._size > _MAX_CHARS:
                raise ValueError("too long to be kept")
            return self._take(json.loads(data))
        except (ValueError, RecursionError):
            self._sound = False
            self._choices.clear()
            return ""

    @property
    def whole(self) -> bool:
        """Whether the stream has come to its own end, and all of it was understood."""
        ended = [choice["finish_reason"] for choice in self._choices.values()]
        return self._sound and bool(ended) and (self.done or None not in ended)

    def spoil(self) -> None:
        """Something was not read: what is here is not the whole."""
        self._sound = False

    def completion(self) -> dict[str, Any]:
        """The body of the same answer, sent in one piece."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        return {**self._top, "object": "chat.completion", "choices": choices}

    def _take(self, chunk: Any) -> str:
        if not isinstance(chunk, Mapping):
            raise ValueError("no object")
        if chunk.get("error"):
            self.error = True
            raise ValueError("an error")
        for name in ("id", "created", "model", "usage", "system_fingerprint", "service_tier"):
            if chunk.get(name) is not None:
                self._top[name] = chunk[name]
        self.counted = chunk.get("choices") == [] and chunk.get("usage") is not None
        said = ""
        for choice in chunk.get("choices") or ():
            said += self._take_choice(choice)
        return said

    def _take_choice(self, choice: Any) -> str:
        index = choice.get("index", 0) if isinstance(choice, Mapping) else None
        if not isinstance(index, int) or not 0 <= index <= _MAX_INDEX:
            raise ValueError("a choice without its place")
        empty = {"index": index, "message": {"role": "assistant"}, "finish_reason": None}
        kept = self._choices.setdefault(index, empty)
        kept["finish_reason"] = choice.get("finish_reason") or kept["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return ""
        _merge(kept["message"], delta, 0)
        content = delta.get("content")
        return content if index == 0 and isinstance(content, str) else ""


def _merge(kept: dict[str, Any], delta: Mapping[str, Any], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    for name, value in delta.items():
        before = kept.get(name)
        if value is None:
            kept.setdefault(name, None)
        elif isinstance(value, str) and isinstance(before, str):
            kept[name] = before or value if name in _SAID_ONCE else before + value
        elif isinstance(value, Mapping):
            into = kept[name] = before if isinstance(before, dict) else {}
            _merge(into, value, depth + 1)
        elif isinstance(value, list):
            kept[name] = _merged_list(before if isinstance(before, list) else [], value, depth)
        else:
            kept[name] = value


def _merged_list(kept: list[Any], pieces: list[Any], depth: int) -> list[Any]:
    """Pieces with an index belong to the item at that index; others follow what is there."""
    for piece in pieces:
        index = piece.get("index") if isinstance(piece, Mapping) else None
        if not isinstance(index, int):
            kept.append(piece)
            continue
        if not 0 <= index <= len(kept):
            raise ValueError("an index out of order")
        if index == len(kept):
            kept.append({})
        _merge(kept[index], {k: v for k, v in piece.items() if k != "index"}, depth + 1)
    return kept
