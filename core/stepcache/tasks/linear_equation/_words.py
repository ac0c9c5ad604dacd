"""The lists of words by which a request for a solution is told from other talk of an equation.

They decide whose request it is, not what may be reused for it: plain words may ask for much else
("Write a question like it"), so which of them can change no answer is said of whole sentences, in
``_wording``.
"""

from __future__ import annotations

import re

__all__ = [
    "ALTERING",
    "ASKED_NOUNS",
    "MISLEADING",
    "PLAIN",
    "QUESTION_WORDS",
    "SOLVE_VERBS",
    "STRUCTURE",
    "words",
]


def words(*texts: str) -> frozenset[str]:
    """The casefolded words of texts."""
    return frozenset(" ".join(texts).casefold().split())


_PUNCTUATION = """
. , : ; ! ? ( ) " ' \u201c \u201d \u2018 \u2019 \u00ab \u00bb \u00bf \u00a1 \u3002 \uff0e
\uff0c \uff1a \uff1b \uff01 \uff1f \u3001 \u2026 - \u2013 \u2014 $ * ` # \\ _ { } [ ] \uff08 \uff09
"""

_ENGLISH = """
solve solved solves solving find finds finding determine determining compute computing calculate
calculating evaluate work works out figure figuring obtain get getting give gives tell show what
what's whats which is are be do does can could would will should must may might want wants
wanted need needs like try help please kindly thanks thank you hi hello hey there just simply
now then so and the a an this that these those it its it's of for in on to from by with as at if
when where whenever given let's lets let me my i i'd i'm us we our your know about value values
variable variables unknown unknowns solution solutions solutions root number quantity equation
equations expression linear algebra algebraic simple basic problem question exercise task math
maths mathematics following below above here such makes make making true hold holds satisfy
satisfies satisfied satisfying statement equality equal equals correct right proper answer
answers result solver carefully respect isolate isolating using one single sides side both have
has got having see if provide provided return say report first-degree assuming suppose be
looking look trying stuck homework i've figured worked possible go ahead handle deal who come up
unique consider use through together rearrange think thinking
write take someone somebody gave says said been am
"""

_SPANISH = """
resuelve resuelva resolver resuélveme resolvamos encuentra encuentre encontrar halla halle
hallar calcula calcule calcular determina determine determinar despeja despejar cuál cual es el
la los las de del en un una para por favor ecuación ecuaciones lineal valor valores variable
incógnita solución que si siguiente esta este dada dado satisface cumple cuánto vale qué y dime
"""

_PORTUGUESE = """
resolva resolver resolve encontre encontrar ache achar calcule calcular determine determinar
qual é o a os as de do da na no em um uma para por favor equação equações linear valor variável
incógnita solução que se seguinte esta este dada dado satisfaz quanto vale
"""

_FRENCH = """
résous résoudre résolvez résolvons trouve trouver trouvez calcule calculer calculez détermine
déterminer déterminez quelle quel est la le les l'équation équation équations linéaire valeur de
d' du des dans un une pour s'il s'il te vous plaît svp variable inconnue solution que si
suivante cette ce donnée donné vérifie satisfait combien vaut
"""

_GERMAN = """
löse lösen löst berechne berechnen bestimme bestimmen finde finden ermittle ermitteln was wie
ist sei der die das den dem des ein eine einer von für in nach auf bitte gleichung gleichungen
lineare linearen lineare wert variable variablen unbekannte lösung wenn folgende folgenden diese
dieser gegeben gegebene erfüllt gilt lautet
"""

_ITALIAN = """
risolvi risolvere risolva trova trovare calcola calcolare determina determinare qual quale è il
lo la le gli l'equazione equazione lineare valore di della del nell'equazione in un una per
favore variabile incognita soluzione che se seguente
"""

_DUTCH = """
los op oplossen bereken berekenen bepaal vind vinden wat is de het een van voor in naar
vergelijking lineaire waarde variabele onbekende oplossing als volgende deze alsjeblieft
"""

