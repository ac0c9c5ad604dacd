"""Text to tokens with positions: the notations people write mathematics in.

Every character of the text belongs to at most one token, and a token knows where it stands, so that
spans point into the request as it was written. Nothing is decided here about meaning, except what
the characters alone tell: a full-width digit is a digit, a Unicode minus a minus.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple, TypeAlias

from stepcache.tasks.linear_equation._signs import (
    MAX_DIGITS,
    alphabetic,
    decimal,
    plain_text,
    product,
)

__all__ = ["CUT", "MAX_TOKENS", "Kind", "Token", "lex"]

Kind: TypeAlias = Literal[
    "number",  # digits with one decimal sign, or a vulgar fraction; text is canonical
    "letter",  # one letter that may be an unknown
    "word",  # any other run of letters
    "op",  # + - * / ^
    "eq",  # =
    "open",
    "close",
    "frac",  # \frac
    "blank",  # ? or ____ where a value belongs
    "stop",  # . , ; : ! and whatever else ends a run of mathematics
    "mark",  # $ \( \[ ` **: the border of mathematics
    "bad",  # < > sqrt %: mathematics that is not ours
]


class Token(NamedTuple):
    """One token of the text, ``text[start:stop]``."""

    kind: Kind
    text: str
    start: int
    stop: int
    spaced: bool = False
    """White space stands before it."""
    maths: bool = False
    """It stands inside mathematical delimiters."""


_token = tuple.__new__
"""Makes a token without the detour over its own ``__new__``; most of a text's tokens are words."""
CUT = "..."
"""What the ``bad`` token says that stands for all of a text that is too much to be read."""
MAX_TOKENS = 20_000
"""Tokens beyond which the rest of a text is not read."""
_MAX_RUN = 1_000
"""Tokens in a row without a word or a stop beyond which the rest of the text is not read."""

_SUPER = {"\u2070": "0", "\u00b9": "1", "\u00b2": "2", "\u00b3": "3"} | {
    chr(0x2070 + i): str(i) for i in range(4, 10)
}
_SPACES = frozenset(" \t\u00a0\u2009\u200a\u202f\u3000\u200b\ufeff\u2060")
_BAD = frozenset("<>\u2264\u2265\u2260\u2248\u00b1\u2213\u221a%~\u221e\u2208\u2261")
_STOPS = frozenset(".,;:!\n\r\u3002\uff0e\u3001\u2026")
_PLAIN_SIGNS: dict[str, Kind] = {
    **dict.fromkeys("+-/^", "op"),
    **dict.fromkeys("([{", "open"),
    **dict.fromkeys(")]}", "close"),
    **dict.fromkeys(":;!", "stop"),
}
_VULGAR = {c: unicodedata.numeric(c) for c in "\u00bd\u00bc\u00be"}

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_DIGITS = re.compile(r"\d+")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SUBSCRIPT = re.compile(
    r"\\?_(?:([0-9]{1,3})|\{\s{0,3}([0-9]{1,3})\s{0,3}\})(?!\w)|([\u2080-\u2089]{1,3})(?![^\W_]|_)"
)
_ROMAN = re.compile(r"\{\s*([A-Za-z])\s*\}")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPACE_COMMANDS = _names(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr quad qquad limits nonumber notag n t r hspace"
)
_FONTS = _names("mathrm mathbf mathit mathsf textit textbf text boldsymbol")
_FRACS = _names("frac dfrac tfrac cfrac")
_STOP_COMMANDS = _names(
    """
    implies Rightarrow Longrightarrow therefore because Leftrightarrow iff newline item par
    rightarrow to Longleftrightarrow longrightarrow
    """
)
_GREEK = _names(
    """
    alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi chi psi
    omega varphi ell
    """
)


