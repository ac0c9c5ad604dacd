"""Does the whole answer hold: every step, and a result at the end of it?"""

from __future__ import annotations

from collections.abc import Sequence

from stepcache._types import Status, Step, Verdict
from stepcache.tasks.linear_equation._algebra import fraction_text
from stepcache.tasks.linear_equation._problem import Problem
from stepcache.tasks.linear_equation._verify import examine

__all__ = ["check_answer"]


def check_answer(steps: Sequence[Step], problem: Problem) -> Verdict:
    """Pass only if nothing fails, nothing is unread and the solution is stated."""
    unknown: Verdict | None = None
    final = False
    for index, step in enumerate(steps):
        findings = examine(step.text, problem, opening=index == 0)
        verdict = findings.verdict
        if verdict.status is Status.FAIL:
            return verdict
        if verdict.status is Status.UNKNOWN and unknown is None:
            unknown = verdict
        final = final or findings.final
    if unknown is not None:
        return unknown
    if not final:
        return Verdict.unknown("no-result", f"it does not state {problem.unknown}")
    return Verdict.passed("solved", _result(problem))


def _result(problem: Problem) -> str:
    if problem.value is None:
        return "no solution" if problem.solutions == "none" else "every number"
    return f"{problem.unknown} = {fraction_text(problem.value)}"
