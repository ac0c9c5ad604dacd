"""Strict extraction: exactly one complete value, or a reason."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache.tasks.json_answer._extract import Found, Refused, damage, extract, parse_strict
from stepcache.tasks.json_answer._repair import repaired

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=5)
PROSE = st.text(
    st.characters(exclude_characters="[]{}\"'\\:`~", exclude_categories=("Cs",)), max_size=40
)


@given(VALUES)
def test_a_whole_text_gives_what_json_gives(value: object) -> None:
    """A document that the standard library writes is read as the same value."""
    text = json.dumps(value)
    found = extract(text)
    assert isinstance(found, Found)
    assert found.value == json.loads(text)
    assert text[found.start : found.stop] == text
    assert parse_strict(text) == json.loads(text)


@given(OBJECTS, PROSE, PROSE, st.booleans(), st.sampled_from([None, 2]))
def test_a_value_in_prose_is_found(
    value: dict[str, object], before: str, after: str, fenced: bool, indent: int | None
) -> None:
    """One object within prose, fenced or not, is that object and nothing around it."""
    body = json.dumps(value, indent=indent, ensure_ascii=False)
    middle = f"\n```json\n{body}\n```\n" if fenced else body
    text = f"{before} {middle} {after}"
    found = extract(text)
    assert isinstance(found, Found)
    assert found.value == json.loads(body)
    assert text[found.start : found.stop] == body
    if fenced:
        assert text[found.outer_start : found.outer_stop] == middle.strip()


@given(OBJECTS.filter(bool), st.data())
def test_a_cut_off_object_is_never_taken(value: dict[str, object], data: st.DataObject) -> None:
    """No piece of an object that ends early is accepted as the answer."""
    body = json.dumps(value)
    text = body[: data.draw(st.integers(1, len(body) - 1))]
    assert isinstance(extract(text), Refused)


@given(st.text(max_size=400))
def test_any_text_is_answered(text: str) -> None:
    """Extraction returns for every text; what it returns lies in the text."""
    found = extract(text)
    if isinstance(found, Found):
        assert 0 <= found.outer_start <= found.start < found.stop <= found.outer_stop <= len(text)


@given(st.text(st.sampled_from('{}[]",:\\ 1ae`\n'), max_size=60))
def test_bracket_soup_is_answered(text: str) -> None:
    """Texts made of JSON's own signs neither raise nor pass as something they are not."""
    found = extract(text)
    if isinstance(found, Found):
        assert found.value == json.loads(text[found.start : found.stop])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no-json"),
        ("just words", "no-json"),
        ('{"a": 1} and {"b": 2}', "ambiguous-json"),
        ('{"a": 1} then {"b": }', "ambiguous-json"),
        ('Such as ```json\n{"a": 1}\n``` so ```json\n{"a": 2}\n```', "ambiguous-json"),
        ('{"a": 1, "a": 2}', "duplicate-key"),
        ('[{"a": {"b": 1, "b": 1}}]', "duplicate-key"),
        ('{"a": NaN}', "broken-json"),
        ('{"a": -Infinity}', "broken-json"),
        ('{"a": 1,}', "broken-json"),
        ('{"a": {"b": 1}', "broken-json"),
        ('"outer": {"b": 1}', "broken-json"),
        ('{"a": "line\nbreak"}', "broken-json"),
        ('{"a": "\\sigma"}', "broken-json"),
        ("[" * 200 + "]" * 200, "too-large"),
        ('```json {{"tool": Search, "q": "a"}} ```', "broken-json"),
        ('{"a": 1}, "b": 2}', "broken-json"),
    ],
)
def test_refusals(text: str, code: str) -> None:
    """Each kind of unusable answer is refused under its own code."""
    found = extract(text)
    assert isinstance(found, Refused)
    assert found.code == code


def test_numbers_are_kept_exactly() -> None:
    """A number that neither int nor float holds is kept to its last digit."""
    found = extract('{"a": 0.10000000000000000000001, "b": 12345678901234567890123, "c": 0.5}')
    assert isinstance(found, Found)
    assert found.value == {
        "a": Decimal("0.10000000000000000000001"),
        "b": 12345678901234567890123,
        "c": 0.5,
    }
    assert isinstance(found.value["c"], float)


