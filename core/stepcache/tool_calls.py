"""Tool calls: may they be kept or served, and how do their ids stay fresh. Pure.

A call is kept and served only whole, and only if its tool is offered and its arguments satisfy the
tool's schema. Its id belongs to one message of one thread: what is stored holds numbered ids of the
same shape, and every message made from it gets new ones.
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Mapping, Sequence
from typing import Any

from stepcache._dialect import holds_for_doubles, validator_for

__all__ = ["numbered_ids", "renewed_ids", "why_not_callable"]

_ALPHABET = string.ascii_letters + string.digits
_SHORTEST = 9
_ID_KEYS = frozenset(("id", "call_id", "tool_call_id"))
_MAX_DEPTH = 32
_MAX_CHARS = 200_000


def why_not_callable(calls: Sequence[Any], tools: Sequence[Any]) -> str | None:
    """Why these calls may not be kept or served; None when every one may.

    Args:
        calls: Mappings with ``name`` and ``args``, the arguments as an object.
        tools: As offered to the model, in any provider's form.
    """
    offered = dict(filter(None, map(_named, tools)))
    for call in calls:
        if not isinstance(call, Mapping):
            return "a call cannot be read"
        name, args = call.get("name"), call.get("args")
        if not isinstance(name, str) or name not in offered:
            return f"{name!r} is not offered"
        if not isinstance(args, Mapping):
            return f"the arguments of {name!r} are no object"
        try:
            satisfied = _satisfies(offered[name], args)
        except Exception:  # noqa: BLE001 - a schema that cannot be checked proves nothing
            return f"the arguments of {name!r} cannot be checked"
        if not satisfied:
            return f"the arguments of {name!r} do not satisfy its schema"
    return None


def numbered_ids(record: dict[str, Any]) -> dict[str, Any]:
    """The record with its calls' ids replaced by numbers of their shape.

    Args:
        record: A message with ``tool_calls`` and, where some could not be read,
            ``invalid_tool_calls``.
    """
    ids: dict[str, str] = {}
    for call in (*(record.get("tool_calls") or ()), *(record.get("invalid_tool_calls") or ())):
        given = call.get("id")
        if isinstance(given, str) and given:
            beginning, length = _shape(given)
            ids.setdefault(given, f"{beginning}{str(len(ids)).zfill(length)}")
    return dict(_replaced(record, ids, 0)) if ids else record


def renewed_ids(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record with an id never used before for each of its calls, paired throughout."""
    ids: dict[str, str] = {}
    for call in (*(record.get("tool_calls") or ()), *(record.get("invalid_tool_calls") or ())):
        given = call.get("id")
        if isinstance(given, str) and given:
            beginning, length = _shape(given)
            fresh = "".join(secrets.choice(_ALPHABET) for _ in range(max(length, _SHORTEST)))
            ids.setdefault(given, beginning + fresh)
    return _replaced(record, ids, 0) if ids else record


def _shape(given: str) -> tuple[str, int]:
    """What an id begins with, and how many characters of chance follow: providers differ."""
    at = max(given.rfind("_"), given.rfind("-")) + 1
    return given[:at], len(given) - at


def _replaced(value: Any, ids: Mapping[str, str], depth: int, key: str = "") -> Any:
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {k: _replaced(v, ids, depth + 1, str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_replaced(v, ids, depth + 1) for v in value]
    if key in _ID_KEYS and isinstance(value, str):
        return ids.get(value, value)
    return value


def _named(tool: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Name and argument schema of an offered tool, None for a form that is not known."""
    if not isinstance(tool, Mapping):
        return None
    inner = tool.get("function")
    described = inner if isinstance(inner, Mapping) else tool
    name = described.get("name") or described.get("title")
    schema = described.get("parameters") or described.get("input_schema")
    if schema is None and "properties" in described:
        schema = described
    return (name, schema or {}) if isinstance(name, str) else None


def _satisfies(schema: Mapping[str, Any], args: Mapping[str, Any]) -> bool:
    text = json.dumps(schema, sort_keys=True)
    if len(text) > _MAX_CHARS or len(json.dumps(args)) > _MAX_CHARS:
        return False
    satisfied = next(validator_for(text).iter_errors(args), None) is None
    return satisfied and holds_for_doubles(text, args)
