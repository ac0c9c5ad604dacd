"""Tool calls in records, answers that are tool calls, and schemas that the host wrote into prompts."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import PromptTemplate
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms import MockLLM
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

from llamaindex_stepcache import StepCacheLLM
from llamaindex_stepcache._calls import calls_in, put_arguments, refresh_ids
from llamaindex_stepcache._responses import arguments_of, chat_response, to_reply
from llamaindex_stepcache._translate import HostCall, to_request
from llamaindex_stepcache._written import lift_schema
from stepcache import Message, Outcome, Request

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON)
NAMES = st.text(min_size=1)


def block(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    """A tool call as newer hosts keep it."""
    return {
        "block_type": "tool_call",
        "tool_call_id": call_id,
        "tool_name": name,
        "tool_kwargs": arguments,
    }


def older(name: str, arguments: str, call_id: str) -> dict[str, Any]:
    """A tool call as OpenAI's objects are written."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


# --- ids -----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(NAMES, OBJECTS, NAMES), max_size=4))
def test_only_ids_are_refreshed(calls: list[tuple[str, Any, str]]) -> None:
    """Names, arguments and order stay; one id stays one id, in both forms; none is served again."""
    record = {
        "blocks": [block(*call) for call in calls],
        "additional_kwargs": {"tool_calls": [older(n, json.dumps(a), i) for n, a, i in calls]},
    }
    before = copy.deepcopy(record)
    refresh_ids(record)
    key = ("tool_call_id", "id")
    old = [next(c[k] for k in key if k in c) for c in calls_in(before)]
    new = [next(c[k] for k in key if k in c) for c in calls_in(record)]
    names = [name for name, _, _ in calls] * 2
    table: dict[str, str] = {}
    for was, now, name in zip(old, new, names):
        if was == name:
            assert now == was
        else:
            assert now != was
            assert table.setdefault(was, now) == now
    assert len(set(table.values())) == len(table)

    def stripped(value: dict[str, Any]) -> Any:
        return [{k: v for k, v in call.items() if k not in key} for call in calls_in(value)]

    assert stripped(record) == stripped(before)


@pytest.mark.parametrize(
    ("old", "start", "length"),
    [
        ("call_abcdefghijklmnopqrstuvwx", "call_", 29),
        ("toolu_01AbCdEfGhIjKlMnOpQrSt", "toolu_", 28),
        ("chatcmpl-tool-0123456789abcdef0123456789abcdef", "chatcmpl-tool-", 46),
        ("a1B2c3D4e", "", 9),
        ("call_1", "call_", 29),
    ],
)
def test_a_fresh_id_has_the_form_of_the_old(old: str, start: str, length: int) -> None:
    """Providers check the form of the ids they are sent; a short counter grows to a long id."""
    record = {"blocks": [block("t", {}, old)]}
    refresh_ids(record)
    new = record["blocks"][0]["tool_call_id"]
    assert new != old
    assert new.startswith(start)
    assert len(new) == length
    assert new.removeprefix(start).isalnum()


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"blocks": None, "additional_kwargs": []},
        {"blocks": [3, None, {"block_type": "tool_call"}], "additional_kwargs": {"tool_calls": 3}},
        {"additional_kwargs": {"tool_calls": [None, 3, {"id": 4}, {"id": "", "function": 5}]}},
    ],
)
def test_strange_records_are_left_alone(record: dict[str, Any]) -> None:
    """A store is an untrusted input: what has no calls to be refreshed stays as it is."""
    before = copy.deepcopy(record)
    refresh_ids(record)
    assert not put_arguments(record, "{}", "t")
    assert record == before


# --- answers that are tool calls -------------------------------------------------------------------


