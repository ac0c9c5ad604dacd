"""``StepCacheLLM`` over a real local language model, counted at the wire.

Between the LLM and the server stands a proxy that adds up the usage the server tells, so that what
we say of tokens is held against what was delivered and not against ourselves.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

from llamaindex_stepcache import StepCacheLLM, StepCacheTokenCounter

pytestmark = pytest.mark.model


@dataclass
class Wire:
    """What went over the wire so far, by the server's own count."""

    url: str = ""
    calls: int = 0
    tokens: int = 0


class _Proxy(BaseHTTPRequestHandler):
    wire: Wire
    target: str

    def log_message(self, *_: Any) -> None:
        """Stay silent."""

    def do_POST(self) -> None:
        self.wire.calls += 1
        body = self.rfile.read(int(self.headers["content-length"]))
        address = self.target + self.path.removeprefix("/v1")
        request = urllib.request.Request(
            address, data=body, headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            self.send_response(answer.status)
            self.send_header("content-type", answer.headers["content-type"])
            self.end_headers()
            for line in answer:
                self._note(line)
                self.wfile.write(line)
                self.wfile.flush()
        self.close_connection = True

    def _note(self, line: bytes) -> None:
        text = line.decode().removeprefix("data: ").strip()
        if text.startswith("{"):
            self.wire.tokens += (json.loads(text).get("usage") or {}).get("total_tokens", 0)


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
def wire(served: str) -> Iterator[Wire]:
    """A counting proxy before the server."""
    wire = Wire()
    handler = type("Handler", (_Proxy,), {"wire": wire, "target": served})
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    proxy.daemon_threads = True
    wire.url = f"http://127.0.0.1:{proxy.server_address[1]}/v1"
    threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
    yield wire
    proxy.shutdown()
    proxy.server_close()


@pytest.fixture
def model(wire: Wire) -> Callable[..., OpenAILike]:
    """Makes an ordinary LlamaIndex LLM at the local model."""

    def make(**changes: Any) -> OpenAILike:
        settings: dict[str, Any] = {
            "model": "smollm2",
            "api_base": wire.url,
            "api_key": "none",
            "is_chat_model": True,
            "temperature": 0.0,
            "max_tokens": 160,
            "max_retries": 0,
        }
        return OpenAILike(**{**settings, **changes})

    return make


STREAMED = {"additional_kwargs": {"stream_options": {"include_usage": True}, "stop": ["."]}}
WHOLE = {"additional_kwargs": {"stop": ["."]}}
SCRIPT = (
    "Solve 2x + 3 = 13 for x.",
    "Please solve 3 + 2x = 13 for x.",
    "Say hello in one short sentence.",
    "Solve 4x + 3 = 23 for x.",
)


async def _run(llm: StepCacheLLM, method: str) -> list[Any]:
    """The last response to each question of the script."""
    last: list[Any] = []
    for question in SCRIPT:
        messages = [ChatMessage(role="user", content=question)]
        if method == "chat":
            last.append(llm.chat(messages))
        elif method == "achat":
            last.append(await llm.achat(messages))
        elif method == "stream_chat":
            last.append(list(llm.stream_chat(messages))[-1])
        else:
            last.append([chunk async for chunk in await llm.astream_chat(messages)][-1])
    return last


@pytest.mark.parametrize("method", ["chat", "achat", "stream_chat", "astream_chat"])
async def test_a_script_run_twice(
    method: str, wire: Wire, model: Callable[..., OpenAILike]
) -> None:
    """The second run makes no model call, in this and in every other mode; answers are equal, right
    where they can be checked, and all counters agree with the server's own."""
    counter = StepCacheTokenCounter(tokenizer=str.split)
    inner = model(**(STREAMED if "stream" in method else WHOLE))
    llm = StepCacheLLM(llm=inner, callback_manager=CallbackManager([counter]))
    first = await _run(llm, method)
    calls, tokens = wire.calls, wire.tokens
    assert calls >= 2
    assert tokens > 0
    texts = [response.message.content for response in first]
    assert ["5" in texts[0], "5" in texts[1], "5" in texts[3]] == [True] * 3
    assert first[1].additional_kwargs["stepcache"]["route"] in ("reuse", "exact")
    for mode in ("chat", "achat", "stream_chat", "astream_chat"):
        again = await _run(llm, mode)
        assert [response.message.content for response in again] == texts
        routes = {response.additional_kwargs["stepcache"]["route"] for response in again}
        assert routes == {"exact"}
        assert {response.additional_kwargs["total_tokens"] for response in again} == {0}
    assert (wire.calls, wire.tokens) == (calls, tokens)
    assert (llm.spent.calls, llm.spent.tokens) == (calls, tokens)
    assert counter.total_llm_token_count == tokens
    assert llm.avoided.calls >= 4 * len(SCRIPT)


class City(BaseModel):
    """A city."""

    name: str
    country: str


class _LargerCity(BaseModel):
    """A city."""

    name: str
    country: str
    river: str


_LargerCity.__name__ = _LargerCity.__qualname__ = "City"
PROMPT = PromptTemplate("Describe the city of {city}.")


async def test_structured_output_over_a_real_model(
    wire: Wire, model: Callable[..., OpenAILike]
) -> None:
    """A class comes back from a miss and from hits in all four forms; one more field is all that a
    larger class asks for, and what was known is kept."""
    inner = model(should_use_structured_outputs=True, is_function_calling_model=True)
    llm = StepCacheLLM(llm=inner)
    first = llm.structured_predict(City, PROMPT, city="Paris")
    assert type(first) is City
    calls = wire.calls
    assert await llm.astructured_predict(City, PROMPT, city="Paris") == first
    assert list(llm.stream_structured_predict(City, PROMPT, city="Paris"))[-1] == first
    stream = await llm.astream_structured_predict(City, PROMPT, city="Paris")
    assert [item async for item in stream][-1] == first
    view = llm.as_structured_llm(City)
    message = ChatMessage(role="user", content="Describe the city of Paris.")
    assert view.chat([message]).raw == first
    assert wire.calls == calls
    larger = llm.structured_predict(_LargerCity, PROMPT, city="Paris")
    assert type(larger) is _LargerCity
    assert (larger.name, larger.country) == (first.name, first.country)
    assert larger.river
    assert llm.engine.routes["patch"] == 1
    asked = wire.calls
    assert await llm.astructured_predict(_LargerCity, PROMPT, city="Paris") == larger
    assert wire.calls == asked
    assert (llm.spent.calls, llm.spent.tokens) == (wire.calls, wire.tokens)
