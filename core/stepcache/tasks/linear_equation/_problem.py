"""What a request asks, decoded from its constraints: equations, the unknown, the exact solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from stepcache._memo import memo
from stepcache._types import Constraints
from stepcache.tasks.linear_equation._algebra import (
    Poly,
    Quotient,
    Unreadable,
    constant,
    solve_linear,
)
from stepcache.tasks.linear_equation._lex import lex
from stepcache.tasks.linear_equation._parse import read_canonical

__all__ = ["Equation", "Problem", "decode", "encode", "make_problem", "numerator"]

Equation: TypeAlias = tuple[Quotient, Quotient]
Solutions: TypeAlias = Literal["one", "none", "all"]

_MAX_EQUATIONS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Equations that hold at once, and the one unknown whose value is asked.

    Compared by identity: decoding is remembered, and what is gathered of a problem with it.
    """

    unknown: str
    equations: tuple[Equation, ...]
    style: str
    solutions: Solutions
    value: Fraction | None
    """The solution, when there is exactly one."""
    known: dict[str, Fraction] = field(default_factory=dict)
    """Every symbol with exactly one possible value."""
    nonzero: tuple[Poly, ...] = ()
    """Denominators that vanished from the equations but still must not be zero."""

    @property
    def symbols(self) -> frozenset[str]:
        inside = (s for pair in self.equations for side in pair for s in side.symbols)
        return frozenset((self.unknown, *inside))

    @property
    def simple(self) -> bool:
        """One equation in one unknown, linear on both sides."""
        return len(self.equations) == 1 and all(
            side.bottom.value == 1 and side.top.degree <= 1 for side in self.equations[0]
        )

    def parts(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """``a, b, c, d`` of ``a*x + b = c*x + d``; for :attr:`simple` ones."""
        left, right = self.equations[0]
        x = self.unknown
        return (
            *(left.top.coefficient(x), left.top.coefficient()),
            *(right.top.coefficient(x), right.top.coefficient()),
        )


def numerator(left: Quotient, right: Quotient) -> Poly:
    """The polynomial that is zero where both sides are equal."""
    if left.bottom is right.bottom or left.bottom == right.bottom:
        return left.top - right.top
    return left.top * right.bottom - right.top * left.bottom


def make_problem(
    unknown: str,
    equations: Sequence[Equation],
    style: str = "",
    nonzero: Sequence[Poly] = (),
) -> Problem:
    """Solve the equations.

    Raises:
        Unreadable: They are not linear, contradict each other, or leave the unknown open.
    """
    if len(equations) > _MAX_EQUATIONS:
        raise Unreadable("too many equations")
    if len(equations) == 1:
        return _one(unknown, equations[0], style, tuple(nonzero))
    known = _several(unknown, equations)
    if unknown not in known:
        raise Unreadable(f"the equations do not determine {unknown}")
    _forbidden(known, (*nonzero, *(p for e in equations for s in e for p in s.forbidden)))
    return Problem(unknown, tuple(equations), style, "one", known[unknown], known, tuple(nonzero))


def encode(problem: Problem) -> dict[str, Any]:
    """The canonical values: equal for equal demands, however they are written."""
    values: dict[str, Any] = {
        "unknown": problem.unknown,
        "equations": sorted(sorted(side.text() for side in pair) for pair in problem.equations),
        "style": problem.style,
    }
    if problem.nonzero:
        values["nonzero"] = sorted({p.text() for p in problem.nonzero})
    return values


def decode(constraints: Constraints) -> Problem:
    """The problem behind constraints of this task.

    Raises:
        Unreadable: The values were not made by :func:`encode`.
    """
    values = constraints.values
    try:
        equations = tuple((str(a), str(b)) for a, b in values["equations"])
        nonzero = tuple(str(p) for p in values.get("nonzero", ()))
        return _decoded(str(values["unknown"]), equations, str(values["style"]), nonzero)
    except (KeyError, TypeError) as error:
        raise Unreadable(f"not constraints of a linear equation: {error}") from None


@memo(maxsize=256)
def _decoded(
    unknown: str, equations: tuple[tuple[str, str], ...], style: str, nonzero: tuple[str, ...]
) -> Problem:
    pairs = [(read_canonical(a), read_canonical(b)) for a, b in equations]
    if [t.kind for t in lex(unknown)] != ["letter"]:
        raise Unreadable(f"{unknown!r} is no unknown")
    return make_problem(unknown, pairs, style, [read_canonical(p).top for p in nonzero])


def _one(unknown: str, pair: Equation, style: str, nonzero: tuple[Poly, ...]) -> Problem:
    zero = numerator(*pair)
    if zero.degree > 1:
        raise Unreadable("the equation is not linear")
    if zero.symbols - {unknown}:
        raise Unreadable("the equation has other letters")
    slope, rest = zero.coefficient(unknown), zero.coefficient()
    forbidden = tuple(dict.fromkeys((*nonzero, *pair[0].forbidden, *pair[1].forbidden)))
    if slope:
        value = -rest / slope
        _forbidden({unknown: value}, forbidden)
        return Problem(unknown, (pair,), style, "one", value, {unknown: value}, nonzero)
    if any(p.symbols for p in forbidden):
        raise Unreadable("the equation is not linear: its denominators forbid values")
    return Problem(unknown, (pair,), style, "none" if rest else "all", None, {}, nonzero)


def _several(unknown: str, equations: Sequence[Equation]) -> dict[str, Fraction]:
    known: dict[str, Fraction] = {}
    while True:
        values = {name: constant(value) for name, value in known.items()}
        zeros = [numerator(a.put(values), b.put(values)) for a, b in equations]
        linear = [zero for zero in zeros if zero.degree <= 1]
        found = solve_linear(linear)
        if found is None:
            raise Unreadable("the equations contradict each other")
        if not found:
            if unknown in known and all(z.degree <= 1 for z in zeros):
                return known
            raise Unreadable("the equations are not linear or leave the unknown open")
        known.update(found)


def _forbidden(known: dict[str, Fraction], polys: Sequence[Poly]) -> None:
    values = {name: constant(value) for name, value in known.items()}
    for poly in polys:
        if poly.symbols <= known.keys() and poly.put(values).value == 0:
            raise Unreadable("the only candidate makes a denominator zero")
