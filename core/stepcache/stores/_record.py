"""The written form of an entry: versioned JSON with a schema of its own.

What comes back from storage is untrusted: it may be torn, forged, or written by another version.
Reading it builds values of this package's own types from checked parts and nothing else; whatever
does not fit exactly is no entry. The text is UTF-8 in which unpaired surrogates pass as they are:
JSON's own escapes could not tell a surrogate pair that a stream delivered in two halves from the
character it stands for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from stepcache._counts import count
from stepcache._errors import StoreError
from stepcache._types import Constraints, Entry, Span, Step, Usage

__all__ = ["MAX_RECORD_BYTES", "decode", "encode"]

VERSION = 1
MAX_RECORD_BYTES = 32 * 2**20
"""Longer records are neither written nor read."""

_MAX_DEPTH = 64
_MAX_DIGITS = 4300
_MAX_BITS = 14_000  # a little less than 4300 digits, for writing
_FIELDS = frozenset(
    (
        *("v", "id", "scope", "exact", "canonical", "prompt", "constraints", "steps"),
        *("message", "usage", "model", "tags", "created", "expires"),
    )
)
_CONSTRAINT_FIELDS = frozenset(("task", "version", "values", "spans", "whole"))


class _MalformedError(ValueError):
    """Not a record of ours."""


def encode(entry: Entry) -> bytes:
    """The record of an entry, as UTF-8 bytes.

    Tuples among the constraints' values come back as lists, as JSON has it.

    Raises:
        StoreError: A field holds what a record cannot, or the record would be too long.
    """
    try:
        payload = _payload(entry)
        # Whatever is written can be read: one set of checks for both ways.
        _entry(payload)
        data = _ENCODER.encode(payload).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"entry {entry.id!r} cannot be recorded: {error}") from error
    if len(data) > MAX_RECORD_BYTES:
        raise StoreError(
            f"entry {entry.id!r} cannot be recorded: {count(len(data), 'byte')}, and the "
            f"most is {MAX_RECORD_BYTES:,}; lower Policy.max_answer_chars"
        )
    return data


def decode(data: object) -> Entry | None:
    """The entry of a record, or None when it is not exactly one of this version. Never raises."""
    if not isinstance(data, bytes) or len(data) > MAX_RECORD_BYTES:
        return None
    try:
        return _entry(_DECODER.decode(data.decode("utf-8", "surrogatepass")))
    except (ValueError, RecursionError):
        return None


# --- writing -----------------------------------------------------------------------------------


def _payload(entry: Entry) -> dict[str, Any]:
    constraints = entry.constraints
    return {
        "v": VERSION,
        "id": entry.id,
        "scope": entry.scope,
        "exact": entry.exact_key,
        "canonical": entry.canonical_key,
        "prompt": entry.prompt,
        "constraints": None
        if constraints is None
        else {
            "task": constraints.task,
            "version": constraints.version,
            "values": _plain(constraints.values, 0),
            "spans": [[span.start, span.stop, span.name] for span in constraints.spans],
            "whole": constraints.whole,
        },
        "steps": [[step.index, step.kind, step.text] for step in entry.steps],
        "message": entry.message,
        "usage": [entry.usage.calls, entry.usage.prompt_tokens, entry.usage.completion_tokens],
        "model": entry.model,
        "tags": list(entry.tags),
        "created": entry.created,
        "expires": entry.expires,
    }


def _plain(value: Any, depth: int) -> Any:
    """The value with mappings as dicts and tuples as lists; what JSON lacks is left to fail."""
    if depth > _MAX_DEPTH:
        raise _MalformedError(f"constraints are nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    return value


# --- reading -----------------------------------------------------------------------------------


def _entry(payload: Any) -> Entry:
    record = _object(payload, _FIELDS, "record")
    if _whole(record["v"], "version") != VERSION:
        raise _MalformedError(f"version {record['v']} is not {VERSION}")
    usage = _items(record["usage"], 3, "usage")
    return Entry(
        id=_text(record["id"], "id"),
        scope=_text(record["scope"], "scope"),
        exact_key=_text(record["exact"], "exact_key"),
        canonical_key=_text_or_none(record["canonical"], "canonical_key"),
        prompt=_text(record["prompt"], "prompt"),
        constraints=_constraints(record["constraints"]),
        steps=tuple([_step(item) for item in _items(record["steps"], None, "steps")]),
        message=_text_or_none(record["message"], "message"),
        usage=Usage(
            calls=_whole(usage[0], "usage.calls"),
            prompt_tokens=_whole(usage[1], "usage.prompt_tokens"),
            completion_tokens=_whole(usage[2], "usage.completion_tokens"),
        ),
        model=_text_or_none(record["model"], "model"),
        tags=tuple([_text(tag, "tag") for tag in _items(record["tags"], None, "tags")]),
        created=_time(record["created"], "created"),
        expires=None if record["expires"] is None else _time(record["expires"], "expires"),
    )


def _step(item: Any) -> Step:
    index, kind, text = _items(item, 3, "step")
    return Step(
        index=_whole(index, "step.index"),
        kind=_text(kind, "step.kind"),
        text=_text(text, "step.text"),
    )


def _constraints(value: Any) -> Constraints | None:
    if value is None:
        return None
    parts = _object(value, _CONSTRAINT_FIELDS, "constraints")
    if not isinstance(parts["values"], dict):
        raise _wrong(parts["values"], "constraints.values")
    _check_json(parts["values"], 0)
    if not isinstance(parts["whole"], bool):
        raise _wrong(parts["whole"], "constraints.whole")
    return Constraints(
        task=_text(parts["task"], "constraints.task"),
        version=_text(parts["version"], "constraints.version"),
        values=parts["values"],
        spans=tuple([_span(item) for item in _items(parts["spans"], None, "spans")]),
        whole=parts["whole"],
    )


def _span(item: Any) -> Span:
    start, stop, name = _items(item, 3, "span")
    if _whole(start, "span.start") > _whole(stop, "span.stop"):
        raise _MalformedError("a span stops before it starts")
    return Span(start=start, stop=stop, name=_text(name, "span.name"))


def _check_json(value: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise _MalformedError(f"constraints are nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            _text(key, "a key of constraints.values")
            _check_json(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, depth + 1)
    elif isinstance(value, float):
        _time(value, "a number of constraints.values")
    elif type(value) is int:
        if value.bit_length() > _MAX_BITS:
            raise _MalformedError("a number has too many digits")
    elif value is not None and type(value) not in (str, bool):
        raise _wrong(value, "a part of constraints.values")


def _object(value: Any, fields: frozenset[str], name: str) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != fields:
        raise _wrong(value, name)
    return value


def _items(value: Any, count: int | None, name: str) -> list[Any]:
    if not isinstance(value, list) or (count is not None and len(value) != count):
        raise _wrong(value, name)
    return value


def _text(value: Any, name: str) -> str:
    if type(value) is not str:
        raise _wrong(value, name)
    return value


def _text_or_none(value: Any, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _whole(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise _wrong(value, name)
    return value


def _time(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not -math.inf < value < math.inf:
        raise _wrong(value, name)
    number: float = value
    return number


def _wrong(value: object, name: str) -> _MalformedError:
    return _MalformedError(f"{name} cannot be a {type(value).__name__} like this")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _MalformedError("a key is there twice")
    return fields


def _bounded_int(digits: str) -> int:
    # Python's own limit can be lifted, and the cost is the square of the length.
    if len(digits) > _MAX_DIGITS:
        raise _MalformedError("a number has too many digits")
    return int(digits)


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_bounded_int)
