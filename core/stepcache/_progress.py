"""What of an answer in the making may be shown to a reader before it is whole. Pure.

A stream cannot take back what it has shown, and must end as a call that waits would (law 9). So a
beginning is shown only when two things are proven of it: every step in it holds, and a
deterministic ending exists with which it passes the final check. Then, whatever the model goes on
to say, there is an answer that begins with what was shown; and the calls that wait give that same
answer, because they too keep the longest such beginning when the rest fails. Families without a
deterministic answer (JSON) show nothing before the final check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from stepcache._judge import Judge
from stepcache._types import Status

__all__ = ["Progress"]

_MAX_LINES = 40
"""Beginnings tried; a longer answer goes on being written unseen."""


class Progress:
    """The standing beginnings of one answer that grows.

    Args:
        judge: The task before the request.
        whole: From the reply so far to the answer so far; the identity unless the reply is only a
            part. None where the part does not fit yet.
        start: Characters of the answer that stand before the reply.
    """

    def __init__(
        self, judge: Judge, whole: Callable[[str], str | None] | None = None, beginning: str = ""
    ) -> None:
        # Whether anybody watches must not show in the trace.
        self.judge = replace(judge, note=lambda name, detail: None)
        self.whole = whole
        self.beginning = beginning
        self.shown = ""
        """What a stream has shown; empty where nobody watches."""
        self._known: dict[str, bool] = {}

    def watch(self, reply: str) -> str:
        """The text to show now, in addition to what has been shown."""
        text = self._text(reply)
        if text is None or not text.startswith(self.shown):
            return ""
        at = len(self.shown)
        self.shown = self._longest(self._beginnings(text), self.shown)
        return self.shown[at:]

    def fits(self, answer: str) -> bool:
        """Whether an answer begins with all that has been shown."""
        return answer.startswith(self.shown)

    def standing(self, answer: str | None, *, cut_off: bool = False) -> str:
        """The longest beginning that stands, of an answer that failed as a whole.

        Args:
            answer: All there is of it; None where the reply could not be used.
            cut_off: Whether it ended before its end: then its last line is no whole line.
        """
        found = self._longest(self._beginnings(answer or self.beginning), self.shown)
        return self._longest([answer], found) if answer and not cut_off else found

    def _longest(self, texts: Iterable[str], best: str) -> str:
        for text in texts:
            if len(text) > len(best) and text.startswith(best) and self.stands(text):
                best = text
        return best

    def _beginnings(self, answer: str) -> Iterator[str]:
        yield self.beginning
        for end in islice(_line_starts(answer, len(self.beginning)), _MAX_LINES):
            yield answer[:end]

    def stands(self, beginning: str) -> bool:
        """Whether every step of a beginning holds and an ending is known for it."""
        if not beginning.strip():
            return False
        known = self._known.get(beginning)
        if known is None:
            known = self._known[beginning] = self._proven(beginning)
        return known

    def _proven(self, beginning: str) -> bool:
        steps = self.judge.cut(beginning)
        if any(v.status is not Status.PASS for v in self.judge.verify(steps)):
            return False
        return self.judge.ended(beginning) is not None

    def _text(self, reply: str) -> str | None:
        if self.whole is None:
            return reply
        said = reply.strip()
        # A model that was told the beginning may say it again; until it parts from it, nobody
        # knows whether what it says is new.
        if not said or self.beginning.strip().startswith(said):
            return self.beginning
        return self.whole(reply)


def _line_starts(text: str, start: int) -> Iterator[int]:
    """Where, beyond ``start``, a line with something in it begins: what ends there is complete."""
    at = text.find("\n", start)
    while at >= 0:
        end = at + 1
        while end < len(text) and text[end].isspace():
            end += 1
        if end < len(text):
            # White space before the first sign of a line belongs to the line.
            yield text.rfind("\n", 0, end) + 1
        at = text.find("\n", end)
