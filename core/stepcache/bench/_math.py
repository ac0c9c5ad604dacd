"""The equation family of the workload: ten base equations, and what may be changed in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from stepcache.bench._items import EquationDemand, Item, Split
from stepcache.bench._wordings import LEVELS, Voice

__all__ = ["Equation", "math_extended", "math_paper", "math_warm_up"]

BASES = 10
VARIANTS = 3
_VARIABLES = "xynktpzwu"
_LANGUAGES = ("French", "German", "Spanish")
_FORMS = (
    ("number", "Answer with the number only and write nothing else."),
    ("boxed", "Put the value of {variable} into \\boxed{{}} on the last line."),
    ("object", 'Answer as a JSON object with the single key "{variable}".'),
)
_RELATIONS = (">", "<", ">=")


@dataclass(frozen=True, slots=True)
class Equation:
    """``a v + b = c`` with whole numbers, ``a`` and ``b`` not zero."""

    a: int
    b: int
    c: int
    variable: str
    relation: str = "="

    @property
    def demands(self) -> tuple[Fraction, Fraction, str]:
        """Equal for two equations that have the same solutions by scaling alone."""
        return Fraction(self.b, self.a), Fraction(self.c, self.a), self.relation

    def __str__(self) -> str:
        lead = {1: "", -1: "-"}.get(self.a, str(self.a))
        sign = "+" if self.b > 0 else "-"
        return f"{lead}{self.variable} {sign} {abs(self.b)} {self.relation} {self.c}"

    def demand(self, form: str = "", language: str = "") -> EquationDemand:
        """What a right answer must state."""
        return EquationDemand(
            variable=self.variable,
            left=f"{self.a}*{self.variable} + ({self.b})",
            right=str(self.c),
            relation=self.relation,
            form=form,
            language=language,
        )


class MathGroup:
    """Writes items of one seed; no equation comes twice by chance."""

    def __init__(self, seed: int, voice: Voice) -> None:
        self.seed = seed
        self.voice = voice
        self.random = random.Random(f"math {seed}")  # noqa: S311 - a workload, not a secret
        # By themselves, so that other wordings change nothing but the wordings.
        self.words = random.Random(f"math wordings {seed}")  # noqa: S311
        self.used: set[tuple[Fraction, Fraction, str]] = set()
        self.solutions: set[int] = set()
        self.count = 0
        self.bases = [self._base(index) for index in range(BASES)]

    def _base(self, index: int) -> Equation:
        variable = "x" if index < BASES // 2 else _VARIABLES[index - BASES // 2]
        # Of other solutions each, or the bare number of one would rightly answer another.
        while True:
            found = self.fresh(Equation(2, 1, 1, variable))
            solution = (found.c - found.b) // found.a
            if solution not in self.solutions:
                self.solutions.add(solution)
                return found

    def fresh(self, like: Equation, *, keep_a: bool = False, keep_b: bool = False) -> Equation:
        """An equation with a whole solution that was not used before."""
        while True:
            a = like.a if keep_a else self.random.randint(2, 9)
            b = like.b if keep_b else self.random.choice((1, -1)) * self.random.randint(1, 15)
            solution = self.random.choice((1, 1, 1, -1)) * self.random.randint(1, 12)
            found = replace(like, a=a, b=b, c=a * solution + b)
            if found.c and self.claim(found):
                return found

    def claim(self, equation: Equation) -> bool:
        """False when it was used before."""
        if equation.demands in self.used:
            return False
        self.used.add(equation.demands)
        return True

    def item(
        self,
        split: Split,
        group: str,
        base: int,
        prompt: str,
        demand: EquationDemand,
        *,
        must_not: bool = False,
    ) -> Item:
        self.count += 1
        return Item(
            id=f"{self.seed}/{split}/math/{self.count:03}",
            seed=self.seed,
            split=split,
            family="math",
            group=group,
            base=f"math-{base}",
            prompt=prompt,
            demand=demand,
            must_not=must_not,
        )

    def base_prompt(self, equation: Equation, written: str | None = None) -> str:
        """The base wording around an equation, written as it is or in another form."""
        head = self.voice.base.format(equation=written or str(equation), variable=equation.variable)
        tail = self.voice.tail.format(variable=equation.variable)
        if equation.relation != "=":
            tail = tail.replace("equation", "inequality")
            tail = tail.replace(
                f"{equation.variable} = ", f"{equation.variable} {equation.relation} "
            )
        return f"{head} {tail}"


def math_warm_up(group: MathGroup) -> Iterator[Item]:
    """The ten base prompts."""
    for index, equation in enumerate(group.bases):
        prompt = group.base_prompt(equation)
        yield group.item("warm-up", "base", index, prompt, equation.demand())


def math_paper(group: MathGroup) -> Iterator[Item]:
    """30 paraphrases of each level, and 30 prompts with other constants."""
    for level in LEVELS:
        yield from _paraphrases(group, level)
    for index, base in enumerate(group.bases):
        for variant in range(VARIANTS):
            changed = group.fresh(base, keep_a=variant < 2, keep_b=variant < 1)
            prompt = group.base_prompt(changed)
            yield group.item("paper", "constants", index, prompt, changed.demand())


def _paraphrases(group: MathGroup, level: str) -> Iterator[Item]:
    words = group.voice.levels[level]
    for index, base in enumerate(group.bases):
        for wording in group.words.sample(words.wordings, VARIANTS):
            tail = group.words.choice(words.tails).format(variable=base.variable)
            head = wording.format(equation=str(base), variable=base.variable)
            prompt = f"{head} {tail}"
            yield group.item("paper", f"paraphrase {level}", index, prompt, base.demand())


def math_extended(group: MathGroup) -> Iterator[Item]:
    """Other forms and letters, which may be served; other signs, relations, languages and formats,
    which must not be served as they stand."""
    yield from _forms(group)
    yield from _renamed(group)
    yield from _signs(group)
    yield from _relations(group)
    yield from _languages_and_formats(group)


def _forms(group: MathGroup) -> Iterator[Item]:
    for index, base in enumerate(group.bases):
        left, _, right = str(base).partition(" = ")
        wide = str(base).translate({ord("-"): "−", ord("="): "＝", **_full_width()})
        decimals = f"{base.a}.0{base.variable}{left.partition(base.variable)[2]}.0 = {right}.00"
        for name, written in (
            ("sides swapped", f"{right} = {left}"),
            ("LaTeX", f"${base}$"),
            ("decimals", decimals),
            ("Unicode", wide),
        ):
            prompt = group.base_prompt(base, written)
            yield group.item("extended", f"form: {name}", index, prompt, base.demand())


def _full_width() -> dict[int, int]:
    return {ord("0") + digit: ord("０") + digit for digit in range(10)}


def _renamed(group: MathGroup) -> Iterator[Item]:
    for index, base in enumerate(group.bases):
        letters = [letter for letter in _VARIABLES if letter != base.variable]
        for letter in group.random.sample(letters, VARIANTS):
            changed = replace(base, variable=letter)
            prompt = group.base_prompt(changed)
            yield group.item("extended", "variable renamed", index, prompt, changed.demand())


def _signs(group: MathGroup) -> Iterator[Item]:
    for index, base in enumerate(group.bases):
        for changed in (
            replace(base, b=-base.b),
            replace(base, a=-base.a),
            replace(base, c=-base.c),
        ):
            # A sign may lead to an equation met before; then a constant changes along with it.
            asked = changed
            while not group.claim(asked):
                asked = replace(asked, c=asked.c + 1 or 1)
            yield group.item(
                "extended",
                "sign changed",
                index,
                group.base_prompt(asked),
                asked.demand(),
                must_not=True,
            )


def _relations(group: MathGroup) -> Iterator[Item]:
    for index, base in enumerate(group.bases):
        for relation in _RELATIONS:
            changed = replace(base, relation=relation)
            yield group.item(
                "extended",
                "relation changed",
                index,
                group.base_prompt(changed),
                changed.demand(),
                must_not=True,
            )


def _languages_and_formats(group: MathGroup) -> Iterator[Item]:
    for index, base in enumerate(group.bases):
        head = group.voice.base.format(equation=str(base), variable=base.variable)
        tail = group.voice.tail.format(variable=base.variable)
        language = _LANGUAGES[index % len(_LANGUAGES)]
        yield group.item(
            "extended",
            "language changed",
            index,
            f"{head} Answer in {language}. {tail}",
            base.demand(language=language),
            must_not=True,
        )
        form, said = _FORMS[index % len(_FORMS)]
        yield group.item(
            "extended",
            "format changed",
            index,
            f"{head} {said.format(variable=base.variable)}",
            base.demand(form=form),
            must_not=True,
        )
