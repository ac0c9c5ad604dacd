"""Tokens to expressions, by recursive descent with bounds on size and depth.

Where people disagree about what a notation means, nothing is guessed: ``1/2x`` is (1/2)x to some
and 1/(2x) to others, ``3 1/2`` a product to nobody, and both are unreadable here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from stepcache._memo import memo
from stepcache.tasks.linear_equation._algebra import Limit, Quotient, Unreadable, constant, symbol
from stepcache.tasks.linear_equation._lex import Token, lex

__all__ = ["Functions", "expression", "read_canonical", "sides"]

Functions: TypeAlias = Mapping[str, tuple[str, Quotient]]
"""By name: the parameter and the body."""

_MAX_TOKENS = 400
_MAX_DEPTH = 24
_SHORT = 24
_MAX_READ = 2_048
_READ: dict[str, Quotient] = {}
"""Short expressions by their notation."""
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def sides(tokens: Sequence[Token], functions: Functions | None = None) -> tuple[Quotient, ...]:
    """The expressions between the equals signs; one expression when there is no sign.

    Raises:
        Unreadable: Something is no expression, or is ambiguous, or is too large.
    """
    if len(tokens) > _MAX_TOKENS:
        raise Limit("the expression is too long")
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind == "eq":
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(expression(part, functions) for part in parts)


def expression(tokens: Sequence[Token], functions: Functions | None = None) -> Quotient:
    """One expression.

    Raises:
        Unreadable: See :func:`sides`.
    """
    if not tokens:
        raise Unreadable("a side of an equation is empty")
    if len(tokens) > _MAX_TOKENS:
        raise Limit("the expression is too long")
    if functions or len(tokens) > _SHORT:
        return _expression(tokens, functions)
    # An answer writes the same sides again and again, and a step is read more than once.
    key = " ".join([token.text for token in tokens])
    value = _READ.get(key)
    if value is None:
        value = _expression(tokens, None)
        if len(_READ) >= _MAX_READ:
            _READ.clear()
        _READ[key] = value
    return value


def _expression(tokens: Sequence[Token], functions: Functions | None) -> Quotient:
    if len(tokens) == 1 and tokens[0].kind in ("number", "letter"):
        text = tokens[0].text
        return _number(text) if tokens[0].kind == "number" else symbol(text)
    parser = _Parser(tokens, functions or {})
    value = parser.sum(0)
    if parser.tokens[parser.at] is not _END:
        raise Unreadable(f"{tokens[parser.at].text!r} does not belong here")
    return value


def read_canonical(text: str) -> Quotient:
    """The expression behind :meth:`Quotient.text`.

    Raises:
        Unreadable: The text was not made by us.
    """
    return expression(lex(text))


_END = Token("stop", "", 0, 0)


@memo(maxsize=1_024)
def _number(text: str) -> Quotient:
    return constant(Fraction(text))


class _Parser:
    def __init__(self, tokens: Sequence[Token], functions: Functions) -> None:
        self.tokens = (*tokens, _END)
        self.functions = functions
        self.at = 0

    def sign(self, signs: str) -> str | None:
        token = self.tokens[self.at]
        if token.kind == "op" and token.text in signs:
            self.at += 1
            return token.text
        return None

    def sum(self, depth: int) -> Quotient:
        total = self.product(depth)
        while sign := self.sign("+-"):
            term = self.product(depth)
            total = total + term if sign == "+" else total - term
        return total

    def product(self, depth: int) -> Quotient:
        total = self.signed(depth)
        divided = False
        while True:
            sign = self.sign("*/")
            if sign == "*":
                total = total * self.signed(depth)
            elif sign == "/":
                total = total / self.signed(depth)
                divided = True
            elif self.implicit():
                if divided:
                    raise Unreadable("a product after a division without a sign is ambiguous")
                total = total * self.power(depth)
            else:
                return total

    def implicit(self) -> bool:
        """Whether the next token goes on with a product that needs no sign."""
        token = self.tokens[self.at]
        if token.kind not in ("letter", "open", "frac", "number"):
            return False
        before = self.tokens[self.at - 1]
        if token.kind == "number":
            raise Unreadable("two numbers without a sign between them")
        if token.kind == "frac" and before.kind == "number":
            raise Unreadable("a mixed number or a product: ambiguous")
        return True

    def signed(self, depth: int) -> Quotient:
        if depth > _MAX_DEPTH:
            raise Limit("the expression is nested too deeply")
        sign = self.sign("+-")
        if sign is None:
            return self.power(depth)
        value = self.signed(depth + 1)
        return -value if sign == "-" else value

    def power(self, depth: int) -> Quotient:
        base = self.base(depth)
        if self.sign("^") is None:
            return base
        if depth > _MAX_DEPTH:
            raise Limit("the expression is nested too deeply")
        sign = self.sign("-")
        exponent = self.base(depth + 1).value
        if exponent is None or exponent.denominator != 1:
            raise Unreadable("the exponent is not a whole number")
        token = self.tokens[self.at]
        if token.kind == "op" and token.text == "^":
            raise Unreadable("a power of a power is ambiguous")
        return base ** (-exponent.numerator if sign else exponent.numerator)

    def base(self, depth: int) -> Quotient:
        token = self.tokens[self.at]
        if token is _END:
            raise Unreadable("the expression ends too early")
        self.at += 1
        if token.kind == "number":
            return _number(token.text)
        if token.kind == "letter":
            return self.letter(token, depth)
        if token.kind == "open":
            return self.group(token, depth)
        if token.kind == "frac":
            return self.fraction(depth)
        raise Unreadable(f"{token.text!r} does not belong here")

    def letter(self, token: Token, depth: int) -> Quotient:
        following = self.tokens[self.at]
        if token.text not in self.functions or following.kind != "open":
            return symbol(token.text)
        self.at += 1
        argument = self.group(following, depth)
        parameter, body = self.functions[token.text]
        return body.put({parameter: argument})

    def group(self, token: Token, depth: int) -> Quotient:
        if depth > _MAX_DEPTH:
            raise Limit("the expression is nested too deeply")
        inner = self.sum(depth + 1)
        close = self.tokens[self.at]
        if close.kind != "close" or close.text != _PAIRS[token.text]:
            raise Unreadable("the parentheses do not match")
        self.at += 1
        return inner

    def fraction(self, depth: int) -> Quotient:
        r"""``\frac{a}{b}``, or ``\frac23``, whose arguments are single digits."""
        token = self.tokens[self.at]
        if token.kind == "number" and len(token.text) == 2:
            if not token.text.isdecimal():
                raise Unreadable("a fraction without its parts")
            self.at += 1
            return constant(int(token.text[0])) / constant(int(token.text[1]))
        return self.argument(depth) / self.argument(depth)

    def argument(self, depth: int) -> Quotient:
        token = self.tokens[self.at]
        single = token.kind == "letter" or (token.kind == "number" and len(token.text) == 1)
        braced = token.kind == "open" and token.text == "{"
        if not single and not braced:
            raise Unreadable("a fraction without its parts")
        return self.base(depth + 1)
