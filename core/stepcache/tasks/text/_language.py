"""What of a request is neutral in one language: closed lists, and nothing else.

A list holds words that cannot change the answer to the request they stand in, *in the place they
are looked for*: a greeting before a question, a "please" behind it, a frame around it. Whoever adds
a word says with it that no two requests that differ by it alone, in that place, want different
answers. Synonyms do not belong here, and no word that has a second meaning in that place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

__all__ = ["Language", "Phrase", "phrases"]

Phrase: TypeAlias = tuple[str, ...]
"""Casefolded words, apostrophes straight."""

_NOTHING: Mapping[Phrase, Phrase] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The closed lists of one language. All words are casefolded, apostrophes straight."""

    code: str
    common: frozenset[str]
    """Frequent small words: they tell the language, and nothing else."""
    questions: frozenset[str]
    """Words that open a question; of such a request the closing punctuation is neutral."""
    inquiries: frozenset[str] = frozenset()
    """Those of them that also open an indirect question."""
    imperatives: frozenset[str]
    """Words that open a demand for information. Not of those that act on a text."""
    demands: tuple[Phrase, ...] = ()
    """Those that may follow "can you ...?" and still be demands."""
    speaker_after: frozenset[str] = frozenset()
    """Words after which "I" is the speaker, in either case, and no numeral or symbol."""
    one_case: Mapping[str, str] = field(default_factory=dict)
    """Names as they are written, and in small letters, where these are no other word."""
    one_spelling: Mapping[str, str] = field(default_factory=dict)
    """Spellings of one word, and the one they are equal to."""
    varieties: frozenset[str] = frozenset()
    """Words beside which a spelling may be what is asked about."""
    contractions: Mapping[str, Phrase] = field(default_factory=dict)
    """Short forms with one reading only."""
    is_or_has: Mapping[str, str] = field(default_factory=dict)
    """Short forms that stand for "is", unless a participle follows."""
    participles: frozenset[str] = frozenset()
    """Those participles; words in -ed count as well."""
    pointers: frozenset[str] = frozenset()
    """Articles, possessives and pronouns: a noun, or nothing, follows."""
    names: frozenset[str] = frozenset()
    """Openers that are also names of people, unless a pointer follows."""
    greetings: tuple[Phrase, ...] = ()
    """Before the request."""
    parted_greetings: tuple[Phrase, ...] = ()
    """Greetings only if a sign follows: "morning" may also be what is asked about."""
    fillers: frozenset[str] = frozenset()
    """Sounds of hesitation, at the start and behind pronouns, discourse words and commas."""
    openers: frozenset[str] = frozenset()
    """Discourse words right before a question or demand."""
    please: tuple[Phrase, ...] = ()
    """Before the request, or behind it."""
    takes_object: frozenset[str] = frozenset()
    """Words after which a closing "please" may be a verb or a name; without such a list it has to
    be parted by a sign."""
    thanks: tuple[Phrase, ...] = ()
    """Behind the request, parted from it by a sign."""
    frames: Mapping[Phrase, Literal["question", "demand"]] = field(default_factory=dict)
    """Polite ways to begin, neutral if followed by a question word or by a demand."""
    same: Mapping[Phrase, Phrase] = field(default_factory=lambda: _NOTHING)
    """Set phrases that open a request, and the one they are equal to."""
    not_same_before: frozenset[str] = frozenset()
    """Words that give those phrases different meanings when they follow."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Cardinals in words that have no other reading, and their digits."""
    number_words: frozenset[str] = frozenset()
    """Further words of numbers: next to one, a cardinal is part of a larger number."""

    def knows(self, word: str) -> bool:
        """Is this casefolded word a sign of the language?"""
        return (
            word in self.common
            or word in self.questions
            or word in self.imperatives
            or word in self.contractions
            or word in self.is_or_has
        )


def phrases(*texts: str) -> tuple[Phrase, ...]:
    """Phrases from texts, the longest first, so that the first match is the best."""
    return tuple(sorted((tuple(t.split()) for t in texts), key=len, reverse=True))
