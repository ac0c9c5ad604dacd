"""Everything this library raises, as one tree.

    StepCacheError
    |- ConfigurationError (ValueError)   your set-up is wrong; raised by constructors, says the fix
    |- UsageError (RuntimeError)         your call is wrong, e.g. an async port under a sync call
    |  |- NamespaceRequired              it names no namespace where the policy requires one
    |- PortError                         a port failed; in the trace while answering, raised by
    |  |- EmbedderError                  explicit writes only
    |  |- StoreError
    |- TaskError                         a task broke its own law
    |- AnswerRejected                    nothing passed the final check; carries the outcome

Errors of the user's own model are never wrapped: they pass through as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepcache._types import Outcome

__all__ = [
    "AnswerRejected",
    "ConfigurationError",
    "EmbedderError",
    "NamespaceRequired",
    "PortError",
    "StepCacheError",
    "StoreError",
    "TaskError",
    "UsageError",
]


class StepCacheError(Exception):
    """Root of everything raised here on purpose."""


class ConfigurationError(StepCacheError, ValueError):
    """A constructor was given something that cannot work; the message names value and fix."""


class UsageError(StepCacheError, RuntimeError):
    """A call does not fit the object, e.g. an async port driven by a sync call."""


class NamespaceRequired(UsageError):
    """A call names no namespace, and ``Policy(require_namespace=True)`` requires one."""


class PortError(StepCacheError):
    """An embedder, store or backend of ours failed."""


class EmbedderError(PortError):
    """The embedder failed or returned something that is no vector."""


class StoreError(PortError):
    """The store failed."""


class TaskError(StepCacheError):
    """A task broke its own law, e.g. its steps do not join to the answer."""


class AnswerRejected(StepCacheError):
    """Nothing passed the final check and the policy asks to raise.

    Attributes:
        outcome: What would have been returned: the model's own answer, with its trace.
    """

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome
