"""What tracers see of an answer: LangSmith's own client and tracer, sending to a collector here."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tracers import LangChainTracer
from langsmith import Client

from langchain_stepcache import StepCache, StepCacheChatModel, StepCacheMiddleware
from stepcache.telemetry import Savings

ROME = "Describe Rome as a JSON object with keys name, country."
MORE = "Describe Rome as a JSON object with keys name, country, river."


class Collector:
    """A LangSmith that keeps what it is sent, run by run."""

    def __init__(self, url: str) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.client = Client(
            api_url=url,
            api_key="none",
            auto_batch_tracing=False,
            info={"version": "0", "instance_flags": {}},
        )

    def tracer(self) -> LangChainTracer:
        return LangChainTracer(client=self.client)

    def of_models(self) -> list[dict[str, Any]]:
        """The metadata of the model runs that were answered, in order of their beginning."""
        runs = [run for run in self.runs.values() if run.get("run_type") == "llm"]
        runs.sort(key=lambda run: run["start_time"])
        return [run["extra"]["metadata"] for run in runs]


@pytest.fixture
def collector() -> Iterator[Collector]:
    kept: list[Collector] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._take(None)

        def do_PATCH(self) -> None:
            self._take(self.path.rpartition("/")[2])

        def _take(self, run: str | None) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            told = {name: value for name, value in body.items() if value is not None}
            kept[0].runs.setdefault(run or told["id"], {}).update(told)
            self.send_response(202)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *told: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kept.append(Collector(f"http://127.0.0.1:{server.server_address[1]}"))
    yield kept[0]
    kept[0].client.cleanup()
    server.shutdown()
    server.server_close()
    thread.join(60)


WAYS = ("invoke", "ainvoke", "batch", "abatch", "stream", "astream")


async def _ask(model: Any, way: str, text: str, config: Any) -> None:
    if way.removeprefix("a") == "batch":
        result = getattr(model, way)([text], config)
    else:
        result = getattr(model, way)(text, config)
    if way == "astream":
        async for _ in result:
            pass
    elif way.startswith("a"):
        await result
    else:
        list(result)


@pytest.mark.parametrize("way", WAYS)
async def test_the_run_of_an_answer_says_how_it_came(
    way: str, chat: Callable[..., Any], collector: Collector
) -> None:
    """Route, code, entry and avoided tokens, flat in the run's metadata, where they are filters."""
    savings = Savings()
    tracer = collector.tracer()
    async with httpx.AsyncClient() as client:
        llm = chat(stream_usage=True, http_async_client=client)
        model = StepCacheChatModel(llm=llm, listeners=[savings])
        for text in (ROME, ROME, MORE):
            await _ask(model, way, text, {"callbacks": [tracer]})
    tracer.wait_for_futures()
    told = collector.of_models()
    assert [each["stepcache_route"] for each in told] == ["miss", "exact", "patch"]
    assert [each["stepcache_code"] for each in told] == [
        "nothing-near",
        "same-request",
        "missing-keys",
    ]
    assert {each["stepcache_task"] for each in told} == {"json"}
    assert told[0]["stepcache_entry_id"] == told[1]["stepcache_entry_id"]
    assert told[0]["stepcache_spent_calls"] == told[1]["stepcache_avoided_calls"] == 1
    assert told[1]["stepcache_spent_tokens"] == 0
    assert told[1]["stepcache_avoided_tokens"] == told[0]["stepcache_spent_tokens"] > 0
    assert told[1]["usage_metadata"]["total_tokens"] == 0
    assert savings.total.requests == 3


def test_runs_of_a_batch_are_not_mixed_up(chat: Callable[..., Any], collector: Collector) -> None:
    """Each run of one batch, under way at once with the same callbacks, has its own entry."""
    model = StepCacheChatModel(llm=chat())
    texts = [ROME, "Solve 2x + 3 = 13 for x.", "Name a river."]
    tracer = collector.tracer()
    ((ChatPromptTemplate.from_template("{text}")) | model).batch(
        [{"text": text} for text in texts], {"callbacks": [tracer]}
    )
    tracer.wait_for_futures()
    tasks = {each["stepcache_task"] for each in collector.of_models()}
    assert tasks == {"json", "linear-equation", "text"}
    assert len({each["stepcache_entry_id"] for each in collector.of_models()}) == 3


def test_any_other_handler_reads_it_in_the_message(chat: Callable[..., Any]) -> None:
    """A handler that is no tracer is left alone and finds the same in the answer."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseCallbackHandler):
        run_map = "mine"

        def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
            message: Any = response.generations[0][0]
            seen.append(message.message.response_metadata["stepcache"])

    model = StepCacheChatModel(llm=chat())
    for _ in range(2):
        model.invoke(ROME, {"callbacks": [Handler()]})
    assert [(each["route"], each["code"], each["task"]) for each in seen] == [
        ("miss", "nothing-near", "json"),
        ("exact", "same-request", "json"),
    ]


def test_a_tracer_that_fails_hurts_nobody(
    chat: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The answer is as ever, and the log says that a tracer was not told, not what it said."""

    class Run:
        def add_metadata(self, told: dict[str, Any]) -> None:
            raise RuntimeError(ROME)

    class Runs(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            uuid.UUID(key)
            return Run()

    class Handler(BaseCallbackHandler):
        run_map = Runs()

    model = StepCacheChatModel(llm=chat())
    assert "Italy" in str(model.invoke(ROME, {"callbacks": [Handler()]}).content)
    assert "a tracer was not told: RuntimeError" in caplog.text
    assert "Rome" not in caplog.text


def test_listeners_are_taken_by_every_face(chat: Callable[..., Any]) -> None:
    """The chat model, the cache and the middleware hand them to their engine."""
    savings = Savings()
    for face in (
        StepCacheChatModel(llm=chat(), listeners=[savings]),
        StepCache(listeners=[savings]),
        StepCacheMiddleware(listeners=[savings]),
    ):
        assert face.engine.listeners == (savings,)
    model = chat(cache=StepCache(listeners=[savings]))
    for _ in range(2):
        model.invoke(ROME)
    assert savings.total.routes == {"miss": 1, "exact": 1}
