"""Neutral words of open requests: what meets, and what must never meet."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache import Message, Request, StepCacheEngine
from stepcache._types import Constraints
from stepcache.tasks.text import TextTask
from stepcache.tasks.text._languages import LANGUAGES
from stepcache.tasks.text._neutral import neutral_words
from stepcache.testing import ScriptedBackend

TASK = TextTask()


def demands(text: str, *before: Message) -> object:
    parsed = TASK.parse(Request(messages=(*before, Message(role="user", text=text))))
    assert isinstance(parsed, Constraints)
    return parsed.values


PLAIN = "How do I descale the boiler?"
MEETING = [
    # capitals of places, closing signs, spaces
    (PLAIN, "how do i descale the boiler"),
    (PLAIN, "How do I descale the boiler ??"),
    (PLAIN, "  How do I  descale the boiler..."),
    # greetings, thanks, politeness
    (PLAIN, "Hi, how do I descale the boiler?"),
    (PLAIN, "Good evening! How do I descale the boiler? Many thanks!"),
    (PLAIN, "Morning - how do I descale the boiler, please"),
    (PLAIN, "Hello there, sorry, how do I descale the boiler? Thank you in advance."),
    (PLAIN, "Quick question: how do I descale the boiler?".replace(":", ",")),
    # set phrases
    (PLAIN, "How can I descale the boiler?"),
    (PLAIN, "How to descale the boiler"),
    (PLAIN, "Could you please tell me how to descale the boiler?"),
    (PLAIN, "I'd like to know how to descale the boiler."),
    (PLAIN, "I was wondering how I can descale the boiler?".replace("I can", "to")),
    ("Where is the fuse box?", "Can you tell me where the fuse box is?"),
    ("What is the boiling point of neon?", "Tell me what the boiling point of neon is"),
    ("Explain tides", "Can you explain tides?"),
    ("Explain tides", "explain tides please"),
    ("Give me a recipe for leek soup.", "Could you give me a recipe for leek soup, please?"),
    # contractions
    ("What's a fjord?", "What is a fjord?"),
    ("What’s a fjord?", "whats a fjord"),
    ("Why doesn't the tap drip?", "Why does not the tap drip?"),
    ("Why can't I log in?", "Why cannot I log in?"),
    # hesitation
    (PLAIN, "um, how do I uh descale the boiler"),
    (PLAIN, "ok so how do I descale the boiler"),
    ("Can I cancel my visit?", "Can I please cancel my visit?"),
    # spellings, names and numbers of one reading
    ("What colour is neon?", "What color is neon?"),
    ("Who founded Lisbon?", "who founded lisbon"),
    ("What is the speed limit in the UK?", "what's the speed limit in the uk?"),
    ("Name three rivers in Peru.", "Name 3 rivers in Peru"),
    # other languages
    ("Wie entkalke ich die Maschine?", "Guten Tag, wie entkalke ich die Maschine? Danke"),
    ("Comment nettoyer la cafetière ?", "Bonjour, comment nettoyer la cafetière, s'il vous plaît"),
    ("¿Cómo limpio la cafetera?", "Hola, cómo limpio la cafetera? Muchas gracias"),
    ("Come pulisco la caffettiera?", "Ciao, come pulisco la caffettiera, per favore?"),
    ("Como limpo a cafeteira?", "Olá, como limpo a cafeteira? Obrigado"),
]


@pytest.mark.parametrize(("one", "other"), MEETING)
def test_neutral_words_do_not_part_requests(one: str, other: str) -> None:
    """Requests that differ by neutral words only have the same demands."""
    assert demands(one) == demands(other)
    assert "words" in demands(one)  # type: ignore[operator]


APART = [
    # one word that counts
    (PLAIN, "How do I descale the kettle?"),
    (PLAIN, "How do I descale a boiler?"),
    (PLAIN, "How do I not descale the boiler?"),
    (PLAIN, "Why do I descale the boiler?"),
    (PLAIN, "How did I descale the boiler?"),
    (PLAIN, "How should I descale the boiler?"),
    (PLAIN, "How do you descale the boiler?"),
    (PLAIN, "How do I descale the boiler? In French."),
    (PLAIN, "How do I descale the boiler in two steps?"),
    ("How do I switch autosave on?", "How do I switch autosave off?"),
    ("Is it safe?", "Is it unsafe?"),
    ("Can I park here?", "Can't I park here?"),
    ("Can I park here?", "Can we park here?"),
    ("Can I park here?", "Should I park here?"),
    # word order
    ("How do I convert Word to PDF?", "How do I convert PDF to Word?"),
    ("Is Ann taller than Bob?", "Is Bob taller than Ann?"),
    # set phrases that are none there
    ("How do I look?", "How can I look?"),
    ("How do I feel about it?", "How can I feel about it?"),
    ("How do I know?", "How to know?"),
    ("Do you know how to swim?", "How to swim?"),
    ("Can you give a dog aspirin?", "Give a dog aspirin."),
    ("Can you prove it is true?", "Prove it is true."),
    ("Would you describe yourself as shy?", "Describe yourself as shy."),
    ("What's he done?", "What is he done?"),
    ("What's changed in Python?", "What is changed in Python?"),
    # please, thanks and greetings that are the matter
    ("Whom do they aim to please?", "Whom do they aim to?"),
    ("Can I please my boss?", "Can I my boss?"),
    ("What is German for please?", "What is German for?"),
    ("Who sang hello?", "Who sang?"),
    ("What does the word please mean?", "What does the word mean?"),
    ("Who sang Please Please Me?", "Who sang Me?"),
    ("What do I say to hello?", "What do I say to?"),
    ("Was heißt das auf Deutsch bitte?", "Was heißt das auf Deutsch?"),
    # capitals that tell
    ("Who lives in Turkey?", "Who lives in turkey?"),
    ("What is Rust?", "What is rust?"),
    ("Who is in IT?", "Who is in it?"),
    ("Where is the US office?", "Where is the us office?"),
    ("Is May nice?", "Is may nice?"),
    ("What is He used for?", "What is he used for?"),
    ("What is I in chemistry?", "What is i in chemistry?"),
    ("Who is Danish?", "Who is danish?"),
    # numbers
    ("Who directed seven?", "Who directed 7?"),
    ("Name three rivers", "Name thirty rivers"),
    ("Name three rivers", "Name 4 rivers"),
    ("Name twenty two rivers", "Name 20 two rivers"),
    ("What is 5!", "What is 5?"),
    ("What is n! good for", "What is n good for"),
    ("What is 1,000 in binary?", "What is 1.000 in binary?"),
    ("How many nm are in 5 um?", "How many nm are in 5?"),
    # spelling as the matter
    ("Is colour a British spelling?", "Is color a British spelling?"),
    ("Is honour American?", "Is honor American?"),
    # closing signs that tell
    ("Explain tides?", "Explain tides."),
    ("It is right.", "It is right?"),
    # payload
    ("What is this: how do I", "What is this: how can I"),
    ("Is 'how do I' right?", "Is 'how can I' right?"),
    ('Why "can\'t"?', 'Why "cannot"?'),
    ("Translate how do I open it", "Translate how can I open it"),
    ("How many words has what's this?", "How many words has what is this?"),
    ("How do I spell colour?", "How do I spell color?"),
    ("How do I\ndescale it?", "How can I\ndescale it?"),
    ("What is x = 3?", "what is X = 3?"),
]


@pytest.mark.parametrize(("one", "other"), APART)
def test_law_2_what_could_change_an_answer_parts_requests(one: str, other: str) -> None:
    """Every other word, its order, telling capitals and anything about wording keeps them apart."""
    assert demands(one) != demands(other)
    parsed = [TASK.parse(Request(messages=(Message(role="user", text=t),))) for t in (one, other)]
    differences = TASK.differences(*parsed)  # type: ignore[arg-type]
    assert differences
    assert not any(d.explained for d in differences)


@pytest.mark.parametrize(
    "system",
    [
        "Translate what the user writes into French.",
        "You rewrite questions in plain English.",
        "Classify the intent of each message.",
        "Reply in the tone of the user.",
        "Übersetze alles ins Deutsche.",
        "请翻译用户的话。",
        "Improve the prompt that follows.",
        "Write three variations of what you get.",
    ],
)
def test_law_2_nothing_is_neutral_where_the_wording_is_worked_on(system: str) -> None:
    """A system prompt that has something done to the user's words makes all of them count."""
    before = Message(role="system", text=system)
    assert demands(PLAIN, before) != demands("How can I descale the boiler?", before)
    assert demands("a  b", before) != demands("a b", before)


