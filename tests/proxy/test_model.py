"""The proxy before a real local language model, counted at the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from langchain_openai import ChatOpenAI
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from pydantic import create_model

from stepcache.proxy import ProxyServer, ProxySettings, create_app
from stepcache.testing.wire import CountingProxy

from .conftest import http

pytestmark = pytest.mark.model

FIXED: dict[str, Any] = {"model": "smollm2", "temperature": 0, "max_tokens": 120}


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
    with CountingProxy(served) as counting:
        yield counting


@pytest.fixture
def url(wire: CountingProxy) -> Iterator[str]:
    """A proxy before it."""
    settings = ProxySettings(count_streams=True, prefill=True)
    with ProxyServer(create_app(wire.url, settings=settings)) as server:
        yield server.url


def equation(number: int) -> list[Any]:
    """A request that is verified step by step."""
    return [{"role": "user", "content": f"Solve 2x + 3 = {number} for x."}]


async def test_every_client_gets_the_same_answer(wire: CountingProxy, url: str) -> None:
    """One call of the model for all of them, sync, async, streamed or not."""
    fields = {"base_url": url, "api_key": "none", "max_retries": 0}
    client = openai.OpenAI(**fields)  # type: ignore[arg-type]
    first = client.chat.completions.create(messages=equation(13), **FIXED)
    text = first.choices[0].message.content
    assert text
    assert "5" in text
    calls, tokens = wire.calls, wire.tokens
    assert calls >= 1
    texts = [
        "".join(
            chunk.choices[0].delta.content or ""
            for chunk in client.chat.completions.create(messages=equation(13), stream=True, **FIXED)
        )
    ]
    async with openai.AsyncOpenAI(**fields) as asynchronous:  # type: ignore[arg-type]
        again = await asynchronous.chat.completions.create(messages=equation(13), **FIXED)
        texts.append(again.choices[0].message.content or "")
    assert (wire.calls, wire.tokens) == (calls, tokens)
    chat = ChatOpenAI(
        base_url=url,
        api_key="none",  # type: ignore[arg-type]
        model="smollm2",
        temperature=0,
        max_tokens=120,  # type: ignore[call-arg]
    )
    message = equation(13)[0]["content"]
    texts += [
        "".join(chunk.text for chunk in chat.stream(message, stop=None)),
        chat.invoke(message).text,
    ]
    # LangChain sends other parameters, so it has an entry of its own; LlamaIndex the same ones.
    assert texts[:2] == [text] * 2
    assert texts[2] == texts[3]
    llm = OpenAILike(
        model="smollm2",
        api_base=url,
        api_key="none",
        is_chat_model=True,
        temperature=0,
        max_tokens=120,
    )
    said = llm.chat([ChatMessage(role="user", content=message)]).message.content
    assert (
        said
        == text
        == list(llm.stream_chat([ChatMessage(role="user", content=message)]))[-1].message.content
    )
    stats = http.get(url.removesuffix("v1") + "stepcache/stats").json()
    assert stats["spent"]["tokens"] == wire.tokens > 0
    assert stats["routes"]["exact"] == 5
    assert stats["faults"] == 0


def test_a_changed_request_costs_nothing(wire: CountingProxy, url: str) -> None:
    """Steps are derived for the new numbers, and streamed as verified ones."""
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    client.chat.completions.create(messages=equation(13), **FIXED)
    calls = wire.calls
    raw = client.chat.completions.with_raw_response.create(messages=equation(23), **FIXED)
    assert raw.headers["x-stepcache-route"] == "adapt"
    assert "10" in (raw.parse().choices[0].message.content or "")
    assert wire.calls == calls


# The model is told a class's name: of another name it is another request.
SMALL = create_model("City", name=(str, ...), country=(str, ...))
LARGER = create_model("City", __base__=SMALL, river=(str, ...))


def test_a_missing_key_is_asked_for_alone(wire: CountingProxy, url: str) -> None:
    """``parse`` with a larger class: the values that are there stay, at less than a whole answer."""
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": "Describe the city of Paris."}]
    first = client.chat.completions.parse(messages=messages, response_format=SMALL, **FIXED)
    before = first.choices[0].message.parsed
    assert before is not None
    second = client.chat.completions.parse(messages=messages, response_format=LARGER, **FIXED)
    after = second.choices[0].message.parsed
    assert after is not None
    assert {**before.model_dump(), "river": after.river} == after.model_dump()  # type: ignore[attr-defined]
    stats = http.get(url.removesuffix("v1") + "stepcache/stats").json()
    assert stats["routes"] == {"miss": 1, "patch": 1}
    assert stats["spent"]["tokens"] == wire.tokens


def test_the_servers_other_paths(served: str) -> None:
    """Models, its own tokenizer, and what it does not know."""
    with ProxyServer(create_app(served)) as server:
        hand_on(server.url, served)


def hand_on(url: str, served: str) -> None:
    """The proxy at ``url`` says what the server says."""
    assert http.get(f"{url}/models").json()["data"][0]["id"] == "smollm2"
    mine = http.post(url.removesuffix("v1") + "tokenize", json={"content": "Hello there"})
    theirs = http.post(served.removesuffix("v1") + "tokenize", json={"content": "Hello there"})
    assert mine.json() == theirs.json()
    assert http.get(f"{url}/nowhere").status_code == http.get(f"{served}/nowhere").status_code
    assert json.loads(http.get(url.removesuffix("v1") + "props").content)["total_slots"] >= 1
