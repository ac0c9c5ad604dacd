"""How long a regular expression may take, told from its structure before it is run.

Python's ``re`` backtracks: what it costs at worst is the number of ways in which the pattern can be
laid over the text. That number is bounded here from the parsed pattern. A repeated part that can be
laid in several ways multiplies them turn by turn (``(x+)+`` is exponential), unless the next sign
always tells how to go on (``([a-z]+\\.)+``): then there is no choice to come back to.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

__all__ = ["cost", "ways"]

_MATCHED = 100
"""Ways to match a pattern that are tried in a step."""
_MAX_WAYS = 2_000_000
"""About 50 ms of ``re`` at its worst."""
_NESTED = 32
"""What a way through a repeated group costs, in ways through a repeated sign."""
_MAX_TURNS = 20
_MAX_CHARS = 1_000
_MAX_SUBJECT = 20_000
_BEYOND = frozenset("\u00a0\u00e9\u0665\u5b57")
_PROBES = _BEYOND.union(map(chr, range(128)))
"""Signs by which two sets of signs are told apart."""
_CATEGORIES = {
    "CATEGORY_DIGIT": frozenset("0123456789\u0665"),
    "CATEGORY_SPACE": frozenset(" \t\n\r\f\v\x1c\x1d\x1e\x1f\u00a0"),
    "CATEGORY_WORD": frozenset(sign for sign in _PROBES if sign.isalnum() or sign == "_"),
}
# Cases are told apart below, and a beginning is one place; JSON Schema has no such flags.
_FLAGS = re.compile(r"\(\?[a-zA-Z]*[im]")
_BEGINNINGS = frozenset(("AT_BEGINNING", "AT_BEGINNING_STRING"))
_SINGLE = frozenset(("LITERAL", "NOT_LITERAL", "ANY", "IN"))
_REPEATS = frozenset(("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"))


@lru_cache(maxsize=4096)
def ways(pattern: str, length: int) -> float:
    """In how many ways a pattern can be laid over a text at worst; infinite above the bound.

    Raises:
        ValueError: It is no pattern that Python knows.
    """
    if len(pattern) > _MAX_CHARS or length > _MAX_SUBJECT or _FLAGS.search(pattern):
        return float("inf")
    items = _parsed(pattern)
    anchored = bool(items) and _name(items[0]) == "AT" and str(items[0][1]) in _BEGINNINGS
    starts = 1 if anchored else length + 1
    # Where one sign ahead always tells how to go on, a start is gone on from in one way only.
    forced = float(length + 1) if _is_forced(items, frozenset()) else _ways(items, length)
    total = starts * min(forced, _ways(items, length))
    return total if total <= _MAX_WAYS else float("inf")


def cost(pattern: str, subject: str) -> int:
    """What searching a text for a pattern costs, in steps of a validation's budget.

    Raises:
        ValueError: It may take longer than any budget.
    """
    tried = ways(pattern, len(subject))
    if tried == float("inf"):
        raise ValueError(f"the pattern {pattern[:60]!r} may take too long")
    return int(tried) // _MATCHED


@lru_cache(maxsize=256)
def _parsed(pattern: str) -> Any:
    # The module that ``re`` itself parses with; it has no public name since Python 3.11.
    parser: Any = import_module("re._parser")
    try:
        return parser.parse(pattern)
    except Exception as error:  # noqa: BLE001 - whatever a hostile pattern does to it
        raise ValueError(f"the pattern {pattern[:60]!r} cannot be read: {error}") from None


def _name(item: Any) -> str:
    return str(item[0])


def _ways(items: Any, length: int) -> float:
    """In how many ways a sequence can be laid over a text; infinite above the bound."""
    total = 1.0
    for item in items:
        total *= _ways_of(_name(item), item[1], length)
        if total > _MAX_WAYS:
            return float("inf")
    return total


def _ways_of(name: str, held: Any, length: int) -> float:
    if name in _SINGLE or name == "AT":
        return 1
    if name == "BRANCH":
        return sum(_ways(branch, length) for branch in held[1])
    if name == "SUBPATTERN":
        return _ways(held[3], length)
    if name == "ATOMIC_GROUP":
        return _ways(held, length)
    if name in ("ASSERT", "ASSERT_NOT"):
        return _ways(held[1], length)
    if name in _REPEATS:
        least, most, part = held
        return _repeated(int(least), int(most), part, length)
    return float("inf")  # references back, conditions


def _repeated(least: int, most: int, items: Any, length: int) -> float:
    low, high = items.getwidth()
    turns = min(most, length // max(1, int(low)))
    choices = max(1.0, float(turns - min(least, turns) + 1))
    inner = _ways(items, length)
    if most <= 1:
        return choices * inner
    if inner <= 1 and low == high:
        return choices
    if low and _is_forced(items, _first(items)):
        return length + 1.0
    if turns > _MAX_TURNS:
        return float("inf")
    return float(_NESTED * max(inner, 2.0) ** turns)


# --- where there is no choice ------------------------------------------------------------------


def _is_forced(items: Any, follow: frozenset[str]) -> bool:
    """Whether one sign ahead always tells how to go on in a sequence that ``follow`` follows."""
    flat = _opened(items)
    for at, item in enumerate(flat):
        name, held = _name(item), item[1]
        if name in _SINGLE or name == "AT":
            continue
        after = _first(flat[at + 1 :], follow)
        if name in _REPEATS:
            least, most, part = held
            first = _first(part)
            free = int(least) != int(most)
            if part.getwidth()[0] == 0 or (free and not first.isdisjoint(after)):
                return False
            if not _is_forced(part, first | after):
                return False
        elif name == "BRANCH":
            taken: frozenset[str] = frozenset()
            for branch in held[1]:
                first = _first(branch)
                if branch.getwidth()[0] == 0 or not first.isdisjoint(taken):
                    return False
                if not _is_forced(branch, after):
                    return False
                taken |= first
        else:
            return False
    return True


def _opened(items: Any) -> list[Any]:
    """The sequence with its plain groups opened."""
    flat: list[Any] = []
    for item in items:
        flat.extend(_opened(item[1][3]) if _name(item) == "SUBPATTERN" else [item])
    return flat


def _first(items: Any, follow: frozenset[str] = frozenset()) -> frozenset[str]:
    """The signs that a sequence can begin with; those behind it where it can be empty."""
    found: frozenset[str] = frozenset()
    for item in _opened(items):
        name, held = _name(item), item[1]
        if name == "AT":
            continue
        if name in _SINGLE:
            return found | _signs(name, held)
        if name in _REPEATS:
            found |= _first(held[2])
            if int(held[0]) and held[2].getwidth()[0]:
                return found
        elif name == "BRANCH":
            found = found.union(*(_first(branch) for branch in held[1]))
            if all(branch.getwidth()[0] for branch in held[1]):
                return found
        else:
            return _PROBES
    return found | follow


def _signs(name: str, held: Any) -> frozenset[str]:
    """The signs that a part of one sign matches: of the probes, and of itself."""
    if name == "LITERAL":
        return _range(held, held)
    if name == "NOT_LITERAL":
        return (_PROBES - {chr(held)}) | _BEYOND
    if name == "ANY":
        return _PROBES
    found: frozenset[str] = frozenset()
    negated = False
    for kind, value in held:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found |= _range(value, value)
            case "RANGE":
                found |= _range(*value)
            case _:
                found |= _CATEGORIES.get(str(value), _PROBES)
    # What is beyond ASCII may be left by any exception.
    return (_PROBES - found) | _BEYOND if negated else found


def _range(first: int, last: int) -> frozenset[str]:
    """Signs beyond ASCII are not told apart."""
    found = frozenset(map(chr, range(first, min(last, 127) + 1)))
    return found | _BEYOND if last > 127 else found
