"""JSON Schemas from anywhere: hostile ones must cost nothing, tame ones must be judged rightly."""

from __future__ import annotations

import json
from importlib import import_module
from random import Random
from typing import Any, TypeAlias

from stepcache._identity import canonical_json
from stepcache._types import Constraints, Contract, Message, Request
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.json_answer._schema import property_names, sub_schema, validate
from trust._fuzz import Target
from trust.targets._json_texts import KEYS, value
from trust.targets._schema_reader import UndecidedError, satisfies

__all__ = ["HOSTILE", "TAME", "UNEVALUATED"]

_Pair: TypeAlias = tuple[Any, Any]
"""A schema and a value to hold against it."""
_PATTERNS = (
    *(
        r"^(a+)+$",
        r"^(a|a)*$",
        r"^(.*)*$",
        r"(x+x+)+y",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        r"(?=(a+))\1",
    ),
    *(r"^(\w+\s?)*$", r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+$", r"(a*)*b"),
    *(
        r".*.*.*.*.*.*=",
        r"^\d+\d+\d+\d+\d+\d+\d+$",
        r"(a?){40}a{40}",
        r"[",
        r"(?P<x>",
        r"\p{L}",
        r"^.{0,999}$",
    ),
    *(
        r"a{1,30}a{1,30}a{1,30}a{1,30}b",
        r"(?:a+){2,}b",
        r"\s*\s*\s*\s*$",
        r"^(?:(?:a)+)+$",
        r"((a*)*)*b",
    ),
)
_SUBJECTS = (
    *(
        "a" * 30,
        "a" * 200,
        "a" * 5000 + "!",
        "x" * 60,
        " " * 3000 + "x",
        "1" * 3000 + "x",
        "ab" * 400,
    ),
    *("aaaaaaaaaaaaaaaaaaaaaaaa!", "a" * 24, "a" * 25 + "b", "word " * 500 + "!"),
)


def _hostile(dice: Random) -> _Pair:
    subject: Any = dice.choice(_SUBJECTS) if dice.random() < 0.5 else value(dice)
    match dice.randrange(17):
        case 0:  # a reference to itself, or in a circle
            names = [f"d{n}" for n in range(dice.randint(1, 5))]
            around = {
                a: {dice.choice(("$ref", "$dynamicRef")): f"#/$defs/{b}"}
                for a, b in zip(names, [*names[1:], names[0]])
            }
            return {"$ref": "#/$defs/d0", "$defs": around}, subject
        case 1:  # every level asks the next one twice
            depth, word = dice.randint(8, 40), dice.choice(("allOf", "anyOf", "oneOf"))
            defs: dict[str, Any] = {
                f"d{n}": {word: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)
            }
            defs[f"d{depth}"] = dice.choice(({}, {"type": "string"}, False))
            return {"$ref": "#/$defs/d0", "$defs": defs}, subject
        case 2:
            pattern = dice.choice(_PATTERNS)
            keyword = dice.choice(("pattern", "patternProperties", "propertyNames", "format"))
            told: Any = {
                "patternProperties": {pattern: {"type": "string"}},
                "propertyNames": {"pattern": pattern},
            }.get(keyword, pattern)
            text = dice.choice(_SUBJECTS)
            extra = {"additionalProperties": False} if dice.random() < 0.5 else {}
            return {keyword: told, **extra}, text if keyword == "pattern" else {text: text}
        case 3:  # deep
            schema: Any = {"type": "string"}
            held: Any = "x"
            for _ in range(dice.choice((10, 100, 900, 3000))):
                schema, held = {"properties": {"a": schema}}, {"a": held}
            return schema, held
        case 4:
            many = [dice.randrange(10**6) for _ in range(dice.choice((100, 5_000, 20_000)))]
            return {dice.choice(("enum", "examples")): many}, dice.choice((many, many[-1], subject))
        case 5:
            unlike = [[n] for n in range(dice.choice((50, 700)))]
            return {"uniqueItems": True}, [*unlike, {"a": 1}, [True], [1], [1.0]]
        case 6:  # fetch something
            address = dice.choice(
                ("http://127.0.0.1:9/x.json", "file:///etc/passwd", "//host/x", "urn:x", "x.json")
            )
            return {dice.choice(("$ref", "$schema", "$id", "$recursiveRef")): address}, subject
        case 7:  # a recursive schema on a deep value
            for _ in range(dice.choice((5, 50, 120))):
                subject = {"next": subject, "other": [subject] if dice.random() < 0.05 else 1}
            return {"properties": {"next": {"$ref": "#"}, "other": {"$ref": "#"}}}, subject
        case 8:
            words: tuple[str, ...] = (
                "anyOf",
                "oneOf",
                "allOf",
                "not",
                "if",
                "then",
                "else",
                "contains",
                "items",
            )
            return {dice.choice(words): value(dice, 2) for _ in range(3)}, subject
        case 9:
            numbers = (0, -1, 1e-300, 10**400, 1e308, 0.1, "5", None, True, 10**18)
            words = (
                "multipleOf",
                "minimum",
                "maxLength",
                "minItems",
                "exclusiveMaximum",
                "maxContains",
            )
            huge = dice.choice((10**4000, 1e308, 5e-324, 3, "a" * 9000))
            return {dice.choice(words): dice.choice(numbers)}, huge
        case 10:  # wide objects under keywords that look at all pairs
            wide = {f"k{n}": n for n in range(dice.choice((50, 2_000)))}
            many_patterns = {f"{n}$": {"minimum": n} for n in range(dice.choice((5, 60)))}
            return {
                "patternProperties": many_patterns,
                "additionalProperties": False,
                "dependentRequired": {"k1": list(wide)},
                "unevaluatedProperties": False,
            }, wide
        case 11:  # what is unevaluated, asked anew at every level that doubles
            word, last = dice.choice(("allOf", "anyOf", "oneOf", "if")), dice.choice(_LASTS)
            unevaluated = dice.choice(("unevaluatedProperties", "unevaluatedItems"))
            depth, branch = dice.randint(2, 30), {}
            for n in range(depth):
                next_one = {dice.choice(_REFERENCES): f"#/$defs/d{n + 1}"}
                two: Any = [next_one] * 2 if word != "if" else next_one
                branch[f"d{n}"] = {word: two, unevaluated: dice.choice((False, {}, next_one))}
            return {
                **dice.choice(({}, {"$schema": _DIALECTS[True]}, {"$id": "http://127.0.0.1:9/"})),
                "$ref": "#/$defs/d0",
                unevaluated: False,
                "$defs": {**branch, f"d{depth}": last},
            }, dice.choice((_WIDE, _LONG, {"a": 1}, [1], subject))
        case 12:  # many small parts, each of which has much to say about a large value
            part = dice.choice(_PARTS)
            many = [part] * dice.choice((100, 1_500))
            return {
                dice.choice(("anyOf", "allOf", "oneOf", "prefixItems", "items")): many,
                "$defs": {"names": {"required": [f"n{n}" for n in range(3_000)]}},
            }, dice.choice((_WIDE, _LONG, {}, 5, "a" * 20_000, subject))
        case 13:  # comparisons that go deep
            deep: Any = [list(range(dice.choice((10, 5_000))))] * dice.choice((1, 5))
            named = {"e": dice.choice(({"enum": [deep]}, {"const": deep}, {"uniqueItems": True}))}
            return {
                "anyOf": [{"$ref": "#/$defs/e"}] * dice.choice((1, 600)),
                "$defs": named,
            }, dice.choice(([*deep, 1], [*deep[:-1], [*deep[0][:-1], -1]], [[]] * 300, subject))
        case 14:  # names that have to be looked for
            far = dice.choice(
                ("#none", "#here", "#/" + "a/" * dice.choice((5, 3_000)), "#/$defs/0")
            )
            reference = {dice.choice(_REFERENCES): far}
            anchor = {dice.choice(("$anchor", "$dynamicAnchor", "$recursiveAnchor")): "here"}
            held_by = {str(n): {"$id": f"u{n}", **anchor} for n in range(dice.choice((3, 900)))}
            return {
                **dice.choice(({}, {"$schema": _DIALECTS[True]}, {"$id": "http://127.0.0.1:9/"})),
                dice.choice(("anyOf", "allOf")): [reference] * dice.choice((2, 700)),
                "$defs": {**held_by, "last": anchor},
            }, subject
        case 15:  # another dialect inside, in which nothing would be bounded
            inner = {"$schema": dice.choice(_OTHERS), "pattern": dice.choice(_PATTERNS)}
            outer: tuple[Any, ...] = (
                {"allOf": [inner]},
                {"properties": {"a": inner}},
                {"$ref": dice.choice(_OTHERS)},
                {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": inner}},
            )
            return dice.choice(outer), dice.choice((subject, {"a": subject}, _WIDE, inner))
        case _:
            return value(dice, 3), subject


_REFERENCES = ("$ref", "$ref", "$dynamicRef", "$recursiveRef")
_DIALECTS = {
    True: "https://json-schema.org/draft/2019-09/schema",
    False: "https://json-schema.org/draft/2020-12/schema",
}
_OTHERS = (
    *_DIALECTS.values(),
    *(f"http://json-schema.org/draft-0{n}/schema#" for n in (3, 4, 6, 7)),
)
_WIDE = {f"k{n}": n for n in range(2_000)}
_LONG = list(range(15_000))
_LASTS: tuple[Any, ...] = (
    *({}, False, {"properties": {"k1": {}}}, {"patternProperties": {"^(a+)+$": {}, "^k": {}}}),
    *({"contains": {"type": "string"}}, {"prefixItems": [{}, {}]}, {"$ref": "#"}),
    {"dependentSchemas": {"k1": {"$ref": "#/$defs/d0"}, "k2": {"properties": {"k2": {}}}}},
)
_PARTS: tuple[Any, ...] = (
    *(False, {}, True, {"type": "string"}, {"not": {}}, {"maxItems": 0}, {"maxProperties": 0}),
    *({"$ref": "#/$defs/names"}, {"pattern": "^[a-z]+$"}, {"contains": False}, {"required": ["q"]}),
    *({"additionalProperties": False}, {"unevaluatedProperties": False}, {"enum": [1, 2, [3]]}),
)


_TASK = JsonAnswerTask()


def _survives(pair: _Pair) -> str | None:
    schema, held = pair
    try:
        canonical_json(schema)
    except ValueError:
        return None  # such a request has no identity: the model is asked, and nothing reads on
    if not isinstance(schema, dict) or len(str(schema)) % 3 == 0:
        result = validate(held, schema)
        return "nothing is valid under false" if result.valid is True and schema is False else None
    sub_schema(schema, ("a", "name"))
    property_names(schema)
    contract = Contract(schema=schema)
    request = Request(messages=(Message(role="user", text="Describe it."),), contract=contract)
    parsed = _TASK.parse(request)
    if not isinstance(parsed, Constraints):
        return None
    try:
        steps = _TASK.segment(json.dumps(held))
    except (ValueError, RecursionError):
        return None
    if len(str(schema)) % 3 == 1:
        _TASK.check(steps, parsed)
    else:
        _TASK.differences(parsed, parsed)
        _TASK.adapt(steps, parsed, parsed)
    return None


HOSTILE = Target(
    name="schema-hostile",
    what="schemas with loops, exponential branches, catastrophic patterns, depth, huge enums",
    inputs=5_000,
    make=_hostile,
    check=_survives,
)

# --- what is unevaluated ---------------------------------------------------------------------------

_NAMES = ("a", "b", "c", "x_1")
_SIMPLE: tuple[Any, ...] = (
    *(True, True, False, {}, {"type": "string"}, {"type": "integer"}, {"const": 1}, {"minimum": 2}),
    *({"type": ["object", "array"]}, {"enum": ["a", [1], {"a": 1}]}, {"maxLength": 1}),
)


def _unevaluated(dice: Random) -> tuple[Any, Any, bool]:
    old = dice.random() < 0.4
    parts = {f"d{n}": _applied(dice, 2, old) for n in range(3)}
    for name, part in parts.items():
        if isinstance(part, dict) and dice.random() < 0.2:
            part["$anchor" if old or dice.random() < 0.5 else "$dynamicAnchor"] = name
    root = _applied(dice, 3, old)
    schema = root if isinstance(root, dict) else {"not": {"not": {}}}
    schema |= {"$defs": parts, "$schema": _DIALECTS[old]}
    if old and dice.random() < 0.5:
        schema["$recursiveAnchor"] = True
    if dice.random() < 0.7:
        name = dice.choice(("unevaluatedProperties", "unevaluatedItems"))
        schema.setdefault(name, dice.choice((False, False, {"type": "string"})))
    return schema, _held(dice, 3), old


def _applied(dice: Random, depth: int, old: bool) -> Any:
    """A schema out of the keywords that matter to what is unevaluated."""
    if depth == 0:
        return dice.choice(_SIMPLE)

    def part() -> Any:
        return _applied(dice, depth - 1, old)

    def named() -> dict[str, Any]:
        return {name: part() for name in dice.sample(_NAMES, dice.randint(1, 2))}

    made: dict[str, Any] = {}
    for _ in range(dice.choice((1, 1, 2, 3))):
        match dice.randrange(16):
            case 0 | 1:
                made["properties"] = named()
            case 2:
                made["patternProperties"] = {dice.choice(("^[ab]$", "_", "^x")): part()}
            case 3:
                made["additionalProperties"] = part()
            case 4:
                made["dependentSchemas"] = named()
            case 5:
                made[dice.choice(("unevaluatedProperties", "unevaluatedItems"))] = part()
            case 6 | 7:
                word = dice.choice(("allOf", "anyOf", "oneOf"))
                one = part()
                made[word] = [one, one] if dice.random() < 0.2 else [one, part()]
            case 8:
                made |= {"if": part(), "then": part()}
            case 9:
                made |= {"if": part(), "else": part()}
            case 10:
                made["not"] = part()
            case 11:
                made["$ref"] = dice.choice(("#", "#/$defs/d0", "#/$defs/d1", "#/$defs/d2"))
            case 12:
                made["$recursiveRef" if old else "$dynamicRef"] = "#"
            case 13:
                listed = [part() for _ in range(dice.randint(1, 2))]
                made["items" if old else "prefixItems"] = listed
            case 14:
                made["contains"] = part()
                if dice.random() < 0.3:
                    made[dice.choice(("minContains", "maxContains"))] = dice.randrange(3)
            case _:
                made[dice.choice(("items", "additionalItems") if old else ("items",))] = part()
    if dice.random() < 0.15:
        made["required"] = [dice.choice(_NAMES)]
    return made


def _held(dice: Random, depth: int) -> Any:
    kind = dice.random() if depth else 1.0
    if kind < 0.5:
        return {
            name: _held(dice, depth - 1)
            for name in dice.sample(_NAMES, dice.randrange(len(_NAMES)))
        }
    if kind < 0.75:
        return [_held(dice, depth - 1) for _ in range(dice.randrange(4))]
    return dice.choice(("a", "text", 1, 2, 1.0, 0, None, True))


def _agree(case: tuple[Any, Any, bool]) -> str | None:
    schema, held, old = case
    told = validate(held, schema).valid
    if told is None:
        return None  # in circles nothing can be told
    try:
        fits = satisfies(schema, held, old=old)
    except UndecidedError:
        return None
    return None if told is fits else f"valid is {told}, by the specification {fits}"


UNEVALUATED = Target(
    name="schema-unevaluated",
    what="unevaluated parts beside branches, conditions and references; by the specification",
    inputs=15_000,
    make=_unevaluated,
    check=_agree,
)

# --- tame --------------------------------------------------------------------------------------


def _plain_schema(dice: Random, depth: int = 2) -> dict[str, Any]:
    kind = dice.choice(
        ("string", "integer", "number", "boolean", "null", "array", "object", "enum")
    )
    if depth == 0 and kind in ("array", "object"):
        kind = "string"
    if kind == "enum":
        return {"enum": [value(dice, 0) for _ in range(3)]}
    schema: dict[str, Any] = {"type": kind}
    if kind == "string" and dice.random() < 0.5:
        schema |= {"minLength": dice.randrange(3), "maxLength": dice.randint(3, 9)}
    elif kind in ("integer", "number") and dice.random() < 0.5:
        schema |= {"minimum": dice.randint(-5, 5), "exclusiveMaximum": dice.randint(5, 9)}
    elif kind == "array":
        schema |= {"items": _plain_schema(dice, depth - 1), "maxItems": dice.randrange(4)}
    elif kind == "object":
        names = dice.sample(KEYS, dice.randint(1, 4))
        schema["properties"] = {name: _plain_schema(dice, depth - 1) for name in names}
        schema["required"] = dice.sample(names, dice.randint(0, len(names)))
        if dice.random() < 0.5:
            schema["additionalProperties"] = False
    return schema


def _tame(dice: Random) -> _Pair:
    schema = _plain_schema(dice)
    return schema, _fitting(schema, dice)


def _fitting(schema: dict[str, Any], dice: Random) -> Any:
    """A value that fits more often than not."""
    if dice.random() < 0.15:
        return value(dice, 2)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    match schema["type"]:
        case "string":
            return dice.choice(("", "ab", "abc", "abcdefgh"))
        case "integer" | "number":
            return dice.choice((0, 1, 5, -5, 8, 0.5, 3.0))
        case "boolean":
            return dice.random() < 0.5
        case "null":
            return None
        case "array":
            return [_fitting(schema["items"], dice) for _ in range(dice.randrange(4))]
        case _:
            names = [
                n for n in schema["properties"] if n in schema["required"] or dice.random() < 0.7
            ]
            held = {n: _fitting(schema["properties"][n], dice) for n in names}
            return held if dice.random() < 0.8 else {**held, "more": 1}


def _agrees(pair: _Pair) -> str | None:
    schema, held = pair
    fast: Any = import_module("fastjsonschema")
    try:
        fast.compile(schema)(held)
        fits = True
    except fast.JsonSchemaValueException:
        fits = False
    told = validate(held, schema).valid
    return None if told is fits else f"valid is {told}, another validator says {fits}"


TAME = Target(
    name="schema-tame",
    what="ordinary schemas and values; compared with another validator",
    inputs=4_000,
    make=_tame,
    check=_agrees,
)
