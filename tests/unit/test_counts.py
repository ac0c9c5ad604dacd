"""Counts are said as people say them: one step, two steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stepcache import Message, Reply, Request, StepCacheEngine
from stepcache._counts import count

ROOT = Path(__file__).parents[2]
PLURAL = re.compile(
    r" (?:(?!fewer|more)[a-z]+ )?(bytes|calls|candidates|characters|cores|differences|entries|exchanges|hits|"
    r"lines|look-ups|misses|pairs|records|requests|scopes|statements|steps|texts|tokens|users|"
    r"vectors|violations)\b"
)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (count(0, "step"), "0 steps"),
        (count(1, "step"), "1 step"),
        (count(2, "step"), "2 steps"),
        (count(1, "entry", "entries"), "1 entry"),
        (count(12_345, "entry", "entries"), "12,345 entries"),
    ],
)
def test_a_count_agrees_with_its_noun(told: str, said: str) -> None:
    """One is singular; none and many are plural, with commas between thousands."""
    assert told == said


def test_a_decision_about_one_step_is_said_in_the_singular() -> None:
    """An answer in one line: a statement holds, a step is re-derived."""
    with closing(StepCacheEngine()) as engine:

        def ask(text: str) -> Request:
            return Request(messages=(Message(role="user", text=text),))

        engine.admit(ask("Solve 2x = 6 for x."), Reply(text="x = 3"))
        adapted = engine.lookup(ask("Solve 2x = 8 for x."))
    assert (adapted.route, adapted.reason) == ("adapt", "1 step re-derived and verified")
    assert [verdict.reason for verdict in adapted.verdicts] == ["1 statement holds"]


def _counted_by_hand(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Places where a number that may be one stands before a noun in the plural."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:]):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            found = PLURAL.match(str(text.value))
            told = ast.unparse(value.value)
            # A constant is known to its author, a limit is never one, a rate is a decimal.
            if found and not re.search(r"\b_?[A-Z][A-Z_]+$|max_|\brate\b", told):
                yield node.lineno, f"{{{told}}}{found[0]}"


def test_no_count_is_written_by_hand() -> None:
    """Whoever tells a number of things says it by ``count``."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for package in ("core/stepcache", "langchain_stepcache", "llamaindex_stepcache")
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, what in _counted_by_hand(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found
