"""What was proven once is not proven again, and nothing else is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stepcache import (
    Constraints,
    Message,
    Policy,
    Request,
    Step,
    StepCacheEngine,
    Verdict,
)
from stepcache._proofs import Proofs
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.testing import ScriptedBackend

RIGHT = "2x + 3 = 13\n\n2x = 10\n\nx = 5"
WORDINGS = [f"Solve 2x + 3 = 13{' ' * gap} for x." for gap in range(6)]


class Counting(LinearEquationTask):
    """Counts what it is asked to prove."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.wholes = 0

    def verify(self, step: Step, constraints: Constraints, /) -> Verdict:
        self.steps += 1
        return super().verify(step, constraints)

    def check(self, steps: Sequence[Step], constraints: Constraints, /) -> Verdict:
        self.wholes += 1
        return super().check(steps, constraints)


def ask(text: str) -> Request:
    return Request(messages=(Message(role="user", text=text),))


def engine_of(task: LinearEquationTask, **options: Any) -> StepCacheEngine:
    return StepCacheEngine(
        tasks=[task], backend=ScriptedBackend([RIGHT] * 9), policy=Policy(), **options
    )


def test_the_same_steps_under_the_same_demands_are_proven_once() -> None:
    """Re-worded requests are served with the verdicts of the first proof, and the same trace."""
    task = Counting()
    with_memory = engine_of(task)
    outcomes = [with_memory.resolve(ask(text)) for text in WORDINGS]
    assert [o.route for o in outcomes[1:]] == ["reuse"] * (len(WORDINGS) - 1)
    proven, checked = task.steps, task.wholes
    more = with_memory.resolve(ask("Please solve 2x + 3 = 13 for x."))
    assert more.route == "reuse"
    assert (task.steps, task.wholes) == (proven, checked)
    assert more.verdicts == outcomes[1].verdicts
    assert [e.name for e in more.trace.events] == [e.name for e in outcomes[1].trace.events]


def test_other_demands_are_proven_anew() -> None:
    """Steps that held for one equation are looked at again for another."""
    task = Counting()
    engine = engine_of(task)
    engine.resolve(ask("Solve 2x + 3 = 13 for x."))
    before = task.steps
    outcome = engine.resolve(ask("Solve 2x + 3 = 15 for x."))
    assert task.steps > before
    assert outcome.text.endswith("x = 6")


def test_further_verifiers_are_asked_every_time() -> None:
    """A verifier beside the task may change its mind, so nothing is remembered for it."""
    seen: list[str] = []
    allowed = [True]

    def verifier(step: Step, constraints: Constraints) -> Verdict | None:
        seen.append(step.text)
        return None if allowed[0] else Verdict.failed("forbidden", "not any more")

    engine = engine_of(Counting(), verifiers=[verifier])
    engine.resolve(ask(WORDINGS[0]))
    assert engine.resolve(ask(WORDINGS[1])).route == "reuse"
    count = len(seen)
    assert engine.resolve(ask(WORDINGS[2])).route == "reuse"
    assert len(seen) > count
    allowed[0] = False
    assert engine.resolve(ask(WORDINGS[3])).route != "reuse"


@pytest.mark.parametrize("status", ["failed", "unknown"])
def test_only_proofs_are_kept(status: str) -> None:
    """A step that failed or could not be judged is looked at again."""
    proofs, steps = Proofs(), (Step(index=0, text="x = 5"),)
    verdict = getattr(Verdict, status)("a-code", "a reason")
    proofs.keep_steps("demands", steps, (verdict,))
    proofs.keep_whole("demands", steps, verdict)
    assert proofs.steps("demands", steps) is None
    assert proofs.whole("demands", steps) is None


def test_memory_is_bounded() -> None:
    """Neither many answers nor long ones pile up."""
    proofs, passed = Proofs(), Verdict.passed("holds")
    for number in range(5_000):
        steps = (Step(index=0, text=str(number)),)
        proofs.keep_steps("demands", steps, (passed,))
        proofs.keep_whole("demands", steps, passed)
    assert len(proofs._steps) + len(proofs._wholes) <= 1_024
    long = (Step(index=0, text="1" * 5_000),)
    proofs.keep_steps("demands", long, (passed,))
    assert proofs.steps("demands", long) is None
