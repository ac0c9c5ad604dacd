"""JSON Schema read by its specification alone, to judge the product by: no library, no budget.

It follows the text of 2019-09 and 2020-12: every part gives a verdict and, where it holds, what it
has looked at (the annotations); what is unevaluated follows from those. One document, no ``$id``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

__all__ = ["UndecidedError", "satisfies"]

_MAX_STEPS = 20_000
_MAX_DEPTH = 60


class UndecidedError(Exception):
    """This reader gives up: a circle, or branches without end."""


def satisfies(schema: Any, value: Any, *, old: bool) -> bool:
    """Whether a value satisfies a schema.

    Args:
        old: By 2019-09 instead of 2020-12.

    Raises:
        UndecidedError: It would take too long.
    """
    return _Reader(schema, old=old).part(schema, value, 0) is not None


class _Reader:
    def __init__(self, root: Any, *, old: bool) -> None:
        self.root = root
        self.old = old
        self.steps = 0

    def part(self, schema: Any, value: Any, depth: int) -> set[Any] | None:
        """What a part has looked at of a value's properties or items; None where it fails.

        Raises:
            UndecidedError: It would take too long.
        """
        self.steps += 1
        if self.steps > _MAX_STEPS or depth > _MAX_DEPTH:
            raise UndecidedError
        if isinstance(schema, bool):
            return set() if schema else None
        if not all(_plain(name, asked, value) for name, asked in schema.items()):
            return None
        seen: set[Any] = set()
        for told in self.same_place(schema, value, depth + 1):
            if told is None:
                return None
            seen |= told
        if isinstance(value, dict):
            return self.properties(schema, value, seen, depth + 1)
        if isinstance(value, list):
            return self.items(schema, value, seen, depth + 1)
        return seen

    def same_place(self, schema: Any, value: Any, depth: int) -> Iterator[set[Any] | None]:
        """What the parts say that a part applies to the same value."""
        reference = "$recursiveRef" if self.old else "$dynamicRef"
        for name in ("$ref", reference):
            if name in schema:
                yield self.part(self.found(schema[name]), value, depth)
        for branch in schema.get("allOf", ()):
            yield self.part(branch, value, depth)
        for name, most in (("anyOf", len(schema.get("anyOf", ()))), ("oneOf", 1)):
            if name in schema:
                told = [self.part(branch, value, depth) for branch in schema[name]]
                held = [each for each in told if each is not None]
                yield set().union(*held) if 1 <= len(held) <= most else None
        if "not" in schema:
            yield set() if self.part(schema["not"], value, depth) is None else None
        if "if" in schema:
            condition = self.part(schema["if"], value, depth)
            yield condition or set()
            yield self.part(schema.get("else" if condition is None else "then", True), value, depth)
        for name, branch in schema.get("dependentSchemas", {}).items():
            if isinstance(value, dict) and name in value:
                yield self.part(branch, value, depth)

    def found(self, reference: str) -> Any:
        """The part that a pointer or an anchor names."""
        if reference == "#":
            return self.root
        place: Any = self.root
        if reference.startswith("#/"):
            for name in reference[2:].split("/"):
                place = place[int(name) if isinstance(place, list) else name]
            return place
        anchors = [each for each in self.root["$defs"].values() if isinstance(each, dict)]
        (named,) = [
            each
            for each in anchors
            if reference[1:] in (each.get("$anchor"), each.get("$dynamicAnchor"))
        ]
        return named

    def properties(
        self, schema: Any, value: dict[str, Any], seen: set[Any], depth: int
    ) -> set[Any] | None:
        """The keywords of an object's properties, in the order in which they build on others."""
        named = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        own: set[Any] = set()
        for key, inner in value.items():
            parts = [part for pattern, part in patterns.items() if re.search(pattern, key)]
            parts += [named[key]] if key in named else []
            if any(self.part(part, inner, depth) is None for part in parts):
                return None
            if parts:
                own.add(key)
            if "propertyNames" in schema and (
                self.part(schema["propertyNames"], key, depth) is None
            ):
                return None
        if "additionalProperties" in schema:
            for key in value.keys() - own:
                if self.part(schema["additionalProperties"], value[key], depth) is None:
                    return None
            own = set(value)
        seen = seen | own
        if "unevaluatedProperties" in schema:
            for key in value.keys() - seen:
                if self.part(schema["unevaluatedProperties"], value[key], depth) is None:
                    return None
            seen = set(value)
        return seen

    def items(self, schema: Any, value: list[Any], seen: set[Any], depth: int) -> set[Any] | None:
        """The keywords of an array's items."""
        rest: Any = schema.get("items")
        listed = schema.get("prefixItems", []) if not self.old else []
        if self.old and isinstance(rest, list):
            listed, rest = rest, schema.get("additionalItems")
        own = set(range(min(len(listed), len(value))))
        if any(self.part(listed[at], value[at], depth) is None for at in own):
            return None
        if rest is not None:
            if any(self.part(rest, item, depth) is None for item in value[len(listed) :]):
                return None
            own = set(range(len(value)))
        if "contains" in schema:
            held = {
                at
                for at, item in enumerate(value)
                if self.part(schema["contains"], item, depth) is not None
            }
            if not schema.get("minContains", 1) <= len(held) <= schema.get("maxContains", 10**9):
                return None
            own |= set() if self.old else held
        seen = seen | own
        if "unevaluatedItems" in schema:
            for at in set(range(len(value))) - seen:
                if self.part(schema["unevaluatedItems"], value[at], depth) is None:
                    return None
            seen = set(range(len(value)))
        return seen


def _plain(name: str, asked: Any, value: Any) -> bool:
    """The keywords that look at a value and at nothing else."""
    match name:
        case "type":
            return any(_is(value, kind) for kind in ([asked] if isinstance(asked, str) else asked))
        case "const":
            return _same(value, asked)
        case "enum":
            return any(_same(value, each) for each in asked)
        case "required":
            return not isinstance(value, dict) or all(key in value for key in asked)
        case "dependentRequired":
            return not isinstance(value, dict) or all(
                key in value for has, keys in asked.items() if has in value for key in keys
            )
        case "pattern":
            return not isinstance(value, str) or re.search(asked, value) is not None
        case "uniqueItems":
            return not (asked and isinstance(value, list)) or all(
                not _same(one, two) for at, one in enumerate(value) for two in value[:at]
            )
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf":
            return not _is(value, "number") or _in_bounds(
                name, Fraction(repr(asked)), Fraction(repr(value))
            )
        case _:
            return _of_size(name, asked, value)


def _in_bounds(name: str, bound: Fraction, value: Fraction) -> bool:
    match name:
        case "minimum":
            return value >= bound
        case "maximum":
            return value <= bound
        case "exclusiveMinimum":
            return value > bound
        case "exclusiveMaximum":
            return value < bound
        case _:
            return (value / bound).denominator == 1


_SIZES: dict[str, Any] = {"Length": str, "Items": list, "Properties": dict}


def _of_size(name: str, asked: Any, value: Any) -> bool:
    kind = _SIZES.get(name[3:])
    if kind is None or not isinstance(value, kind):
        return True
    return bool(len(value) >= asked if name.startswith("min") else len(value) <= asked)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, (int, float)):
        return kind == "number" or (kind == "integer" and value == int(value))
    return kind == {"str": "string", "list": "array", "dict": "object", "NoneType": "null"}.get(
        type(value).__name__
    )


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    return bool(one == two)
