"""Verdicts on JSON steps, on the prose around them, and on the whole answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stepcache._types import Constraints, Fix, Step, Verdict, join
from stepcache.tasks.json_answer._extract import Found, extract
from stepcache.tasks.json_answer._schema import property_names, validate

__all__ = ["allowed_keys", "check_whole", "verify_json", "verify_prose"]

_MAX_PROSE_CHARS = 2_000
_CHECKABLE = re.compile(
    r"\d|[\"“”`{}\[\]]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|keys?|fields?|"
    r"propert(?:y|ies)|attributes?|missing|omitted|excluded|included|added|null|empty|unknown|"
    r"sorry|cannot|can't|unable|note)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_](?:[\w-]*[^\W_])?")


def verify_json(step: Step, constraints: Constraints) -> Verdict:
    """Does a step of kind ``json`` hold what is demanded, and nothing that is no longer?"""
    found = extract(step.text)
    if not isinstance(found, Found):
        return Verdict.failed("broken-json", found.reason)
    return _judge(found, constraints, strict=True)


def verify_prose(step: Step, constraints: Constraints) -> Verdict:
    """Prose around the JSON holds when it states nothing that a changed demand could make wrong."""
    text = step.text
    if not text.strip() or not text.strip("`~ \t\r\n"):
        return Verdict.passed("blank")
    if constraints.values.get("bare"):
        return Verdict.failed("prose-unwanted", "nothing but the JSON is demanded")
    if len(text) > _MAX_PROSE_CHARS:
        return Verdict.unknown("long-prose", "prose too long to be a mere introduction")
    claim = _CHECKABLE.search(text)
    if claim:
        return Verdict.unknown("prose-claim", f"prose states something: {claim.group()!r}")
    words = {word.casefold() for word in _WORD.findall(text)}
    named = [key for key in constraints.values.get("keys") or () if key.casefold() in words]
    if named:
        return Verdict.unknown("prose-claim", f"prose names the key {named[0]!r}")
    return Verdict.passed("no-claim", "prose that states nothing about the object")


def check_whole(steps: Sequence[Step], constraints: Constraints) -> Verdict:
    """Is the answer exactly one JSON value that satisfies keys and schema?"""
    found = extract(join(steps))
    if not isinstance(found, Found):
        return Verdict.failed(found.code, found.reason)
    return _judge(found, constraints, strict=False)


def allowed_keys(constraints: Constraints) -> frozenset[str] | None:
    """The keys a reused object may hold, or None when any may stand in it."""
    values = constraints.values
    keys = frozenset(values.get("keys") or ())
    named = property_names(values.get("schema"))
    if values.get("schema") is not None:
        return None if named is None else named | keys
    return keys if keys and values.get("extras") != "welcome" else None


def _judge(found: Found, constraints: Constraints, *, strict: bool) -> Verdict:
    if found.damage:
        return Verdict.failed(
            "damaged-json", f"{found.damage} would be decoded as a control character"
        )
    if found.beyond:
        return Verdict.failed("huge-number", f"most readers turn {found.beyond} into infinity")
    values = constraints.values
    value, schema = found.value, values.get("schema")
    shape = _shape(value, values, bool(constraints.whole))
    if shape is not None:
        return shape
    strict = strict or values.get("extras") == "forbidden"
    items = _items(value, values) if schema is None else None
    if items is not None:
        return _judge_items(items, constraints, strict=strict)
    missing = [key for key in values.get("keys") or () if _lacks(value, key)]
    extra = _extra(value, constraints, strict=strict)
    wrong: tuple[str, ...] = ()
    if isinstance(schema, Mapping):
        result = validate(value, schema)
        if result.valid is None:
            return Verdict.unknown("schema-unusable", result.reason)
        if result.elsewhere:
            return Verdict.failed("schema-violation", result.reason)
        missing = list(dict.fromkeys([*missing, *result.missing]))
        extra = list(dict.fromkeys([*extra, *result.extra]))
        wrong = tuple(key for key in result.wrong if key not in extra)
        if wrong:
            ask = (*wrong, *missing)
            return Verdict.failed("schema-violation", result.reason, _fix(ask, value, constraints))
    if missing:
        reason = f"required keys are missing: {', '.join(missing)}"
        return Verdict.failed("missing-keys", reason, _fix(missing, value, constraints))
    if extra:
        reason = f"keys that are not demanded: {', '.join(extra)}"
        return Verdict.failed("extra-keys", reason, Fix(share=0.0))
    return Verdict.passed("json", "the object satisfies the keys and schema demanded")


def _shape(value: Any, values: Mapping[str, Any], whole: bool) -> Verdict | None:
    shape = values.get("shape", "any")
    if values.get("schema") is not None:
        return None
    keyed = bool(values.get("keys"))
    if shape == "array" and not isinstance(value, list):
        return Verdict.failed("wrong-shape", "an array is demanded")
    if shape == "object" and not isinstance(value, dict):
        return Verdict.failed("wrong-shape", "an object is demanded")
    if keyed and not isinstance(value, (dict, list)):
        return Verdict.failed("wrong-shape", "an object with keys is demanded")
    return None


def _items(value: Any, values: Mapping[str, Any]) -> Sequence[Any] | None:
    """The objects that have to hold the keys, where the value itself is a collection of them."""
    if isinstance(value, list):
        return value
    keys = values.get("keys") or ()
    if values.get("shape") != "any" or not isinstance(value, dict) or not keys:
        return None
    inner = list(value.values())
    if any(key in value for key in keys) or not inner:
        return None
    if len(inner) == 1 and isinstance(inner[0], list) and inner[0]:
        return inner[0]
    return inner if all(isinstance(item, dict) for item in inner) else None


def _judge_items(items: Sequence[Any], constraints: Constraints, *, strict: bool) -> Verdict:
    keys = constraints.values.get("keys") or ()
    for number, item in enumerate(items if keys else ()):
        if not isinstance(item, dict):
            return Verdict.failed("wrong-shape", f"item {number + 1} is no object")
        missing = [key for key in keys if key not in item]
        if missing:
            reason = f"item {number + 1} lacks the keys: {', '.join(missing)}"
            return Verdict.failed("missing-keys", reason)
        extra = _extra(item, constraints, strict=strict)
        if extra:
            reason = f"item {number + 1} has keys that are not demanded: {', '.join(extra)}"
            return Verdict.failed("extra-keys", reason)
    return Verdict.passed("json", "every item satisfies the keys demanded")


def _lacks(value: Any, key: str) -> bool:
    return not isinstance(value, dict) or key not in value


def _extra(value: Any, constraints: Constraints, *, strict: bool) -> list[str]:
    allowed = allowed_keys(constraints) if strict else None
    if allowed is None or not isinstance(value, dict):
        return []
    return [key for key in value if key not in allowed]


def _fix(ask: Iterable[str], value: Any, constraints: Constraints) -> Fix | None:
    names = tuple(dict.fromkeys(ask))
    if not isinstance(value, dict):
        return None
    demanded = {*value, *(constraints.values.get("keys") or ()), *names}
    return Fix(ask=names, share=min(1.0, len(names) / max(1, len(demanded))))
