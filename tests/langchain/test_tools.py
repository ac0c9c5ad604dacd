"""Tool calls: kept and served whole or not at all, only as offered, with ids never used before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from langchain_stepcache import StepCache, StepCacheChatModel
from stepcache.testing.endpoint import ScriptedEndpoint
from stepcache.tool_calls import numbered_ids, renewed_ids, why_not_callable

Make = Callable[..., ChatOpenAI]


def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"Sun in {city} for {days} days."


def calling(*calls: tuple[str, Any], content: str | None = None) -> dict[str, Any]:
    """A message of the model that calls tools."""
    return {
        "content": content,
        "tool_calls": [
            {
                "id": f"call_{index:024d}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": args if isinstance(args, str) else json.dumps(args),
                },
            }
            for index, (name, args) in enumerate(calls)
        ],
    }


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """A model that asks for the weather of two cities."""
    answer = calling(("weather", {"city": "Rome"}), ("weather", {"city": "Oslo", "days": 2}))
    with ScriptedEndpoint(lambda request: answer) as running:
        yield running


def joined(chunks: Any) -> Any:
    """One message of all chunks."""
    total = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return total


def test_calls_come_back_equal_with_fresh_ids(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Names, arguments and order are the model's; the ids are of its shape, and new each time."""
    model = StepCacheChatModel(llm=chat()).bind_tools([weather])
    messages = [model.invoke("Weather?") for _ in range(3)]
    streamed = joined(model.stream("Weather?"))
    assert endpoint.calls == 1
    for message in (*messages, streamed):
        assert [(c["name"], c["args"]) for c in message.tool_calls] == [
            ("weather", {"city": "Rome"}),
            ("weather", {"city": "Oslo", "days": 2}),
        ]
    ids = [c["id"] for m in (*messages, streamed) for c in m.tool_calls]
    assert len(set(ids)) == 8
    assert all(i.startswith("call_") and len(i) == 29 for i in ids)


