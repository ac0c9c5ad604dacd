"""Does the whole answer hold: every step, and a result at the end of it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from stepcache._types import Status, Step, Verdict
from stepcache.tasks.linear_equation._algebra import Quotient, fraction_text
from stepcache.tasks.linear_equation._moves import done
from stepcache.tasks.linear_equation._problem import Equation, Problem
from stepcache.tasks.linear_equation._verify import examine

__all__ = ["check_answer"]

_MAX_STATES = 24
_MAX_OPERATIONS = 8

Operation: TypeAlias = tuple[str, Quotient]


def check_answer(steps: Sequence[Step], problem: Problem) -> Verdict:
    """Pass only if nothing fails, nothing is unread and the solution is stated."""
    unknown: Verdict | None = None
    final = False
    equations = list(problem.equations) if problem.simple else []
    operations: list[Operation] = []
    for index, step in enumerate(steps):
        findings = examine(step.text, problem, opening=index == 0)
        verdict = findings.verdict
        if verdict.status is Status.FAIL:
            return verdict
        if verdict.status is Status.UNKNOWN and unknown is None:
            unknown = verdict
        final = final or findings.final
        equations += findings.equations
        operations += findings.operations
    if unknown is None and problem.simple and problem.value is not None:
        unknown = _unexplained(operations, equations)
    if unknown is not None:
        return unknown
    if not _fits_style("".join(step.text for step in steps), problem):
        return Verdict.failed("wrong-form", f"it is not in the form demanded: {problem.style}")
    if not final:
        return Verdict.unknown("no-result", f"it does not state {problem.unknown}")
    return Verdict.passed("solved", _result(problem))


def _unexplained(operations: list[Operation], equations: list[Equation]) -> Verdict | None:
    """A named operation that leads from no equation of the answer to another.

    Two operations may be named before their common result is written.
    """
    states = list({_key(pair): pair for pair in equations}.values())
    named = list({(verb, by.text()): (verb, by) for verb, by in operations}.values())
    if len(states) > _MAX_STATES or len(named) > _MAX_OPERATIONS:
        return Verdict.unknown("too-long", "it names more operations than are followed")
    texts = {_key(state) for state in states}
    once = [_after(verb, by, states) for verb, by in named]
    for at, (verb, by) in enumerate(named):
        reached = list(once[at])
        for earlier in once[:at]:
            reached += _after(verb, by, earlier)
        for other, k in named[at + 1 :]:
            reached += _after(other, k, once[at])
        if not any(_key(state) in texts for state in reached):
            return Verdict.unknown(
                "unexplained-operation", f"{verb} {by.text()} leads to no equation of the answer"
            )
    return None


def _fits_style(text: str, problem: Problem) -> bool:
    """Whether an answer has the form demanded, for the forms that can be told from outside."""
    if problem.value is None:
        return True
    if problem.style == "number":
        return not any(c.isalpha() or c == "=" for c in text.replace(r"\frac", ""))
    if problem.style == "boxed":
        return _boxes(text.rstrip().rsplit("\n", 1)[-1])
    return True


def _boxes(line: str) -> bool:
    """Whether something stands in a box that is closed again: a cut-off ``\\boxed{`` is none."""
    _, opened, rest = line.rpartition(r"\boxed")
    inside = rest.lstrip()
    if not opened or not inside.startswith("{"):
        return False
    depth = 0
    for at, sign in enumerate(inside):
        depth += (sign == "{") - (sign == "}")
        if not depth:
            return bool(inside[1:at].strip())
    return False


def _after(verb: str, by: Quotient, states: list[Equation]) -> list[Equation]:
    """What an operation makes of equations; what is moved may have had either sign."""
    verbs = ("subtract", "add") if verb == "move" else (verb,)
    return [done(each, by, state) for each in verbs for state in states]


def _key(state: Equation) -> tuple[str, ...]:
    return tuple(sorted(side.text() for side in state))


def _result(problem: Problem) -> str:
    if problem.value is None:
        return "no solution" if problem.solutions == "none" else "every number"
    return f"{problem.unknown} = {fraction_text(problem.value)}"
