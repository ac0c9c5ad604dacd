"""Finding the phrase that demands JSON, and telling it from talk about JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice

from stepcache.tasks.json_answer._words import (
    ADJECTIVES,
    ASK_VERBS,
    CODE_NOUNS,
    FOREIGN_DEMANDS,
    FORMAT_NOUNS,
    ONLY_SENTENCE,
    POLITE,
    STYLES,
)

__all__ = [
    "FENCE",
    "MENTION",
    "ONLY",
    "QUESTION",
    "QUOTE",
    "Phrase",
    "find_demand",
    "outside_data",
    "sentence_at",
    "windows",
]

_I = re.IGNORECASE
_MAX_MENTIONS = 24
_REACH = 600
_JSON = rf"json(?![\w-])(?:\s+{FORMAT_NOUNS}\b){{0,2}}"
_BEFORE = rf"(?:(?:{ADJECTIVES}|(?P<style>{STYLES}))\s+){{0,4}}"
_OF = r"(?:(?:an?\s+)?(?:array|list)\s+of\s+)?"
_AS = re.compile(
    rf"\b(?P<lead>in\s+the\s+(?:form|shape)\s+of|as|in|into|to)\s+{_OF}{_BEFORE}(?P<following>following\s+)?(?P<json>{_JSON})",
    _I,
)
_ASK = re.compile(
    rf"\b(?:{POLITE}\s+)?{ASK_VERBS}(?:\s+(?:back|me|us)){{0,2}}"
    rf"(?:\s+(?:only|just))?(?:\s+(?:with|in|into|as|using))?\s+{_OF}{_BEFORE}(?P<json>{_JSON})",
    _I,
)
_STATED = re.compile(
    rf"\b(?:(?:(?:your|the)\s+)?(?:output|answer|response|result|reply)\s+(?:must|should|has\s+to|"
    rf"needs\s+to|shall)\s+be\s+(?:in\s+)?{_BEFORE}(?P<json>{_JSON})"
    rf"|(?:output|answer|response)(?:\s+format)?\s*:\s*(?P<json2>{_JSON})"
    rf"|use\s+(?:an?|one)\s+json\s+object(?=\s+(?:with|whose|that|having|containing)\b)"
    rf"|json\s+(?:mode|output)\s*:\s*(?:enabled|on|true)\b"
    rf"|(?:only\s+)?(?:valid\s+)?json\s+only\b|only\s+valid\s+json\b)",
    _I,
)
_NOUN = re.compile(
    rf"(?:^|(?<=[\n.!?:]))\s{{0,3}}(?:{POLITE}\s+)?(?:an?\s+|the\s+)?(?:valid\s+)?(?P<json>{_JSON})"
    r"(?=\s*(?:[:,(]|with\b|containing\b|having\b|including\b|describing\b|about\b|that\b|for\b))",
    _I,
)
ONLY = re.compile(
    rf"(?:^|(?<=[\n.!?]))[ \t]*(?:{POLITE}\s+)?{ONLY_SENTENCE}[ \t]*(?:[.!]+|(?=\n)|$)", _I
)
_FOREIGN = re.compile(rf"(?<![A-Za-z\u00c0-\u04ff]){FOREIGN_DEMANDS}(?![a-z])", _I)
FENCE = re.compile(r"```[^\n`]{0,40}\n[^`]*+```|~~~[^\n~]{0,40}\n[^~]*+~~~")
QUOTE = re.compile(r'"[^"\n]*+"|“[^“”]*+”|«[^«»]*+»|`[^`\n]*+`')
_NEGATED = re.compile(
    r"(?:\bnot|n['\u2019]t|\bnever|\bno|\bwithout|\binstead\s+of|\brather\s+than|\bavoid|\bnor|"
    r"\bnon|\bthan|\bstop)(?:\s+[\w/-]+){0,3}\s*$",
    _I,
)
_AFTER_JSON = re.compile(
    r"\s+(?:schema|schemas|parser|parsing|serializer|library|syntax|tutorial|encoder|decoder|"
    r"validator|linter|viewer|examples?|samples?|questions?|course|tips|jokes?|path|lines|web\s+token|api|rpc|ld|patch|pointer|5|files|keys\s+in)\b",
    _I,
)
_OTHER_FORMAT = re.compile(
    r"\b(?:as|in|into|to)\s+(?:an?\s+|valid\s+)?(?:yaml|xml|csv|toml|html|markdown|protobuf|bson|"
    r"sql|avro|parquet|excel|plain\s+text|prose|a\s+table|table)\b",
    _I,
)
_MAKES_CODE = re.compile(
    r"\b(?:write|implement|build|develop|code|create|make|design|generate|give|show|need|want|"
    rf"provide|refactor|fix|explain)\b(?:\s+[\w+#./-]{{1,30}}){{0,6}}?\s+{CODE_NOUNS}s?\b",
    _I,
)
_CODE_CONTEXT = re.compile(
    r"\b(?:flask|django|express|fastapi|spring\s+boot|rails|laravel|endpoint|middleware|curl|ajax|"
    r"axios|servlet|graphql|rest\s+api|http\s+(?:response|request|handler)|web\s+handler)\b",
    _I,
)
QUESTION = re.compile(
    r"\s*(?:how|why|what|when|which|where|who|is|are|does|do|did|can|should|could|explain|compare|"
    r"discuss|teach|tell\s+me\s+(?:how|why|what))\b(?!\s+you\b)",
    _I,
)
_CONVERTS = re.compile(
    r"\b(?:convert|transform|turn|translate|map|parse|serialise|serialize|format|extract|put|"
    r"rewrite|summarise|summarize|structure|encode|export|render|reformat)\b",
    _I,
)
_FORMATISH = re.compile(r"json\s+(?:format|structure|form|template|object|response|output)\b", _I)
_IMPERATIVE = re.compile(
    r"(?:^|[.!?\n,;:(\u2022-]|\b(?:and|then|please|kindly|just|only|also|must|always|you\s+should|"
    r"you\s+to|now))\s*$",
    _I,
)
MENTION = re.compile("json", _I)
_ARTICLE = re.compile(r"\bthe\s", _I)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")


@dataclass(slots=True)
class Phrase:
    start: int
    stop: int
    noun: str
    weak: bool
    pieces: tuple[tuple[int, int], ...]
    foreign: bool = False
    only: bool = False
    """A sentence that demands the JSON and nothing beside it."""


def outside_data(text: str) -> str:
    """The text with code and quoted strings blanked, so that no instruction is read inside."""
    text = FENCE.sub(lambda m: "\x00" * len(m.group()), text)
    return QUOTE.sub(lambda m: "\x00" * len(m.group()), text)


def _bounds(view: str, at: int) -> tuple[int, int]:
    """Start and stop of the sentence that holds position ``at``, at most ``_REACH`` away."""
    start = max(0, at - _REACH)
    for match in _SENTENCE_END.finditer(view, start, at):
        start = match.end()
    stop = _SENTENCE_END.search(view, at, at + _REACH)
    return start, stop.end() if stop else min(len(view), at + _REACH)


def sentence_at(view: str, at: int) -> str:
    start, stop = _bounds(view, at)
    return view[start:stop]


def windows(view: str, before: int, after: int) -> list[tuple[int, int]]:
    """Stretches around the first mentions of JSON: nothing further away can belong to a demand."""
    return [
        (max(0, match.start() - before), match.end() + after)
        for match in islice(MENTION.finditer(view), _MAX_MENTIONS)
    ]


def find_demand(view: str) -> tuple[Phrase | None, str]:
    why = "the text does not demand JSON"
    if "json" not in view.casefold():
        return None, why
    for phrase in _phrases(view):
        refused = _about_json(view, phrase)
        if refused is None:
            return phrase, ""
        why = refused
    return None, why


def _phrases(view: str) -> list[Phrase]:
    found: dict[tuple[int, int], Phrase] = {}
    for window in windows(view, 160, 120):
        for pattern in (_ASK, _STATED, _NOUN):
            for match in pattern.finditer(view, *window):
                found.setdefault(match.span(), _phrase(match, weak=False))
        for match in _AS.finditer(view, *window):
            if _is_as_demand(view, match):
                formatish = _FORMATISH.match(match.group("json")) is not None
                found.setdefault(match.span(), _phrase(match, weak=not formatish))
        for match in ONLY.finditer(view, *window):
            if MENTION.search(match.group()):
                found[match.span()] = replace(_phrase(match, weak=False), only=True)
        for match in _FOREIGN.finditer(view, *window):
            foreign = Phrase(*match.span(), "", True, (match.span(),), foreign=True)
            found.setdefault(match.span(), foreign)
    # The earliest first; of two that start together or overlap, the longer.
    return sorted(found.values(), key=lambda p: (p.start, -p.stop))


def _is_as_demand(view: str, match: re.Match[str]) -> bool:
    """Whether "in the JSON" or "to JSON" leads to a form of answer and not to an input."""
    formatish = _FORMATISH.match(match.group("json")) is not None
    article = _ARTICLE.search(match.group()) is not None
    if (match.group("following") or article) and not formatish:
        return False
    if match.group("lead").casefold() != "to":
        return True
    return _CONVERTS.search(sentence_at(view, match.start())) is not None


def _phrase(match: re.Match[str], *, weak: bool) -> Phrase:
    groups = match.groupdict()
    noun = match.group()
    pieces = [(match.start(), match.end())]
    if groups.get("style"):
        start, stop = match.span("style")
        pieces = [(match.start(), start), (stop, match.end())]
    return Phrase(match.start(), match.end(), noun, weak, tuple(pieces))


def _about_json(view: str, phrase: Phrase) -> str | None:
    """Why a phrase that mentions JSON is no demand for it; None when it is one."""
    start, stop = _bounds(view, phrase.start)
    before, sentence = view[start : phrase.start], view[start:stop]
    if _NEGATED.search(before[-120:]):
        return "JSON is refused, not demanded"
    if _AFTER_JSON.match(view, phrase.stop):
        return "asks for something about JSON"
    if _MAKES_CODE.search(sentence[:600]):
        return "asks for code or text about JSON"
    if _OTHER_FORMAT.search(sentence):
        return "asks for another format"
    if _CODE_CONTEXT.search(sentence):
        return "asks about programming with JSON"
    asks = re.match(ASK_VERBS, view[phrase.start : phrase.stop], _I)
    if asks and not _IMPERATIVE.search(before[-40:]):
        return "mentions JSON without demanding it"
    return None
