"""What was proven once stays proven: verdicts of pure tasks, remembered.

A task's verdicts depend on the steps and on what the request demands, and on nothing else, so the
same steps before the same demands need no second proof. Only proofs are kept: a step that failed,
or that nobody could judge, is looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from stepcache._types import Status, Step, Verdict

__all__ = ["Proofs"]

T = TypeVar("T")

_KEPT = 512
_MAX_CHARS = 4_000
"""Longer answers are not remembered, so that a full memory stays within a few MB."""

_Key = tuple[str, tuple[Step, ...]]


class Proofs:
    """Verdicts by the key of the demands and by steps. Threads may share one."""

    def __init__(self) -> None:
        self._steps: dict[_Key, tuple[Verdict, ...]] = {}
        self._wholes: dict[_Key, Verdict] = {}

    def steps(self, demands: str, steps: Sequence[Step]) -> tuple[Verdict, ...] | None:
        """The verdicts of steps that all passed under these demands before."""
        return self._steps.get((demands, tuple(steps)))

    def whole(self, demands: str, steps: Sequence[Step]) -> Verdict | None:
        """The verdict of a whole answer that passed under these demands before."""
        return self._wholes.get((demands, tuple(steps)))

    def keep_steps(
        self, demands: str, steps: Sequence[Step], verdicts: tuple[Verdict, ...]
    ) -> None:
        """Remember verdicts, if all of them pass."""
        if _short(steps) and all(verdict.status is Status.PASS for verdict in verdicts):
            _room(self._steps)[demands, tuple(steps)] = verdicts

    def keep_whole(self, demands: str, steps: Sequence[Step], verdict: Verdict) -> None:
        """Remember the verdict of a whole answer, if it passes."""
        if _short(steps) and verdict.status is Status.PASS:
            _room(self._wholes)[demands, tuple(steps)] = verdict


def _short(steps: Sequence[Step]) -> bool:
    return sum(len(step.text) for step in steps) <= _MAX_CHARS


def _room(known: dict[_Key, T]) -> dict[_Key, T]:
    if len(known) >= _KEPT:
        known.clear()
    return known
