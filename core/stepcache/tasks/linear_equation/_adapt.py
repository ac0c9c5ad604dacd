"""Re-derive cached steps for new numbers, without a model.

For ``a*x + b = c*x + d`` every number in a worked answer plays a *role*: one of a, b, c, d, or of
``p = a - c``, ``q = d - b`` and the solution ``s = q / p``, which the derivation leads to. Each
number of a cached step is given a role that it has in the old request, its new value is put in
its place (signs and the words for adding and subtracting turn along), and the letter is renamed.

Several roles can share a value (2 in ``2x + 2 = 10``). A choice of roles for an equation is
accepted only if it makes a true statement of the new request *and* of two requests nobody asked,
with large numbers that coincide nowhere: so it follows from the derivation, not from chance. What
has a number without a role, or is not plainly understood, is not adapted at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from math import gcd
from typing import TypeAlias

from stepcache._types import Status, Step
from stepcache.tasks.linear_equation._algebra import Unreadable
from stepcache.tasks.linear_equation._check import check_answer
from stepcache.tasks.linear_equation._lex import Token, lex
from stepcache.tasks.linear_equation._moves import is_marker
from stepcache.tasks.linear_equation._problem import Problem
from stepcache.tasks.linear_equation._prose import (
    STEP_WORDS,
    operation,
    operation_behind,
    says_answer,
)
from stepcache.tasks.linear_equation._roles import Change, Roles, changes_between
from stepcache.tasks.linear_equation._scan import Run, runs, scan
from stepcache.tasks.linear_equation._verify import examine

__all__ = ["adapted"]

_MAX_STEPS = 60
_MAX_CHARS = 8_000
_MAX_CHOICES = 256

Edit: TypeAlias = tuple[int, int, str]


class _NotExplained(Exception):
    """Something in a step has no role."""


def adapted(steps: Sequence[Step], old: Problem, new: Problem) -> tuple[Step, ...] | None:
    """The steps for the new problem; None where not all of it is explained.

    What is returned has passed :func:`check_answer` for the new problem.
    """
    if len(steps) > _MAX_STEPS or sum(len(s.text) for s in steps) > _MAX_CHARS:
        return None
    for change in changes_between(old, new):
        try:
            texts = [_rewritten(step.text, change) for step in steps]
        except (_NotExplained, Unreadable):
            continue
        made = tuple(
            Step(index=step.index, text=text, kind=step.kind) for step, text in zip(steps, texts)
        )
        if check_answer(made, new).status is Status.PASS:
            return made
    return None


# --- one step --------------------------------------------------------------------------------


def _rewritten(text: str, change: Change) -> str:
    tokens = lex(text)
    edits: list[Edit] = []
    before: Run | None = None
    for found in scan(tokens):
        run = _with_fractions(found, change.old["s"])
        if run.bad is not None or run.glued:
            raise _NotExplained(run)
        edits += _letters(run, change)
        if run.equals:
            edits += _equation(text, run, change)
        elif run.has_digits:
            edits += _mention(text, tokens, run, before, change)
        before = run
    return _edited(text, edits)


def _with_fractions(run: Run, value: Fraction) -> Run:
    """The run with each fraction that is the solution as one number: ``7/2``, ``\\frac{7}{2}``."""
    if value.denominator == 1:
        return run
    parts = [str(abs(value.numerator)), str(value.denominator)]
    tokens = list(run.tokens)
    for index in range(len(tokens) - 1, -1, -1):
        for length, plain in ((3, [parts[0], "/", parts[1]]), (7, _frac(parts))):
            piece = tokens[index : index + length]
            if [t.text for t in piece] == plain or (
                [t.text for t in piece[1:]] == plain[1:] and (piece[0].kind == "frac")
            ):
                whole = Token(
                    "number",
                    "/".join(parts),
                    piece[0].start,
                    piece[-1].stop,
                    piece[0].spaced,
                    piece[0].maths,
                )
                tokens[index : index + length] = [whole]
                break
    return replace(run, tokens=tuple(tokens))


def _frac(parts: Sequence[str]) -> list[str]:
    return ["frac", "{", parts[0], "}", "{", parts[1], "}"]


def _letters(run: Run, change: Change) -> list[Edit]:
    old, new = change.letters
    found = [t for t in run.tokens if t.kind == "letter"]
    if any(t.text != old for t in found):
        raise _NotExplained(run)
    return [(t.start, t.stop, new) for t in found] if old != new else []


def _equation(text: str, run: Run, change: Change) -> list[Edit]:
    """The first choice of roles that holds for the new request and for those nobody asked."""
    places = [i for i, t in enumerate(run.tokens) if t.kind == "number"]
    choices = [_candidates(run, i, change.old) for i in places]
    if not all(choices):
        raise _NotExplained(run)
    letters = _letters(run, change)
    targets = [(change.new, change.problem), *change.others]
    for choice in islice(product(*choices), _MAX_CHOICES):
        if all(
            _holds(text, run, letters + _replaced(run, places, choice, change.old, roles), problem)
            for roles, problem in targets
        ):
            return _tidy(text, run, _replaced(run, places, choice, change.old, change.new))
    raise _NotExplained(run)


def _tidy(text: str, run: Run, edits: list[Edit]) -> list[Edit]:
    """The edits, unless they turn a plain result into one like ``x = 20/5``.

    A quotient on the way (``x = 10/2``) was one before; a result in lowest terms is to stay one.
    """
    if not any(gcd(int(a.text), int(b.text)) == 1 for a, b in _quotients(run.tokens)):
        return edits
    made = runs(_edited(text[run.start : run.stop], _shifted(run, edits)))
    pairs = [pair for again in made for pair in _quotients(again.tokens)]
    if any(gcd(int(a.text), int(b.text)) != 1 for a, b in pairs):
        raise _NotExplained(run)
    return edits


def _quotients(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Whole numbers over whole numbers."""
    for i, token in enumerate(tokens):
        if not (token.kind == "number" and token.text.isdecimal()):
            continue
        plain = [t.text for t in tokens[i + 1 : i + 2]] == ["/"]
        nested = [t.text for t in tokens[i + 1 : i + 3]] == ["}", "{"]
        at = i + 2 if plain else i + 3 if nested else len(tokens)
        if at < len(tokens) and tokens[at].kind == "number" and tokens[at].text.isdecimal():
            yield token, tokens[at]


