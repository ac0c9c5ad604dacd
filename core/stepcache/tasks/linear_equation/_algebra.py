"""Exact rational algebra with bounds: what an expression is once its notation is gone.

An expression is a quotient of two polynomials with :class:`fractions.Fraction` coefficients. A
quotient is never reduced, except where a denominator divides its numerator without remainder:
reducing further could lose a root that the denominator forbids. Denominators are remembered, so
that a solution can be held against each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from stepcache._memo import memo

__all__ = [
    "ONE",
    "ZERO",
    "Limit",
    "Poly",
    "Quotient",
    "Unreadable",
    "constant",
    "fraction_text",
    "solve_linear",
    "symbol",
]

Monomial: TypeAlias = tuple[tuple[str, int], ...]

ZERO = Fraction(0)
_UNIT = Fraction(1)
_MAX_TERMS = 64
_MAX_DEGREE = 8
_BOUND = 1 << 1024
"""What numerators and denominators stay below."""


class Unreadable(ValueError):
    """The text is no expression of ours; the message says why."""


class Limit(Unreadable):
    """The expression is larger than the bounds allow."""


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial: coefficients by monomial, none of them zero, monomials in sorted order."""

    terms: tuple[tuple[Monomial, Fraction], ...] = ()

    @classmethod
    def of(cls, terms: Mapping[Monomial, Fraction]) -> Poly:
        kept = [term for term in terms.items() if term[1]]
        if len(kept) > _MAX_TERMS:
            raise Limit("too many terms")
        for monomial, value in kept:
            if monomial and _size(monomial) > _MAX_DEGREE:
                raise Limit("the degree is too high")
            if not -_BOUND < value.numerator < _BOUND or value.denominator >= _BOUND:
                raise Limit("a number has too many digits")
        if len(kept) > 1:
            kept.sort()
        return cls(tuple(kept))

    def __add__(self, other: Poly) -> Poly:
        if not self.terms or not other.terms:
            return self if self.terms else other
        total = dict(self.terms)
        for monomial, value in other.terms:
            known = total.get(monomial)
            total[monomial] = value if known is None else known + value
        return Poly.of(total)

    def __neg__(self) -> Poly:
        return Poly(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: Poly) -> Poly:
        total = dict(self.terms)
        for monomial, value in other.terms:
            known = total.get(monomial)
            total[monomial] = -value if known is None else known - value
        return Poly.of(total)

    def __mul__(self, other: Poly) -> Poly:
        if self is ONE or other is ONE:
            return other if self is ONE else self
        if len(self.terms) == len(other.terms) == 1:
            (left, a), (right, b) = self.terms[0], other.terms[0]
            return Poly.of({_times(left, right): b if a is _UNIT else a if b is _UNIT else a * b})
        total: dict[Monomial, Fraction] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = _times(left, right)
                total[monomial] = total.get(monomial, ZERO) + a * b
        return Poly.of(total)

    @property
    def symbols(self) -> frozenset[str]:
        if len(self.terms) == 1 and len(self.terms[0][0]) <= 1:
            return frozenset((self.terms[0][0][0][0],)) if self.terms[0][0] else _NOTHING
        return frozenset(name for monomial, _ in self.terms for name, _ in monomial)

    @property
    def degree(self) -> int:
        """Highest total degree; 0 for a constant, also for zero."""
        return max([_size(monomial) for monomial, _ in self.terms], default=0)

    @property
    def value(self) -> Fraction | None:
        """The number it is, or None when it has symbols."""
        if not self.terms:
            return ZERO
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    def coefficient(self, *names: str) -> Fraction:
        """The coefficient of a product of distinct symbols, or the constant for none."""
        wanted = tuple((name, 1) for name in sorted(names)) if names else ()
        for monomial, value in self.terms:
            if monomial == wanted:
                return value
        return ZERO

    def derivative(self, name: str) -> Poly:
        """The derivative with respect to one symbol."""
        total: dict[Monomial, Fraction] = {}
        for monomial, value in self.terms:
            powers = dict(monomial)
            power = powers.pop(name, 0)
            if power > 1:
                powers[name] = power - 1
            lowered = tuple(sorted(powers.items()))
            total[lowered] = total.get(lowered, ZERO) + value * power
        return Poly.of(total)

    def put(self, values: Mapping[str, Quotient]) -> Quotient:
        """The expression with values in place of symbols."""
        total = constant(0)
        for monomial, value in self.terms:
            product = constant(value)
            for name, power in monomial:
                factor = values.get(name) or symbol(name)
                for _ in range(power):
                    product = product * factor
            total = total + product
        return total

    def divided(self, by: Poly) -> Poly | None:
        """The exact quotient in one symbol, or None when there is a remainder."""
        names = self.symbols | by.symbols
        if len(names) > 1 or not by.terms:
            return None
        rest, quotient = _dense(self), []
        divisor = _dense(by)
        while len(rest) >= len(divisor):
            factor = rest[-1] / divisor[-1]
            quotient.append(factor)
            shift = len(rest) - len(divisor)
            for i, c in enumerate(divisor):
                rest[shift + i] -= factor * c
            rest.pop()
        if any(rest):
            return None
        name = next(iter(names), "")
        powers = range(len(quotient) - 1, -1, -1)
        return Poly.of({((name, p),) if p else (): c for p, c in zip(powers, quotient)})

    def text(self) -> str:
        """One canonical text per polynomial, e.g. ``2*x+3``; the parser reads it back."""
        if not self.terms:
            return "0"
        pieces = []
        for monomial, value in sorted(self.terms, key=lambda t: (-_size(t[0]), t[0])):
            factors = [name if power == 1 else f"{name}^{power}" for name, power in monomial]
            number = fraction_text(abs(value))
            body = "*".join(factors if number == "1" and factors else [_grouped(number), *factors])
            pieces.append(("-" if value < 0 else "+") + body)
        return "".join(pieces).removeprefix("+")


