"""Linear equations that other people wrote: what is read is right, what is not ours is declined."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stepcache._types import Constraints, Declined, Message, Request
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.tasks.linear_equation._problem import decode

TASK = LinearEquationTask()
OURS = (
    *("one_equation", "two_unknowns_one_asked", "composed", "composed_two_unknowns"),
    "no_or_all_solutions",
)
ALMOST = ("substitution", "rational_form_linear")
NOT_OURS = ("word_problem", "not_linear", "literal_equation")


def ask(text: str) -> Constraints | Declined:
    return TASK.parse(Request(messages=(Message(role="user", text=text),)))


def outcome(record: dict[str, Any]) -> str:
    """``right``, ``wrong`` or ``declined``."""
    parsed = ask(record["prompt"])
    if isinstance(parsed, Declined):
        assert parsed.reason
        return "declined"
    problem = decode(parsed)
    got = str(problem.value) if problem.solutions == "one" else problem.solutions
    named = problem.unknown.strip("\\").casefold() == record["variable"].strip("\\").casefold()
    return "right" if got == record["solution"] and named else "wrong"


@pytest.fixture(scope="module")
def tally(external) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for record in external("linear.jsonl"):
        found.setdefault(record["kind"], Counter())[outcome(record)] += 1
    for kind, counts in sorted(found.items()):
        print(f"{kind}: n={counts.total()} {dict(counts)}")
    return found


def test_equations_are_read_and_solved(tally):
    """Of what is one linear question, at least 98 % is solved and nothing is solved wrongly."""
    total = sum((tally[kind] for kind in OURS), Counter())
    assert total.total() == 308
    assert total["wrong"] == 0
    assert total["right"] >= 0.98 * total.total()


def test_substitutions_and_rational_forms_are_never_wrong(tally):
    """Forms that reduce to one linear equation are solved or declined, never wrong."""
    total = sum((tally[kind] for kind in ALMOST), Counter())
    assert total.total() == 37
    assert total["wrong"] == 0
    assert total["right"] >= 30


@pytest.mark.parametrize("kind", NOT_OURS)
def test_what_is_not_linear_is_declined(tally, kind):
    """Word problems, other degrees and equations with parameters are declined with a reason."""
    assert set(tally[kind]) == {"declined"}


def test_the_worked_solution_of_every_record_passes_its_own_check(external):
    """What the task answers by itself holds under its own verifier."""
    checked = 0
    for record in external("linear.jsonl"):
        parsed = ask(record["prompt"])
        if isinstance(parsed, Declined):
            continue
        answer = TASK.solve(parsed)
        assert answer is not None
        verdict = TASK.check(TASK.segment(answer), parsed)
        assert verdict.status.value == "pass", (record["id"], answer, verdict)
        checked += 1
    assert checked >= 300
