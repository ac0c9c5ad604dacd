"""Regular expressions for phrases, written much as the phrases are.

In a pattern a space is any white space and ``'`` any apostrophe.
"""

from __future__ import annotations

import re

__all__ = ["any_of", "compiled"]


def any_of(*phrases: str) -> str:
    """A pattern for one of many phrases, the longest that fits.

    Args:
        phrases: Each a list, between spaces; ``_`` joins the words of one phrase.
    """
    ordered = sorted(" ".join(phrases).split(), key=len, reverse=True)
    return f"(?:{'|'.join(phrase.replace('_', ' ') for phrase in ordered)})"


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern, compiled for any case."""
    spaced = pattern.replace(" ", r"\s{1,9}").replace("'", "['\u2019]")
    return re.compile(spaced, re.IGNORECASE)
