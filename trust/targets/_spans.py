"""What must be true of every task's spans."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["bad_spans"]


def bad_spans(text: str, spans: Sequence[object]) -> str | None:
    """What is wrong with spans: they lie in the text, in order, and do not overlap."""
    last = 0
    for span in spans:
        start, stop = getattr(span, "start", -1), getattr(span, "stop", -1)
        if not last <= start <= stop <= len(text):
            return f"the span {start}..{stop} does not fit"
        last = stop
    return None
