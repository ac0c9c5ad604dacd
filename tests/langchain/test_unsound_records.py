"""Records of answers that a store gives back changed: a miss, never an error, never other words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from langchain_stepcache import StepCache, StepCacheChatModel
from stepcache.stores import MemoryStore

CALL = {"name": "look", "args": {"at": 1}, "id": "call_1", "type": "tool_call"}


class Forging(MemoryStore):
    """A store that changes what hosts wrote beside the answers."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.fields = fields
        self.forging = False

    def get(self, scope: str, key: str, /) -> Any:
        entry = super().get(scope, key)
        if entry is None or not self.forging or entry.message is None:
            return entry
        record = {**json.loads(entry.message), **self.fields}
        return replace(entry, message=json.dumps(record))


@pytest.mark.parametrize(
    "fields",
    [
        {"content": {"a": 1}},
        {"content": [7]},
        {"name": 7},
        {"tool_calls": 7},
        {"tool_calls": ["look"]},
        {"tool_calls": [{"name": "look"}]},
        {"tool_calls": [{**CALL, "args": "{}"}]},
        {"tool_calls": [{**CALL, "more": 1}]},
        {"invalid_tool_calls": [{"name": 7, "args": None, "id": None}]},
        {"additional_kwargs": [1]},
        {"response_metadata": "x"},
        {"generation_info": 7},
        {"kind": "generations"},
        {"kind": "generations", "items": [{"text": 7}]},
        {"kind": 7},
    ],
)
async def test_an_unsound_record_does_not_break_the_chain(fields: dict[str, Any]) -> None:
    """The proven text is served without it; where the record is the answer, the model is asked."""
    store = Forging(**fields)
    said = iter([AIMessage("Elbe"), AIMessage("", tool_calls=[CALL]), *[AIMessage("again")] * 9])
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    model = StepCacheChatModel(llm=GenericFakeChatModel(messages=said), store=store)
    model.invoke("Name a river.")
    model.invoke("Look at 1.", tools=tools)
    assert store.count() == 2
    store.forging = True
    answers = [model.invoke("Name a river."), await model.ainvoke("Name a river.")]
    assert {answer.content for answer in answers} <= {"Elbe", "again"}
    answer = model.invoke("Look at 1.", tools=tools)
    assert answer.content == "again" or [c["name"] for c in answer.tool_calls] == ["look"]


def test_no_other_content_is_served_beside_a_text() -> None:
    """What was proven is the text; a record that says something else is not listened to."""
    store = Forging(content="hunter2")
    said = iter([AIMessage("Elbe"), AIMessage("again")])
    model = StepCacheChatModel(llm=GenericFakeChatModel(messages=said), store=store)
    model.invoke("Name a river.")
    store.forging = True
    assert model.invoke("Name a river.").content == "Elbe"


def test_the_cache_face_takes_an_unsound_record_for_a_miss() -> None:
    """Without a warning in the log of an error that was none of the user's."""
    store = Forging(items=[{"text": 7}])
    said = iter([AIMessage("one"), AIMessage("two")])
    model = GenericFakeChatModel(messages=said, cache=StepCache(store=store))
    model.invoke([AIMessage("x")])
    store.forging = True
    assert model.invoke([AIMessage("x")]).content in ("one", "two")
