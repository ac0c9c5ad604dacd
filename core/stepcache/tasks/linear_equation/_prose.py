"""Words of an answer that lead to mathematics: operations, results, links, later forms."""

from __future__ import annotations

from collections.abc import Sequence

from stepcache._memo import memo
from stepcache.tasks.linear_equation._words import words

__all__ = [
    "STEP_WORDS",
    "both_sides",
    "links",
    "operation",
    "operation_behind",
    "restates",
    "rewrites",
    "says_answer",
]

_OPERATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "subtract",
        (
            *("subtract", "minus", "deduct", "abzieh", "abgezogen", "zieh", "aftrek", "trek"),
            *("restar", "restamos", "resta", "resten", "restemos", "restá", "résta", "sustra"),
            *("soustra", "retranch", "subtra", "sottra", "вычт", "вычита"),
            *("вычес", "отним", "отня"),
        ),
    ),
    (
        "add",
        (
            *("add", "plus", "hinzu", "optel", "suma", "sume", "súma", "añad", "agreg", "adici"),
            *("ajout", "soma", "sommi", "sommo", "aggiun", "прибав", "добав"),
        ),
    ),
    ("divide", ("divi", "diví", "teil", "geteilt", "deel", "delen", "раздел", "подел", "делим")),
    ("multiply", ("multipl", "moltiplic", "vermenig", "умнож", "times")),
    ("move", ("move", "moving", "transpos", "verschieb", "mover", "movemos", "перенес", "перенос")),
)
_BEHIND: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("subtract", ("subtrah", "abzieh", "abzuzieh", "abgezogen", "aftrek")),
    ("add", ("addier", "hinzu", "optel")),
    ("divide", ("dividier", "teil", "geteilt", "delen")),
    ("multiply", ("multiplizier", "vermenig")),
)
"""Of languages that put the verb last."""
_SIGNS = {"减": "subtract", "減": "subtract", "加": "add", "除": "divide", "乘": "multiply"}
"""Chinese verbs, before their number."""
_SIGNS_BEHIND = dict.fromkeys("引減", "subtract") | dict.fromkeys("足加", "add")
_SIGNS_BEHIND |= dict.fromkeys("割除", "divide") | dict.fromkeys("掛乗", "multiply")
_SIGNS_BEHIND |= {"移": "move"}
"""Japanese verbs, behind the particle that follows their number."""
_PARTICLES = "をでにか"
_NOT_VERBS = words("""
    additional additionally address addresses addressed divisible division's dividend dividends
    divisor divisors sumario sumamente additiv ziehtätig divine diviner divisa teilnehmer teilweise
    trekking somatic
    """)
_ENDS = frozenset((".", "\n", ";", "。", "!", "\r"))

_ANSWERS = words("""
    solution answer solución respuesta réponse lösung antwort ergebnis solução
    resposta soluzione risposta oplossing antwoord решение ответ
    答 案 解 答案 答え root racine wurzel raíz raiz radice корень
    """)
_ANSWER_SIGNS = ("答案", "答え", "解为", "解是", "解は", "解得", "解為")

_LINKS = words("""
    is equals equal to : be must es est ist é è igual égal égale à a uguale gleich vale
    vaut beträgt lautet gelijk aan равно равен равна равняется
    为 是 為 等于 等於 的值是 的值为 的值為 的值等于 は の値は が therefore thus
    then ** ：
    """) | {"\n"}

_RESTATING = (
    *("the equation", "this equation", "linear equation", "the given", "given equation"),
    *("given :", "original", "start with", "starting with", "starting from", "la ecuación"),
    *("a equação", "l'équation", "l’équation", "die gleichung", "der gleichung"),
    *("l'equazione", "l’equazione", "de vergelijking", "уравнение"),
    *("原方程", "方程是", "方程为", "方程式は", "元の方程式"),
)

_RESTATING_WORDS = frozenset(word for cue in _RESTATING for word in cue.split()) - {"the", ":"}

