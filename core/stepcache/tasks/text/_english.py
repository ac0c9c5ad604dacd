"""English: what is neutral in a request, as closed lists."""

from __future__ import annotations

from typing import Literal

from stepcache.tasks.text._language import Language, Phrase, phrases
from stepcache.tasks.text._spelling import ONE_CASE, ONE_SPELLING, VARIETIES

__all__ = ["ENGLISH"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_POINTERS = _words(
    "the a an my your his her its our their this that these those i you he she it we they "
    "me him us them one some any all every each no"
)
"""Articles, possessives and pronouns."""

_QUESTIONS = _words("what which who whom whose when where why how")
_AUXILIARIES = _words(
    "is are was were am do does did can could should would will shall may might must has have had "
    "cannot"
)
# Demands for information; "write", "say", "translate" and their like act on wording.
_IMPERATIVES = _words(
    "calculate cancel compare compute convert define describe determine discuss estimate evaluate "
    "explain find give identify list name outline prove provide recommend remind show simplify "
    "solve suggest tell"
)
# What "can you" may stand before. Not "can you give a dog aspirin?", "could you describe yourself
# as shy?", "can you provide invoices?": there "you" is anybody, or the house.
_DEMANDS = phrases("explain", "give me", "list", "outline", "show me", "tell me about")

_PARTICIPLES = _words(
    "been become begun broken brought built bought caught changed come done drawn driven eaten "
    "fallen felt found given gone got gotten grown had happened held kept known left lost made "
    "met paid put read run said seen sent set shown spent taken thought told tried turned won "
    "written"
)
"""Words after which "'s" may mean "has"; those in -ed are known by their ending."""

_NOT = {
    **{
        f"{verb}n't": (verb, "not")
        for verb in (
            *("do", "does", "did", "is", "are", "was", "were", "has", "have", "had"),
            *("could", "would", "should", "must", "need", "might"),
        )
    },
    "won't": ("will", "not"),
    "can't": ("cannot",),
}
_BARE = (
    *("don't", "doesn't", "didn't", "isn't", "aren't", "wasn't", "weren't", "hasn't", "haven't"),
    *("couldn't", "wouldn't", "shouldn't", "can't"),
)
_CONTRACTIONS: dict[str, Phrase] = {
    **_NOT,
    **{short.replace("'", ""): _NOT[short] for short in _BARE},
    "i'm": ("i", "am"),
    **{f"{who}'re": (who, "are") for who in ("you", "we", "they", "what", "who", "where")},
    **{f"{who}'ve": (who, "have") for who in ("i", "you", "we", "they")},
    **{f"{who}'ll": (who, "will") for who in ("i", "you", "he", "she", "it", "we", "they")},
}
_IS = {
    **{
        f"{word}'s": word
        for word in (
            *("what", "who", "where", "when", "why", "how", "that", "there", "here", "it"),
            *("he", "she"),
        )
    },
    "whats": "what",
    "wheres": "where",
    "hows": "how",
    "thats": "that",
    "theres": "there",
    "whos": "who",
}

_FRAMES: dict[Phrase, Literal["question", "demand"]] = {
    **dict.fromkeys(
        phrases(
            *(f"{may} you tell me" for may in ("can", "could", "would", "will")),
            *("please tell me", "tell me", "i would like to know", "i'd like to know"),
            *("i want to know", "i need to know", "i was wondering", "i am wondering"),
            *("i wonder", "can you explain to me", "could you explain to me"),
            *("would you be able to tell me", "are you able to tell me", "may i ask"),
            *("can i ask", "could i ask", "may i know", "can i know"),
        ),
        "question",
    ),
    **dict.fromkeys(
        phrases(
            *(
                "can you",
                "could you",
                "i would like you to",
                "i'd like you to",
                "i want you to",
                "i need you to",
            ),
        ),
        "demand",
    ),
}

_HOW_TO = phrases("how do i", "how can i", "how does one", "how can one")
# "How do I look?" asks for an opinion, "how can I look?" for advice; "how can I be" is a reproach.
_STATES = _words(
    "also always am appear be benefit come compare concern cost deserve differ do even ever fare "
    "feel fit have know like look lose love matter mean measure never not perform rank rate react "
    "relate score seem sleep smell sound stand still suppose taste think trust weigh work you"
)

_SMALL = (
    "the a an and or but of to in on at by for with from about into over after before under "
    "between through is are was were be been am do does did can could should would have has had "
    "i you he she we they my your his her its our their this that these those it there what which "
    "whom whose when where why how if not as than then so please"
)
_CARDINALS = {
    word: str(value)
    for value, word in enumerate(
        (
            *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
            *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
            *("nineteen", "twenty"),
        ),
        start=2,
    )
}

ENGLISH = Language(
    code="en",
    common=frozenset(_SMALL.split()) | {"who", "will", "may", "me", "us", "any", "some", "get"},
    questions=_QUESTIONS | _AUXILIARIES,
    imperatives=_IMPERATIVES,
    inquiries=_QUESTIONS,
    demands=_DEMANDS,
    participles=_PARTICIPLES,
    pointers=_POINTERS,
    names=frozenset(("will", "may")),
    speaker_after=_words(
        "do did can could should would will shall may might must have had am was if when where "
        "what which why how that because than once after before until while cannot not who"
    ),
    one_case=ONE_CASE,
    one_spelling=ONE_SPELLING,
    varieties=VARIETIES,
    contractions=_CONTRACTIONS,
    is_or_has=_IS,
    greetings=phrases(
        *("hi", "hello", "hey", "hiya", "hi there", "hello there", "hey there", "good morning"),
        *("good afternoon", "good evening", "good day", "greetings", "hi all", "hello all"),
        *("hey all", "hi team", "hello team", "hi everyone", "hello everyone", "howdy", "hi guys"),
    ),
    parted_greetings=phrases(
        *("morning", "afternoon", "evening", "sorry", "excuse me", "quick question", "question"),
        *("a quick question", "just a quick question", "just a quick one", "quick one"),
        *("just wondering", "just curious", "just checking"),
    ),
    fillers=frozenset(("um", "umm", "uh", "uhh", "uhm", "erm", "hmm")),
    openers=frozenset(("so", "ok", "okay", "and")),
    please=phrases("please", "kindly", "pls", "plz", "please please"),
    takes_object=_words(
        "to i you we they he she it who that which not can could will would must should may might "
        "do does did and or cannot best always never also after before of with for in by about is "
        "are was were like than from as the a an"
    ),
    thanks=phrases(
        *("thanks", "thank you", "thx", "cheers", "ta", "thanks a lot", "tia"),
        *("thanks so much", "thank you so much", "thank you very much", "thanks in advance"),
        *("thank you in advance", "thanks a million", "much appreciated", "ty", "many thanks"),
        *("thank you kindly", "thanks again", "i appreciate it", "appreciate it"),
        *("i would appreciate it", "thanks for your help", "thank you for your help"),
        *("kind regards", "best regards"),
    ),
    frames=_FRAMES,
    same=dict.fromkeys(_HOW_TO, ("how", "to")),
    not_same_before=_STATES,
    numbers=_CARDINALS,
    number_words=_words(
        "one half quarter thirty forty fifty sixty seventy eighty ninety hundred thousand million "
        "billion and point dozen percent past to o'clock"
    ),
)
