"""JSON Schema with a budget, for schemas and values that nobody vouches for.

The keywords are the library's; what goes from one to the next is our own, and pays for each part of
a schema it enters, each keyword it asks and each error it is told, by the work that is done for it.
A validation that costs more than its budget stops. So branches that double at every level,
references in a circle and comparisons of all with all take no more time than a large honest schema.
Nothing is fetched, and no part of a schema changes the dialect.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, TypeAlias

from stepcache._doubles import as_doubles, is_exact
from stepcache._keywords import LOOKED_UP, own_keywords
from stepcache._patterns import cost as matching

__all__ = ["Checker", "Purse", "holds_for_doubles", "validator_for"]

_BUDGET = 8_000
"""What a value's validation may cost, in steps of about 2 microseconds: a part entered, a keyword
asked, an error passed on."""
_SCHEMA_BUDGET = 12_000
"""The same for a schema's own validation, which is done once."""
_LED_ON = 2
"""A reference that has to be resolved, beside the names in it."""
_NAMED = 4
"""A name in a reference."""
_MAX_REFERENCE = 500
"""Characters; each name in a pointer is looked up with all before it."""
_MAX_PARTS = 2_000
"""Objects in a schema: all are gone through once, for names that can be referred to."""
_NAMES = ("$anchor", "$dynamicAnchor", "$id", "id")
_NAMED_PART = 5
"""What a part with a name counts as, in parts without."""
_MAX_DEPTH = 130
"""Parts within each other; only a circle goes deeper. The library's tables end the whole call, not
by an ``Exception``, where Python's stack ends while they are looked into: so it must not."""
_FRAMES = 4
"""Of Python's stack, for one part within another."""
_COMPARED = 5
"""Values compared in a step."""
_WRITTEN = 10
"""Values written into an error's message in a step."""
_CHARS = 100
"""Characters that count as one value more."""

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[Any] | None]
Cost: TypeAlias = Callable[["Checker", Any, Any, Any], int]


class Purse(threading.local):
    """What is left of a budget; each thread has its own, for they share the validators."""

    left = 0

    def __init__(self) -> None:
        self._weights: dict[int, int] = {}
        self.led: dict[tuple[int, str], tuple[Any, Any, Any]] = {}
        """References that were followed: from where (kept, so that its address stays its own) to
        which contents, and where those stand."""

    def fill(self, budget: int) -> None:
        """Begin with a value."""
        self.left = budget
        self._weights = {}
        self.led = {}

    def pay(self, cost: int) -> None:
        """Take some of it out.

        Raises:
            ValueError: There is not so much left.
        """
        self.left -= cost
        if self.left < 0:
            raise ValueError("it would take too long to tell")

    def weight(self, value: Any) -> int:
        """How many values a value holds; what it holds lives as long as the validation, so that it
        is known again by its address."""
        if isinstance(value, str):
            return 1 + len(value) // _CHARS
        if not isinstance(value, (list, dict)):
            return 1
        known = self._weights.get(id(value))
        if known is None:
            inner = value.values() if isinstance(value, dict) else value
            known = 1 + sum(map(self.weight, inner))
            if isinstance(value, dict):
                known += sum(map(self.weight, value))
            self._weights[id(value)] = known
        return known


@dataclass(frozen=True, slots=True)
class _Dialect:
    """A draft of JSON Schema."""

    uri: str
    meta_schema: Any
    keywords: Mapping[str, Keyword]
    types: Any
    """The library's type checker; errors carry it."""
    specification: Any
    alone: bool
    """Whether nothing counts beside a ``$ref`` (until draft 7)."""


