"""The words of a request without those that cannot change its answer.

Two requests of one sequence differ by a greeting, by politeness, by sounds of hesitation, by a
contraction, by a set phrase for "how to" or "tell me", by the capital of a small word, or by their
closing punctuation, and by nothing else: the order of words counts, and so does every other one.
All of it is looked for in one-line prose that opens like a question or a demand for information,
in the place where it is neutral; see ``_language`` for what may be on a list. Any other text has no
neutral form.
"""

from __future__ import annotations

import re
import unicodedata

from stepcache.tasks.text._language import Language, Phrase
from stepcache.tasks.text._languages import LANGUAGES
from stepcache.tasks.text._prose import about_wording, has_plain_signs

__all__ = ["neutral_words"]

_LONGEST = 1_000
"""Characters; what is longer is rarely plain prose."""
# Words with inner apostrophes, hyphens and points, or one sign. Linear: each repetition begins with
# a sign no word holds.
_TOKEN = re.compile(r"[^\W_]+(?:(?:['.\-]|(?<=\d),(?=\d))[^\W_]+)*|[^\w\s]")
_CLOSING = frozenset(".?!…。？！")
_PARTING = frozenset(",.?!…-–—")
_ENDS_IN_BE = frozenset(("is", "are", "was", "were"))
_SUBJECTS = frozenset(("i", "you", "we", "they", "he", "she", "it"))
_INVERTED = frozenset(("what", "where", "who"))
_JOINS = frozenset(
    ("and", "or", "but", "that", "which", "who", "whom", "if", "when", ",", ".", "?")
)


def neutral_words(text: str) -> tuple[str, ...] | None:
    """The words of a request that can change its answer, in order, the language's code first.

    Idempotent in this sense: equal requests stay equal whatever neutral words are put around them.
    None for a text that has no neutral form. Linear in the text's length.
    """
    if len(text) > _LONGEST:
        return None
    bare = unicodedata.normalize("NFC", text).strip().replace("’", "'").lstrip("¿¡")
    if not has_plain_signs(bare) or any(unicodedata.category(sign)[0] == "M" for sign in bare):
        return None
    tokens = _TOKEN.findall(bare)
    language = _language_of(tokens)
    if language is None:
        return None
    words = _Reading(language, tokens).words()
    if words is None or about_wording(" ".join(words)):
        return None
    return (language.code, *words)


def _language_of(tokens: list[str]) -> Language | None:
    """The language with the most small words in the text; None when there is a tie."""
    folded = [token.casefold() for token in tokens]
    scores = [sum(language.knows(word) for word in folded) for language in LANGUAGES]
    best = max(scores)
    if not best or scores.count(best) > 1:
        return None
    return LANGUAGES[scores.index(best)]


def _is_plural(word: str) -> bool:
    """May a lower-case word be what a number counts?"""
    return len(word) > 3 and word[-1] == "s" and word.isalpha() and word.islower()


