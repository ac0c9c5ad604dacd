"""Right answers in the languages people answer in pass, and no changed number slips through."""

from __future__ import annotations

import re

import pytest

from stepcache._types import Constraints, Message, Request, Status, Verdict
from stepcache.tasks.linear_equation import LinearEquationTask

TASK = LinearEquationTask()
REQUESTS = {
    "de": "Löse die Gleichung 4x + 7 = 31.",
    "fr": "Résous l'équation 4x + 7 = 31.",
    "es": "Resuelve la ecuación 4x + 7 = 31.",
    "it": "Risolvi l'equazione 4x + 7 = 31.",
    "pt": "Resolva a equação 4x + 7 = 31.",
    "ru": "Решите уравнение 4x + 7 = 31.",
    "zh": "解方程：4x + 7 = 31",
    "ja": "方程式 4x + 7 = 31 を解いてください。",
    "en": "Solve 4x + 7 = 31.",
}

ANSWERS: list[tuple[str, str]] = [
    (
        "de",
        "Gegeben ist die Gleichung 4x + 7 = 31.\n\n"
        "1. Subtrahiere 7 auf beiden Seiten: 4x = 24.\n"
        "2. Teile beide Seiten durch 4: x = 6.\n\n"
        "Probe: 4 · 6 + 7 = 24 + 7 = 31. Die Lösung lautet x = 6.",
    ),
    (
        "de",
        "Wir ziehen auf beiden Seiten 7 ab und erhalten\n$$4x = 31 - 7 = 24.$$\n"
        "Nun dividieren wir durch 4, also ist $x = 6$.",
    ),
    ("de", "Zuerst 7 auf beiden Seiten abziehen: 4x = 24. Danach durch 4 teilen. x ist gleich 6."),
    (
        "de",
        "| Schritt | Rechnung |\n|---|---|\n| 7 subtrahieren | 4x = 24 |\n"
        "| durch 4 teilen | x = 6 |\n",
    ),
    ("de", "Ziehe sieben von beiden Seiten ab: 4x = 24.\r\nTeile durch vier: x = 6.\r\n"),
    (
        "fr",
        "On part de l'équation 4x + 7 = 31.\n\nÉtape 1 : on soustrait 7 des deux côtés, "
        "ce qui donne 4x = 24.\nÉtape 2 : on divise les deux membres par 4 : x = 6.\n\n"
        "Vérification : 4 × 6 + 7 = 31.",
    ),
    ("fr", "En soustrayant 7, on obtient 4x = 24, puis on divise par 4 et la solution est 6."),
    ("fr", "Pas à pas :\r\n- 4x = 31 - 7\r\n- 4x = 24\r\n- x = 24/4 = 6\r\n\r\nLa réponse est 6."),
    ("fr", "Retranchons sept aux deux membres : 4x = 24. Donc x est égal à 6."),
    (
        "es",
        "La ecuación dada es 4x + 7 = 31.\n\n**Paso 1:** Restamos 7 a ambos lados y queda "
        "4x = 24.\n**Paso 2:** Dividimos entre 4 y obtenemos x = 6.\n\n"
        "Comprobación: 4(6) + 7 = 31.",
    ),
    ("es", "4x = 31 - 7 y entonces 4x = 24, así que x = 24/4 y x = 6."),
    ("es", "Resta siete en ambos miembros: 4x = 24. Divide por 4. El valor de x es 6."),
    (
        "it",
        "Partiamo dall'equazione 4x + 7 = 31. Sottraiamo 7 da entrambi i membri: 4x = 24. "
        "Dividendo per 4 otteniamo x = 6.\nVerifica: 4 · 6 + 7 = 24 + 7 = 31.",
    ),
    ("it", "- Sottrai 7: 4x = 24\n- Dividi per 4: x = 6\n\nLa soluzione è 6."),
    ("it", "L'equazione diventa 4x = 24 e x = 6."),
    (
        "pt",
        "A equação é 4x + 7 = 31.\n\nPasso 1: subtraia 7 dos dois lados: 4x = 24.\n"
        "Passo 2: divida ambos os lados por 4: x = 6.\n\nPortanto, a solução é x = 6.",
    ),
    ("pt", "Subtraindo sete de ambos os lados, a equação fica 4x = 24 e, ao dividir por 4, x = 6."),
    ("pt", "O valor de x é 6, pois 4 · 6 + 7 = 31."),
    (
        "ru",
        "Дано уравнение 4x + 7 = 31.\n\n1) Вычтем 7 из обеих частей: 4x = 24.\n"
        "2) Разделим обе части на 4: x = 6.\n\nОтвет: 6",
    ),
    ("ru", "Шаг 1: 4x = 31 - 7, то есть 4x = 24. Шаг 2: x = 24 : 4 = 6.".replace(" : ", "/")),
    ("ru", "Вычитаем семь, получаем 4x = 24 и x = 6. Проверка: 4·6 + 7 = 31."),
    ("ru", "Значение x равно 6."),
    (
        "zh",
        "原方程是 4x + 7 = 31。\n\n第一步：两边同时减去7，得 4x = 24。\n"
        "第二步：两边同时除以4，得 x = 6。\n\n检验：4×6 + 7 = 24 + 7 = 31。所以方程的解是 x = 6。",
    ),
    ("zh", "解：移项，得4x = 31 - 7，即4x = 24，两边除以4，x = 6。"),
    ("zh", "两边都减去七：4x＝24，所以x的值是6。"),
    ("zh", "| 步骤 | 结果 |\n|---|---|\n| 减去7 | 4x = 24 |\n| 除以4 | x = 6 |\n\n答案：6"),
    (
        "ja",
        "元の方程式は 4x + 7 = 31 です。\n\nステップ1：両辺から7を引くと、4x = 24 になります。\n"
        "ステップ2：両辺を4で割ると、x = 6 です。\n\n確認：4×6 + 7 = 31。答えは6です。",
    ),
    ("ja", "両辺から7を引いて4x = 24。両辺を4で割って、x = 6となります。"),
    ("ja", "7を移項すると4x = 31 - 7、つまり4x = 24なので、xの値は6です。"),
    (
        "en",
        "To solve this, follow the steps.\n\n1. **Isolate the term**:\n   Start by subtracting 7 from "
        "both sides.\n   \\[\n   4x + 7 - 7 = 31 - 7\n   \\]\n   We get:\n   \\[\n   4x = 24\n"
        "   \\]\n\n2. **Solve for \\(x\\)**:\n   Divide both sides by 4.\n   \\[\n"
        "   \\frac{4x}{4} = \\frac{24}{4}\n   \\]\n\nSo the solution is \\(\\boxed{6}\\).",
    ),
    (
        "en",
        "Subtract seven from the two sides to get 4x = 24.\r\nDivide by 4: x = 6.\r\n"
        "Double-check: 4 * 6 + 7 = 31.\r\n",
    ),
]
NUMBER = re.compile(r"\d+")


