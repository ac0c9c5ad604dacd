"""Which texts are plain prose: one line of words that asks for something, not about wording.

Only there may anything of a text be neutral. A text that carries a payload (after a colon, between
quotation marks, on another line), or that is about its own letters, words, tone or language, may
want any of its characters back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["about_wording", "acts_on_text", "has_plain_signs", "is_plain"]

_PLAIN_SIGNS = frozenset(" ,.?!'’-–—()%€$£¿¡…、。，？！・")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")

# A text about texts may well ask for its own spaces, letters or tone. Whole words with their
# inflections; one too many only costs a re-use.
_ABOUT_TEXT = """
    abbreviate abbreviated abbreviation abbreviations accent accents acronym acronyms adjective
    adjectives adverb adverbs alliteration alphabet alphabetical anagram anagrams apostrophe ascii
    blank blanks byte bytes capitalise capitalised capitalize capitalized
    capitalization casing character characters cipher clause clauses code codes colon comma commas
    correct corrected correcting correction corrections csv decode decrypt dictate echo edit edited
    editing encode encoded encrypt encrypted exact exactly expression expressions
    following formal format formats formatted formatting grammar grammatical greet greeting
    greetings hash hyphen indent indentation informal instruction instructions json language
    languages length letter letters literal literally lowercase markdown message messages
    mispronounce misspell misspelled misspelling morse noun nouns paragraph paragraphs paraphrase
    paraphrased parse passage phrase phrased phrases phrasing polite politely politeness
    proofread prompt pronoun pronouns pronounce pronounced pronunciation proverb pun punctuate
    punctuation puns question questions quotation quote quoted quotes rap regex repeat repeated
    rephrase reply respond response reverse reversed reword rewrite rewriting rewritten rhyme
    rhymes rude say saying sayings says sentence sentences sic slang space spaces spacing speak
    spell spelled spelling spells spelt string strings subtitle summaries summarise summarised
    summarize summarized summary syllable syllables synonym synonyms tense text texts token tokens
    tone translate translated translates translating translation translations transliterate typo
    typos unicode uppercase utf utter verb verbatim verbs vowel vowels word worded wording words
    yaml mot mots sag sage dis
"""
_ABOUT = frozenset(_ABOUT_TEXT.split())
# Other languages inflect more; a word that begins like this is about wording.
_ABOUT_STEMS = (
    *("zeichen", "buchstab", "wort", "wört", "satz", "sätz", "übersetz", "formulier", "wiederhol"),
    *("zusammenfass", "korrigier", "schreib", "sprich", "caract", "carácter", "lettre"),
    *("phras", "frase", "tradu", "tradui", "espac", "palabr", "letra", "palavr", "parol"),
    *("corrig", "repet", "ripet", "résum", "resum", "riassum", "riscriv", "reescr", "réécri"),
    *("écri", "escrib", "escrev", "scriv"),
    *("символ", "пробел", "букв", "слов", "перевед", "перевод", "напиш", "повтор", "исправ"),
)
# Earlier turns and system prompts that have this done to what the user writes make every character
# of it count: a translator's answer to "how can I" is not the one to "how do I".
_ACTS = (
    *("translat", "rewrit", "reword", "rephras", "paraphras", "proofread", "grammar", "spelling"),
    *("correct", "repeat", "echo", "verbatim", "classif", "sentiment", "tone", "polite", "rude"),
    *("formal", "informal", "detect", "extract", "summar", "count", "character", "letter", "word"),
    *("token", "spell", "pronounc", "transcrib", "transliterat", "encod", "decod", "cipher"),
    *("encrypt", "rhyme", "mimic", "imitat", "mirror", "quote", "quotation", "label", "tag"),
    *("annotat", "parse", "punctuat", "uppercase", "lowercase", "capital", "revers", "sentence"),
    *("synonym", "greet", "thank", "please", "edit", "convert", "normali", "embed", "search"),
    *("query", "queries", "intent", "moderat", "title", "text", "prompt", "input", "utteranc"),
    *("improv", "enhanc", "refin", "polish", "continu", "variation", "variant", "rank", "score"),
    *("grade", "judge", "critiqu", "feedback", "assess", "evaluat", "categor", "rout", "similar"),
    *("duplicat", "dialect", "slang", "typo", "simplif"),
)
_LONGEST_CONTEXT = 20_000
_ACTS_BEGIN = re.compile(rf"(?<![^\W\d_])(?:{'|'.join((*_ACTS, *_ABOUT_STEMS))})")
# Languages that part no words: anywhere in the text.
_ABOUT_SIGNS = (
    *("文字", "字符", "空格", "字数", "字數", "翻译", "翻譯", "翻訳", "スペース", "空白", "単語"),
    *("글자", "공백", "번역", "단어", "句子", "改写", "改寫", "言い換え"),
)


def is_plain(text: str) -> bool:
    """Is this one line of words and ordinary punctuation that is not about wording?

    There spaces only part words. Elsewhere they may be code, data, verse or a quotation.
    """
    return has_plain_signs(text) and not about_wording(text)


def has_plain_signs(text: str) -> bool:
    """Is there nothing but words and ordinary punctuation, on one line, and nothing quoted?"""
    for at, sign in enumerate(text):
        if not (sign.isalnum() or sign in _PLAIN_SIGNS or unicodedata.category(sign)[0] == "M"):
            return False
        if sign in "'’" and not _inside_word(text, at):
            return False
    return True


def about_wording(text: str) -> bool:
    """Does the text speak of letters, words, tone, translation or the like?"""
    folded = text.casefold()
    if any(sign in folded for sign in _ABOUT_SIGNS):
        return True
    return any(word in _ABOUT or word.startswith(_ABOUT_STEMS) for word in _WORD.findall(folded))


def acts_on_text(contexts: Sequence[str]) -> bool:
    """May an earlier message, or a system prompt, ask to do something to the words that follow?

    Taken for granted where there is too much to read.
    """
    if sum(map(len, contexts)) > _LONGEST_CONTEXT:
        return True
    folded = "\n".join(contexts).casefold()
    return any(sign in folded for sign in _ABOUT_SIGNS) or _ACTS_BEGIN.search(folded) is not None


def _inside_word(text: str, at: int) -> bool:
    """Does an apostrophe stand between letters? Anywhere else it may be a quotation mark."""
    return 0 < at < len(text) - 1 and text[at - 1].isalpha() and text[at + 1].isalpha()