HUGE = (
    "1e400",
    "-1e400",
    "21000001e400",
    "1.8e308",
    "9" * 309,
    "-2" + "0" * 308,
    "1E+99999999999999999999",
)


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("around", ['{{"a": {}}}', '{{"a": [0, {{"b": {}}}]}}', "Here: [{}]", "{}"])
def test_a_number_that_readers_turn_into_infinity_is_told(number: str, around: str) -> None:
    """It is JSON by the grammar, and says one thing to one reader and another to the next."""
    assert abs(json.loads(number, parse_int=float)) == float("inf")
    found = extract(around.format(number))
    assert isinstance(found, Found)
    assert found.beyond
    assert not found.sound


@pytest.mark.parametrize(
    "number", ["1.7976931348623157e308", "-" + "1" * 309, "1" * 309, "0e999", "1e-999", "-0.0"]
)
def test_numbers_at_the_edge_are_taken(number: str) -> None:
    """The largest double, the longest integer below it, and whatever is close to 0."""
    found = extract(f'{{"a": {number}}}')
    assert isinstance(found, Found)
    assert float(found.value["a"]) == float(number)
    assert found.sound


@pytest.mark.parametrize("number", HUGE)
def test_no_repair_brings_a_huge_number_in(number: str) -> None:
    """Broken text around it is not mended, whichever way it is broken."""
    for text in (
        f"{{'a': {number}}}",
        f'{{"a": {number},}}',
        f"{{a: [{number}]}}",
        f'{{"a": {number} "b": 1}}',
    ):
        assert repaired(text) is None


def test_byte_order_mark_is_no_part_of_the_value() -> None:
    """A BOM in front of an answer is stepped over."""
    found = extract('\ufeff{"a": 1}')
    assert isinstance(found, Found)
    assert found.value == {"a": 1}


def test_lone_surrogates_do_not_crash() -> None:
    """Half a surrogate pair is a string like any other."""
    found = extract('{"a": "\\ud800"}')
    assert isinstance(found, Found)


@pytest.mark.parametrize(
    "raw",
    [
        r'"\frac{1}{2}"',
        r'"2 \times 3"',
        r'"\beta"',
        r'"\nu = 1"',
        r'"\theta"',
        r'"\rho"',
        r'"$a \to b$"',
        r'"\bword\b"',
    ],
)
def test_single_backslash_commands_are_damage(raw: str) -> None:
    """A LaTeX command that decodes to a control character is seen."""
    assert damage(raw)


@pytest.mark.parametrize(
    "raw",
    [
        r'"\\frac{1}{2}"',
        r'"a\nb"',
        r'"\ttabbed"',
        r'"\new line"',
        r'"uno\ne due"',
        r'"\r\nnext"',
        r'"\"quoted\""',
        r'"C:\\temp\\new"',
        r'"\u00e9"',
        r'"a\nnow"',
        r'"pear\tan apple"',
        r'"vin\tau lait"',
    ],
)
def test_ordinary_escapes_are_no_damage(raw: str) -> None:
    """Line breaks, tabs and doubled backslashes are what they are."""
    assert damage(raw) is None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 300_000,
        '{"a":' * 100_000,
        "{" * 100_000 + "}" * 100_000,
        '"' * 200_000,
        '{"a": "' + "\\" * 200_001,
        '{"a": ' + "9" * 200_000 + "}",
        "{a} " * 50_000,
        "{" + ",".join(f'"k{i}": {i}' for i in range(50_000)) + "}",
        "`" * 200_000 + '{"a": 1}',
    ],
)
def test_hostile_texts_are_bounded(text: str) -> None:
    """Large hostile inputs are answered in linear time."""
    started = time.perf_counter()
    extract(text)
    assert time.perf_counter() - started < 20  # stuck; how fast it is, benchmarks say


def test_a_key_that_occurs_twice_is_grammar_but_no_answer() -> None:
    """The last one counts for a parser; an answer with two is refused, and so is a demand."""
    text = '{"a": 1, "a": 2}'
    assert parse_strict(text) == {"a": 2}
    assert isinstance(extract(text), Refused)
    with pytest.raises(ValueError, match="twice"):
        parse_strict(text, unique=True)
