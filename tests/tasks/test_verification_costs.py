"""The cost of verifying grows with length and no faster, and monstrous input is turned away."""

from __future__ import annotations

import gc
import json
import string
import time
from collections.abc import Callable
from itertools import islice, product

import pytest

from stepcache._types import Constraints, Message, Request, Status, Step
from stepcache.protocols import Task
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.tasks.linear_equation._lex import MAX_TOKENS, lex

LINEAR, JSON = LinearEquationTask(), JsonAnswerTask()
ANSWER = (
    "Subtract 7 from both sides of the equation:\n\n4x = 24\n\nDivide by 4:\n\nx = {n}/{m} = 6\n\n"
)


def request(text: str) -> Request:
    return Request(messages=(Message(role="user", text=text),))


def demand(task: Task, text: str) -> Constraints:
    parsed = task.parse(request(text))
    assert isinstance(parsed, Constraints)
    return parsed


HANGS = 10.0
"""Seconds of CPU time after which something has got stuck; how fast it is, benchmarks say."""
EQUATION = demand(LINEAR, "Solve 4x + 7 = 31 for x.")
KEYED = demand(JSON, "Describe Ann as JSON with keys name, notes")


def least(work: Callable[[], object], runs: int = 3) -> float:
    """The least CPU time of several runs: what other work on the machine adds least to."""
    times = []
    # In a long test run the collector's walks over everything else cost more than the work.
    gc.disable()
    try:
        for _ in range(runs):
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
    finally:
        gc.enable()
    return min(times)


def worked(size: int) -> str:
    """An answer of about this many characters that never repeats itself wholly."""
    pieces: list[str] = []
    length = number = 0
    while length < size:
        number += 1
        pieces.append(ANSWER.format(n=6 * number, m=number))
        length += len(pieces[-1])
    return "".join(pieces)


@pytest.mark.parametrize("whole", [True, False], ids=["check", "steps"])
def test_many_steps_cost_in_proportion(whole):
    """Twice the steps take about twice the time, and all of them are read."""
    spent = []
    for size in (50_000, 100_000):
        steps = LINEAR.segment(worked(size))
        verdicts = [LINEAR.verify(step, EQUATION) for step in steps]
        assert all(verdict.status is Status.PASS for verdict in verdicts)
        spent.append(
            least(lambda s=steps: LINEAR.check(s, EQUATION))
            if whole
            else least(lambda s=steps: [LINEAR.verify(step, EQUATION) for step in s])
        )
    assert spent[1] < 4 * spent[0]


def test_one_long_step_costs_in_proportion():
    """A step twice as long takes about twice the time, and is read to its end."""
    spent = []
    for size in (15_000, 30_000):
        step = Step(index=1, text=worked(size))
        assert LINEAR.verify(step, EQUATION).status is Status.PASS
        spent.append(least(lambda s=step: LINEAR.verify(s, EQUATION)))
    assert spent[1] < 4 * spent[0]
    late = Step(index=1, text=f"{worked(30_000)}x = 7\n")
    assert LINEAR.verify(late, EQUATION).status is Status.FAIL


def test_a_step_beyond_the_bound_is_unknown():
    """What is too long to be read at once is not judged, whatever it says."""
    for text in ("x = 6, " * MAX_TOKENS, "x = 6\n" * MAX_TOKENS, "so " * 40_000 + "x = 6"):
        verdict = LINEAR.verify(Step(index=1, text=text), EQUATION)
        assert (verdict.status, verdict.code) == (Status.UNKNOWN, "too-long")
    assert len(lex("1, " * 10 * MAX_TOKENS)) <= MAX_TOKENS + 2


def test_a_long_object_costs_in_proportion():
    """Twice the object takes about twice the time."""
    spent = []
    for size in (2_000, 4_000):
        text = json.dumps(
            {"name": "Ann", "notes": [f"note {n} of some length" for n in range(size)]}
        )
        steps = JSON.segment(text)
        assert JSON.check(steps, KEYED).status is Status.PASS
        spent.append(least(lambda t=text: JSON.check(JSON.segment(t), KEYED)))
    assert spent[1] < 4 * spent[0]


NAMES = ("".join(letters) for letters in product(string.ascii_lowercase, repeat=4))
MONSTERS = {
    "parentheses": "(" * 50_000 + "x" + ")" * 50_000 + " = 1",
    "open parentheses": "(" * 100_000,
    "digits": "1" * 1_000_000,
    "keys": "{" + ",".join(f'"{name}":1' for name in islice(NAMES, 100_000)) + "}",
    "broken keys": '{"a":1,' * 40_000,
    "equals signs": "=" * 100_000,
    "equations": "x=" * 50_000,
    "numbers": "1, " * 33_000,
    "powers": "x^" * 50_000,
    "brackets": "[" * 100_000,
    "quotes": '"' * 100_000,
    "backslashes": '{"a":"' + "\\" * 99_998 + '"}',
    "fences": "```json\n" * 12_000,
    "dollars": "$x " * 33_000,
    "fractions": "\\frac{" * 16_000,
    "signs of Chinese": "两边除以" * 25_000,
    "lines": "\n" * 100_000,
    "demands": "return json with keys a, " * 4_000,
    "JSON prompt": "Return JSON with keys a, b for: " + "text of some kind. " * 5_200,
    "closing sentences": "Return only JSON. " * 5_000,
    "foreign keys": "als JSON mit den Schlüsseln a, " * 3_000,
    "to extract": "extract a, b, " * 7_000 + "as JSON from: c",
}


@pytest.mark.parametrize("name", MONSTERS)
def test_monstrous_input_is_turned_away(name):
    """Nothing of it is read for long or taken for a right answer; see benchmarks for the times."""
    text = MONSTERS[name]
    for task, constraints in ((LINEAR, EQUATION), (JSON, KEYED)):
        steps = task.segment(text)
        assert "".join(step.text for step in steps) == text
        for work in (
            lambda t=task: t.parse(request(text)),
            lambda t=task, c=constraints: t.verify(Step(index=0, text=text), c),
            lambda t=task, c=constraints, s=steps: t.check(s, c),
            lambda t=task, c=constraints, s=steps: t.adapt(s, c, c),
            lambda t=task, c=constraints: t.mend(text, c),
        ):
            assert least(work, 1) < HANGS
        assert task.check(steps, constraints).status is not Status.PASS
