"""The styles of an answer that a request may demand, and where it does."""

from __future__ import annotations

import re

from stepcache._phrasing import any_of, compiled
from stepcache._types import Span
from stepcache.tasks.linear_equation._algebra import Unreadable

__all__ = ["read_style"]

_BRIEF = any_of("brief short concise compact succinct terse quick")
_BRIEFLY = (
    rf"(?:{any_of('briefly concisely succinctly tersely compactly quickly in_brief in_short')}"
    rf"|in (?:an? )?{_BRIEF} (?:form|manner|way))"
)
_WORK = any_of("steps? working workings work derivation calculations? reasoning solution_steps")
_SHOW = any_of(
    "show showing see include including give write writing present set_out setting_out lay_out",
    "laying_out provide add with using in plus",
)
_SHOWN = (
    rf"{_SHOW} (?:me )?(?:{any_of('your the its each every all of some a_few main out')} ){{0,3}}"
)
_STEP_BY_STEP = r"step[\s-]+by[\s-]+step\b"
_SAY = any_of("give return reply respond answer state provide write output show")

_STYLES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "brief",
        compiled(
            rf"\b(?:(?:and|but|please) )?(?:"
            rf"(?:{_SHOWN})?{_BRIEF}\s{{0,3}},? "
            rf"(?:{any_of('clear simple clearly_shown and_simple')} )?{_WORK}\b"
            rf"(?: {any_of('shown please will_do are_fine is_fine along_the_way')})?"
            rf"|(?:{_SHOWN})?{_WORK}\s{{0,3}},? (?:(?:written )?(?:down|out) )?"
            rf"(?:{_BRIEFLY}\b|\(?{_BRIEF}\)?(?=\s{{0,3}}(?:[.,;:)]|$)))"
            rf"|(?:{_BRIEFLY},? show(?:ing)?|show(?:ing)?,? {_BRIEFLY},?) "
            rf"(?:me )?(?:{any_of('your the each all of')} ){{0,3}}{_WORK}\b"
            rf"|{any_of('keep keeping kept')}(?: (?:it|them|(?:(?:the|your) )?{_WORK}))?"
            rf" (?:nice and )?{_BRIEF}\b"
            r"|be (?:brief|concise)(?: about it)?\b"
            rf"|{_BRIEF} solution\b)"
        ),
    ),
    (
        "steps",
        compiled(
            rf"\bhow {any_of('do does would can could should to is are')}\b|\bwalk me through\b"
            rf"|\b(?:(?:and|please) )?{any_of('show showing explain include write with')} "
            rf"(?:me )?(?:out )?(?:all )?(?:of )?(?:{any_of('your the each every all')} )?"
            rf"(?:detailed )?{any_of('work working workings steps step')}\b(?:,? {_STEP_BY_STEP})?"
            rf"|\b(?:explain|show) (?:your|the) (?:full )?reasoning\b(?:,? {_STEP_BY_STEP})?"
            rf"|\b(?:detailed )?{_STEP_BY_STEP}"
        ),
    ),
    (
        "answer-only",
        compiled(
            rf"\b(?:{_SAY} (?:me )?(?:with )?)?(?:just|only) (?:with )?(?:the )?(?:final )?"
            rf"{any_of('answer value result solution')}\b|\b(?:the )?(?:final )?answer only\b"
        ),
    ),
    (
        "number",
        compiled(
            rf"\b(?:{_SAY} (?:me )?(?:with )?"
            r"(?:(?:just|only) (?:the|a) (?:(?:bare|single) )?number"
            r"|(?:the|a) (?:(?:bare|single) )?number (?:only|alone))"
            r"|(?:just|only) the (?:(?:bare|single) )?number|(?:the )?number only)"
            r"(?! (?:[a-z]\b|of\b|that\b|which\b|for\b))"
            r"(?:,? (?:and )?(?:write )?nothing else\b)?"
        ),
    ),
    (
        "boxed",
        compiled(
            rf"\b{any_of('put place write give enclose box')} (?:the|your) (?:final )?"
            rf"(?:{any_of('answer result solution')}|value of \$?[a-z]\$?) "
            rf"{any_of('in into inside within')} (?:a )?\$?\\boxed\{{[\s.]{{0,3}}\}}\$?"
            r"(?: (?:on|at) (?:the|its) (?:last line|end))?"
        ),
    ),
)
"""Typed demands on the style of an answer, by name."""


def read_style(text: str) -> tuple[str, list[Span]]:
    """The style that a request demands, empty for none, and the words that demand it.

    Raises:
        Unreadable: It demands several that exclude one another.
    """
    found = [(name, match) for name, pattern in _STYLES for match in pattern.finditer(text)]
    names = {name for name, _ in found}
    if names == {"brief", "steps"}:
        names = {"brief"}
    if len(names) > 1:
        raise Unreadable("the request demands steps and the bare answer at once")
    spans: list[Span] = []
    for name, match in sorted(found, key=lambda f: f[1].start()):
        if not spans or match.start() >= spans[-1].stop:
            spans.append(Span(start=match.start(), stop=match.end(), name=f"style-{name}"))
    return (names.pop() if names else ""), spans