class _Reading:
    """One request's tokens on their way to its neutral words. Lives for one call."""

    def __init__(self, language: Language, tokens: list[str]) -> None:
        self.language = language
        self.tokens = tokens
        self.asks = False
        """Whether a question mark was taken off."""

    def words(self) -> tuple[str, ...] | None:
        self.expand()
        self.close()
        self.strip_end()
        self.strip_start()
        self.strip_inner_please()
        framed = self.strip_frame()
        if not self.tokens:
            return None
        self.fold_opening()
        opening = self.tokens[0]
        question = opening in self.language.questions
        if not question and opening not in self.language.imperatives:
            return None
        self.join_phrases()
        if len(self.tokens) < (3 if question else 2):
            return None
        if self.asks and not question and not framed:
            self.tokens.append("?")
        return tuple(self.digits())

    # --- word by word --------------------------------------------------------------------------

    def expand(self) -> None:
        """Write contractions out, drop hesitation, fold names and spellings that have one case."""
        language, out = self.language, list[str]()
        spelled = language.varieties.isdisjoint(t.casefold() for t in self.tokens)
        for at, sign in enumerate(self.tokens):
            word = sign.casefold()
            if self.hesitates(at):
                continue
            if sign == "," and at and self.hesitates(at - 1):
                continue
            if word in language.contractions:
                out.extend(language.contractions[word])
            elif word in language.is_or_has and not self.is_participle(at + 1):
                out.extend((language.is_or_has[word], "is"))
            elif sign == "I" and (not out or out[-1].casefold() in language.speaker_after):
                out.append("i")
            elif sign in language.one_case:
                out.append(language.one_case[sign])
            elif spelled and word in language.one_spelling and sign[1:] == word[1:]:
                # The first letter keeps its case: "Centre" may be part of a name.
                out.append(sign[0] + language.one_spelling[word][1:])
            else:
                out.append(sign)
        self.tokens = out

    def hesitates(self, at: int) -> bool:
        """Is this a sound of hesitation? Not behind a number or a noun: "um" is a unit too."""
        sign = self.tokens[at]
        if sign.isupper() or sign.casefold() not in self.language.fillers:
            return False
        while at and self.tokens[at - 1].casefold() in self.language.fillers:
            at -= 1
        before = self.tokens[at - 1].casefold() if at else ","
        return before in self.language.openers or before in _SUBJECTS or before == ","

    def is_participle(self, at: int) -> bool:
        """Does a participle follow, so that "'s" before it may mean "has": "what's (he) done"?"""
        after = [sign.casefold() for sign in self.tokens[at : at + 2]]
        near = after[: 2 if _SUBJECTS.intersection(after[:1]) else 1]
        return any(word.endswith("ed") or word in self.language.participles for word in near)

    def digits(self) -> list[str]:
        """Cardinals in words as digits where they count something: "three apples", not the film
        "seven", and no part of a larger number."""
        numbers, parts = self.language.numbers, self.language.number_words
        out = list(self.tokens)
        for at, word in enumerate(self.tokens[:-1]):
            if word in numbers and _is_plural(self.tokens[at + 1]):
                before = self.tokens[at - 1] if at else ""
                if not (before in numbers or before in parts or before[:1].isnumeric()):
                    out[at] = numbers[word]
        return out

    # --- the two ends --------------------------------------------------------------------------

    def close(self) -> None:
        """Take off closing punctuation, noting a question mark."""
        while self.tokens and self.tokens[-1] in _CLOSING and not self.is_factorial():
            self.asks |= self.tokens.pop() in "?？"

    def is_factorial(self) -> bool:
        """Might a closing "!" belong to a number or a symbol, as in "5!"?"""
        before = self.tokens[-2] if len(self.tokens) > 1 else "?"
        if self.tokens[-1] != "!" or before in _CLOSING:
            return False
        return len(before) == 1 or not before[-1].isalpha()

    def strip_end(self) -> None:
        """Take off thanks behind a sign, and a closing "please"."""
        while True:
            thanks = self.closing(self.language.thanks)
            please = self.closing(self.language.please)
            before = self.tokens[-thanks - 1] if 0 < thanks < len(self.tokens) else ""
            if thanks and before in _PARTING:
                self.cut_end(thanks)
            elif please and self.is_polite(please):
                self.cut_end(please)
            else:
                return

    def closing(self, known: tuple[Phrase, ...]) -> int:
        folded = tuple(token.casefold() for token in self.tokens[-6:])
        return next((len(p) for p in known if folded[-len(p) :] == p), 0)

    def cut_end(self, count: int) -> None:
        del self.tokens[-count:]
        while self.tokens and self.tokens[-1] in _PARTING:
            self.asks |= self.tokens.pop() in "?？"

    def is_polite(self, count: int) -> bool:
        """Is a closing "please" no verb?"""
        before = self.tokens[-count - 1].casefold() if count < len(self.tokens) else ""
        if before in _PARTING:
            return True
        takes_object = self.language.takes_object
        return bool(before and takes_object) and before not in takes_object

    def strip_start(self) -> None:
        """Take off greetings, discourse words and an opening "please"."""
        language = self.language
        while self.tokens:
            count = self.opening(language.greetings)
            parted = self.opening(language.parted_greetings)
            polite = self.opening(language.please)
            rest = self.tokens[parted : parted + 1]
            if count and not self.opens(count):
                return
            if not count and parted and rest and rest[0] in _PARTING and self.opens(parted):
                count = parted
            if not count and polite and self.opens(polite):
                count = polite
            if not count and self.tokens[0].casefold() in language.openers and self.opens(1):
                count = 1
            if not count:
                return
            del self.tokens[:count]
            while self.tokens and self.tokens[0] in _PARTING:
                del self.tokens[0]

    def opening(self, known: tuple[Phrase, ...]) -> int:
        folded = tuple(token.casefold() for token in self.tokens[:8])
        return next((len(p) for p in known if folded[: len(p)] == p), 0)

    def opens(self, count: int) -> bool:
        """Does a request follow, or one more thing to take off?"""
        rest = [t.casefold() for t in self.tokens[count : count + 9] if t not in _PARTING]
        if len(rest) < 2:
            return False
        language, head = self.language, rest[0]
        if head in language.questions or head in language.imperatives or head in language.openers:
            return True
        known = (
            *language.greetings,
            *language.parted_greetings,
            *language.please,
            *language.frames,
        )
        return any(tuple(rest[: len(phrase)]) == phrase for phrase in known)

    # --- set phrases ---------------------------------------------------------------------------

    def strip_frame(self) -> bool:
        """Take off one polite way to begin; the request behind it is what counts."""
        folded = tuple(token.casefold() for token in self.tokens[:10])
        for frame, needs in self.language.frames.items():
            if folded[: len(frame)] != frame:
                continue
            at = len(frame)
            while folded[at : at + 1] == (",",) or folded[at : at + 1] in self.language.please:
                at += 1
            rest = folded[at:]
            if needs == "question" and rest and rest[0] in self.language.inquiries:
                del self.tokens[:at]
                self.turn()
                return True
            if needs == "demand" and any(rest[: len(d)] == d for d in self.language.demands):
                del self.tokens[:at]
                return True
        return False

    def turn(self) -> None:
        """An indirect question as a direct one: "where the key is" asks "where is the key"."""
        tokens = self.tokens
        fits = (
            len(tokens) >= 4
            and tokens[0] in _INVERTED
            and tokens[1] in self.language.pointers
            and tokens[-1] in _ENDS_IN_BE
            and not _JOINS.intersection(tokens[1:-1])
        )
        if fits:
            self.tokens = [tokens[0], tokens[-1], *tokens[1:-1]]

    def fold_opening(self) -> None:
        """The capital of the first word belongs to the place, where the word is a known opener."""
        first = self.tokens[0]
        word = first.casefold()
        known = word in self.language.questions or word in self.language.imperatives
        if known and (first[1:] == word[1:]) and not self.is_name(word):
            self.tokens[0] = word

    def is_name(self, word: str) -> bool:
        """Might "Will", "May" or "Mark" be somebody? Yes, unless a pronoun or article follows."""
        after = {token.casefold() for token in self.tokens[1:2]}
        return word in self.language.names and not after & self.language.pointers

    def strip_inner_please(self) -> None:
        """Take the "please" out of "can I please ..."."""
        tokens = self.tokens
        asked = len(tokens) > 3 and tokens[1].casefold() in self.language.pointers
        if asked and (tokens[2].casefold(),) in self.language.please and self.is_verb(tokens[3]):
            del tokens[2]

    def is_verb(self, word: str) -> bool:
        """May a word follow a polite "please"? No object may: there "please" is the verb."""
        return word.islower() and word not in self.language.pointers

    def join_phrases(self) -> None:
        """Set phrases that open a request, brought to one."""
        tokens, language = self.tokens, self.language
        for phrase, common in language.same.items():
            count = len(phrase)
            if tuple(tokens[:count]) == phrase and len(tokens) > count:
                if tokens[count] not in language.not_same_before:
                    self.tokens = [*common, *tokens[count:]]
                return