_NOTHING: frozenset[str] = frozenset()
ONE = Poly((((), _UNIT),))
"""The denominator of everything that has none."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """``top / bottom``, with every denominator that was divided by on the way."""

    top: Poly
    bottom: Poly
    forbidden: tuple[Poly, ...] = ()

    def __add__(self, other: Quotient) -> Quotient:
        if self.plain and other.plain:
            return Quotient(self.top + other.top, ONE)
        forbidden = _merged(self.forbidden, other.forbidden)
        if self.bottom == other.bottom:
            return Quotient(self.top + other.top, self.bottom, forbidden)
        top = self.top * other.bottom + other.top * self.bottom
        return Quotient(top, self.bottom * other.bottom, forbidden)

    def __neg__(self) -> Quotient:
        return Quotient(-self.top, self.bottom, self.forbidden)

    def __sub__(self, other: Quotient) -> Quotient:
        if self.plain and other.plain:
            return Quotient(self.top - other.top, ONE)
        return self + -other

    def __mul__(self, other: Quotient) -> Quotient:
        if self.plain and other.plain:
            return Quotient(self.top * other.top, ONE)
        forbidden = _merged(self.forbidden, other.forbidden)
        return _settled(self.top * other.top, self.bottom * other.bottom, forbidden)

    def __truediv__(self, other: Quotient) -> Quotient:
        if not other.top.terms:
            raise Unreadable("a division by zero")
        forbidden = _merged(self.forbidden, other.forbidden)
        if other.top.value is None:
            forbidden = _merged(forbidden, (other.top,))
        return _settled(self.top * other.bottom, self.bottom * other.top, forbidden)

    def __pow__(self, power: int) -> Quotient:
        if abs(power) > _MAX_DEGREE and not (self.value in (0, 1) and power > 0):
            raise Limit("the exponent is too large")
        product = constant(1)
        for _ in range(min(abs(power), _MAX_DEGREE)):
            product = product * self
        return product if power >= 0 else constant(1) / product

    @property
    def plain(self) -> bool:
        """A polynomial that nothing with an unknown was divided by."""
        return self.bottom is ONE and not self.forbidden

    @property
    def symbols(self) -> frozenset[str]:
        if self.bottom is ONE:
            return self.top.symbols
        return self.top.symbols | self.bottom.symbols

    @property
    def value(self) -> Fraction | None:
        """The number it is, or None when it has symbols."""
        top = self.top.value
        if top is None or self.bottom is ONE:
            return top
        bottom = self.bottom.value
        return top / bottom if bottom else None

    def put(self, values: Mapping[str, Quotient]) -> Quotient:
        """The expression with values in place of symbols.

        Raises:
            Unreadable: A denominator becomes zero.
        """
        if not values or not (self.symbols & values.keys()):
            for poly in self.forbidden:
                if poly.symbols & values.keys() and poly.put(values).value == 0:
                    raise Unreadable("a division by zero")
            return self
        for poly in self.forbidden:
            if poly.put(values).value == 0:
                raise Unreadable("a division by zero")
        placed = self.top.put(values) / self.bottom.put(values)
        rest = tuple(p for p in self.forbidden if not p.symbols <= values.keys())
        kept = tuple(p.put(values).top for p in rest)
        return Quotient(placed.top, placed.bottom, _merged(placed.forbidden, kept))

    def text(self) -> str:
        """One canonical text per expression; the parser reads it back."""
        if self.bottom is ONE or self.bottom.value == 1:
            return self.top.text()
        return f"({self.top.text()})/({self.bottom.text()})"


def constant(value: Fraction | int) -> Quotient:
    """A number as an expression."""
    number = value if isinstance(value, Fraction) else Fraction(value)
    return Quotient(Poly.of({(): number}), ONE)


@memo(maxsize=256)
def symbol(name: str) -> Quotient:
    """An unknown as an expression."""
    return Quotient(Poly(((((name, 1),), _UNIT),)), ONE)


def fraction_text(value: Fraction) -> str:
    """``7/2``, ``-3``."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{value.numerator}/{value.denominator}"


