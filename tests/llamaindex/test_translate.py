"""Identity of calls and the record of answers, law by law."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
)
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import BaseModel, Field, PrivateAttr, SecretStr

from llamaindex_stepcache import StepCacheLLM
from llamaindex_stepcache._identity import plain
from llamaindex_stepcache._responses import (
    chat_response,
    completion_response,
    finish_reason_of,
    to_reply,
    usage_of,
)
from llamaindex_stepcache._translate import HostCall, to_request
from stepcache import Outcome, Request
from stepcache._identity import identify

# Older hosts keep tool calls in additional_kwargs only.
ToolCallBlock: Any = getattr(types, "ToolCallBlock", None)
needs_tool_blocks = pytest.mark.skipif(ToolCallBlock is None, reason="the host has no such block")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def asked(*messages: ChatMessage, **kwargs: Any) -> Request:
    """A chat call in the engine's words."""
    return to_request(HostCall(kind="chat", messages=messages, kwargs=kwargs), MockLLM(), "")


def served(response: ChatResponse, text: str | None = None) -> ChatMessage:
    """The message rebuilt from what is stored of a response."""
    reply = to_reply(response)
    outcome = Outcome(
        text=reply.text if text is None else text, route="exact", reason="", message=reply.message
    )
    return chat_response(outcome).message


def without_ids(message: ChatMessage) -> Any:
    """A message as plain data, but for the ids of its tool calls."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            ids = {"tool_call_id", "id"}
            return {key: stripped(item) for key, item in value.items() if key not in ids}
        return [stripped(item) for item in value] if isinstance(value, list) else value

    return stripped(message.model_dump(mode="json"))


# --- requests ------------------------------------------------------------------------------------


def test_text_is_text_and_the_rest_is_extra() -> None:
    """A message of one text has no extra; anything beside it is identity."""
    assert asked(ChatMessage(role="user", content="hi")).messages[0].extra == {}
    two = asked(ChatMessage(role="user", blocks=[TextBlock(text="a"), TextBlock(text="b")]))
    assert two.messages[0].text == "a\nb"
    assert two.messages[0].extra["blocks"]
    assert asked(ChatMessage(role="user", blocks=[])).messages[0].extra == {"blocks": []}


def test_volatile_metadata_is_dropped() -> None:
    """Token counts and our own summary in a history do not make another request."""
    noisy = ChatMessage(
        role="assistant",
        content="hi",
        additional_kwargs={"prompt_tokens": 3, "total_tokens": 9, "stepcache": {"route": "miss"}},
    )
    assert asked(noisy) == asked(ChatMessage(role="assistant", content="hi"))


@needs_tool_blocks
def test_ids_of_tool_calls_are_numbered() -> None:
    """The same run of tools is the same history whatever its ids, and only then."""

    def history(first: str, second: str, answered: str) -> Request:
        calls = [
            ToolCallBlock(tool_call_id=i, tool_name="t", tool_kwargs={}) for i in (first, second)
        ]
        return asked(
            ChatMessage(role="assistant", blocks=calls),
            ChatMessage(role="tool", content="r", additional_kwargs={"tool_call_id": answered}),
        )

    assert history("a", "b", "a") == history("x", "y", "x")
    assert history("a", "b", "a") != history("a", "b", "b")


@pytest.mark.parametrize("kind", [ImageBlock, DocumentBlock])
def test_a_file_is_its_content(kind: Any, tmp_path: Path) -> None:
    """A file that changes under its name is another request; one that is gone has no identity."""
    path = tmp_path / "file.txt"
    path.write_bytes(b"one")
    before = asked(ChatMessage(role="user", blocks=[kind(path=path)]))
    assert before == asked(ChatMessage(role="user", blocks=[kind(path=path)]))
    path.write_bytes(b"two")
    assert before != asked(ChatMessage(role="user", blocks=[kind(path=path)]))
    message = ChatMessage(role="user", blocks=[kind(path=path)])
    path.unlink()
    gone = asked(message)
    assert isinstance(gone.messages[0].extra["blocks"][0]["path"], Path)


class Person(BaseModel):
    name: str


def test_demands_become_the_contract() -> None:
    """A JSON schema is a typed constraint, a class is opaque, the rest is identity."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    contract = asked(response_format=form).contract
    assert contract.schema == schema
    assert contract.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "n", "strict": True},
    }
    assert not contract.opaque
    assert asked(response_format=Person).contract.opaque
    assert asked(response_format={"type": "json_schema"}).contract.opaque
    assert not asked(response_format={"type": "json_object"}).contract.opaque
    assert asked(functions=[{"name": "f"}]).contract.opaque
    assert asked(tools=[{"name": "f"}], tool_choice="auto").contract.tools == ({"name": "f"},)


