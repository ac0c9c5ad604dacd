"""The text task: the same request in the same words, and no other."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache._difference import content
from stepcache._identity import canonical_key
from stepcache._types import Constraints, Contract, Declined, Message, Request, Status
from stepcache.tasks.text import TextTask
from stepcache.tasks.text._canonical import canonical_text

TASK = TextTask()


def request(text: str, **contract: object) -> Request:
    return Request(
        messages=(Message(role="user", text=text),),
        contract=Contract(**contract),  # type: ignore[arg-type]
    )


def parsed(text: str, **contract: object) -> Constraints:
    constraints = TASK.parse(request(text, **contract))
    assert isinstance(constraints, Constraints)
    return constraints


def key(text: str) -> str:
    constraints = parsed(text)
    return canonical_key("s", constraints, content(text, constraints.spans, TASK.neutral))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who built the caf\u00e9?", "Who built the cafe\u0301?"),
        ("Explain tides", "Explain   tides"),
        ("Explain tides", "  Explain tides \n"),
        ("Explain tides\nin two lines", "Explain tides\r\nin two lines"),
        ("Explain tides", "Please explain tides"),
        ("explain tides", "please explain tides"),
        ("Solve the riddle of the sphinx", "Kindly, solve the riddle of the sphinx"),
        ("What's a fjord?", "What's  a fjord?"),
        ("Is it right.", "Is it right?"),
        ("Explain tides please", "Explain tides"),
    ],
)
def test_spellings_of_one_request_meet(one: str, other: str) -> None:
    """Unicode form, line ends, spaces of prose and an opening please do not part requests."""
    assert key(one) == key(other)
    assert TASK.differences(parsed(one), parsed(other)) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who is called Name?", "Who is called name?"),
        ("Expand x²", "Expand x2"),
        ("Turn the light on", "Turn the light off"),
        ("What is in May", "What is in may"),
        ("It is right.", "It is right?"),
        ("It is right", "It is right?"),
        ("How many spaces: a b", "How many spaces: a  b"),
        ("What is 'a b'", "What is 'a  b'"),
        ('Say "a b"', 'Say "a  b"'),
        ("Run `a b`", "Run `a  b`"),
        ("if a:\n  b", "if a:\n    b"),
        ("a\tb c", "a\tb  c"),
        ("f(x) = {a, b}", "f(x) = {a,  b}"),
        ("List words in this sentence", "Please list words in this sentence"),
        ("Me lyrics", "Please Me lyrics"),
        ("Please Me lyrics", "Please Please Me lyrics"),
        ("10 000 m in feet", "10\u00a0000 m in feet"),
        ("ﬁx it", "fix it"),
        ("Ａ is what", "A is what"),
        ("Explain tides", "Explain tides\nnow"),
    ],
)
def test_other_requests_stay_apart(one: str, other: str) -> None:
    """Whatever could change an answer makes another key and an unexplained difference."""
    assert key(one) != key(other)
    differences = TASK.differences(parsed(one), parsed(other))
    assert differences
    assert not any(d.explained for d in differences)


def test_another_schema_is_another_demand() -> None:
    """Two output schemas for one text are told apart, unexplained."""
    one, other = parsed("List it", schema={"type": "object"}), parsed("List it", schema=None)
    (difference,) = TASK.differences(one, other)
    assert difference.path == "schema"
    assert not difference.explained


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\u3000"])
def test_a_request_without_text_is_declined(text: str) -> None:
    """White space is no demand, and so never has a canonical key."""
    assert isinstance(TASK.parse(request(text)), Declined)


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_law_2_only_white_space_form_and_please_are_neutral(text: str) -> None:
    """The canonical form is stable, and keeps every visible sign after an optional please."""
    canonical = canonical_text(text)
    assert canonical_text(canonical) == canonical
    visible = "".join(unicodedata.normalize("NFC", text).split()).casefold()
    kept = "".join(canonical.split()).casefold()
    assert visible.endswith(kept)
    assert visible[: len(visible) - len(kept)] in ("", "please", "please,", "kindly", "kindly,")


@given(st.text(max_size=80).filter(str.strip))
def test_the_whole_text_is_one_span(text: str) -> None:
    """Nothing of the request is left as residue."""
    assert content(text, parsed(text).spans, TASK.neutral) == ()


def test_a_difference_shows_where_the_texts_part() -> None:
    """The trace names the words that differ, however far into the text."""
    (difference,) = TASK.differences(parsed("tell " * 90 + "on"), parsed("tell " * 90 + "off"))
    assert difference.old.endswith("on")
    assert difference.new.endswith("off")
    assert len(difference.old) < 60


def test_answers_pass_and_emptiness_fails() -> None:
    """An answer to the same request holds; no answer never does."""
    constraints = parsed("Explain tides")
    steps = TASK.segment("The moon pulls.\n\nSo does the sun.")
    assert [TASK.verify(s, constraints).code for s in steps] == ["same-request"] * 2
    assert TASK.check(steps, constraints).status is Status.PASS
    assert TASK.check((), constraints).status is Status.FAIL
    assert TASK.check(TASK.segment(" \n"), constraints).status is Status.FAIL
