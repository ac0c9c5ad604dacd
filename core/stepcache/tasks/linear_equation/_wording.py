"""Which words of a request say nothing but that its equation is to be solved.

A sentence is read from its first word to its last: each has to be part of a clause below, and one
of the clauses has to ask for the solution. So a clause may use any plain word: none says to write a
question, to take another equation, or to check. Where it goes on to say more, what it goes on with
counts word by word; so does a sentence that asks for something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepcache._difference import WORDING, masked
from stepcache._memo import memo
from stepcache._phrasing import any_of, compiled
from stepcache._types import Span
from stepcache.tasks.linear_equation._clauses import UNKNOWN, asking, beside, with_nouns
from stepcache.tasks.linear_equation._foreign import is_foreign

__all__ = ["Wording", "read_wording"]

_LONGEST = 1_000
"""Characters of a request with its equations masked."""

_GAP = re.compile(r"(?:[\s.,:;!?()$]|(?<=\s)[-\u2013\u2014](?=\s[a-z])|=>|<style-[a-z-]+>)*")
_NOT_SEEN = frozenset(("markup", "question-number", "definition"))
_UNSEEN = re.compile(rf"<(?:{'|'.join(sorted(_NOT_SEEN))})>")
_BEFORE_STOP = re.compile(r"\s([.,:;!?)])")
_QUOTED = re.compile(
    r"([\"'`*$({\[\u201c]{1,3})\s?(<equation>|<unknown>)\s?([\"'`*$)}\]\u201d]{1,3})"
)
_SENTENCE_END = re.compile(r"[.?!;]+(?=\s|$)|\n\s{0,9}\n")
_NEXT_SENTENCE = re.compile(r"\s{1,9}[A-Z][a-z]")
"""Behind an equation, which many leave without a full stop."""
_LEADS = compiled(
    r"\s{0,3}(?:please )?(?:as an answer,? )?"
    + any_of(
        "give write return output answer_with reply_with respond_with answer_in reply_in "
        "respond_in",
        "your_answer_should_be the_answer_should_be your_answer_must_be the_answer_must_be",
    )
    + r"(?= (?:the|a|an|one|your)\b)"
)
"""What leads to how the answer is to be."""
_ITEM = re.compile(r"<[a-z-]+>|[^\W_]+(?:['\u2019][^\W_]+)*")
_LETTERS = re.compile(r"[^\W\d_]")
_MASK = re.compile(r"<[a-z-]+>")


@dataclass(frozen=True, slots=True)
class Wording:
    """What of a request is mere wording."""

    whole: bool
    """Whether all of it is, so that nothing but the solution is asked."""
    spans: tuple[Span, ...]
    """The stretches between the typed spans that can change no answer."""


def read_wording(text: str, spans: Sequence[Span]) -> Wording:
    """Tell mere wording from what counts, sentence by sentence.

    A sentence is wording as far as it consists of known clauses, one of which asks. Of any other
    every word counts, but for those that lead to what the answer is to be like. Where no clause of
    the request asks for the solution, every word of it counts.

    Args:
        text: The request.
        spans: Its equations, unknowns and demanded styles, in order.
    """
    counting = Wording(False, ())
    if len(text) > _LONGEST:
        return counting
    sentences = list(_sentences(text, spans))
    said = [_masked(text, spans, *sentence) for sentence in sentences]
    read = [_read(sentence) for sentence in said]
    if all(r.at == len(s) for r, s in zip(read, said)) and any(r.asks for r in read):
        return Wording(True, tuple(_between(spans, 0, len(text))))
    if _foreign(_masked(text, spans, 0, len(text))):
        return Wording(True, tuple(_between(spans, 0, len(text))))
    if not any(r.asks for r in read):
        return counting
    neutral: list[Span] = []
    for (start, stop), r, sentence in zip(sentences, read, said):
        if r.at == len(sentence):
            end = stop
        elif r.asks:
            end = _reached(text, spans, start, stop, len(_ITEM.findall(sentence, 0, r.at)))
        else:
            led = _LEADS.match(text, start, stop)
            end = led.end() if led else start
        neutral += _between(spans, start, end)
    return Wording(False, tuple(neutral))


def _reached(text: str, spans: Sequence[Span], start: int, stop: int, items: int) -> int:
    """Where so many words and spans of a stretch have been passed."""
    held = [s for s in spans if s.start < stop and start < s.stop]
    seen = [s.start for s in held if s.name not in _NOT_SEEN]
    words = [
        match.start()
        for match in _ITEM.finditer(text, start, stop)
        if not any(s.start <= match.start() < s.stop for s in held)
    ]
    starts = sorted((*seen, *words))
    return starts[items] if items < len(starts) else stop


def _sentences(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Where each sentence starts and stops; signs inside of spans end none."""
    ends = [
        match.end()
        for match in _SENTENCE_END.finditer(text)
        if not any(span.start < match.end() and match.start() < span.stop for span in spans)
    ]
    ends += [
        span.stop
        for span in spans
        if span.name == "equation" and _NEXT_SENTENCE.match(text, span.stop)
    ]
    start = 0
    for end in sorted(ends):
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _masked(text: str, spans: Sequence[Span], start: int, stop: int) -> str:
    """A stretch in lower case, its spans replaced by their names, its signs in one form."""
    inside = [
        Span(start=max(0, s.start - start), stop=min(stop, s.stop) - start, name=s.name)
        for s in spans
        if s.start < stop and start < s.stop
    ]
    plain = masked(text[start:stop], inside).casefold().replace("\u2019", "'")
    plain = _QUOTED.sub(r" \2 ", _UNSEEN.sub(" ", plain))
    return _BEFORE_STOP.sub(r"\1", " ".join(plain.split()))


def _between(spans: Sequence[Span], start: int, stop: int) -> Iterator[Span]:
    """The stretches of a stretch that no span holds."""
    at = start
    for span in spans:
        if span.start >= stop:
            break
        if at < span.start:
            yield Span(start=at, stop=span.start, name=WORDING)
        at = max(at, span.stop)
    if at < stop:
        yield Span(start=at, stop=stop, name=WORDING)


_foreign = memo(maxsize=256)(is_foreign)


@dataclass(frozen=True, slots=True)
class _Read:
    """How far a sentence consists of known clauses, and whether one of them asks."""

    at: int
    asks: bool


@memo(maxsize=1024)
def _read(text: str) -> _Read:
    """The clauses of a sentence, up to the first word that is of none."""
    at, asked = _skipped(text, 0), "<style-" in text
    if _LETTERS.search(_MASK.sub("", text)) is None and "<equation>" in text:
        asked = True  # an equation by itself
    alone = text.count(UNKNOWN) == 1
    plain = with_nouns(text)
    while at < len(text):
        stop = _longest(asking(), plain, at)
        if not alone and stop == at + len(UNKNOWN) and text.startswith(UNKNOWN, at):
            stop = at  # "the value of x . x": no unknown stands for itself beside another
        aside = _longest(beside(), plain, at)
        if max(stop, aside) == at:
            return _Read(at, asked)
        asked = asked or stop >= aside
        at = _skipped(text, max(stop, aside))
    return _Read(at, asked)


def _longest(patterns: Sequence[re.Pattern[str]], text: str, at: int) -> int:
    return max((m.end() for m in (p.match(text, at) for p in patterns) if m), default=at)


def _skipped(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at
