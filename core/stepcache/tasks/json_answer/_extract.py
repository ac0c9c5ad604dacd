"""Strict extraction: the one complete JSON value in a text, or the reason there is none.

Nothing is guessed. Two values are ambiguous, a broken one beside a whole one is ambiguous too, and
a piece of a broken value is never taken for the value. What parses may still be damaged: a LaTeX
command written with one backslash decodes to a control character (``\\frac`` to a form feed), which
``damage`` reports. A number beyond every double is JSON too, but most readers make infinity of it;
``beyond`` reports it. What is not ``sound`` proves nothing and goes into no other answer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from stepcache._doubles import beyond

__all__ = ["Found", "Refused", "damage", "extract", "parse_strict"]

_MAX_CHARS = 1_000_000
_MAX_DEPTH = 128
_MAX_STRINGS = 20_000
"""Keys and string values, so that reading and validating take milliseconds."""
_MAX_INT_DIGITS = 4_000

_SPACE = " \t\n\r"
# A string (closed or running to the end) or one bracket. Possessive, so matching is linear.
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
# "[CONTENT]" and "{service}" are prose: a marker and a slot, not an attempt at JSON.
_TAG = re.compile(r"\[/?[A-Za-z][A-Za-z _-]{0,40}\]|\{[A-Za-z_][A-Za-z0-9_.-]{0,40}\}")
_PYTHON_WORDS = frozenset(("[True]", "[False]", "[None]", "[NaN]", "[Infinity]", "[undefined]"))
_ESCAPE = re.compile(r"\\(.)([A-Za-z]*+)", re.DOTALL)
_FENCE_OPEN = re.compile(r"(?:```|~~~)[ \t]*[A-Za-z0-9_+-]{0,20}[ \t]*\r?\n?[ \t\r\n]*\Z")
# A number may be beyond every double only where one of these stands.
_LARGE = re.compile(r"\d[eE]\+?\d\d|(?<!\d)\d{300}")
_FENCE_CLOSE = re.compile(r"[ \t\r\n]*(?:```|~~~)")

# LaTeX commands whose first letter is also a JSON escape. After \b and \f any letter is damage:
# nobody writes a backspace or a form feed before a word.
_COMMAND_NAMES = (
    "nabla neq neg nmid notin nexists newline newcommand nonumber nolimits ngeq nleq nless ngtr "
    "nsubseteq nsupseteq natural nearrow nwarrow normalsize nparallel nsim ncong nprec nsucc "
    "nvdash nleftarrow nrightarrow notag noindent nicefrac node "
    "rho right rangle rfloor rceil rightarrow rightleftharpoons rbrace rbrack rvert rVert rtimes "
    "renewcommand root rule "
    "times text theta tanh triangle triangleleft triangleright tilde textbf textit textrm textsf "
    "textup textcolor tfrac therefore thinspace tag triangleq textstyle tbinom textsc texttt tiny "
    "thickapprox twoheadrightarrow"
)
_COMMANDS = frozenset(_COMMAND_NAMES.split())
# What is left of these without its first letter is a word or a column ("e", "an", "au"), so they
# need mathematics around.
_DOUBTFUL = frozenset(["ne", "ni", "nu", "not", "to", "tan", "tau", "top", "ref", "rm"])
_MATHS = re.compile(r"[$^=_]|\\\\")


@dataclass(frozen=True, slots=True)
class Found:
    """The one JSON value of a text."""

    value: Any
    """As ``json`` gives it; a number that no int or float holds exactly is a ``Decimal``."""
    start: int
    stop: int
    """``text[start:stop]`` is the value."""
    outer_start: int
    outer_stop: int
    """The same with its code fence, where it stands in one."""
    damage: str | None
    """What was lost in decoding, though it parses; None when nothing was."""
    beyond: str | None = None
    """A number that most readers turn into infinity; None without one."""

    @property
    def sound(self) -> bool:
        """Whether every reader is told the same."""
        return self.damage is None and self.beyond is None


@dataclass(frozen=True, slots=True)
class Refused:
    """Why no value was taken."""

    code: str
    """``no-json``, ``broken-json``, ``ambiguous-json``, ``duplicate-key`` or ``too-large``."""
    reason: str


class _DuplicateKeyError(ValueError):
    pass


def extract(text: str) -> Found | Refused:
    """The one complete top-level JSON value of a text: all of it, fenced, or within prose.

    A scalar counts only when it is the whole text.
    """
    if len(text) > _MAX_CHARS:
        return Refused("too-large", f"more than {_MAX_CHARS} characters")
    if text.count('"') > 2 * _MAX_STRINGS:
        return Refused("too-large", f"more than {_MAX_STRINGS} keys and strings")
    start = len(text) - len(text.lstrip("\ufeff \t\n\r"))
    stop = len(text.rstrip(_SPACE))
    if start >= stop:
        return Refused("no-json", "the text is empty")
    whole = _decode(text, start)
    if isinstance(whole, tuple) and whole[1] == stop:
        return _found(text, whole[0], start, stop)
    return _within(text)


def parse_strict(text: str, *, unique: bool = False) -> Any:
    """The value of a text that is one JSON document and nothing else (RFC 8259).

    Args:
        unique: Refuse an object that has a key twice. The grammar allows it and the last one
            counts; in an answer or a demand, which of the two was meant is anyone's guess.

    Raises:
        ValueError: Anything else, with the reason.
    """
    if len(text) > _MAX_CHARS:
        raise ValueError(f"more than {_MAX_CHARS} characters")
    start = len(text) - len(text.lstrip(_SPACE))
    decoded = _decode(text, start, _DECODER if unique else _GRAMMAR)
    if isinstance(decoded, Refused):
        raise ValueError(decoded.reason)
    value, stop = decoded
    if text[stop:].strip(_SPACE):
        raise ValueError(f"text after the value at {stop}")
    return value


def damage(raw: str) -> str | None:
    """The first LaTeX command (or regex) of a JSON text that decoding would turn into a control
    character, or None."""
    for match in _ESCAPE.finditer(raw):
        sign, letters = match.groups()
        word = sign + letters
        near = max(0, match.start() - 40), match.end() + 40
        if (
            (sign in "bf" and letters)
            or (sign in "nrt" and word in _COMMANDS)
            or (word in _DOUBTFUL and _MATHS.search(raw, *near))
        ):
            return f"\\{word}"
    return None


def _within(text: str) -> Found | Refused:
    found: tuple[Any, int, int] | None = None
    outside: list[tuple[int, str]] = []
    at = 0
    while match := _BRACKET.search(text, at):
        start = match.start()
        if match.group() in "]}":
            outside.append((start, match.group()))
            at = start + 1
            continue
        tag = _TAG.match(text, start)
        if tag and tag.group() not in _PYTHON_WORDS and not _is_json_word(tag.group()):
            at = tag.end()
            continue
        decoded = _decode(text, start)
        if isinstance(decoded, Refused):
            if found:
                return Refused("ambiguous-json", "a broken value follows a complete one")
            return decoded
        if found:
            return Refused("ambiguous-json", "more than one JSON value")
        found = (decoded[0], start, decoded[1])
        at = decoded[1]
    if found is None:
        return Refused("no-json", "no JSON object or array in the text")
    value, start, stop = found
    if _is_piece(text, start, stop, outside):
        return Refused("broken-json", "the value is a piece of a broken one")
    return _found(text, value, start, stop)


def _is_json_word(tag: str) -> bool:
    return tag in ("[true]", "[false]", "[null]")


def _is_piece(text: str, start: int, stop: int, outside: list[tuple[int, str]]) -> bool:
    """Whether what surrounds a value reads as the rest of a larger, broken one."""
    before = text[:start].rstrip()
    if before.endswith(":") and before[:-1].rstrip().endswith(('"', "'")):
        return True
    if before.endswith(("\\", '"')):
        return True
    for at, _ in outside:
        between = text[stop:at] if at >= stop else text[:at]
        if '"' in between:
            return True
    return False


def _found(text: str, value: Any, start: int, stop: int) -> Found:
    outer_start, outer_stop = start, stop
    opened = _FENCE_OPEN.search(text, max(0, start - 200), start)
    closed = _FENCE_CLOSE.match(text, stop)
    if opened and closed:
        outer_start, outer_stop = opened.start(), closed.end()
    raw = text[start:stop]
    number = beyond(value) if _LARGE.search(raw) else None
    return Found(value, start, stop, outer_start, outer_stop, damage(raw), number)


def _decode(
    text: str, start: int, decoder: json.JSONDecoder | None = None
) -> tuple[Any, int] | Refused:
    if not _shallow(text, start):
        return Refused("too-large", f"nested deeper than {_MAX_DEPTH} levels")
    try:
        return (decoder or _DECODER).raw_decode(text, start)
    except _DuplicateKeyError as error:
        return Refused("duplicate-key", str(error))
    except (ValueError, RecursionError) as error:
        return Refused("broken-json", str(error)[:200])


def _shallow(text: str, start: int) -> bool:
    depth = 0
    for match in _STRUCTURE.finditer(text, start):
        sign = match.group()
        if sign in "[{":
            depth += 1
            if depth > _MAX_DEPTH:
                return False
        elif sign in "]}":
            depth -= 1
            if depth <= 0:
                return True
    return True


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(f"the key {key[:60]!r} occurs twice")
            seen.add(key)
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | Decimal:
    # int() is quadratic in the digits, and CPython refuses long ones.
    return int(digits) if len(digits) <= _MAX_INT_DIGITS else Decimal(digits)


def _number(digits: str) -> float | Decimal:
    near = float(digits)
    try:
        exact = Decimal(digits)
    except InvalidOperation:  # an exponent beyond 10**18: no type of Python's holds it
        return near
    return near if Decimal(repr(near)) == exact else exact


_GRAMMAR = json.JSONDecoder(
    parse_constant=_no_constant, parse_int=_integer, parse_float=_number, strict=True
)
_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_constant=_no_constant,
    parse_int=_integer,
    parse_float=_number,
    strict=True,
)
