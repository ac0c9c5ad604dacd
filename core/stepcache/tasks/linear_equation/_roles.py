"""The roles that numbers play in solving ``a*x + b = c*x + d``, with their values in requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from stepcache.tasks.linear_equation._algebra import Quotient, constant, symbol
from stepcache.tasks.linear_equation._problem import Problem, make_problem

__all__ = ["Change", "Roles", "changes_between"]

Roles: TypeAlias = Mapping[str, Fraction]
"""Values by role: ``a b c d`` of the equation, ``p = a - c``, ``q = d - b``, ``s = q / p``, and
``m = a*s``, ``n = c*s`` of a check."""


@dataclass(frozen=True, slots=True)
class Change:
    """The old request, the new one, and two that keep a choice of roles honest."""

    old: Roles
    new: Roles
    letters: tuple[str, str]
    problem: Problem
    others: tuple[tuple[Roles, Problem], ...]


def changes_between(old: Problem, new: Problem) -> Iterator[Change]:
    """The ways to lay the sides of the new request on those of the old."""
    if not (old.simple and new.simple) or old.value is None or new.value is None:
        return
    before = _roles(old, turned=False)
    for turned in (False, True):
        after = _roles(new, turned=turned)
        if any(bool(before[r]) != bool(after[r]) for r in "abc"):
            continue
        if any(abs(before[r]) != 1 and abs(after[r]) == 1 for r in "acp" if after[r]):
            continue  # "1x" is not how anybody writes
        if any(abs(before[r]) == 1 and abs(after[r]) != 1 for r in "acp" if after[r]):
            continue
        others = tuple(_other(after, n, new.unknown) for n in range(2))
        yield Change(before, after, (old.unknown, new.unknown), new, others)


def _roles(problem: Problem, *, turned: bool) -> Roles:
    a, b, c, d = problem.parts()
    if turned != (not a):  # the side with the unknown comes first
        a, b, c, d = c, d, a, b
    return _derived(a, b, c, d)


def _derived(a: Fraction, b: Fraction, c: Fraction, d: Fraction) -> Roles:
    p, q = a - c, d - b
    roles = {"a": a, "b": b, "c": c, "d": d, "p": p, "q": q, "s": q / p if p else Fraction(0)}
    roles["m"] = a * roles["s"]  # what the unknown's term comes to, in a check
    roles["n"] = c * roles["s"]
    return roles


def _other(like: Roles, number: int, unknown: str) -> tuple[Roles, Problem]:
    """A request of the same form and signs, with numbers that do not coincide."""
    a, b, c, s = ((43, 1009, 7, 131), (89, 2003, 17, 313))[number]
    signed = {
        name: Fraction(value) * (-1 if like[name] < 0 else 1 if like[name] else 0)
        for name, value in zip("abcs", (a, b, c, s))
    }
    if abs(like["a"]) == 1:
        signed["a"] = like["a"]
    if abs(like["c"]) == 1:
        signed["c"] = like["c"]
    if abs(like["p"]) == 1 and like["c"]:
        signed["c"] = signed["a"] - like["p"]
    solution = signed["s"] or Fraction(s)
    rest = signed["a"] * solution + signed["b"] - signed["c"] * solution
    roles = _derived(signed["a"], signed["b"], signed["c"], rest)
    return roles, _problem(roles, unknown)


def _problem(roles: Roles, unknown: str) -> Problem:
    def side(slope: Fraction, rest: Fraction) -> Quotient:
        return constant(slope) * symbol(unknown) + constant(rest)

    return make_problem(unknown, [(side(roles["a"], roles["b"]), side(roles["c"], roles["d"]))])
