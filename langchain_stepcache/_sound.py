"""Whether a stored record of an answer can be made into LangChain's objects. Pure.

Storage is untrusted: a record that was forged or damaged must end as a miss, not as an error in the
middle of somebody's chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["UNREADABLE", "is_sound"]

UNREADABLE = "unreadable"
"""The kind of a record that is there and says nothing."""
_CALL_FIELDS = frozenset(("name", "args", "id", "type", "error"))


def is_sound(record: Mapping[str, Any]) -> bool:
    """Whether each field holds what the field of that name takes."""
    kind = record.get("kind")
    if kind == "generations":
        items = record.get("items")
        return isinstance(items, list) and all(map(_is_item, items))
    return kind == "chat" and _is_chat(record)


def _is_item(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        return False
    if "chat" in item:
        chat = item["chat"]
        return chat is None or (isinstance(chat, dict) and _is_chat(chat))
    return "generation_info" in item and _is_object(item["generation_info"])


def _is_chat(record: Mapping[str, Any]) -> bool:
    name = record.get("name")
    return (
        _is_content(record.get("content"))
        and (name is None or isinstance(name, str))
        and _are_calls(record.get("tool_calls"), arguments=dict)
        and _are_calls(record.get("invalid_tool_calls"), arguments=str)
        and all(
            _is_object(record.get(field))
            for field in ("additional_kwargs", "response_metadata", "generation_info")
        )
    )


def _is_content(content: Any) -> bool:
    if isinstance(content, list):
        return all(isinstance(block, (str, dict)) for block in content)
    return content is None or isinstance(content, str)


def _is_object(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _are_calls(calls: Any, *, arguments: type) -> bool:
    """Calls that could be read have their arguments as an object, the others as text."""
    if calls is None:
        return True
    return isinstance(calls, list) and all(
        isinstance(call, dict) and _is_call(call, arguments) for call in calls
    )


def _is_call(call: Mapping[str, Any], arguments: type) -> bool:
    if not call.keys() <= _CALL_FIELDS:
        return False
    texts = [call.get(field) for field in ("id", "error")]
    if arguments is str:
        texts += [call.get("name"), call.get("args")]
    elif not isinstance(call.get("name"), str) or not isinstance(call.get("args"), dict):
        return False
    known = call.get("type") in (None, "tool_call", "invalid_tool_call")
    return known and all(text is None or isinstance(text, str) for text in texts)
