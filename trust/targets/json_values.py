"""The JSON family: taking a value out of an answer, mending it, editing it, judging it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from random import Random
from typing import Any

from stepcache._types import Constraints, Contract, Message, Request, Status
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.json_answer._extract import Found, extract
from stepcache.tasks.json_answer._members import drop, insert, members, rename, replace_values
from stepcache.tasks.json_answer._repair import repaired
from trust._fuzz import Target
from trust._mutate import mutated
from trust.targets._json_texts import KEYS, WORDS, document

__all__ = ["ANSWERS", "EDITS", "EXTRACTION", "REPAIR"]

_LONGEST = 4_000
_BRACKET = re.compile(r"[\[{]")
_SIGNS = re.compile(r"[\W_]+")


def _text(dice: Random) -> str:
    return mutated(document(dice), dice, WORDS, document(dice), _LONGEST)


def _bytes(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")[:_LONGEST]


# --- extraction --------------------------------------------------------------------------------


def _extracted(text: str) -> str | None:
    found = extract(text)
    if not isinstance(found, Found):
        return None
    try:
        plain = json.loads(text[found.start : found.stop], object_pairs_hook=_unique)
    except ValueError as error:
        return f"took what the json module refuses: {error}"
    if not _same(plain, found.value):
        return f"took {found.value!r}"
    if not found.outer_start <= found.start <= found.stop <= found.outer_stop <= len(text):
        return "the fence does not lie around the value"
    for outside in (text[: found.start], text[found.stop :]):
        if _holds_object(outside):
            return "took one value of several"
    return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _same(plain: Any, taken: Any) -> bool:
    if isinstance(plain, dict) and isinstance(taken, dict):
        return list(plain) == list(taken) and all(_same(plain[k], taken[k]) for k in plain)
    if isinstance(plain, list) and isinstance(taken, list):
        return len(plain) == len(taken) and all(map(_same, plain, taken))
    if isinstance(taken, Decimal):
        return isinstance(plain, (int, float)) and (
            not isinstance(plain, int) or Decimal(plain) == taken
        )
    return type(plain) is type(taken) and plain == taken


def _holds_object(text: str) -> bool:
    decoder = json.JSONDecoder()
    for match in list(_BRACKET.finditer(text))[:50]:
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) or (isinstance(value, list) and value):
            return True
    return False


EXTRACTION = Target(
    name="json-extraction",
    what="the one JSON value of an answer; compared with the json module",
    inputs=130_000,
    make=_text,
    check=_extracted,
    read=_bytes,
)

# --- repair ------------------------------------------------------------------------------------


def _mended(text: str) -> str | None:
    new = repaired(text)
    if new is None:
        return None
    found = extract(new)
    if not isinstance(found, Found):
        return f"mended into what is no JSON: {new!r}"
    if "\\" in text:
        return None  # what escapes stand for is the product's own reading
    if _said(text, {}) != _said(new, {"True": "true", "False": "false", "None": "null"}):
        return f"other words than were there: {new!r}"
    return None


def _said(text: str, words: Mapping[str, str]) -> str:
    plain = {"True": "true", "False": "false", "None": "null", "undefined": "null", **words}
    text = text.replace("\\n", " ").replace("\\t", " ").replace("\\r", " ")
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
    return "".join(plain.get(word, word) for word in _SIGNS.split(text))


REPAIR = Target(
    name="json-repair",
    what="damaged JSON mended without a model; no word may come or go",
    inputs=70_000,
    make=_text,
    check=_mended,
    read=_bytes,
)

# --- edits -------------------------------------------------------------------------------------


def _edit(dice: Random) -> tuple[str, str, str]:
    return _text(dice), dice.choice(KEYS), dice.choice(KEYS)


def _edited(edit: tuple[str, str, str]) -> str | None:
    text, key, other = edit
    found = extract(text)
    if not isinstance(found, Found) or not isinstance(found.value, dict) or found.damage:
        return None
    body, value = text[found.start : found.stop], found.value
    if [m.key for m in members(body)] != list(value):
        return f"read the members {members(body)!r}"
    wanted = {k: v for k, v in value.items() if k != key}
    if key in value and _differs(drop(body, {key}), wanted):
        return f"dropping {key!r} gave {drop(body, {key})!r}"
    if key in value and other not in value:
        wanted = {(other if k == key else k): v for k, v in value.items()}
        if _differs(rename(body, {key: other}), wanted):
            return f"renaming {key!r} gave {rename(body, {key: other})!r}"
    if key in value and _differs(replace_values(body, {key: "[1]"}), {**value, key: [1]}):
        return f"a new value for {key!r} gave {replace_values(body, {key: '[1]'})!r}"
    if key not in value:
        new = insert(body, {key: '"new"'}, [*value, key])
        if _differs(new, {**value, key: "new"}):
            return f"a new key {key!r} gave {new!r}"
    return None


def _differs(body: str, wanted: Mapping[str, Any]) -> bool:
    found = extract(body)
    return not isinstance(found, Found) or found.value != wanted


EDITS = Target(
    name="json-edits",
    what="keys dropped, renamed, replaced and added in an object's text",
    inputs=70_000,
    make=_edit,
    check=_edited,
)

# --- answers -----------------------------------------------------------------------------------

_TASK = JsonAnswerTask()
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "population": {"type": "integer", "minimum": 0},
        "country": {"enum": ["France", "Italy"]},
    },
    "required": ["name", "population"],
    "additionalProperties": False,
}
_PROMPT = "Describe the city of Paris as a JSON object with exactly the keys name, country."
_NUMBERS = (
    *("21000001e400", "1e-400", "-1e-400", "9" * 310, "1.8e308", "1.7e308", "9007199254740993"),
    *("1.00000000000000000000001", "-0", "-0.00000000000000000000001e-310", "5e-324", "12e1"),
)
_GOOD = (
    '{"name": "Paris", "country": "France"}',
    '{"name": "Paris", "population": 2100000, "country": "France"}',
    '```json\n{\n  "name": "Paris",\n  "population": 7\n}\n```',
)


def _asked(schema: bool) -> Constraints:
    contract = Contract(schema=_SCHEMA, response_format={"type": "json_schema"})
    request = Request(
        messages=(Message(role="user", text="Describe Paris." if schema else _PROMPT),),
        contract=contract if schema else Contract(),
    )
    parsed = _TASK.parse(request)
    if not isinstance(parsed, Constraints):
        raise TypeError(f"not read: {parsed}")
    return parsed


def _answer(dice: Random) -> tuple[bool, str]:
    other = document(dice)
    good = dice.choice(_GOOD)
    if dice.random() < 0.1:
        good = good.replace(dice.choice(("2100000", '"Paris"')), dice.choice(_NUMBERS))
    text = good if dice.random() < 0.05 else mutated(good, dice, WORDS, other, _LONGEST)
    return dice.random() < 0.5, text


def _judged(answer: tuple[bool, str]) -> str | None:
    schema, text = answer
    constraints = _asked(schema)
    steps = _TASK.segment(text)
    if "".join(step.text for step in steps) != text:
        return "the steps do not join to the answer"
    verdicts = [_TASK.verify(step, constraints) for step in steps]
    whole = _TASK.check(steps, constraints)
    if whole.status is not Status.PASS or any(v.status is not Status.PASS for v in verdicts):
        return None
    start, stop = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : stop + 1], object_pairs_hook=_unique)
    except ValueError as error:
        return f"passed, though the json module refuses it: {error}"
    doubles = json.loads(text[start : stop + 1], parse_int=float)
    if "inf" in _SIGNS.split(repr(doubles)):
        return "passed with a number that is infinity to most readers"
    if not schema:
        return None if set(value) == {"name", "country"} else "passed with other keys"
    for read in (value, doubles):
        try:
            _compiled()(read)
        except import_module("fastjsonschema").JsonSchemaException as error:
            return f"passed, though another validator says: {error}"
    return None


_known: list[Any] = []


def _compiled() -> Any:
    if not _known:
        _known.append(import_module("fastjsonschema").compile(_SCHEMA))
    return _known[0]


ANSWERS = Target(
    name="json-answers",
    what="answers held against keys and a schema; judged by another validator",
    inputs=30_000,
    make=_answer,
    check=_judged,
    read=lambda data: (bool(data and data[0] & 1), _bytes(data[1:])),
)
