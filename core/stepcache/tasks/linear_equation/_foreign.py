"""Plain ways to ask for a solution in other languages than English."""

from __future__ import annotations

import re
from functools import cache

from stepcache._phrasing import any_of, compiled

__all__ = ["is_foreign"]

_E = "<equation>"
_X = "<unknown>"
_SIGNS = re.compile(r"[.,:;!?\u00bf\u00a1()$\u3002\uff0c\uff1a\uff1b\uff01\uff1f]")


def _language(
    solve: str,
    the_equation: str,
    by: str,
    find: str,
    value: str,
    what: str,
    where: str,
    please: str,
) -> str:
    """A pattern of the whole requests of a language, without punctuation, by its words.

    Args:
        solve: Imperatives that take the equation.
        the_equation: What may stand before the equation.
        by: What leads from there to the unknown.
        find: Imperatives that take the unknown.
        value: What may stand before the unknown.
        what: Questions that take the unknown.
        where: What leads from the unknown to the equation.
        please: Courtesy, anywhere.
    """
    equation = rf"(?:{any_of(the_equation)} )?{_E}"
    unknown = rf"(?:{any_of(value)} )?{_X}"
    courtesy = rf"(?: ?{any_of(please)} ?)?"
    style = r"(?: ?<style-[a-z-]+> ?)?"
    return (
        rf"{courtesy}(?:"
        rf"{any_of(solve)} {equation}"
        rf"(?: {any_of(by)} {unknown}| (?:{any_of(find, what)} )?{unknown})?"
        rf"|{any_of(find)} {unknown} {any_of(where)} {equation}"
        rf"|(?:{any_of(where)} )?{equation} {any_of(find, what)} {unknown}"
        rf"|{any_of(what)} {unknown} {any_of(where)} {equation}"
        rf"){courtesy}{style}{courtesy}"
    )


_LANGUAGES: dict[str, str] = {
    "es": _language(
        solve="resuelve resuelva resolver resuélveme resolvamos",
        the_equation="la_ecuación la_ecuación_lineal la_siguiente_ecuación esta_ecuación ecuación",
        by="para por despejando en y_encuentra y_halla",
        find="encuentra encuentre encontrar halla halle hallar calcula calcule determina despeja",
        value="el_valor_de la_incógnita el_valor_de_la_incógnita el_valor_de_la_variable",
        what="cuál_es qué_es cuánto_vale cuánto_es qué_vale",
        where="si en de cuando para dado_que dada",
        please="por_favor",
    ),
    "pt": _language(
        solve="resolva resolver resolve",
        the_equation="a_equação a_equação_linear a_seguinte_equação esta_equação equação",
        by="para em e_encontre e_ache",
        find="encontre encontrar ache achar calcule calcular determine determinar",
        value="o_valor_de a_incógnita o_valor_da_incógnita o_valor_da_variável",
        what="qual_é quanto_é quanto_vale",
        where="se em na de quando dado_que dada",
        please="por_favor",
    ),
    "fr": _language(
        solve="résous résoudre résolvez résolvons",
        the_equation="l'équation l'équation_linéaire l'équation_suivante cette_équation équation",
        by="pour en et_trouve et_trouvez",
        find="trouve trouver trouvez calcule calculer calculez détermine déterminer déterminez",
        value="la_valeur_de la_valeur_de_l'inconnue l'inconnue",
        what="quelle_est que_vaut combien_vaut",
        where="si dans de quand pour sachant_que",
        please="s'il_te_plaît s'il_vous_plaît svp",
    ),
    "de": _language(
        solve="löse lösen_sie löst",
        the_equation="die_gleichung die_lineare_gleichung die_folgende_gleichung diese_gleichung",
        by="nach für und_finde und_bestimme",
        find="berechne berechnen_sie bestimme bestimmen_sie finde ermittle ermitteln_sie",
        value="den_wert_von der_wert_von die_unbekannte die_variable",
        what="was_ist wie_lautet wie_groß_ist",
        where="wenn in aus für falls",
        please="bitte",
    ),
    "it": _language(
        solve="risolvi risolvere risolva",
        the_equation="l'equazione l'equazione_lineare la_seguente_equazione questa_equazione",
        by="per rispetto_a e_trova",
        find="trova trovare calcola calcolare determina determinare",
        value="il_valore_di l'incognita il_valore_dell'incognita",
        what="qual_è quanto_vale quanto_è",
        where="se in nell'equazione di quando per",
        please="per_favore",
    ),
    "nl": _language(
        solve="los_op oplossen los",
        the_equation="de_vergelijking de_lineaire_vergelijking deze_vergelijking vergelijking",
        by="voor naar op_voor op_naar op",
        find="bereken bepaal vind",
        value="de_waarde_van de_onbekende",
        what="wat_is hoeveel_is",
        where="als in uit voor",
        please="alsjeblieft alstublieft",
    ),
    "ru": _language(
        solve="решите решить реши",
        the_equation="уравнение линейное_уравнение следующее_уравнение это_уравнение",
        by="относительно для",
        find="найдите найти найди вычислите определите",
        value="значение значение_переменной переменную неизвестное",
        what="чему_равно чему_равен чему_равна",
        where="если в из для",
        please="пожалуйста",
    ),
    "pl": _language(
        solve="rozwiąż",
        the_equation="równanie",
        by="względem",
        find="oblicz znajdź",
        value="wartość",
        what="ile_wynosi",
        where="z jeśli gdy",
        please="proszę",
    ),
    "sv": _language(
        solve="lös",
        the_equation="ekvationen",
        by="för",
        find="beräkna",
        value="värdet_av",
        what="vad_är",
        where="om i",
        please="tack",
    ),
    "tr": (rf"{_E} denklemini çözün|denklemini çözün {_E}|(?:denklemi )?çözün {_E}|{_E} çöz"),
    "da": (rf"løs ligningen {_E}"),
    "zh": (
        rf"(?:请)?\s?(?:解|求解)\s?(?:下列|下面的|这个)?\s?(?:一元一次)?(?:方程|方程式)?\s?{_E}"
        rf"(?:\s?(?:求|，求)\s?{_X}\s?(?:的值)?)?"
        rf"|(?:已知|若|如果)?\s?(?:方程)?\s?{_E}\s?(?:则|求|，则|，求)\s?{_X}\s?(?:的值|是多少|等于多少|的值是多少)?"
        rf"|(?:请)?\s?求\s?(?:方程)?\s?{_E}\s?(?:的解|中\s?{_X}\s?的值|中的未知数)"
    ),
    "ja": (
        rf"(?:次の)?\s?(?:方程式|一次方程式)?\s?(?:を解いてください|を解け|を解きなさい|を解いて)?\s?{_E}\s?"
        rf"(?:を解いてください|を解け|を解きなさい|を解いて|のとき\s?{_X}\s?の値を求めてください|のとき\s?{_X}\s?は何ですか"
        rf"|の\s?{_X}\s?の値は何ですか|の\s?{_X}\s?を求めてください|の解を求めよ|の解を求めてください)?"
    ),
}
"""The requests of each language by its code, the plainest only."""


def is_foreign(text: str) -> bool:
    """Whether a request in another language asks for the solution and nothing else.

    Args:
        text: The request in lower case, its equation, unknown and style replaced by their names.
    """
    plain = " ".join(_SIGNS.sub(" ", text).split())
    return any(pattern.fullmatch(plain) for pattern in _patterns())


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Made when there is the first request to read."""
    return tuple(map(compiled, _LANGUAGES.values()))
