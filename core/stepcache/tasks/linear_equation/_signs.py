"""Single signs and numerals: look-alikes made plain, decimal and thousands signs told apart."""

from __future__ import annotations

import unicodedata

__all__ = ["MAX_DIGITS", "alphabetic", "decimal", "plain_text", "product"]

MAX_DIGITS = 60
_MINUS = "\u2212\u2010\u2011\u2012\u2013\ufe63\u207b"
_TIMES = "\u00d7\u2715\u2716\u00b7\u22c5\u2219\u2217"
_SLASH = "\u00f7\u2215\u2044"


def plain_text(text: str) -> str:
    """The text with one plain character in place of each of its look-alikes."""
    if text.isascii():
        return text
    return "".join(map(_plain_char, text))


def _plain_char(char: str) -> str:
    if char.isascii():
        return char
    if char in _MINUS:
        return "-"
    if char in _TIMES:
        return "*"
    if char in _SLASH:
        return "/"
    if char in "\uff0e\u3002":
        return "\u3002"
    if "\uff01" <= char <= "\uff5e":
        return chr(ord(char) - 0xFEE0)
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    return char


def decimal(whole: str, groups: list[tuple[str, str]]) -> str | None:
    """A decimal text with a point, or None where the signs can be read in two ways."""
    if sum(len(g) for _, g in groups) + len(whole) > MAX_DIGITS:
        return None
    if not groups:
        return whole
    if len(groups) == 1:
        sign, digits = groups[0]
        if sign == "," and len(digits) == 3 and 1 <= len(whole) <= 3 and whole.strip("0"):
            return None  # one thousand, or one
        return f"{whole or '0'}.{digits}" if sign in ".," else None
    signs = {sign for sign, _ in groups[:-1]}
    if len(signs) != 1 or not whole or len(whole) > 3 or any(len(g) != 3 for _, g in groups[:-1]):
        return None
    joined = whole + "".join(g for _, g in groups[:-1])
    last_sign, last = groups[-1]
    if last_sign in signs:
        return joined + last if len(last) == 3 else None
    return f"{joined}.{last}"


def alphabetic(char: str) -> bool:
    """Latin, Greek or Cyrillic: the alphabets that unknowns are taken from."""
    return char.isalpha() and (char < "\u0530" or "\u1e00" <= char <= "\u1fff")


def product(run: str) -> bool:
    return run.isascii() and run.casefold() not in ("sin", "cos", "tan", "log", "ln", "exp", "mod")
