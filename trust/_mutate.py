"""Changing texts and bytes at random: with the grammar's own words, and with signs that hurt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

__all__ = ["NASTY", "mutated", "mutated_bytes"]

NASTY: tuple[str, ...] = (
    *("\x00", "\x1b", "\x7f", "\x85", "\u00a0", "\u00ad", "\u2028", "\u202e", "\ufeff", "\ufffd"),
    *("\ud800", "\udfff", "\ue000", "\U000e0041", "\U0001f469\u200d\U0001f680"),
    *("\u0301", "e\u0301", "\u00e9", "\u0130", "\u00df", "\ufb01", "\u1e9e"),
    *("\u0661", "\u0967", "\uff12", "\U0001d7dc", "\u00b2", "\u00bd", "\u2169", "\u4e09"),
    *("\u2212", "\u2013", "\u00d7", "\u00b7", "\u22c5", "\u00f7", "\uff1d", "\u2260", "\u2265"),
    *('"', "'", "\u201c", "\u00ab", "`", "```", "~~~", "\\", "\\\\", "\\u", "\\ud800", "\\n"),
    *("{", "}", "[", "]", "(", ")", "<", ">", ",", ":", ";", "$", "$$", "%", "&", "|", "#", "*"),
    *("\r", "\n", "\r\n", "\t", "  ", "\n\n", "-", "--", "+", "=", "==", "/", "^", "_", "."),
    *("0", "1", "9", "00", "-0", "1e999", "1e-999", "NaN", "Infinity", "9" * 40, "0." + "3" * 40),
    *("null", "true", "None", "not", "don't", "except", "never"),
)


def _delete(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    start, stop = _slice(text, dice)
    return text[:start] + text[stop:]


def _insert(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    at = dice.randint(0, len(text))
    return text[:at] + _piece(dice, words) + text[at:]


def _replace(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    start, stop = _slice(text, dice)
    return text[:start] + _piece(dice, words) + text[stop:]


def _double(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    start, stop = _slice(text, dice)
    return text[:stop] + text[start:]


def _swap(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    first, second = _slice(text, dice), _slice(text, dice)
    (a, b), (c, d) = sorted((first, second))
    return text if b > c else text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def _splice(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    return text[: dice.randint(0, len(text))] + other[dice.randint(0, len(other)) :]


def _digit(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    places = [at for at, char in enumerate(text) if char.isdigit()]
    if not places:
        return _insert(text, dice, words, other)
    at = dice.choice(places)
    return text[:at] + dice.choice("0123456789") + text[at + 1 :]


def _case(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    start, stop = _slice(text, dice)
    return text[:start] + text[start:stop].swapcase() + text[stop:]


def _repeat(text: str, dice: Random, words: Sequence[str], other: str) -> str:
    piece = _piece(dice, words) if dice.random() < 0.5 else text[slice(*_slice(text, dice))]
    at = dice.randint(0, len(text))
    return text[:at] + piece * int(2 ** dice.uniform(1, 9)) + text[at:]


_CHANGES: tuple[Callable[[str, Random, Sequence[str], str], str], ...] = (
    *(_delete, _insert, _insert, _replace, _replace, _double, _swap, _splice, _digit, _digit),
    *(_case, _repeat),
)


def mutated(text: str, dice: Random, words: Sequence[str], other: str, longest: int) -> str:
    """A text after one to five changes, at most ``longest`` characters."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 5))):
        text = dice.choice(_CHANGES)(text, dice, words, other)[:longest]
    return text


def mutated_bytes(data: bytes, dice: Random, other: bytes) -> bytes:
    """Bytes after one to four changes: bits, bytes, slices, lengths, pieces of others."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        at = dice.randrange(len(data) + 1) if data else 0
        stop = min(len(data), at + int(2 ** dice.uniform(0, 6)))
        match dice.randrange(7):
            case 0 if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
            case 2:
                data = data[:at] + data[stop:]
            case 3:
                data = data[:at] + dice.randbytes(dice.randint(1, 8)) + data[at:]
            case 4:
                data = data[:stop] + data[at:]
            case 5:
                data = data[:at] + other[dice.randint(0, len(other)) :]
            case _:
                data = data[:at]
    return data


def _slice(text: str, dice: Random) -> tuple[int, int]:
    start = dice.randint(0, len(text))
    return start, min(len(text), start + int(2 ** dice.uniform(0, 6)))


def _piece(dice: Random, words: Sequence[str]) -> str:
    if words and dice.random() < 0.6:
        return dice.choice(words)
    return dice.choice(NASTY)
