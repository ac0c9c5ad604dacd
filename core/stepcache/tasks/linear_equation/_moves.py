"""What is read off a step's notation alone: markers, literals, moves from equation to equation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import gcd

from stepcache.tasks.linear_equation._algebra import Poly, Quotient, Unreadable
from stepcache.tasks.linear_equation._parse import sides
from stepcache.tasks.linear_equation._prose import STEP_WORDS
from stepcache.tasks.linear_equation._scan import Run

__all__ = ["done", "equations_in", "is_literal", "is_marker", "leads", "monic"]

_MARKER = re.compile(r"[.):\uff1a\u3001]")
_MAX_DIGITS = 1_000
"""Of a fraction whose terms are looked at."""
_MAX_HEAD = 80
"""Characters before a number that begins its line."""
_LINE_HEAD = re.compile(r"[\s#*\-+>(|\u2022]*")


def equations_in(found: Sequence[Run], unknown: str) -> list[tuple[Quotient, Quotient]]:
    """The readable equations of a text in one unknown, in order."""
    pairs: list[tuple[Quotient, Quotient]] = []
    for run in found:
        if run.equals != 1 or run.bad is not None or run.glued:
            continue
        try:
            left, right = sides(run.tokens)
        except Unreadable:
            continue
        if left.symbols | right.symbols == {unknown}:
            pairs.append((left, right))
    return pairs


def is_marker(text: str, run: Run) -> bool:
    """``1.`` before an item, ``Step 2``, ``## 3``: a number that says nothing of the request."""
    if len(run.tokens) != 1 or run.tokens[0].kind != "number":
        return False
    if run.before[-1:] and run.before[-1] in STEP_WORDS:
        return True
    line = text.rfind("\n", max(0, run.start - _MAX_HEAD), run.start) + 1
    if not line and run.start > _MAX_HEAD:
        return False
    if _LINE_HEAD.fullmatch(text, line, run.start) is None:
        return False
    end = text.find("\n", run.stop, run.stop + 80)
    rest = text[run.stop : end if end >= 0 else run.stop + 80]
    return bool(_MARKER.match(rest)) and bool(rest[1:].strip(" *\t\r"))


def monic(zero: Poly) -> Poly:
    """The same equation, whatever both sides were multiplied by."""
    if not zero.terms:
        return zero
    lead = zero.terms[0][1]
    return Poly(tuple((monomial, value / lead) for monomial, value in zero.terms))


def is_literal(tokens: Sequence[object]) -> bool:
    """A number as written at the end of an answer: signs, digits, one fraction in lowest terms.

    ``63 / 7`` is still to be worked out, and no result.
    """
    kinds = [(getattr(t, "kind", ""), getattr(t, "text", "")) for t in tokens]
    if not kinds or any(k not in ("number", "op", "frac", "open", "close") for k, _ in kinds):
        return False
    ops = [text for kind, text in kinds if kind == "op"]
    inner = ops[1:] if kinds[0][0] == "op" else ops
    numbers = [text for kind, text in kinds if kind == "number"]
    drawn = any(k == "frac" for k, _ in kinds)
    if len(numbers) > 2 or inner not in ([], ["/"], ["-"]):
        return False
    if inner == ["-"] and not drawn and len(numbers) > 1:
        return False
    return len(numbers) < 2 or _in_lowest_terms(*numbers)


def _in_lowest_terms(numerator: str, denominator: str) -> bool:
    if not (numerator.isdecimal() and denominator.isdecimal()):
        return False
    if len(numerator) + len(denominator) > _MAX_DIGITS:
        return False
    return int(denominator) > 1 and gcd(int(numerator), int(denominator)) == 1


def leads(
    verb: str, by: Quotient, first: tuple[Quotient, Quotient], second: tuple[Quotient, Quotient]
) -> bool:
    """Whether an operation on both sides makes the second equation of the first."""
    expected = sorted(side.text() for side in done(verb, by, first))
    return expected == sorted(side.text() for side in second)


def done(verb: str, by: Quotient, pair: tuple[Quotient, Quotient]) -> tuple[Quotient, Quotient]:
    """Both sides after an operation."""
    left, right = pair
    if verb == "subtract":
        return left - by, right - by
    if verb == "add":
        return left + by, right + by
    return (left / by, right / by) if verb == "divide" else (left * by, right * by)