_REWRITTEN = words("""
    becomes become simplifies simplified simplify simplifying new now get gives gets gave obtain
    resulting reduces rewritten rewrite reduced equivalent left yields leads then both sides remains
    wird ergibt erhalten erhält bleibt vereinfacht vereinfachen vereinfachte seiten beiden neue nun
    umgeformt folgt
    devient obtient obtenons obtenir donne reste simplifie simplifier simplifiée côtés membres
    nouvelle réduit
    resulta queda obtenemos obtiene simplifica simplificada simplificamos lados ambos miembros
    reduce convierte nueva
    fica obtemos torna resulta-se membros simplificar reduz nova
    diventa otteniamo ottiene semplifica semplificando entrambi membri lati rimane riduce nuova
    wordt krijgen kanten zijden
    получаем получим получается принимает становится частей части обе обеих
    упростим
    """)
_REWRITTEN_SIGNS = ("变", "變", "得", "化", "两边", "兩邊", "両辺", "移项", "移項", "にな", "とな")

_SIDES = words(
    """
    sides side both seiten beiden seite côtés membres membre lados ambos miembros miembro entrambi
    membri lati membros membro обе обеих частей части kanten zijden
    """
)
_SIDE_SIGNS = ("两边", "兩邊", "两侧", "等式", "両辺")

STEP_WORDS = words(
    """
    step steps paso étape etape schritt passo etapa stap шаг part case line
    equation row method # 步 骤 第 krok steg trin 步骤 步驟 ステップ 手順
    """
)


def operation(words: Sequence[str]) -> str | None:
    """The operation that the nearest verb names: subtract, add, divide, multiply, move; or None."""
    for word in reversed(words):
        if word in _ENDS:
            return None
        verb = _verb(word)
        if verb is not None:
            return verb
    return None


def operation_behind(words: Sequence[str]) -> str | None:
    """The operation named behind its number, as in ``3 auf beiden Seiten subtrahieren``."""
    for word in words:
        if word in _ENDS or word == ":":
            return None
        verb = _verb_behind(word)
        if verb is not None:
            return verb
    return None


@memo(maxsize=2_048)
def _verb(word: str) -> str | None:
    if word in _NOT_VERBS:
        return None
    if not word.isascii() and word[0] > "⺀":
        if word[0] in _PARTICLES:
            return None
        return next((_SIGNS[c] for c in reversed(word[-64:]) if c in _SIGNS), None)
    return next((name for name, stems in _OPERATIONS if word.startswith(stems)), None)


@memo(maxsize=2_048)
def _verb_behind(word: str) -> str | None:
    if word in _NOT_VERBS:
        return None
    if word[:1] in _PARTICLES or word[:1] == "移":
        return next((_SIGNS_BEHIND[c] for c in word[:16] if c in _SIGNS_BEHIND), None)
    return next((name for name, stems in _BEHIND if word.startswith(stems)), None)


def both_sides(words: Sequence[str]) -> bool:
    """Whether words speak of the sides of an equation, to which one thing is done."""
    if not _SIDES.isdisjoint(words):
        return True
    return any(sign in word for word in words if not word.isascii() for sign in _SIDE_SIGNS)


def says_answer(words: Sequence[str]) -> bool:
    """Whether words speak of the answer, so that the number behind them is said to be it."""
    if not _ANSWERS.isdisjoint(words):
        return True
    return any(sign in word for word in words if not word.isascii() for sign in _ANSWER_SIGNS)


def links(words: Sequence[str]) -> bool:
    """Whether words say that what stands on both sides of them is equal: ``x is 5``."""
    return 0 < len(words) <= 4 and _LINKS.issuperset(words)


def restates(words: Sequence[str]) -> bool:
    """Whether words say that the equation behind them is the one that was given."""
    if _RESTATING_WORDS.isdisjoint(words) and all(word.isascii() for word in words):
        return False
    said = " ".join(words[-8:])
    return any(cue in said for cue in _RESTATING)


def rewrites(words: Sequence[str]) -> bool:
    """Whether words say that what follows is a later form."""
    if not _REWRITTEN.isdisjoint(words):
        return True
    return any(sign in word for word in words if not word.isascii() for sign in _REWRITTEN_SIGNS)
