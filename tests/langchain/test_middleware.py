"""Agents: the second run asks the model nothing, in every way an agent can be run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from langchain_stepcache import StepCacheChatModel, StepCacheMiddleware
from stepcache import StepCacheEngine
from stepcache.testing.endpoint import ScriptedEndpoint
from stepcache.testing.obliging import obliging

Make = Callable[..., ChatOpenAI]
ASK = {"messages": [("user", "What is the river of 'Rome'?")]}


def river(city: str) -> str:
    """The river of a city."""
    return f"The Tiber flows through {city}."


def lake(city: str) -> str:
    """A lake near a city."""
    return f"There is no lake near {city}."


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """A model that calls the first tool once, then answers."""
    with ScriptedEndpoint(obliging) as running:
        yield running


class Counted(AgentMiddleware):
    """Counts the model calls that reach the agent's own code."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.calls += 1
        return handler(request)


def texts(result: Any) -> list[tuple[str, str, list[str]]]:
    """Kind, text and called tools of each message."""
    return [
        (m.type, m.text, [c["name"] for c in getattr(m, "tool_calls", None) or ()])
        for m in result["messages"]
    ]


def paired(messages: list[Any]) -> bool:
    """Whether every tool result answers a call of the thread, and no id comes twice."""
    calls = [c["id"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
    results = [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]
    ids = [m.id for m in messages]
    return (
        set(results) <= set(calls) and len(calls) == len(set(calls)) and len(ids) == len(set(ids))
    )


def test_the_second_run_asks_nothing(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Two model calls the first time, none the second; the same conversation with fresh ids."""
    agent = create_agent(chat(), [river], middleware=[StepCacheMiddleware()])
    first, second = agent.invoke(ASK), agent.invoke(ASK)
    assert endpoint.calls == 2
    assert [kind for kind, _, _ in texts(first)] == ["human", "ai", "tool", "ai"]
    assert texts(first) == texts(second)
    assert paired(first["messages"])
    assert paired(second["messages"])
    one, two = (r["messages"][1].tool_calls[0]["id"] for r in (first, second))
    assert one != two


def test_a_thread_may_call_the_same_tool_again(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The same turn twice in one thread: ids stay apart, so nothing collapses."""
    agent = create_agent(chat(), [river], middleware=[StepCacheMiddleware()])
    once = agent.invoke(ASK)
    again = agent.invoke(ASK)
    thread = agent.invoke({"messages": [*once["messages"], *again["messages"], *ASK["messages"]]})
    assert paired(thread["messages"])
    assert len(thread["messages"]) == 12


async def test_asynchronous_agents(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """``ainvoke``, and what a synchronous run has learnt."""
    async with httpx.AsyncClient() as client:
        engine = StepCacheEngine()
        agent = create_agent(
            chat(http_async_client=client), [river], middleware=[StepCacheMiddleware(engine=engine)]
        )
        first, second = await agent.ainvoke(ASK), await agent.ainvoke(ASK)
        assert (endpoint.calls, texts(first)) == (2, texts(second))


@pytest.mark.parametrize("mode", ["values", "updates", "messages"])
def test_streaming_agents(chat: Make, endpoint: ScriptedEndpoint, mode: str) -> None:
    """By whole states, by updates, by tokens: the second stream makes no call."""
    agent = create_agent(chat(), [river], middleware=[StepCacheMiddleware()])
    for _ in range(2):
        parts = list(agent.stream(ASK, stream_mode=mode))
        assert endpoint.calls == 2
    if mode == "messages":
        text = "".join(m.text for m, _ in parts if isinstance(m, AIMessageChunk))
        assert text == "The tool says: The Tiber flows through Rome."


def test_no_word_of_a_patch_reaches_the_reader(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """What is asked for beside the user's call is not streamed as part of the answer."""
    cities = {"name": "Rome", "country": "Italy", "river": "Tiber"}
    import json

    def script(request: Any) -> Any:
        text = str(request["messages"][-1]["content"])
        keys = ["river"] if "only the keys" in text else [k for k in cities if k in text]
        return json.dumps({k: cities[k] for k in keys})

    endpoint.answer = script
    agent = create_agent(chat(), [], middleware=[StepCacheMiddleware()])
    ask = "Describe Rome as a JSON object with keys name, country"
    agent.invoke({"messages": [("user", f"{ask}.")]})
    parts = agent.stream({"messages": [("user", f"{ask}, river.")]}, stream_mode="messages")
    messages = [m for m, _ in parts]
    text = "".join(m.text for m in messages)
    assert json.loads(text) == cities
    assert messages[-1].response_metadata["stepcache"]["route"] == "patch"
    assert endpoint.calls == 2


def test_other_tools_are_another_request(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """An answer that calls a tool is never served where that tool is not offered."""
    middleware = StepCacheMiddleware()
    create_agent(chat(), [river], middleware=[middleware]).invoke(ASK)
    result = create_agent(chat(), [lake], middleware=[middleware]).invoke(ASK)
    assert texts(result)[1][2] == ["lake"]
    assert endpoint.calls == 4


class Answer(BaseModel):
    """What is known of a city."""

    city: str
    population: int


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy, None])
def test_structured_responses_come_from_hits_too(
    chat: Make, endpoint: ScriptedEndpoint, strategy: Any
) -> None:
    """Parsed by the agent's own code, into the caller's own class."""
    wanted = strategy(Answer) if strategy else Answer
    agent = create_agent(chat(), [], middleware=[StepCacheMiddleware()], response_format=wanted)
    results = [agent.invoke({"messages": [("user", "Describe 'Rome', 28.")]}) for _ in range(2)]
    assert [r["structured_response"] for r in results] == [Answer(city="Rome", population=28)] * 2
    assert endpoint.calls == 1


def test_tokens_are_counted_once(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The usage callback agrees with the server over a cold and a warm run."""
    agent = create_agent(chat(), [river], middleware=[StepCacheMiddleware()])
    with get_usage_metadata_callback() as counted:
        agent.invoke(ASK)
        agent.invoke(ASK)
    assert sum(u["total_tokens"] for u in counted.usage_metadata.values()) == endpoint.tokens


def test_one_call_may_ask_otherwise(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The agent's configuration reaches the cache: bypass, tags."""
    middleware = StepCacheMiddleware()
    agent = create_agent(chat(), [river], middleware=[middleware])
    agent.invoke(ASK, {"configurable": {"stepcache": {"bypass": True}}})
    assert middleware.engine.count() == 0
    agent.invoke(ASK, {"configurable": {"stepcache": {"tags": "daily"}}})
    assert middleware.forget(tag="daily") == 2
    assert endpoint.calls == 4


def test_other_middleware_keeps_working(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Each call passes through all of it, hit or miss."""
    counted = Counted()
    agent = create_agent(chat(), [river], middleware=[counted, StepCacheMiddleware()])
    agent.invoke(ASK)
    agent.invoke(ASK)
    assert (counted.calls, endpoint.calls) == (4, 2)


def test_a_wrapped_model_is_not_wrapped_again(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Its own engine answers, and nothing is kept twice."""
    middleware = StepCacheMiddleware()
    model = StepCacheChatModel(llm=chat())
    agent = create_agent(model, [river], middleware=[middleware])
    agent.invoke(ASK)
    agent.invoke(ASK)
    assert (middleware.engine.count(), model.engine.count(), endpoint.calls) == (0, 2, 2)


def test_a_reported_answer_is_asked_for_again(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The entry is named on the message."""
    middleware = StepCacheMiddleware()
    agent = create_agent(chat(), [], middleware=[middleware])
    ask = {"messages": [("user", "Name a river.")]}
    message = agent.invoke(ask)["messages"][-1]
    assert middleware.report_bad(message.response_metadata["stepcache"]["entry_id"])
    agent.invoke(ask)
    agent.invoke(ask)
    assert endpoint.calls == 3


def test_without_langchain_the_rest_can_be_imported() -> None:
    """The middleware alone needs it, and says so."""
    program = """
import sys
sys.modules["langchain"] = None
from langchain_stepcache import StepCache, StepCacheChatModel
try:
    from langchain_stepcache import StepCacheMiddleware
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'langchain" in done.stdout
