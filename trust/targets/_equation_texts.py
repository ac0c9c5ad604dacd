"""Equations built around a known solution, and a reader of plain ones that shares no code with the
product."""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random

__all__ = ["WORDINGS", "WORDS", "holds", "prompt_and_value"]

LETTERS = "xyzabnkpqrtuvw"
WORDINGS = (
    "Solve {e} for {v}.",
    "Solve for {v}: {e}",
    "Find {v} if {e}.",
    "What is {v} when {e}?",
    "Please solve the equation {e} for {v}. Show your steps.",
    "{e}\n\nSolve for {v} step by step.",
    "Calculate the value of {v} in ${e}$.",
    "Löse die Gleichung {e} nach {v} auf.",
    "Résous l'équation {e} pour {v}.",
    "Resuelve la ecuación {e} para {v}.",
    "解方程 {e}，求 {v}。",
    "हल करें: {e}, {v} = ?",
    "Solve the linear equation: {e}",
    "Given that {e}, determine {v}.",
)
WORDS: tuple[str, ...] = (
    *(
        "Solve",
        "solve",
        "find",
        "for x",
        "if",
        "when",
        "and",
        "or",
        "let u be 3",
        "Let y = 4.",
        "not",
    ),
    *("x", "y", " = ", "=", "+", "-", "*", "/", "(", ")", "^", "^2", "<", ">", "≤", "≠", ":", ";"),
    *("2x", "3", "13", "0", "-5", "1/2", "0.5", "2,5", "1,000", "1.000,5", "½", "√", "|x|", "%"),
    *("\\frac{1}{2}", "\\frac", "\\cdot", "\\times", "$", "\\(", "\\left(", "\\boxed{", "}"),
    *("in French", "as a decimal", "only the number", "twice", "half of", "sum of", "squared"),
    *(
        "step by step",
        "thanks",
        "please",
        "two",
        "twenty-one",
        "apples",
        "Ann",
        "99999999999999999999",
    ),
    *("x = 1", "y = 2x + 1", ", ", ". ", "\n", "sin x", "xy", "e", "pi", "i", "mod 7", "!", "1e5"),
)


def prompt_and_value(dice: Random) -> tuple[str, str, Fraction]:
    """A prompt that asks for one unknown of one linear equation, the unknown and its value."""
    v = dice.choice(LETTERS)
    value = Fraction(dice.randint(-20, 20), dice.choice((1, 1, 1, 1, 2, 3, 4, 5)))
    a, b = dice.choice((-1, 1)) * dice.randint(1, 15), dice.randint(-30, 30)
    left, right = _sides(dice, v, value, a, b)
    if dice.random() < 0.3:
        left, right = right, left
    equation = _styled(f"{left} = {right}", dice)
    return dice.choice(WORDINGS).format(e=equation, v=v), v, value


def _sides(dice: Random, v: str, value: Fraction, a: int, b: int) -> tuple[str, str]:
    term = {1: v, -1: f"-{v}"}.get(a, f"{a}{v}")
    c = a * value + b
    match dice.randrange(5):
        case 0:  # a v + b = c
            return f"{term}{_plus(b)}", _number(c)
        case 1:  # a(v + b) = c
            head = {1: "", -1: "-"}.get(a, str(a))
            return f"{head}({v}{_plus(b)})", _number(a * (value + b))
        case 2:  # v/a + b = c
            size = abs(a)
            return f"{v}/{size}{_plus(b)}", _number(value / size + b)
        case 3:  # a v + b = d v + e
            d = dice.randint(1, 9)
            d += d == a
            return f"{term}{_plus(b)}", f"{d if d != 1 else ''}{v}{_plus_fraction(c - d * value)}"
        case _:  # (a v + b)/d = c
            d = dice.randint(2, 9)
            return f"({term}{_plus(b)})/{d}", _number(c / d)


def _plus(b: int) -> str:
    return "" if not b else f" {'+' if b > 0 else '-'} {abs(b)}"


def _plus_fraction(number: Fraction) -> str:
    return "" if not number else f" {'+' if number > 0 else '-'} {_number(abs(number))}"


def _number(number: Fraction) -> str:
    if number.denominator == 1:
        return str(number.numerator)
    return f"{number.numerator}/{number.denominator}"


def _styled(equation: str, dice: Random) -> str:
    match dice.randrange(8):
        case 0:
            return equation.replace(" ", "")
        case 1:
            return equation.replace("-", "−")
        case 2:
            return equation.translate({ord("0") + n: chr(0xFF10 + n) for n in range(10)})
        case 3:
            return re.sub(r"(\d+)/(\d+)", r"\\frac{\1}{\2}", equation)
        case 4:
            return re.sub(r"(\d)([a-z(])", r"\1*\2", equation)
        case _:
            return equation


_UNPLAIN = re.compile(
    r"\\|[²³¹¼-¾⁰-₉⅐-ↈ①-⓿]|\d,|,\d|\d{13}|[^\W\da-zA-Z]\d|\d[^\W\da-zA-Z]|(?![0-9])\d"
)
_TOKEN = re.compile(r"\s{0,4}(\d{1,12}(?:\.\d{1,9})?|[a-z]|[-+*/()])")


def holds(text: str, unknown: str, value: Fraction) -> bool | None:
    """Whether a text's one equation is true at a value; None where this simple reader cannot say.

    It reads texts with a single ``=`` whose sides hold numbers, the unknown, signs and parentheses,
    and leaves alone whatever might be read in two ways.
    """
    if text.count("=") != 1 or _UNPLAIN.search(text):
        return None
    left, right = text.split("=")
    left = re.split(r"[^\W\d_]{2,}|[:;,$?!\n\"'`]", left)[-1].strip()
    right = re.split(r"[^\W\d_]{2,}|[:;,$?!\n\"'`]|\.(?!\d)", right)[0].strip()
    try:
        return _Side(left, unknown, value).all() == _Side(right, unknown, value).all()
    except (ValueError, ZeroDivisionError, IndexError, RecursionError):
        return None


class _Side:
    """One side as a number, by recursive descent."""

    def __init__(self, text: str, unknown: str, value: Fraction) -> None:
        if (
            not text
            or re.search(r"[0-9a-z)]\s+[0-9a-z(]", text)
            or re.search(r"/[^*/+-]*[a-z(]", text)
        ):
            raise ValueError("might be read in two ways")
        self.tokens: list[str] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError("not plain")
            self.tokens.append(match[1])
            at = match.end()
        self.unknown, self.value, self.at = unknown, value, 0

    def all(self) -> Fraction:
        result = self.sum()
        if self.at < len(self.tokens):
            raise ValueError("something is left")
        return result

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def sum(self) -> Fraction:
        result = self.product()
        while self.peek() in ("+", "-"):
            result += self.product() if self.take() == "+" else -self.product()
        return result

    def product(self) -> Fraction:
        result = self.factor()
        while self.peek() in ("*", "/") or (self.peek() and self.peek() not in "+-)"):
            if self.peek() == "/":
                self.take()
                result /= self.factor()
            else:
                if self.peek() == "*":
                    self.take()
                result *= self.factor()
        return result

    def factor(self) -> Fraction:
        token = self.take()
        if token == "-":
            return -self.factor()
        if token == "(":
            result = self.sum()
            if self.take() != ")":
                raise ValueError("not closed")
            return result
        if token.isalpha():
            if token != self.unknown:
                raise ValueError("another letter")
            return self.value
        return Fraction(token)
