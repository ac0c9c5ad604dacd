"""The one form of all texts that ask for the same in the same words.

Three things about a text cannot change an answer: the Unicode form of its letters (NFC), the kind
of its line ends, and the number of spaces between the words of plain prose. A fourth, an opening
"please", is neutral in English instructions. Everything else is kept: case ("may" and "May"),
compatibility characters ("x²" and "x2"), and how the text ends ("Do it." and "Do it?").
"""

from __future__ import annotations

import re
import unicodedata

from stepcache.tasks.text._prose import is_plain

__all__ = ["canonical_text"]

_OPENING = re.compile(r"(please|kindly),? {1,8}(?=[A-Za-z])", re.IGNORECASE)
_OPENERS = frozenset(
    (
        *("answer", "calculate", "check", "compare", "compute", "convert", "create", "define"),
        *("describe", "design", "determine", "discuss", "draft", "estimate", "evaluate"),
        *("explain", "find", "generate", "give", "help", "identify", "list", "make", "name"),
        *("outline", "plan", "prove", "provide", "recommend", "show", "simplify", "solve"),
        *("suggest", "summarise", "summarize", "tell", "write"),
    )
)
_SPACES = re.compile(" {2,}")


def canonical_text(text: str) -> str:
    """The canonical form of a request's text. Idempotent; linear in the text's length."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    bare = text.strip(" \n")
    if not _is_prose(bare):
        return text
    return _without_please(_SPACES.sub(" ", bare))


def _is_prose(text: str) -> bool:
    """Plain prose, apart from its opening "please"; a second one may be what it is about."""
    opening = _OPENING.match(text)
    rest = text[opening.end() :] if opening else text
    folded = rest.casefold()
    return "please" not in folded and "kindly" not in folded and is_plain(rest)


def _without_please(text: str) -> str:
    opening = _OPENING.match(text)
    if not opening:
        return text
    rest = text[opening.end() :]
    if rest.split(" ", 1)[0].casefold() not in _OPENERS:
        return text
    # The capital belongs to the place, not to the word.
    return rest[0].upper() + rest[1:] if text[0].isupper() else rest
