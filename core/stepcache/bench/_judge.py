"""An oracle that shares no code with the product: sympy, and a JSON Schema validator of its own.

It knows what the generator asked for, so it never reads a prompt. Equations are solved by sympy and
the answer's last statement about the unknown is compared exactly; objects are read by the ``json``
module and validated by ``fastjsonschema``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any

from stepcache.bench._items import Demand, EquationDemand, ObjectDemand
from stepcache.bench._topics import NAMES, SYMBOLS
from stepcache.bench._working import wrong_line
from stepcache.demo._check import stated_value

__all__ = ["Judgement", "judge", "object_values", "solutions"]

_MAX_CHARS = 20_000
_NUMBER = r"[-+]?\d{1,12}(?:\.\d{1,12})?(?:/\d{1,12})?"
_BOX = re.compile(r"\\boxed\{\s{0,3}(?:[A-Za-z]\s{0,3}=\s{0,3})?(?P<value>[^{}]{1,40})\}")
_FENCE = re.compile(r"```[a-zA-Z]{0,12}\n(?P<body>[^`]*)```")
_WORD = re.compile(r"[a-z]+")
_SHORT_WORDS = 3
_SIGNS = {"≥": ">=", "≤": "<=", "\\geq": ">=", "\\leq": "<=", "\\ge": ">=", "\\le": "<="}
_MIRROR = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an answer does what was demanded, and if not, what is wrong with it."""

    correct: bool
    why: str = ""
    stale: str = ""
    """A line of the working that is not true of the equation asked about, although the answer
    states the right value. A model may slip there; a cache must not serve it."""


_RIGHT = Judgement(True)


def judge(answer: str, demand: Demand) -> Judgement:
    """Hold an answer against what the generator asked for."""
    if not answer.strip():
        return Judgement(False, "there is no answer")
    if len(answer) > _MAX_CHARS:
        return Judgement(False, "longer than any right answer")
    if isinstance(demand, EquationDemand):
        return _equation(answer, demand)
    return _object(answer, demand)


# --- equations ---------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def solutions(demand: EquationDemand) -> tuple[str, Fraction]:
    """Relation and bound of the solution set, by sympy; the expressions are the generator's own."""
    sympy: Any = import_module("sympy")
    unknown = sympy.Symbol(demand.variable, real=True)
    names = {demand.variable: unknown}
    left, right = (sympy.sympify(side, locals=names) for side in (demand.left, demand.right))
    (root,) = sympy.solve(sympy.Eq(left, right), unknown)
    bound = Fraction(int(root.p), int(root.q))
    if demand.relation == "=":
        return "=", bound
    rising = sympy.diff(left - right, unknown) > 0
    return demand.relation if rising else _MIRROR[demand.relation], bound


def _equation(answer: str, demand: EquationDemand) -> Judgement:
    relation, value = solutions(demand)
    if relation != "=":
        found = _stated_range(answer, demand.variable)
        right = found == (relation, value)
        return _RIGHT if right else Judgement(False, f"states {found}, not {relation} {value}")
    if demand.form == "object":
        return _solved_object(answer, demand.variable, value)
    stated = _stated(answer, demand)
    if stated is None:
        return Judgement(False, f"no value of {demand.variable} in the form demanded")
    if stated != value:
        return Judgement(False, f"states {stated}, not {value}")
    return Judgement(True, stale=wrong_line(answer, demand.variable, value) or "")


def _stated(answer: str, demand: EquationDemand) -> Fraction | None:
    if demand.form == "number":
        text = answer.strip().replace("−", "-")
        return _fraction(text) if re.fullmatch(_NUMBER, text) else None
    if demand.form == "boxed":
        boxes = [match["value"].strip().replace("−", "-") for match in _BOX.finditer(answer)]
        return _fraction(boxes[-1]) if boxes else None
    return stated_value(answer, demand.variable)


def _solved_object(answer: str, variable: str, value: Fraction) -> Judgement:
    read = _read_object(answer)
    if read is None or set(read) != {variable}:
        return Judgement(False, f"no JSON object with the single key {variable}")
    if _fraction(str(read[variable])) == value:
        return _RIGHT
    return Judgement(False, f"states {read[variable]}, not {value}")


