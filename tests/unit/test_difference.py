"""Differences between two requests' residues: none is missed, none is explained, each is named."""

from __future__ import annotations

import time
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache._difference import content, masked, residue, residue_differences, tokens
from stepcache._difference._compare import _apart
from stepcache._types import Span


def kinds(old: str, new: str) -> list[str]:
    """The kinds of all differences between two texts, in order."""
    return [d.kind for d in residue_differences(tokens(old), tokens(new))]


KINDS = [
    # numbers, in digits and in words, in several scripts and languages
    ("number", "list 3 bays", "list 4 bays"),
    ("number", "list three bays", "list four bays"),
    ("number", "list 3 fruits", "list three fruits"),
    ("number", "nenne drei Flüsse", "nenne vier Flüsse"),
    ("number", "cite deux lacs", "cite trois lacs"),
    ("number", "列出三条河", "列出四条河"),
    ("number", "add ٣ pears", "add ٤ pears"),
    ("number", "pay 2,50 now", "pay 2.50 now"),
    ("number", "17 × 23", "17 × 28"),
    ("number", "the second act", "the third act"),
    # units and currencies
    ("unit", "give the length in miles", "give the length in yards"),
    ("unit", "heat it 5 minutes", "heat it 5 hours"),
    ("unit", "is it 20 %", "is it 20 °"),
    ("currency", "it costs 5 €", "it costs 5 £"),
    ("currency", "convert it to euros", "convert it to dollars"),
    ("currency", "price in USD", "price in EUR"),
    # dates and times
    ("date", "open on Monday", "open on Sunday"),
    ("date", "the harvest of March 3", "the harvest of March 4"),
    ("date", "what happened in 1204", "what happened in 1453"),
    ("date", "due 2024-05-01", "due 2024-06-01"),
    ("date", "am Dienstag", "am Freitag"),
    ("time", "call at 7 am", "call at 8 am"),
    ("time", "call at 17:30", "call at 17:45"),
    ("time", "life before school", "life since school"),
    ("time", "the weather today", "the weather tomorrow"),
    ("time", "the last war", "the next war"),
    ("time", "is Ann a nurse", "was Ann a nurse"),
    # negation and polarity
    ("negation", "foods that are safe", "foods that are not safe"),
    ("negation", "do cancel it", "don't cancel it"),
    ("negation", "do cancel it", "do NOT cancel it"),
    ("negation", "mit Milch", "ohne Milch"),
    ("negation", "list it with names", "list it without names"),
    ("polarity", "switch autosave on", "switch autosave off"),
    ("polarity", "enable the alarm", "disable the alarm"),
    ("polarity", "is it safe", "is it unsafe"),
    ("polarity", "a harmful plant", "a harmless plant"),
    ("polarity", "advantages of fog", "disadvantages of fog"),
    ("polarity", "the safest to eat", "the safest to avoid"),
    # comparison and quantifiers
    ("comparison", "x + 3 = 11", "x + 3 > 11"),
    ("comparison", "weighs more", "weighs less"),
    ("comparison", "rivers above it", "rivers below it"),
    ("quantifier", "name all moons", "name some moons"),
    ("quantifier", "each door", "both doors"),
    ("quantifier", "toutes les clés", "quelques clés"),
    # names
    ("name", "the capital of Peru", "the capital of Chile"),
    ("name", "rent in the UK", "rent in the US"),
    ("name", "ask Will Ames", "ask May Ames"),
    ("name", "Ann, 30", "Bob, 30"),
    # quoted strings, code, paths, ids
    ("quoted", 'repeat "red fox"', 'repeat "red hen"'),
    ("quoted", "sag „rot“", "sag „blau“"),
    ("quoted", "repeat red", 'repeat "red"'),
    ("code", "run `make all`", "run `make test`"),
    ("code", "run make", "run `make`"),
    ("path", "read /srv/logs", "read /srv/data"),
    ("path", "write to ann@mill.example", "write to bob@mill.example"),
    ("id", "drop first_name", "drop last_name"),
    ("id", "call getName", "call setName"),
    ("id", "track AX-1402", "track AX-1420"),
    ("id", "close issue #12", "close issue #13"),
    # order
    ("order", "from Word to PDF", "from PDF to Word"),
    ("order", "Ann beats Bob", "Bob beats Ann"),
    ("order", "not on Friday but on Monday", "on Friday but not on Monday"),
    # persons and roles, language, format, length
    ("person", "would he reject her", "would he reject them"),
    ("person", "explain it to a child", "explain it to a teacher"),
    ("person", "can I park", "can we park"),
    ("language", "answer in French", "answer in Dutch"),
    ("language", "auf deutsch", "auf spanisch"),
    ("format", "as JSON", "as YAML"),
    ("format", "as a table", "as a list"),
    ("length", "a short tale", "a detailed tale"),
    ("length", "in two sentences", "in two paragraphs"),
    # the rest
    ("word", "peel the apple", "peel the melon"),
    ("word", "peel it", "peel it gently"),
    ("sign", "a + b", "a - b"),
]


@pytest.mark.parametrize(("kind", "old", "new"), KINDS)
def test_a_difference_is_called_by_its_kind(kind: str, old: str, new: str) -> None:
    """Either way round the difference is found, unexplained, and named for what it is."""
    for one, other in ((old, new), (new, old)):
        found = residue_differences(tokens(one), tokens(other))
        assert {d.kind for d in found} == {kind}
        assert not any(d.explained for d in found)


