"""Reading a prompt: does it demand JSON, with which keys, out of which text?

The parser only ever takes phrases it knows (see ``_words``); everything else stays residue, where
one changed word is a difference. So a phrase it does not know costs a miss, never a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from stepcache._types import Declined, Span
from stepcache.tasks.json_answer._keys import KeyList, count_agrees, read_list, read_template
from stepcache.tasks.json_answer._words import (
    ADJECTIVES,
    ASK_VERBS,
    CODE_NOUNS,
    FOREIGN_DEMANDS,
    FORMAT_NOUNS,
    LISTING,
    POLITE,
    STYLES,
    SUBJECT,
    TOPIC_VERBS,
)

__all__ = ["Demand", "read"]

_I = re.IGNORECASE
_MAX_MENTIONS = 24
_MAX_NOUNS = 48
_REACH = 600
_MAX_TEMPLATES = 32
_JSON = rf"json(?![\w-])(?:\s+{FORMAT_NOUNS}\b){{0,2}}"
_BEFORE = rf"(?:(?:{ADJECTIVES}|(?P<style>{STYLES}))\s+){{0,4}}"
_OF = r"(?:(?:an?\s+)?(?:array|list)\s+of\s+)?"

_AS = re.compile(
    rf"\b(?P<lead>as|in|into|to)\s+{_OF}{_BEFORE}(?P<following>following\s+)?(?P<json>{_JSON})", _I
)
_ASK = re.compile(
    rf"(?:{POLITE}\s+)?\b{ASK_VERBS}(?:\s+(?:back|me|us)){{0,2}}"
    rf"(?:\s+(?:only|just))?(?:\s+(?:with|in|as|using))?\s+{_OF}{_BEFORE}(?P<json>{_JSON})",
    _I,
)
_STATED = re.compile(
    rf"(?:\b(?:your|the)\s+)?\b(?:output|answer|response|result|reply)\s+(?:must|should|has\s+to|"
    rf"needs\s+to|shall)\s+be\s+(?:in\s+)?{_BEFORE}(?P<json>{_JSON})"
    rf"|\b(?:output|answer|response)(?:\s+format)?\s*:\s*(?P<json2>{_JSON})"
    rf"|\bjson\s+(?:mode|output)\s*:\s*(?:enabled|on|true)\b"
    rf"|\b(?:only\s+)?(?:valid\s+)?json\s+only\b|\bonly\s+valid\s+json\b",
    _I,
)
_NOUN = re.compile(
    rf"(?:^|(?<=[\n.!?:]))\s{{0,3}}(?:{POLITE}\s+)?(?:an?\s+|the\s+)?(?:valid\s+)?(?P<json>{_JSON})"
    r"(?=\s*(?:[:,(]|with\b|containing\b|having\b|including\b|describing\b|about\b|that\b|for\b))",
    _I,
)
_FOREIGN = re.compile(rf"(?:\b|(?<=\W)){FOREIGN_DEMANDS}(?![a-z])", _I)

_KEYS = re.compile(
    r"(?:(?P<prefix>\b(?:and\s+)?(?:with|using|having|containing|including|includes?|contains?|has|have|use|"
    r"(?:that|which)\s+(?:has|have|contains?|includes?)|(?:it\s+)?(?:should|must)\s+"
    r"(?:have|contain|include))\s+)"
    r"(?P<least>at\s+least\s+)?)?"
    r"(?:(?:exactly|only|just|precisely)\s+)?(?:(?:the|these|its|this|a)\s+)?"
    r"(?:(?:exactly|only|following|required|json|top-level)\s+){0,2}"
    r"(?:(?P<count>\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s+)?"
    r"(?:(?:required|json|top-level)\s+)?"
    r"\b(?P<noun>keys?|fields?|property|properties|attributes?)\b"
    r"(?P<link>\s*(?:(?:are|is|be|named|called|being|should\s+be|must\s+be|as\s+follows)\b)?"
    r"\s*(?:only\s*)?(?:[:(\[–—]|-\s)?\s*)",
    _I,
)
_BARE_LIST = re.compile(r"\s*(?:(?:with|containing|including|having)\b\s*:?|:)\s*(?:only\s+)?", _I)
_SOURCE = re.compile(
    r"\b(?:from|text|input|data|source|passage|document|article|review|e-?mail|message|sentence|"
    r"paragraph|content|context|transcript|note|bio|biography|invoice|receipt|log|below)"
    r"(?:\s+(?:text|below|sentence|passage|data))?\s*:\s*",
    _I,
)
_FENCE = re.compile(r"```[^\n`]{0,40}\n[^`]*+```|~~~[^\n~]{0,40}\n[^~]*+~~~")
_QUOTE = re.compile(r'"[^"\n]*+"|“[^“”]*+”|«[^«»]*+»|`[^`\n]*+`')
_LEADS = re.compile(rf"(?:{POLITE}\s+)?{TOPIC_VERBS}\s+", _I)
_SUBJECT = re.compile(rf"\s{{0,3}},?\s{{1,3}}{SUBJECT}\s{{1,3}}(?!\d|{LISTING}\b)", _I)
_ONLY_SENTENCE = re.compile(
    rf"(?:^|(?<=[\n.!?]))[ \t]*(?:{POLITE}\s+)?(?:(?:return|respond\s+with|reply\s+with|output|"
    r"give|provide)\s+(?:only\s+|just\s+)?(?:the\s+)?(?:valid\s+)?json(?:\s+only)?|(?:valid\s+)?json\s+"
    r"only)[ \t]*(?:[.!]|\n|$)",
    _I,
)
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
_QUESTION = re.compile(
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
_TEMPLATE = re.compile(r"\{\s{0,80}\"[^\"\n]{1,200}\"\s{0,3}:")
_EXACTLY = re.compile(
    r"\b(?:exactly|precisely|only|just|nothing\s+else|no\s+others?|no\s+other\s+keys)\b", _I
)
_MORE_SAID = re.compile(
    r"\b(?:keys?|fields?|property|properties|attributes?|includ\w*|add|adding|additional\w*|also|"
    r"optional\w*|extra|besides|nested|objects?|schema)\b",
    _I,
)
_MENTION = re.compile("json", _I)
_ARTICLE = re.compile(r"\bthe\s", _I)
_KEY_NOUN = re.compile(r"\b(?:keys?|fields?|property|properties|attributes?)\b", _I)
_SLOT = re.compile(
    r"(?:format|template|schema|structure|like|form|shape|follows|following|this|these|keys|fields|"
    r"json|object|example|as|exactly|with)\W{0,6}(?:```[a-z0-9]{0,12}\s*)?$",
    _I,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_TRAILING = re.compile(r"[\s.]*\Z")
_LISTISH = re.compile(rf"\b{LISTING}\b", _I)
_ORDER = re.compile(r"\border(?:ed)?\b", _I)
_ARRAY = re.compile(r"\b(?:array|list)\b", _I)
_PLURAL = re.compile(r"\bobjects\b", _I)


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
    sure: bool = True
    """False where a part that may matter could not be read."""


@dataclass(slots=True)
class _Phrase:
    start: int
    stop: int
    noun: str
    weak: bool
    pieces: tuple[tuple[int, int], ...]
    foreign: bool = False


def read(text: str, *, named: bool) -> Demand | Declined:
    """The demand of a prompt.

    Args:
        text: The closing user message.
        named: True when something outside the text (a schema, a response format, the caller) has
            already said that JSON is wanted; then the text cannot be declined.
    """
    view = _outside_data(text)
    phrase, why = _demand(view)
    if phrase is None:
        if not named:
            return Declined(reason=why)
        return Demand(quoted=_quotes(text, ()), source=None, shape="any")
    keys, key_start, sure = _keys(text, view, phrase)
    if phrase.weak and keys is None and _QUESTION.match(_sentence(view, phrase.start)):
        if not named:
            return Declined(reason="a question about JSON, not a demand for it")
        return Demand(quoted=_quotes(text, ()), shape="any")
    return _assemble(text, view, phrase, keys, key_start, sure)


# --- finding the demand ------------------------------------------------------------------------


def _outside_data(text: str) -> str:
    """The text with code and quoted strings blanked, so that no instruction is read inside."""
    text = _FENCE.sub(lambda m: "\x00" * len(m.group()), text)
    return _QUOTE.sub(lambda m: "\x00" * len(m.group()), text)


def _bounds(view: str, at: int) -> tuple[int, int]:
    """Start and stop of the sentence that holds position ``at``, at most ``_REACH`` away."""
    start = max(0, at - _REACH)
    for match in _SENTENCE_END.finditer(view, start, at):
        start = match.end()
    stop = _SENTENCE_END.search(view, at, at + _REACH)
    return start, stop.end() if stop else min(len(view), at + _REACH)


def _sentence(view: str, at: int) -> str:
    start, stop = _bounds(view, at)
    return view[start:stop]


def _windows(view: str, before: int, after: int) -> list[tuple[int, int]]:
    """Stretches around the first mentions of JSON: nothing further away can belong to a demand."""
    return [
        (max(0, match.start() - before), match.end() + after)
        for match in islice(_MENTION.finditer(view), _MAX_MENTIONS)
    ]


def _demand(view: str) -> tuple[_Phrase | None, str]:
    why = "the text does not demand JSON"
    if "json" not in view.casefold():
        return None, why
    for phrase in _phrases(view):
        refused = _about_json(view, phrase)
        if refused is None:
            return phrase, ""
        why = refused
    return None, why


def _phrases(view: str) -> list[_Phrase]:
    found: dict[tuple[int, int], _Phrase] = {}
    for window in _windows(view, 160, 120):
        for pattern in (_ASK, _STATED, _NOUN):
            for match in pattern.finditer(view, *window):
                found.setdefault(match.span(), _phrase(match, weak=False))
        for match in _AS.finditer(view, *window):
            if _is_as_demand(view, match):
                formatish = _FORMATISH.match(match.group("json")) is not None
                found.setdefault(match.span(), _phrase(match, weak=not formatish))
        for match in _FOREIGN.finditer(view, *window):
            foreign = _Phrase(*match.span(), "", True, (match.span(),), foreign=True)
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
    return _CONVERTS.search(_sentence(view, match.start())) is not None


def _phrase(match: re.Match[str], *, weak: bool) -> _Phrase:
    groups = match.groupdict()
    noun = match.group()
    pieces = [(match.start(), match.end())]
    if groups.get("style"):
        start, stop = match.span("style")
        pieces = [(match.start(), start), (stop, match.end())]
    return _Phrase(match.start(), match.end(), noun, weak, tuple(pieces))


def _about_json(view: str, phrase: _Phrase) -> str | None:
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


# --- keys --------------------------------------------------------------------------------------


def _keys(text: str, view: str, phrase: _Phrase) -> tuple[KeyList | None, int, bool]:
    """The key list, where its clause starts, and whether every key wording could be read."""
    found: list[tuple[int, KeyList]] = []
    sure = True
    limit = _source_start(view, phrase.stop, 0)
    for match in _key_clauses(view):
        if limit is not None and match.start() >= limit and found:
            break
        listed = _listed(text, match)
        if listed is None:
            continue
        sure = sure and listed.readable and count_agrees(match.group("count"), listed.keys)
        if listed.readable:
            found.append((match.start(), listed))
    if not found:
        found = _bare(text, view, phrase) or _template(text, phrase, limit)
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


def _bare(text: str, view: str, phrase: _Phrase) -> list[tuple[int, KeyList]]:
    match = _BARE_LIST.match(view, phrase.stop)
    if match is None or phrase.foreign:
        return []
    listed = read_list(text, match.end())
    return [(match.start(), listed)] if listed and listed.readable and listed.certain else []


def _template(text: str, phrase: _Phrase, limit: int | None) -> list[tuple[int, KeyList]]:
    for opened in islice(_TEMPLATE.finditer(text), _MAX_TEMPLATES):
        at = opened.start()
        if limit is not None and at >= limit:
            break
        if _SLOT.search(text, max(0, at - 60), at):
            listed = read_template(text, at)
            if listed is not None:
                return [(at, listed)]
    return []


# --- putting it together -----------------------------------------------------------------------


def _source_start(view: str, *after: int) -> int | None:
    match = _SOURCE.search(view, max(after))
    return match.end() if match else None


def _assemble(
    text: str, view: str, phrase: _Phrase, keys: KeyList | None, key_start: int, sure: bool
) -> Demand:
    spans = [Span(start=a, stop=b, name="json") for a, b in phrase.pieces if a < b]
    names: tuple[str, ...] = ()
    notes: dict[str, str] = {}
    extras, end = "unsaid", phrase.stop
    template = False
    if keys is not None:
        names, notes, end = keys.keys, keys.notes, max(phrase.stop, keys.stop)
        clause = view[key_start : keys.stop]
        extras = _extras(clause)
        template = text[key_start : key_start + 1] == "{"
        spans.append(_key_span(text, key_start, keys.stop))
    source, source_span = _source(text, view, end)
    if source_span is not None:
        spans.append(source_span)
    data = source_span.start if source_span else len(text)
    spans = _grown(text, view, _joined(spans), data, bool(names))
    rest = _rest(text, spans)
    quoted = _quotes(text, spans)
    if _MENTION.search(rest):
        # JSON is spoken of elsewhere too: what was taken for the demand may be data, so it counts.
        quoted += tuple(text[s.start : s.stop] for s in spans if s.name != "source")
    explicit = re.search(r"\b(?:object|dictionary|dict|hash|map)\b", phrase.noun, _I) is not None
    shape, sure_shape = _shape(phrase, bool(names), explicit or template, rest)
    sure = sure and not (names and _MORE_SAID.search(rest))
    return Demand(
        keys=names,
        notes=notes,
        extras=extras,
        ordered=_ORDER.search(rest) is not None,
        shape=shape,
        source=source,
        quoted=quoted,
        spans=tuple(spans),
        sure=sure and sure_shape and not phrase.foreign,
    )


def _shape(phrase: _Phrase, keyed: bool, explicit: bool, rest: str) -> tuple[str, bool]:
    if _ARRAY.search(phrase.noun):
        return "array", True
    if _PLURAL.search(phrase.noun):
        return "any", False
    if explicit:
        return "object", True
    if not keyed:
        return "any", True
    # "Three cities as JSON with keys ..." may rightly be answered in many ways.
    return "any", _LISTISH.search(rest) is None


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


def _source(text: str, view: str, end: int) -> tuple[str | None, Span | None]:
    """The text given as data behind the demand; verbatim but for outer white space."""
    match = _SOURCE.search(view, end)
    if match is None:
        return None, None
    start = match.end()
    stop = len(text)
    given = _FENCE.match(text, start) or _QUOTE.match(text, start)
    if given and text[given.end() :].strip(" \t\r\n."):
        stop = given.end()
    source = text[start:stop].strip()
    if not source:
        return None, None
    return source, Span(start=start, stop=stop, name="source")


def _joined(spans: list[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.stop)):
        if kept and span.start < kept[-1].stop:
            if span.stop > kept[-1].stop:
                kept.append(Span(start=kept[-1].stop, stop=span.stop, name=span.name))
            continue
        kept.append(span)
    return kept


def _grown(text: str, view: str, spans: list[Span], data: int, keyed: bool) -> list[Span]:
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
    grown = _joined(
        grown
        + [
            Span(start=m.start(), stop=m.end(), name="json")
            for low, high in _windows(view, 120, 40)
            for m in _ONLY_SENTENCE.finditer(view, low, min(high, data))
        ]
    )
    if keyed:
        grown = _joined(grown + _lead(view, grown, data))
    grown = _joined([*grown, *_edges(text, grown, data)])
    return _joined([_punctuated(text, span, data) for span in grown])


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


def _rest(text: str, spans: list[Span]) -> str:
    pieces, at = [], 0
    for span in spans:
        pieces.append(text[at : span.start])
        at = max(at, span.stop)
    return " ".join([*pieces, text[at:]])


def _quotes(text: str, spans: list[Span] | tuple[Span, ...]) -> tuple[str, ...]:
    rest = _rest(text, list(spans))
    found = [*_FENCE.finditer(rest), *_QUOTE.finditer(_FENCE.sub("", rest))]
    return tuple(match.group() for match in found)
