"""The support table, cell by cell: each call by each face, looked up, patched, streamed?

``StepCache`` is given the model (``model=``), so that it may patch. Text-completion models pass
through it; see ``test_traps`` 13.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_openai import ChatOpenAI

from langchain_stepcache import StepCache, StepCacheChatModel, StepCacheMiddleware
from stepcache.testing.endpoint import ScriptedEndpoint

Make = Callable[..., ChatOpenAI]
MATH = "Solve 2x + 3 = 13 for x."
ROME = "Describe Rome as a JSON object with keys name, country."
ROME_AND_RIVER = "Describe Rome as a JSON object with keys name, country, river."

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")


async def _invoke(model: Any, ask: str) -> list[str]:
    return [model.invoke(ask).text]


async def _ainvoke(model: Any, ask: str) -> list[str]:
    return [(await model.ainvoke(ask)).text]


async def _batch(model: Any, ask: str) -> list[str]:
    return [model.batch([ask])[0].text]


async def _abatch(model: Any, ask: str) -> list[str]:
    return [(await model.abatch([ask]))[0].text]


async def _batch_as_completed(model: Any, ask: str) -> list[str]:
    return [message.text for _, message in model.batch_as_completed([ask])]


async def _generate(model: Any, ask: str) -> list[str]:
    return [model.generate([[HumanMessage(ask)]]).generations[0][0].text]


async def _agenerate(model: Any, ask: str) -> list[str]:
    return [(await model.agenerate([[HumanMessage(ask)]])).generations[0][0].text]


async def _stream(model: Any, ask: str) -> list[str]:
    return [chunk.text for chunk in model.stream(ask)]


async def _astream(model: Any, ask: str) -> list[str]:
    return [chunk.text async for chunk in model.astream(ask)]


async def _stream_events_v3(model: Any, ask: str) -> list[str]:
    return list(model.stream_events(ask, version="v3").text)


async def _astream_events_v3(model: Any, ask: str) -> list[str]:
    stream = await model.astream_events(ask, version="v3")
    return [text async for text in stream.text]


async def _astream_events_v2(model: Any, ask: str) -> list[str]:
    return [
        event["data"]["chunk"].text
        async for event in model.astream_events(ask, version="v2")
        if event["event"] == "on_chat_model_stream"
    ]


async def _agent_invoke(agent: Any, ask: str) -> list[str]:
    return [agent.invoke({"messages": [("user", ask)]})["messages"][-1].text]


async def _agent_ainvoke(agent: Any, ask: str) -> list[str]:
    return [(await agent.ainvoke({"messages": [("user", ask)]}))["messages"][-1].text]


async def _agent_stream(agent: Any, ask: str) -> list[str]:
    parts = agent.stream({"messages": [("user", ask)]}, stream_mode="messages")
    messages = [message for message, _ in parts]
    return [m.text for m in messages if isinstance(m, AIMessageChunk)] or [messages[-1].text]


async def _agent_astream(agent: Any, ask: str) -> list[str]:
    parts = agent.astream({"messages": [("user", ask)]}, stream_mode="messages")
    messages = [message async for message, _ in parts]
    return [m.text for m in messages if isinstance(m, AIMessageChunk)] or [messages[-1].text]


@dataclass(frozen=True)
class Cell:
    """What a face does for a call."""

    looked_up: bool = True
    patched: bool = True
    streamed: bool = False
    """On a hit, in more than one piece."""


WHOLE, PIECES, NOT = Cell(), Cell(streamed=True), Cell(looked_up=False, patched=False)

TABLE: dict[str, tuple[Any, dict[str, Cell]]] = {
    "invoke": (_invoke, {"cache": WHOLE, "model": WHOLE}),
    "ainvoke": (_ainvoke, {"cache": WHOLE, "model": WHOLE}),
    "batch": (_batch, {"cache": WHOLE, "model": WHOLE}),
    "abatch": (_abatch, {"cache": WHOLE, "model": WHOLE}),
    "batch_as_completed": (_batch_as_completed, {"cache": WHOLE, "model": WHOLE}),
    "generate": (_generate, {"cache": WHOLE, "model": WHOLE}),
    "agenerate": (_agenerate, {"cache": WHOLE, "model": WHOLE}),
    # LangChain asks no cache when a model is streamed; only a model of its own can.
    "stream": (_stream, {"cache": NOT, "model": PIECES}),
    "astream": (_astream, {"cache": NOT, "model": PIECES}),
    "stream_events v3": (_stream_events_v3, {"cache": NOT, "model": PIECES}),
    "astream_events v3": (_astream_events_v3, {"cache": NOT, "model": PIECES}),
    "astream_events v2": (_astream_events_v2, {"cache": NOT, "model": PIECES}),
    "agent.invoke": (_agent_invoke, {"cache": WHOLE, "model": WHOLE, "middleware": WHOLE}),
    "agent.ainvoke": (_agent_ainvoke, {"cache": WHOLE, "model": WHOLE, "middleware": WHOLE}),
    "agent.stream": (_agent_stream, {"cache": WHOLE, "model": PIECES, "middleware": PIECES}),
    "agent.astream": (_agent_astream, {"cache": WHOLE, "model": PIECES, "middleware": PIECES}),
}
CELLS = [(call, face) for call, (_, faces) in TABLE.items() for face in faces]


@pytest.mark.parametrize(("call", "face"), CELLS)
async def test_the_table_holds(
    chat: Make, endpoint: ScriptedEndpoint, call: str, face: str
) -> None:
    """Asked twice, asked for one key more, asked for steps: as the table says."""
    run: Callable[[Any, str], Awaitable[list[str]]] = TABLE[call][0]
    expected = TABLE[call][1][face]
    async with httpx.AsyncClient() as client:
        model: Any = chat(http_async_client=client)
        if face == "cache":
            model.cache = StepCache(model=model)
        elif face == "model":
            model = StepCacheChatModel(llm=model)
        if call.startswith("agent"):
            middleware = [StepCacheMiddleware()] if face == "middleware" else []
            model = create_agent(model, [], middleware=middleware)
        first = await run(model, ROME)
        again = await run(model, ROME)
        assert "".join(again) == "".join(first)
        looked_up = endpoint.calls == 1
        wider = "".join(await run(model, ROME_AND_RIVER))
        assert '"river": "Tiber"' in wider
        patched = "only the keys" in str(endpoint.requests[-1]["messages"][-1]["content"])
        await run(model, MATH)
        before = endpoint.calls
        pieces = [text for text in await run(model, MATH) if text]
        streamed = endpoint.calls == before and len(pieces) > 1
    assert Cell(looked_up=looked_up, patched=patched, streamed=streamed) == expected
