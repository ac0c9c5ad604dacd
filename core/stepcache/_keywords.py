"""JSON Schema's keywords that are our own: references, and what no other keyword has looked at.

The specifications define *unevaluated* by annotations: a keyword tells which properties or items it
has looked at, and what a part tells counts only where the value satisfies that part (2019-09,
section 9.3; 2020-12, section 11).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from stepcache._patterns import cost

__all__ = ["LOOKED_UP", "own_keywords"]

LOOKED_UP = 40
"""Names looked up in a step."""


def own_keywords(known: Mapping[str, Any]) -> dict[str, Callable[[Any, Any, Any, Any], Any]]:
    """Those that a dialect has, by name."""
    own = {
        "$dynamicRef": _reference,
        "$recursiveRef": _back,
        "$ref": _reference,
        "pattern": _pattern,
        "unevaluatedItems": _unevaluated_items(by_prefix="prefixItems" in known),
        "unevaluatedProperties": _unevaluated_properties,
    }
    return {name: keyword for name, keyword in own.items() if name in known}


def _reference(checker: Any, reference: str, instance: Any, schema: Any) -> Iterator[Any]:
    yield from checker.led_to(reference).iter_errors(instance)


def _back(checker: Any, reference: str, instance: Any, schema: Any) -> Iterator[Any]:
    yield from checker.led_back().iter_errors(instance)


def _pattern(checker: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not re.search(pattern, instance):
        yield ValidationError(f"{instance[:80]!r} does not match {pattern[:80]!r}")


# --- what is unevaluated -------------------------------------------------------------------------


def _unevaluated_properties(checker: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        seen = _seen(checker, instance, schema, _properties, "unevaluatedProperties")
        rest = [name for name in instance if name not in seen]
        yield from _refused(checker, value, instance, rest)


def _unevaluated_items(*, by_prefix: bool) -> Callable[[Any, Any, Any, Any], Iterator[Any]]:
    told = _items if by_prefix else _items_of_2019

    def keyword(checker: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, list):
            seen = _seen(checker, instance, schema, told, "unevaluatedItems")
            rest = [at for at in range(len(instance)) if at not in seen]
            yield from _refused(checker, value, instance, rest)

    return keyword


def _refused(checker: Any, value: Any, instance: Any, places: list[Any]) -> Iterator[Any]:
    from jsonschema import ValidationError

    part = checker.evolve(schema=value)
    for place in places:
        if not part.is_valid(instance[place]):
            yield ValidationError(f"nothing else allows {str(place)[:80]!r}, and neither does this")
            return


def _seen(
    checker: Any,
    instance: Any,
    schema: Any,
    told: Callable[[Any, Any, Any], Collection[Any] | None],
    name: str,
) -> Collection[Any]:
    """The properties or items that the keywords beside one, and below those, have looked at.

    A part that must hold for the whole to hold (``allOf``, a reference) is not asked whether it
    does: if not, the value is refused anyway.

    Args:
        told: What one part's own keywords tell; None for everything.
        name: The keyword that asks. In any other part it has looked at all that was left.
    """
    found: set[Any] = set()
    parts = [(checker, schema)]
    first = True
    while parts:
        here, part = parts.pop()
        here.purse.pay(1 + len(instance) // LOOKED_UP)
        if not isinstance(part, dict):
            continue
        seen = None if name in part and not first else told(here, part, instance)
        first = False
        if seen is None:
            return instance if isinstance(instance, dict) else range(len(instance))
        found.update(seen)
        parts += [(there, there.schema) for there in _inside(here, part, instance)]
    return found


def _inside(here: Any, part: Mapping[str, Any], instance: Any) -> Iterator[Any]:
    """The parts that a part applies to the same value, and that it satisfies."""
    for name in ("$ref", "$dynamicRef"):
        if name in part and name in here.dialect.keywords:
            yield here.led_to(part[name])
    if "$recursiveRef" in part and "$recursiveRef" in here.dialect.keywords:
        yield here.led_back()
    for branch in part.get("allOf", ()):
        yield here.evolve(schema=branch)
    for branch in (*part.get("anyOf", ()), *part.get("oneOf", ())):
        there = here.evolve(schema=branch)
        if there.is_valid(instance):
            yield there
    if "if" in part:
        condition = here.evolve(schema=part["if"])
        holds = condition.is_valid(instance)
        if holds:
            yield condition
        follows = part.get("then" if holds else "else")
        if follows is not None:
            yield here.evolve(schema=follows)
    if isinstance(instance, dict):
        for name, branch in part.get("dependentSchemas", {}).items():
            here.purse.pay(1)
            if name in instance:
                yield here.evolve(schema=branch)


def _properties(here: Any, part: Mapping[str, Any], instance: Any) -> Collection[Any] | None:
    if "additionalProperties" in part:
        return None
    named = part.get("properties", {})
    here.purse.pay(len(named) // LOOKED_UP)
    found = {name for name in named if name in instance}
    for pattern in part.get("patternProperties", {}):
        for name in instance:
            here.purse.pay(1 + cost(pattern, name))
            if re.search(pattern, name):
                found.add(name)
    return found


def _items(here: Any, part: Mapping[str, Any], instance: Any) -> Collection[Any] | None:
    if "items" in part:
        return None
    found = set(range(min(len(part.get("prefixItems", ())), len(instance))))
    if "contains" in part:
        holder = here.evolve(schema=part["contains"])
        found.update(at for at, item in enumerate(instance) if holder.is_valid(item))
    return found


def _items_of_2019(here: Any, part: Mapping[str, Any], instance: Any) -> Collection[Any] | None:
    listed = part.get("items", ())
    if not isinstance(listed, (list, tuple)) or ("items" in part and "additionalItems" in part):
        return None
    return range(min(len(listed), len(instance)))
