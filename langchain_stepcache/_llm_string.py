"""What can be read back from the two strings LangChain gives a cache. Pure; revives no objects.

A chat model's prompt is a JSON list of serialised messages. Its ``llm_string`` is either the
serialised model as JSON, ``---`` and the ``repr`` of sorted call arguments, or that ``repr`` alone,
identifying parameters included. Both may hold secrets (headers, bodies), so they are hashed into
identities and never stored.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_stepcache._requests import neutral_message
from stepcache import Message

__all__ = ["ModelKey", "parse_llm_string", "parse_prompt"]

_MAX_CHARS = 400_000
_ESCAPE = "__lc_escaped__"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKey:
    """The readable parts of an ``llm_string``."""

    model: str
    """SHA-256 of the serialised model; empty when the string holds arguments only."""
    arguments: Mapping[str, Any]
    """Call arguments (and identifying parameters, where no serialised model came first)."""
    exact: bool
    """False when a part had no literal form (a class, an object): then only equality is safe."""
    completion: bool
    """True for a text-completion model's string, which leaves per-call arguments out."""


def parse_prompt(prompt: str) -> tuple[Message, ...] | None:
    """The messages of a serialised prompt, or None when it is not one."""
    if len(prompt) > _MAX_CHARS or not prompt.startswith("["):
        return None
    try:
        data = json.loads(prompt)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, list) or not data or not all(map(_is_constructor, data)):
        return None
    if _ESCAPE in prompt:
        data = _unescaped(data)
    numbers: dict[str, int] = {}
    return tuple([_message(item["kwargs"], numbers) for item in data])


def parse_llm_string(llm_string: str) -> ModelKey:
    """The readable parts of an ``llm_string``; what cannot be read is still told apart, by hash."""
    model, rest = "", llm_string
    if llm_string.startswith("{") and len(llm_string) <= _MAX_CHARS:
        try:
            _, end = json.JSONDecoder().raw_decode(llm_string)
        except (ValueError, RecursionError):
            end = 0
        model, rest = llm_string[:end], llm_string[end:].removeprefix("---")
    arguments, exact = _literal(rest)
    if arguments is None:
        return ModelKey(model=_sha(llm_string), arguments={}, exact=False, completion=False)
    completion = not model and "_type" in arguments and "stop" in arguments
    return ModelKey(
        model=_sha(model) if model else "",
        arguments=arguments,
        exact=exact,
        completion=completion,
    )


def _is_constructor(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("lc") == 1
        and item.get("type") == "constructor"
        and isinstance(item.get("kwargs"), dict)
    )


def _message(kwargs: Mapping[str, Any], numbers: dict[str, int]) -> Message:
    calls = kwargs.get("tool_calls")
    return neutral_message(
        kind=str(kwargs.get("type", "")),
        content=kwargs.get("content", ""),
        name=kwargs.get("name"),
        tool_calls=calls if isinstance(calls, list) else [],
        tool_call_id=kwargs.get("tool_call_id"),
        status=kwargs.get("status"),
        role=kwargs.get("role"),
        numbers=numbers,
    )


def _unescaped(value: Any) -> Any:
    """Undo LangChain's wrapping of user dictionaries that look like serialised objects."""
    if isinstance(value, dict):
        if set(value) == {_ESCAPE}:
            return _unescaped(value[_ESCAPE])
        return {k: _unescaped(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_unescaped(v) for v in value]
    return value


def _literal(source: str) -> tuple[dict[str, Any] | None, bool]:
    """The items of a ``repr`` of sorted pairs; objects in it become marker strings."""
    if len(source) > _MAX_CHARS:
        return None, False
    try:
        return _pairs(ast.literal_eval(source)), True
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        pass
    try:
        return _pairs(ast.literal_eval(_marked(source))), False
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError, tokenize.TokenError):
        return None, False


def _pairs(value: Any) -> dict[str, Any]:
    if not isinstance(value, list):
        raise TypeError("not a list of pairs")
    return {str(name): item for name, item in value}


def _marked(source: str) -> str:
    """Replace ``<class 'x'>`` and ``<X object at 0x..>`` outside strings by marker strings. The
    address stays in the marker: two objects are then two markers, which can only miss."""
    pieces: list[str] = []
    held: list[str] = []
    depth = 0
    skipped = {tokenize.ENDMARKER, tokenize.NEWLINE, tokenize.NL}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in skipped:
            continue
        depth += token.string == "<"
        (held if depth else pieces).append(token.string)
        if token.string == ">" and depth:
            depth -= 1
            if not depth:
                pieces.append(repr(" ".join(held)))
                held = []
    return " ".join(pieces)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