@given(OBJECTS, OBJECTS, st.booleans())
def test_arguments_are_exchanged_in_both_forms(one: Any, other: Any, text: bool) -> None:
    """The new arguments stand wherever the old ones did, as text where those were text."""
    record = {
        "blocks": [block("t", json.dumps(one) if text else one, "i")],
        "additional_kwargs": {"tool_calls": [older("t", json.dumps(one), "i")]},
    }
    said = json.dumps(other)
    assert put_arguments(record, said, "t")
    assert record["blocks"][0]["tool_kwargs"] == (said if text else other)
    assert record["additional_kwargs"]["tool_calls"][0]["function"]["arguments"] == said


@pytest.mark.parametrize(
    ("text", "tool"), [("{}", "u"), ("{}", None), ("no", "t"), ("[" * 9999, "t")]
)
def test_arguments_are_put_into_their_own_tool_only(text: str, tool: str | None) -> None:
    """Another tool, no tool or no JSON changes nothing."""
    record = {"blocks": [block("t", "{}", "i")]}
    assert not put_arguments(record, text, tool)
    assert record == {"blocks": [block("t", "{}", "i")]}


def _response(*calls: dict[str, Any], content: str = "") -> ChatResponse:
    kwargs = {"tool_calls": list(calls)}
    return ChatResponse(
        message=ChatMessage(role="assistant", content=content, additional_kwargs=kwargs)
    )


def test_only_the_one_demanded_call_is_an_answer() -> None:
    """Words beside it, a second call or another tool make it something else, which is not kept."""
    call = older("t", '{"a": 1}', "i")
    assert arguments_of(_response(call), "t") == '{"a": 1}'
    assert to_reply(_response(call), tool="t").reusable
    others = [
        _response(call, content="Well."),
        _response(call, call),
        _response(older("u", "{}", "i")),
        _response(content="Well."),
    ]
    for response in others:
        assert arguments_of(response, "t") is None
        reply = to_reply(response, tool="t")
        assert not reply.reusable
        assert reply.finish_reason == "other_than_demanded"
    assert arguments_of(_response(call), None) is None


@given(OBJECTS)
def test_an_answer_by_tool_comes_back_with_other_arguments(arguments: Any) -> None:
    """What is patched into the answer's text is what the rebuilt call says."""
    reply = to_reply(_response(older("t", '{"a": 1}', "i")), tool="t")
    outcome = Outcome(text=json.dumps(arguments), route="patch", reason="", message=reply.message)
    [call] = chat_response(outcome, tool="t").message.additional_kwargs["tool_calls"]
    assert json.loads(call.function.arguments) == arguments
    assert call.function.name == "t"


TOOL = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}


def asked(structured: bool, **kwargs: Any) -> Request:
    """A chat in the engine's words."""
    call = HostCall(
        kind="chat",
        messages=[ChatMessage(role="user", content="hi")],
        kwargs=kwargs,
        structured=structured,
    )
    return to_request(call, MockLLM(), "")


def test_a_tool_is_a_schema_only_where_data_is_asked_for() -> None:
    """Where tools do something, they stay tools: their calls are reused whole or not at all."""
    assert asked(False, tools=[TOOL]).contract.tools == (TOOL,)
    assert asked(True, tools=[TOOL]).contract.schema == {"type": "object"}
    assert asked(True, tools=[TOOL]).contract.tools == ()
    anthropic = {"name": "t", "input_schema": {"type": "object"}}
    assert asked(True, tools=[anthropic]).contract.schema == {"type": "object"}
    for other in ([TOOL, TOOL], [{"name": "t"}], [{"function": 3}], ["t"]):
        assert asked(True, tools=other).contract.tools
    assert asked(True, tools=[TOOL], tool_choice="none").contract.tools
    assert asked(True, tools=[TOOL], response_format={"type": "json_object"}).contract.tools


