"""The host's own machinery over ``StepCacheLLM``: events, counters, tools, structure, engines."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding, PromptTemplate, Settings, SummaryIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.llms import LLM, ChatMessage, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel

from llamaindex_stepcache import StepCacheLLM

Make = Callable[..., LLM]
TALK = "Say something about old ships."


def user(text: str) -> list[ChatMessage]:
    """A conversation of one question."""
    return [ChatMessage(role="user", content=text)]


def memory() -> ChatMemoryBuffer:
    """A conversation's memory that opens no database, as the host's default one does."""
    return ChatMemoryBuffer.from_defaults(token_limit=4000, tokenizer_fn=str.split)


class Weather(BaseModel):
    """The weather somewhere."""

    place: str
    degrees: int


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


PROMPT = PromptTemplate("The weather in 'Oslo' at {degrees} degrees.")


# --- events and counters -------------------------------------------------------------------------


def test_a_shared_token_counter_counts_a_miss_once(endpoint: Any, inner: Make) -> None:
    """Handlers of the wrapped LLM are taken over, not told twice."""
    counter = TokenCountingHandler(tokenizer=str.split)
    made = inner(callback_manager=CallbackManager([counter]))
    llm = StepCacheLLM(llm=made)
    llm.chat(user(TALK))
    assert len(counter.llm_token_counts) == 1
    assert counter.total_llm_token_count == endpoint.delivered
    assert made.callback_manager.handlers == [counter]
    list(llm.stream_complete(TALK))
    assert len(counter.llm_token_counts) == 2


def test_the_quiet_copy_shares_the_client(inner: Make) -> None:
    """Asking past shared handlers opens no connections of its own."""
    made = inner(callback_manager=CallbackManager([TokenCountingHandler(tokenizer=str.split)]))
    llm = StepCacheLLM(llm=made)
    llm.chat(user(TALK))
    client = made._client  # type: ignore[attr-defined]
    assert client is not None
    llm.chat(user("And something else."))
    assert made._client is client  # type: ignore[attr-defined]


# --- tools ---------------------------------------------------------------------------------------


def test_tool_calls_are_served_whole_and_leave_the_history_alone(
    endpoint: Any, inner: Make
) -> None:
    """A call with tools is answered again without the model, whole, under an id of its own."""
    llm = StepCacheLLM(llm=inner())
    tool = FunctionTool.from_defaults(get_weather)
    history = [ChatMessage(role="system", content="Be brief.")]
    seen = []
    for _ in range(2):
        response = llm.chat_with_tools([tool], "weather in 'Rome'", chat_history=history)
        seen.append(llm.get_tool_calls_from_response(response))
    assert [(c.tool_name, c.tool_kwargs) for c in seen[0]] == [
        (c.tool_name, c.tool_kwargs) for c in seen[1]
    ]
    assert seen[0][0].tool_id != seen[1][0].tool_id
    assert seen[0][0].tool_kwargs == {"city": "Rome"}
    assert len(history) == 1
    assert endpoint.calls == 1


def test_changed_tools_are_asked_anew(endpoint: Any, inner: Make) -> None:
    """Another tool is another request."""

    def get_tide(harbour: str) -> str:
        """The tide at a harbour."""
        return harbour

    llm = StepCacheLLM(llm=inner())
    for function in (get_weather, get_tide, get_weather):
        llm.chat_with_tools([FunctionTool.from_defaults(function)], "weather in 'Rome'")
    assert endpoint.calls == 2


def test_predict_and_call(endpoint: Any, inner: Make) -> None:
    """The host's shortcut runs the tool on hit and miss."""
    llm = StepCacheLLM(llm=inner())
    tool = FunctionTool.from_defaults(get_weather)
    answers = [str(llm.predict_and_call([tool], user_msg="weather in 'Bern'")) for _ in range(2)]
    assert answers == ["sunny in Bern"] * 2
    assert endpoint.calls == 1


