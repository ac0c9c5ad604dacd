"""The pure parts: events, chunks, requests, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache import Outcome, Usage
from stepcache.proxy._answers import Chunks, Stored, completion_of, reply_of
from stepcache.proxy._assembly import Assembly
from stepcache.proxy._headers import end_to_end
from stepcache.proxy._requests import read_body
from stepcache.proxy._sse import EventCutter

TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
]
texts = st.text(max_size=20)
calls = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.from_regex(r"call_[a-z0-9]{9}", fullmatch=True),
            "type": st.just("function"),
            "function": st.fixed_dictionaries(
                {
                    "name": st.just("f"),
                    "arguments": st.dictionaries(texts, texts, max_size=3).map(json.dumps),
                }
            ),
        }
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda call: str(call["id"]),
)
messages = st.one_of(
    st.fixed_dictionaries({"content": texts.filter(str.strip)}),
    st.fixed_dictionaries({"content": texts.filter(str.strip), "reasoning_content": texts}),
    st.fixed_dictionaries({"content": st.none(), "tool_calls": calls}),
    st.fixed_dictionaries({"content": texts.filter(str.strip), "tool_calls": calls}),
)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"data: a", b"data:b", b":c", b"", b"\r", b"event: x", b"id"])),
    st.data(),
)
def test_cutting_events_loses_no_byte(lines: list[bytes], data: st.DataObject) -> None:
    """However a stream is cut into chunks, the events join to it, and are the same."""
    stream = b"\n".join(lines)
    whole = EventCutter()
    expected = [*whole.feed(stream), *whole.rest()]
    at = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    cutter = EventCutter()
    found = []
    for start, stop in zip([0, *at], [*at, len(stream)]):
        found += cutter.feed(stream[start:stop])
    found += cutter.rest()
    assert b"".join(event.raw for event in found) == stream
    assert found == expected


def test_a_monster_passes_unread() -> None:
    """An event above the limit is handed on in pieces, and what follows is read again."""
    cutter = EventCutter()
    chunk = b"data: " + b"x" * (1 << 20)
    found = [event for _ in range(9) for event in cutter.feed(chunk)]
    found += cutter.feed(b"\n\ndata: y\n\n")
    assert b"".join(event.raw for event in found) == chunk * 9 + b"\n\ndata: y\n\n"
    assert [event.data for event in found] == [None, None, "y"]


def told(choices: list[dict[str, Any]], usage: bool = True) -> tuple[dict[str, Any], Any]:
    """A completion, and how a body with ``n`` asks for it."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": TOOLS,
        "n": len(choices),
        "stream": True,
        "stream_options": {"include_usage": usage},
    }
    completion = {
        "id": "x",
        "model": "m",
        "choices": [
            {"index": i, "message": {"role": "assistant", **m}, "finish_reason": "stop"}
            for i, m in enumerate(choices)
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    return completion, read_body(json.dumps(body).encode(), endpoint="e", namespace="n")


def without_ids(choice: dict[str, Any]) -> dict[str, Any]:
    """A choice as the client reads it, but for the ids of its calls."""
    message = {k: v for k, v in choice["message"].items() if v not in (None, "") or k == "content"}
    message["tool_calls"] = [c["function"] for c in message.get("tool_calls") or ()]
    return {**message, "finish_reason": choice["finish_reason"]}


@settings(deadline=None)
@given(st.lists(messages, min_size=1, max_size=3))
def test_what_is_kept_is_what_is_told(choices: list[dict[str, Any]]) -> None:
    """From a completion to a reply, an entry and back: whole, and as a stream that adds up to it;
    ids of calls are new each time, and every one its own."""
    completion, body = told(choices)
    reply = reply_of(completion, TOOLS)
    assert reply.usage.tokens == 7
    outcome = Outcome(
        text=reply.text, route="exact", reason="", message=reply.message, spent=Usage()
    )
    stored = Stored(outcome, TOOLS)
    assert stored.servable
    whole = completion_of(stored, body)
    expected = [without_ids(choice) for choice in completion["choices"]]
    assert [without_ids(choice) for choice in whole["choices"]] == expected
    assembly, cutter = Assembly(), EventCutter()
    half = len(reply.text) // 2
    events = [*Chunks(body).rest(stored, [reply.text[:half], reply.text[half:]])]
    for event in cutter.feed(b"".join(events)):
        assert event.data is not None
        assembly.feed(event.data)
    assert assembly.whole
    assert [without_ids(choice) for choice in assembly.completion()["choices"]] == expected
    old = {c["id"] for m in choices for c in m.get("tool_calls") or ()}
    new = [c["id"] for x in whole["choices"] for c in x["message"].get("tool_calls") or ()]
    assert not old & set(new)
    assert len(set(new)) == len(new)


def test_what_was_said_of_another_text_is_not_told() -> None:
    """Reasoning belongs to the answer it led to; of a changed answer nothing is told but text."""
    completion, _ = told([{"content": "x = 5", "reasoning_content": "so x is 5"}])
    reply = reply_of(completion, ())
    other = Outcome(text="x = 7", route="exact", reason="", message=reply.message)
    assert Stored(other, ()).choices == [{"message": {"content": "x = 7"}, "finish_reason": "stop"}]


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"content": None, "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f"}}]},
        {
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "g", "arguments": "{}"}}],
        },
        {"content": None, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{"}}]},
        {"content": None, "tool_calls": "f"},
    ],
)
def test_calls_that_cannot_be_checked_are_not_kept(message: dict[str, Any]) -> None:
    """They are the client's to see, and nobody else's."""
    from stepcache import Policy
    from stepcache._admission import why_not_admitted

    completion, _ = told([message])
    assert why_not_admitted(reply_of(completion, TOOLS), Policy()) is not None


def test_hop_by_hop_fields_and_what_they_name_end_here() -> None:
    """RFC 9110, 7.6.1."""
    headers = [(b"Connection", b"close, X-A"), (b"X-a", b"1"), (b"TE", b"x"), (b"X-B", b"2")]
    assert end_to_end(headers) == [(b"X-B", b"2")]


def test_grammars_are_opaque_and_json_mode_is_not() -> None:
    """A demand on the form that no task reads leaves exact reuse only."""
    body = {"messages": [{"role": "user", "content": "hi"}]}

    def contract(**more: Any) -> Any:
        raw = json.dumps({**body, **more}).encode()
        return read_body(raw, endpoint="e", namespace="").request.contract

    assert contract(grammar="root ::= x").opaque
    assert contract(guided_json={}).opaque
    assert contract(response_format={"type": "json_schema", "json_schema": {"name": "x"}}).opaque
    assert not contract(response_format={"type": "json_object"}).opaque
    assert not contract().opaque
    read = contract(
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"a": 1}}}
    )
    assert read.schema == {"a": 1}
    assert not read.opaque
