"""Canonical JSON, scopes and keys: what is one request, and what only looks like one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache import Contract, Message, Request
from stepcache._identity import canonical_json, digest, identify

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def ask(**fields: Any) -> Request:
    """A request with one user message unless it brings its own."""
    return Request(**{"messages": (Message(role="user", text="hi"),), **fields})


@given(JSON, JSON)
def test_one_text_per_value(one: Any, other: Any) -> None:
    """Different values never share a text."""
    if canonical_json(one) == canonical_json(other):
        assert one == other


@given(st.dictionaries(st.text(), st.integers(), min_size=2, max_size=6))
def test_the_order_of_keys_is_chance(value: dict[str, int]) -> None:
    """Two dictionaries with the same items are one value."""
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))


def test_whole_floats_are_integers() -> None:
    """A temperature of 0 and of 0.0 is one; 0 is not the same as not given, nor as False."""
    assert canonical_json(0.0) == canonical_json(0)
    assert digest({"temperature": 0}) != digest({})
    assert digest({"n": 1}) != digest({"n": True})


def test_delimiters_do_not_collide() -> None:
    """No rearrangement of text between fields gives the same key."""
    one = identify(ask(params={"user": "a", "stop": "b"}))
    other = identify(ask(params={"user": "astop: b"}))
    assert one.scope != other.scope
    assert digest("ab", "c") != digest("a", "bc")


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"x", {1: 2}, [lambda: 1]])
def test_what_has_no_json_form_has_no_identity(value: Any) -> None:
    """It is refused with its path: a repr may hold an address, a set has no order."""
    with pytest.raises(ValueError, match=r"\$"):
        identify(ask(params={"x": value}))


def test_depth_is_bounded() -> None:
    """A value nested without end is refused, not recursed into."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested"):
        canonical_json(deep)


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": "b"},
        {"model": "m2"},
        {"params": {"temperature": 1}},
        {"contract": Contract(tools=({"name": "t"},))},
        {"contract": Contract(tool_choice="none")},
        {"contract": Contract(response_format={"type": "json_object"})},
        {"messages": (Message(role="system", text=""), Message(role="user", text="hi"))},
        {"messages": (Message(role="user", text="hi", extra={"image": "a"}),)},
        {"messages": (Message(role="tool", text="hi"),)},
    ],
)
def test_identity_parts_scopes(other: dict[str, Any]) -> None:
    """Each thing that can change an answer parts one request from another."""
    assert identify(ask(**other)).scope != identify(ask()).scope


def test_text_and_schema_are_typed_and_stay_in_scope() -> None:
    """What tasks read may differ within a scope; the exact key tells it apart."""
    plain = identify(ask())
    other = identify(ask(messages=(Message(role="user", text="ho"),)))
    schema = identify(ask(contract=Contract(schema={"type": "object"})))
    assert plain.scope == other.scope == schema.scope
    assert len({plain.exact_key, other.exact_key, schema.exact_key}) == 3


def test_only_the_closing_user_text_is_read() -> None:
    """An earlier turn is identity: the same last words after another talk are another request."""
    last = Message(role="user", text="How old is that person?")
    one = ask(messages=(Message(role="user", text="Who leads Alpha?"), last))
    other = ask(messages=(Message(role="user", text="Who leads Beta?"), last))
    assert identify(one).scope != identify(other).scope


def test_keys_survive_the_process() -> None:
    """Another process with another hash seed makes the same key."""
    program = (
        "from stepcache import Message, Request\n"
        "from stepcache._identity import identify\n"
        "print(identify(Request(messages=(Message(role='user', text='hi'),),"
        " params={'b': 1, 'a': [2.5]})).exact_key)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7"},
    )
    assert done.stdout.strip() == identify(ask(params={"a": [2.5], "b": 1})).exact_key


@given(st.text())
def test_any_text_has_a_key(text: str) -> None:
    """Lone surrogates and NUL bytes included."""
    assert identify(ask(messages=(Message(role="user", text=text + "\ud800\0"),))).exact_key


@given(st.text(), st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_remembered_scopes_are_the_same_scopes(text: str, params: dict[str, Any]) -> None:
    """Asked first, asked again and asked with other values in between: one request, one identity."""
    from stepcache import _identity

    def request() -> Request:
        return ask(messages=(Message(role="user", text=text),), params=dict(params))

    _identity._scopes.clear()
    first = identify(request())
    assert identify(ask(params={**params, "other": 1})).scope != first.scope
    assert identify(request()) == first
    assert first.exact_key == digest("exact", first.scope, text, None)


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), ("1", 1), (None, "null")])
def test_remembered_scopes_tell_types_apart(one: Any, other: Any) -> None:
    """What Python calls equal is not always one value."""
    assert identify(ask(params={"x": one})).scope != identify(ask(params={"x": other})).scope
