"""What changed between two JSON demands, and which of it the verifier accounts for.

Keys are verified one by one, and a schema's validation keywords by the validator, so a change
that makes a demand *narrower* is explained: a value that still satisfies it stands. What no
validator can see is not explained: the source text, what is said of a key in words ("in millions"),
a schema's descriptions, and a demand made *wider*, under which the model might have answered
otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepcache._types import Constraints, Difference

__all__ = ["compare", "renamed_key"]

_ANNOTATIONS = ("title", "description", "$comment", "default", "examples", "deprecated", "format")
_ROOT_KEYS = frozenset(("properties", "required", "additionalProperties"))
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


def compare(old: Constraints, new: Constraints, owner: str) -> tuple[Difference, ...]:
    """Every difference between two parsed demands; ``owner`` stands on those that are verified."""
    a, b = old.values, new.values
    return tuple(
        difference
        for part in (_source(a, b), _form(a, b, owner), _keys(a, b, owner), _schema(a, b, owner))
        for difference in part
    )


def renamed_key(old: Sequence[str], new: Sequence[str]) -> tuple[str, str] | None:
    """The one key that was renamed: same place, same others, and plainly the same words in another
    case or with other separators. A plural is another demand: it may want a list."""
    gone = [key for key in old if key not in new]
    come = [key for key in new if key not in old]
    if len(gone) != 1 or len(come) != 1 or len(old) != len(new):
        return None
    if list(old).index(gone[0]) != list(new).index(come[0]):
        return None
    return (gone[0], come[0]) if _stem(gone[0]) == _stem(come[0]) else None


def _stem(key: str) -> tuple[str, ...]:
    parts = [part.casefold() for part in _PARTS.findall(key)]
    if not parts:
        return (key,)
    return tuple(parts)


def _source(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
    if a.get("source") != b.get("source"):
        yield _difference("source-changed", "source", a.get("source"), b.get("source"))
    if list(a.get("quoted") or ()) != list(b.get("quoted") or ()):
        yield _difference("quoted-changed", "quoted", a.get("quoted"), b.get("quoted"))


def _form(a: Mapping[str, Any], b: Mapping[str, Any], owner: str) -> Iterator[Difference]:
    if a.get("shape") != b.get("shape"):
        # An array answers "as JSON" as well as an object does; the verifier sees which it is. With
        # no keys named, an object is only one of many forms the model could have chosen.
        keyed = bool(a.get("keys")) and bool(b.get("keys"))
        verified = owner if keyed or a.get("shape") == "any" else None
        yield _difference("shape-changed", "shape", a.get("shape"), b.get("shape"), verified)
    if a.get("extras") != b.get("extras"):
        narrowed = owner if b.get("extras") != "welcome" else None
        yield _difference("extra-keys", "extras", a.get("extras"), b.get("extras"), narrowed)
    if a.get("bare") != b.get("bare"):
        yield _difference("prose", "bare", a.get("bare"), b.get("bare"), owner)
    if a.get("ordered") != b.get("ordered"):
        yield _difference("order", "ordered", a.get("ordered"), b.get("ordered"))


def _keys(a: Mapping[str, Any], b: Mapping[str, Any], owner: str) -> Iterator[Difference]:
    old, new = list(a.get("keys") or ()), list(b.get("keys") or ())
    bare = a.get("schema") is None or b.get("schema") is None
    if bare and bool(old) != bool(new):
        # With no keys named, which ones stand in the answer was the model's choice.
        yield _difference("keys-changed", "keys", old, new)
        return
    renamed = renamed_key(old, new)
    if renamed:
        yield Difference(
            kind="key-renamed", path="keys", old=renamed[0], new=renamed[1], owner=owner
        )
    for key in old:
        if key not in new and not (renamed and key == renamed[0]):
            yield Difference(kind="key-removed", path="keys", old=key, new="", owner=owner)
    for key in new:
        if key not in old and not (renamed and key == renamed[1]):
            yield Difference(kind="key-added", path="keys", old="", new=key, owner=owner)
    if old != new and set(old) == set(new) and (a.get("ordered") or b.get("ordered")):
        yield _difference("key-order", "keys", old, new)
    yield from _notes(a, b, renamed)


def _notes(
    a: Mapping[str, Any], b: Mapping[str, Any], renamed: tuple[str, str] | None
) -> Iterator[Difference]:
    old, new = dict(a.get("notes") or {}), dict(b.get("notes") or {})
    if renamed and renamed[0] in old:
        old[renamed[1]] = old.pop(renamed[0])
    if old.get("") != new.get(""):
        yield _difference("key-note", "keys", old.get(""), new.get(""))
    for key in b.get("keys") or ():
        was_asked = key in (a.get("keys") or ()) or (renamed is not None and key == renamed[1])
        if was_asked and old.get(key) != new.get(key):
            yield _difference("key-note", f"keys/{key}", old.get(key), new.get(key))


# --- schemas -----------------------------------------------------------------------------------


def _schema(a: Mapping[str, Any], b: Mapping[str, Any], owner: str) -> Iterator[Difference]:
    old, new = a.get("schema"), b.get("schema")
    if _same(old, new):
        return
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        yield _difference("schema-changed", "schema", old, new)
        return
    for name in sorted({*old, *new} - _ROOT_KEYS):
        if not _same(old.get(name), new.get(name)):
            yield _difference("schema-changed", f"schema/{name}", old.get(name), new.get(name))
    old_parts, new_parts = _properties(old), _properties(new)
    for key in sorted({*old_parts, *new_parts}):
        yield from _property(key, old_parts, new_parts, owner)
    for name in ("required", "additionalProperties"):
        if not _same(old.get(name), new.get(name)):
            yield _difference(
                "schema-changed", f"schema/{name}", old.get(name), new.get(name), owner
            )


def _property(
    key: str, old: Mapping[str, Any], new: Mapping[str, Any], owner: str
) -> Iterator[Difference]:
    path = f"schema/properties/{key}"
    if key not in old:
        yield Difference(kind="key-added", path=path, old="", new=key, owner=owner)
    elif key not in new:
        yield Difference(kind="key-removed", path=path, old=key, new="", owner=owner)
    elif not _same(old[key], new[key]):
        verified = owner if _narrower(old[key], new[key]) else None
        yield _difference("schema-changed", path, old[key], new[key], verified)


def _narrower(old: Any, new: Any) -> bool:
    """Whether every value ``new`` allows was allowed by ``old``, or its type is another one (then
    the validator decides), with the same words said about it."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return False
    if _disjoint(old.get("type"), new.get("type")):
        return True  # no value stands: it is asked for anew, under all of the new demand
    changed = [k for k in {*old, *new} if not _same(old.get(k), new.get(k))]
    return all(_keyword_narrower(name, old.get(name), new.get(name)) for name in changed)


