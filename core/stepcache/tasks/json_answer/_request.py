"""Reading a prompt: does it demand JSON, with which keys, out of which text?

The parser only ever takes phrases it knows (see ``_words``); everything else stays residue, where
one changed word is a difference. So a phrase it does not know costs a miss, never a wrong answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from stepcache._types import Declined, Span
from stepcache.tasks.json_answer._clauses import find_keys, find_source
from stepcache.tasks.json_answer._demand import (
    FENCE,
    MENTION,
    QUESTION,
    QUOTE,
    Phrase,
    find_demand,
    outside_data,
    sentence_at,
)
from stepcache.tasks.json_answer._keys import KeyList
from stepcache.tasks.json_answer._plain import may_be_plain, read_plain
from stepcache.tasks.json_answer._spans import grown_spans, joined, rest_of
from stepcache.tasks.json_answer._words import LISTING, MORE_SAID

__all__ = ["Demand", "read"]

_I = re.IGNORECASE
_EXACTLY = re.compile(
    r"\b(?:exactly|precisely|only|just|nothing\s+else|no\s+others?|no\s+other\s+keys)\b", _I
)
_MORE_STEMS = ("includ", "additional", "optional")
_LISTING = frozenset(LISTING.strip("(?:)").split("|"))
_COUNTED = re.compile(r"\b(?:[2-9]|\d{2,4})\s+[^\W\d_]{2,30}s\b", _I)
_WORD = re.compile(r"\w+")
_AS_OBJECT = re.compile(
    r"\b(?:as|in)\s+(?:an?|one|a\s+single)\s+(?:object|dictionary|dict)\s{1,3}\Z", _I
)
_ORDER = re.compile(r"\border(?:ed)?\b", _I)
_ARRAY = re.compile(r"\b(?:array|list)\b", _I)
_PLURAL = re.compile(r"\bobjects\b", _I)


_GIVEN = re.compile(r"\s{0,3}[:：]\s{0,3}(?=\S)")


@dataclass(frozen=True, slots=True)
class Demand:
    """What a prompt demands of a JSON answer."""

    keys: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)
    """What is said of single keys ("integer", "<years>"): instructions no verifier can check."""
    extras: str = "unsaid"
    """Whether other keys are ``welcome`` ("including at least"), ``forbidden`` ("exactly")."""
    ordered: bool = False
    shape: str = "any"
    """``object``, ``array`` or ``any``."""
    source: str | None = None
    quoted: tuple[str, ...] = ()
    """Quoted strings and code in the residue, verbatim: there white space counts too."""
    spans: tuple[Span, ...] = ()
    schema: dict[str, Any] | None = None
    """A JSON Schema written in the prompt itself."""
    bare: bool = False
    """Whether nothing may stand beside the JSON."""
    sure: bool = True
    """False where a part that may matter could not be read."""


def read(text: str, *, named: bool) -> Demand | Declined:
    """The demand of a prompt.

    Args:
        text: The closing user message.
        named: True when something outside the text (a schema, a response format, the caller) has
            already said that JSON is wanted; then the text cannot be declined.
    """
    demand, rest = _read(text, named=named)
    if isinstance(demand, Declined) or not demand.sure or may_be_plain(rest):
        return _plain(text) or demand
    return demand


def _plain(text: str) -> Demand | None:
    """The demand of a request that is made of plain sentences only."""
    plain = read_plain(text)
    if plain is None or _listish(text[slice(*plain.topic)]):
        return None
    return Demand(
        keys=plain.keys.keys,
        extras=plain.extras,
        shape="object" if plain.explicit else "any",
        spans=plain.spans,
        bare=plain.bare,
    )


def _read(text: str, *, named: bool) -> tuple[Demand | Declined, str]:
    """The demand, and what of the text it leaves."""
    view = outside_data(text)
    phrase, why = find_demand(view)
    if phrase is None:
        unread = Demand(quoted=_quotes(text, ()), source=None, shape="any")
        return (unread if named else Declined(reason=why)), text
    keys, key_start, sure = find_keys(text, view, phrase)
    if phrase.weak and keys is None and QUESTION.match(sentence_at(view, phrase.start)):
        if not named:
            return Declined(reason="a question about JSON, not a demand for it"), text
        return Demand(quoted=_quotes(text, ()), shape="any"), text
    return _assemble(text, view, phrase, keys, key_start, sure)


def _assemble(
    text: str, view: str, phrase: Phrase, keys: KeyList | None, key_start: int, sure: bool
) -> tuple[Demand, str]:
    name = "only" if phrase.only else "json"
    spans = [Span(start=a, stop=b, name=name) for a, b in phrase.pieces if a < b]
    names: tuple[str, ...] = ()
    notes: dict[str, str] = {}
    extras, end = "unsaid", phrase.stop
    template = False
    if keys is not None:
        names, notes, end = keys.keys, keys.notes, max(phrase.stop, keys.stop)
        clause = view[key_start : keys.stop]
        named = _AS_OBJECT.search(view, max(0, key_start - 40), key_start)
        if named:
            spans.append(Span(start=named.start(), stop=named.end(), name="json"))
        extras = _extras(clause)
        template = keys.schema is not None or text[key_start : key_start + 1] == "{"
        spans.append(_key_span(text, key_start, keys.stop))
    listed = keys is not None and keys.stop == end
    source, source_span = _source(text, view, end, listed=listed)
    if source_span is not None:
        spans.append(source_span)
    data = source_span.start if source_span else len(text)
    spans = grown_spans(text, view, joined(spans), data, bool(names))
    rest = rest_of(text, spans)
    quoted = _quotes(text, spans)
    if MENTION.search(rest):
        # JSON is spoken of elsewhere too: what was taken for the demand may be data, so it counts.
        quoted += tuple(text[s.start : s.stop] for s in spans if s.name != "source")
    only = " ".join(text[s.start : s.stop] for s in spans if s.name == "only")
    explicit = re.search(r"\b(?:object|dictionary|dict|hash|map)\b", phrase.noun, _I) is not None
    explicit = explicit or "object" in only.casefold()
    shape, sure_shape = _shape(phrase, bool(names), explicit or template, rest)
    if shape == "array" and explicit:
        sure_shape = False  # "a JSON array ... Return only the JSON object."
    sure = sure and not (names and _says_more(rest))
    demand = Demand(
        keys=names,
        notes=notes,
        extras=extras,
        ordered=_ORDER.search(rest) is not None,
        shape=shape,
        schema=keys.schema if keys is not None else None,
        source=source,
        quoted=quoted,
        spans=tuple(spans),
        bare=bool(only) or _EXACTLY.search(phrase.noun) is not None,
        sure=sure and sure_shape and not phrase.foreign,
    )
    return demand, rest


def _shape(phrase: Phrase, keyed: bool, explicit: bool, rest: str) -> tuple[str, bool]:
    if _ARRAY.search(phrase.noun):
        return "array", True
    if _PLURAL.search(phrase.noun):
        return "any", False
    if explicit:
        return "object", True
    if not keyed:
        return "any", True
    # "Three cities as JSON with keys ..." may rightly be answered in many ways.
    return "any", not _listish(rest)


def _says_more(rest: str) -> bool:
    """Whether more is said of keys than was read."""
    said = set(_WORD.findall(rest.casefold()))
    return not MORE_SAID.isdisjoint(said) or any(w.startswith(_MORE_STEMS) for w in said)


def _listish(rest: str) -> bool:
    """Whether several things may be meant."""
    listed = not _LISTING.isdisjoint(_WORD.findall(rest.casefold()))
    return listed or _COUNTED.search(rest) is not None


def _extras(clause: str) -> str:
    if re.match(r"[\s\S]{0,30}\b(?:includ\w*|at\s+least)\b", clause, _I):
        return "welcome"
    return "forbidden" if _EXACTLY.search(clause) else "unsaid"


def _key_span(text: str, start: int, stop: int) -> Span:
    opened = text.count("(", start, stop) > text.count(")", start, stop)
    opened = opened or text.count("[", start, stop) > text.count("]", start, stop)
    if opened and text[stop : stop + 1] in (")", "]"):
        stop += 1
    before = text[:start].rstrip()
    if before.endswith("(") and text[stop : stop + 1] == ")":
        start, stop = len(before) - 1, stop + 1
    fence = re.search(r"```[a-z0-9]{0,12}\s*$", text[max(0, start - 20) : start])
    closing = re.match(r"\s*```", text[stop : stop + 40])
    if fence and closing:
        start, stop = start - len(fence.group()), stop + closing.end()
    return Span(start=start, stop=stop, name="keys")


def _source(text: str, view: str, end: int, *, listed: bool) -> tuple[str | None, Span | None]:
    """The text given as data behind the demand; verbatim but for outer white space.

    What a colon behind the key list leads to may belong to the last key, so it is data too.
    """
    match = find_source(view, end) or (_GIVEN.match(text, end) if listed else None)
    if match is None:
        return None, None
    start = match.end()
    stop = len(text)
    given = FENCE.match(text, start) or QUOTE.match(text, start)
    if given and text[given.end() :].strip(" \t\r\n."):
        stop = given.end()
    source = text[start:stop].strip()
    if not source:
        return None, None
    return source, Span(start=start, stop=stop, name="source")


def _quotes(text: str, spans: list[Span] | tuple[Span, ...]) -> tuple[str, ...]:
    rest = rest_of(text, list(spans))
    found = [*FENCE.finditer(rest), *QUOTE.finditer(FENCE.sub("", rest))]
    return tuple(match.group() for match in found)