def test_several_differences_are_all_told() -> None:
    """Every stretch that differs is told, in the order of the texts."""
    assert kinds("list 3 bays of Peru as a table", "list 4 bays of Chile as a list") == [
        "number",
        "name",
        "format",
    ]


def test_a_change_of_several_words_is_called_after_the_gravest() -> None:
    """A negation hidden in a longer change is not called a word."""
    assert kinds("keep the old door", "keep never any door") == ["negation"]


def test_the_words_of_a_difference_are_shown() -> None:
    """The trace says what stood where; long stretches are cut."""
    (found,) = residue_differences(tokens("the capital of Peru"), tokens("the capital of Chile"))
    assert str(found) == "name 'Peru' -> 'Chile'"
    (found,) = residue_differences(tokens("go"), tokens("go " + "far " * 50))
    assert found.new == "far far far far far far far far ..."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2x + 3 = 11", "2x + 3 = 13"),
        ("2x + 3 = 11", "2y + 3 = 11"),
        ("2x + 3 = 11", "2x - 3 = 11"),
        ("2x + 3 > 11", "2x + 3 = 11"),
        ("JSON with keys name, age", "JSON with keys name, age, email"),
        ("keys name, age as JSON", "keys name, age as YAML"),
        ("the key Name", "the key name"),
        ("caf\u00e9", "cafe"),
        ("10 000", "10000"),
    ],
)
def test_edits_that_text_guards_let_through_are_seen(old: str, new: str) -> None:
    """One constant, variable, sign, relation, key, format or capital is a difference."""
    assert kinds(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("part A12", "part A 12"),
        ("room 2 b", "room 2b"),
        ("note v1.2", "note v1. 2"),
        ("odds 1,5", "odds 1, 5"),
        ("rock'n'roll", "rock ' n ' roll"),
    ],
)
def test_letters_and_digits_that_touch_are_one_token(old: str, new: str) -> None:
    """A space inside a code, a number or a word makes another one."""
    assert kinds(old, new)


def test_one_text_in_two_unicode_forms_is_one() -> None:
    """A composed and a decomposed accent do not differ."""
    assert kinds("caf\u00e9", "cafe\u0301") == []


TOKEN = st.sampled_from(
    [*"abc", "not", "3", "4", "three", "Ann", "Bob", '"', "`", "/", ".", ",", "in", "French", "_x"]
)
SEQUENCE = st.lists(TOKEN, max_size=24).map(tuple)


@given(SEQUENCE, SEQUENCE)
def test_law_2_no_difference_is_lost_or_explained(
    old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    """Two sequences have no difference if and only if they are equal; none is explained."""
    found = residue_differences(old, new)
    assert (found == ()) == (old == new)
    assert not any(d.explained for d in found)
    assert residue_differences(old, new) == found


@given(SEQUENCE, st.permutations(range(6)))
def test_law_2_word_order_counts(rest: tuple[str, ...], order: list[int]) -> None:
    """The same tokens in another order differ, by exactly one difference of that kind."""
    words = ("one", "two", "three", "four", "five", "six")
    old, new = (*words, *rest), (*(words[i] for i in order), *rest)
    assert [d.kind for d in residue_differences(old, new)] == ([] if old == new else ["order"])


LETTERS = st.text("abcdefghij", max_size=6)


@given(LETTERS, LETTERS, st.text("abklmn", max_size=2))
def test_what_differs_is_what_an_alignment_leaves(old: str, new: str, more: str) -> None:
    """Where common words stand at equal places none is looked for: it would say the same."""
    codes = SequenceMatcher(a=old, b=new + more, autojunk=False).get_opcodes()
    assert list(_apart(old, new + more)) == [tuple(c[1:]) for c in codes if c[0] != "equal"]


@given(st.text(max_size=80), st.integers(0, 80), st.integers(0, 80))
def test_what_is_outside_the_spans_is_kept(text: str, one: int, other: int) -> None:
    """Residue and mask hold every character outside a span, and none of its own."""
    start, stop = sorted((min(one, len(text)), min(other, len(text))))
    spans = (Span(start=start, stop=stop, name="part"),)
    assert residue(text, spans) == f"{text[:start]} {text[stop:]}"
    assert masked(text, spans) == f"{text[:start]} <part> {text[stop:]}"


def test_neutral_words_are_left_out_in_any_case() -> None:
    """Content is what lies outside the spans and is not on the task's list; its case is kept."""
    text = "Please give NAME of IT"
    spans = (Span(start=12, stop=16, name="keys"),)
    assert content(text, spans, frozenset(("please", "give"))) == ("of", "IT")


@pytest.mark.parametrize("length", [100, 1_000, 20_000])
@pytest.mark.parametrize("shape", ["equal words", "other words", "no common word"])
def test_law_10_long_texts_cost_little(length: int, shape: str) -> None:
    """The cost is bounded: 20,000 tokens are compared to their end."""
    old = tuple("a" if i % 3 else "b" for i in range(length))
    new = {
        "equal words": ("b", *old[:-1]),
        "other words": tuple("a" if i % 5 else "c" for i in range(length)),
        "no common word": tuple(f"w{i}" for i in range(length)),
    }[shape]
    started = time.perf_counter()
    assert residue_differences(old, new)
    assert time.perf_counter() - started < 10  # stuck; how fast it is, benchmarks say
