"""The judge, judged by hand-made answers, good and bad."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stepcache.bench._items import EquationDemand, ObjectDemand
from stepcache.bench._judge import judge, solutions
from stepcache.bench._working import wrong_line

pytest.importorskip("fastjsonschema")

TWO_X = EquationDemand(variable="x", left="2*x + (3)", right="13")
MINUS = EquationDemand(variable="n", left="-4*n + (2)", right="10", relation=">")
ABOVE = EquationDemand(variable="x", left="2*x + (3)", right="13", relation=">=")
NUMBER = EquationDemand(variable="x", left="2*x + (3)", right="13", form="number")
BOXED = EquationDemand(variable="x", left="2*x + (3)", right="13", form="boxed")
OBJECT = EquationDemand(variable="x", left="2*x + (3)", right="13", form="object")
CITY = ObjectDemand(required=("name", "country"), topic_key="name", topic="Lima")
FEWER = ObjectDemand(required=("name",), forbidden=("country",), topic_key="name", topic="Lima")
ELEMENT = ObjectDemand(required=("name", "symbol"), topic_key="name", topic="helium")
SOURCE = ObjectDemand(required=("name", "age"), values={"name": "Bob", "age": 25})
TYPED = ObjectDemand(
    required=("size",),
    schema={
        "type": "object",
        "properties": {"size": {"enum": ["small", "large"]}, "eggs": {"type": "integer"}},
        "required": ["size"],
        "additionalProperties": False,
    },
)


def test_solutions_are_sympys() -> None:
    """A root is exact, and a negative factor turns an inequality round."""
    assert solutions(TWO_X) == ("=", Fraction(5))
    assert solutions(ABOVE) == (">=", Fraction(5))
    assert solutions(MINUS) == ("<", Fraction(-2))
    third = EquationDemand(variable="y", left="3*y + (1)", right="2")
    assert solutions(third) == ("=", Fraction(1, 3))


@pytest.mark.parametrize(
    ("answer", "demand", "right"),
    [
        ("2x + 3 = 13\n2x = 10\nx = 5", TWO_X, True),
        ("x = 10/2 = 5", TWO_X, True),
        ("x = 5.0", TWO_X, True),
        ("x = 6", TWO_X, False),
        ("y = 5", TWO_X, False),
        ("", TWO_X, False),
        ("x >= 5", ABOVE, True),
        ("2x >= 10\n$x \\geq 5$", ABOVE, True),
        ("5 <= x", ABOVE, True),
        ("x \u2265 5", ABOVE, True),
        ("x > 5", ABOVE, False),
        ("x = 5", ABOVE, False),
        ("2x >= 5", ABOVE, False),
        ("-4n > 8\nn < -2", MINUS, True),
        ("n > -2", MINUS, False),
        ("5", NUMBER, True),
        ("5.0", NUMBER, True),
        ("x = 5", NUMBER, False),
        ("\\boxed{5}", BOXED, True),
        ("So \\boxed{x = 5}.", BOXED, True),
        ("x = 5", BOXED, False),
        ('{"x": 5}', OBJECT, True),
        ('{"x": "5"}', OBJECT, True),
        ('{"x": 6}', OBJECT, False),
        ('{"y": 5}', OBJECT, False),
        ("x = 5", OBJECT, False),
    ],
)
def test_equations(answer: str, demand: EquationDemand, right: bool) -> None:
    """The last statement about the unknown decides, in the form that was demanded."""
    assert judge(answer, demand).correct is right


@pytest.mark.parametrize(
    ("answer", "demand", "right"),
    [
        ('{"name": "Lima", "country": "Peru"}', CITY, True),
        ('```json\n{"name": "City of Lima", "country": "Peru"}\n```', CITY, True),
        ('{"name": "Lima", "country": "Peru", "river": "Rimac"}', CITY, True),
        ('{"name": "Oslo", "country": "Norway"}', CITY, False),
        ('{"name": "The city", "country": "Peru"}', CITY, True),
        ('{"name": "He", "symbol": "He"}', ELEMENT, True),
        ('{"name": "Fe", "symbol": "Fe"}', ELEMENT, False),
        ('{"name": "Lima"}', CITY, False),
        ('{"name": "Lima", "country": "Peru"', CITY, False),
        ("Lima is in Peru.", CITY, False),
        ('["Lima", "Peru"]', CITY, False),
        ('{"name": "Lima"}', FEWER, True),
        ('{"name": "Lima", "country": "Peru"}', FEWER, False),
        ('{"name": "Bob", "age": 25}', SOURCE, True),
        ('{"name": "Bob", "age": "25 years"}', SOURCE, True),
        ('{"name": "Ann", "age": 25}', SOURCE, False),
        ('{"name": "Bob", "age": 250}', SOURCE, False),
        ('{"name": "Bob", "age": true}', SOURCE, False),
        ('{"size": "small"}', TYPED, True),
        ('{"size": "small", "eggs": 2}', TYPED, True),
        ('{"size": "tiny"}', TYPED, False),
        ('{"size": "small", "eggs": "two"}', TYPED, False),
        ('{"size": "small", "color": "red"}', TYPED, False),
    ],
)
def test_objects(answer: str, demand: ObjectDemand, right: bool) -> None:
    """Keys, schema, subject and stated values decide; prose and fences around do not."""
    assert judge(answer, demand).correct is right


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("upper", '{"name": "LIMA", "size": 3}', '{"name": "Lima", "size": 3}'),
        ("strings", '{"name": "Lima", "size": "3"}', '{"name": "Lima", "size": 3}'),
        (
            "short",
            '{"name": "Lima", "size": "one two three"}',
            '{"name": "Lima", "size": "a b c d"}',
        ),
    ],
)
def test_demands_on_values(rule: str, good: str, bad: str) -> None:
    """A demand on all values is checked on all values."""
    demand = ObjectDemand(required=("name", "size"), topic_key="name", topic="lima", rule=rule)
    assert judge(good, demand).correct
    assert not judge(bad, demand).correct


def test_a_verdict_says_why() -> None:
    """A wrong answer comes with a reason that names what was found."""
    assert "Oslo" in judge('{"name": "Oslo", "country": "x"}', CITY).why
    assert "6" in judge("x = 6", TWO_X).why
    assert judge("x = 1" + " " * 30_000, TWO_X).why.startswith("longer")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("2x + 3 = 13\n2x = 10\nx = 10 / 2 = 5", None),
        ("2x = 13 - 3\n2x = 10", None),
        ("\\(2x + 3 = 13\\)\n\\[x = \\frac{10}{2}\\]", None),
        ("13 - 3 = 10", None),
        ("1. 2(x - 1) = 8", None),
        ("2x + 3 = 17\nx = 5", "2x + 3 = 17"),
        ("2x = 13 + 3\nx = 5", "2x = 13 + 3"),
        ("13 - 3 = 11", "13 - 3 = 11"),
        ("x = 10 / 3 = 5", "x = 10 / 3 = 5"),
        ("- $2x = 11$", "- $2x = 11$"),
        ("2y = 11", None),
        ("x^2 = 11", None),
        ("x / x = 2", None),
        ("x / 0 = 2", None),
        ("x * x = 2", None),
        ("the value = 11", None),
        ("(" * 40 + "x = 7", None),
        ("=", None),
    ],
)
def test_stale_lines(answer: str, line: str | None) -> None:
    """A line that the solution does not satisfy is found; what is not understood says nothing."""
    assert wrong_line(answer, "x", Fraction(5)) == line


def test_a_stale_line_is_no_wrong_answer_by_itself() -> None:
    """The judge tells the two apart: the value is right, the working is not."""
    told = judge("2x + 3 = 17\nx = 5", TWO_X)
    assert told.correct
    assert told.stale == "2x + 3 = 17"
