"""JSON Schema, asked safely: draft 2020-12 unless ``$schema`` names another, nothing fetched.

A schema may come from anywhere. Whatever goes wrong in it (an unknown reference, a broken keyword,
a recursion without end, a pattern that would run too long) makes the result *unknown*, never a
pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

__all__ = ["Result", "property_names", "sub_schema", "validate"]

_MAX_SCHEMA_CHARS = 200_000
_MAX_ERRORS = 50
# Python's ``re`` backtracks. A quantified group that itself holds a quantifier is what blows up;
# such a pattern is only matched against short strings.
_NESTED_QUANTIFIER = re.compile(r"[*+}][^()]{0,200}\)[*+{]|\|[^()]{0,200}\)[*+{]|\\[1-9]")
_MAX_PATTERN_CHARS = 1_000
_MAX_RISKY_CHARS = 24
_MAX_MATCHED_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a schema says of a value."""

    valid: bool | None
    """None: it cannot be told."""
    reason: str = ""
    missing: tuple[str, ...] = ()
    """Required top-level keys that are absent."""
    extra: tuple[str, ...] = ()
    """Top-level keys that ``additionalProperties`` forbids."""
    wrong: tuple[str, ...] = ()
    """Top-level keys whose value breaks the schema."""
    elsewhere: bool = False
    """True when something is wrong that no top-level key accounts for."""


def validate(value: Any, schema: Any) -> Result:
    """Whether ``value`` (as the strict parser gives it) satisfies ``schema``."""
    try:
        text = json.dumps(_thawed(schema), sort_keys=False)
        if len(text) > _MAX_SCHEMA_CHARS:
            return Result(None, f"the schema has more than {_MAX_SCHEMA_CHARS} characters")
        return _sorted_errors(_validator(text), value)
    except Exception as error:  # noqa: BLE001 - the schema is untrusted: whatever it breaks is unknown
        return Result(None, f"{type(error).__name__}: {error}"[:200])


def sub_schema(schema: Mapping[str, Any] | None, keys: tuple[str, ...]) -> dict[str, Any]:
    """The schema of an object that holds exactly ``keys``, each as ``schema`` describes it."""
    properties = _mapping(schema, "properties")
    part: dict[str, Any] = {
        "type": "object",
        "properties": {key: _thawed(properties.get(key, {})) for key in keys},
        "required": list(keys),
        "additionalProperties": False,
    }
    for name in ("$schema", "$defs", "definitions"):
        if schema and name in schema:
            part[name] = _thawed(schema[name])
    return part


def property_names(schema: Mapping[str, Any] | None) -> frozenset[str] | None:
    """The keys an object schema names, or None where it leaves room for others on purpose."""
    if schema is None or not _mapping(schema, "properties"):
        return None
    open_ended = ("patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if", "propertyNames")
    if schema.get("additionalProperties", False) is not False:
        return None
    if any(name in schema for name in (*open_ended, "unevaluatedProperties", "dependentSchemas")):
        return None
    return frozenset(_mapping(schema, "properties"))


def _mapping(schema: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    value = schema.get(name) if schema else None
    return value if isinstance(value, Mapping) else {}


def _thawed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thawed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_thawed(item) for item in value]
    return value


@lru_cache(maxsize=128)
def _validator(text: str) -> Any:
    import jsonschema
    from jsonschema import validators
    from jsonschema_specifications import (  # type: ignore[import-untyped]
        REGISTRY,
    )

    schema = json.loads(text)
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    base = validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    if dialect is not None and dialect.rstrip("#") not in base.META_SCHEMA["$schema"]:
        raise ValueError(f"the dialect {dialect!r} is not known")
    base.check_schema(schema)
    extend: Any = validators.extend
    kind = extend(
        base,
        validators={"pattern": _pattern, "patternProperties": _guarded_pattern_properties(base)},
        type_checker=base.TYPE_CHECKER.redefine("integer", _is_integer),
    )
    # A registry that retrieves nothing: only the drafts' own metaschemas are known.
    return kind(schema, registry=REGISTRY)


def _is_integer(checker: Any, instance: Any) -> bool:
    if isinstance(instance, bool):
        return False
    if isinstance(instance, int):
        return True
    if isinstance(instance, float):
        return instance.is_integer()
    return isinstance(instance, Decimal) and instance == instance.to_integral_value()


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Any:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not re.search(_tame(pattern, instance), instance):
        yield ValidationError(f"{instance[:80]!r} does not match {pattern[:80]!r}")


def _guarded_pattern_properties(base: Any) -> Any:
    original = base.VALIDATORS.get("patternProperties")

    def guarded(validator: Any, patterns: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, dict):
            for pattern in patterns:
                for key in instance:
                    _tame(pattern, key)
        if original is not None:
            yield from original(validator, patterns, instance, schema) or ()

    return guarded


def _tame(pattern: str, subject: str) -> str:
    """The pattern, if matching it is bounded in time.

    Raises:
        ValueError: It is not, for this subject.
    """
    if len(pattern) > _MAX_PATTERN_CHARS or len(subject) > _MAX_MATCHED_CHARS:
        raise ValueError("a pattern or the text it is matched against is too long")
    if len(subject) > _MAX_RISKY_CHARS and _NESTED_QUANTIFIER.search(pattern):
        raise ValueError(f"the pattern {pattern[:60]!r} may take too long")
    return pattern


def _sorted_errors(validator: Any, value: Any) -> Result:
    missing: list[str] = []
    extra: list[str] = []
    wrong: list[str] = []
    elsewhere = False
    reason = ""
    for count, error in enumerate(validator.iter_errors(value)):
        reason = reason or _said(error)
        if count >= _MAX_ERRORS:
            elsewhere = True
            break
        path = list(error.absolute_path)
        if path and isinstance(path[0], str):
            wrong.append(path[0])
        elif not isinstance(value, dict) or len(error.absolute_schema_path) != 1:
            elsewhere = True
        elif error.validator == "required":
            missing.extend(k for k in error.validator_value if k not in value)
        elif error.validator == "additionalProperties":
            extra.extend(_forbidden(value, validator.schema))
        else:
            elsewhere = True
    if not reason:
        return Result(True)
    return Result(False, reason, _unique(missing), _unique(extra), _unique(wrong), elsewhere)


def _unique(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _forbidden(value: dict[str, Any], schema: Any) -> list[str]:
    named = _mapping(schema, "properties")
    patterns = list(_mapping(schema, "patternProperties"))
    return [
        key for key in value if key not in named and not any(re.search(p, key) for p in patterns)
    ]


def _said(error: Any) -> str:
    path = "/".join(str(part) for part in error.absolute_path)
    return f"{'at ' + path + ': ' if path else ''}{error.message}"[:200]
