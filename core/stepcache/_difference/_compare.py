"""Every change between two sequences of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from operator import eq

from stepcache._difference._kinds import Change, kind_of
from stepcache._types import Difference

__all__ = ["residue_differences"]

_LONGEST_DIFF = 160
"""Tokens. Aligning costs the square of the length; where two long texts part is reason enough."""
_SHOWN = 8


def residue_differences(old: Sequence[str], new: Sequence[str]) -> tuple[Difference, ...]:
    """Every change between two sequences of content tokens, none of them explained.

    The same tokens in another order are one difference of the kind ``order``. The cost is bounded:
    of long stretches that differ only the beginning is told.
    """
    if tuple(old) == tuple(new):
        return ()
    head, tail = _common(old, new)
    one, other = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(one) == len(other) and Counter(one) == Counter(other):
        return (_difference("order", one, other),)
    if len(one) + len(other) > _LONGEST_DIFF:
        change = Change(
            before=old,
            start=head,
            stop=head + _SHOWN,
            after=new,
            new_start=head,
            new_stop=head + _SHOWN,
        )
        return (_typed(change),)
    return tuple(_typed(change) for change in _changes(old, new, head, tail))


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many tokens two sequences share at their beginning, and behind that at their end."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    return head, tail


def _changes(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> Iterator[Change]:
    one, other = old[head : len(old) - tail], new[head : len(new) - tail]
    for a, b, c, d in _apart(one, other):
        yield Change(
            before=old,
            start=head + a,
            stop=head + b,
            after=new,
            new_start=head + c,
            new_stop=head + d,
        )


def _apart(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The stretches in which two sequences differ: start and stop in each."""
    if _side_by_side(one, other):
        at = 0
        for equal, run in groupby(map(eq, one, other)):
            start, at = at, at + sum(1 for _ in run)
            if not equal:
                yield start, at, start, at
        return
    matcher = SequenceMatcher(a=one, b=other, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            yield a, b, c, d


def _side_by_side(one: Sequence[str], other: Sequence[str]) -> bool:
    """Does each common token stand once, at one place in both? Then no other alignment is there to
    be looked for, which takes some time."""
    if len(one) != len(other):
        return False
    common = {*one}.intersection(other)
    at = [(a, b) for a, b in zip(one, other) if a in common or b in common]
    return len(at) == len(common) and all(a == b for a, b in at)


def _typed(change: Change) -> Difference:
    return _difference(kind_of(change), change.old, change.new)


def _difference(kind: str, old: Sequence[str], new: Sequence[str]) -> Difference:
    return Difference(kind=kind, path="residue", old=_told(old), new=_told(new))


def _told(tokens: Sequence[str]) -> str:
    told = " ".join(tokens[:_SHOWN])
    return f"{told} ..." if len(tokens) > _SHOWN else told
