"""Law 5: what may be kept. Pure.

Complete, non-empty, not an error, a refusal or a placeholder. Whether the answer is *right* is the
task's final check, not ours.
"""

from __future__ import annotations

from stepcache._types import Policy, Reply

__all__ = ["complete", "why_not_admitted"]

_COMPLETE = frozenset({"stop", "end_turn", "stop_sequence", "eos", "eos_token", "completed"})
_TOOL_CALLS = frozenset({"tool_calls", "tool_use", "function_call"})
_PLACEHOLDERS = frozenset(
    {"...", "…", "null", "none", "n/a", "na", "tbd", "todo", "undefined", "-", "{}", "[]", "error"}
)
# Openings of short answers that decline to answer, in the languages models mostly do it in.
_REFUSALS = (
    "i'm sorry, but i can",
    "i’m sorry, but i can",
    "i am sorry, but i can",
    "sorry, but i can",
    "i'm sorry, i can",
    "sorry, i can't",
    "sorry, i cannot",
    "i cannot assist",
    "i can't assist",
    "i cannot help with",
    "i can't help with",
    "i'm unable to",
    "i am unable to",
    "i'm not able to",
    "as an ai language model",
    "as a language model",
    "je suis désolé, mais je ne peux",
    "lo siento, pero no puedo",
    "es tut mir leid, aber ich kann",
    "对不起，我无法",
    "抱歉，我无法",
)
_ERRORS = (
    "internal server error",
    "error code:",
    "error: ",
    "rate limit exceeded",
    "service unavailable",
    "traceback (most recent call last)",
)
_SHORT = 600


def complete(finish_reason: str | None) -> bool:
    """Whether a finish reason says that the answer came to its own end. A provider that gives no
    reason at all is believed: its call returned without an error."""
    return finish_reason is None or finish_reason.casefold() in _COMPLETE | _TOOL_CALLS


def why_not_admitted(reply: Reply, policy: Policy) -> str | None:
    """Why a reply may not be kept, as a sentence fragment; None when it may."""
    if not complete(reply.finish_reason):
        return f"finish reason {reply.finish_reason!r} is not a complete answer"
    if reply.refusal:
        return "the model refused"
    if reply.reusable:
        return _why_not_text(reply.text, policy)
    return None


def _why_not_text(text: str, policy: Policy) -> str | None:
    stripped = text.strip()
    if not stripped:
        return "the answer is empty"
    if len(text) > policy.max_answer_chars:
        return f"{len(text)} characters are more than max_answer_chars={policy.max_answer_chars}"
    folded = stripped[:_SHORT].casefold()
    if folded in _PLACEHOLDERS:
        return f"{stripped!r} is a placeholder"
    if len(stripped) < _SHORT:
        if folded.startswith(_REFUSALS):
            return "the answer is a refusal"
        if folded.startswith(_ERRORS):
            return "the answer is an error text"
    return None
