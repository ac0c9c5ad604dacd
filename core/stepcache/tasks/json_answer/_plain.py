"""Requests that consist of plain sentences: one topic, one list of keys, and JSON.

The parser of ``_request`` takes the phrases it knows out of a request wherever they stand, and
leaves the rest. It knows few, so most ways of asking for the same object leave words that count.
Here every sentence of a request has to be one of ``_sentences`` from its first word to its last;
one that is not, a second topic or a second list of keys, and the request is not read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise, product

from stepcache._types import Span
from stepcache.tasks.json_answer._demand import ONLY
from stepcache.tasks.json_answer._keys import KeyList, read_list
from stepcache.tasks.json_answer._sentences import HERE, asking, keys_here, openings, plain
from stepcache.tasks.json_answer._words import LISTING

__all__ = ["LONGEST", "Plain", "may_be_plain", "read_plain"]

LONGEST = 800
"""Characters. Longer requests carry data or context."""
_PLAIN = 6
"""Words. A shorter rest without a word of a request in it is a topic by itself."""
_HINT = re.compile(
    r"[:?!=\n(;,>]|\b(?:please|pls|describe|give|return|write|need|want|keys?|fields?|object|for "
    r"me|"
    r"could|can|will|would|is|are|that|and|about|on|topic|subject|info|information|details|answer|"
    r"reply|respond|make|create|generate|produce|tell|show|it)\b",
    re.IGNORECASE,
)
_MOST_CLAUSES = 4
_ENDS = re.compile(r"[.?!;]+(?=\s|$)|\n+")
_JSON = re.compile(r"\bjson\b", re.IGNORECASE)
_OBJECT = re.compile(r"\b(?:object|dictionary|dict)\b", re.IGNORECASE)
_NOT_A_TOPIC = re.compile(
    rf"json|n['\u2019]t\b|\b(?:{LISTING.strip('(?:)')}|keys?|fields?|propert(?:y|ies)|attributes?|"
    r"it|this|that|them|not?|never|none|neither|nor|without|except|but|instead|than|unless|unlike|"
    r"other|else|cannot)\b",
    re.IGNORECASE,
)
_TITLE = re.compile(r"(?<=\s)(?!(?:I|JSON|Json)\b)[A-Z]\w*[a-z]")
_EXACTLY = re.compile(
    r"\b(?:exactly|only|just|precisely)\s+(?:the\s+|these\s+|its\s+)?(?:following\s+|required\s+)?"
    r"(?:keys?|fields?|properties|attributes?)\b",
    re.IGNORECASE,
)
_WELCOME = re.compile(r"\binclud", re.IGNORECASE)
_BARE = re.compile(
    r"\b(?:only|just)\s+(?:\w+\s+){0,2}json\b|\bjson(?:\s+object)?\s+only\b", re.IGNORECASE
)
_ASKED = re.compile(r"\s{0,3}(?:could\b|(?:can|would|will)\s+you\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Plain:
    """A request that was read whole."""

    keys: KeyList
    topic: tuple[int, int]
    """Where the topic starts and stops."""
    spans: tuple[Span, ...]
    """All but the topic."""
    explicit: bool
    """Whether an object is asked for by this name."""
    bare: bool
    """Whether nothing may stand beside it."""
    extras: str


@dataclass(frozen=True, slots=True)
class _Sentence:
    topic: tuple[int, int] | None = None
    keys: tuple[int, int] | None = None
    listed: KeyList | None = None
    bare: bool = False

    def moved(self, by: int) -> _Sentence:
        """The same in a text in which the sentence starts later."""
        topic, keys = (s and (s[0] + by, s[1] + by) for s in (self.topic, self.keys))
        return replace(self, topic=topic, keys=keys)


def may_be_plain(rest: str) -> bool:
    """Whether a rest may hold words of a request beside its topic; a cheap look."""
    return _HINT.search(rest) is not None or len(rest.split(None, _PLAIN)) > _PLAIN


def read_plain(text: str) -> Plain | None:
    """The request read whole; None where a sentence of it is not known."""
    if len(text) > LONGEST or _JSON.search(text) is None:
        return None
    read: list[_Sentence] = []
    for start, stop, end in _sentences(text):
        sentence = _read(text[start:stop], end)
        if sentence is None:
            return None
        read.append(sentence.moved(start))
    topics = [s.topic for s in read if s.topic is not None]
    lists = [(s.keys, s.listed) for s in read if s.keys is not None and s.listed is not None]
    if len(topics) != 1 or len(lists) != 1:
        return None
    (topic,), ((named, listed),) = topics, lists
    said = "".join((text[: topic[0]], " ", text[topic[1] :]))
    if _JSON.search(said) is None:
        return None
    extras = (
        "forbidden" if _EXACTLY.search(said) else "welcome" if _WELCOME.search(said) else "unsaid"
    )
    return Plain(
        keys=listed,
        topic=topic,
        spans=tuple(_all_but(topic, named, len(text))),
        explicit=_OBJECT.search(said) is not None,
        bare=any(s.bare for s in read) or _BARE.search(said) is not None,
        extras=extras,
    )


def _sentences(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each sentence starts and stops, and the signs behind it."""
    start = 0
    for match in (*_ENDS.finditer(text), None):
        stop = match.start() if match else len(text)
        said = text[start:stop]
        if said.strip():
            yield start + len(said) - len(said.lstrip()), stop, match.group() if match else ""
        start = match.end() if match else stop


