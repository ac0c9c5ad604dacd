"""Re-derive cached steps for new numbers, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from stepcache._types import Step
from stepcache.tasks.linear_equation._problem import Problem

__all__ = ["adapted"]


def adapted(steps: Sequence[Step], old: Problem, new: Problem) -> tuple[Step, ...] | None:
    """The steps for the new problem; None where not all of it is explained."""
    return None
