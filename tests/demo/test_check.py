"""The independent judge is judged by hand-made answers, good and bad."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stepcache.demo._check import is_correct, solution, stated_value
from stepcache.demo._script import SCRIPT, EquationDemand, KeysDemand, TextDemand

TWO_X = EquationDemand(variable="x", left="2*x + 3", right="13")
KEYS = KeysDemand(keys=("name", "country"))


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("2x = 10\nx = 5", 5),
        ("x = 4? No.\nx = 5", 5),
        ("So the solution is \\(\\boxed{5}\\).", 5),
        ("Therefore \\(\\boxed{x = 5}\\).", 5),
        ("\\[\nx = \\frac{5}{2}\n\\]", Fraction(5, 2)),
        ("**x = -3.5**", Fraction(-7, 2)),
        ("x = \u22124.", -4),
        ("x is 5.", 5),
        ("$x = 5$", 5),
        ("x = 10/2 = 5", 5),
        ("\\(x = \\frac{10}{2} = 5\\)", 5),
        ("2x = 10", None),
        ("2 x = 10", None),
        ("3 + x = 10", None),
        ("x = 10 / 2", None),
        ("x = 2y", None),
        ("y = 5", None),
        ("max = 5", None),
        ("", None),
    ],
)
def test_reads_the_last_stated_value(answer: str, value: Fraction | int | None) -> None:
    """The value is what the answer last says of the bare variable, and nothing near it."""
    assert stated_value(answer, "x") == value


def test_equations_are_judged_by_sympy() -> None:
    """The right value passes; another, or none, does not."""
    assert is_correct("2x = 10, so x = 5.", TWO_X)
    assert not is_correct("x = 5, or rather x = 6.", TWO_X)
    assert not is_correct("I cannot solve it.", TWO_X)
    assert not is_correct("y = 5", TWO_X)


def test_fractions_are_exact() -> None:
    """A rounded value is not the solution."""
    third = EquationDemand(variable="x", left="3*x", right="1")
    assert solution(third) == Fraction(1, 3)
    assert is_correct("x = 1/3", third)
    assert not is_correct("x = 0.333", third)


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        ('{"name": "Rome", "country": "Italy"}', True),
        ('Here it is:\n```json\n{"country": "Italy", "name": "Rome"}\n```\nDone.', True),
        ('{"name": "Rome"}', False),
        ('{"name": "Rome", "country": "Italy", "mayor": "?"}', False),
        ('{"name": "Rome", "country": 1,000}', False),
        ('["name", "country"]', False),
        ("{" * 5000, False),
        ("", False),
    ],
)
def test_json_needs_exactly_the_keys(answer: str, good: bool) -> None:
    """One object with the demanded keys, no fewer and no more."""
    assert is_correct(answer, KEYS) is good


def test_text_must_not_be_empty() -> None:
    """White space is no answer."""
    assert is_correct("The sea is wide.", TextDemand())
    assert not is_correct(" \n", TextDemand())


def test_a_huge_answer_is_refused() -> None:
    """The judge's readers are bounded."""
    assert not is_correct("x = 5 " * 10_000, TWO_X)


def test_every_equation_of_the_script_has_one_solution() -> None:
    """The script's own demands can be met: each has exactly one solution, read back as stated."""
    demands = [item.demand for item in SCRIPT if isinstance(item.demand, EquationDemand)]
    for demand in demands:
        assert is_correct(f"{demand.variable} = {solution(demand)}", demand)