def test_an_llm_without_tools_stays_without() -> None:
    """The wrapper promises no more than the wrapped LLM can do."""
    llm = StepCacheLLM(llm=MockLLM())
    assert not llm.metadata.is_function_calling_model
    with pytest.raises(NotImplementedError, match="does not call tools"):
        llm.chat_with_tools([FunctionTool.from_defaults(get_weather)], "hello")


# The host's workflows look at every attribute of an agent, old ones of pydantic's included.
looks_at_everything = pytest.mark.filterwarnings(
    "ignore:The `(__fields__|model_fields|model_computed_fields|__fields_set__)` attribute"
    ":pydantic.warnings.PydanticDeprecatedSince20",
    "ignore:Accessing the 'model_(fields|computed_fields)' attribute on the instance"
    ":pydantic.warnings.PydanticDeprecatedSince211",
)


@looks_at_everything
@pytest.mark.parametrize("streaming", [True, False])
async def test_an_agents_second_run_asks_nothing(
    streaming: bool, endpoint: Any, inner: Make
) -> None:
    """Tool calls, their ids and results in the history lead to the same requests again."""
    llm = StepCacheLLM(llm=inner())
    answers = []
    for _ in range(2):
        agent = FunctionAgent(tools=[get_weather], llm=llm, streaming=streaming)
        answers.append(str(await agent.run("weather in 'Paris'", memory=memory())))
        assert endpoint.calls == 2
    assert answers[0] == answers[1]


@looks_at_everything
async def test_agent_workflow(endpoint: Any, inner: Make) -> None:
    """The workflow picks a function-calling agent and is served the second time."""
    llm = StepCacheLLM(llm=inner())
    for _ in range(2):
        workflow = AgentWorkflow.from_tools_or_functions([get_weather], llm=llm)
        assert str(await workflow.run("weather in 'Paris'", memory=memory()))
    assert endpoint.calls == 2


# --- structured output ---------------------------------------------------------------------------


@pytest.mark.parametrize("schema_mode", [True, False], ids=["json-schema", "tool"])
async def test_structured_output_in_all_four_forms(
    schema_mode: bool, endpoint: Any, inner: Make
) -> None:
    """The caller's own class comes back from a miss and from a hit, the provider's way."""
    llm = StepCacheLLM(llm=inner(should_use_structured_outputs=schema_mode))
    expected = Weather(place="Oslo", degrees=7)
    for _ in range(2):
        assert llm.structured_predict(Weather, PROMPT, degrees=7) == expected
        assert await llm.astructured_predict(Weather, PROMPT, degrees=7) == expected
    assert ("response_format" in endpoint.asked[0]) is schema_mode
    assert endpoint.calls == 1
    for _ in range(2):
        grown = list(llm.stream_structured_predict(Weather, PROMPT, degrees=7))
        assert _plain(grown[-1]) == expected.model_dump()
        stream = await llm.astream_structured_predict(Weather, PROMPT, degrees=7)
        grown = [item async for item in stream]
        assert _plain(grown[-1]) == expected.model_dump()
    assert endpoint.calls == 1


def _plain(item: Any) -> Any:
    return item.model_dump()


def test_a_schema_with_one_more_field_patches_that_field(endpoint: Any, inner: Make) -> None:
    """The part asked for goes with a schema of that part, for the host showed it takes one."""

    def demand(*names: str) -> dict[str, Any]:
        schema = {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": list(names),
        }
        return {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}

    llm = StepCacheLLM(llm=inner())
    messages = user("Describe 'Paris' as a JSON object.")
    llm.chat(messages, response_format=demand("name", "country"))
    response = llm.chat(messages, response_format=demand("name", "country", "river"))
    assert response.additional_kwargs["stepcache"]["route"] == "patch"
    assert list(json.loads(str(response.message.content))) == ["name", "country", "river"]
    part = endpoint.asked[-1]["response_format"]["json_schema"]["schema"]
    assert list(part["properties"]) == ["river"]