def test_an_ordinary_system_prompt_leaves_neutral_words_neutral() -> None:
    """A persona does not bind the user's wording."""
    before = Message(role="system", text="You are a helpful plumber. Be brief.")
    assert demands(PLAIN, before) == demands("How can I descale the boiler?", before)


def test_another_wording_is_served_without_the_model() -> None:
    """In an engine, neutral words cost no second call, and the trace says why."""
    backend = ScriptedBackend(["With citric acid."])
    engine = StepCacheEngine(backend=backend)
    first = engine.resolve(Request(messages=(Message(role="user", text=PLAIN),)))
    other = "Hi! Could you tell me how to descale the boiler? Thanks"
    second = engine.resolve(Request(messages=(Message(role="user", text=other),)))
    assert (second.route, second.text) == ("reuse", first.text)
    assert second.reason == "the same demands in other words"
    assert len(backend.calls) == 1


WORDS = sorted({w for language in LANGUAGES for w in language.common | language.questions})
NOISE = st.sampled_from([*WORDS, "please", "hi", "thanks", ",", "?", ".", "!", "boiler", "um", "7"])


@given(st.lists(NOISE, max_size=14).map(" ".join))
def test_law_2_neutral_words_are_stable(text: str) -> None:
    """Bringing a neutral form to its neutral form again changes nothing but the language's code."""
    words = neutral_words(text)
    if words is not None and words[0] == "en":
        again = neutral_words(" ".join(words[1:]))
        assert again is None or again == words