def _shifted(run: Run, edits: Sequence[Edit]) -> list[Edit]:
    return [(a - run.start, b - run.start, new) for a, b, new in edits]


def _holds(text: str, run: Run, edits: list[Edit], problem: Problem) -> bool:
    findings = examine(_edited(text[run.start : run.stop], _shifted(run, edits)), problem)
    return findings.verdict.status is Status.PASS and findings.claims > 0


def _candidates(run: Run, index: int, old: Roles) -> list[str]:
    """Roles with the number's value, the likeliest for its place first."""
    value = abs(Fraction(run.tokens[index].text))
    before = run.tokens[index - 1] if index else None
    after = run.tokens[index + 1] if index + 1 < len(run.tokens) else None
    factor = after is not None and after.kind in ("letter", "open", "frac")
    divisor = before is not None and before.text == "/"
    second = (
        before is not None
        and before.kind == "open"
        and index > 1
        and (run.tokens[index - 2].kind == "close")
    )
    order = "apcsqbdmn" if factor or divisor or second else "bdqsmnpac"
    return [role for role in order if abs(old[role]) == value and (old[role] or role == "d")]


def _replaced(
    run: Run, places: Sequence[int], choice: Sequence[str], old: Roles, new: Roles
) -> list[Edit]:
    edits: list[Edit] = []
    for index, role in zip(places, choice):
        edits += _number(run, index, old[role], new[role])
    return edits


def _number(run: Run, index: int, old: Fraction, new: Fraction) -> list[Edit]:
    """Put one number in the place of another; where the sign turns, what stands before it turns."""
    token = run.tokens[index]
    before = run.tokens[index - 1] if index else None
    after = run.tokens[index + 1] if index + 1 < len(run.tokens) else None
    written = _written(abs(new), token, before, after)
    if (old < 0) == (new < 0):
        return [(token.start, token.stop, written)]
    if before is not None and before.kind == "op" and before.text in "+-":
        if before.text == "-" and _begins(run, index - 1):
            return [(before.start, token.start, ""), (token.start, token.stop, written)]
        sign = "-" if before.text == "+" else "+"
        return [(before.start, before.stop, sign), (token.start, token.stop, written)]
    if _begins(run, index):
        return [(token.start, token.stop, f"-{written}")]
    return [(token.start, token.stop, f"(-{written})")]


def _begins(run: Run, index: int) -> bool:
    """Whether a token stands first in a side or in brackets."""
    if index == 0:
        return True
    return run.tokens[index - 1].kind in ("eq", "open")


def _written(value: Fraction, token: Token, before: Token | None, after: Token | None) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    if "." in token.text:
        decimal = _decimal(value)
        if decimal is not None:
            return decimal
    if token.maths:
        return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    tight = (after is not None and (after.kind in ("letter", "open") or after.text in "/^")) or (
        before is not None and before.text in ("/", "^")
    )
    plain = f"{value.numerator}/{value.denominator}"
    return f"({plain})" if tight else plain


