"""What a step may say without an equation: the numbers and terms that follow from the request.

A number in a sentence ("subtract 3", "the coefficient is 2") is a claim about the request. It is
accepted only if it is one of the request's own numbers or of those its solution runs through.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from stepcache._memo import memo
from stepcache.tasks.linear_equation._algebra import Quotient
from stepcache.tasks.linear_equation._problem import Problem

__all__ = ["Facts", "gather"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Numbers, without their signs except where said, that follow from a request."""

    numbers: frozenset[Fraction]
    """Everything that may be mentioned."""
    coefficients: frozenset[Fraction]
    """Of the asked unknown."""
    constants: frozenset[Fraction]
    addends: frozenset[Fraction]
    """Signed constants of the sides: what may be subtracted from both."""
    slopes: frozenset[Fraction]
    """Signed coefficients of the sides: how many unknowns may be subtracted from both."""
    divisors: frozenset[Fraction]
    """What both sides may be divided by."""
    multipliers: frozenset[Fraction]
    """What both sides may be multiplied by."""
    symbols: frozenset[str]
    """Every unknown of the request."""
    sides: frozenset[str]
    """The sides of its equations, as canonical texts."""

    def mentions(self, value: Fraction) -> bool:
        return abs(value) in self.numbers

    def term(self, side: Quotient, unknown: str) -> bool:
        """Whether ``2x`` or ``2x + 3`` is a part of the request or of its reduced forms."""
        if side.bottom.value != 1 or side.top.degree > 1:
            return False
        slope, rest = side.top.coefficient(unknown), side.top.coefficient()
        return (not slope or abs(slope) in self.coefficients) and (
            not rest or abs(rest) in self.constants
        )


@memo(maxsize=256)
def gather(problem: Problem) -> Facts:
    """The facts of a problem."""
    if problem.simple:
        return _simple(problem)
    numbers: set[Fraction] = {abs(v) for v in problem.known.values()}
    for pair in problem.equations:
        for side in pair:
            numbers.update(abs(c) for poly in (side.top, side.bottom) for _, c in poly.terms)
    parts = _with_parts(numbers) | {Fraction(1)}
    every = frozenset(parts)
    signed = frozenset(n * s for n in parts for s in (1, -1))
    return Facts(every, every, every, signed, signed, every, every, *_written(problem))


def _written(problem: Problem) -> tuple[frozenset[str], frozenset[str]]:
    return problem.symbols, frozenset(s.text() for pair in problem.equations for s in pair)


def _simple(problem: Problem) -> Facts:
    a, b, c, d = problem.parts()
    coefficients = {abs(a), abs(c), abs(a - c), Fraction(1)} - {Fraction(0)}
    constants = {abs(b), abs(d), abs(d - b), Fraction(0)}
    if problem.value is not None:
        constants.add(abs(problem.value))
    ratios = {abs(rest / slope) for slope, rest in ((a, b), (c, d)) if slope}
    numbers = _with_parts(coefficients | constants) | ratios
    if problem.value is not None:
        numbers |= {abs(a * problem.value), abs(c * problem.value)}
    slopes = {abs(a), abs(c), abs(a - c)} - {Fraction(0)}
    symbols, sides = _written(problem)
    denominators = {Fraction(n.denominator) for n in (a, b, c, d, a - c)} - {Fraction(1)}
    return Facts(
        numbers=frozenset(numbers),
        coefficients=frozenset(coefficients),
        constants=frozenset(constants),
        addends=frozenset((b, d)),
        slopes=frozenset((a, c)),
        divisors=frozenset(slopes | {Fraction(abs(n.numerator)) for n in slopes}),
        multipliers=frozenset(
            denominators | {1 / n for n in slopes} | {Fraction(1) for n in (a, c, a - c) if n < 0}
        ),
        symbols=symbols,
        sides=sides,
    )


def _with_parts(numbers: set[Fraction]) -> set[Fraction]:
    """The numbers, and the numerators and denominators of those that are no whole numbers."""
    parts = {Fraction(p) for n in numbers for p in (abs(n.numerator), n.denominator)}
    return numbers | {p for p in parts if p != 1} | {n for n in numbers if n == 1}
