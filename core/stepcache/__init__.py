"""StepCache: step-level reuse of language model answers.

An answer is kept as ordered steps. A new request finds the nearest earlier one, every step is
verified against the new request, and what holds is reused; only what does not is made anew.

    >>> from stepcache import Message, Request, StepCacheEngine
    >>> engine = StepCacheEngine()
    >>> request = Request(messages=(Message(role="user", text="Solve 2x + 3 = 13 for x."),))

Importing this package loads neither a framework nor a model; names are resolved on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepcache._errors import (
    AnswerRejected,
    ConfigurationError,
    EmbedderError,
    NamespaceRequired,
    PortError,
    StepCacheError,
    StoreError,
    TaskError,
    UsageError,
)
from stepcache._types import (
    Constraints,
    Contract,
    Control,
    Message,
    ModelCall,
    Outcome,
    Policy,
    Reply,
    Request,
    Step,
    Trace,
    Usage,
    Verdict,
)

if TYPE_CHECKING:
    from stepcache.engine import StepCacheEngine

__all__ = [
    "AnswerRejected",
    "ConfigurationError",
    "Constraints",
    "Contract",
    "Control",
    "EmbedderError",
    "Message",
    "ModelCall",
    "NamespaceRequired",
    "Outcome",
    "Policy",
    "PortError",
    "Reply",
    "Request",
    "Step",
    "StepCacheEngine",
    "StepCacheError",
    "StoreError",
    "TaskError",
    "Trace",
    "Usage",
    "UsageError",
    "Verdict",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "StepCacheEngine":
        from stepcache.engine import StepCacheEngine

        return StepCacheEngine
    raise AttributeError(f"module 'stepcache' has no attribute {name!r}")
