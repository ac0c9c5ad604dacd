"""The deterministic answer: the given equation, one operation at a time, the value."""

from __future__ import annotations

from fractions import Fraction

from stepcache.tasks.linear_equation._algebra import Poly, Quotient, fraction_text
from stepcache.tasks.linear_equation._problem import Problem

__all__ = ["pretty", "worked_solution"]


def worked_solution(problem: Problem) -> str:
    """An answer that passes this task's own check.

    The style ``answer-only`` gives the bare result, ``number`` the number alone, ``boxed`` ends in
    a box, and every other style is the worked steps.
    """
    if problem.style == "answer-only":
        return _result(problem)
    if problem.style == "number" and problem.value is not None:
        return fraction_text(problem.value)
    given = "\n".join(f"{pretty(left)} = {pretty(right)}" for left, right in _turned(problem))
    pieces = [given, *(_derivation(problem) if problem.simple else ())]
    result = _result(problem)
    if pieces[-1].splitlines()[-1] != result:
        pieces.append(result)
    if problem.style == "boxed" and problem.value is not None:
        pieces.append(rf"\boxed{{{fraction_text(problem.value)}}}")
    return "\n\n".join(pieces)


def pretty(side: Quotient) -> str:
    """An expression as people write it: ``2x + 3``."""
    if side.bottom.value == 1:
        return _pretty_poly(side.top)
    return f"({_pretty_poly(side.top)})/({_pretty_poly(side.bottom)})"


def _pretty_poly(poly: Poly) -> str:
    if not poly.terms:
        return "0"
    text = ""
    ordered = sorted(poly.terms, key=lambda t: (-sum(p for _, p in t[0]), t[0]))
    for monomial, value in ordered:
        factors = [name if power == 1 else f"{name}^{power}" for name, power in monomial]
        number = fraction_text(abs(value))
        if factors and number == "1":
            body = "*".join(factors)
        elif factors:
            body = (f"({number})" if "/" in number else number) + "*".join(factors)
        else:
            body = number
        sign = "-" if value < 0 else "+"
        text += f" {sign} {body}" if text else body if sign == "+" else f"-{body}"
    return text


def _turned(problem: Problem) -> list[tuple[Quotient, Quotient]]:
    """The equations with the unknown on the left where one side has it."""
    return [
        (right, left) if problem.unknown not in left.symbols and right.symbols else (left, right)
        for left, right in problem.equations
    ]


def _derivation(problem: Problem) -> list[str]:
    x = problem.unknown
    left, right = _turned(problem)[0]
    a, b = left.top.coefficient(x), left.top.coefficient()
    c, d = right.top.coefficient(x), right.top.coefficient()
    pieces: list[str] = []
    if c:
        verb = _verb(c, _times(abs(c), x))
        a, c = a - c, Fraction(0)
        pieces.append(f"{verb}:\n{_side(a, b, x)} = {fraction_text(d)}")
    if b and a:
        verb = _verb(b, fraction_text(abs(b)))
        b, d = Fraction(0), d - b
        pieces.append(f"{verb}:\n{_side(a, b, x)} = {fraction_text(d)}")
    if a not in (0, 1):
        value = fraction_text(d / a)
        pieces.append(f"Divide both sides by {fraction_text(a)}:\n{x} = {value}")
    return pieces


def _verb(value: Fraction, written: str) -> str:
    if value > 0:
        return f"Subtract {written} from both sides"
    return f"Add {written} to both sides"


def _times(value: Fraction, x: str) -> str:
    return _side(value, Fraction(0), x)


def _side(slope: Fraction, rest: Fraction, x: str) -> str:
    return _pretty_poly(Poly.of({((x, 1),): slope, (): rest}))


def _result(problem: Problem) -> str:
    x = problem.unknown
    if problem.solutions == "none":
        return f"No value of {x} satisfies the equation, so there is no solution."
    if problem.solutions == "all":
        return f"The equation holds for every number, so all real numbers are solutions for {x}."
    assert problem.value is not None
    return f"{x} = {fraction_text(problem.value)}"