def _decimal(value: Fraction) -> str | None:
    for places in range(1, 7):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = str(scaled.numerator).rjust(places + 1, "0")
            return f"{digits[:-places]}.{digits[-places:]}"
    return None


# --- numbers in sentences ----------------------------------------------------------------------


def _mention(
    text: str, tokens: Sequence[Token], run: Run, before: Run | None, change: Change
) -> list[Edit]:
    """A number or term in a sentence: its role must be plain from the words, or there be one."""
    if is_marker(text, run) or (run.before[-1:] and run.before[-1] in STEP_WORDS):
        return []
    places = [i for i, t in enumerate(run.tokens) if t.kind == "number"]
    verb = operation(run.before) or operation_behind(run.behind)
    choice = [_role(run, i, verb, before, change) for i in places]
    edits = _replaced(run, places, choice, change.old, change.new)
    turned = [r for r in choice if (change.old[r] < 0) != (change.new[r] < 0)]
    if verb in ("add", "subtract") and turned:
        if len(choice) != 1 or any(t.kind == "op" for t in run.tokens):
            raise _NotExplained(run)
        token = run.tokens[places[0]]
        before_token = run.tokens[places[0] - 1] if places[0] else None
        after = run.tokens[places[0] + 1] if places[0] + 1 < len(run.tokens) else None
        value = abs(change.new[choice[0]])
        edits = [(token.start, token.stop, _written(value, token, before_token, after))]
        edits += _turned_words(tokens, run, verb)
    return edits


def _role(run: Run, index: int, verb: str | None, before: Run | None, change: Change) -> str:
    value = abs(Fraction(run.tokens[index].text))
    after = run.tokens[index + 1] if index + 1 < len(run.tokens) else None
    of_unknown = after is not None and after.kind == "letter"
    if verb in ("add", "subtract"):
        wanted = "ca" if of_unknown else "bd"
    elif verb in ("divide", "multiply"):
        wanted = "pa"
    elif run.boxed:
        wanted = "s"
    else:
        wanted = "acp" if of_unknown else "abcdpqs"
    fitting = [r for r in wanted if change.old[r] and abs(change.old[r]) == value]
    if verb in ("add", "subtract"):  # what is added has the other sign
        fitting = [r for r in fitting if (change.old[r] > 0) == (verb == "subtract")]
    if verb is None and "s" in fitting and _says_result(run, before, change):
        return "s"
    outcomes = {change.new[r] * (1 if change.old[r] > 0 else -1) for r in fitting}
    if len(outcomes) != 1:
        raise _NotExplained(run)
    return fitting[0]


def _says_result(run: Run, before: Run | None, change: Change) -> bool:
    """``the solution is 5``, ``x is 5``."""
    if says_answer(run.before[-6:]):
        return True
    linked = run.before in (("is",), ("equals",), ("is", "equal", "to"))
    return linked and before is not None and before.single == change.letters[0]


_TURNED = {
    "subtract": "add",
    "subtracting": "adding",
    "subtracted": "added",
    "subtracts": "adds",
    "add": "subtract",
    "adding": "subtracting",
    "added": "subtracted",
    "adds": "subtracts",
}
_LINK = {"subtract": ("from", "to"), "add": ("to", "from")}


def _turned_words(tokens: Sequence[Token], run: Run, verb: str) -> list[Edit]:
    """``Subtract 3 from`` becomes ``Add 3 to``, and back."""
    at = next(i for i, t in enumerate(tokens) if t.start == run.start)
    words = [t for t in tokens[max(0, at - 8) : at] if t.kind == "word"]
    word = next((t for t in reversed(words) if t.text.casefold() in _TURNED), None)
    behind = [t for t in tokens[at:] if t.start >= run.stop and t.kind == "word"]
    old, new = _LINK[verb]
    if word is None or not behind or behind[0].text.casefold() != old:
        raise _NotExplained(run)
    turned = _TURNED[word.text.casefold()]
    if word.text[0].isupper():
        turned = turned.capitalize()
    return [(word.start, word.stop, turned), (behind[0].start, behind[0].stop, new)]


def _edited(text: str, edits: Sequence[Edit]) -> str:
    pieces: list[str] = []
    at = 0
    for start, stop, new in sorted(edits):
        if start < at:
            raise _NotExplained(text)
        pieces += (text[at:start], new)
        at = stop
    return "".join((*pieces, text[at:]))