def _disjoint(old: Any, new: Any) -> bool:
    """Whether no JSON value is of both types and none is turned into the other."""
    plain = {"string", "integer", "number", "boolean", "null", "array", "object"}
    if not (isinstance(old, str) and isinstance(new, str) and {old, new} <= plain):
        return False
    return old != new and bool({old, new} & {"array", "object", "boolean", "null"})


def _keyword_narrower(name: str, old: Any, new: Any) -> bool:
    if name in _ANNOTATIONS:
        return False
    if name == "type":
        return isinstance(old, str) and isinstance(new, str)
    if name == "enum":
        if not isinstance(new, Sequence):
            return False
        known = [_text(value) for value in old] if isinstance(old, Sequence) else None
        kept = [value for value in new if known is None or _text(value) in known]
        return len(kept) == len(new) or not kept
    if name in _UPPER:
        return _number(new) and (old is None or (_number(old) and new <= old))
    if name in _LOWER:
        return _number(new) and (old is None or (_number(old) and new >= old))
    return False


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    value = schema.get("properties")
    return value if isinstance(value, Mapping) else {}


def _same(a: Any, b: Any) -> bool:
    return _text(a) == _text(b)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=dict)


def _difference(
    kind: str, path: str, old: object, new: object, owner: str | None = None
) -> Difference:
    return Difference(kind=kind, path=path, old=_shown(old), new=_shown(new), owner=owner)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else _text(value)
    return text if len(text) <= 120 else text[:117] + "..."
