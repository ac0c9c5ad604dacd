"""What changed between two texts, word by word, in bounded time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

__all__ = ["changes"]

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_MOST = 4000
"""Words of both texts. Aligning costs their product; longer texts are shown without marks."""


def changes(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Pieces of both texts in order, each ``same``, ``old`` (gone) or ``new``.

    The pieces that are not ``old`` join to the new text.
    """
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if len(before) + len(after) > _MOST:
        yield "same", new
        return
    old_part = new_part = ""
    matcher = SequenceMatcher(a=before, b=after, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        same = "".join(after[c:d])
        if tag != "equal" or (same == " " and old_part and new_part and d < len(after)):
            # One space between two changes belongs to both: "2 x" -> "3 y" is one change.
            old_part += "".join(before[a:b])
            new_part += same
            continue
        yield from _changed(old_part, new_part)
        old_part = new_part = ""
        yield "same", same
    yield from _changed(old_part, new_part)


def _changed(old: str, new: str) -> Iterator[tuple[str, str]]:
    if old:
        yield "old", old
    if new:
        yield "new", new
