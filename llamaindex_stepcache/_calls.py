"""Tool calls inside a stored record: fresh ids, and other arguments where those are the answer.

A record keeps a call in one or both of the forms hosts know: a ``tool_call`` block, and the
provider's own object under ``additional_kwargs["tool_calls"]``.
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Iterator
from typing import Any

__all__ = ["calls_in", "put_arguments", "refresh_ids"]

_LETTERS = string.ascii_letters + string.digits
_SHORTEST = 9
_LENGTH = 24


def calls_in(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every tool call of a record, in either form."""
    blocks = record.get("blocks")
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and block.get("block_type") == "tool_call":
            yield block
    kwargs = record.get("additional_kwargs")
    older = kwargs.get("tool_calls") if isinstance(kwargs, dict) else None
    for call in older if isinstance(older, list) else ():
        if isinstance(call, dict):
            yield call


def refresh_ids(record: dict[str, Any]) -> None:
    """Give each call of a record an id of its own, the same in both forms.

    An id that was served before would stand twice in one thread. New ids look like the old ones,
    for providers are particular about their form; one that is the tool's name is no id.
    """
    known: dict[str, str] = {}
    for call in calls_in(record):
        key = "tool_call_id" if "tool_call_id" in call else "id"
        old, name = call.get(key), _parts(call)[1]
        if isinstance(old, str) and old and old != name:
            call[key] = known.setdefault(old, _like(old))


def put_arguments(record: dict[str, Any], text: str, tool: str | None) -> bool:
    """Make a record's one call of ``tool`` say ``text``; False when there is no such call.

    Args:
        text: The arguments as JSON text.
        tool: The tool whose arguments are the answer, or None.
    """
    calls = [_parts(call) for call in calls_in(record)] if tool is not None else []
    if not calls or any(name != tool or key not in place for place, name, key in calls):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    for place, _, key in calls:
        place[key] = text if isinstance(place[key], str) else value
    return True


def _parts(call: dict[str, Any]) -> tuple[dict[str, Any], Any, str]:
    """Where a call keeps its name and arguments, its name, and the key of its arguments."""
    function = call.get("function")
    place = function if isinstance(function, dict) else call
    name = place.get("tool_name", place.get("name"))
    key = next((k for k in ("tool_kwargs", "arguments", "input") if k in place), "")
    return place, name, key


def _like(old: str) -> str:
    cut = max(old.rfind("_"), old.rfind("-")) + 1
    length = len(old) - cut
    if length < _SHORTEST:
        length = _LENGTH
    return old[:cut] + "".join(secrets.choice(_LETTERS) for _ in range(length))
