"""What the prose of an answer claims, language by language: phrases and numbers in words.

English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Chinese and Japanese. A word
that is missing here makes no claim, so a list errs on the side of too much: what is found and not
verified leaves a step unknown.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from stepcache.tasks.linear_equation._words import words

__all__ = ["Saying", "english", "sayings"]

Kind: TypeAlias = Literal["none", "all", "claim", "number", "nothing"]


class Saying(NamedTuple):
    """One claim in words."""

    kind: Kind
    """That there is no solution, that everything is one, something unverified, or a number."""
    text: str
    value: int | None = None
    """Of a number, where it is known."""
    before: tuple[str, ...] = ()
    """A few words before a number."""
    behind: tuple[str, ...] = ()
    """A few words behind it."""


_NONE = """
no solution|no solutions|no real solution|no real solutions|has unsolvable|have unsolvable
is unsolvable|cannot be solved|does not have a solution|doesn t have a solution|no value|never true
no number satisfies|has no root
keine lösung|keine lösungen|nicht lösbar|unlösbar|hat keine
aucune solution|pas de solution|n a pas de solution|pas de solutions|sans solution
sin solución|no tiene solución|no tiene soluciones|ninguna solución|no hay solución
no existe solución
sem solução|não tem solução|não há solução|nenhuma solução|não possui solução
nessuna soluzione|non ha soluzioni|non ha soluzione|senza soluzione|non ci sono soluzioni
geen oplossing|geen oplossingen
нет решений|нет решения|не имеет решений|не имеет решения|решений нет
"""
_ALL = """
infinitely many|infinite solutions|infinite number of solutions|all numbers|all real numbers
every number|every real number|any number|any real number|any value|all values|always true
every value
unendlich viele|alle zahlen|alle reellen zahlen|jede zahl|jede reelle zahl|immer wahr
allgemeingültig
une infinité|tous les nombres|tout nombre|tous les réels|toujours vraie|toujours vrai
infinitas soluciones|todos los números|cualquier número|cualquier valor|siempre verdadera
infinitas soluções|todos os números|qualquer número|qualquer valor|sempre verdadeira
infinite soluzioni|tutti i numeri|qualsiasi numero|qualunque numero|sempre vera
oneindig veel
бесконечно много|все числа|любое число|любое действительное число|всегда верно
"""
_CLAIMS = """
odd|even number|prime|integer|irrational|approximately|approx|about|roughly|rounded|percent
not equal|isn t|aren t|incorrect|wrong|undefined|inequality|greater|fewer|square|squared|cube|cubed
is positive|answer positive|positive number|positive solution|positive answer|is negative
answer negative|negative number|negative solution|negative answer
is not|are not|not the|not a|not correct|not right|not true|not hold|not satisfy|not work
doesn t hold|doesn t satisfy|doesn t work|does not|cannot be|false|mistake|error
nicht|kein|keine|falsch|ungefähr|etwa|circa|gerundet|ungleich|primzahl|größer|kleiner|gerade zahl
ungerade|positiv|negativ|fehler|quadrat|prozent
pas|faux|fausse|incorrecte|erreur|environ|approximativement|arrondi|arrondie|nombre premier
supérieur|inférieur|négatif|positif|carré|impair|jamais|aucun|aucune
no es|no son|no se|no satisface|no cumple|incorrecto|incorrecta|falso|falsa|aproximadamente
redondeado|redondeada|mayor|menor|negativo|positivo|cuadrado|impar|primo|nunca|ningún
não|errado|errada|incorreto|incorreta|arredondado|maior|quadrado|ímpar|nenhum|nenhuma|erro
non|errato|errata|sbagliato|sbagliata|falso|approssimativamente|arrotondato|maggiore|minore
quadrato|dispari|nessun|nessuna|errore
niet|geen|fout|onjuist|ongeveer|afgerond|groter|kleiner
не|неверно|неверный|ошибка|ошибочно|около|примерно|приблизительно|округл|больше|меньше|нельзя
отрицательное|положительное|квадрат
"""
_NOTHING = "pas à pas|double check|double checking|double checked"
_CJK: tuple[tuple[Kind, str], ...] = (
    (
        "none",
        "无解 無解 没有解 沒有解 "
        "解なし 解はない 解はありません 解がない 解を持たない 解は存在しない",
    ),
    (
        "all",
        "无数 無數 無数 无穷多 无限多 無限に 任意实数 任意的实数 所有实数 一切实数 任何数 "
        "すべての実数 全ての実数 任意の実数 すべての数",
    ),
    (
        "claim",
        "不是 不等 不成立 不正确 不正確 不对 不满足 错误 錯誤 错 近似 大约 大約 约等 約等 约为 "
        "四舍五入 大于 小于 质数 整数 正数 负数 平方 奇数 偶数 ではない ではありません じゃない "
        "ではなく しない 間違 誤り およそ 約 四捨五入 より大きい より小さい 素数 負の 正の ほぼ",
    ),
)

_VALUES = """
en two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty
de zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn
siebzehn achtzehn neunzehn zwanzig
fr deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize
es dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis
diecisiete dieciocho diecinueve veinte
pt dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis
dezessete dezoito dezenove vinte
it due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici
sedici diciassette diciotto diciannove venti
nl twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien
zeventien achttien negentien twintig
ru два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать
четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать
"""
_UNVALUED = """
thirty forty fifty sixty seventy eighty ninety hundred thousand million half quarter twice double
triple dozen mitad doble triple vingt trente cent moitié hälfte doppelte dreißig hundert tausend
treinta cien metade dobro trinta cem metà doppio trenta cento половина половину вдвое сто двух трёх
двести helft dubbel duas
"""
# Numbers in one language and everyday words in another: they count where that other one is not
# spoken.
_ELSEWHERE = {
    "once": words("the is we of and to solve"),
    "due": words("the is we of and to solve"),
    "elf": words("the we of"),
    "sei": words("der die das und ist wir es gegeben"),
    "dos": words("dois duas os da do é equação solução portanto"),
    "sept": words("the we of"),
}
# "the two sides", "two steps": how many there are of what every equation has.
_COUNTED = words("""
    sides steps side expressions parts terms equations seiten schritte schritten terme côtés membres
    étapes termes lados miembros pasos membros passos términos termos membri lati passaggi части
    частей шага zijden kanten stappen
    """)
_ENGLISH = words("the is we of and to both sides from by then so therefore gives get answer hence")

_WORDS = re.compile(r"[^\W\d_]+|[.;:!?]")
_SIGNS_BEFORE = re.compile(r"[\u4e00-\u9fff]{1,8}\Z")
_NEAR = 6
_NUMERALS = {"二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_SIGNS = "二三四五六七八九十百千半两兩"


def _phrases() -> dict[str, tuple[tuple[tuple[str, ...], Kind], ...]]:
    table: dict[str, list[tuple[tuple[str, ...], Kind]]] = {}
    lists: tuple[tuple[Kind, str], ...] = (
        *(("none", _NONE), ("all", _ALL)),
        *(("claim", _CLAIMS), ("nothing", _NOTHING)),
    )
    for kind, text in lists:
        for phrase in text.replace("\n", "|").split("|"):
            if phrase:
                found = tuple(phrase.split())
                table.setdefault(found[0], []).append((found, kind))
    # The longest first: "pas de solution" is not "pas".
    return {first: tuple(sorted(p, key=lambda e: -len(e[0]))) for first, p in table.items()}


def _numbers() -> dict[str, int | None]:
    values: dict[str, int | None] = dict.fromkeys(_UNVALUED.split())
    value = 2
    for word in _VALUES.split():
        if len(word) == 2 and word.isascii():
            value = 2  # the name of a language
        else:
            values[word] = value
            value += 1
    return values


_PHRASES = _phrases()
_BY_WORD = _numbers()
_FIRST = _PHRASES.keys() | _BY_WORD.keys()
_CJK_PHRASES = {phrase: kind for kind, text in _CJK for phrase in text.split()}
_CJK_FIRST = "".join(sorted({phrase[0] for phrase in _CJK_PHRASES}))
_CJK_PATTERN = re.compile(
    f"(?=[第{_SIGNS}{_CJK_FIRST}])(?:"
    + "|".join(
        (
            f"第[一{_SIGNS}]+",
            f"[{_SIGNS}][边邊个個侧側端步元辺]",
            *sorted(_CJK_PHRASES, key=len, reverse=True),
            f"[{_SIGNS}]+",
        )
    )
    + ")"
)


def english(lowered: str) -> bool:
    """Whether a casefolded text has any of the commonest words of English."""
    return not _ENGLISH.isdisjoint(_WORDS.findall(lowered))


def sayings(lowered: str) -> list[Saying]:
    """The claims of a casefolded text, in order. Linear in its length."""
    spoken = _WORDS.findall(lowered)
    found: list[Saying] = []
    if not _FIRST.isdisjoint(spoken):
        _in_words(spoken, found)
    if not lowered.isascii():
        for match in _CJK_PATTERN.finditer(lowered):
            _in_signs(match.group(), lowered[max(0, match.start() - _NEAR) : match.start()], found)
    return found


def _in_words(spoken: list[str], found: list[Saying]) -> None:
    at = 0
    while at < len(spoken):
        word = spoken[at]
        at += 1
        if word not in _FIRST:
            continue
        phrase = next(
            (
                p
                for p in _PHRASES.get(word, ())
                if tuple(spoken[at - 1 : at - 1 + len(p[0])]) == p[0]
            ),
            None,
        )
        if phrase is not None:
            if phrase[1] != "nothing":
                found.append(Saying(phrase[1], " ".join(phrase[0])))
            at += len(phrase[0]) - 1
        elif word in _BY_WORD and not (at < len(spoken) and spoken[at] in _COUNTED):
            if word in _ELSEWHERE and not _ELSEWHERE[word].isdisjoint(spoken):
                continue
            near = tuple(spoken[max(0, at - 1 - _NEAR) : at - 1]), tuple(spoken[at : at + _NEAR])
            found.append(Saying("number", word, _BY_WORD[word], *near))


def _in_signs(text: str, before: str, found: list[Saying]) -> None:
    kind = _CJK_PHRASES.get(text)
    if kind is not None:
        found.append(Saying(kind, text))
    elif text[0] != "第" and text.strip(_SIGNS) == "":
        said = _SIGNS_BEFORE.search(before)
        near = (said.group(),) if said else ()
        found.append(Saying("number", text, _NUMERALS.get(text), near))
