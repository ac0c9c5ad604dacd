"""Reads the lines of a worked solution, to find one that is not of the equation asked about.

A reader of its own, as the whole judge: lines that it does not understand say nothing, lines that
it does must have the solution that sympy found, or be true arithmetic.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TypeAlias

__all__ = ["wrong_line"]

_MAX_LINES = 200
_MAX_LINE = 120
_MAX_DEPTH = 8
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d{1,12}(?:\.\d{1,12})?)|(?P<sign>[-+*/()])|(?P<name>[A-Za-z]))"
)
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]{1,30})\}\{([^{}]{1,30})\}")
_LABEL = re.compile(r"^\s{0,8}(?:\d{1,2}[.)]|[-*•]|Step \d{1,2}:|So,?|Therefore,?|Then)\s+")

Linear: TypeAlias = tuple[Fraction, Fraction]
"""``p v + q`` as (p, q)."""


class _Unread(Exception):
    """The text is not a linear term of the variable."""


def wrong_line(answer: str, variable: str, solution: Fraction) -> str | None:
    """The first line that states an equation which the solution does not satisfy, or None."""
    for line in answer.splitlines()[:_MAX_LINES]:
        if "=" not in line or len(line) > _MAX_LINE:
            continue
        try:
            sides = [_side(side, variable) for side in _plain(line).split("=")]
        except _Unread:
            continue
        values = {p * solution + q for p, q in sides}
        if len(values) > 1:
            return line.strip()
    return None


def _plain(line: str) -> str:
    text = _FRACTION.sub(r"((\1)/(\2))", _LABEL.sub("", line))
    for old, new in (
        ("−", "-"),
        ("×", "*"),
        ("·", "*"),
        ("÷", "/"),
        ("\\cdot", "*"),
        ("\\times", "*"),
    ):
        text = text.replace(old, new)
    for mark in ("\\(", "\\)", "\\[", "\\]", "$", "**", "`", "\\boxed", "{", "}"):
        text = text.replace(mark, " ")
    return text.strip().rstrip(".,;:")


def _side(text: str, variable: str) -> Linear:
    tokens = _tokens(text)
    value, at = _sum(tokens, 0, variable, 0)
    if at != len(tokens):
        raise _Unread
    return value


def _tokens(text: str) -> list[str]:
    tokens, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _Unread
        tokens.append(match.group().strip())
        at = match.end()
    if not tokens:
        raise _Unread
    return tokens


def _sum(tokens: list[str], at: int, variable: str, depth: int) -> tuple[Linear, int]:
    total, at = _product(tokens, at, variable, depth)
    while at < len(tokens) and tokens[at] in "+-":
        factor = 1 if tokens[at] == "+" else -1
        term, at = _product(tokens, at + 1, variable, depth)
        total = (total[0] + factor * term[0], total[1] + factor * term[1])
    return total, at


def _product(tokens: list[str], at: int, variable: str, depth: int) -> tuple[Linear, int]:
    value, at = _atom(tokens, at, variable, depth)
    while at < len(tokens) and tokens[at] not in "+-)":
        divides = tokens[at] == "/"
        if tokens[at] in "*/":
            at += 1
        elif tokens[at][0].isdigit():  # "10 5" is no product
            raise _Unread
        other, at = _atom(tokens, at, variable, depth)
        value = _divided(value, other) if divides else _multiplied(value, other)
    return value, at


def _atom(tokens: list[str], at: int, variable: str, depth: int) -> tuple[Linear, int]:
    if at >= len(tokens) or depth > _MAX_DEPTH:
        raise _Unread
    first = tokens[at]
    if first in "+-":
        (p, q), at = _atom(tokens, at + 1, variable, depth + 1)
        return ((p, q) if first == "+" else (-p, -q)), at
    if first == "(":
        value, at = _sum(tokens, at + 1, variable, depth + 1)
        if at >= len(tokens) or tokens[at] != ")":
            raise _Unread
        return value, at + 1
    if first == variable:
        return (Fraction(1), Fraction(0)), at + 1
    if not first[0].isdigit():
        raise _Unread
    return (Fraction(0), Fraction(first)), at + 1


def _multiplied(a: Linear, b: Linear) -> Linear:
    if a[0] and b[0]:
        raise _Unread
    if b[0]:
        a, b = b, a
    return a[0] * b[1], a[1] * b[1]


def _divided(a: Linear, b: Linear) -> Linear:
    if b[0] or not b[1]:
        raise _Unread
    return a[0] / b[1], a[1] / b[1]