def _stated_range(answer: str, variable: str) -> tuple[str, Fraction] | None:
    """The last inequality that bounds the bare variable by a number."""
    text = answer.replace("−", "-").replace("$", " ").replace("*", "").replace("`", "")
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    name = re.escape(variable)
    forward = (
        rf"(?<![\w./^)])(?P<sign>[<>]=?)\s{{0,3}}(?P<value>{_NUMBER})(?![\w/^]|\s{{0,3}}[-+*/<>])"
    )
    patterns = (
        (re.compile(rf"(?<![\w.*/^)]){name}\s{{0,3}}{forward}"), False),
        (
            re.compile(
                rf"(?<![\w.*/^])(?P<value>{_NUMBER})\s{{0,3}}(?P<sign>[<>]=?)\s{{0,3}}{name}"
                r"(?![\w/^]|\s{0,3}[-+*/<>])"
            ),
            True,
        ),
    )
    last: tuple[int, str, Fraction] | None = None
    for pattern, mirrored in patterns:
        for match in pattern.finditer(text):
            before = text[max(0, match.start() - 8) : match.start()].rstrip(" ")
            value = _fraction(match["value"])
            if value is None or (before and (before[-1].isdigit() or before[-1] in "+-*/^")):
                continue
            sign = _MIRROR[match["sign"]] if mirrored else match["sign"]
            if last is None or match.start() > last[0]:
                last = (match.start(), sign, value)
    return (last[1], last[2]) if last is not None else None


def _fraction(text: str) -> Fraction | None:
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        return None


# --- objects -----------------------------------------------------------------------------------


def _object(answer: str, demand: ObjectDemand) -> Judgement:
    value = _read_object(answer)
    if value is None:
        return Judgement(False, "there is no JSON object")
    why = _schema_fault(value, demand) or _topic_fault(value, demand) or _value_fault(value, demand)
    return Judgement(False, why) if why else _RIGHT


def object_values(answer: str) -> frozenset[str] | None:
    """The values of the object in an answer, as text; None without an object."""
    value = _read_object(answer)
    return None if value is None else frozenset(map(_as_text, value.values()))


def _as_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _read_object(answer: str) -> dict[str, Any] | None:
    fence = _FENCE.search(answer)
    text = fence["body"] if fence else answer
    start, stop = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : stop + 1])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _schema_fault(value: dict[str, Any], demand: ObjectDemand) -> str:
    there = [key for key in demand.forbidden if key in value]
    if there:
        return f"holds {', '.join(there)}, which is not asked for any more"
    schema = demand.schema or {"type": "object", "required": list(demand.required)}
    check = _validator(json.dumps(schema, sort_keys=True))
    fault: type[Exception] = import_module("fastjsonschema").JsonSchemaException
    try:
        check(value)
    except fault as error:
        return str(error)[:200]
    return ""


@lru_cache(maxsize=512)
def _validator(schema: str) -> Any:
    return import_module("fastjsonschema").compile(json.loads(schema))


def _topic_fault(value: Mapping[str, Any], demand: ObjectDemand) -> str:
    if demand.topic_key is None:
        return ""
    named = str(value.get(demand.topic_key, ""))
    if demand.topic.casefold() in named.casefold() or named == SYMBOLS.get(demand.topic):
        return ""
    # A small model may name a thing oddly ("The City"); what it may not name is another thing.
    words = set(_WORD.findall(named.casefold()))
    others = [name for name in NAMES if name.casefold() in words or named == SYMBOLS.get(name)]
    return f"is about {named!r}, not {demand.topic!r}" if others else ""


def _value_fault(value: Mapping[str, Any], demand: ObjectDemand) -> str:
    for key, wanted in demand.values.items():
        if not _same(value.get(key), wanted):
            return f"{key} is {value.get(key)!r}, not {wanted!r}"
    strings = [one for one in value.values() if isinstance(one, str)]
    if demand.rule == "upper" and any(one != one.upper() for one in strings):
        return "a string is not in capitals"
    if demand.rule == "strings" and len(strings) != len(value):
        return "a value is not a string"
    if demand.rule == "short" and any(len(one.split()) > _SHORT_WORDS for one in strings):
        return "a value has more than three words"
    return ""


def _same(found: Any, wanted: Any) -> bool:
    """Numbers may be written as strings, and units may follow; the words must be those stated."""
    if isinstance(found, bool) or found is None:
        return False
    told = str(found).strip().casefold()
    expected = str(wanted).casefold()
    return told == expected or told.split()[:1] == [expected]
