"""Schemas and patterns from anywhere: whatever they hold, judging by them is bounded, or refused."""

from __future__ import annotations

import json
import math
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest
from jsonschema import (
    Draft4Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
    SchemaError,
)

from stepcache._dialect import _dialect, _made, validator_for
from stepcache._patterns import ways
from stepcache.tasks.json_answer._repair import repaired
from stepcache.tasks.json_answer._schema import validate
from stepcache.tool_calls import why_not_callable


def doubled(word: str, depth: int, last: Any) -> dict[str, Any]:
    """A schema of which each level asks the next one twice."""
    defs: dict[str, Any] = {
        f"d{n}": {word: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": last}}


@pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("last", [{}, False, {"type": "string"}])
def test_branches_that_double_come_to_an_end(word: str, last: Any) -> None:
    """2 to the 60 branches are never walked: without the budget this test would not end."""
    result = validate({"a": 1}, doubled(word, 60, last))
    if last == {}:
        # The first branch of an anyOf decides; of an allOf and a oneOf all have to be seen.
        assert result.valid is (True if word == "anyOf" else None)
    else:
        assert result.valid is not True


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$ref": "http://127.0.0.1:9/x.json"},
        {"pattern": r"^(a+)+$"},
        {"patternProperties": {r"^(a+)+$": {}}, "additionalProperties": False},
        {"additionalProperties": False, "patternProperties": {r"^(a+)+$": {}}},
        {"propertyNames": {"pattern": r"(.*)*x"}},
        {**doubled("anyOf", 60, {}), "unevaluatedProperties": False},
        {"$ref": "#", "unevaluatedProperties": False},
        {"unevaluatedProperties": False, "if": {"patternProperties": {r"^(a+)+$": {}}}},
        {"unevaluatedProperties": False, "$dynamicRef": "http://127.0.0.1:9/x.json"},
        {"uniqueItems": True},
    ],
)
def test_what_cannot_be_told_in_time_is_unknown(schema: dict[str, Any]) -> None:
    """Circles, fetches, patterns that explode, all pairs of many."""
    value: Any = {"a" * 40: 1}
    if "pattern" in schema:
        value = "a" * 40
    if "uniqueItems" in schema:
        value = [[n] for n in range(3_000)]
    assert validate(value, schema).valid is None


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        ({"pattern": r"^[\w.+-]+@[\w-]+\.[a-z]+$"}, "ann.lee@example.org", True),
        ({"pattern": r"^([a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,}$"}, "a-b.example." * 30 + "org", True),
        ({"pattern": r"^(?:[A-Z][a-z]+ ?)+$"}, "The Lake Isle of Innisfree", False),
        ({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
         {"x-a": "b"}, True),
        ({"additionalProperties": False, "unevaluatedProperties": False}, {}, True),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, True),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"b": 1}, False),
        ({"$ref": "#/$defs/p", "unevaluatedProperties": False, "$defs": {"p": {"properties": {
          "x": {}}}}}, {"x": 1, "y": 2}, False),
        ({"prefixItems": [{}], "anyOf": [{"contains": {"type": "string"}}],
          "unevaluatedItems": {"type": "null"}}, [1, "a", None], True),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, True),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1}, False),
        ({"items": {"$ref": "#/$defs/p"}, "$defs": {"p": {"type": "object",
          "properties": {"x": {"type": "integer"}}, "required": ["x"]}}},
         [{"x": n} for n in range(200)], True),
    ],
)  # fmt: skip
def test_honest_schemas_are_judged(schema: dict[str, Any], value: Any, valid: bool | None) -> None:
    """The bounds leave room for what people write."""
    assert validate(value, schema).valid is valid