_RUSSIAN = """
решите решить реши решение найдите найти найди вычислите вычислить определите чему равно равен
равна чего значение уравнение уравнения уравнении линейное пожалуйста переменной переменную
неизвестное неизвестную если корень в для это следующее
"""

# Ideographs are single tokens, so these are single signs. None is a numeral or a negation.
_CHINESE = "解 方 程 式 求 的 值 是 多 少 请 下 列 这 个 为 出 未 知 数 中 在 若 则 得 已"
_JAPANESE = "を て く だ さ い の は に 値 何 で す か め 次 け 答 え よ"

_POLISH_ETC = """
rozwiąż równanie oblicz znajdź wartość jest ile wynosi lös ekvationen løs ligningen çözün çöz
denklemi
"""

PLAIN: frozenset[str] = words(
    *(_PUNCTUATION, _ENGLISH, _SPANISH, _PORTUGUESE, _FRENCH, _GERMAN, _ITALIAN, _DUTCH),
    *(_RUSSIAN, _CHINESE, _JAPANESE, _POLISH_ETC),
)
"""Casefolded words and signs of most requests for a solution. There is no negation among them, no
comparison, unit, format or number word, and no set of numbers ("integer", "positive")."""

STRUCTURE: frozenset[str] = words(
    """
    let be suppose assume and is are given that when where if with respect to in terms of
    the a an equation equations system simultaneous pair root roots solution solutions
    real quadratic linear fractional one-variable function same about proportion two lines
    intersect point intersection has have express your answer as common simplified
    fraction simplest form about at following unknowns both hold
    """
)
"""Words that may stand between several equations which hold at once."""

ALTERING: frozenset[str] = words(
    """
    log ln lg sin cos tan cot sec exp sqrt abs max min mod modulo floor ceil gcd lcm det limit
    derivative integral sum square squared cube cubed power twice double triple half third quarter
    percent plus minus times divided multiplied added subtracted increased decreased less more
    greater smaller larger least most inequality between not no never isn't except unless without
    or nicht kein keine ne pas non sin sans senza oder ou niet geen не нет 不 非 或
    two three four five six seven eight nine ten eleven twelve twenty hundred thousand million
    """
)
"""Words that may be a part of the equation said in words, or turn the question around."""

SOLVE_VERBS: frozenset[str] = words(
    """
    solve solving solved find finding determine compute calculate evaluate isolate obtain work
    figure rearrange satisfies looking
    resuelve resuelva resolver resuélveme encuentra encuentre halla halle calcula calcule determina
    despeja resolva resolve encontre encontrar ache achar calcular determine
    résous résoudre résolvez trouve trouver trouvez calcule calculez détermine
    löse lösen löst berechne berechnen bestimme finde ermittle
    risolvi risolvere risolva trova trovare calcola los op oplossen bereken bepaal vind
    решите решить реши найдите найти найди вычислите определите 解 求
    rozwiąż oblicz znajdź lös løs çözün çöz
    """
)
"""Words that ask for the solution by themselves."""

QUESTION_WORDS: frozenset[str] = words(
    """
    what what's whats which express give get tell provide know need want say then have is
    cuál cual dime vale qué qual quanto quelle quel combien vaut was wie lautet quale wat
    чему чего ile 多 少 何
    """
)
"""Words that ask for the solution together with one of :data:`ASKED_NOUNS` or the letter."""

ASKED_NOUNS: frozenset[str] = words(
    """
    value values solution root number answer unknown result valor solución incógnita solução valeur
    solution wert lösung valore soluzione waarde oplossing значение решение корень wartość 值 答
    """
)

MISLEADING: re.Pattern[str] = re.compile(
    r"\b(?:number of|how many|(?:determine|find|out|me|us|see|say|show|compute|prove)"
    r" (?:if|that(?! (?:number|value|unknown|solution)\b)|whether|when)\b"
    r"|know (?:if|whether|when)\b)"
    r"|^\s*(?:is|are|does|do|did|has|have|will)\b(?!.{0,200}\b(?:solve|find|what)\b)",
)
"""Neutral words in an order that asks something else: how many solutions, whether there is one."""
