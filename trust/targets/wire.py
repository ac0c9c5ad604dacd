"""The wire: bodies and streams of chat completions, from clients and from models."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random

from stepcache.backends._wire import StreamState, WireError, parse_completion, sse_data
from stepcache.proxy._requests import Unreadable, read_body
from trust._fuzz import Target
from trust._mutate import mutated
from trust.targets._json_texts import PIECES, retyped

__all__ = ["WIRE"]

_LONGEST = 6_000

_BODIES: tuple[str, ...] = (
    '{"choices": [{"message": {"content": "x = 5", "tool_calls": [{"id": "1", "function": '
    '{"name": "f", "arguments": "{}"}}]}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}',
    'data: {"choices": [{"delta": {"content": "x", "tool_calls": [{"index": 0, "id": "a"}]}}]}\n\n'
    'data: {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": null}\n\ndata: [DONE]\n\n',
    '{"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": '
    '[{"type": "text", "text": "hi"}]}, {"role": "assistant", "tool_calls": [{"id": "1"}]}], '
    '"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "n": 1, '
    '"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}}',
)


def _body(dice: Random) -> str:
    text = dice.choice(_BODIES)
    if text.startswith("{") and dice.random() < 0.5:
        return retyped(text, dice)
    return mutated(text, dice, PIECES, dice.choice(_BODIES), _LONGEST)


def _spoken(text: str) -> str | None:
    raw = text.encode("utf-8", "surrogatepass")
    try:
        body = read_body(raw, endpoint="http://x", namespace="a")
    except Unreadable:
        body = None
    if body is not None and body.request.namespace != "a":
        return "a body chose its namespace"
    with suppress(WireError, ValueError, RecursionError):
        parse_completion(json.loads(text), prefix="x =")
    state = StreamState("x")
    try:
        for data in sse_data(iter(text.splitlines())):
            state.feed(data)
        state.rest()
        reply = state.reply()
    except WireError:
        return None
    return None if isinstance(reply.text, str) else "a reply without a text"


WIRE = Target(
    name="wire",
    what="bodies and streams of chat completions, from clients and from models",
    inputs=60_000,
    make=_body,
    check=_spoken,
    read=lambda data: data.decode("utf-8", "surrogateescape")[:_LONGEST],
)
