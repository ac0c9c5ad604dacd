"""Reading a list of keys out of a prompt: "with keys name, age and email", templates, bullets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stepcache.tasks.json_answer._extract import parse_strict
from stepcache.tasks.json_answer._members import Member, members
from stepcache.tasks.json_answer._words import (
    FOREIGN_AND,
    INSTRUCTION_VERBS,
    MORE_KEYS,
    NOT_KEYS,
    NUMBERS,
)

__all__ = ["AS_KEYS", "KeyList", "count_agrees", "read_foreign_list", "read_list", "read_template"]

_MAX_KEYS = 200
_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|`([^`\n]{1,200})`|'([^'\n]{1,200})'|“([^“”\n]{1,200})”")
_BARE = re.compile(r"[^\W\d][\w-]{0,80}(?:\.[\w-]{1,80}){0,4}")
_NOTE = re.compile(r"\s{0,3}\(([^()\n]{1,300})\)")
_AND = re.compile(
    r"\s{0,3},?\s{1,3}(?:and|plus)\s{1,3}(?:the\s{1,3})?|\s{0,3}&\s{0,3}", re.IGNORECASE
)
_COMMA = re.compile(r"\s{0,3},\s{0,40}")
_CLOSING = re.compile(
    r"\s{0,3},?\s{1,3}(?:and\s+)?(?:nothing\s+else|no\s+others?|no\s+other\s+keys|"
    r"only)(?=\s{0,3}(?:[.;!]|$))",
    re.IGNORECASE,
)
_END = re.compile(r"\s{0,40}(?:$|[.;:!?)\]}\n](?![\w]))")
AS_KEYS = re.compile(
    r"\s{1,3}as\s+(?:(?:its|the|your)\s+)?"
    r"(?:keys|fields|properties|attributes|(?:key|field|property|attribute)\s+names)\b",
    re.IGNORECASE,
)
"""What names a list the keys from behind."""
_WORD = re.compile(r"[ \t]+([^\W\d_][\w'\u2019]*)")
_IMPERATIVES = INSTRUCTION_VERBS - {"please", "then"}
_CONNECTOR = re.compile(
    r"\s{0,3}(,\s{0,3}(?:and\b\s{0,3})?|\band\b[\s,]{0,3})?((?:or|plus|also|as\s+well\s+as|"
    r"along\s+with)"
    r"\b)?(?:(?<=[,\s])([^\W\d_]+))?",
    re.IGNORECASE,
)
_AND_SO_ON = re.compile(r"\s{0,3},?\s{0,3}(?:\.\.\.|\u2026|etc\b|and\s+so\s+on\b)", re.IGNORECASE)
_BULLET = re.compile(
    r"([ \t]*)(?:[-*•]|\d{1,3}[.)])[ \t]+[\"`'*]{0,3}([^\W\d][\w.-]{0,80})[\"`'*]{0,3}"
    r"(?:[ \t]*(?:[:–—(]|-[ \t])[ \t]*([^\n]{1,500}))?[ \t]*(?:\n|$)"
)
_FOREIGN_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,80}+(?![\u0080-\u2fff])")
_FOREIGN_JOIN = re.compile(
    rf"\s{{0,3}}[,\u3001\uff0c]\s{{0,3}}(?:{FOREIGN_AND}\s{{1,3}})?"
    rf"|\s{{1,3}}{FOREIGN_AND}\s{{1,3}}|\s{{0,3}}[和及と]\s{{0,3}}",
    re.IGNORECASE,
)
_FOREIGN_END = re.compile(r"\s{0,40}(?:$|[.;:!?)\]\n\u3002\uff1b\uff01\uff09\u7684]|です|でお願い)")
_EMPTY = re.compile(r"[\s._…\-\"'<>]*")


@dataclass(frozen=True, slots=True)
class KeyList:
    """Keys in the order they are named."""

    keys: tuple[str, ...]
    stop: int
    """Where the list ends in the text."""
    readable: bool = True
    """False: this looked like a list of keys and could not be read to its end."""
    certain: bool = True
    """False for a single bare word, which only an explicit "keys" makes a key."""
    notes: dict[str, str] = field(default_factory=dict)
    """What is said of single keys, verbatim: "(integer)"; under "" what belongs to no key."""
    schema: dict[str, Any] | None = None
    """The JSON Schema that stood in the template's place."""


def read_list(text: str, at: int) -> KeyList | None:
    """The list that starts at ``at``, or None when no key stands there."""
    bullets = _bullets(text, at)
    if bullets is not None:
        return bullets
    keys: list[str] = []
    notes: dict[str, str] = {}
    quoted_any = False
    while len(keys) < _MAX_KEYS:
        item = _item(text, at)
        if item is None:
            return _finished(text, keys, notes, at, quoted_any) if keys else None
        key, after, quoted = item
        note = _NOTE.match(text, after)
        end = note.end() if note else after
        if not quoted and not note and not _closed(text, end):
            return KeyList((), end, readable=False)
        quoted_any = quoted_any or quoted
        keys.append(key)
        if note:
            notes[key] = note.group(1).strip()
        if closing := _CLOSING.match(text, end):
            return _finished(text, keys, notes, closing.end(), quoted_any)
        separator = _AND.match(text, end) or _COMMA.match(text, end)
        if separator is None or not _goes_on(text, separator.end()):
            return _finished(text, keys, notes, end, quoted_any)
        at = separator.end()
    return KeyList((), at, readable=False)