def test_classes_of_one_name_and_other_fields_differ() -> None:
    """A class is identified by its schema too."""

    def make(kind: type) -> Any:
        return type("Same", (BaseModel,), {"__annotations__": {"x": kind}, "__module__": "m"})

    assert asked(response_format=make(int)) == asked(response_format=make(int))
    assert asked(response_format=make(int)) != asked(response_format=make(str))


def test_what_the_engine_must_know_is_where_it_looks() -> None:
    """Several answers and probabilities are told by name, wherever they were set."""
    assert asked(n=2).params["n"] == 2
    assert asked(logprobs=True).params["logprobs"] is True
    assert "n" not in asked().params

    class Several(MockLLM):
        additional_kwargs: dict[str, Any] = Field(default_factory=lambda: {"n": 3})

    call = HostCall(kind="chat", messages=(), kwargs={})
    assert to_request(call, Several(), "").params["n"] == 3


def test_settings_hidden_in_private_attributes_count() -> None:
    """An adapter that keeps its model in a private attribute is as particular as that model."""

    class Settings(BaseModel):
        temperature: float

    class Adapter(MockLLM):
        _model: Any = PrivateAttr()

    def call(temperature: float) -> Request:
        llm = Adapter()
        llm._model = Settings(temperature=temperature)
        return to_request(HostCall(kind="chat", messages=(), kwargs={}), llm, "")

    assert call(0.1) == call(0.1)
    assert call(0.1) != call(0.2)


def test_a_prompt_method_of_the_llm_itself_has_an_identity() -> None:
    """Some adapters use their own method as the prompt function; their settings tell the rest."""

    class Own(MockLLM):
        greeting: str = "hello"

        def template(self, messages: Any) -> str:
            return self.greeting + str(messages)

    def call(greeting: str) -> Request:
        llm = Own()
        llm.greeting = greeting
        llm.messages_to_prompt = llm.template
        return to_request(HostCall(kind="chat", messages=(), kwargs={}), llm, "")

    assert call("a") == call("a")
    assert call("a") != call("b")
    identify(call("a"))


@given(JSON)
def test_json_is_plain_already(value: Any) -> None:
    """Content goes through unchanged, whatever its keys are called."""
    assert plain(value) == value
    assert plain({"token": value, "api_key": value}) == {"token": value, "api_key": value}


@given(st.text(min_size=9))
def test_secrets_are_sealed(secret: str) -> None:
    """No form of a secret is left in clear among settings, and equal secrets stay equal."""
    forms: list[Any] = [
        {"api_key": secret},
        {"extra_headers": {"x": secret}},
        [{"deep": {"Authorization": secret}}],
        {"field": SecretStr(secret)},
    ]
    for form in forms:
        sealed = json.dumps(plain(form, seal=True))
        assert json.dumps(secret)[1:-1] not in sealed.replace("sha256:", "")
        assert sealed == json.dumps(plain(form, seal=True))