def lex(text: str) -> tuple[Token, ...]:
    """The tokens of a text, in order. Linear in its length; never raises."""
    return _Lexer(text).run()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = plain_text(text)
        self.at = 0
        self.tokens: list[Token] = []
        self.limit = _MAX_RUN
        """How many tokens there may be before the next word or stop."""
        self.maths: str = ""
        """The delimiter that closes the mathematics we stand in, or nothing."""
        self.spaced = False
        self.lead: int | None = None
        """Where a command began that belongs to the token after it, such as ``\\left``."""

    def run(self) -> tuple[Token, ...]:
        plain, end, tokens = self.plain, len(self.plain), self.tokens
        while self.at < end:
            char = plain[self.at]
            if char == " ":
                self.at += 1
                self.spaced = True
                continue
            if "a" <= char <= "z" or "A" <= char <= "Z":
                self.word()
            elif "0" <= char <= "9":
                self.number()
            elif char in _PLAIN_SIGNS:
                self.add(_PLAIN_SIGNS[char], char, 1)
            else:
                self.step()
            if len(tokens) > self.limit:
                self.add("bad", CUT, end - self.at)
        return tuple(tokens)

    def add(self, kind: Kind, text: str, length: int) -> None:
        start = self.at if self.lead is None else self.lead
        self.lead = None
        self.at = stop = self.at + length
        self.tokens.append(_token(Token, (kind, text, start, stop, self.spaced, self.maths != "")))
        self.spaced = False
        if kind == "word" or kind == "stop":
            self.limit = min(len(self.tokens) + _MAX_RUN, MAX_TOKENS)

    def skip(self, length: int) -> None:
        self.at += length
        self.spaced = True

    def step(self) -> None:
        plain, at = self.plain, self.at
        char = plain[at]
        if char in _SPACES or (char in "\r\n" and self.maths and not self._blank_line()):
            self.skip(1)
        elif char in _SUPER:
            self.superscript()
        elif char == "\\":
            self.command()
        elif char == "$":
            self.dollar()
        elif char.isdecimal() or (char in ".," and self._leading_point()):
            self.number()
        elif char.isalpha():
            self.word()
        elif char == "*":
            self.star()
        elif char == "=":
            self.equals()
        elif char in "?_":
            end = at
            while end < len(plain) and plain[end] == char:
                end += 1
            self.add("blank", char, end - at)
        elif char == "&" and self.maths:
            self.skip(1)
        elif char in _BAD or (char in "\u00b0\u2032'" and self.maths):
            self.add("bad", char, 1)
        elif char == "`":
            self.add("mark", char, 1)
        elif char in _VULGAR:
            self.add("number", f"{int(_VULGAR[char] * 4)}/4", 1)
        elif char.isnumeric() and not "\u2460" <= char <= "\u2793":
            self.add("bad", char, 1)  # a numeral, and no mark of a list: a factor as likely as not
        else:
            self.add("stop", "\n" if char in "\r\n" else char, 1)

    def _leading_point(self) -> bool:
        """``.5`` after something that is neither a word nor a number."""
        before = self.plain[self.at - 1] if self.at else " "
        after = self.plain[self.at + 1 : self.at + 2]
        return (
            self.plain[self.at] == "."
            and after.isdigit()
            and not before.isalnum()
            and (before not in ")]}.")
        )

    def _blank_line(self) -> bool:
        rest = self.plain[self.at : self.at + 3]
        return rest.startswith(("\n\n", "\r\n\r", "\n \n"))

    def dollar(self) -> None:
        length = 2 if self.plain.startswith("$$", self.at) else 1
        mark = self.plain[self.at : self.at + length]
        if self.maths == mark:
            self.maths = ""
            self.add("mark", "$", length)
        elif self.maths:
            self.add("mark", "$", length)
            self.maths = ""
        elif self.plain.find(mark, self.at + length, self.at + 2000) < 0:
            self.add("bad", "$", length)  # a lone dollar is money
        else:
            self.add("mark", "$", length)
            self.maths = mark

    def equals(self) -> None:
        doubled = self.plain.startswith("==", self.at)
        if self.plain.startswith("=>", self.at):
            self.add("stop", "=>", 2)
        elif self.tokens and self.tokens[-1].text in "!/:" and not self.spaced:
            self.add("bad", "!=", 1)
        elif self.plain.startswith("=/=", self.at):
            self.add("bad", "!=", 3)
        else:
            self.add("eq", "=", 2 if doubled else 1)

    def star(self) -> None:
        plain, at = self.plain, self.at
        if not plain.startswith("**", at):
            self.add("op", "*", 1)
            return
        before, after = plain[at - 1 : at], plain[at + 2 : at + 3]
        glued = bool(before) and (before.isalnum() or before in ")}]")
        spaced = before == " " and after == " " and plain[at - 2 : at - 1].isalnum()
        rest = plain[at + 2 : at + 4].lstrip(" ")[:1]
        power = rest.isdigit() or rest in ("(", "{", "-")
        if (glued and (power or after.isalnum())) or (spaced and power):
            self.add("op", "^", 2)
        else:
            self.add("mark", "**", 2)

    def superscript(self) -> None:
        end = self.at
        while end < len(self.plain) and self.plain[end] in _SUPER:
            end += 1
        power = "".join(_SUPER[c] for c in self.plain[self.at : end][:MAX_DIGITS])
        self.add("op", "^", 0)
        self.add("number", power, end - self.at)

    def number(self) -> None:
        plain, start = self.plain, self.at
        end = start
        match = _DIGITS.match(plain, start)
        whole = match.group() if match else ""
        end = start + len(whole)
        if plain[end : end + 1] not in (".", ",", "{") and end - start <= MAX_DIGITS:
            self.add("number", whole, end - start)
            return
        groups: list[tuple[str, str]] = []
        while end < len(plain) - 1 and plain[end] in ".,":
            found = _DIGITS.match(plain, end + 1)
            if not found or len(groups) > 20:
                break
            groups.append((plain[end], found.group()))
            end = found.end()
        if self.maths and plain.startswith("{,}", end):
            groups = [("?", "")]  # \(1{,}000\): thousands or decimals, by country
        text = decimal(whole, groups)
        if text is None:
            self.add("bad", "number", end - start)
        else:
            self.add("number", text, end - start)

    def word(self) -> None:
        match = _WORD.match(self.plain, self.at)
        if match is not None and match.end() - self.at > 3 and match.group().isascii():
            self.add("word", match.group(), match.end() - self.at)
            return
        if match is None:  # a letter outside what the pattern calls one
            self.add("stop", self.plain[self.at], 1)
            return
        run = match.group()
        if not alphabetic(run[0]):
            length = next((i for i, c in enumerate(run) if alphabetic(c)), len(run))
            self.add("word", run[:length], length)
            return
        length = next((i for i, c in enumerate(run) if not alphabetic(c) and c not in "'\u2019"), 0)
        run = run[: length or len(run)]
        glued = bool(self.tokens) and self.tokens[-1].kind == "number" and not self.spaced
        bound = self.tokens[-1].stop == self.at if self.tokens else False
        if len(run) == 1:
            self.letter(run, 1)
        elif (self.maths or (glued and bound)) and len(run) <= 3 and product(run):
            for letter in run:
                self.add("letter", letter, 1)
        else:
            self.add("word", run, len(run))

    def letter(self, name: str, length: int) -> None:
        """A letter with the digits below it: ``x_1``, ``x_{12}``, ``x₁``."""
        index = _SUBSCRIPT.match(self.plain, self.at + length)
        if index is None:
            self.add("letter", name, length)
            return
        digits = index.group(1) or index.group(2) or index.group(3)
        below = "".join(str(unicodedata.digit(digit)) for digit in digits)
        self.add("letter", f"{name}_{below}", index.end() - self.at)

    def command(self) -> None:
        plain, at = self.plain, self.at
        following = plain[at + 1 : at + 2]
        if following in ("(", "["):
            self.maths = ")" if following == "(" else "]"
            self.add("mark", "\\" + following, 2)
        elif following in (")", "]"):
            self.add("mark", "\\" + following, 2)
            self.maths = ""
        elif following == "\\":
            self.add("stop", "\\\\", 2)
        elif following in (",", ";", ":", "!", " ", "/"):
            self.skip(2)
        elif following in ("{", "}", "$", "%", "|"):
            self.add("bad", following, 2)
        elif following and following in "=+-*_":
            self.skip(1)  # an escaped sign of Markdown
        else:
            self.named()

    def named(self) -> None:
        plain = self.plain
        match = _COMMAND.match(plain, self.at)
        if match is None:
            self.add("bad", "\\", 1)
            return
        name, length = match.group(1), match.end() - self.at
        if name in _FRACS:
            self.add("frac", name, length)
        elif name in ("cdot", "times", "ast"):
            self.add("op", "*", length)
        elif name == "div":
            self.add("op", "/", length)
        elif name in ("begin", "end"):
            self.environment(name, length)
        elif name in _FONTS:
            self.font(length)
        elif name in ("boxed", "fbox"):
            self.add("mark", "\\boxed", length)
        elif name in ("displaystyle", "textstyle"):
            self.add("mark", "\\" + name, length)
        elif name in _SPACE_COMMANDS:
            self.lead = self.at if self.lead is None else self.lead
            self.skip(length)
        elif name in _STOP_COMMANDS:
            self.add("stop", "\\" + name, length)
        elif name in _GREEK:
            self.letter("\\" + name, length)
        elif name[0] in "nt" and len(name) == 2:
            self.skip(2)  # a line break that was escaped once too often, then a letter
        elif name == "ldots":
            self.add("blank", "_", length)
        else:
            self.add("bad", "\\" + name, length)

    def environment(self, name: str, length: int) -> None:
        end = self.plain.find("}", self.at, self.at + length + 24)
        size = end + 1 - self.at if end > 0 else length
        was = self.maths
        self.add("mark", "\\" + name, size)
        if name == "begin" and not was:
            self.maths = "end"
        elif name == "end" and was == "end":
            self.maths = ""

    def font(self, length: int) -> None:
        """``\\mathrm{x}`` is the letter x; ``\\text{or}`` is a word."""
        single = _ROMAN.match(self.plain, self.at + length)
        if single:
            self.add("letter", single.group(1), single.end() - self.at)
            return
        end = self.plain.find("}", self.at, self.at + length + 200)
        if end < 0 or not self.plain.startswith("{", self.at + length):
            self.add("bad", "\\text", length)
            return
        self.add("word", self.plain[self.at + length + 1 : end].strip(), end + 1 - self.at)
