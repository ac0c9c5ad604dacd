"""Closed lists of the words with which people ask for JSON, each neutral only in its own place.

A word is never neutral as such: "keys", "the", "with" or "format" may belong to the topic
("The Who", "a house with fields"). So the task's ``neutral`` set is empty, and what is left out of
the residue is left out by position: the phrase that demands JSON, the clause that names the keys,
the verb that opens the request, and the punctuation that touches one of these. Only phrases listed
here count; every other word of a request stays, and has to be equal in order.

Left in the residue on purpose, because they can change an answer: ``for``, ``from``, ``to``,
``of``, ``by``; articles of the topic; negations; numbers; every verb but the few below; adjectives
of layout ("minified", "nested").
"""

from __future__ import annotations

__all__ = [
    "ADJECTIVES",
    "ASK_VERBS",
    "CODE_NOUNS",
    "FOREIGN_DEMANDS",
    "FORMAT_NOUNS",
    "INSTRUCTION_VERBS",
    "LISTING",
    "MORE_KEYS",
    "NOT_KEYS",
    "NUMBERS",
    "POLITE",
    "STYLES",
    "SUBJECT",
    "TOPIC_VERBS",
]


def _set(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


POLITE = (
    r"(?:please|kindly|(?:can|could|would|will)\s+you(?:\s+please)?|"
    r"i\s+(?:want|need|would\s+like)\s+you\s+to)"
)
"""Politeness before an imperative."""

ASK_VERBS = (
    r"(?:return|give|produce|output|generate|respond|reply|answer|write|create|provide|print|emit|"
    r"send|build|make|construct|compose|prepare|show|supply|deliver|get|"
    r"i\s+(?:want|need|would\s+like)|i['\u2019]d\s+like)"
)
"""Verbs that, right before "JSON", ask for it."""

ADJECTIVES = (
    r"(?:an?|the|one|single|only|just|nothing\s+but|exactly|strictly|strict|valid|well-formed|"
    r"proper|raw|pure|plain|correct|rfc\s?8259|compliant|parseable|parsable)"
)
"""Words between the verb or preposition and "JSON" that ask for nothing but JSON."""

STYLES = (
    r"(?:minified|compact|flat|nested|simple|small|short|pretty-printed|indented|single-line|"
    r"one-line|detailed|brief)"
)
"""Words in the same place that change the answer: read over, and left in the residue."""

FORMAT_NOUNS = (
    r"(?:objects?|dictionary|dict|format|form|array|list|document|string|data|response|output|"
    r"structure|blob|answer|result|value|file|template|only|hash|map|record)"
)
"""Nouns that "JSON" may stand before."""

SUBJECT = r"(?:(?:that|which)\s+describes?|describing|about)"
"""What may lead from the JSON demand to its topic."""

TOPIC_VERBS = (
    r"(?:describe|tell\s+me\s+about|(?:give(?:\s+me)?|return|provide|output|show(?:\s+me)?|write)"
    r"(?:\s+an?)?\s+description\s+of|give(?:\s+me)?|return|provide|output|show\s+me)"
)
"""Verbs that may open a request whose keys are named: then the keys say what is asked."""

CODE_NOUNS = (
    r"(?:function|script|program|code|class|method|endpoint|parser|serializer|library|module|regex|"
    r"regexp|snippet|decorator|tutorial|essay|guide|explanation|schema|validator|encoder|decoder)"
)
"""What is asked for instead, when it follows a verb of making: about JSON, not JSON."""

LISTING = (
    r"(?:list|lists|array|each|every|multiple|several|many|top|two|three|four|five|six|seven|eight|"
    r"nine|ten|twelve|twenty|dozen|all|cities|countries|people|items|entries|examples)"
)
"""Words after which an answer may well be several objects instead of one."""

NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}

INSTRUCTION_VERBS = _set(
    "describe return use make do don't then output respond give write include keep set produce",
    "generate create provide reply answer please extract summarise summarize",
)
"""What may follow "and" behind a key list without being a key."""

NOT_KEYS = _set(
    "for from about describing of in where using based that which as to on by with without given",
    "is are should must be the a an this these those and or so when if please not no only all each",
    "every exactly describe return it its at into per via following keys key fields field json",
    "whose who while but then because nothing respond reply output give produce generate create",
    "provide write do don't never",
)
"""Words that end an unquoted key list unless a comma follows them; quoted they may be keys."""

MORE_KEYS = _set(
    "if or also a an the its it their this these those any when optionally maybe possibly plus at",
    "perhaps as ideally preferably",
)
"""Words behind a list and a comma or "and" that may lead to further keys: then it is not read."""

FOREIGN_DEMANDS = (
    r"(?:als\s+json|im\s+json-format|en\s+(?:formato\s+)?json|au\s+format\s+json|"
    r"(?:in|nel)\s+formato\s+json|(?:em|no)\s+(?:formato\s+)?json|in\s+json-formaat|"
    r"json\s?(?:形式|格式)|以\s?json)"
)
"""Demands for JSON in other languages. Only the phrase is read; all around it is residue."""