MANY = list(range(20_000))
WIDE = {f"k{n}": n for n in range(2_000)}
NAMES = {"names": {"required": [f"n{n}" for n in range(5_000)]}}
DEEP = [list(range(9_000))]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"anyOf": [{"type": "string"}] * 1_000}, MANY),
        ({"oneOf": [{"not": {}}] * 900}, MANY),
        ({"anyOf": [{"additionalProperties": False}] * 1_500}, WIDE),
        ({"anyOf": [{"$ref": "#/$defs/names"}] * 900, "$defs": NAMES}, {}),
        ({"anyOf": [{"$ref": "#/$defs/e"}] * 900, "$defs": {"e": {"enum": [[*DEEP, 1]]}}},
         [*DEEP, 2]),
        ({"anyOf": [{"$ref": "#/$defs/e"}] * 900, "$defs": {"e": {"const": DEEP}}}, [DEEP[0][:-1]]),
        ({"uniqueItems": True}, [[*range(3_000), n] for n in range(200)]),
        ({"anyOf": [{"pattern": "^[a-z]+$"}] * 1_500}, "a" * 19_000 + "!"),
        ({"patternProperties": {"(a|b|ab)(a|b|ab)c": {}}},
         {"ab" * 50 + str(n): n for n in range(2_000)}),
        ({"allOf": [{"$ref": "#/" + "a/" * 40_000}]}, 1),
        ({"allOf": [{}] * 30_000}, 1),
        ({"$defs": {str(n): {"$id": f"u{n}"} for n in range(900)}}, 1),
        ({"properties": {f"k{n}": {"type": ["string"]} for n in range(1_900)}}, 1),
    ],
)  # fmt: skip
def test_small_parts_cost_what_they_make_of_a_large_value(schema: Any, value: Any) -> None:
    """Messages written, values compared, names looked up, errors passed on: all of it is paid for."""
    assert validate(value, schema).valid is None


OLD = "https://json-schema.org/draft/2019-09/schema"


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}]},
        {
            "$ref": "#/$defs/x",
            "$defs": {"x": {"$schema": "http://json-schema.org/draft-04/schema#"}},
        },
        {"$ref": "http://json-schema.org/draft-07/schema#"},
        {"$schema": OLD, "not": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
    ],
)
def test_no_part_of_a_schema_changes_the_dialect(schema: dict[str, Any]) -> None:
    """In another dialect nothing would be bounded, and the words mean something else."""
    result = validate("a" * 28 + "!", schema)
    assert result.valid is None
    assert "dialect" in result.reason


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        ({"$schema": OLD, "unevaluatedProperties": {"type": "string"}}, {"type": 5}, False),
        ({"$schema": OLD, "additionalProperties": {"type": "string"},
          "unevaluatedProperties": False}, {"x": "a"}, True),
        ({"$schema": OLD, "contains": {"type": "string"}, "unevaluatedItems": False}, ["a"], False),
        ({"contains": {"type": "string"}, "unevaluatedItems": False}, ["a"], True),
        ({"$schema": OLD, "items": [True], "unevaluatedItems": {"type": "string"}}, [1, "a"], True),
        ({"$schema": OLD, "$recursiveAnchor": True, "properties": {"a": {"$recursiveRef": "#"}},
          "unevaluatedProperties": False}, {"a": {"a": {"b": 1}}}, False),
        ({"$schema": OLD, "$recursiveAnchor": True, "properties": {"a": {"$recursiveRef": "#"}},
          "unevaluatedProperties": False}, {"a": {"a": {}}}, True),
        ({"$defs": {"a": {"properties": {"b": {}}}}, "unevaluatedProperties": False,
          "allOf": [{"$id": "http://x/y", "$ref": "#/$defs/a", "$defs": {"a": {}}}]},
         {"b": 1}, False),
        ({"if": {"$id": "http://x/y", "$ref": "#/$defs/a", "$defs": {"a": {"required": ["b"]}}},
          "then": False, "$defs": {"a": {}}}, {}, True),
        ({"anyOf": [{"properties": {"a": {}}, "required": ["b"]}, True],
          "unevaluatedProperties": False}, {"a": 1}, False),
        ({"not": {"not": {"properties": {"a": {}}}}, "unevaluatedProperties": False}, {"a": 1}, False),
        ({"unevaluatedProperties": {"maximum": 3}, "properties": {"a": {}}}, {"a": 9, "b": 9}, False),
    ],
)  # fmt: skip
def test_what_is_unevaluated_follows_the_specification(
    schema: dict[str, Any], value: Any, valid: bool
) -> None:
    """Only what a part that holds has looked at counts; each draft has its own keywords for it."""
    assert validate(value, schema).valid is valid


def test_a_circle_ends_before_the_stack_does() -> None:
    """The library's tables, looked into at the stack's very end, would end the whole call."""
    circle = {"allOf": [{"if": {"$ref": "#/$defs/a"}}], "$defs": {"a": {"not": {"$ref": "#"}}}}
    result = validate({"a": 1}, circle)
    assert result.valid is None
    assert "levels deep" in result.reason

    def below(frames: int) -> Any:
        return below(frames - 1) if frames else validate({"a": 1}, {"properties": {"a": {}}})

    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    assert below(10).valid is True
    for left in (150, 250, 350, 450):
        result = below(sys.getrecursionlimit() - depth - left)
        assert result.valid is None
        assert "stack" in result.reason