class Checker:
    """A part of a schema, in the place of the library's validator: the keywords call its methods.

    Args:
        resolver: Knows the schema around, and where in it the part stands.
    """

    __slots__ = ("_depth", "_resolver", "dialect", "purse", "schema")

    format_checker = None

    def __init__(
        self, schema: Any, dialect: _Dialect, purse: Purse, resolver: Any, depth: int = 0
    ) -> None:
        if depth > _MAX_DEPTH:
            raise ValueError(f"its parts apply to each other more than {_MAX_DEPTH} levels deep")
        self._depth = depth
        self.schema = schema
        self.dialect = dialect
        self.purse = purse
        self._resolver = resolver  # by the name that the library's keywords know it by

    def evolve(self, *, schema: Any, resolver: Any = None) -> Checker:
        """The same for another part."""
        if resolver is None:
            resolver = self._resolver
            if isinstance(schema, dict) and ("$id" in schema or "id" in schema):
                part = self.dialect.specification.create_resource(schema)
                resolver = resolver.in_subresource(part)
        return Checker(schema, self.dialect, self.purse, resolver, self._depth + 1)

    def is_type(self, instance: Any, name: str) -> bool:
        """Whether a value is of a type."""
        return _KINDS[name](instance)  # not by the library's: its table is one of those

    def is_valid(self, instance: Any) -> bool:
        """Whether a value satisfies this part."""
        return next(self.iter_errors(instance), None) is None

    def descend(
        self,
        instance: Any,
        schema: Any,
        path: Any = None,
        schema_path: Any = None,
        resolver: Any = None,
    ) -> Iterator[Any]:
        """What another part says of a value."""
        for error in self.evolve(schema=schema, resolver=resolver).iter_errors(instance):
            if path is not None:
                error.path.appendleft(path)
            if schema_path is not None:
                error.schema_path.appendleft(schema_path)
            yield error

    def iter_errors(self, instance: Any) -> Iterator[Any]:
        """What is wrong with a value.

        Raises:
            ValueError: It cannot be told within the budget.
        """
        from jsonschema import ValidationError

        schema, pay = self.schema, self.purse.pay
        pay(1)
        if schema is True:
            return
        if schema is False:
            said: dict[str, Any] = {"validator": None, "validator_value": None}
            yield ValidationError("nothing may be there", **said, instance=instance, schema=schema)
            return
        dialect = self.dialect
        pay(len(schema) // LOOKED_UP)
        asked = {"$ref": schema["$ref"]} if dialect.alone and "$ref" in schema else schema
        for name, value in asked.items():
            keyword = dialect.keywords.get(name)
            if keyword is None:
                continue
            cost = _COSTS.get(name)
            pay(1 + cost(self, value, instance, schema) if cost else 1)
            for error in keyword(self, value, instance, schema) or ():
                new = not error.schema_path
                pay(1 + self.purse.weight(instance) // _WRITTEN if new else 1)
                error._set(
                    validator=name,
                    validator_value=value,
                    instance=instance,
                    schema=schema,
                    type_checker=dialect.types,
                )
                if name not in ("if", "$ref"):
                    error.schema_path.appendleft(name)
                yield error

    def led_to(self, reference: str) -> Checker:
        """The part that a reference names.

        Raises:
            ValueError: It is in another dialect, or too long to be followed.
        """
        place = (id(self._resolver), reference)
        known = self.purse.led.get(place)
        if known is None:
            if len(reference) > _MAX_REFERENCE:
                raise ValueError("a reference is too long")
            names = reference.count("/")
            self.purse.pay(_LED_ON + _NAMED * names + names**2 // _COMPARED)
            found = self._resolver.lookup(reference)
            known = (self._resolver, found.contents, self._stands(found))
            self.purse.led[place] = known
        return self.evolve(schema=known[1], resolver=known[2])

    def led_back(self) -> Checker:
        """The part that ``$recursiveRef`` names."""
        from referencing.jsonschema import lookup_recursive_ref

        self.purse.pay(_LED_ON)
        found = lookup_recursive_ref(self._resolver)
        return self.evolve(schema=found.contents, resolver=self._stands(found))

    def _stands(self, found: Any) -> Any:
        """The resolver of what was found; not in another dialect."""
        dialect = found.contents.get("$schema") if isinstance(found.contents, dict) else None
        if dialect is not None and not self.dialect.uri == str(dialect).rstrip("#"):
            raise ValueError("a reference leads to another dialect")
        # Names that change their place are looked for along the whole way here.
        self.purse.pay(sum(1 for _ in found.resolver.dynamic_scope()))
        return found.resolver


class Validator:
    """One schema, ready to judge values."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.schema = checker.schema

    def iter_errors(self, value: Any) -> Iterator[Any]:
        """What is wrong with a value.

        Raises:
            ValueError: It cannot be told within the budget.
        """
        self._checker.purse.fill(_BUDGET)
        _refuse_a_full_stack()
        yield from self._checker.iter_errors(value)


def validator_for(text: str) -> Validator:
    """The validator of a schema given as JSON text.

    Raises:
        ValueError: It is no schema, or cannot be read within the budget.
    """
    _refuse_a_full_stack()
    made = _made(text)
    if isinstance(made, str):
        raise ValueError(made)
    return made


@lru_cache(maxsize=128)
def _made(text: str) -> Validator | str:
    """A schema's validator, or why there is none: to find that out twice costs as much again."""
    try:
        return _validator(text)
    except RecursionError:  # of whoever called, perhaps
        raise
    except Exception as error:  # noqa: BLE001 - the schema is untrusted: whatever it breaks is no schema
        return str(error) or type(error).__name__


def _validator(text: str) -> Validator:
    # A registry that retrieves nothing: only the drafts' own metaschemas are known.
    from jsonschema_specifications import (  # type: ignore[import-untyped]
        REGISTRY,
    )

    schema = json.loads(text)
    named = schema.get("$schema") if isinstance(schema, dict) else None
    dialect = _dialect(named if named is None else str(named).rstrip("#"))
    _refuse_other_dialects(schema, dialect)
    purse = Purse()
    purse.fill(_SCHEMA_BUDGET)
    whole = dialect.specification.create_resource(dialect.meta_schema)
    meta = Checker(
        dialect.meta_schema, dialect, purse, REGISTRY.with_resource("", whole).resolver("")
    )
    for error in meta.iter_errors(schema):
        raise ValueError(f"no schema: {error.message}"[:200])
    resource = dialect.specification.create_resource(schema)
    base = resource.id() or ""
    # Crawled now: else every reference that is followed would go through the whole schema.
    resolver = REGISTRY.with_resource(base, resource).crawl().resolver(base)
    return Validator(Checker(schema, dialect, purse, resolver))


def _refuse_a_full_stack() -> None:
    left, frame = sys.getrecursionlimit() - _FRAMES * _MAX_DEPTH, sys._getframe()
    while frame.f_back is not None:
        left, frame = left - 1, frame.f_back
    if left < 0:
        raise ValueError("too little of the stack is left to tell")


@cache
def _dialect(uri: str | None) -> _Dialect:
    import jsonschema
    from jsonschema import validators
    from jsonschema_specifications import REGISTRY as SCHEMAS
    from referencing.jsonschema import specification_with

    known_by: Any = validators.validator_for
    base = known_by({"$schema": uri}, None) if uri else jsonschema.Draft202012Validator
    known = None if base is None else base.META_SCHEMA["$schema"].rstrip("#")
    if known is None or (uri is not None and uri != known):
        raise ValueError(f"the dialect {str(uri)[:100]!r} is not known")
    return _Dialect(
        uri=known,
        meta_schema=_in_one(base.META_SCHEMA, SCHEMAS.resolver(known)),
        # Formats are notes: nothing checks them, so nothing needs to be asked.
        keywords={
            name: keyword
            for name, keyword in {**base.VALIDATORS, **own_keywords(base.VALIDATORS)}.items()
            if name != "format"
        },
        types=base.TYPE_CHECKER,
        specification=specification_with(known),
        alone="$recursiveRef" not in base.VALIDATORS and "$dynamicRef" not in base.VALIDATORS,
    )


def _in_one(meta_schema: Any, resolver: Any) -> Any:
    """A metaschema with its vocabularies laid together, which says the same in a seventh of the
    steps: in 2019-09 and 2020-12 each of them describes keywords of its own, for all of a schema's
    parts."""
    merged: dict[str, Any] = {
        name: value for name, value in meta_schema.items() if name in ("type", "properties")
    }
    if "$vocabulary" not in meta_schema:
        return meta_schema
    for branch in meta_schema["allOf"]:
        vocabulary = resolver.lookup(branch["$ref"]).contents
        for name in ("properties", "$defs"):
            merged[name] = {**merged.get(name, {}), **vocabulary.get(name, {})}
    return _within_itself(merged)


def _within_itself(part: Any) -> Any:
    """A part of it, with references to other vocabularies turned into ones to the whole."""
    if isinstance(part, list):
        return [_within_itself(item) for item in part]
    if not isinstance(part, dict):
        return part
    turned: dict[str, Any] = {}
    for name, value in part.items():
        if name in ("$dynamicRef", "$recursiveRef") and isinstance(value, str):
            turned["$ref"] = "#"
        elif name == "$ref" and isinstance(value, str):
            turned["$ref"] = "#" + value.partition("#")[2]
        else:
            turned[name] = _within_itself(value)
    return turned


def _refuse_other_dialects(schema: Any, dialect: _Dialect) -> None:
    parts, count = [schema], 0
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            count += _NAMED_PART if any(name in part for name in _NAMES) else 1
            named = part.get("$schema")
            if isinstance(named, str) and named.rstrip("#") != dialect.uri:
                raise ValueError("a part of the schema is in another dialect")
            if count > _MAX_PARTS:
                raise ValueError(f"the schema has more than {_MAX_PARTS} parts")
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)


def holds_for_doubles(text: str, value: Any) -> bool:
    """Whether a value that satisfies a schema does so too where numbers are read as doubles.

    ``1e-400`` is above 0, and most readers take it for 0.

    Raises:
        ValueError: It cannot be told within the budget, or a number is beyond all doubles.
    """
    schema = validator_for(text).schema
    exact = is_exact(schema)
    if exact and is_exact(value):
        return True
    near = validator_for(text if exact else json.dumps(as_doubles(schema)))
    return next(near.iter_errors(as_doubles(value)), None) is None


def _is_number(instance: Any) -> bool:
    return isinstance(instance, (int, float, Decimal)) and not isinstance(instance, bool)


def _is_integer(instance: Any) -> bool:
    if isinstance(instance, float):
        return instance.is_integer()
    if isinstance(instance, Decimal):  # not by int(): an exponent is shorter than its number
        return bool(instance == instance.to_integral_value())
    return isinstance(instance, int) and not isinstance(instance, bool)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "any": lambda instance: True,
    "array": lambda instance: isinstance(instance, list),
    "boolean": lambda instance: isinstance(instance, bool),
    "integer": _is_integer,
    "null": lambda instance: instance is None,
    "number": _is_number,
    "object": lambda instance: isinstance(instance, dict),
    "string": lambda instance: isinstance(instance, str),
}


# --- what keywords cost, beside one step --------------------------------------------------------


def _named(checker: Checker, value: Any, instance: Any, schema: Any) -> int:
    """Of names looked up one by one."""
    return _length(value) // LOOKED_UP


def _compared(checker: Checker, value: Any, instance: Any, schema: Any) -> int:
    """Of a value compared with allowed ones."""
    weight = checker.purse.weight(value)
    if isinstance(instance, (list, dict)):
        weight += checker.purse.weight(instance)
    return weight // _COMPARED


def _listed(checker: Checker, value: Any, instance: Any, schema: Any) -> int:
    """Of lists of names, each looked up."""
    return checker.purse.weight(value) // _COMPARED if isinstance(instance, dict) else 0


def _pairs(checker: Checker, value: Any, instance: Any, schema: Any) -> int:
    """Of comparing all items with all, or sorting them where they can be sorted."""
    if not isinstance(instance, list):
        return 0
    kinds = set(map(type, instance))
    if kinds == {str} or kinds <= {int, float}:
        return checker.purse.weight(instance) // _COMPARED
    return len(instance) * checker.purse.weight(instance) // _COMPARED


def _matched(checker: Checker, value: Any, instance: Any, schema: Any) -> int:
    return matching(value, instance) if isinstance(instance, str) else 0


def _keys(checker: Checker, value: Any, instance: Any, schema: Any) -> int:
    """Of matching every key against every pattern."""
    if not isinstance(instance, dict):
        return 0
    patterns = schema.get("patternProperties")
    patterns = patterns if isinstance(patterns, dict) else {}
    cost = len(instance) // _COMPARED + len(instance) * len(patterns)
    if cost > checker.purse.left:
        return cost
    return cost + sum(matching(pattern, key) for pattern in patterns for key in instance)


def _rest(checker: Checker, value: Any, instance: Any, schema: Any) -> int:
    """Of what is copied before it is gone through."""
    return _length(instance) // _WRITTEN


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (list, dict, str)) else 0


_COSTS: dict[str, Cost] = {
    "additionalItems": _rest,
    "additionalProperties": _keys,
    "items": _rest,
    "pattern": _matched,
    "patternProperties": _keys,
    "uniqueItems": _pairs,
    **dict.fromkeys(("const", "enum"), _compared),
    **dict.fromkeys(("dependencies", "dependentRequired"), _listed),
    **dict.fromkeys(("dependentSchemas", "properties", "required", "type"), _named),
}
