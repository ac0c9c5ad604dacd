"""A token counter for the host's callbacks that knows what an answer from the cache cost."""

from __future__ import annotations

from typing import Any

from llama_index.core.callbacks import CBEventType, EventPayload, TokenCountingHandler
from llama_index.core.callbacks.token_counting import TokenCountingEvent

__all__ = ["StepCacheTokenCounter"]


class StepCacheTokenCounter(TokenCountingHandler):
    """As the host's ``TokenCountingHandler``, but an answer that cost no model call counts as 0.

    The host's takes a count of 0 for unknown and counts the words of a hit, against a budget too.

    Examples:
        ```python
        counter = StepCacheTokenCounter()
        llm = StepCacheLLM(llm=inner, callback_manager=CallbackManager([counter]))
        ```
    """

    def on_event_end(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        **kwargs: Any,
    ) -> None:
        """Count one event."""
        response = _free(payload or {}) if event_type is CBEventType.LLM else None
        if response is None:
            super().on_event_end(event_type, payload=payload, event_id=event_id, **kwargs)
        elif event_type not in self.event_ends_to_ignore:
            self.llm_token_counts.append(
                TokenCountingEvent(
                    prompt="",
                    completion=str(response),
                    prompt_token_count=0,
                    completion_token_count=0,
                    event_id=event_id,
                )
            )


def _free(payload: dict[str, Any]) -> Any:
    """The response of an event that asked no model; None otherwise."""
    response = payload.get(EventPayload.RESPONSE) or payload.get(EventPayload.COMPLETION)
    summary = getattr(response, "additional_kwargs", {}).get("stepcache")
    free = isinstance(summary, dict) and summary["spent"]["calls"] == 0
    return response if free else None
