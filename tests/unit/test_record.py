"""The record of an entry: what is written comes back, and nothing else gets in."""

import json
import sys
from dataclasses import fields, replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache._errors import StoreError
from stepcache._types import Constraints, Entry, Span, Step, Usage
from stepcache.stores._record import _DECODER, MAX_RECORD_BYTES, decode, encode
from stepcache.testing.stores import make_entry

# Every code point, lone surrogates and NUL included.
TEXT = st.text(st.characters(), max_size=20)
WHOLE = st.integers(0, 2**63 - 1)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def spans(draw):
    start = draw(st.integers(0, 1000))
    return Span(start=start, stop=start + draw(st.integers(0, 1000)), name=draw(TEXT))


CONSTRAINTS = st.builds(
    Constraints,
    task=TEXT,
    version=TEXT,
    values=st.dictionaries(TEXT, JSON, max_size=4),
    spans=st.lists(spans(), max_size=3).map(tuple),
    whole=st.booleans(),
)
ENTRIES = st.builds(
    Entry,
    id=TEXT,
    scope=TEXT,
    exact_key=TEXT,
    canonical_key=st.none() | TEXT,
    prompt=TEXT,
    constraints=st.none() | CONSTRAINTS,
    steps=st.lists(st.builds(Step, index=WHOLE, text=TEXT, kind=TEXT), max_size=4).map(tuple),
    message=st.none() | TEXT,
    usage=st.builds(Usage, calls=WHOLE, prompt_tokens=WHOLE, completion_tokens=WHOLE),
    model=st.none() | TEXT,
    tags=st.lists(TEXT, max_size=3).map(tuple),
    created=NUMBER,
    expires=st.none() | NUMBER,
)


@settings(max_examples=300, deadline=None)
@given(ENTRIES)
def test_what_is_written_comes_back(entry):
    """Reading the record of any entry gives an equal entry, down to the types of its numbers."""
    found = decode(encode(entry))
    assert found == entry
    assert repr(found) == repr(entry)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_entry(data):
    """Reading bytes nobody wrote never raises."""
    assert decode(data) is None


@settings(max_examples=300, deadline=None)
@given(ENTRIES, st.data())
def test_damaged_records_never_raise(entry, data):
    """A record with bytes flipped, cut or doubled is an entry of checked types, or none."""
    record = bytearray(encode(entry))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(record) - 1)))
        change = data.draw(st.sampled_from(["flip", "cut", "double"]))
        if change == "flip" and record:
            record[at] = data.draw(st.integers(0, 255))
        elif change == "cut":
            del record[at:]
        else:
            record[at:at] = record[at : at + 9]
    check_types(decode(bytes(record)))


@settings(max_examples=300, deadline=None)
@given(ENTRIES, st.data())
def test_forged_records_never_raise(entry, data):
    """A well-formed record with any part replaced by any JSON is an entry of checked types, or none."""
    record = json.loads(encode(entry).decode("utf-8", "surrogatepass"))
    target, key = data.draw(st.sampled_from(list(places(record))))
    target[key] = data.draw(JSON)
    text = json.dumps(record, ensure_ascii=False)
    check_types(decode(text.encode("utf-8", "surrogatepass")))


