"""The task of last resort: every request is its own, whole demand."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from stepcache._stitch import segment
from stepcache._types import (
    Block,
    Constraints,
    Declined,
    Difference,
    ModelCall,
    Request,
    Span,
    Step,
    Verdict,
)
from stepcache.tasks.text._canonical import canonical_text
from stepcache.tasks.text._neutral import neutral_words
from stepcache.tasks.text._prose import acts_on_text

__all__ = ["TextTask"]

_SHOWN = 120


class TextTask:
    """Serves an answer again to the same request in the same words, and to no other.

    Nobody can prove an open text's answer right for a changed request, so this task explains no
    difference, verifies no step by itself and never asks for a part. What it adds to the exact tier
    is that two spellings of one text meet (:func:`canonical_text`), and two wordings that differ by
    neutral words only (:func:`neutral_words`).
    """

    name = "text"
    version = "2"
    retrieves = False
    neutral: frozenset[str] = frozenset()

    def parse(self, request: Request, /) -> Constraints | Declined:
        """Take any request that has a text; its whole text is the demand, with its schema."""
        text = request.text
        if not text.strip():
            return Declined(reason="the request has no text")
        # Where earlier turns have something done to the words that follow, each of them counts.
        bound = acts_on_text([message.text for message in request.messages[:-1]])
        canonical = unicodedata.normalize("NFC", text) if bound else canonical_text(text)
        words = None if bound else neutral_words(canonical)
        demand = {"text": canonical} if words is None else {"words": list(words)}
        return Constraints(
            task=self.name,
            version=self.version,
            # Scopes leave the schema to the tasks, so it has to be told apart here.
            values={**demand, "schema": request.contract.schema},
            spans=(Span(start=0, stop=len(text), name="text"),),
        )

    def segment(self, text: str, /) -> tuple[Step, ...]:
        """Paragraphs, items, code and displays; see ``stepcache._stitch``."""
        return segment(text)

    def differences(self, old: Constraints, new: Constraints, /) -> tuple[Difference, ...]:
        """Nothing between equal texts, else one difference that nobody explains."""
        found = []
        if _demand(old) != _demand(new):
            found.append(_difference("text", _told(old), _told(new)))
        if old.values.get("schema") != new.values.get("schema"):
            found.append(_difference("schema", old.values.get("schema"), new.values.get("schema")))
        return tuple(found)

    def verify(self, step: Step, constraints: Constraints, /) -> Verdict:
        """Pass: reached only where the requests are the same, by :meth:`differences`."""
        return Verdict.passed("same-request", "it answered this very request")

    def check(self, steps: Sequence[Step], constraints: Constraints, /) -> Verdict:
        """Fail an empty answer; of any other there is nothing to be checked."""
        if not any(step.text.strip() for step in steps):
            return Verdict.failed("empty", "the answer is empty")
        return Verdict.passed("not-checkable", "an open text has no checkable demand")

    def adapt(
        self, steps: Sequence[Step], old: Constraints, new: Constraints, /
    ) -> tuple[Step, ...] | None:
        """None: no open text can be re-derived."""
        return None

    def block(self, verdicts: Sequence[Verdict], /) -> Block | None:
        """None: an open text is kept or asked for whole."""
        return None

    def patch(
        self,
        request: Request,
        steps: Sequence[Step],
        block: Block,
        verdicts: Sequence[Verdict],
        constraints: Constraints,
        /,
    ) -> ModelCall | None:
        """None: no part can be asked for alone."""
        return None

    def splice(
        self,
        reply: str,
        steps: Sequence[Step],
        block: Block,
        verdicts: Sequence[Verdict],
        constraints: Constraints,
        /,
    ) -> str | None:
        """None: there is no part to put in."""
        return None

    def mend(self, text: str, constraints: Constraints, /) -> str | None:
        """None: nothing can be told damaged."""
        return None

    def solve(self, constraints: Constraints, /) -> str | None:
        """None: there is no deterministic answer."""
        return None


def _demand(constraints: Constraints) -> tuple[object, object]:
    words = constraints.values.get("words")
    # A store may hand back a list where a tuple was kept.
    return constraints.values.get("text"), None if words is None else list(words)


def _told(constraints: Constraints) -> str:
    words = constraints.values.get("words")
    return str(constraints.values.get("text")) if words is None else " ".join(words[1:])


def _difference(path: str, old: object, new: object) -> Difference:
    if isinstance(old, str) and isinstance(new, str):
        at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
        at = max(0, at - 20)
        old, new = old[at:], new[at:]
    return Difference(kind=path, path=path, old=str(old)[:_SHOWN], new=str(new)[:_SHOWN])
