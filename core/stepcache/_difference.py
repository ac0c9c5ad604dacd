"""Stored request against new request: what is left of the text once the typed parts are taken out.

A task reads its constraints from spans of the request's text. The rest is the *residue*; of it, the
task's closed list of neutral words cannot change an answer, and every other token can. Two requests
mean the same beyond their constraints only if what remains is equal, in order: law 2. No similarity
is computed here, and no token is ever forgiven.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher

from stepcache._types import Difference, Span

__all__ = ["content", "masked", "residue", "residue_differences", "tokens"]

# A run of digits with its inner separators, one ideograph or kana, a run of other letters, or any
# single visible sign. Alternatives start with disjoint characters, so matching is linear.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(
    rf"\d+(?:[.,]\d+)*|[{_IDEOGRAPHS}]|(?:(?![{_IDEOGRAPHS}])[^\W\d])+(?:['\u2019](?=[^\W\d])"
    rf"(?:(?![{_IDEOGRAPHS}])[^\W\d])+)*|[^\w\s]"
)
_NEGATIONS = frozenset(
    (
        *("no", "not", "never", "none", "nothing", "without", "nor", "cannot", "can't", "don't"),
        *("doesn't", "isn't", "aren't", "won't", "nicht", "kein", "keine", "ne", "pas", "jamais"),
        *("sans", "sin", "nunca", "non", "senza"),
    )
)
_LONGEST_DIFF = 600


def tokens(text: str) -> tuple[str, ...]:
    """The visible tokens of a text, in order, in Unicode NFC; white space is dropped, case kept."""
    return tuple(_TOKEN.findall(unicodedata.normalize("NFC", text)))


def residue(text: str, spans: Iterable[Span]) -> str:
    """The text outside the spans, each span replaced by a space."""
    return _cut(text, spans, lambda span: " ")


def masked(text: str, spans: Iterable[Span]) -> str:
    """The text with each span replaced by its name: what is embedded, so that two requests look
    neither alike for their boilerplate nor apart for their digits."""
    return _cut(text, spans, lambda span: f" <{span.name}> ")


def content(text: str, spans: Iterable[Span], neutral: frozenset[str]) -> tuple[str, ...]:
    """The tokens of the residue that can change an answer.

    Args:
        neutral: Casefolded words and punctuation that cannot.
    """
    return tuple(t for t in tokens(residue(text, spans)) if t.casefold() not in neutral)


def residue_differences(old: Sequence[str], new: Sequence[str]) -> tuple[Difference, ...]:
    """Every change between two sequences of content tokens, none of them explained."""
    if tuple(old) == tuple(new):
        return ()
    if len(old) + len(new) > _LONGEST_DIFF:
        # Aligning long texts costs the square of their length; where they part is reason enough.
        at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
        return (_difference(old[at : at + 8], new[at : at + 8]),)
    matcher = SequenceMatcher(a=list(old), b=list(new), autojunk=False)
    return tuple(
        _difference(old[a:b], new[c:d])
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    )


def _difference(old: Sequence[str], new: Sequence[str]) -> Difference:
    return Difference(
        kind=_kind([*old, *new]), path="residue", old=" ".join(old), new=" ".join(new)
    )


def _kind(changed: Sequence[str]) -> str:
    if any(t.casefold() in _NEGATIONS for t in changed):
        return "negation"
    if any(t[0].isnumeric() for t in changed):
        return "number"
    if any(t[0].isupper() for t in changed):
        return "name"
    if any(t[0].isalpha() for t in changed):
        return "word"
    return "sign"


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
