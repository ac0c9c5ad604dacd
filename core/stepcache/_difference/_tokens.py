"""Texts without their typed spans, and as tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from stepcache._types import Span

__all__ = ["WORDING", "content", "masked", "residue", "tokens"]

# One ideograph or kana; a run of other letters and digits, with apostrophes inside words and
# separators inside numbers; or any single visible sign. "A1" is one token, so that it is not "A 1".
# Each repetition begins with a sign that the run before it cannot hold, so matching is linear.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_RUN = rf"(?:(?![{_IDEOGRAPHS}])\w)+"
_TOKEN = re.compile(
    rf"[{_IDEOGRAPHS}]|{_RUN}(?:(?:(?<=[^\W\d])['\u2019](?=[^\W\d])|(?<=\d)[.,](?=\d)){_RUN})*"
    r"|[^\w\s]"
)


WORDING = "wording"
"""The name of spans in which a task knows every word and none can change the answer."""


def tokens(text: str) -> tuple[str, ...]:
    """The visible tokens of a text, in order, in Unicode NFC; white space is dropped, case kept."""
    return tuple(_TOKEN.findall(unicodedata.normalize("NFC", text)))


def residue(text: str, spans: Iterable[Span]) -> str:
    """The text outside the spans, each span replaced by a space."""
    return _cut(text, spans, lambda span: " ")


def masked(text: str, spans: Iterable[Span]) -> str:
    """The text with each span replaced by its name: what is embedded, so that two requests look
    neither alike for their boilerplate nor apart for their digits. Mere wording stays."""
    return _cut(
        text,
        spans,
        lambda span: text[span.start : span.stop] if span.name == WORDING else f" <{span.name}> ",
    )


def content(text: str, spans: Iterable[Span], neutral: frozenset[str]) -> tuple[str, ...]:
    """The tokens of the residue that can change an answer.

    Args:
        neutral: Casefolded words and punctuation that cannot.
    """
    return tuple(t for t in tokens(residue(text, spans)) if t.casefold() not in neutral)


def _cut(text: str, spans: Iterable[Span], put: Callable[[Span], str]) -> str:
    pieces: list[str] = []
    at = 0
    for span in sorted(spans, key=lambda s: s.start):
        if span.start >= at:
            pieces.append(text[at : span.start])
            pieces.append(put(span))
            at = span.stop
        else:
            at = max(at, span.stop)
    pieces.append(text[at:])
    return "".join(pieces)
