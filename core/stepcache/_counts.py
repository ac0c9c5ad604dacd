"""Numbers of things, as people say them."""

from __future__ import annotations

__all__ = ["count"]


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``3 steps``, ``1 step``, ``2,000 entries``.

    Args:
        noun: For one of them.
        plural: For any other number; left out, the noun with an ``s``.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
