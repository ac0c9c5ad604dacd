"""Does a step hold? Its equations, chains, stated values and operations against the request.

What is wrong fails, what cannot be read is unknown, and only what is read whole and true passes. A
step is judged alone: that the steps together reach the answer is for ``_check``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from stepcache.tasks.linear_equation._algebra import (
    ONE,
    Quotient,
    Unreadable,
    constant,
    fraction_text,
    symbol,
)
from stepcache.tasks.linear_equation._facts import Facts, gather
from stepcache.tasks.linear_equation._findings import Findings
from stepcache.tasks.linear_equation._lex import CUT, MAX_TOKENS
from stepcache.tasks.linear_equation._lexicon import english, sayings
from stepcache.tasks.linear_equation._moves import (
    equations_in,
    is_literal,
    is_marker,
    leads,
    monic,
)
from stepcache.tasks.linear_equation._parse import sides
from stepcache.tasks.linear_equation._problem import Problem, numerator
from stepcache.tasks.linear_equation._prose import (
    both_sides,
    links,
    operation,
    operation_behind,
    restates,
    rewrites,
    says_answer,
)
from stepcache.tasks.linear_equation._scan import Run, conjoined, parted, runs

__all__ = ["Findings", "examine"]

_MAX_CHARS = 100_000
_MAX_PAIRS = 60
_MAX_DOUBTED = 100
"""Runs that are still searched for a plain fault after the first that could not be read."""
_LETTER_WORDS = frozenset("aeiouyAEIOUY")
"""Romance articles and conjunctions of one letter."""


def examine(text: str, problem: Problem, *, opening: bool = False) -> Findings:
    """Judge one step by itself.

    Args:
        opening: It is the first step of an answer, so that its first equation, unless an operation
            is named before it, must be the request's own or one of its reduced forms.
    """
    findings = Findings()
    if len(text) > _MAX_CHARS:
        findings.doubt("too-long", f"longer than {_MAX_CHARS} characters")
        return findings
    _Examiner(text, problem, findings, opening).run()
    return findings


@dataclass
class _Examiner:
    text: str
    problem: Problem
    findings: Findings
    opening: bool
    facts: Facts = field(init=False)
    lowered: str = field(init=False)
    before: Run | None = None
    """The run before the present one."""
    found: tuple[Run, ...] = ()
    pairs: list[tuple[Quotient, Quotient]] | None = None
    """The step's equations in the unknown, in order; read when an operation needs them."""

    def __post_init__(self) -> None:
        self.facts = gather(self.problem)
        self.lowered = self.text.casefold()

    def run(self) -> None:
        found = runs(self.text)
        if found and found[-1].tokens[-1].text == CUT:
            self.findings.doubt("too-long", f"more than {MAX_TOKENS} tokens, or too many in a row")
            return
        if conjoined(self.lowered) and not english(self.lowered):
            found = parted(found, self.facts.symbols)
        self.found = found
        self.prose()
        doubted = 0
        for run in found:
            self.judge(run, alone=len(found) == 1)
            self.before = run
            doubted += self.findings.unknown is not None
            if doubted > _MAX_DOUBTED:
                break  # it will not pass any more

    # --- sentences ------------------------------------------------------------------------------

    def prose(self) -> None:
        for kind, said, value, *near in sayings(self.lowered):
            if kind == "claim":
                self.findings.doubt("unread-words", f"{said!r} is a claim that is not verified")
            elif kind == "number":
                if value is None:
                    self.findings.doubt("unread-number", f"{said!r} is not a number of the request")
                else:
                    self.mention(Fraction(value), *near)
            elif kind != self.problem.solutions:
                self.findings.fail("wrong-claim", f"it says {said!r}, which does not hold")
            else:
                self.findings.final = True
                self.findings.claims += 1

    # --- mathematics ----------------------------------------------------------------------------

    def judge(self, run: Run, *, alone: bool) -> None:
        if run.bad is not None:
            self.findings.doubt("unreadable", f"{run.bad.text!r} is not read")
            return
        if run.single is not None and run.equals == 0:
            self.letter(run)
            return
        if run.glued:
            self.findings.doubt("unreadable", "a word stands against the mathematics")
            return
        try:
            parts = sides(run.tokens)
        except Unreadable as error:
            self.findings.doubt("unreadable", str(error))
            return
        if len(parts) == 1:
            self.expression(run, parts[0], alone=alone)
            return
        for left, right in pairwise(parts):
            self.equation(left, right, run)
        self.restated(run, parts)
        self.opened(run, parts)
        if self.problem.value is not None and self._states(run, parts):
            self.findings.final = True

    def letter(self, run: Run) -> None:
        name = run.single or ""
        if name in self.facts.symbols:
            return
        if run.tokens[0].maths or (run.before[-1:] and run.before[-1] in ("for", "of", "isolate")):
            self.findings.fail("other-variable", f"it speaks of {name}, not {self.problem.unknown}")
        elif not (name in _LETTER_WORDS and run.after.isalpha() and not english(self.lowered)):
            self.findings.doubt("unreadable", f"the letter {name!r} is not read")

    def equation(self, left: Quotient, right: Quotient, run: Run) -> None:
        names = left.symbols | right.symbols
        strange = names - self.facts.symbols
        if strange:
            name = sorted(strange)[0]
            self.findings.fail("other-variable", f"it speaks of {name}, not {self.problem.unknown}")
        elif not names and run.letters and run.equals == 1 and self.problem.value is not None:
            self.findings.doubt("identity", "the unknown falls out of an equation")
        elif not names:
            self.numbers(left, right)
        elif names == {self.problem.unknown}:
            self.in_unknown(left, right)
        else:
            self.in_known(left, right, names)

    def numbers(self, left: Quotient, right: Quotient) -> None:
        a, b = left.value, right.value
        if (a is not None and a == b) or (
            self.problem.solutions == "none" and self._contradiction(a, b)
        ):
            self.findings.claims += 1
        else:
            self.findings.fail("wrong-arithmetic", f"{left.text()} is not {right.text()}")

    def _contradiction(self, a: Fraction | None, b: Fraction | None) -> bool:
        if a is None or b is None or not self.problem.simple:
            return False
        _, rest, _, other = self.problem.parts()
        return {a, b} in ({rest, other}, {Fraction(0), other - rest}, {Fraction(0), rest - other})

    def in_unknown(self, left: Quotient, right: Quotient) -> None:
        problem, zero = self.problem, numerator(left, right)
        slope, rest = zero.coefficient(problem.unknown), zero.coefficient()
        if slope and zero.degree == 1 and problem.value == -rest / slope:
            self.findings.equations.append((left, right))
            self.solved_alike(slope, rest)
            return
        written = f"{left.text()} = {right.text()}"
        if zero.degree > 1:
            self.findings.doubt("not-linear", f"{written} is not linear")
        elif not zero.terms:
            self.identity(left, right, written)
        elif not slope and problem.solutions == "none":
            self.findings.claims += 1
        elif slope and left.text() == problem.unknown and right.value is not None:
            self.findings.fail("wrong-value", f"{written} does not solve the equation")
        else:
            self.findings.fail("other-solution", f"{written} has another solution")

    def solved_alike(self, slope: Fraction, rest: Fraction) -> None:
        """An equation with the request's solution; where that is 0, every coefficient would do."""
        if self.problem.simple and not rest and abs(slope) not in self.facts.coefficients:
            self.findings.doubt("other-form", f"the coefficient {slope} is not of the request")
        self.findings.claims += 1

    def identity(self, left: Quotient, right: Quotient, written: str) -> None:
        """True for every value, as in ``2x + 3 - 3 = 2x``: it must speak of the request's terms."""
        known = all(self.facts.term(side, self.problem.unknown) for side in (left, right))
        if self.problem.solutions == "all" or known:
            self.findings.claims += 1
        else:
            self.findings.doubt("identity", f"{written} is true whatever the request is")

    def in_known(self, left: Quotient, right: Quotient, names: frozenset[str]) -> None:
        problem = self.problem
        written = f"{left.text()} = {right.text()}"
        if not names <= problem.known.keys():
            if monic(numerator(left, right)) in {monic(numerator(*e)) for e in problem.equations}:
                self.findings.claims += 1
                return
            self.findings.doubt("undetermined", f"{written} has a letter without a value")
            return
        values = {name: constant(problem.known[name]) for name in names}
        try:
            holds = left.put(values).value == right.put(values).value
        except Unreadable as error:
            self.findings.doubt("unreadable", str(error))
            return
        if holds:
            self.findings.claims += 1
        else:
            self.findings.fail("other-solution", f"{written} does not hold")

    def restated(self, run: Run, parts: Sequence[Quotient]) -> None:
        """An equation said to be the given one must be the given one."""
        if len(parts) != 2 or not run.before or not restates(run.before):
            return
        if rewrites(run.before) or self._alone(parts):
            return
        if not parts[0].symbols | parts[1].symbols:
            return
        pair = sorted(p.text() for p in parts)
        given = [sorted(side.text() for side in e) for e in self.problem.equations]
        if pair not in given:
            self.findings.fail(
                "other-equation", f"the request's equation is not {' = '.join(pair)}"
            )

    def opened(self, run: Run, parts: Sequence[Quotient]) -> None:
        """The equation an answer begins with, in the terms of the request up to a common factor."""
        opening, self.opening = self.opening, False
        problem = self.problem
        if not (opening and problem.simple and problem.value is not None and len(parts) == 2):
            return
        if operation(run.before):
            return
        a, _, c, _ = problem.parts()
        slope = numerator(*parts).coefficient(problem.unknown)
        scale = constant((a - c) / slope) if slope else constant(1)
        if not all(self.facts.term(part * scale, problem.unknown) for part in parts):
            written = " = ".join(part.text() for part in parts)
            self.findings.doubt("other-form", f"{written} is not what the request begins with")

    def _alone(self, parts: Sequence[Quotient]) -> bool:
        unknown = symbol(self.problem.unknown).top
        return any(p.bottom is ONE and p.top == unknown for p in parts)

    def _states(self, run: Run, parts: Sequence[Quotient]) -> bool:
        """``x = 5`` or ``5 = x`` or ``x = 10/2 = 5``: ends in a number that is no calculation."""
        if not self._alone(parts):
            return False
        last = run.tokens[max(i for i, t in enumerate(run.tokens) if t.kind == "eq") + 1 :]
        if len(last) == 1 and last[0].kind == "letter":
            last = run.tokens[: next(i for i, t in enumerate(run.tokens) if t.kind == "eq")]
        return is_literal(last)

    # --- numbers and terms in sentences ---------------------------------------------------------

    def expression(self, run: Run, value: Quotient, *, alone: bool) -> None:
        number = value.value
        strange = value.symbols - self.facts.symbols
        if strange:
            self.findings.fail("other-variable", f"it speaks of {sorted(strange)[0]}")
        elif self.linked(run):
            self.said_of_before(run, value)
        elif number is None:
            self.term(run, value)
        elif is_marker(self.text, run):
            return
        elif self.stated(run, alone=alone):
            self.value(number, run)
        else:
            self.mention(number, run.before, run.behind)

    def linked(self, run: Run) -> bool:
        """``x is 5``, ``2x equals 10``: the words between join it to the run before."""
        before = self.before
        if before is None or not links(run.before):
            return False
        return (
            before.bad is None and not before.glued and (before.equals > 0 or bool(before.letters))
        )

    def said_of_before(self, run: Run, value: Quotient) -> None:
        assert self.before is not None
        if self.before.equals:
            # "the solution of 2x + 3 = 13 is 5"
            if value.value is None:
                self.term(run, value)
            else:
                self.value(value.value, run)
            return
        try:
            subject = sides(self.before.tokens)[0]
        except Unreadable as error:
            self.findings.doubt("unreadable", str(error))
            return
        self.equation(subject, value, run)
        if subject.text() == self.problem.unknown and is_literal(run.tokens):
            self.findings.final = True

    def stated(self, run: Run, *, alone: bool) -> bool:
        if run.boxed:
            return True
        words = [w for w in run.before if w not in ("\n", "*", ".", ":", "\uff1a")]
        if alone and not words and not run.after.strip(" .\n*"):
            return True
        near = words[-5:]
        return says_answer(near) and not operation(near)

    def value(self, number: Fraction, run: Run) -> None:
        problem = self.problem
        if problem.value is None:
            self.findings.fail("wrong-value", f"it states {fraction_text(number)}")
        elif number != problem.value:
            self.findings.fail(
                "wrong-value", f"{fraction_text(number)} does not solve the equation"
            )
        else:
            self.findings.claims += 1
            self.findings.equations.append((symbol(problem.unknown), constant(number)))
            self.findings.final = self.findings.final or is_literal(run.tokens)

    def mention(self, number: Fraction, before: Sequence[str], behind: Sequence[str]) -> None:
        """A number in a sentence, in digits or in words, with what is said to be done with it."""
        verb = operation(before) or operation_behind(behind)
        written = fraction_text(number)
        if verb is None:
            if not self.facts.mentions(number):
                self.findings.doubt("unread-number", f"{written} is not a number of the request")
            return
        if verb == "move":
            fits = number in self.facts.addends or -number in self.facts.addends
            if fits:
                self.findings.operations.append((verb, constant(number)))
            else:
                self.findings.doubt("unexplained-operation", f"{written} is not there to be moved")
            return
        if verb in ("subtract", "add"):
            fits = (number if verb == "subtract" else -number) in self.facts.addends
        else:
            by = self.facts.divisors if verb == "divide" else self.facts.multipliers
            fits = abs(number) in by
        if not fits and self.steps_on(verb, number):
            fits = True
        checks = verb == "multiply" and number == self.problem.value
        if not fits and (not checks or both_sides((*before[-8:], *behind[:8]))):
            self.findings.doubt("unexplained-operation", f"nothing leads to {verb} {written}")
        elif not number or (number == 1 and verb in ("divide", "multiply")):
            self.findings.doubt("unexplained-operation", f"{verb} {written} does nothing")
        else:
            self.findings.claims += 1
            if fits:
                self.findings.operations.append((verb, constant(number)))

    def steps_on(self, verb: str, number: Fraction) -> bool:
        """Whether two neighbouring equations of the step differ by just this operation."""
        if self.findings.unknown is not None:
            return False  # one doubt is enough
        if self.pairs is None:
            self.pairs = equations_in(self.found, self.problem.unknown)[:_MAX_PAIRS]
        by = constant(number)
        return bool(number) and any(leads(verb, by, a, b) for a, b in pairwise(self.pairs))

    def term(self, run: Run, value: Quotient) -> None:
        verb = operation(run.before) or operation_behind(run.behind)
        unknown = self.problem.unknown
        if len(self.facts.symbols) > 1 or not self.problem.simple:
            if value.text() not in self.facts.sides and not self.facts.term(value, unknown):
                self.findings.doubt("unread-term", f"{value.text()} is not of the request")
            return
        slope = value.top.coefficient(unknown)
        bare = not value.top.coefficient()
        if verb == "move" and bare:
            fits = slope in self.facts.slopes or -slope in self.facts.slopes
            self.findings.operations.append((verb, value))
        elif verb in ("subtract", "add") and bare:
            fits = (slope if verb == "subtract" else -slope) in self.facts.slopes
            self.findings.operations.append((verb, value))
        else:
            fits = self.facts.term(value, unknown)
        if not fits:
            self.findings.doubt("unread-term", f"{value.text()} is not a term of the request")