def solve_linear(rows: Sequence[Poly]) -> dict[str, Fraction] | None:
    """The symbols that a linear system determines, by Gauss-Jordan elimination.

    Args:
        rows: Polynomials of degree at most 1 that are zero.

    Returns:
        Only the symbols with one possible value; None when the system has no solution.
    """
    names = sorted(frozenset(name for row in rows for name in row.symbols))
    matrix = [[row.coefficient(n) for n in names] + [-row.coefficient()] for row in rows]
    pivots: list[tuple[int, int]] = []
    at = 0
    for column in range(len(names)):
        pick = next((r for r in range(at, len(matrix)) if matrix[r][column]), None)
        if pick is None:
            continue
        matrix[at], matrix[pick] = matrix[pick], matrix[at]
        lead = matrix[at][column]
        matrix[at] = [v / lead for v in matrix[at]]
        for r, row in enumerate(matrix):
            if r != at and row[column]:
                matrix[r] = [v - row[column] * w for v, w in zip(row, matrix[at])]
        pivots.append((at, column))
        at += 1
    if any(row[-1] for row in matrix[at:]):
        return None
    return {
        names[column]: matrix[row][-1]
        for row, column in pivots
        if not any(v for c, v in enumerate(matrix[row][:-1]) if c != column)
    }


def _times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def _dense(poly: Poly) -> list[Fraction]:
    """Coefficients of a polynomial in one symbol, lowest power first."""
    dense = [Fraction(0)] * (poly.degree + 1)
    for monomial, value in poly.terms:
        dense[monomial[0][1] if monomial else 0] = value
    return dense


def _settled(top: Poly, bottom: Poly, forbidden: tuple[Poly, ...]) -> Quotient:
    """A quotient with a plain polynomial made of it where division leaves no remainder."""
    number = bottom.value
    if number is not None:
        return Quotient(top * Poly.of({(): 1 / number}), ONE, forbidden)
    exact = top.divided(bottom)
    if exact is not None:
        return Quotient(exact, ONE, forbidden)
    return Quotient(top, bottom, forbidden)


def _merged(left: Iterable[Poly], right: Iterable[Poly]) -> tuple[Poly, ...]:
    return tuple(dict.fromkeys((*left, *right)))


def _size(monomial: Monomial) -> int:
    if len(monomial) == 1:
        return monomial[0][1]
    return sum(power for _, power in monomial)


def _grouped(number: str) -> str:
    return f"({number})" if "/" in number else number
