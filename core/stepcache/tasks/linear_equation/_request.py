"""A prompt to constraints, or the reason why it is not ours. Never guesses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from stepcache._difference import content, masked, residue, tokens
from stepcache._types import Constraints, Declined, Span
from stepcache.tasks.linear_equation._algebra import Poly, Quotient, Unreadable, symbol
from stepcache.tasks.linear_equation._lex import Token, lex
from stepcache.tasks.linear_equation._parse import expression, sides
from stepcache.tasks.linear_equation._problem import (
    Equation,
    decode,
    encode,
    make_problem,
)
from stepcache.tasks.linear_equation._scan import Run, scan
from stepcache.tasks.linear_equation._styles import read_style
from stepcache.tasks.linear_equation._wording import read_wording
from stepcache.tasks.linear_equation._words import (
    ALTERING,
    ASKED_NOUNS,
    MISLEADING,
    PLAIN,
    QUESTION_WORDS,
    SOLVE_VERBS,
    STRUCTURE,
    words,
)

__all__ = ["read_request"]

_MAX_CHARS = 8_000
_MAX_CONTENT = 12
"""Words beyond the neutral ones above which an equation stands inside some other task."""
_NUMBERED = re.compile(
    r"\s{0,8}(?:[(\[]?(?:Q|q|No\.?|\#)?\s?\d{1,3}(?:[.):\u3001\uff0e\uff09\]]|\s[-\u2013](?=\s[^\W\d_]{2}))(?!\d))"
)
_ASK_BEFORE = words(
    "for of find determine compute calculate isolate is what evaluate value get variable unknown",
    "de para von für nach pour per voor naar переменную po 求",
)
_COURTESY = words("please kindly . , : ; ! ( ) -")
_ORDERS = {"first": 1, "second": 2, "third": 3}


@dataclass
class _Reading:
    """What was found so far."""

    equations: list[Equation] = field(default_factory=list)
    functions: dict[str, tuple[str, Quotient]] = field(default_factory=dict)
    letters: set[str] = field(default_factory=set)
    nonzero: list[Poly] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    mentions: list[Run] = field(default_factory=list)
    pending: Run | None = None
    """The name of ``Let NAME be`` or ``Let f(x) be``, until its value comes."""
    written: int = 0
    """Equations as written, definitions of functions included."""


def read_request(text: str, task: str, version: str) -> Constraints | Declined:
    """The constraints of a prompt, or the reason for declining. Never raises on any text."""
    if len(text) > _MAX_CHARS:
        return Declined(reason=f"longer than {_MAX_CHARS} characters")
    if "=" not in text and "\uff1d" not in text:
        return Declined(reason="there is no equation")
    try:
        return _read(text, task, version)
    except Unreadable as error:
        return Declined(reason=str(error))


def _read(text: str, task: str, version: str) -> Constraints:
    reading = _Reading()
    style, style_spans = read_style(text)
    numbered = _NUMBERED.match(text)
    begin = numbered.end() if numbered else 0
    if numbered:
        reading.spans.append(Span(start=0, stop=begin, name="question-number"))
    lexed = [
        Token("stop", "", t.start, t.stop) if _inside(t.start, style_spans) else t
        for t in lex(text)
        if t.start >= begin
    ]
    if sum((t.kind == "open") - (t.kind == "close") for t in lexed) > 0:
        raise Unreadable("a bracket is not closed")
    for run in scan(lexed):
        _take(run, reading)
    reading.spans += _markup(lexed, reading.spans)
    if reading.pending is not None:
        raise Unreadable("a definition without its value")
    if not reading.equations:
        raise Unreadable("there is no equation")
    if not reading.letters:
        raise Unreadable("there is no unknown")
    unknown = _asked(reading)
    spans = tuple(sorted([*reading.spans, *style_spans], key=lambda s: s.start))
    _judge_rest(content(text, spans, PLAIN), text, spans, reading)
    problem = make_problem(unknown, reading.equations, style, reading.nonzero)
    wording = read_wording(text, spans)
    found = Constraints(
        task=task,
        version=version,
        values=encode(problem),
        spans=tuple(sorted([*spans, *wording.spans], key=lambda span: span.start)),
        whole=wording.whole,
    )
    decode(found)  # what cannot be read back, such as a number grown too long, is not ours
    return found


def _markup(tokens: Sequence[Token], spans: Sequence[Span]) -> list[Span]:
    """Blanks and commands that stand outside of what was read."""
    return [
        Span(start=t.start, stop=t.stop, name="markup")
        for t in tokens
        if _is_markup(t) and not _inside(t.start, spans)
    ]


def _is_markup(token: Token) -> bool:
    if token.kind == "mark":
        return token.text[0] == "\\"
    return token.text == "=>" or (token.kind == "blank" and token.text[0] == "_")


def _inside(at: int, spans: Sequence[Span]) -> bool:
    return any(s.start <= at < s.stop for s in spans)


def _take(run: Run, reading: _Reading) -> None:
    if run.bad is not None:
        raise Unreadable(f"{run.bad.text!r} is not part of a linear equation")
    if run.single is not None and run.equals <= 1:
        _take_letter(run, reading)
        return
    if run.glued:
        raise Unreadable("a word stands against the equation")
    if run.equals == 0:
        _take_expression(run, reading)
        return
    if run.equals > 1:
        raise Unreadable("a chain of equations")
    if run.before[-1:] == ("-",):
        raise Unreadable("a dash before the equation: a minus sign or the sentence's own")
    if _numbered_behind(run):
        raise Unreadable("a number in brackets behind the equation: its label or a factor")
    if _stray_letter(run):
        raise Unreadable("a letter behind the equation: a factor or what is asked")
    if run.after == "!" and run.has_digits and run.tokens[-1].kind != "letter":
        raise Unreadable("a factorial or an exclamation: ambiguous")
    if any(t.kind == "blank" for t in run.tokens):
        raise Unreadable("an equation with a blank")
    _take_equation(run, reading)


def _take_letter(run: Run, reading: _Reading) -> None:
    """A letter alone, with or without ``= ?`` behind it."""
    if run.before[-1:] == ("let",) and run.after == "be":
        reading.pending = run
        return
    if run.glued:
        return  # part of a word: it stays in the residue
    reading.mentions.append(run)


def _take_expression(run: Run, reading: _Reading) -> None:
    if reading.pending is not None:
        _take_definition(run, reading.pending, reading)
        reading.pending = None
    elif run.before[-1:] == ("let",) and run.after == "be" and _is_call(run):
        reading.pending = run
    elif run.letters:
        raise Unreadable("an expression besides the equation")
    else:
        raise Unreadable("a number besides the equation")


def _take_definition(run: Run, name: Run, reading: _Reading) -> None:
    """``Let k be 2*3 - 4``; ``Let f(x) be the second derivative of x**3``."""
    value = expression(run.tokens, reading.functions)
    if name.single is None:
        order = _ORDERS.get(run.before[2], 0) if len(run.before) == 5 else 0
        if run.before != ("be", "the", run.before[2:3][0], "derivative", "of") or not order:
            raise Unreadable("a function without its definition")
        _define(name, _derived(value, name.tokens[2].text, order), reading)
    elif run.before == ("be",):
        _add(reading, symbol(name.single), value, {name.single, *_names(run, reading)})
    else:
        raise Unreadable("a definition without its value")
    reading.spans.append(Span(start=name.start, stop=run.stop, name="definition"))


def _derived(value: Quotient, name: str, order: int) -> Quotient:
    if value.bottom.value != 1:
        raise Unreadable("the derivative of a quotient")
    poly = value.top
    for _ in range(order):
        poly = poly.derivative(name)
    return Quotient(poly, value.bottom)


def _define(head: Run, body: Quotient, reading: _Reading) -> None:
    name, parameter = head.tokens[0].text, head.tokens[2].text
    if name in reading.functions or name in body.symbols:
        raise Unreadable("a function is defined twice")
    reading.functions[name] = (parameter, body)
    reading.letters |= body.symbols - {parameter}


def _take_equation(run: Run, reading: _Reading) -> None:
    reading.written += 1
    reading.spans.append(Span(start=run.start, stop=run.stop, name="equation"))
    if run.before[-1:] == ("let",) and _is_function(run):
        _define(run, expression(run.tokens[5:], reading.functions), reading)
        return
    left, right = sides(run.tokens, reading.functions)
    _add(reading, left, right, _names(run, reading))


def _stray_letter(run: Run) -> bool:
    """``2x+3=13 x?``: elsewhere numbers touch their letters, the last letter stands apart."""
    if len(run.tokens) < 2:
        return False
    number, letter = run.tokens[-2:]
    if letter.kind != "letter" or number.kind != "number" or not letter.spaced or letter.maths:
        return False
    return any(
        b.kind == "letter" and a.kind == "number" and not b.spaced for a, b in pairwise(run.tokens)
    )


def _numbered_behind(run: Run) -> bool:
    """``2x + 3 = 13 (5)``: a factor would touch the number before it."""
    kinds = [t.kind for t in run.tokens[-4:]]
    return kinds == ["number", "open", "number", "close"] and run.tokens[-3].spaced


def _is_function(run: Run) -> bool:
    kinds = [t.kind for t in run.tokens[:5]]
    return kinds == ["letter", "open", "letter", "close", "eq"]


def _is_call(run: Run) -> bool:
    return [t.kind for t in run.tokens] == ["letter", "open", "letter", "close"]


def _names(run: Run, reading: _Reading) -> set[str]:
    return {
        t.text
        for i, t in enumerate(run.tokens)
        if t.kind == "letter" and not (t.text in reading.functions and run.tokens[i + 1 : i + 2])
    }


def _add(reading: _Reading, left: Quotient, right: Quotient, letters: set[str]) -> None:
    reading.equations.append((left, right))
    reading.letters |= letters
    reading.nonzero += [p for p in (*left.forbidden, *right.forbidden) if p.symbols]


def _asked(reading: _Reading) -> str:
    """The letter whose value is asked; its mentions become spans."""
    folded: dict[str, list[str]] = {}
    for letter in sorted(reading.letters):
        folded.setdefault(letter.casefold(), []).append(letter)
    asked: list[str] = []
    for run, name in _mentioned(reading):
        names = [name] if name in reading.letters else folded.get(name.casefold(), [])
        marked = (
            run.equals
            or run.tokens[0].maths
            or (run.before[-1:] and (run.before[-1] in _ASK_BEFORE))
        )
        if len(names) == 1:
            reading.spans.append(Span(start=run.start, stop=run.stop, name="unknown"))
            if marked or len(reading.letters) == 1:
                asked.append(names[0])
        elif (marked and run.before[-1:] != ("a",)) or _ends_clause(run):
            raise Unreadable(f"{name} is asked, and no equation has it")
    if len(reading.letters) == 1:
        return next(iter(reading.letters))
    return _choose(asked, reading)


def _ends_clause(run: Run) -> bool:
    """A letter behind "and", or before a stop, is no article: it is a second thing asked."""
    if run.single in ("i", "I") and run.after.isalpha():
        return False  # "and I need it"
    if run.before[-1:] in (("and",), ("&",), (",",)):
        return True
    return not run.after.isalpha() and run.single not in ("a", "A", "I")


def _choose(asked: list[str], reading: _Reading) -> str:
    if len(reading.equations) == 1:
        raise Unreadable("the equation has other letters")
    strong = [
        name
        for run, name in _mentioned(reading)
        if name in reading.letters
        and (run.equals or (run.before[-1:] and run.before[-1] in _ASK_BEFORE))
        and not _with_respect(run)
    ]
    names = set(strong) or set(asked)
    if len(names) != 1:
        raise Unreadable("it is not clear which letter is asked")
    return names.pop()


def _with_respect(run: Run) -> bool:
    aside = run.before[-2:] in (("solution", "for"), ("solutions", "for"))
    return aside or run.before[-3:] in (("with", "respect", "to"), ("in", "terms", "of"))


def _mentioned(reading: _Reading) -> Iterator[tuple[Run, str]]:
    for run in reading.mentions:
        name = run.single
        if name is not None:
            yield run, name


def _judge_rest(rest: tuple[str, ...], text: str, spans: Sequence[Span], reading: _Reading) -> None:
    """Decline an equation that only decorates another kind of task."""
    found = {w.casefold() for w in rest}
    several = len(reading.equations) + len(reading.functions) > 1
    altering = found & ALTERING - (STRUCTURE if several else frozenset())
    if altering:
        raise Unreadable(f"the wording is not understood: {sorted(altering)[0]!r}")
    if any(any(c.isdecimal() for c in w) for w in found):
        raise Unreadable("there are numbers besides the equation")
    if len(rest) > _MAX_CONTENT:
        raise Unreadable("the equation is part of a longer text")
    if several and not found <= STRUCTURE:
        stranger = sorted(found - STRUCTURE)[0]
        raise Unreadable(f"several equations, and {stranger!r} between them is not understood")
    if not _asks(text, spans, reading):
        raise Unreadable("nothing asks for the solution")


def _asks(text: str, spans: Sequence[Span], reading: _Reading) -> bool:
    """Whether what is said besides the equation asks for its solution; a bare equation does."""
    said = residue(text, spans).casefold()
    found = set(tokens(said))
    if not any(c.isalpha() for word in found for c in word):
        return True
    if MISLEADING.search(" ".join(masked(text, spans).casefold().split())):
        return False
    if found & SOLVE_VERBS or any(run.equals for run in reading.mentions):
        return True
    if any(span.name.startswith("style") for span in spans) and not found - _COURTESY:
        return True
    asked = bool(reading.mentions) or bool(found & ASKED_NOUNS)
    return asked and bool(found & QUESTION_WORDS)
