"""Growing spans over the words and punctuation that are neutral where they touch them."""

from __future__ import annotations

import re
from itertools import islice

from stepcache._types import Span
from stepcache.tasks.json_answer._demand import ONLY
from stepcache.tasks.json_answer._words import (
    GREETING,
    LISTING,
    POLITE,
    PREAMBLE,
    SUBJECT,
    TOPIC_VERBS,
)

__all__ = ["grown_spans", "joined", "only_sentences", "rest_of"]

_I = re.IGNORECASE
_LEADS = re.compile(
    rf"(?:{POLITE}\s+|(?:it|the\s+(?:json|object))\s+(?:should|must)\s+)?{TOPIC_VERBS}\s+", _I
)
_ASKS_IF = re.compile(r"(?:can|could|would|will)\s+you\b", _I)
_OPENING = re.compile(rf"\s*(?:{GREETING}|{PREAMBLE})\s+(?=[^\W\d_])", _I)
_FOR_ME = re.compile(r"\s{1,3}for\s+(?:me|us)(?=\s*(?:[.?!,;]|$))", _I)
_MAX_ONLY = 16
_FOR = re.compile(r"for\s+", _I)
_SUBJECT = re.compile(rf"\s{{0,3}},?\s{{1,3}}{SUBJECT}\s{{1,3}}(?!\d|{LISTING}\b)", _I)
_TRAILING = re.compile(r"[\s.]*\Z")


def joined(spans: list[Span]) -> list[Span]:
    """The spans in order, each cut where an earlier one covers it already."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.stop)):
        if kept and span.start < kept[-1].stop:
            if span.stop > kept[-1].stop:
                kept.append(Span(start=kept[-1].stop, stop=span.stop, name=span.name))
            continue
        kept.append(span)
    return kept


def grown_spans(text: str, view: str, spans: list[Span], data: int, keyed: bool) -> list[Span]:
    """The spans with the neutral words and punctuation that touch them."""
    grown: list[Span] = []
    for span in spans:
        if span.name == "source":
            grown.append(span)
            continue
        stop = span.stop
        subject = _SUBJECT.match(view, stop)
        if subject and subject.end() <= data:
            stop = subject.end()
        grown.append(Span(start=span.start, stop=stop, name=span.name))
    grown = joined([*grown, *only_sentences(view, data), *_opening(view, data)])
    if keyed:
        grown = joined(grown + _lead(view, grown, data) + _asides(view, data))
        grown = joined(grown + _topic(text, grown, data))
    grown = joined([*grown, *_edges(text, grown, data)])
    questioned = any(s.name == "verb" and _ASKS_IF.match(view, s.start) for s in grown)
    return joined([_punctuated(text, span, data, questioned) for span in grown])


def only_sentences(view: str, data: int) -> list[Span]:
    """The sentences that demand the JSON and nothing else."""
    return [
        Span(start=m.start(), stop=m.end(), name="only")
        for m in islice(ONLY.finditer(view, 0, min(len(view), data)), _MAX_ONLY)
    ]


def _opening(view: str, data: int) -> list[Span]:
    match = _OPENING.match(view)
    found = match is not None and match.end() <= data
    return [Span(start=0, stop=match.end(), name="opening")] if match and found else []


def _asides(view: str, data: int) -> list[Span]:
    """``describe it for me``."""
    match = _FOR_ME.search(view, 0, min(len(view), data))
    return [Span(start=match.start(), stop=match.end(), name="aside")] if match else []


def _topic(text: str, spans: list[Span], data: int) -> list[Span]:
    """The "for" that leads to the topic, where the topic is all that is left of the request."""
    at = 0
    for span in spans:
        if text[at : span.start].strip(" \t\r\n,.;:"):
            break
        at = max(at, span.stop)
    start = at + len(text[at:data]) - len(text[at:data].lstrip(" \t\r\n,.;:"))
    match = _FOR.match(text, start, data)
    return [Span(start=start, stop=match.end(), name="topic")] if match else []


def _lead(view: str, spans: list[Span], data: int) -> list[Span]:
    """The verb that opens the request, once."""
    for at in (0, *(span.stop for span in spans if span.name != "source")):
        while at < data and view[at] in " \t\r\n,:;.":
            at += 1
        inside = any(span.start <= at < span.stop for span in spans)
        match = _LEADS.match(view, at)
        if match and not inside and match.end() <= data:
            return [Span(start=match.start(), stop=match.end(), name="verb")]
    return []


def _edges(text: str, spans: list[Span], data: int) -> list[Span]:
    """The full stop that ends the text, where it ends the topic."""
    if data < len(text):
        return []
    match = _TRAILING.search(text, max(0, len(text.rstrip(" \t\r\n.")) - 1))
    if match and "." in match.group() and not any(s.stop > match.start() for s in spans):
        return [Span(start=match.start(), stop=len(text), name="end")]
    return []


def _punctuated(text: str, span: Span, data: int, questioned: bool) -> Span:
    if span.name in ("source", "end"):
        return span
    start, stop = span.start, span.stop
    low = len(text[:start].rstrip())
    ends = ",.;:?" if questioned else ",.;:"
    if low and text[low - 1] in ends and text[low - 2 : low] not in ("..",):
        start = low - 1
    high = stop + (len(text[stop:data]) - len(text[stop:data].lstrip()))
    if high < data and text[high] in ends and not text[high + 1 : high + 2].isalnum():
        stop = high + 1
    elif text[high:].strip() in ("?", "!", "?!") and data == len(text):
        stop = len(text)
    return Span(start=start, stop=stop, name=span.name)


def rest_of(text: str, spans: list[Span]) -> str:
    """The text outside the spans."""
    pieces, at = [], 0
    for span in spans:
        pieces.append(text[at : span.start])
        at = max(at, span.stop)
    return " ".join([*pieces, text[at:]])