def test_a_tools_name_and_description_are_identity() -> None:
    """Only the parameters may differ between two requests that meet."""
    renamed = {"type": "function", "function": {**TOOL["function"], "name": "u"}}  # type: ignore[dict-item]
    described = {"type": "function", "function": {**TOOL["function"], "description": "d"}}  # type: ignore[dict-item]
    forms = [asked(True, tools=[t]).contract.response_format for t in (TOOL, renamed, described)]
    assert forms[0] != forms[1] != forms[2] != forms[0]


# --- schemas in prompts ----------------------------------------------------------------------------


class Weather(BaseModel):
    """The weather {somewhere}."""

    place: str


@pytest.mark.parametrize("escaped", [True, False])
def test_the_hosts_own_words_are_read_back(escaped: bool) -> None:
    """What the host's parser writes, braces doubled or not, is the class's own schema again."""
    said = PydanticOutputParser(Weather).get_format_string(escape_json=escaped)
    lifted = lift_schema([Message(role="user", text="Say it.\n\n" + said)])
    assert lifted is not None
    messages, schema = lifted
    assert schema == Weather.model_json_schema()
    assert [message.text for message in messages] == ["Say it."]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Say it.",
        "\nHere's a JSON schema to follow:\n{",
        "\nHere's a JSON schema to follow:\n{\n\nOutput a valid JSON object but do not repeat the schema.\n",
        "\nHere's a JSON schema to follow:\n[1]\n\nOutput a valid JSON object but do not repeat the schema.\n",
        "\nHere's a JSON schema to follow:\n"
        + "[" * 100_000
        + "\n\nOutput a valid JSON object but do not repeat the schema.\n",
    ],
)
def test_other_words_are_left_alone(text: str) -> None:
    """Nothing is taken out of a prompt that cannot be read whole."""
    assert lift_schema([Message(role="user", text=text)]) is None


def test_the_same_words_of_a_user_stay_in_the_prompt() -> None:
    """Where the host did not write them, they are part of the question."""
    said = "Say it." + PydanticOutputParser(Weather).get_format_string(escape_json=False)
    call = HostCall(kind="chat", messages=[ChatMessage(role="user", content=said)], kwargs={})
    request = to_request(call, MockLLM(), "")
    assert request.text == said
    assert request.contract.schema is None


class Place(BaseModel):
    """A place."""

    name: str


class _LargerPlace(BaseModel):
    """A place."""

    name: str
    river: str


_LargerPlace.__name__ = _LargerPlace.__qualname__ = "Place"


class _SchemaAsFormat(OpenAILike):
    """An LLM that is told of a class by an argument ``format``, as Ollama's is."""

    def structured_predict(
        self, output_cls: Any, prompt: Any, llm_kwargs: Any = None, **prompt_args: Any
    ) -> Any:
        demand = {**(llm_kwargs or {}), "format": output_cls.model_json_schema()}
        response = self.chat(prompt.format_messages(**prompt_args), **demand)
        return output_cls.model_validate_json(response.message.content)

    def chat(self, messages: Any, **kwargs: Any) -> Any:
        schema = kwargs.pop("format", None)
        if schema is not None:
            named = {"name": "answer", "schema": schema}
            kwargs["response_format"] = {"type": "json_schema", "json_schema": named}
        return super().chat(messages, **kwargs)


def test_a_schema_given_as_format_is_one(endpoint: Any) -> None:
    """A larger class asks for its new field only, and is told of that field's schema the same way."""
    inner = _SchemaAsFormat(
        model="m", api_base=endpoint.url, api_key="k", is_chat_model=True, max_retries=0
    )
    llm, prompt = StepCacheLLM(llm=inner), PromptTemplate("Describe 'Oslo'.")
    first = llm.structured_predict(Place, prompt)
    assert llm.structured_predict(Place, prompt) == first
    larger = llm.structured_predict(_LargerPlace, prompt)
    assert larger.name == first.name
    assert llm.engine.routes == {"miss": 1, "exact": 1, "patch": 1}
    part = endpoint.asked[-1]["response_format"]["json_schema"]["schema"]
    assert list(part["properties"]) == ["river"]