def test_a_streamed_call_fills_the_cache_and_streams_back_in_chunks(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """Arguments arrive as JSON text under an index, as from any model."""
    model = StepCacheChatModel(llm=chat()).bind_tools([weather])
    first, second = joined(model.stream("Weather?")), joined(model.stream("Weather?"))
    assert endpoint.calls == 1
    assert [c["args"] for c in first.tool_calls] == [c["args"] for c in second.tool_calls]
    assert second.response_metadata["stepcache"]["route"] == "exact"
    assert second.response_metadata["finish_reason"] == "tool_calls"


def test_text_beside_calls_is_kept(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """What the model says while it calls comes back with the calls, streamed too."""
    endpoint.answer = lambda request: calling(("weather", {"city": "Rome"}), content="Let me look.")
    model = StepCacheChatModel(llm=chat()).bind_tools([weather])
    messages = [model.invoke("Weather?") for _ in range(2)] + [joined(model.stream("Weather?"))]
    assert endpoint.calls == 1
    assert [m.content for m in messages] == ["Let me look."] * 3
    assert all(m.tool_calls[0]["args"] == {"city": "Rome"} for m in messages)


@pytest.mark.parametrize(
    "call",
    [
        ("unknown", {"city": "Rome"}),
        ("weather", {"town": "Rome"}),
        ("weather", {"city": 7}),
        ("weather", {"city": "Rome", "days": "two"}),
        ("weather", '{"city": "Ro'),
    ],
)
@pytest.mark.parametrize("face", ["model", "cache"])
def test_calls_that_do_not_fit_are_not_kept(
    chat: Make, endpoint: ScriptedEndpoint, call: tuple[str, Any], face: str
) -> None:
    """The user gets them as the model made them; nobody gets them again."""
    endpoint.answer = lambda request: calling(call)
    cache = StepCache()
    inner = chat(cache=cache) if face == "cache" else chat()
    model: Any = inner if face == "cache" else StepCacheChatModel(llm=inner)
    bound = model.bind_tools([weather])
    messages = [bound.invoke("Weather?") for _ in range(2)]
    assert endpoint.calls == 2
    assert all(m.tool_calls or m.invalid_tool_calls for m in messages)
    engine = cache.engine if face == "cache" else model.engine
    assert engine.count() == 0


def test_another_schema_another_choice_is_another_request(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """Tools, their schemas and the choice among them are identity."""

    def changed(city: str, unit: str) -> str:
        """The weather of a city."""
        return city + unit

    changed.__name__ = "weather"
    model = StepCacheChatModel(llm=chat())
    model.bind_tools([weather]).invoke("Weather?")
    for other in (
        model.bind_tools([changed]),
        model.bind_tools([weather], tool_choice="any"),
        model.bind_tools([weather], parallel_tool_calls=False),
        model.bind_tools([weather], strict=True),
    ):
        before = endpoint.calls
        other.invoke("Weather?")
        assert endpoint.calls == before + 1


def test_requests_with_tools_match_exactly_only(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """A re-worded request may call for another tool."""
    endpoint.answer = lambda request: "x = 5"
    model = StepCacheChatModel(llm=chat()).bind_tools([weather])
    model.invoke("Solve 2x + 3 = 13 for x.")
    message = model.invoke("Solve 13 = 2x + 3 for x.")
    assert message.response_metadata["stepcache"]["route"] == "miss"


@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_storage_is_not_believed(chat: Make, endpoint: ScriptedEndpoint, how: str) -> None:
    """A stored call of what is not offered is not served: the model is asked, and its answer
    takes the place."""
    model = StepCacheChatModel(llm=chat())
    bound = model.bind_tools([weather])
    bound.invoke("Weather?")
    store = model.engine.store
    (entry,) = store.entries()
    forged = entry.message.replace('"weather"', '"wipe_disk"')
    assert forged != entry.message
    store.put(replace(entry, message=forged), None, "any")
    message = bound.invoke("Weather?") if how == "invoke" else joined(bound.stream("Weather?"))
    assert [c["name"] for c in message.tool_calls] == ["weather", "weather"]
    assert endpoint.calls == 2
    assert bound.invoke("Weather?").tool_calls[0]["name"] == "weather"
    assert endpoint.calls == 2


def test_the_cache_face_does_not_believe_storage_either(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """For it, that is a miss."""
    cache = StepCache()
    bound = chat(cache=cache).bind_tools([weather])
    bound.invoke("Weather?")
    store: Any = cache.engine.store
    (entry,) = store.entries()
    forged = entry.message.replace('"weather"', '"wipe_disk"')
    store.put(replace(entry, message=forged), None, "any")
    assert bound.invoke("Weather?").tool_calls[0]["name"] == "weather"
    assert endpoint.calls == 2


def test_a_thread_with_other_ids_is_the_same_thread(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Ids of earlier calls are chance; which result belongs to which call is not."""
    endpoint.answer = lambda request: "Sun."
    model = StepCacheChatModel(llm=chat()).bind_tools([weather])

    def thread(one: str, two: str, swapped: bool = False) -> list[Any]:
        calls = [
            {"name": "weather", "args": {"city": city}, "id": i}
            for city, i in (("Rome", one), ("Oslo", two))
        ]
        results = [ToolMessage("Sun", tool_call_id=one), ToolMessage("Rain", tool_call_id=two)]
        if swapped:
            results = [ToolMessage("Sun", tool_call_id=two), ToolMessage("Rain", tool_call_id=one)]
        return [HumanMessage("Weather?"), AIMessage("", tool_calls=calls), *results]

    model.invoke(thread("a1", "b2"))
    model.invoke(thread("c3", "d4"))
    assert endpoint.calls == 1
    model.invoke(thread("c3", "d4", swapped=True))
    assert endpoint.calls == 2


def test_content_blocks_carry_the_same_fresh_ids() -> None:
    """Where a provider repeats a call in its content, both places get the same new id."""
    record = {
        "tool_calls": [{"name": "weather", "args": {"id": "toolu_1"}, "id": "toolu_abcdefghijkl"}],
        "invalid_tool_calls": [],
        "content": [
            {"type": "text", "text": "toolu_abcdefghijkl"},
            {"type": "tool_use", "id": "toolu_abcdefghijkl", "name": "weather", "input": {}},
        ],
    }
    stored = numbered_ids(record)
    assert stored == numbered_ids(record)
    assert stored["tool_calls"][0]["id"] == "toolu_000000000000"
    one, two = renewed_ids(stored), renewed_ids(stored)
    for fresh in (one, two):
        assert fresh["tool_calls"][0]["id"] == fresh["content"][1]["id"]
        assert fresh["tool_calls"][0]["args"] == {"id": "toolu_1"}
        assert fresh["content"][0]["text"] == "toolu_abcdefghijkl"
    assert one["tool_calls"][0]["id"] != two["tool_calls"][0]["id"]
    assert stored["tool_calls"][0]["id"] == "toolu_000000000000"


@pytest.mark.parametrize(
    ("schema", "args", "fits"),
    [
        ({"type": "object", "properties": {"pattern": {"type": "integer"}}}, {"pattern": 1}, True),
        ({"type": "object", "properties": {"pattern": {"type": "integer"}}}, {"pattern": ""}, False),
        ({"properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}, {"a": "a" * 60 + "!"}, False),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, {}, False),
        ({"type": "nonsense"}, {"a": 1}, False),
        ({}, {"a": float("nan")}, False),
        ({}, {"a": [{"b": -float("inf")}]}, False),
        ({}, {"a": 10**400}, False),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 10**300}, True),
        ({"properties": {"a": {"maximum": 2**53 + 1}}}, {"a": 2**53 + 1}, True),
        ({"properties": {"a": {"exclusiveMinimum": 2**53}}}, {"a": 2**53 + 1}, False),
        ({}, {"a": "x" * 300_000}, False),
    ],
)  # fmt: skip
def test_schemas_are_checked_within_bounds(schema: Any, args: Any, fits: bool) -> None:
    """No network, no endless pattern, no number that readers take for another; what cannot be
    checked proves nothing."""
    tool = {"type": "function", "function": {"name": "t", "parameters": schema}}
    why = why_not_callable([{"name": "t", "args": args}], [tool])
    assert (why is None) is fits


def test_tools_of_every_provider_are_read() -> None:
    """OpenAI's and Anthropic's forms, and a bare JSON Schema."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    forms = [
        {"type": "function", "function": {"name": "t", "parameters": schema}},
        {"name": "t", "input_schema": schema},
        {"name": "t", "parameters": schema},
        {"title": "t", **schema},
    ]
    for form in forms:
        assert why_not_callable([{"name": "t", "args": {"a": 1}}], [form]) is None
        assert why_not_callable([{"name": "t", "args": {}}], [form]) is not None
    assert why_not_callable([{"name": "t", "args": {}}], [{"type": "web_search"}]) is not None
    assert why_not_callable([{"name": "t", "args": [1]}], forms) is not None


def test_a_hit_with_calls_is_one_run(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Start and end once each, on a miss and on a hit."""

    class Runs(BaseCallbackHandler):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            self.seen.append("start")

        def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
            self.seen.append("end")

    runs = Runs()
    model = StepCacheChatModel(llm=chat()).bind_tools([weather])
    for _ in range(2):
        model.invoke("Weather?", {"callbacks": [runs]})
    assert runs.seen == ["start", "end"] * 2