def read_foreign_list(text: str, at: int) -> KeyList | None:
    """A list of plain or quoted ASCII keys joined in the way of another language, or None."""
    keys: list[str] = []
    while len(keys) < _MAX_KEYS:
        item = _QUOTED.match(text, at) or _FOREIGN_BARE.match(text, at)
        if item is None:
            return None
        keys.append(next((g for g in item.groups() if g is not None), item.group()))
        joined = _FOREIGN_JOIN.match(text, item.end())
        if joined is None:
            ends = _FOREIGN_END.match(text, item.end()) is not None
            unique = len(set(keys)) == len(keys)
            return KeyList(tuple(keys), item.end()) if ends and unique else None
        at = joined.end()
    return None


def read_template(text: str, start: int) -> KeyList | None:
    """The keys of a template such as ``{"name": ..., "age": "<years>"}`` that starts at ``start``.

    It need not be JSON. What its values say is kept as notes; empty slots say nothing.
    """
    stop = _balanced(text, start)
    if stop is None:
        return None
    body = text[start:stop]
    found = members(body)
    if not found or len(found) > _MAX_KEYS:
        return None
    schema = _schema(body)
    if schema is not None:
        required = schema.get("required")
        names = required if isinstance(required, list) else []
        keys = tuple(dict.fromkeys(key for key in names if isinstance(key, str)))
        return KeyList(keys, stop, schema=schema)
    keys = tuple(dict.fromkeys(m.key for m in found))
    notes = {}
    for member in found:
        said = body[member.value_start : member.stop]
        bare = said.strip("\"'<> ").casefold()
        if not _EMPTY.fullmatch(said) and bare not in (member.key.casefold(), "null"):
            notes[member.key] = said
    if _between(body, found).strip(" \t\r\n,"):
        notes[""] = body  # comments and the like: they belong to no key, so all of it is kept
    return KeyList(keys, stop, notes=notes)


def _schema(body: str) -> dict[str, Any] | None:
    """The template read as a JSON Schema, where it plainly is one."""
    try:
        value = parse_strict(body, unique=True)
    except ValueError:
        return None
    typed = value.get("type") in ("object", "array") and "$schema" not in value
    described = isinstance(value.get("properties"), dict) or isinstance(value.get("items"), dict)
    return value if (typed or "$schema" in value) and described else None


def _between(body: str, found: Sequence[Member]) -> str:
    """What a template says outside its members."""
    ends = [1, *(m.stop for m in found)]
    starts = [*(m.start for m in found), len(body) - 1]
    colons = (body[m.key_stop : m.value_start].replace(":", "", 1) for m in found)
    return "".join([*(body[a:b] for a, b in zip(ends, starts)), *colons])


def count_agrees(word: str | None, keys: tuple[str, ...]) -> bool:
    """Whether "three" (or "3") is how many keys follow; no word agrees with any number."""
    if word is None:
        return True
    number = NUMBERS.get(word.casefold(), int(word) if word.isdecimal() else None)
    return number == len(keys)


def _bullets(text: str, at: int) -> KeyList | None:
    line = text.rfind("\n", 0, at) + 1
    if text[line:at].strip():
        return None
    keys: list[str] = []
    notes: dict[str, str] = {}
    indents: set[str] = set()
    at = line
    while (match := _BULLET.match(text, at)) and len(keys) < _MAX_KEYS and match.end() > at:
        indent, key, note = match.groups()
        indents.add(indent)
        keys.append(key)
        if note:
            notes[key] = note.strip()
        at = match.end()
    if not keys:
        return None
    unique = tuple(dict.fromkeys(keys))
    readable = len(unique) == len(keys) < _MAX_KEYS and len(indents) == 1
    return KeyList(unique if readable else (), at, readable=readable, notes=notes)


def _item(text: str, at: int) -> tuple[str, int, bool] | None:
    if quoted := _QUOTED.match(text, at):
        return next(g for g in quoted.groups() if g is not None), quoted.end(), True
    bare = _BARE.match(text, at)
    if bare is None:
        return None
    word = bare.group().rstrip("-")
    end = bare.start() + len(word)
    if word.casefold() in NOT_KEYS and text[end : end + 1] != ",":
        return None
    return word, end, False


def _closed(text: str, at: int) -> bool:
    """Whether a bare key may end at ``at``: no ordinary word follows it."""
    if _END.match(text, at) or _COMMA.match(text, at) or _AND.match(text, at):
        return True
    word = _WORD.match(text, at)
    # "..., briefly describe": no key stands right before an imperative.
    follows = word.group(1).casefold() if word else ""
    return follows in NOT_KEYS and follows not in _IMPERATIVES


def _goes_on(text: str, at: int) -> bool:
    item = _item(text, at)
    if item is None:
        return False
    key, after, quoted = item
    follows = _WORD.match(text, after)
    verb = key.casefold() in INSTRUCTION_VERBS and follows is not None
    return quoted or not verb


def _finished(
    text: str, keys: list[str], notes: dict[str, str], stop: int, quoted: bool
) -> KeyList:
    unique = tuple(dict.fromkeys(keys))
    if _AND_SO_ON.match(text, stop):
        return KeyList((), stop, readable=False)
    more = _CONNECTOR.match(text, stop)
    named = AS_KEYS.match(text, stop) is not None
    goes_on = (
        not named
        and more is not None
        and (more.group(2) or (more.group(3) or "").casefold() in MORE_KEYS)
    )
    if len(unique) < len(keys) or goes_on:
        return KeyList((), stop, readable=False)
    certain = named or quoted or len(unique) > 1
    return KeyList(unique, stop, certain=certain, notes=notes)


_MARKS = re.compile(r'"(?:[^"\\\n]++|\\.)*+"?|[{}]', re.DOTALL)


def _balanced(text: str, start: int) -> int | None:
    depth = 0
    for match in _MARKS.finditer(text, start, start + 20_000):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return match.end()
    return None
