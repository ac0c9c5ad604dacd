"""Generated questions of four shapes, each built around a known solution."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stepcache._types import Constraints, Message, Request, Status
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.tasks.linear_equation._problem import decode

TASK = LinearEquationTask()
LETTERS = "bcdghjkmnpqrstuvwyz"
small = st.integers(-9, 9)
nonzero = small.filter(bool)


def solved(text: str) -> tuple[str, Fraction | None]:
    """What is asked and its value; the worked solution must pass the check."""
    parsed = TASK.parse(Request(messages=(Message(role="user", text=text),)))
    assert isinstance(parsed, Constraints), (text, parsed)
    assert parsed.whole, text
    answer = TASK.solve(parsed)
    assert answer is not None
    assert TASK.check(TASK.segment(answer), parsed).status is Status.PASS, (text, answer)
    problem = decode(parsed)
    return problem.unknown, problem.value


def term(number: int, letter: str = "") -> str:
    """A summand with its sign: ``- 3*k``, ``+ 5``."""
    sign = "-" if number < 0 else "+"
    size = abs(number)
    return f"{sign} {size if size != 1 or not letter else ''}{'*' if size != 1 and letter else ''}{letter}"


def joined(pieces: list[str]) -> str:
    return " ".join(pieces).removeprefix("+ ").replace("- ", "-", 1 if pieces[0][0] == "-" else 0)


@st.composite
def spread(draw: st.DrawFn, slope: int, rest: int, letter: str) -> str:
    """``slope*letter + rest`` as a sum of several terms in any order."""
    a, b = draw(nonzero), draw(nonzero)
    pieces = [term(a, letter), term(b)]
    if slope - a:
        pieces.append(term(slope - a, letter))
    if rest - b:
        pieces.append(term(rest - b))
    return joined(draw(st.permutations(pieces)))


@st.composite
def arithmetic(draw: st.DrawFn, value: int) -> str:
    """A calculation with this value."""
    a, b = draw(nonzero), draw(small)
    return draw(
        st.sampled_from(
            (
                str(value),
                f"{value + a} - ({a})",
                f"({value * a})/({a})",
                f"({a})*({b}) - ({a * b - value})",
                f"-({-value - b}) + ({value - b})*0 - ({b})",
                f"{abs(a)}**2 - ({a * a - value})",
                f"-1*(-2 - ({value}) + 2)",
            )
        )
    )


@settings(max_examples=120, deadline=None)
@given(a=nonzero, b=small, c=small, x=small, letter=st.sampled_from(LETTERS), data=st.data())
def test_terms_on_both_sides(a, b, c, x, letter, data):
    """One equation with its terms strewn over both sides."""
    assume(a != c)
    left = data.draw(spread(a, b, letter))
    right = data.draw(spread(c, (a - c) * x + b, letter))
    assert solved(f"Solve {left} = {right} for {letter}.") == (letter, x)


@settings(max_examples=120, deadline=None)
@given(
    rows=st.tuples(small, small, small, small),
    values=st.tuples(small, small),
    letters=st.permutations(LETTERS),
    data=st.data(),
)
def test_two_equations_with_one_unknown_asked(rows, values, letters, data):
    """Two equations that determine two unknowns, in any order and on any side."""
    (a, b, c, d), (x, y), (u, v, *_) = rows, values, letters
    assume(a * d - b * c and any((a, b)) and any((c, d)))
    equations = []
    for m, n in ((a, b), (c, d)):
        terms = [term(k, name) for k, name in ((m, u), (n, v)) if k]
        sides = [joined(terms), str(m * x + n * y)]
        equations.append(" = ".join(data.draw(st.permutations(sides))))
    first, second = data.draw(st.permutations(equations))
    asked, value = data.draw(st.sampled_from(((u, x), (v, y))))
    assume(asked in first + second)
    assert solved(f"Solve {first}, {second} for {asked}.") == (asked, value)


@settings(max_examples=120, deadline=None)
@given(
    numbers=st.tuples(nonzero, small, small, nonzero, nonzero),
    letters=st.permutations(LETTERS),
    kind=st.sampled_from(("calculation", "equation", "function")),
    data=st.data(),
)
def test_a_constant_that_has_to_be_found_first(numbers, letters, kind, data):
    """A coefficient that is calculated, solved for, or a value of a function."""
    (k, b, x, m, n), (name, asked, other, argument, function, *_) = numbers, letters
    if kind == "calculation":
        given_ = f"Let {name} be {data.draw(arithmetic(k))}."
    elif kind == "equation":
        left = data.draw(spread(m, n, name))
        given_ = f"Suppose {left} = {m * k + n}."
    else:
        constant = k - m * n * n
        given_ = (
            f"Let {function}({argument}) = {joined([term(m, argument + '**2'), term(constant)])}. "
            f"Let {name} be {function}({n})."
        )
    question = f"Solve {name}*{asked} {term(b)} = {k * x + b} for {asked}."
    del other
    assert solved(f"{given_} {question}") == (asked, x)


@settings(max_examples=60, deadline=None)
@given(
    values=st.tuples(small, small, nonzero),
    letters=st.permutations(LETTERS),
    data=st.data(),
)
def test_two_unknowns_and_a_constant_to_find(values, letters, data):
    """A pair of equations whose constant term is defined before."""
    (x, y, k), (u, v, name, *_) = values, letters
    given_ = f"Let {name} be {data.draw(arithmetic(k))}."
    # k + 2u + v and 3u - v, so that the determinant is never zero
    first = f"2*{u} + {v} + {name} = {2 * x + y + k}"
    second = f"3*{u} - {v} = {3 * x - y}"
    assert solved(f"{given_} Solve {first}, {second} for {v}.") == (v, y)
