"""Words of an answer that carry a claim: operations, results, numbers in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stepcache.tasks.linear_equation._words import words

__all__ = [
    "ANSWER_WORDS",
    "EVERY_NUMBER",
    "LINKS",
    "NO_SOLUTION",
    "RESTATING",
    "REWRITTEN",
    "STEP_WORDS",
    "claim_words",
    "operation",
    "operation_behind",
    "spelled_number",
]

_OPERATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "subtract",
        (
            *("subtract", "minus", "restar", "restamos", "resta", "restando", "soustra", "subtrah"),
            *("subtra", "sottra", "abziehen", "ziehe", "выч", "отн", "减", "減", "aftrek"),
        ),
    ),
    (
        "add",
        (
            *("add", "plus", "suma", "sumar", "ajout", "addi", "somar", "some", "somando"),
            *("adicion", "aggiung", "hinzu", "прибав", "добав", "加", "optel"),
        ),
    ),
    ("divide", ("divid", "divis", "teil", "deel", "delen", "раздел", "делим", "除")),
    ("multiply", ("multipl", "vermenig", "умнож", "乘", "times")),
)
_BEHIND: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("subtract", ("subtrah", "abzieh", "abgezogen", "aftrek", "引")),
    ("add", ("addier", "hinzu", "optel", "足")),
    ("divide", ("dividier", "teilen", "geteilt", "delen", "割")),
    ("multiply", ("multiplizier", "vermenig", "掛")),
)
"""Of languages that put the verb last."""
_NOT_VERBS = frozenset(
    ("additional", "additionally", "someone", "something", "sometimes", "somehow")
)

ANSWER_WORDS = frozenset(
    (
        *(
            "solution",
            "answer",
            "soluci\u00f3n",
            "respuesta",
            "solution",
            "r\u00e9ponse",
            "l\u00f6sung",
        ),
        *(
            "antwort",
            "ergebnis",
            "solu\u00e7\u00e3o",
            "resposta",
            "soluzione",
            "risposta",
            "oplossing",
        ),
        *(
            "\u0440\u0435\u0448\u0435\u043d\u0438\u0435",
            "\u043e\u0442\u0432\u0435\u0442",
            "\u7b54",
            "\u6848",
            "\u89e3",
        ),
    )
)

LINKS = frozenset(
    (
        *("is", "equals", "equal", "to", ":", "be", "must", "es", "est", "ist", "\u00e9", "\u00e8"),
        *(
            "igual",
            "a",
            "gleich",
            "\u0440\u0430\u0432\u043d\u043e",
            "\u4e3a",
            "\u662f",
            "therefore",
            "thus",
            "then",
            "**",
            "\n",
        ),
    )
)

RESTATING = (
    "the equation",
    "this equation",
    "linear equation",
    "the given",
    "given equation",
    "given :",
    "original",
    "start with",
    "starting with",
    "starting from",
    "la ecuaci\u00f3n",
    "a equa\u00e7\u00e3o",
    "l'\u00e9quation",
    "die gleichung",
    "der gleichung",
    "l'equazione",
    "de vergelijking",
    "\u0443\u0440\u0430\u0432\u043d\u0435\u043d\u0438\u0435",
    "\u65b9 \u7a0b",
)
"""Words that say the equation after them is the one that was given."""

REWRITTEN = frozenset(
    (
        *("becomes", "become", "simplifies", "simplified", "simplify", "simplifying", "simplifies"),
        *(
            "new",
            "now",
            "get",
            "gives",
            "gets",
            "gave",
            "obtain",
            "resulting",
            "reduces",
            "rewritten",
        ),
        *("rewrite", "reduced", "equivalent", "left", "yields", "leads", "then", "both", "sides"),
        *("resulta", "queda", "obtenemos", "devient", "obtient", "ergibt", "wird", "erhalten"),
    )
)
"""Words that say it is a later form."""

STEP_WORDS = words(
    """
    step steps paso étape etape schritt passo etapa stap шаг part case line
    equation row method # 步 骤 第 krok steg trin
    """
)

NO_SOLUTION = re.compile(
    r"\b(?:no (?:real )?solutions?|(?:has|have|is) unsolvable|cannot be solved"
    r"|does not have a solution|no value|never true|keine lösung|sin solución|no tiene solución"
    r"|aucune solution|pas de solution|sem solução|nessuna soluzione|geen oplossing|нет решений)\b"
    r"|无解"
)
EVERY_NUMBER = re.compile(
    r"\b(?:infinitely many|infinite(?: number of)? solutions|all (?:real )?numbers"
    r"|every (?:real )?number|any (?:real )?number|any value|all values|always true"
    r"|unendlich viele|infinitas soluciones|une infinité|infinitas soluções|infinite soluzioni)\b"
    r"|无数"
)

_CLAIMS = re.compile(
    r"\b(?:odd|even number|prime|integer|irrational|approximately|approx|about|roughly|rounded"
    r"|percent|not equal|isn't|incorrect|wrong|undefined|inequality|greater|fewer|squared?|cubed?|"
    r"(?:is|answer) (?:positive|negative)|(?:positive|negative) (?:number|solution|answer))\b"
)

_ENGLISH_NUMBERS = {
    word: value
    for value, word in enumerate(
        (
            *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
            *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
            *("nineteen", "twenty"),
        ),
        start=2,
    )
}
_OTHER_NUMBERS = words(
    """
    thirty forty fifty sixty seventy eighty ninety hundred thousand million half
    third quarter twice double triple dozen dos tres cuatro cinco seis siete
    ocho nueve diez once doce trece quince veinte mitad doble deux trois quatre
    cinq sept huit neuf dix onze douze treize quinze vingt moitié zwei drei vier
    fünf sechs sieben acht neun zehn elf zwölf dreizehn zwanzig hälfte dois duas
    três quatro sete oito nove dez doze treze vinte metade due tre quattro
    cinque sei sette otto dieci undici dodici tredici venti metà twee drie vijf
    zes zeven negen tien dertien twintig два три четыре пять шесть семь восемь
    девять десять
    """
)
# English words that are numbers elsewhere ("once", "sei") are left to English: they make no claim.
_OTHER = _OTHER_NUMBERS - {"once", "sei", "third"}
_WORDS = re.compile(r"[^\W\d_]+")
_IDEOGRAPHS = re.compile(
    "[\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e\u5343\u534a]"
)
# "the two sides", "two steps": how many there are of what every equation has.
_COUNTED = frozenset(("sides", "steps", "side", "expressions", "parts", "terms", "equations"))


def operation(words: Sequence[str]) -> str | None:
    """The operation that the nearest verb names: subtract, add, divide, multiply; or None."""
    for word in reversed(words):
        if word in (".", "\n", ";"):
            return None
        if word in _NOT_VERBS:
            continue
        for name, stems in _OPERATIONS:
            if word.startswith(stems):
                return name
    return None


def operation_behind(words: Sequence[str]) -> str | None:
    """The operation named behind its number, as in ``3 auf beiden Seiten subtrahieren``."""
    for word in words:
        if word in (".", "\n", ";", ":"):
            return None
        for name, stems in _BEHIND:
            if word.startswith(stems):
                return name
    return None


def spelled_number(lowered: str) -> Iterator[tuple[str, int | None]]:
    """Numbers in words, with their value where it is known."""
    words = _WORDS.findall(lowered)
    for index, word in enumerate(words):
        if word in _ENGLISH_NUMBERS:
            if words[index + 1 : index + 2] and words[index + 1] in _COUNTED:
                continue
            yield word, _ENGLISH_NUMBERS[word]
        elif word in _OTHER:
            yield word, None
    for sign in _IDEOGRAPHS.findall(lowered):
        yield sign, None


def claim_words(lowered: str) -> Iterator[str]:
    """Words that say something of the answer which is not verified."""
    for match in _CLAIMS.finditer(lowered):
        yield match.group()
