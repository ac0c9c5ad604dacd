"""What instrumentation is told of an answer: an event inside the span of the call."""

from __future__ import annotations

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent

from stepcache import Outcome

__all__ = ["StepCacheAnswerEvent", "dispatch_answer"]

_dispatcher = get_dispatcher(__name__)


class StepCacheAnswerEvent(BaseEvent):
    """One request was answered; holds no text of it.

    Event handlers meet it between the start and the end of the LLM call, in the call's own span.
    What the answer itself carries stands in ``response.additional_kwargs["stepcache"]`` of the end
    event.
    """

    route: str
    code: str
    """The reason for the route, as a stable code."""
    task: str | None = None
    entry_id: str | None = None
    reused_steps: int = 0
    patched_steps: int = 0
    spent_calls: int = 0
    spent_tokens: int = 0
    avoided_calls: int = 0
    avoided_tokens: int = 0

    @classmethod
    def class_name(cls) -> str:
        """The name this event goes by."""
        return "StepCacheAnswerEvent"


def dispatch_answer(outcome: Outcome) -> None:
    """Tell whoever handles events; what goes wrong in a handler stays there."""
    _dispatcher.event(
        StepCacheAnswerEvent(
            route=outcome.route,
            code=outcome.code,
            task=outcome.task,
            entry_id=outcome.entry_id,
            reused_steps=outcome.reused_steps,
            patched_steps=outcome.patched_steps,
            spent_calls=outcome.spent.calls,
            spent_tokens=outcome.spent.tokens,
            avoided_calls=outcome.avoided.calls,
            avoided_tokens=outcome.avoided.tokens,
        )
    )