@needs_tool_blocks
def test_a_field_that_is_called_like_a_secret_is_just_a_field() -> None:
    """Schemas, tools and tool arguments are content: nothing of them is hashed."""
    schema = {"type": "object", "properties": {"token": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert asked(response_format=form).contract.schema == schema
    tool = {"function": {"name": "f", "parameters": schema}}
    assert asked(tools=[tool]).contract.tools == (tool,)
    call = ToolCallBlock(tool_call_id="1", tool_name="t", tool_kwargs={"api_key": "x"})
    message = ChatMessage(role="assistant", blocks=[call])
    assert without_ids(served(ChatResponse(message=message))) == without_ids(message)


def test_what_has_no_json_form_is_left_as_it_is() -> None:
    """The engine, not the translation, decides what an unknown object means."""
    thing = object()
    assert plain({"a": [thing]})["a"][0] is thing
    deep: Any = "end"
    for _ in range(200):
        deep = [deep]
    plain(deep)


# --- answers -------------------------------------------------------------------------------------


@given(st.text())
def test_an_answer_comes_back_as_it_was(text: str) -> None:
    """Text and thoughts survive the record."""
    blocks = [ThinkingBlock(content="hm"), TextBlock(text=text)]
    message = ChatMessage(role="assistant", blocks=blocks)
    assert served(ChatResponse(message=message)) == message


@needs_tool_blocks
def test_tool_calls_come_back_and_are_not_reusable() -> None:
    """An answer with tool calls is kept whole, and served under a new id."""
    call = ToolCallBlock(tool_call_id="1", tool_name="t", tool_kwargs={"a": [1]})
    message = ChatMessage(role="assistant", blocks=[TextBlock(text="wait"), call])
    response = ChatResponse(message=message)
    assert not to_reply(response).reusable
    back = served(response)
    assert without_ids(back) == without_ids(message)
    assert back.blocks[1].tool_call_id not in ("1", served(response).blocks[1].tool_call_id)


def test_tool_calls_in_the_older_form_are_read_by_attribute_or_key() -> None:
    """Providers put objects there, and their readers use attributes."""
    call = {"id": "1", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    message = ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [call]})
    response = ChatResponse(message=message)
    assert not to_reply(response).reusable
    back = served(response)
    assert without_ids(back) == without_ids(message)
    again = back.additional_kwargs["tool_calls"][0]
    assert (again.function.name, again["function"]["name"]) == ("t", "t")
    assert copy.deepcopy(again) == json.loads(json.dumps(again)) == {**call, "id": again.id}
    assert again.id not in ("1", served(response).additional_kwargs["tool_calls"][0].id)
    assert not hasattr(again, "unheard_of")


def test_thoughts_do_not_stand_beside_other_words() -> None:
    """Where the words were changed, what was thought about the old ones is left out."""
    blocks = [ThinkingBlock(content="hm"), TextBlock(text="old")]
    response = ChatResponse(message=ChatMessage(role="assistant", blocks=blocks))
    assert served(response, "new").blocks == [TextBlock(text="new")]


def test_an_answer_without_a_json_form_is_not_kept() -> None:
    """What cannot be recorded is handed over only."""
    message = ChatMessage(role="assistant", content="x", additional_kwargs={"tool_calls": [object]})
    reply = to_reply(ChatResponse(message=message))
    assert reply.message is None
    assert reply.finish_reason == "unrecordable"


@pytest.mark.parametrize(
    "record",
    [
        *("", "null", "[]", "{", '{"v": 2}', '{"v": 1, "blocks": 3}', "[" * 100_000),
        '{"v": 1, "blocks": [{"block_type": "unheard-of"}, {"block_type": "text", "text": "t"}]}',
        '{"v": 1, "role": "unheard-of", "blocks": [{"block_type": "text", "text": "t"}]}',
        '{"v": 1, "additional_kwargs": 3}',
    ],
)
def test_a_strange_record_leaves_the_text(record: str) -> None:
    """A store is an untrusted input: what does not fit is left out, and nothing is raised."""
    outcome = Outcome(text="t", route="exact", reason="", message=record)
    assert chat_response(outcome).message == ChatMessage(role="assistant", content="t")
    assert completion_response(outcome).text == "t"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"choices": [{"finish_reason": "length"}]}, "length"),
        ({"stop_reason": "end_turn"}, "end_turn"),
        ({"done_reason": "stop"}, "stop"),
        ({"candidates": [{"finish_reason": "MAX_TOKENS"}]}, "MAX_TOKENS"),
        ({"choices": []}, None),
        (None, None),
    ],
)
def test_providers_say_in_their_own_ways_why_they_stopped(raw: Any, reason: str | None) -> None:
    """The finish reason is found where the large providers put it."""
    assert finish_reason_of(CompletionResponse(text="t", raw=raw)) == reason


@pytest.mark.parametrize(
    ("raw", "kwargs"),
    [
        ({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}, {}),
        ({"usage": {"input_tokens": 3, "output_tokens": 4}}, {}),
        ({"usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 4}}, {}),
        (None, {"prompt_tokens": 3, "completion_tokens": 4}),
    ],
)
def test_providers_tell_tokens_in_their_own_ways(raw: Any, kwargs: Any) -> None:
    """Usage is found where the large providers put it."""
    usage = usage_of(CompletionResponse(text="t", raw=raw, additional_kwargs=kwargs))
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 3, 4)


def test_a_refusal_is_one() -> None:
    """What the provider marks as a refusal is not kept."""
    raw = {"choices": [{"message": {"refusal": "No."}}]}
    message = ChatMessage(role="assistant", content="No.")
    assert to_reply(ChatResponse(message=message, raw=raw)).refusal


class _NotCumulative(MockLLM):
    """A model whose chunks hold only their own piece, against the host's rule."""

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        def pieces() -> Any:
            for piece in ("Whole ", "words."):
                yield CompletionResponse(text=piece, delta=piece)

        return pieces()


def test_a_stream_that_contradicts_itself_is_not_kept() -> None:
    """Where chunks and deltas tell two stories, neither is served again."""
    llm = StepCacheLLM(llm=_NotCumulative())
    assert [c.delta for c in llm.stream_complete("Say it.")] == ["Whole ", "words."]
    assert llm.engine.count() == 0