def places(value):
    """Every container and key in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


def check_types(entry):
    if entry is None:
        return
    assert type(entry) is Entry
    assert all(type(getattr(entry, name)) is str for name in ("id", "scope", "exact_key", "prompt"))
    assert all(type(step) is Step and type(step.text) is str for step in entry.steps)
    assert all(type(tag) is str for tag in entry.tags)
    assert type(entry.usage) is Usage
    assert entry.constraints is None or type(entry.constraints) is Constraints
    assert decode(encode(entry)) == entry


def forged(**changes):
    record = json.loads(encode(make_entry("a")))
    record.update(changes)
    return json.dumps(record).encode()


def test_the_forger_of_these_tests_can_forge():
    """A record written by hand is read, so the refusals below are for the change alone."""
    assert decode(forged()) == make_entry("a")


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 0},
        {"v": 2},
        {"v": "1"},
        {"v": 1.0},
        {"v": True},
        {"extra": 1},
        {"id": None},
        {"id": 7},
        {"prompt": ["x"]},
        {"canonical": 0},
        {"steps": {}},
        {"steps": [["0", "prose", "x"]]},
        {"steps": [[0, "prose"]]},
        {"steps": [[True, "prose", "x"]]},
        {"usage": [1, 2]},
        {"usage": [1, 2, -3]},
        {"usage": [1, 2, 3.0]},
        {"tags": "abc"},
        {"created": "now"},
        {"created": None},
        {"created": False},
        {"constraints": []},
        {"constraints": {"task": "t"}},
        {"constraints": {"task": "t", "version": "1", "values": [], "spans": [], "whole": True}},
        {"constraints": {"task": "t", "version": "1", "values": {}, "spans": [], "whole": 1}},
        {
            "constraints": {
                "task": "t",
                "version": "1",
                "values": {},
                "spans": [[5, 4, "x"]],
                "whole": True,
            }
        },
        {"message": {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}},
    ],
)
def test_wrong_types_and_versions_are_no_entry(changes):
    """Each field takes its own type only, and every field is there."""
    assert decode(forged(**changes)) is None


@pytest.mark.parametrize("name", sorted(json.loads(encode(make_entry("a")))))
def test_a_missing_field_is_no_entry(name):
    """A record without one of its fields is not completed by guessing."""
    record = json.loads(encode(make_entry("a")))
    del record[name]
    assert decode(json.dumps(record).encode()) is None


def test_hostile_json_is_no_entry():
    """Deep nesting, endless digits, doubled keys, infinities and foreign types are refused."""
    record = encode(make_entry("a", created=123456.5))
    hostile = [
        b"[" * 200_000,
        b'{"a":' * 100_000,
        record.replace(b"123456.5", b"9" * 5000),
        record.replace(b"123456.5", b"NaN"),
        record.replace(b"123456.5", b"-Infinity"),
        record.replace(b"123456.5", b"1e999"),
        record.replace(b'"deep":[]', b'"deep":1e999'),
        record.replace(b'"deep":[]', b'"deep":' + b"[" * 80 + b"]" * 80),
        record.replace(b'{"v":1,', b'{"v":1,"v":1,'),
        record + b" {}",
        b"\xef\xbb\xbf" + record,
        record.replace(b"What", b"Wh\xfft"),
        b"null",
        b"",
    ]
    assert [decode(data) for data in hostile] == [None] * len(hostile)
    assert record not in hostile
    for foreign in (None, 1, "text", record.decode(), bytearray(record), memoryview(record)):
        assert decode(foreign) is None


def test_digits_are_bounded_where_python_s_limit_is_lifted():
    """A long number is refused before it is computed, whatever the interpreter allows."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(ValueError, match="too many digits"):
            _DECODER.decode("[" + "9" * 5000 + "]")
    finally:
        sys.set_int_max_str_digits(limit)


def test_an_oversized_record_is_no_entry():
    """Records above the limit are not even parsed, and entries that long are not written."""
    long = make_entry("a", message="x" * MAX_RECORD_BYTES)
    with pytest.raises(StoreError, match="max_answer_chars"):
        encode(long)
    record = encode(make_entry("a"))
    assert decode(record + b" ") == make_entry("a")
    assert decode(record + b" " * MAX_RECORD_BYTES) is None


def test_tuples_and_read_only_mappings_are_written_as_json():
    """Constraints may be built from immutable containers; they come back as lists and dicts."""
    values = MappingProxyType({"keys": ("a", "b"), "inner": MappingProxyType({"x": (1, (2,))})})
    entry = make_entry("a", constraints=Constraints(task="t", version="1", values=values))
    assert decode(encode(entry)).constraints.values == {
        "keys": ["a", "b"],
        "inner": {"x": [1, [2]]},
    }


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"x", float("nan"), float("inf"), {1: "x"}, nested(80), 10**4250],
    ids=["object", "set", "bytes", "nan", "inf", "key", "deep", "digits"],
)
def test_what_has_no_record_is_refused(value):
    """An entry that would not come back the same is not written."""
    entry = make_entry("a", constraints=Constraints(task="t", version="1", values={"x": value}))
    with pytest.raises(StoreError, match="'id-scope-a' cannot be recorded"):
        encode(entry)


@pytest.mark.parametrize(
    "changes",
    [{"prompt": b"x"}, {"created": float("nan")}, {"usage": Usage(calls=-1)}, {"tags": (1,)}],
)
def test_fields_of_a_wrong_type_are_refused(changes):
    """Writing checks what reading would."""
    with pytest.raises(StoreError, match="cannot be recorded"):
        encode(replace(make_entry("a"), **changes))


def test_every_field_of_an_entry_is_recorded():
    """A field added to Entry has to be added to the record."""
    record = json.loads(encode(make_entry("a")))
    assert len(record) == len(fields(Entry)) + 1
    assert len(record["constraints"]) == len(fields(Constraints))
    assert len(record["usage"]) == len(fields(Usage))
