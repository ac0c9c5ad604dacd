"""Growing spans over the words and punctuation that are neutral where they touch them."""

from __future__ import annotations

import re

from stepcache._types import Span
from stepcache.tasks.json_answer._demand import windows
from stepcache.tasks.json_answer._words import LISTING, POLITE, SUBJECT, TOPIC_VERBS

__all__ = ["grown_spans", "joined", "rest_of"]

_I = re.IGNORECASE
_LEADS = re.compile(rf"(?:{POLITE}\s+)?{TOPIC_VERBS}\s+", _I)
_SUBJECT = re.compile(rf"\s{{0,3}},?\s{{1,3}}{SUBJECT}\s{{1,3}}(?!\d|{LISTING}\b)", _I)
_ONLY_SENTENCE = re.compile(
    rf"(?:^|(?<=[\n.!?]))[ \t]*(?:{POLITE}\s+)?(?:(?:return|respond\s+with|reply\s+with|output|"
    r"give|provide)\s+(?:only\s+|just\s+)?(?:the\s+)?(?:valid\s+)?json(?:\s+only)?|"
    r"(?:valid\s+)?json\s+only)[ \t]*(?:[.!]|\n|$)",
    _I,
)
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
    grown = joined(
        grown
        + [
            Span(start=m.start(), stop=m.end(), name="json")
            for low, high in windows(view, 120, 40)
            for m in _ONLY_SENTENCE.finditer(view, low, min(high, data))
        ]
    )
    if keyed:
        grown = joined(grown + _lead(view, grown, data))
    grown = joined([*grown, *_edges(text, grown, data)])
    return joined([_punctuated(text, span, data) for span in grown])


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


def _punctuated(text: str, span: Span, data: int) -> Span:
    if span.name in ("source", "end"):
        return span
    start, stop = span.start, span.stop
    low = len(text[:start].rstrip())
    if low and text[low - 1] in ",.;:" and text[low - 2 : low] not in ("..",):
        start = low - 1
    high = stop + (len(text[stop:data]) - len(text[stop:data].lstrip()))
    if high < data and text[high] in ",.;:":
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
