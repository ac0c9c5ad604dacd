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
    "FOREIGN_AND",
    "FOREIGN_DEMANDS",
    "FOREIGN_KEYS",
    "FORMAT_NOUNS",
    "GREETING",
    "INSTRUCTION_VERBS",
    "LISTING",
    "MORE_KEYS",
    "MORE_SAID",
    "NOT_KEYS",
    "NUMBERS",
    "ONLY_SENTENCE",
    "POLITE",
    "PREAMBLE",
    "STYLES",
    "SUBJECT",
    "TOPIC_VERBS",
]


def _set(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


POLITE = (
    r"(?:please|kindly|(?:can|could|would|will)\s+you(?:\s+(?:please|kindly))?|"
    r"i(?:\s+(?:want|need|would\s+like)|['\u2019]d\s+like)\s+you\s+to)"
)
"""Politeness before an imperative."""

ASK_VERBS = (
    r"(?:return|give|produce|output|generate|respond|reply|answer|write|create|provide|print|emit|"
    r"send|build|make|construct|compose|prepare|show|supply|deliver|get|fill\s+(?:in|out)|"
    r"(?:put|place|present)\s+(?:it|this|that|everything|the\s+(?:answer|result))|"
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

SUBJECT = r"(?:(?:that|which)\s+(?:describes?|represents?)|describing|about|description\s+of)"
"""What may lead from the JSON demand to its topic."""

TOPIC_VERBS = (
    r"(?:describe|represent|tell\s+(?:me|us)\s+about|(?:give(?:\s+me)?|return|provide|output|show(?:\s+me)?|write)"
    r"(?:\s+an?)?\s+description\s+of|give(?:\s+me)?|return|provide|output|show\s+me)"
)
"""Verbs that may open a request whose keys are named: then the keys say what is asked."""

ONLY_SENTENCE = (
    r"(?:(?:return|respond|reply|answer|output|give|provide|send|write|print|produce|show)"
    r"(?:\s+(?:back|me|us))?(?:\s+(?:with|in|as|using))?"
    r"(?:\s+(?:only|just|solely|exclusively|nothing\s+(?:but|except|other\s+than)))?\s+{thing}"
    r"(?:\s+(?:only|alone))?(?:(?:\s*,)?\s+(?:and\s+|with\s+)?{rest})?"
    r"|(?:{rest}\s*[,:;\u2013\u2014-]\s*)?(?:only|just|nothing\s+(?:but|except))\s+{thing}"
    r"|{thing}\s+only(?:\s*,\s*{rest})?"
    r"|(?:(?:add|include|write|give)\s+)?{rest})"
).format(
    thing=r"(?:(?:the|a|an|one|your)\s+)?(?:(?:single|valid|raw|plain|pure|resulting)\s+){0,2}"
    r"json(?:\s+(?:object|response|output|answer|result|document))?",
    rest=r"(?:nothing\s+else|no\s+(?:other\s+|additional\s+|extra\s+|further\s+|surrounding\s+)?"
    r"(?:text|prose|words|explanations?|commentary|comments?|content|output))",
)
"""A sentence of its own that demands the JSON already asked for and nothing beside it."""

GREETING = r"(?:hello|hi|hey|good\s+(?:morning|afternoon|evening|day))(?:\s+there)?\s*[!,.]+"
"""What may stand before a request."""

PREAMBLE = (
    r"(?:here(?:\s+is|['\u2019]s)\s+what\s+i\s+(?:need|want)\s*:"
    r"|(?:my|our|the)\s+(?:program|code|script|app|application|tool|service|client|parser|pipeline|"
    r"system)\s+(?:reads|parses|expects|needs|wants|takes|accepts|consumes|requires)\s+"
    r"(?:only\s+)?(?:valid\s+)?json\s*[.:;])"
)
"""Sentences that lead to a demand for JSON and say nothing else."""

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

FOREIGN_KEYS = (
    r"(?:(?:(?:mit|und)\s+(?:den\s+)?(?:folgenden\s+)?(?:schlüsseln|feldern|eigenschaften)|"
    r"avec\s+(?:les\s+)?(?:clés|clefs|champs|propriétés)(?:\s+suivante?s)?|"
    r"con\s+(?:las\s+|los\s+)?(?:siguientes\s+)?(?:claves|llaves|campos|propiedades)(?:\s+siguientes)?|"
    r"con\s+(?:le\s+|i\s+)?(?:seguenti\s+)?(?:chiavi|campi|proprietà)(?:\s+seguenti)?|"
    r"com\s+(?:as\s+|os\s+)?(?:seguintes\s+)?(?:chaves|campos|propriedades)(?:\s+seguintes)?|"
    r"met\s+(?:de\s+)?(?:volgende\s+)?(?:sleutels|velden)|"
    r"с\s+(?:ключами|полями))\b|"
    r"(?:包含|带有|使用)?(?:以下)?(?:的)?(?:键|字段|鍵|欄位)(?:名)?(?:为|為|是|包括|有)?|"
    r"(?:次の)?(?:キー|フィールド)(?:は|が|として|に)?)"
)
"""What names the keys in other languages, right before their list."""

FOREIGN_AND = r"(?:und|et|y|e|i|en|и|和|及|以及|と)"
"""What joins the last of them."""

MORE_KEYS = _set(
    "if or also a an the its it their this these those any when optionally maybe possibly plus at",
    "perhaps as ideally preferably",
)
"""Words behind a list and a comma or "and" that may lead to further keys: then it is not read."""

MORE_SAID = _set(
    "key keys field fields property properties attribute attributes add adding also extra besides",
    "nested object objects schema",
)
"""Words that say more of the keys, when they stand outside the list that was read."""

FOREIGN_DEMANDS = (
    r"(?:als\s+(?:ein(?:en)?\s+)?json(?:-objekt)?|im\s+json-format|"
    r"(?:en|como)\s+(?:(?:un\s+)?objeto\s+|formato\s+)?json|au\s+format\s+json|en\s+objet\s+json|"
    r"(?:comme|sous\s+(?:la\s+)?forme\s+d['\u2019])\s*(?:un\s+)?(?:objet\s+)?json|"
    r"(?:in|nel)\s+formato\s+json|come\s+(?:un\s+)?(?:oggetto\s+)?json|"
    r"(?:em|no|como)\s+(?:um\s+)?(?:formato\s+|objeto\s+)?json|in\s+json-formaat|"
    r"в\s+(?:формате|виде)\s+json|как\s+json|"
    r"json\s?(?:形式|格式|对象|對象|オブジェクト)(?:で|として)?|(?:以|用)\s?json(?:\s?格式)?|jsonで)"
)
"""Demands for JSON in other languages. Only the phrase is read; all around it is residue."""
