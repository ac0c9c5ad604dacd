"""Finding the clause, bare list or template of a prompt that names the keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from stepcache.tasks.json_answer._demand import FENCE, QUOTE, Phrase
from stepcache.tasks.json_answer._keys import (
    AS_KEYS,
    KeyList,
    count_agrees,
    read_foreign_list,
    read_list,
    read_template,
)
from stepcache.tasks.json_answer._words import FOREIGN_KEYS

__all__ = ["find_keys", "find_source"]

_I = re.IGNORECASE
_MAX_NOUNS = 48
_MAX_TEMPLATES = 32
_COUNT = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_KEYS = re.compile(
    # At a word's edge, where most places fail at once; a count is read in the middle of one too.
    rf"(?:\b|(?={_COUNT}\s))"
    r"(?:(?P<prefix>\b(?:and\s+)?(?:with|using|having|containing|including|includes?|"
    r"contains?|has|have|use|whose|(?:that|which)\s+(?:has|have|contains?|includes?)|(?:(?:it|(?:the|your)\s+(?:json|object|answer|"
    r"output|response|result))\s+)?(?:should|must|has\s+to|needs\s+to)\s+"
    r"(?:have|contain|include))\s+)"
    r"(?P<least>at\s+least\s+)?)?"
    r"(?:(?:exactly|only|just|precisely)\s+)?(?:(?:the|these|its|this|a)\s+)?"
    r"(?:(?:exactly|only|single|following|required|json|top-level)\s+){0,2}"
    rf"(?:(?P<count>{_COUNT})\s+)?"
    r"(?:(?:required|json|top-level)\s+)?"
    r"\b(?P<noun>keys?|fields?|property|properties|attributes?)\b"
    r"(?P<link>\s*(?:required|needed)?\s*(?:(?:are|is|be|named|called|being|should\s+be|must\s+be|as\s+follows)\b)?"
    r"\s*(?:only\s*)?(?:[:(\[–—]|-\s)?\s*)",
    _I,
)
_FOREIGN_KEYS = re.compile(rf"(?<![A-Za-z\u00c0-\u04ff]){FOREIGN_KEYS}\s*[:\uff1a]?\s*", _I)
_EXTRACTED = re.compile(
    r"(?:^|(?<=[\n.!?:]))\s{0,3}(?:please\s+|(?:can|could)\s+you\s+(?:please\s+)?)?"
    r"(?P<verb>extract|pull\s+out|return|give\s+me|give|list|get|find|identify)\s+"
    r"(?:only\s+)?(?:the\s+)?",
    _I,
)
_FROM = re.compile(r"\s*,?\s+from\b", _I)
_SCHEMA_CLAUSE = re.compile(
    r"(?:,?\s*\b(?:(?:(?:that|which)\s+)?(?:satisf(?:ies|y|ying)|match(?:es|ing)?|follow(?:s|ing)?|"
    r"conform(?:s|ing)?\s+to|validates?\s+against|(?:is\s+)?valid\s+against|according\s+to|"
    r"adher(?:es|ing)\s+to|obey(?:s|ing)?|with|using)\s+)?(?:(?:this|the|following|given)\s+){0,2}"
    r"(?:json\s+)?schema\b(?:\s+below)?\s*[:.]?\s*(?:```[a-z0-9]{0,12}\s*)?)\Z",
    _I,
)
_BARE_LIST = re.compile(
    r"\s*(?:,?\s*(?:with|containing|including|having)\b\s*:?|:)\s*(?:only\s+)?", _I
)
_MAX_COLONS = 32
_SOURCE = re.compile(
    r"\b(?:from|text|input|data|source|passage|document|article|review|e-?mail|message|sentence|"
    r"paragraph|content|context|transcript|note|bio|biography|invoice|receipt|log|below)"
    r"(?:\s+(?:text|below|sentence|passage|data))?\s*:\s*",
    _I,
)
_TEMPLATE = re.compile(r"\{\s{0,80}\"[^\"\n]{1,200}\"\s{0,3}:")
_KEY_NOUN = re.compile(r"\b(?:keys?|fields?|property|properties|attributes?)\b", _I)
_SLOT = re.compile(
    r"(?:format|template|schema|structure|like|form|shape|follows|following|this|these|keys|fields|"
    r"json|object|example|as|exactly|with)\W{0,6}(?:```[a-z0-9]{0,12}\s*)?$",
    _I,
)


def find_keys(text: str, view: str, phrase: Phrase) -> tuple[KeyList | None, int, bool]:
    """The key list, where its clause starts, and whether every key wording could be read."""
    if phrase.foreign:
        return _foreign(text, view)
    found: list[tuple[int, KeyList]] = []
    sure = True
    limit = _source_start(view, phrase.stop)
    given = (FENCE.match(text, limit) or QUOTE.match(text, limit)) if limit is not None else None
    for match in _key_clauses(view):
        if limit is not None and match.start() >= limit and given is None:
            break  # inside the text given as data
        listed = _listed(text, match)
        if listed is None:
            continue
        sure = sure and listed.readable and count_agrees(match.group("count"), listed.keys)
        if listed.readable:
            found.append((match.start(), listed))
    if not found:
        found = _bare(text, view, phrase) or _template(text, phrase, limit)
    if not found and sure:
        found = _extracted(text, view, phrase, limit)
        sure = not found  # the model may well name its keys otherwise
        if found:
            return found[0][1], found[0][0], False
    if not found or not sure:
        return None, 0, sure
    if len({frozenset(k.keys) for _, k in found}) > 1:
        return None, 0, False
    start, listed = found[0]
    return listed, start, True


def _key_clauses(view: str) -> Iterator[re.Match[str]]:
    for noun in islice(_KEY_NOUN.finditer(view), _MAX_NOUNS):
        for match in _KEYS.finditer(view, max(0, noun.start() - 120), noun.end() + 60):
            if match.span("noun") == noun.span():
                yield match


def _listed(text: str, match: re.Match[str]) -> KeyList | None:
    link, at = match.group("link").strip().casefold(), match.end()
    quoted = text[at : at + 1] in "\"`'“" and at < len(text)
    prefix = match.group("prefix")
    if text[at : at + 1] == "{" or not (prefix or link or quoted):
        return None
    listed = read_list(text, at)
    if listed is None or prefix or quoted or ":" in link or link.startswith(("named", "called")):
        return listed
    # "The fields are red" speaks of a landscape; "The keys are a and b" does not.
    keyish = match.group("noun").casefold() == "keys"
    return listed if keyish and listed.certain and listed.readable else None


def _bare(text: str, view: str, phrase: Phrase) -> list[tuple[int, KeyList]]:
    match = _BARE_LIST.match(view, phrase.stop)
    if match is None or phrase.foreign:
        return []
    listed = read_list(text, match.end())
    if listed is None or not listed.readable:
        return []
    named = AS_KEYS.match(view, listed.stop)
    if named:
        return [(match.start(), replace(listed, stop=named.end()))]
    return [(match.start(), listed)] if listed.certain and "," not in match.group() else []


def _foreign(text: str, view: str) -> tuple[KeyList | None, int, bool]:
    """The one list behind a clause of another language; more than one is not read."""
    clauses = list(islice(_FOREIGN_KEYS.finditer(view), 2))
    if len(clauses) != 1:
        return None, 0, not clauses
    listed = read_foreign_list(text, clauses[0].end())
    return (listed, clauses[0].start(), True) if listed else (None, 0, False)


def _extracted(
    text: str, view: str, phrase: Phrase, limit: int | None
) -> list[tuple[int, KeyList]]:
    """``Extract name and age as JSON from``: what is extracted are the keys, where it is plain."""
    for match in _EXTRACTED.finditer(view, max(0, phrase.start - 300), phrase.start):
        extracts = match.group("verb").casefold() in ("extract", "pull out")
        if not extracts and limit is None and not _FROM.match(view, phrase.stop):
            continue
        listed = read_list(text[: phrase.start].rstrip(" ,"), match.end())
        if listed is None or not listed.readable or not listed.certain or listed.notes:
            continue
        if text[listed.stop : phrase.start].strip(" ,"):
            continue
        if any(key[:1].isupper() for key in listed.keys):
            continue  # "Extract Paris and Rome" speaks of things
        return [(match.end(), listed)]
    return []


def _template(text: str, phrase: Phrase, limit: int | None) -> list[tuple[int, KeyList]]:
    for opened in islice(_TEMPLATE.finditer(text), _MAX_TEMPLATES):
        at = opened.start()
        if limit is not None and at >= limit:
            break
        if _SLOT.search(text, max(0, at - 60), at):
            listed = read_template(text, at)
            if listed is not None:
                named = _SCHEMA_CLAUSE.search(text, max(0, at - 120), at)
                return [(named.start() if named and listed.schema else at, listed)]
    return []


def _source_start(view: str, after: int) -> int | None:
    match = find_source(view, after)
    return match.end() if match else None


def find_source(view: str, after: int) -> re.Match[str] | None:
    """What leads to the text given as data, "from:" and the like, at or behind a position."""
    at = after
    for _ in range(_MAX_COLONS):  # before a colon first: most texts have none
        colon = view.find(":", at)
        if colon < 0:
            return None
        if _SOURCE.search(view, max(after, colon - 60), colon + 1):
            return _SOURCE.search(view, max(after, colon - 60))
        at = colon + 1
    return _SOURCE.search(view, at)
