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
from typing import Any

from stepcache._dialect import holds_for_doubles, validator_for

__all__ = ["Result", "property_names", "sub_schema", "validate"]

_MAX_SCHEMA_CHARS = 100_000
_MAX_ERRORS = 50


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
        result = _sorted_errors(validator_for(text), value)
        if result.valid and not holds_for_doubles(text, value):
            return Result(None, "it depends on how exactly its numbers are read")
        return result
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
