"""What stands before the closing user message: does it ask for anything a task cannot read? Pure.

A task understands the closing message only. A system prompt or an earlier turn may ask for another
language, a persona or a layout; an answer in that form can be right and yet unreadable to the task.
Such an answer is not replaced by a deterministic one unless it is provably wrong (law 11).
"""

from __future__ import annotations

from collections.abc import Sequence

from stepcache._difference import tokens
from stepcache._types import Message

__all__ = ["asks_for_form"]

# Words of system prompts that ask for nothing but a good, short answer.
_NEUTRAL = frozenset(
    (
        *(".", ",", ":", ";", "!", "'", "-", "a", "an", "the", "you", "are", "you're", "i", "am"),
        *(
            "this",
            "is",
            "act",
            "as",
            "be",
            "please",
            "always",
            "with",
            "to",
            "of",
            "in",
            "for",
            "on",
        ),
        *("and", "or", "every", "each", "all", "any", "what", "which", "that", "who", "helpful"),
        *(
            "useful",
            "friendly",
            "kind",
            "polite",
            "honest",
            "careful",
            "accurate",
            "precise",
            "good",
        ),
        *("correct", "reliable", "brief", "briefly", "short", "concise", "concisely", "clear"),
        *("clearly", "plain", "simple", "exact", "expert", "skilled", "knowledgeable", "assistant"),
        *(
            "ai",
            "agent",
            "chatbot",
            "bot",
            "tutor",
            "teacher",
            "professor",
            "mathematician",
            "math",
        ),
        *("maths", "mathematics", "algebra", "equation", "equations", "solver", "question"),
        *("questions", "problem", "problems", "task", "tasks", "request", "requests", "user"),
        *("users", "user's", "answer", "answers", "reply", "replies", "respond", "response"),
        *("responses", "solve", "solves", "solving", "help", "helps", "best", "ability"),
    )
)


def asks_for_form(messages: Sequence[Message]) -> bool:
    """Whether any message before the last says more than "be a good assistant"."""
    return any(
        message.role not in ("system", "developer")
        or message.extra
        or any(token.casefold() not in _NEUTRAL for token in tokens(message.text))
        for message in messages[:-1]
    )
