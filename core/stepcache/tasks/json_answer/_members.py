"""Edits of one object's text, member by member: everything that is not named stays byte-identical.

The text must be an object that the strict parser has accepted; only then do the positions found
here mean what they say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Member", "drop", "dump_like", "insert", "members", "rename", "replace_values"]

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{},:]', re.DOTALL)
_SPACE = " \t\n\r"


@dataclass(frozen=True, slots=True)
class Member:
    """One ``"key": value`` of an object and where it stands in the object's text."""

    key: str
    start: int
    """Of the key's opening quote."""
    key_stop: int
    value_start: int
    stop: int
    """Of the value, white space excluded."""


def members(text: str) -> tuple[Member, ...]:
    """The members of the object that ``text`` is, in order; () when it is no object, or has a key
    that cannot be read."""
    body = text.lstrip(_SPACE)
    if not body.startswith("{"):
        return ()
    found: list[Member] = []
    depth = 0
    key: re.Match[str] | None = None
    colon = -1
    for match in _TOKEN.finditer(text):
        sign = match.group()
        if depth == 1 and key is None and sign[0] == '"':
            key = match
        elif depth == 1 and sign == ":":
            colon = match.end()
        elif depth == 1 and sign in ",}" and key is not None:
            try:
                found.append(_member(text, key, colon, match.start()))
            except ValueError:  # in a template that is no JSON
                return ()
            key = None
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
            if depth == 0:
                break
    return tuple(found)


def _member(text: str, key: re.Match[str], colon: int, end: int) -> Member:
    value = text[colon:end]
    start = colon + len(value) - len(value.lstrip(_SPACE))
    return Member(
        key=json.loads(key.group()),
        start=key.start(),
        key_stop=key.end(),
        value_start=start,
        stop=colon + len(value.rstrip(_SPACE)),
    )


def drop(text: str, keys: Collection[str]) -> str:
    """The object's text without the members named, each with the comma that parted it."""
    found = members(text)
    gone = frozenset(keys)
    kept = [(number, m) for number, m in enumerate(found) if m.key not in gone]
    if len(kept) == len(found):
        return text
    if not kept:
        return text[: text.index("{") + 1] + text[text.rindex("}") :]
    pieces = [text[: found[0].start]]
    for number, member in kept:
        if len(pieces) > 1:
            # The separator that stood before this member, as it was written.
            pieces.append(text[found[number - 1].stop : member.start])
        pieces.append(text[member.start : member.stop])
    pieces.append(text[found[-1].stop :])
    return "".join(pieces)


def rename(text: str, names: Mapping[str, str]) -> str:
    """The object's text with keys renamed in place."""
    edits = [
        (m.start, m.key_stop, json.dumps(names[m.key], ensure_ascii=not _plain(text)))
        for m in members(text)
        if m.key in names
    ]
    return _apply(text, edits)


def replace_values(text: str, values: Mapping[str, str]) -> str:
    """The object's text with the values of the keys named replaced by other JSON texts."""
    edits = [
        (m.value_start, m.stop, _indented(values[m.key], _margin(text, m.start)))
        for m in members(text)
        if m.key in values
    ]
    return _apply(text, edits)


def insert(text: str, values: Mapping[str, str], order: Sequence[str]) -> str:
    """The object's text with new members, each put where ``order`` wants it, else at the end.

    Args:
        values: JSON text by key; none of them stands in the object yet.
        order: All keys in the order wished for. Members already there are never moved.
    """
    for key in sorted(values, key=lambda k: order.index(k) if k in order else len(order)):
        text = _insert_one(text, key, values[key], order)
    return text


def _insert_one(text: str, key: str, value: str, order: Sequence[str]) -> str:
    found = members(text)
    name = json.dumps(key, ensure_ascii=not _plain(text))
    if not found:
        opening = text.index("{") + 1
        return f"{text[:opening]}{name}: {value}{text[text.rindex('}') :]}"
    first = found[0]
    colon = text[first.key_stop : first.value_start]
    margin = _margin(text, first.start)
    member = f"{name}{colon}{_indented(value, margin)}"
    earlier = set(order[: order.index(key)]) if key in order else {m.key for m in found}
    before = [m for m in found if m.key in earlier]
    separator = _separator(text, found)
    if before:
        at = before[-1].stop
        return text[:at] + separator + member + text[at:]
    return text[: first.start] + member + separator + text[first.start :]


def _separator(text: str, found: Sequence[Member]) -> str:
    """What parts two members in this text's own style."""
    if len(found) > 1:
        return text[found[0].stop : found[1].start]
    lead = text[text.index("{") + 1 : found[0].start]
    return "," + lead if "\n" in lead else ", "


def _margin(text: str, at: int) -> str:
    """The indentation of the line that ``at`` stands on, "" when the object is on one line."""
    line = text.rfind("\n", 0, at) + 1
    lead = text[line:at]
    return lead if line and not lead.strip(_SPACE) else ""


def _indented(value: str, margin: str) -> str:
    """A JSON text moved to a margin. A JSON string holds no bare line break: each is layout."""
    lines = value.split("\n")
    if len(lines) == 1:
        return value
    own = min((_lead(line) for line in lines[1:] if line.strip()), default=0)
    return "\n".join([lines[0], *(margin + line[own:] for line in lines[1:])])


def _lead(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _plain(text: str) -> bool:
    """Whether the text writes letters beyond ASCII as they are."""
    return not text.isascii()


def _apply(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, stop, new in sorted(edits):
        pieces += (text[at:start], new)
        at = stop
    return "".join((*pieces, text[at:]))


def dump_like(text: str, value: Any) -> str:
    """A value as JSON in the style of ``text`` (escapes or plain letters)."""
    return json.dumps(value, ensure_ascii=text.isascii())