JUNK = (
    *(None, True, 0, -1, 1.5, "a", "", [], [1], ["a", "a"], ["a"], [True], [{"type": "odd"}], {}),
    *({"a": 1}, {"a": {"type": 1}}, {"a": ["b"]}, {"a": ["b", "b"]}, {"not": 5}, ["string", "odd"]),
)


@pytest.mark.parametrize(
    "kind", [Draft4Validator, Draft7Validator, Draft201909Validator, Draft202012Validator]
)
def test_what_is_a_schema_is_told_as_the_library_tells_it(kind: Any) -> None:
    """Vocabularies laid together demand of each keyword what they demand apart."""
    uri = kind.META_SCHEMA["$schema"]
    words = {*_dialect(uri.rstrip("#")).meta_schema["properties"], "unheard of"} - {"$schema"}
    assert len(words) > 30
    for word, junk in product(sorted(words), JUNK):
        schema = {"$schema": uri, word: junk}
        try:
            kind.check_schema(schema, format_checker=None)
            sound = True
        except SchemaError:
            sound = False
        made = _made(json.dumps(schema))
        assert sound is not (isinstance(made, str) and made.startswith("no schema")), (word, junk)


def test_a_schema_that_is_none_is_refused() -> None:
    """The schema is held against its own dialect first."""
    with pytest.raises(ValueError, match="no schema"):
        validator_for('{"required": "name"}')


@pytest.mark.parametrize(
    ("pattern", "length", "bounded"),
    [
        (r"^[a-z]+$", 20_000, True),
        (r"^(a|a)*$", 30, False),
        (r"^(\w+\s?)*$", 30, False),
        (r"(x+x+)+y", 30, False),
        (r"\s*\s*\s*\s*$", 500, False),
        (r"(a?){40}a{40}", 60, False),
        (r"(?=(a+))\1", 30, False),
        (r"^(foo|bar)+$", 900, True),
        (r"^(?:[A-Z][a-z]+ )+$", 900, True),
        (r"(?i)^(k|K)+$", 10, False),
        (r"(?m)^\s*\w*\s*\w*$", 200, False),
        (r"\b\w*\s*\w*\s*\w*!", 400, False),
        (r"^[\w.+-]+@[\w-]+\.[a-z]+$", 19_000, True),
    ],
)  # fmt: skip
def test_a_pattern_is_bounded_by_its_structure(pattern: str, length: int, bounded: bool) -> None:
    """Nested repeats are refused where they can be laid in several ways, and only there."""
    re.compile(pattern)
    assert math.isfinite(ways(pattern, length)) is bounded


def test_threads_do_not_spend_each_others_budget() -> None:
    """Many threads hold values against one schema at once; none is told that it takes too long."""
    schema = {"items": {"type": "object", "required": ["a"], "properties": {"a": {"minimum": 0}}}}
    value = [{"a": n} for n in range(400)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: validate(value, schema).valid, range(64)))
    assert set(results) == {True}


@pytest.mark.parametrize(
    "parameters",
    [
        doubled("allOf", 60, {}),
        {"properties": {"a": {"pattern": r"^(a+)+$"}}},
        {"properties": {"a": {"pattern": r"\s*\s*\s*\s*$"}}},
        {"$ref": "#"},
    ],
)
def test_a_tools_schema_is_bounded_too(parameters: dict[str, Any]) -> None:
    """A call whose arguments cannot be checked in time is neither kept nor served."""
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    why = why_not_callable([{"name": "f", "args": {"a": "a" * 2_000 + "!"}}], [tool])
    assert why is not None


def test_a_tools_pattern_is_held_to() -> None:
    """Where matching is bounded, arguments have to match."""
    parameters = {"properties": {"id": {"type": "string", "pattern": r"^[A-Z]{2}\d+$"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    assert why_not_callable([{"name": "f", "args": {"id": "AB12"}}], [tool]) is None
    assert why_not_callable([{"name": "f", "args": {"id": "12"}}], [tool]) is not None


@pytest.mark.parametrize(
    "unit", ['"a ', 'a"b', "(", 'name": "', '"a" // x\n', '\\"', "{a} ", "a,b,", '"a""b"']
)
@pytest.mark.parametrize(("before", "after"), [('{"a": ["x", ', "]}"), ('["', '"]'), ("{", "}")])
def test_repair_does_not_go_back_and_forth(unit: str, before: str, after: str) -> None:
    """Damage without end, in the longest text that is read: without the bounds, half a minute."""
    text = before + unit * (39_000 // len(unit)) + after
    repaired(text)
    repaired(text[:9_000] + after)
