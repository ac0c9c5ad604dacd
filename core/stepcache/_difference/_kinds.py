"""What kind of difference a change of tokens is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from stepcache._difference._words import (
    KIND_OF_WORD,
    OPPOSITE_PREFIXES,
    OPPOSITES,
    SIGNS,
)

__all__ = ["Change", "kind_of"]

_QUOTES = frozenset('"“”„«»「」『』')
_CLOSERS = {"“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_LONGEST_LOOKED_AT = 8
_IN_PATHS = frozenset(("/", "\\", "@"))
_SENTENCE_ENDS = frozenset((".", "?", "!", ":", "。", "？", "！"))
_WHATEVER_CASE = frozenset(("negation", "number", "date", "language", "format", "currency", "unit"))
_BEFORE_YEARS = frozenset(
    (
        *("in", "since", "year", "of", "by", "from", "until", "during", "before", "after"),
        *("im", "jahr", "seit", "en", "depuis", "año", "nel", "em", "ano"),
    )
)
_CLOCKS = frozenset(("am", "pm", "uhr", "o'clock"))
# The most telling first: a change of several words is called after the gravest of them.
_ORDER = (
    *("negation", "polarity", "comparison", "quantifier", "date", "currency", "number", "unit"),
    *("time", "language", "format", "length", "id", "path", "name", "person", "word", "sign"),
)
_RANK = {kind: rank for rank, kind in enumerate(_ORDER)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The tokens ``before[start:stop]`` of the old request stand against some of the new one."""

    before: Sequence[str]
    start: int
    stop: int
    after: Sequence[str]
    new_start: int
    new_stop: int

    @property
    def old(self) -> Sequence[str]:
        return self.before[self.start : self.stop]

    @property
    def new(self) -> Sequence[str]:
        return self.after[self.new_start : self.new_stop]


def kind_of(change: Change) -> str:
    """The kind of a change, in kebab-case: ``number``, ``negation``, ``quoted``, ``order``, ..."""
    old, new = change.old[:_LONGEST_LOOKED_AT], change.new[:_LONGEST_LOOKED_AT]
    places = ((change.before, change.start), (change.after, change.new_start))
    if "`" in old or "`" in new or all(_inside(*place, "`") for place in places):
        return "code"
    if _QUOTES.intersection((*old, *new)) or all(_quoted(*place) for place in places):
        return "quoted"
    if _opposite(old, new):
        return "polarity"
    kinds = [
        *(_token_kind(change.before, change.start + i) for i in range(len(old))),
        *(_token_kind(change.after, change.new_start + i) for i in range(len(new))),
    ]
    return min(kinds, key=_RANK.__getitem__, default="sign")


def _token_kind(tokens: Sequence[str], at: int) -> str:
    token = tokens[at]
    before, after = _at(tokens, at - 1), _at(tokens, at + 1)
    if token[0].isnumeric():
        return _number_kind(tokens, at)
    if not token[0].isalpha() and token[0] != "_":
        return SIGNS.get(token, "sign")
    if "_" in token or _humped(token):
        return "id"
    if before in _IN_PATHS or after in _IN_PATHS:
        return "path"
    known = KIND_OF_WORD.get(token.casefold())
    if known in _WHATEVER_CASE or not token[0].isupper() or len(token) == 1:
        return known or "word"
    # "US", "IT" and "WHO" anywhere, "Will" and "May" inside a sentence: somebody, or something.
    inside = before != "" and before not in _SENTENCE_ENDS
    return "name" if known is None or inside or token.isupper() else known


def _number_kind(tokens: Sequence[str], at: int) -> str:
    before, after = _at(tokens, at - 1), _at(tokens, at + 1)
    if before in ("#", "№") or (before == "-" and _at(tokens, at - 2).isupper()):
        return "id"
    if any(KIND_OF_WORD.get(t.casefold()) == "date" for t in (before, after)):
        return "date"
    if _is_year(tokens[at]) and before.casefold() in _BEFORE_YEARS:
        return "date"
    if any(_is_day(tokens, first) for first in (at - 4, at - 2, at)):
        return "date"
    on_clock = ":" in (before, after) and _is_clock(tokens, at)
    return "time" if on_clock or after.casefold() in _CLOCKS else "number"


def _is_year(token: str) -> bool:
    return len(token) == 4 and token.isdecimal() and 1000 <= int(token) <= 2100


def _is_day(tokens: Sequence[str], at: int) -> bool:
    """Do five tokens read like 2024-05-01 or 1/5/24?"""
    parts = tokens[max(at, 0) : at + 5] if at >= 0 else ()
    return (
        len(parts) == 5
        and parts[1] == parts[3]
        and parts[1] in ("-", "/", ".")
        and all(part.isdecimal() and len(part) in (1, 2, 4) for part in parts[::2])
    )


def _is_clock(tokens: Sequence[str], at: int) -> bool:
    """Is this one side of 17:30?"""
    other = _at(tokens, at - 2) if _at(tokens, at - 1) == ":" else _at(tokens, at + 2)
    return all(t.isdecimal() and len(t) <= 2 for t in (tokens[at], other))


def _opposite(old: Sequence[str], new: Sequence[str]) -> bool:
    """Do two words stand against each other that are opposites: "on" and "off", "safe" and
    "unsafe"?"""
    for one in {t.casefold() for t in old}:
        for other in {t.casefold() for t in new}:
            if frozenset((one, other)) in OPPOSITES:
                return True
            short, long = sorted((one, other), key=len)
            if _turned(short, long):
                return True
            if short != long and _stem(short, "ful") and _stem(short, "ful") == _stem(long, "less"):
                return True
    return False


def _turned(word: str, other: str) -> bool:
    """Is the other one the word behind "un" or its like?"""
    return len(word) > 3 and other.endswith(word) and other[: -len(word)] in OPPOSITE_PREFIXES


def _humped(token: str) -> bool:
    """Does a capital follow a small letter?"""
    return not token.islower() and any(a.islower() and b.isupper() for a, b in pairwise(token))


def _stem(word: str, ending: str) -> str:
    return word.removesuffix(ending) if word.endswith(ending) else ""


def _at(tokens: Sequence[str], at: int) -> str:
    return tokens[at] if 0 <= at < len(tokens) else ""


def _inside(tokens: Sequence[str], at: int, sign: str) -> bool:
    """Is an odd number of these signs before a place?"""
    return tokens[:at].count(sign) % 2 == 1


def _quoted(tokens: Sequence[str], at: int) -> bool:
    """Is a place between quotation marks?"""
    if _inside(tokens, at, '"'):
        return True
    if _CLOSERS.keys().isdisjoint(tokens[:at]):
        return False
    closers: list[str] = []
    for token in tokens[:at]:
        if closers and token == closers[-1]:
            closers.pop()
        elif token in _CLOSERS:
            closers.append(_CLOSERS[token])
    return bool(closers)
