"""LangChain's calls over a real local language model, counted at the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_openai import ChatOpenAI
from pydantic import create_model

from langchain_stepcache import StepCacheChatModel, StepCacheMiddleware
from stepcache import StepCacheEngine
from stepcache.testing.wire import CountingProxy

pytestmark = pytest.mark.model

SCRIPT = (
    "Solve 2x + 3 = 13 for x.",
    "Please solve 3 + 2x = 13 for x.",
    "Say hello in one short sentence.",
    "Solve 4x + 3 = 23 for x.",
)
MODES = ("invoke", "ainvoke", "stream", "astream", "batch", "agent")


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Address of a local server over the small model."""
    pytest.importorskip("xllamacpp", reason="the local server needs stepcache[demo]")
    from stepcache.demo._server import LocalModelServer
    from stepcache.demo._weights import MODELS, WeightsError, fetch

    try:
        path = fetch(MODELS["smollm2"])
    except WeightsError as error:
        pytest.skip(f"the model cannot be had: {error}")
    with LocalModelServer(path, name="smollm2") as server:
        yield server.base_url


@pytest.fixture
def wire(served: str) -> Iterator[CountingProxy]:
    """The server's own count."""
    with CountingProxy(served) as proxy:
        yield proxy


def joined(chunks: list[Any]) -> Any:
    """One message of all chunks."""
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


async def run(model: StepCacheChatModel, agent: Any, mode: str) -> list[Any]:
    """The answers to the script by one way of asking."""
    if mode == "batch":
        return model.batch(list(SCRIPT), {"max_concurrency": 1})
    answers: list[Any] = []
    for ask in SCRIPT:
        if mode == "invoke":
            answers.append(model.invoke(ask))
        elif mode == "ainvoke":
            answers.append(await model.ainvoke(ask))
        elif mode == "stream":
            answers.append(joined(list(model.stream(ask))))
        elif mode == "astream":
            answers.append(joined([chunk async for chunk in model.astream(ask)]))
        else:
            answers.append(agent.invoke({"messages": [("user", ask)]})["messages"][-1])
    return answers


@pytest.mark.parametrize("first", ["invoke", "astream", "agent"])
async def test_a_script_run_twice(wire: CountingProxy, first: str) -> None:
    """The first run fills the cache in one mode; after it no mode makes a model call, answers are
    equal, and the usage callback agrees with the server's own count."""
    async with httpx.AsyncClient(timeout=600) as client:
        inner = ChatOpenAI(
            model="smollm2",
            base_url=wire.url,
            api_key="none",
            temperature=0,
            max_tokens=160,
            max_retries=0,
            stream_usage=True,
            stop=["."],
            http_async_client=client,
        )
        engine = StepCacheEngine()
        model = StepCacheChatModel(llm=inner, engine=engine)
        agent = create_agent(inner, [], middleware=[StepCacheMiddleware(engine=engine)])
        with get_usage_metadata_callback() as counted:
            made = await run(model, agent, first)
            calls, tokens = wire.calls, wire.tokens
            texts = [message.text for message in made]
            assert ["5" in texts[0], "5" in texts[1], "5" in texts[3]] == [True] * 3
            for mode in MODES:
                again = await run(model, agent, mode)
                assert [message.text for message in again] == texts
                routes = {m.response_metadata["stepcache"]["route"] for m in again}
                assert routes == {"exact"}
        assert (wire.calls, wire.tokens) == (calls, tokens)
        assert calls >= 2
        assert sum(u["total_tokens"] for u in counted.usage_metadata.values()) == tokens > 0


def test_structured_output_over_a_real_model(wire: CountingProxy) -> None:
    """A class from a miss and a hit; a class with one more field asks for that field only."""
    inner = ChatOpenAI(
        model="smollm2", base_url=wire.url, api_key="none", temperature=0, max_tokens=160
    )
    model = StepCacheChatModel(llm=inner, constrain=True)
    city = create_model("City", name=(str, ...), country=(str, ...))
    larger = create_model("City", name=(str, ...), country=(str, ...), river=(str, ...))
    ask = "Describe the city of Paris."
    first = model.with_structured_output(city).invoke(ask)
    assert isinstance(first, city)
    calls = wire.calls
    assert model.with_structured_output(city).invoke(ask) == first
    assert wire.calls == calls
    second = model.with_structured_output(larger).invoke(ask)
    assert isinstance(second, larger)
    assert (second.name, second.country) == (first.name, first.country)  # type: ignore[attr-defined]
    assert model.engine.routes["patch"] == 1
    asked = wire.calls
    assert model.with_structured_output(larger).invoke(ask) == second
    assert wire.calls == asked