def check(answer: str, request: str) -> Verdict:
    parsed = TASK.parse(Request(messages=(Message(role="user", text=request),)))
    assert isinstance(parsed, Constraints), (request, parsed)
    return TASK.check(TASK.segment(answer), parsed)


@pytest.mark.parametrize(("language", "answer"), ANSWERS)
def test_right_answers_in_many_languages_pass(language, answer):
    """Worked answers with lists, tables, CRLF or on one line are read in every language."""
    assert check(answer, REQUESTS[language]).status is Status.PASS, check(
        answer, REQUESTS[language]
    )


@pytest.mark.parametrize(("language", "answer"), ANSWERS)
def test_no_changed_number_passes_in_any_language(language, answer):
    """One number of an answer changed, whichever: it is never taken for right."""
    for match in NUMBER.finditer(answer):
        if _numbers_a_step(answer, match):
            continue
        number = int(match.group())
        for other in {number + 1, number - 1, number + 10, 2 * number, 7, 4, 24, 31, 6} - {number}:
            changed = answer[: match.start()] + str(other) + answer[match.end() :]
            verdict = check(changed, REQUESTS[language])
            assert verdict.status is not Status.PASS, changed


def _numbers_a_step(answer: str, match: re.Match[str]) -> bool:
    before = answer[: match.start()]
    head = not before.split("\n")[-1].strip() and answer[match.end() : match.end() + 1] in ".)"
    words = ("Étape ", "Paso ", "Passo ", "Шаг ", "Schritt ", "ステップ")
    return head or before.endswith(words)


WRONG = [
    ("de", "Die Gleichung hat keine Lösung."),
    ("de", "x = 6 ist nicht die Lösung."),
    ("fr", "L'équation n'a pas de solution."),
    ("fr", "La solution est 5, donc x = 6."),
    ("es", "No tiene solución."),
    ("es", "4x = 24 y x = 5"),
    ("es", "La ecuación es 2x + 7 = 19. Entonces x = 6."),
    ("it", "Ci sono infinite soluzioni."),
    ("it", "x = 6 è un valore errato."),
    ("pt", "Não há solução."),
    ("pt", "Subtraia nove dos dois lados: 4x = 24. x = 6"),
    ("ru", "Решений нет."),
    ("ru", "Вычтем 8 из обеих частей: 4x = 24, x = 6."),
    ("zh", "此方程无解。"),
    ("zh", "两边同时减去8，得 4x = 24，x = 6。"),
    ("zh", "两边同时减去八，得 4x = 24，x = 6。"),
    ("zh", "x = 6 不是方程的解。"),
    ("ja", "両辺から8を引くと、4x = 24。x = 6。"),
    ("ja", "解はありません。"),
    ("ja", "x = 6 ではありません。"),
    ("en", "x = 6 is not the solution."),
    ("en", "x = 6 does not satisfy the equation."),
    ("en", "Then 4x = 24 y x = 6"),
    ("en", "Move 4 to the right: 4x = 24. x = 6"),
]


@pytest.mark.parametrize(("language", "answer"), WRONG)
def test_wrong_claims_in_words_never_pass(language, answer):
    """No solution, another operation, a denial: no language hides it."""
    assert check(answer, REQUESTS[language]).status is not Status.PASS


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("Löse 5x = 5x + 1.", "5x auf beiden Seiten subtrahieren: 0 = 1. Keine Lösung."),
        ("Résous 5x = 5x + 1.", "En soustrayant 5x : 0 = 1. L'équation n'a pas de solution."),
        ("Resuelve 5x = 5x + 1.", "Restamos 5x: 0 = 1. La ecuación no tiene solución."),
        ("Решите 5x = 5x + 1.", "Вычтем 5x: 0 = 1. Уравнение не имеет решений."),
        ("解方程：5x = 5x + 1", "两边减去5x，得0 = 1，所以方程无解。"),
        ("Risolvi 2(x + 1) = 2x + 2", "I lati sono uguali: infinite soluzioni."),
        ("Resolva 2(x + 1) = 2x + 2", "Os lados são iguais: infinitas soluções."),
        ("解方程：2(x + 1) = 2x + 2", "两边相等，有无数个解。"),
    ],
)
def test_none_and_all_are_said_in_many_languages(request_text, answer):
    """No solution and every number are results in each language."""
    assert check(answer, request_text).status is Status.PASS, check(answer, request_text)
