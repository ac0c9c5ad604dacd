"""Cached text inside a prompt is data: it stands between marks that it cannot contain.

Steps come from a store and, before that, from a model that somebody may have talked into writing
instructions. A text that could end the quotation and go on in its own words is not quoted at all.
"""

from __future__ import annotations

import html
import re
import unicodedata

__all__ = ["quoted"]


def quoted(text: str, mark: str) -> str | None:
    """The text between ``<mark>`` and ``</mark>``, each on a line of its own; None when it holds
    what could pass for the closing mark, however that is written: in other letters' forms, cases,
    spaces or escapes.

    Args:
        text: What to quote.
        mark: Letters and hyphens.
    """
    if "/" + _bare(mark) in _bare(text):
        return None
    return f"<{mark}>\n{text}\n</{mark}>"


def _bare(text: str) -> str:
    """The letters, digits and slashes of a text alone, in one form each."""
    plain = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), html.unescape(text))
    folded = unicodedata.normalize("NFKC", plain).casefold().translate(_SLASHES)
    return "".join(sign for sign in folded if sign == "/" or sign.isalnum())


_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_SLASHES = str.maketrans("\u2044\u2215\u29f8\u2571", "////")
