"""``StepCacheLLM`` over a real local language model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

from llamaindex_stepcache import StepCacheLLM

pytestmark = pytest.mark.model


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


async def test_a_script_over_a_real_model(served: str) -> None:
    """Every answer to an equation is right, and the second run asks nothing in any mode."""
    inner = OpenAILike(
        model="smollm2",
        api_base=served,
        api_key="none",
        is_chat_model=True,
        temperature=0.0,
        max_tokens=160,
        max_retries=0,
    )
    llm = StepCacheLLM(llm=inner)
    equation = [ChatMessage(role="user", content="Solve 2x + 3 = 13 for x.")]
    reworded = [ChatMessage(role="user", content="Please solve 3 + 2x = 13 for x.")]
    first = llm.chat(equation)
    summary: dict[str, Any] = first.additional_kwargs["stepcache"]
    assert summary["route"] in ("miss", "fallback")
    assert summary["spent"]["completion_tokens"] > 0
    assert "5" in str(first.message.content)
    seen = [
        llm.chat(equation),
        await llm.achat(equation),
        list(llm.stream_chat(equation))[-1],
        [chunk async for chunk in await llm.astream_chat(equation)][-1],
    ]
    assert {r.message.content for r in seen} == {first.message.content}
    assert {r.additional_kwargs["stepcache"]["route"] for r in seen} == {"exact"}
    again = llm.chat(reworded)
    assert again.additional_kwargs["stepcache"]["route"] == "reuse"
    assert again.additional_kwargs["stepcache"]["spent"]["calls"] == 0
    assert again.message.content == first.message.content


def test_a_real_stream_passes_through_and_is_kept(served: str) -> None:
    """Free text streams as the model makes it, and is served whole the second time."""
    inner = OpenAILike(
        model="smollm2",
        api_base=served,
        api_key="none",
        is_chat_model=True,
        temperature=0.0,
        max_tokens=60,
        max_retries=0,
        additional_kwargs={"stream_options": {"include_usage": True}, "stop": ["."]},
    )
    llm = StepCacheLLM(llm=inner)
    question = [ChatMessage(role="user", content="Say hello in one short sentence.")]
    live = list(llm.stream_chat(question))
    assert len(live) > 3
    told = live[-1].additional_kwargs["stepcache"]
    assert (told["route"], told["spent"]["calls"]) == ("miss", 1)
    assert told["spent"]["completion_tokens"] > 0
    again = list(llm.stream_chat(question))
    assert again[-1].additional_kwargs["stepcache"]["route"] == "exact"
    assert again[-1].message.content == live[-1].message.content