QUESTION = ("how", "can", "my", "cousin", "reach", "the", "old", "mill")
COUNTS = st.sampled_from(
    ["not", "never", "only", "two", "7", "Ann", "mill", "we", "without", "less", "tomorrow", "off"]
)


@given(st.integers(0, len(QUESTION)), COUNTS)
def test_law_2_one_more_word_that_counts_is_seen_anywhere(at: int, word: str) -> None:
    """Wherever it is put, a word that is on no list makes another request."""
    longer = " ".join((*QUESTION[:at], word, *QUESTION[at:]))
    assert demands(longer) != demands(" ".join(QUESTION))


@given(st.permutations(QUESTION))
def test_law_2_the_order_of_words_counts(words: list[str]) -> None:
    """The same words in another order are another request."""
    same = tuple(words) == QUESTION
    assert (demands(" ".join(words)) == demands(" ".join(QUESTION))) is same


@given(
    st.sampled_from(["", "hi, ", "Good morning! ", "um, ", "so ", "ok so ", "please, "]),
    st.sampled_from(["", "?", " ?!", "...", ", please?", "? Thanks!", ". Many thanks"]),
)
def test_neutral_words_meet_in_all_combinations(before: str, after: str) -> None:
    """Any beginning and any end from the lists leave the request what it is."""
    assert demands(f"{before}{' '.join(QUESTION)}{after}") == demands(" ".join(QUESTION))


@given(st.text(max_size=120))
def test_any_text_has_one_form_or_none(text: str) -> None:
    """Whatever comes in, the answer is a tuple of words or None, and never an error."""
    words = neutral_words(text)
    assert words is None or all(words)


def test_law_10_long_and_hostile_texts_end_soon() -> None:
    """Only short texts are read, and reading takes no long time."""
    started = time.perf_counter()
    for text in (
        "hi " * 300_000,
        "um " * 320 + "how",
        "how do i " + "a-" * 490,
        "please " * 140 + "explain it",
    ):
        neutral_words(text)
    assert time.perf_counter() - started < 10  # stuck; how fast it is, benchmarks say