def _read(said: str, end: str) -> _Sentence | None:
    """One sentence; None where it is none that is known."""
    if ONLY.fullmatch(said):
        return _Sentence(bare=True)
    for masked, keys in _readings(said):
        for match in _matches(masked):
            sentence = _checked(said, match, keys)
            if sentence is None:
                continue
            if "?" in end and sentence.topic is None and not _ASKED.match(said):
                return None  # "Which keys are there?" demands none
            return sentence
    return None


def _readings(said: str) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """The sentence with each clause that may name the keys masked, and as it is."""
    for match in islice(keys_here().finditer(said), _MOST_CLAUSES):
        start, stop = match.span()
        keys = next(match.span(n) for n, value in match.groupdict().items() if value is not None)
        yield f"{said[:start]}{HERE * (stop - start)}{said[stop:]}", keys
    yield said, None


def _matches(said: str) -> Iterator[re.Match[str]]:
    """The sentences that a sentence may be."""
    opening = openings().match(said)
    starts = {0, opening.end() if opening else 0}
    tried = chain(product(sorted(starts, reverse=True), asking()), product((0,), plain()))
    for at, pattern in tried:
        match = pattern.fullmatch(said, at)
        if match:
            yield match


def _checked(said: str, match: re.Match[str], keys: tuple[int, int] | None) -> _Sentence | None:
    """What a sentence says, where its topic and keys are such."""
    groups = match.groupdict()
    topic = match.span("topic") if groups.get("topic") is not None else None
    if groups.get("keys") is not None:
        if keys is not None:
            return None
        keys = match.span("keys")
    listed = None
    if keys is not None:
        listed = read_list(said[: keys[1]], keys[0])
        if listed is None or not listed.readable or listed.stop != keys[1] or listed.notes:
            return None
    if topic is not None:
        about = said[slice(*topic)].rstrip()
        topic = (topic[0], topic[0] + len(about))
        if _NOT_A_TOPIC.search(about) or not about[-1:].isalnum():
            return None
    rest, at = "", 0
    for low, high in sorted(span for span in (topic, keys) if span is not None):
        rest, at = f"{rest}{said[at:low]}.", high
    if _TITLE.search(f"{rest}{said[at:]}".lstrip()):
        return None  # "I Need Love", "Show In Bruges"
    return _Sentence(topic=topic, keys=keys, listed=listed)


def _all_but(topic: tuple[int, int], keys: tuple[int, int], length: int) -> Iterator[Span]:
    """The text around the topic; the keys under their name, all else as the demand."""
    edges = sorted({0, *topic, *keys, length})
    for low, high in pairwise(edges):
        if (low, high) != topic:
            yield Span(start=low, stop=high, name="keys" if (low, high) == keys else "json")
