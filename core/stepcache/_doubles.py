"""Numbers as most readers of JSON take them: IEEE 754 doubles (RFC 8259, section 6).

The grammar lets a number be of any size and precision, and some readers hold it exactly. What is
proven of an answer has to hold for both kinds of reader.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

__all__ = ["as_doubles", "beyond", "is_exact"]

_EVERY_INTEGER = 2**53
"""Up to here each integer is a double."""


def beyond(value: Any) -> str | None:
    """A number in a JSON value that most readers turn into infinity, in words; None without one."""
    for number in _numbers(value):
        if not math.isfinite(_nearest(number)):
            # A float is one already: its exponent is more than a Decimal holds.
            return "a number" if isinstance(number, float) else f"{Decimal(number):.6e}"
    return None


def is_exact(value: Any) -> bool:
    """Whether doubles hold each number of a JSON value as it is."""
    return all(map(_is_held, _numbers(value)))


def as_doubles(value: Any) -> Any:
    """A JSON value with each number as the nearest double.

    Raises:
        ValueError: One of them is beyond all doubles.
    """
    if isinstance(value, Mapping):
        return {key: as_doubles(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_doubles(item) for item in value]
    if not isinstance(value, (int, float, Decimal)) or _is_held(value):
        return value
    double = _nearest(value)
    if not math.isfinite(double):
        raise ValueError("a number is beyond all doubles")
    return double


def _numbers(value: Any) -> Iterator[int | float | Decimal]:
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            parts.extend(part.values())
        elif isinstance(part, (list, tuple)):
            parts.extend(part)
        elif isinstance(part, (int, float, Decimal)):
            yield part


def _nearest(number: int | float | Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _is_held(number: int | float | Decimal) -> bool:
    if isinstance(number, int) and -_EVERY_INTEGER <= number <= _EVERY_INTEGER:
        return True
    double = _nearest(number)
    return math.isfinite(double) and double == number
