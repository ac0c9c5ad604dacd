"""An independent judge of answers: sympy and the json module, and no code of the product.

It reads answers its own simple way, so that a mistake of the product's parsers cannot hide itself.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from importlib import import_module
from typing import Any

from stepcache.demo._script import Demand, EquationDemand, KeysDemand

__all__ = ["is_correct"]

_MAX_CHARS = 20_000
_FENCE = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)
_NUMBER = r"[-+]?\d{1,12}(?:\.\d{1,12})?(?:/\d{1,12})?"
# ``x = 10/2 = 5``: what is meant is the end of the chain.
_VALUE = rf"(?:{_NUMBER}\s{{0,3}}=\s{{0,3}}){{0,4}}(?P<value>{_NUMBER})"
_FRACTION = re.compile(r"\\[dt]?frac\{(-?\d{1,12})\}\{(-?\d{1,12})\}")
_BOXED = re.compile(r"\\boxed\{([^{}]{1,60})\}")


def is_correct(answer: str, demand: Demand) -> bool:
    """Whether an answer does what was demanded.

    Args:
        answer: The text that was served.
        demand: What the request asked for, as the script wrote it down.
    """
    if len(answer) > _MAX_CHARS or not answer.strip():
        return False
    if isinstance(demand, EquationDemand):
        return stated_value(answer, demand.variable) == solution(demand)
    if isinstance(demand, KeysDemand):
        return _has_exactly(answer, demand.keys)
    return True


def solution(demand: EquationDemand) -> Fraction:
    """The solution, by sympy. The expressions are the script's own, never a user's."""
    sympy: Any = import_module("sympy")
    unknown = sympy.Symbol(demand.variable)
    names = {demand.variable: unknown}
    left, right = (sympy.sympify(side, locals=names) for side in (demand.left, demand.right))
    (found,) = sympy.solve(sympy.Eq(left, right), unknown)
    return Fraction(int(found.p), int(found.q))


def stated_value(answer: str, variable: str) -> Fraction | None:
    """The last number that an answer says the variable equals, or boxes; None without one."""
    text = _FRACTION.sub(r"\1/\2", answer)
    text = (
        _BOXED.sub(r"\1", text) if f"{variable} =" in _boxes(text) else _name_boxes(text, variable)
    )
    text = text.replace("−", "-").replace("\\", " ").replace("**", "").replace("$", "")
    text = text.replace("`", "").replace("(", " ").replace(")", " ")
    stated = re.compile(
        rf"(?<![\w.*/^]){re.escape(variable)}\s{{0,9}}(?:=|is)\s{{0,9}}{_VALUE}(?![\w/^]|\s{{0,3}}[-+*/=])"
    )
    last: Fraction | None = None
    for match in stated.finditer(text):
        if _stands_alone(text, match.start()):
            last = _fraction(match["value"])
    return last


def _boxes(text: str) -> str:
    return " ".join(_BOXED.findall(text))


def _name_boxes(text: str, variable: str) -> str:
    """Write a boxed number as the statement that it is."""
    return _BOXED.sub(rf" ; {variable} = \1 ", text)


def _stands_alone(text: str, start: int) -> bool:
    """False where the variable closes a longer term, as the x of ``2 x = 10`` does."""
    before = text[max(0, start - 12) : start].rstrip(" ")
    return not before or not (before[-1].isdigit() or before[-1] in "+-*/^.")


def _fraction(value: str) -> Fraction | None:
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        return None


def _has_exactly(answer: str, keys: tuple[str, ...]) -> bool:
    fence = _FENCE.search(answer)
    text = fence.group(1) if fence else answer
    start, stop = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : stop + 1])
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and set(value) == set(keys)