def test_as_structured_llm(endpoint: Any, inner: Make) -> None:
    """The host's structured view of the wrapper works and is served."""
    llm = StepCacheLLM(llm=inner()).as_structured_llm(Weather)
    for _ in range(2):
        assert llm.chat(user("weather in 'Rome' at 3")).raw == Weather(place="Rome", degrees=3)
    assert endpoint.calls == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda llm: llm.model_copy()])
def test_a_copy_is_itself(copied: Callable[[Any], Any], inner: Make) -> None:
    """A copy shares what was learnt, and its structured calls stay behind its own wall."""
    llm = StepCacheLLM(llm=inner())
    llm.structured_predict(Weather, PROMPT, degrees=7)
    # A deep copy cannot take open connections along, with or without us.
    llm.llm._client = None  # type: ignore[attr-defined]
    other = copied(llm)
    assert other.engine is llm.engine
    other.structured_predict(Weather, PROMPT, degrees=7)
    assert llm.engine.routes == {"miss": 1, "exact": 1}
    other.namespace = "b"
    other.structured_predict(Weather, PROMPT, degrees=7)
    assert llm.engine.routes == {"miss": 2, "exact": 1}


def test_the_callers_arguments_are_left_alone(inner: Make) -> None:
    """Providers write into ``llm_kwargs``; the caller's dict is not the one they get."""
    given: dict[str, Any] = {"max_tokens": 50}
    StepCacheLLM(llm=inner()).structured_predict(Weather, PROMPT, llm_kwargs=given, degrees=1)
    assert given == {"max_tokens": 50}


# --- settings, predict, query and chat engines -----------------------------------------------------


def test_predict_and_stream(endpoint: Any, inner: Make) -> None:
    """Prompt templates reach the cache, and the system prompt of the wrapped LLM the model."""
    llm = StepCacheLLM(llm=inner(system_prompt="Be brief."))
    template = PromptTemplate("Tell me of {what}.")
    first = llm.predict(template, what="ships")
    assert llm.predict(template, what="ships") == first
    assert "".join(llm.stream(template, what="ships")) == first
    assert endpoint.asked[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert endpoint.calls == 1


def test_a_query_engine_over_the_settings(endpoint: Any, inner: Make) -> None:
    """``Settings.llm = StepCacheLLM(...)`` is all an application has to change."""
    llm = StepCacheLLM(llm=inner())
    Settings.llm, Settings.embed_model = llm, MockEmbedding(embed_dim=4)
    assert Settings.llm is llm
    index = SummaryIndex.from_documents([Document(text="The sky is blue.")])
    first = str(index.as_query_engine().query("What colour is the sky?"))
    asked = endpoint.calls
    assert str(index.as_query_engine().query("What colour is the sky?")) == first
    streamed = index.as_query_engine(streaming=True).query("What colour is the sky?")
    assert "".join(streamed.response_gen) == first  # type: ignore[union-attr]
    assert endpoint.calls == asked


def test_a_chat_engine_over_the_settings(endpoint: Any, inner: Make) -> None:
    """A second, equal conversation is served to its end."""
    Settings.llm = StepCacheLLM(llm=inner())
    Settings.embed_model = MockEmbedding(embed_dim=4)
    index = SummaryIndex.from_documents([Document(text="The sky is blue.")])
    asked = []
    for _ in range(2):
        chat = index.as_chat_engine(chat_mode="condense_plus_context", memory=memory())
        assert str(chat.chat("Hello."))
        assert str(chat.chat("And the sky?"))
        asked.append(endpoint.calls)
    assert asked[0] == asked[1] > 0


# --- import --------------------------------------------------------------------------------------


def test_without_llamaindex_the_error_names_the_extra() -> None:
    """Importing the package where LlamaIndex is not installed says what to install."""
    script = textwrap.dedent(
        """
        import sys

        class NotThere:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "llama_index":
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
                return None

        sys.meta_path.insert(0, NotThere())
        try:
            import llamaindex_stepcache
        except ImportError as error:
            assert "stepcache[llamaindex]" in str(error), error
        else:
            raise SystemExit("it was imported")
        """
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
