"""Where the mathematics stands in a text: runs of tokens between words and sentence signs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from stepcache._memo import memo
from stepcache.tasks.linear_equation._lex import CUT, Token, lex

__all__ = ["Run", "conjoined", "parted", "runs", "scan"]

_ARTICLES = frozenset("aAI")
_PARTICLES = frozenset("àÀéÉèÈвВиИсСкКоОаАяЯ")  # Romance and Cyrillic words of one letter
_SHORT = 1_000
_NEAR = 16
"""Words kept before a run."""
_MATHS = frozenset(("number", "letter", "op", "eq", "open", "close", "frac", "blank", "bad"))
_CONJUNCTIONS = frozenset("yeou")
"""Romance words of one letter ("and", "or") that could be unknowns."""
_CONJOINED = re.compile(r" [yeou][ ,]")
_SAYING = frozenset(("number", "letter", "eq", "bad", "frac"))
_EITHER = frozenset(("letter", "op", "blank"))
_ASK_BEFORE = frozenset(("is", "let", "for", "of", "find", "determine", "isolate", "compute"))
_ASK_AFTER = frozenset(
    ("be", "in", "that", "if", "when", "such", "satisfies", "given", "where", "from")
)


@dataclass(frozen=True, slots=True)
class Run:
    """A maximal run of mathematical tokens, with the words around it."""

    tokens: tuple[Token, ...]
    before: tuple[str, ...]
    """Casefolded words and stops since the run before, nearest last."""
    after: str
    """The word or stop that follows at once; empty at the end."""
    glued: bool
    """A word touches it without a space, so it may be part of a longer name."""
    boxed: bool = False
    """It stands in ``\\boxed{}``."""
    behind: tuple[str, ...] = ()
    """Casefolded words and stops up to the next run, nearest first."""

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def stop(self) -> int:
        return self.tokens[-1].stop

    @property
    def equals(self) -> int:
        """How many equals signs it holds."""
        return len([1 for t in self.tokens if t.kind == "eq"])

    @property
    def letters(self) -> frozenset[str]:
        return frozenset(t.text for t in self.tokens if t.kind == "letter")

    @property
    def has_digits(self) -> bool:
        return any(t.kind == "number" for t in self.tokens)

    @property
    def bad(self) -> Token | None:
        for token in self.tokens:
            if token.kind == "bad":
                return token
        return None

    @property
    def single(self) -> str | None:
        """The letter, when the run is nothing but one."""
        found = None
        for token in self.tokens:
            if token.kind in ("blank", "eq"):
                continue
            if found is not None or token.kind != "letter":
                return None
            found = token.text
        return found


class _Found(NamedTuple):
    """A run of which it is not yet known what follows."""

    tokens: tuple[Token, ...]
    before: tuple[str, ...]
    after: str
    glued: bool
    boxed: bool


def runs(text: str) -> tuple[Run, ...]:
    """The mathematical runs of a text, in order. Linear in its length; never raises."""
    if len(text) <= _SHORT:
        return _remembered(text)
    tokens = lex(text)
    cut = tokens[-1:] if tokens and tokens[-1].text == CUT else ()
    return scan(cut or tokens)


@memo(maxsize=256)
def _remembered(text: str) -> tuple[Run, ...]:
    # A step is read to verify it, to check the answer and once more for every candidate.
    return scan(lex(text))


def scan(tokens: Sequence[Token]) -> tuple[Run, ...]:
    """The mathematical runs among tokens."""
    found: list[_Found] = []
    words: list[str] = []
    current: list[Token] = []
    previous: Token | None = None
    for index, token in enumerate(tokens):
        kind = token.kind
        if kind in _MATHS and not (kind in _EITHER and _prose(tokens, index)):
            current.append(token)
            continue
        if kind == "mark" and _joins(tokens, index):
            continue
        if current:
            words = _close(current, words, previous, token, found)
            current = []
        if kind != "mark":
            words.append(token.text.casefold())
        previous = token
    if current:
        words = _close(current, words, previous, None, found)
    return _with_behind(found, words)


def conjoined(lowered: str) -> bool:
    """Whether a text has a letter by itself that may be the "and" or "or" of its language."""
    return _CONJOINED.search(lowered) is not None


def parted(found: Sequence[Run], symbols: frozenset[str]) -> tuple[Run, ...]:
    """The runs cut at such letters: ``2x = 10 y x = 5`` in Spanish.

    Args:
        symbols: Letters that are unknowns, and no words.
    """
    words = _CONJUNCTIONS - symbols
    pieces: list[Run] = []
    for run in found:
        at = 0
        before = run.before
        for index, token in enumerate(run.tokens):
            if token.text in words and _conjunction(run, index):
                if index > at:
                    cut = run.tokens[at:index]
                    pieces.append(
                        replace(
                            run, tokens=cut, before=before, after=token.text, behind=(token.text,)
                        )
                    )
                    before = ()
                before = (*before, token.text)
                at = index + 1
        if at < len(run.tokens):
            pieces.append(replace(run, tokens=run.tokens[at:], before=before))
    return tuple(pieces)


def _conjunction(run: Run, index: int) -> bool:
    token = run.tokens[index]
    if token.maths or not (token.spaced or index == 0):
        return False
    if index and run.tokens[index - 1].kind not in ("number", "letter", "close"):
        return False
    if index + 1 == len(run.tokens):
        return run.after.isalpha() or run.after == ","
    following = run.tokens[index + 1]
    return following.spaced and following.kind in ("number", "letter", "open", "frac", "op")


def _with_behind(found: list[_Found], trailing: Sequence[str]) -> tuple[Run, ...]:
    behind = [*(run.before for run in found[1:]), tuple(trailing[:_NEAR])]
    return tuple(Run(*run, words) for run, words in zip(found, behind))


def _joins(tokens: Sequence[Token], index: int) -> bool:
    """``$x$ = 5``: a border of mathematics with an equals sign on one of its sides."""
    if index == 0 or index + 1 == len(tokens) or tokens[index].text in ("\\begin", "\\end"):
        return False
    before, after = tokens[index - 1], tokens[index + 1]
    return (after.kind == "eq" and before.kind in _MATHS) or (
        before.kind == "eq" and after.kind in _MATHS
    )


def _close(
    current: list[Token],
    words: list[str],
    previous: Token | None,
    following: Token | None,
    found: list[_Found],
) -> list[str]:
    """Keep a finished run; returns the words to go on with."""
    trimmed = _trimmed(current)
    if not trimmed:
        return words
    glued = bool(
        (previous and previous.kind == "word" and previous.stop == trimmed[0].start)
        or (following and following.kind == "word" and following.start == trimmed[-1].stop)
    )
    if glued and previous and previous.kind == "word" and not previous.text.isascii():
        glued = False  # scripts without spaces
    if glued and following and following.kind == "word" and not following.text.isascii():
        glued = bool(previous and previous.kind == "word" and previous.stop == trimmed[0].start)
    boxed = previous is not None and previous.text == "\\boxed"
    after = following.text.casefold() if following else ""
    found.append(_Found(tuple(trimmed), tuple(words[-_NEAR:]), after, glued, boxed))
    return []


def _prose(tokens: Sequence[Token], index: int) -> bool:
    """Whether a token that could be mathematics is a word or a sign of the sentence."""
    token = tokens[index]
    before = tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if token.kind == "letter":
        return _article(token, before, after)
    if token.kind == "op" and token.text in "-*":
        # A dash with spaces on both sides after a word belongs to the sentence; so does a bullet.
        free_left = before is None or before.kind in ("word", "stop")
        free_right = after is None or after.spaced or after.kind in ("word", "stop", "mark")
        # "2x + 3 = 13 - find x": no word is subtracted, and one that is a number is no neutral one.
        dash = token.text == "-" and token.spaced
        leads = dash and after is not None and after.kind == "word" and after.spaced
        return (free_left or leads) and free_right and not token.maths
    if token.kind == "blank":
        # A question mark or a blank is mathematics only where a value is missing.
        return not (before is not None and before.kind == "eq")
    return False


def _article(token: Token, before: Token | None, after: Token | None) -> bool:
    if token.maths or token.text not in _ARTICLES | _PARTICLES:
        return False
    lone_left = before is None or token.spaced or before.kind in ("word", "stop")
    touches = before is not None and before.kind in ("op", "eq", "open", "frac")
    if not lone_left or touches or after is None:
        return False
    if token.text in _PARTICLES:
        kinds = ("word",) if token.text > "\u0400" else ("word", "letter")
        told = before is not None and before.kind in kinds and after.kind == "number"
        return after.spaced and (told or after.kind in ("word", "letter"))
    if after.kind != "word":
        return False
    asked = before is not None and before.kind == "word" and before.text.casefold() in _ASK_BEFORE
    return not (asked and after.text.casefold() in _ASK_AFTER)


def _trimmed(tokens: list[Token]) -> list[Token]:
    """Without brackets and signs of the sentence at the ends. Linear in the number of tokens."""
    partner = _partners(tokens)
    first, last = 0, len(tokens) - 1
    while first <= last and partner[first] == -1:
        first += 1
    while first <= last and partner[last] == -1:
        last -= 1
    if last - first > 1 and _star(tokens[first]) and _star(tokens[last]):
        first, last = first + 1, last - 1  # "*x*", set in italics
    if last - first > 1 and tokens[first].kind == "number" and partner[first + 1] == -1:
        first += 2  # "1) 2x + 3 = 13"
    kinds = {t.kind for t in tokens[first : last + 1]}
    if _SAYING.isdisjoint(kinds):
        return []
    if "eq" in kinds:
        # "(2x + 3 = 13)": brackets around a whole equation.
        while first < last and partner[first] == last:
            first, last = first + 1, last - 1
    return tokens[first : last + 1]


def _partners(tokens: Sequence[Token]) -> list[int | None]:
    """For each bracket the index of the one that matches it, -1 for none; None for the rest."""
    partner: list[int | None] = [None] * len(tokens)
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(index)
            partner[index] = -1
        elif token.kind == "close":
            partner[index] = -1
            if opened:
                other = opened.pop()
                partner[index], partner[other] = other, index
    return partner


def _star(token: Token) -> bool:
    return token.kind == "op" and token.text == "*" and not token.maths
