"""The one form of all texts that ask for the same in the same words.

Three things about a text cannot change an answer: the Unicode form of its letters (NFC), the kind
of its line ends, and the number of spaces between the words of plain prose. A fourth, an opening
"please", is neutral in English instructions. Everything else is kept: case ("may" and "May"),
compatibility characters ("x²" and "x2"), and how the text ends ("Do it." and "Do it?").
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["canonical_text"]

# A text about texts may well ask for its own spaces, letters or tone. Stems, as the languages of
# prose inflect; finding one too many only costs a re-use.
_ABOUT_TEXT = (
    *("charact", "letter", "space", "spacing", "blank", "indent", "token", "length", "count"),
    *("how long", "string", "text", "sentence", "message", "prompt", "question", "word", "phrase"),
    *("repeat", "echo", "verbatim", "exact", "polite", "formal", "rude", "tone", "translat"),
    *("rewrite", "reword", "rephras", "paraphras", "correct", "proofread", "edit", "format"),
    *("byte", "regex", "parse", "json", "csv", "yaml", "code", "morse", "cipher", "encrypt"),
    *("encode", "hash", "reverse", "spell", "say ", "please", "kindly", "instruction", "request"),
    *("zeichen", "buchstabe", "wort", "wört", "satz", "caract", "carácter", "lettre", "mots"),
    *("espac", "palabra", "letra", "phrase", "frase", "traduc", "tradui", "übersetz", "parola"),
    *("символ", "пробел", "букв", "слов", "перевед", "文字", "字符", "空格", "字数", "字數"),
    *("スペース", "空白", "翻訳", "翻译", "翻譯", "単語", "글자", "공백", "번역", "단어"),
)
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
_PLAIN_SIGNS = frozenset(" ,.?!:'’-–—()%€$£¿¡、。，？！：・")


def canonical_text(text: str) -> str:
    """The canonical form of a request's text. Idempotent; linear in the text's length."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    bare = text.strip(" \n")
    if not _is_prose(bare):
        return text
    return _without_please(_SPACES.sub(" ", bare))


def _is_prose(text: str) -> bool:
    """One line of words and ordinary punctuation that is not about its own spelling.

    Only there do spaces just part words. Elsewhere they may be code, data, verse or a quotation.
    """
    for at, sign in enumerate(text):
        if not (sign.isalnum() or sign in _PLAIN_SIGNS or unicodedata.category(sign)[0] == "M"):
            return False
        if sign in "'’" and not _inside_word(text, at):
            return False
    folded = text.casefold()
    opening = _OPENING.match(folded)
    if opening:
        folded = folded[opening.end() :]
    return not any(stem in folded for stem in _ABOUT_TEXT)


def _inside_word(text: str, at: int) -> bool:
    """Does an apostrophe stand between letters? Anywhere else it may be a quotation mark."""
    return 0 < at < len(text) - 1 and text[at - 1].isalpha() and text[at + 1].isalpha()


def _without_please(text: str) -> str:
    opening = _OPENING.match(text)
    if not opening:
        return text
    rest = text[opening.end() :]
    if rest.split(" ", 1)[0].casefold() not in _OPENERS:
        return text
    # The capital belongs to the place, not to the word.
    return rest[0].upper() + rest[1:] if text[0].isupper() else rest
