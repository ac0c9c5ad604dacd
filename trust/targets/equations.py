"""The linear-equation family: reading requests, and judging answers."""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random
from typing import TypeAlias

from stepcache._types import Constraints, Message, Request, Status, Step
from stepcache.bench._working import wrong_line
from stepcache.demo._check import stated_value
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.tasks.linear_equation._problem import decode
from trust._fuzz import Target
from trust._mutate import mutated
from trust.targets._equation_texts import WORDS, holds, prompt_and_value
from trust.targets._spans import bad_spans

__all__ = ["ANSWERS", "REQUESTS"]

_TASK = LinearEquationTask()
_LONGEST = 4_000
_Asked: TypeAlias = tuple[str, str, Fraction | None]
"""A prompt, its unknown, and the solution where the prompt is as the grammar made it."""


def _request(dice: Random) -> _Asked:
    text, unknown, value = prompt_and_value(dice)
    if dice.random() < 0.25:
        return text, unknown, value
    other, _, _ = prompt_and_value(dice)
    return mutated(text, dice, WORDS, other, _LONGEST), unknown, None


def _read(asked: _Asked) -> str | None:
    text, unknown, value = asked
    parsed = _TASK.parse(Request(messages=(Message(role="user", text=text),)))
    if not isinstance(parsed, Constraints):
        return None
    wrong = bad_spans(text, parsed.spans)
    if wrong is not None:
        return wrong
    problem = decode(parsed)
    if value is not None and (problem.unknown, problem.value) != (unknown, value):
        return f"read as {problem.unknown} = {problem.value}, not {unknown} = {value}"
    if problem.value is not None and holds(text, problem.unknown, problem.value) is False:
        return f"{problem.unknown} = {problem.value} does not solve it"
    if len(text) % 4:  # the costly part, of a quarter of them
        return None
    answer = _TASK.solve(parsed)
    if answer is None or problem.value is None:
        return None
    if _TASK.check(_TASK.segment(answer), parsed).status is not Status.PASS:
        return f"its own answer {answer!r} does not pass"
    stated = stated_value(answer, problem.unknown)
    if stated is not None and stated != problem.value:
        return f"its own answer states {stated}"
    return None


def _bytes(data: bytes) -> _Asked:
    return data.decode("utf-8", "replace")[:_LONGEST], "x", None


REQUESTS = Target(
    name="equation-requests",
    what="prompts read as linear equations; solved by a reader of its own",
    inputs=70_000,
    make=_request,
    check=_read,
    read=_bytes,
)

# --- answers -----------------------------------------------------------------------------------

_PROBLEMS: tuple[tuple[str, str, Fraction], ...] = (
    ("Solve 2x + 3 = 13 for x.", "x", Fraction(5)),
    ("Solve 3(y - 4) = 7 for y.", "y", Fraction(19, 3)),
    ("Find n if n/4 - 2 = -5.", "n", Fraction(-12)),
    ("Solve 5a - 2 = 2a + 10 for a.", "a", Fraction(4)),
)
_ANSWERS: tuple[tuple[str, ...], ...] = (
    (
        "2x + 3 = 13\n\n2x = 10\n\nx = 5",
        "Subtract 3 from both sides:\n2x = 13 - 3 = 10\nDivide by 2:\nx = 5",
        "1. **Subtract 3**: $2x = 10$\n2. **Divide by 2**: $x = \\frac{10}{2} = 5$\n\n\\boxed{5}",
    ),
    (
        "3(y - 4) = 7\n\n3y - 12 = 7\n\n3y = 19\n\ny = 19/3",
        "y - 4 = 7/3, so y = 7/3 + 4 = 19/3",
    ),
    ("n/4 - 2 = -5\n\nn/4 = -3\n\nn = -12", "Add 2: n/4 = -3. Multiply by 4: n = -12."),
    ("5a - 2 = 2a + 10\n\n3a - 2 = 10\n\n3a = 12\n\na = 4", "The solution is a = 4."),
)
_ANSWER_WORDS: tuple[str, ...] = (
    *(
        "x",
        "y",
        "n",
        "a",
        "=",
        "≠",
        "+",
        "-",
        "*",
        "/",
        "(",
        ")",
        "2x",
        "10",
        "5",
        "x = 6",
        "x = 4",
    ),
    *(
        "\\boxed{5}",
        "\\frac{10}{2}",
        "$",
        "Subtract",
        "Add",
        "Divide by",
        "both sides",
        "so",
        "not",
    ),
    *(
        "therefore",
        "Check:",
        "approximately",
        "≈",
        "or",
        "1. ",
        "- ",
        "**",
        "\n",
        "\n\n",
        ". ",
        ", ",
    ),
    *("wrong", "y = 2", "= 7", "thus x is", "negative", "twice", "the answer is", "5.0", "10/2"),
)


def _parsed(text: str) -> Constraints:
    parsed = _TASK.parse(Request(messages=(Message(role="user", text=text),)))
    if not isinstance(parsed, Constraints):
        raise TypeError(f"{text!r} is not read: {parsed}")
    return parsed


def _answer(dice: Random) -> tuple[int, str]:
    number = dice.randrange(len(_PROBLEMS))
    text = dice.choice(_ANSWERS[number])
    other = dice.choice(_ANSWERS[dice.randrange(len(_ANSWERS))])
    return number, mutated(text, dice, _ANSWER_WORDS, other, _LONGEST)


def _judged(answered: tuple[int, str]) -> str | None:
    number, text = answered
    asked, unknown, value = _PROBLEMS[number]
    constraints = _parsed(asked)
    steps: tuple[Step, ...] = _TASK.segment(text)
    if "".join(step.text for step in steps) != text:
        return "the steps do not join to the answer"
    verdicts = [_TASK.verify(step, constraints) for step in steps]
    whole = _TASK.check(steps, constraints)
    if whole.status is not Status.PASS or any(v.status is not Status.PASS for v in verdicts):
        return None
    # The judge wants a formula to a line, and spaces in moderation.
    text = re.sub(r"[^\S\n]+", " ", text.replace("$", "\n"))
    stated = stated_value(text, unknown)
    if stated is not None and stated != value:
        return f"passed, though it states {unknown} = {stated}"
    line = wrong_line(text, unknown, value)
    return f"passed, though this line is wrong: {line!r}" if line else None


ANSWERS = Target(
    name="equation-answers",
    what="answers to equations, verified step by step; read again by the benchmark's judge",
    inputs=40_000,
    make=_answer,
    check=_judged,
    read=lambda data: (data[0] % 4 if data else 0, data[1:].decode("utf-8", "replace")[:_LONGEST]),
)
