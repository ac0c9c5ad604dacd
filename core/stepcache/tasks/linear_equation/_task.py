"""The family as a :class:`stepcache.protocols.Task`."""

from __future__ import annotations

from collections.abc import Sequence

from stepcache._plan import to_the_end
from stepcache._stitch import segment
from stepcache._types import (
    Block,
    Constraints,
    Declined,
    Difference,
    ModelCall,
    Request,
    Step,
    Verdict,
)
from stepcache.tasks.linear_equation._adapt import adapted
from stepcache.tasks.linear_equation._algebra import Unreadable
from stepcache.tasks.linear_equation._check import check_answer
from stepcache.tasks.linear_equation._differences import changes
from stepcache.tasks.linear_equation._patch import continuation, joined
from stepcache.tasks.linear_equation._problem import decode
from stepcache.tasks.linear_equation._request import read_request
from stepcache.tasks.linear_equation._solve import worked_solution
from stepcache.tasks.linear_equation._verify import examine

__all__ = ["LinearEquationTask"]


class LinearEquationTask:
    """Answers that solve one linear equation, or several that determine one asked unknown.

    Everything is exact rational arithmetic. A request is taken only if it is read without a guess;
    an answer is taken only if every equation, number and operation in it holds for that request.

    Example:
        >>> task = LinearEquationTask()
        >>> request = Request(messages=(Message(role="user", text="Solve 2x + 3 = 13 for x."),))
        >>> task.solve(task.parse(request)).splitlines()[-1]
        'x = 5'
    """

    name = "linear-equation"
    version = "1"
    retrieves = True

    neutral: frozenset[str] = frozenset()
    """Empty: words are neutral in whole requests only, and ``parse`` takes them out."""

    def parse(self, request: Request, /) -> Constraints | Declined:
        """Read the equations and the asked unknown, or say why the text is not ours."""
        if request.contract.schema is not None:
            return Declined(reason="an answer of a given schema is demanded")
        return read_request(request.text, self.name, self.version)

    def segment(self, text: str, /) -> tuple[Step, ...]:
        """Cut an answer into steps whose texts join to it exactly."""
        return segment(text)

    def differences(self, old: Constraints, new: Constraints, /) -> tuple[Difference, ...]:
        """Changed constants, unknowns, forms and styles."""
        return changes(decode(old), decode(new), self.name)

    def verify(self, step: Step, constraints: Constraints, /) -> Verdict:
        """Hold every equation, stated value and operation of a step against the request."""
        try:
            return examine(step.text, decode(constraints), opening=step.index == 0).verdict
        except Unreadable as error:
            return Verdict.unknown("unreadable", str(error))

    def check(self, steps: Sequence[Step], constraints: Constraints, /) -> Verdict:
        """Every step holds and the solution is stated."""
        try:
            return check_answer(steps, decode(constraints))
        except Unreadable as error:
            return Verdict.unknown("unreadable", str(error))

    def adapt(
        self, steps: Sequence[Step], old: Constraints, new: Constraints, /
    ) -> tuple[Step, ...] | None:
        """The same derivation with the new request's numbers, or None when it is not understood."""
        try:
            return adapted(steps, decode(old), decode(new))
        except Unreadable:
            return None

    def block(self, verdicts: Sequence[Verdict], /) -> Block | None:
        """From the first step that does not hold to the end: each step rests on those before it."""
        return to_the_end(verdicts)

    def patch(
        self,
        request: Request,
        steps: Sequence[Step],
        block: Block,
        verdicts: Sequence[Verdict],
        constraints: Constraints,
        /,
    ) -> ModelCall | None:
        """Ask to go on from the verified beginning; None when there is none."""
        return continuation(request, steps, block, decode(constraints).unknown)

    def splice(
        self,
        reply: str,
        steps: Sequence[Step],
        block: Block,
        verdicts: Sequence[Verdict],
        constraints: Constraints,
        /,
    ) -> str | None:
        """The verified beginning with the reply behind it."""
        return joined(reply, steps, block)

    def mend(self, text: str, constraints: Constraints, /) -> str | None:
        """None: an answer that does not hold is not repaired by its words."""
        return None

    def solve(self, constraints: Constraints, /) -> str | None:
        """The worked solution."""
        try:
            return worked_solution(decode(constraints))
        except Unreadable:
            return None
