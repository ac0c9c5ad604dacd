"""Hazards known of caches before LlamaIndex, each by the name it has in our research.

``trap_n`` is an entry of the integration research's list of traps, ``peer_xn`` a complaint that
users of other caches have made. Those that another file tests on its own are not repeated here.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings
from llama_index.core.base.llms.types import CompletionResponse, ImageBlock, TextBlock
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import LLM, ChatMessage, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, PrivateAttr

from llamaindex_stepcache import StepCacheLLM, StepCacheTokenCounter
from stepcache import Policy, StepCacheEngine

Make = Callable[..., LLM]
TALK = "Say something about old ships."
SECRET = "sk-never-to-be-kept"
METHODS = (
    *("chat", "achat", "stream_chat", "astream_chat"),
    *("complete", "acomplete", "stream_complete", "astream_complete"),
)
STREAMS = tuple(name for name in METHODS if "stream" in name)
PROMPT = PromptTemplate("The weather in 'Oslo' at {degrees} degrees.")


def user(text: str) -> list[ChatMessage]:
    """A conversation of one question."""
    return [ChatMessage(role="user", content=text)]


def told(response: Any) -> dict[str, Any]:
    """What StepCache says of a response."""
    summary: dict[str, Any] = response.additional_kwargs["stepcache"]
    return summary


class Weather(BaseModel):
    """The weather somewhere."""

    place: str
    degrees: int


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


async def ask(llm: LLM, method: str, text: str = TALK, **kwargs: Any) -> list[Any]:
    """The pieces of an answer in any of the eight methods."""
    result = getattr(llm, method)(text if "complete" in method else user(text), **kwargs)
    if inspect.isawaitable(result):
        result = await result
    if hasattr(result, "__aiter__"):
        return [piece async for piece in result]
    return list(result) if inspect.isgenerator(result) else [result]


# --- traps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
async def test_trap_1_what_a_caller_changes_is_his_own(method: str, inner: Make) -> None:
    """Changing an answer, down to its blocks and raw form, changes nothing for the next caller."""
    llm = StepCacheLLM(llm=inner())
    first = (await ask(llm, method))[-1]
    text = str(first)
    for _ in range(3):
        response = (await ask(llm, method))[-1]
        assert str(response) == text
        if isinstance(response.raw, dict):
            response.raw["usage"]["total_tokens"] = -1
        response.additional_kwargs.clear()
        if "complete" in method:
            response.text = "ruined"
        else:
            response.message.blocks[0].text = "ruined"


def test_trap_4_ids_differ_within_a_thread(endpoint: Any, inner: Make) -> None:
    """The same call of a tool, served several times into one thread, has an id of its own each time."""
    llm = StepCacheLLM(llm=inner())
    tools = [FunctionTool.from_defaults(get_weather)]
    ids = []
    for _ in range(5):
        response = llm.chat_with_tools(tools, "weather in 'Rome'")
        [call] = llm.get_tool_calls_from_response(response)
        ids.append(call.tool_id)
        streamed = list(llm.stream_chat_with_tools(tools, "weather in 'Rome'"))[-1]
        [call] = llm.get_tool_calls_from_response(streamed)
        ids.append(call.tool_id)
    assert len(set(ids)) == 10
    assert endpoint.calls == 1


def test_trap_5_a_hit_has_whole_usage_of_nothing(inner: Make) -> None:
    """The three token counts are there on a hit, and all are 0."""
    llm = StepCacheLLM(llm=inner())
    llm.chat(user(TALK))
    hit = llm.chat(user(TALK))
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert [hit.additional_kwargs[name] for name in names] == [0, 0, 0]
    assert [hit.raw["usage"][name] for name in names] == [0, 0, 0]


async def test_trap_7_classes_of_one_name_get_their_own_answers(inner: Make) -> None:
    """Two classes that share a name and not their fields never receive each other's data."""

    def make(**kinds: type) -> type[BaseModel]:
        return type("Same", (BaseModel,), {"__annotations__": kinds, "__module__": "m"})

    one, two = make(place=str), make(count=int)
    modes: list[dict[str, Any]] = [
        {"should_use_structured_outputs": True},
        {"should_use_structured_outputs": False},
        {"is_function_calling_model": False},
    ]
    for mode in modes:
        llm = StepCacheLLM(llm=inner(**mode))
        for kind in (one, two, one, two):
            answer = llm.structured_predict(kind, PROMPT, degrees=7)
            assert type(answer) is kind
            assert type(await llm.astructured_predict(kind, PROMPT, degrees=7)) is kind


@pytest.mark.parametrize("by_schema", [True, False], ids=["by-schema", "by-tool"])
async def test_trap_8_after_a_patch_every_form_of_the_answer_agrees(
    by_schema: bool, endpoint: Any, inner: Make
) -> None:
    """The object, the message and the tool call of a patched answer all hold the patched data."""
    larger = type(
        "Weather",
        (Weather,),
        {"__annotations__": {"wind": str}, "__doc__": Weather.__doc__, "__module__": __name__},
    )
    llm = StepCacheLLM(llm=inner(should_use_structured_outputs=by_schema))
    llm.structured_predict(Weather, PROMPT, degrees=7)
    patched = llm.structured_predict(larger, PROMPT, degrees=7)
    assert llm.engine.routes == {"miss": 1, "patch": 1}
    assert patched.model_dump().keys() == {"place", "degrees", "wind"}
    again = await llm.astructured_predict(larger, PROMPT, degrees=7)
    streamed = list(llm.stream_structured_predict(larger, PROMPT, degrees=7))[-1]
    assert again == patched
    assert streamed.model_dump() == patched.model_dump()
    assert endpoint.calls == 2


def test_trap_10_no_secret_reaches_the_disk(inner: Make, tmp_path: Path) -> None:
    """Headers and keys of the wrapped LLM are not in the store's file, in no form."""
    path = tmp_path / "answers.db"
    llm = StepCacheLLM(llm=inner(default_headers={"Authorization": SECRET}), store=path)
    llm.chat(user(TALK), extra_headers={"x-key": SECRET})
    assert llm.engine.count() == 1
    llm.engine.close()
    assert all(SECRET.encode() not in part.read_bytes() for part in tmp_path.iterdir())


async def test_trap_16_a_streams_metadata_is_said_once(endpoint: Any, inner: Make) -> None:
    """Only the last chunk tells of tokens and of the cache, and its counts are the endpoint's."""
    usage = {"additional_kwargs": {"stream_options": {"include_usage": True}}}
    for method in ("stream_chat", "astream_chat"):
        llm = StepCacheLLM(llm=inner(**usage))
        for expected in (endpoint.delivered, 0):
            del expected
            before = endpoint.delivered
            chunks = await ask(llm, method)
            tokens = [c.additional_kwargs.get("total_tokens", 0) for c in chunks]
            assert sum(tokens) == tokens[-1] == endpoint.delivered - before
            assert [("stepcache" in c.additional_kwargs) for c in chunks[:-1]].count(True) == 0
        assert llm.spent.calls == 1


class _Limiter:
    """Counts how often somebody waited for it."""

    def __init__(self) -> None:
        self.waits = 0

    def acquire(self, *_: Any, **__: Any) -> None:
        self.waits += 1

    async def async_acquire(self, *_: Any, **__: Any) -> None:
        self.waits += 1


def test_trap_17_only_model_calls_wait_for_the_rate_limiter(inner: Make) -> None:
    """The wrapped LLM's limiter is passed by misses, and hits go by it."""
    made = inner()
    if "rate_limiter" not in type(made).model_fields:
        pytest.skip("this host has no rate limiters")
    limiter = _Limiter()
    made.__dict__["rate_limiter"] = limiter
    llm = StepCacheLLM(llm=made)
    assert llm.rate_limiter is None
    for _ in range(3):
        llm.chat(user(TALK))
    assert limiter.waits == 1


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda llm: llm.model_copy(), lambda llm: llm.controlled()],
    ids=["copy", "deepcopy", "model_copy", "controlled"],
)
def test_trap_20_a_copy_keeps_the_engine(again: Callable[[Any], Any], inner: Make) -> None:
    """However an application copies the LLM, it stays the same cache and the same counters."""
    llm = StepCacheLLM(llm=MockLLM())
    llm.chat(user(TALK))
    other = again(llm)
    assert told(other.chat(user(TALK)))["route"] == "exact"
    assert other.engine is llm.engine
    assert other.spent == llm.spent
    assert other.avoided.calls == llm.avoided.calls == 1


def test_trap_20_a_pickle_opens_the_same_store(tmp_path: Path) -> None:
    """An LLM that went to another process finds its store again, with its wishes and its wall."""
    llm = StepCacheLLM(
        llm=MockLLM(), store=tmp_path / "a.db", namespace="n", policy=Policy(max_repairs=0), ttl=99
    )
    llm.chat(user(TALK))
    other = pickle.loads(pickle.dumps(llm.controlled(tags=("t",))))
    assert other.engine is not llm.engine
    assert (other.namespace, other.engine.policy) == (llm.namespace, llm.engine.policy)
    assert told(other.chat(user(TALK)))["route"] == "exact"
    other.chat(user("And this?"))
    assert sum("t" in entry.tags for entry in other.engine.store.entries()) == 1
    assert told(llm.chat(user("And this?")))["route"] == "exact"
    llm.engine.close()
    other.engine.close()


def test_trap_22_another_schema_of_a_tool_is_another_request(endpoint: Any, inner: Make) -> None:
    """A tool call is never served where the tool, the choice or its strictness has changed."""

    def changed(city: str, days: int) -> str:
        """The weather in a city."""
        return city + str(days)

    llm = StepCacheLLM(llm=inner())
    one = FunctionTool.from_defaults(get_weather)
    two = FunctionTool.from_defaults(changed, name="get_weather")
    calls: list[dict[str, Any]] = [
        {"tools": [one]},
        {"tools": [two]},
        {"tools": [one, two]},
        {"tools": [one], "tool_choice": "none"},
        {"tools": [one], "tool_required": True},
    ]
    for asked, call in enumerate(calls, 1):
        for _ in range(2):
            llm.chat_with_tools(**call, user_msg="weather in 'Rome'")
            assert endpoint.calls == asked


@pytest.mark.parametrize("finish", ["length", "content_filter", None])
@pytest.mark.parametrize("method", STREAMS)
async def test_trap_23_a_cut_stream_is_not_kept(
    finish: str | None, method: str, endpoint: Any, inner: Make
) -> None:
    """What did not come to its own end is handed over and asked for again."""
    endpoint.finish = finish
    llm = StepCacheLLM(llm=inner())
    assert str((await ask(llm, method))[-1])
    assert llm.engine.count() == 0
    await ask(llm, method)
    assert endpoint.calls == 2


async def test_trap_24_threads_and_tasks_ask_once(endpoint: Any, inner: Make) -> None:
    """Eight threads and sixty-four tasks with one question make one model call."""
    llm = StepCacheLLM(llm=inner())
    with ThreadPoolExecutor(8) as pool:
        threads = [pool.submit(llm.chat, user(TALK)) for _ in range(8)]
        tasks = await asyncio.gather(*(llm.achat(user(TALK)) for _ in range(64)))
        answers = {str(r) for r in (*tasks, *(t.result() for t in threads))}
    assert len(answers) == 1
    assert endpoint.calls == 1
    assert (llm.spent.calls, llm.avoided.calls) == (1, 71)


def test_trap_24_one_llm_serves_several_event_loops(inner: Make) -> None:
    """No lock of ours belongs to the loop it was first used in."""
    llm = StepCacheLLM(llm=MockLLM())

    async def many() -> set[str]:
        return {str(r) for r in await asyncio.gather(*(llm.achat(user(TALK)) for _ in range(8)))}

    assert asyncio.run(many()) == asyncio.run(many())
    assert llm.engine.routes["miss"] == 1


class _Slow(MockLLM):
    """A model that answers when it is told to."""

    _gate: Any = PrivateAttr(default_factory=asyncio.Event)
    _asked: list[Any] = PrivateAttr(default_factory=list)

    async def achat(self, messages: Any, **kwargs: Any) -> Any:
        self._asked.append(messages)
        await self._gate.wait()
        return self.chat(messages, **kwargs)


async def test_trap_24_a_cancelled_leader_hands_over() -> None:
    """When the task that asks the model is cancelled, those that wait get their answer all the same."""
    inner = _Slow()
    llm = StepCacheLLM(llm=inner)
    leader = asyncio.create_task(llm.achat(user(TALK)))
    await asyncio.sleep(0.01)
    followers = [asyncio.create_task(llm.achat(user(TALK))) for _ in range(8)]
    await asyncio.sleep(0.01)
    leader.cancel()
    await asyncio.sleep(0.01)
    inner._gate.set()
    answers = {str(r) for r in await asyncio.gather(*followers)}
    assert len(answers) == 1
    assert len(inner._asked) == 2
    with pytest.raises(asyncio.CancelledError):
        await leader


class _Heard(BaseEventHandler):
    """Counts events by their name and by the class of LLM that sent them."""

    counts: Counter[tuple[str, str]]

    def handle(self, event: Any, **_: Any) -> None:
        described = getattr(event, "model_dict", None) or {}
        self.counts[event.class_name(), described.get("class_name", "")] += 1


@pytest.fixture
def heard() -> Iterator[Counter[tuple[str, str]]]:
    """What LlamaIndex's dispatcher told during a test."""
    handler, dispatcher = _Heard(counts=Counter()), get_dispatcher()
    dispatcher.add_event_handler(handler)
    yield handler.counts
    dispatcher.event_handlers.remove(handler)


@pytest.mark.parametrize("wish", [None, "bypass", "refresh"])
@pytest.mark.parametrize("method", METHODS)
async def test_trap_25_one_start_and_one_end_per_call(
    method: str, wish: str | None, inner: Make, heard: Counter[tuple[str, str]]
) -> None:
    """The wrapper tells of every call once; the wrapped LLM of its own where it is asked."""
    llm = StepCacheLLM(llm=inner())
    kind = "LLMCompletion" if "complete" in method else "LLMChat"
    for asked in (1, 2):
        await ask(llm, method, stepcache=wish)
        models = 1 if wish is None else asked
        assert heard[f"{kind}StartEvent", "stepcache_llm"] == asked
        assert heard[f"{kind}StartEvent", "OpenAILike"] == models
        # End events do not say whose they are.
        assert heard[f"{kind}EndEvent", ""] == asked + models


@pytest.mark.parametrize("by_schema", [True, False], ids=["by-schema", "by-tool"])
def test_trap_25_structured_calls_tell_of_one_chat(
    by_schema: bool, inner: Make, heard: Counter[tuple[str, str]]
) -> None:
    """A structured call is one chat of the wrapper, on a miss, on a hit and with wishes."""
    llm = StepCacheLLM(llm=inner(should_use_structured_outputs=by_schema))
    for asked in (1, 2, 3):
        wish = {"stepcache": {"tags": ["t"]}} if asked == 3 else {}
        llm.structured_predict(Weather, PROMPT, degrees=7, **wish)
        assert heard["LLMChatStartEvent", "stepcache_llm"] == asked
        assert heard["LLMChatStartEvent", "OpenAILike"] == 1


@pytest.mark.parametrize("method", [name for name in METHODS if name.startswith("a")])
async def test_trap_26_asynchronous_methods_are_coroutine_functions(
    method: str, inner: Make
) -> None:
    """The host tells them by that, and a stream is what awaiting one gives."""
    assert inspect.iscoroutinefunction(getattr(StepCacheLLM, method))
    llm = StepCacheLLM(llm=inner())
    result = await getattr(llm, method)(TALK if "complete" in method else user(TALK))
    assert inspect.isasyncgen(result) is ("stream" in method)
    if inspect.isasyncgen(result):
        assert [piece async for piece in result]


async def test_trap_27_streams_of_structure_keep_the_providers_mode(
    endpoint: Any, inner: Make
) -> None:
    """The JSON-schema mode of the wrapped LLM reaches its endpoint, and objects come out."""
    llm = StepCacheLLM(llm=inner(should_use_structured_outputs=True))
    expected = Weather(place="Oslo", degrees=7)
    assert list(llm.stream_structured_predict(Weather, PROMPT, degrees=7))[-1] == expected
    assert endpoint.asked[-1]["response_format"]["type"] == "json_schema"
    stream = await llm.astream_structured_predict(Weather, PROMPT, degrees=7)
    assert [item async for item in stream][-1] == expected
    by_tool = StepCacheLLM(llm=inner(should_use_structured_outputs=False))
    last = list(by_tool.stream_structured_predict(Weather, PROMPT, degrees=7))[-1]
    assert last.model_dump() == expected.model_dump()
    assert endpoint.asked[-1]["tools"][0]["function"]["name"] == "Weather"


async def test_trap_28_the_callers_history_is_left_alone(inner: Make) -> None:
    """Preparing a call with tools appends to no list of the caller's."""
    llm = StepCacheLLM(llm=inner())
    tools, history = [FunctionTool.from_defaults(get_weather)], user("Be brief.")
    before = copy.deepcopy(history)
    for stepcache in (None, "refresh"):
        llm.chat_with_tools(tools, "x", chat_history=history, stepcache=stepcache)
        await llm.achat_with_tools(tools, "x", chat_history=history, stepcache=stepcache)
        list(llm.stream_chat_with_tools(tools, "x", chat_history=history, stepcache=stepcache))
        llm.predict_and_call(tools, "x", chat_history=history, stepcache=stepcache)
        assert history == before


def test_trap_28_no_key_leaves_by_serialisation(inner: Make) -> None:
    """Neither form of the wrapper's settings, nor its view, nor a pickle's text, shows the key."""
    llm = StepCacheLLM(llm=inner(additional_kwargs={"extra_headers": {"x": SECRET}}))
    for shown in (llm.to_dict(), llm.to_payload(), llm.model_dump(), llm.controlled().to_dict()):
        assert SECRET not in json.dumps(shown, default=str)
    assert SECRET not in llm.to_json()
    assert SECRET not in repr(llm) + str(llm)


def test_trap_29_the_core_loads_no_host() -> None:
    """Importing ``stepcache`` brings in neither framework; importing this face not the other one."""
    script = (
        "import sys, stepcache\n"
        "assert not [m for m in sys.modules if m.startswith(('llama_index', 'langchain'))]\n"
        "import llamaindex_stepcache\n"
        "assert not [m for m in sys.modules if m.startswith('langchain')]\n"
        "assert not [m for m in sys.modules if m in ('torch', 'faiss', 'openai')]\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120)


# --- complaints about other caches ---------------------------------------------------------------


def test_peer_b4_arguments_nobody_knows_are_identity(endpoint: Any, inner: Make) -> None:
    """An argument that only this provider understands separates answers."""
    llm = StepCacheLLM(llm=inner())
    bodies: list[dict[str, Any]] = [{}, {"num_ctx": 1}, {"num_ctx": 2}, {"top_k": 2}]
    for asked, body in enumerate(bodies, 1):
        for _ in range(2):
            llm.chat(user(TALK), extra_body=body)
            assert endpoint.calls == asked


class _Meddling(MockLLM):
    """A model that writes into whatever it is given."""

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        kwargs.get("schema", {})["added"] = True
        return CompletionResponse(text=f"You said: {prompt}")


def test_peer_b6_a_key_is_frozen_before_the_model_is_asked() -> None:
    """A model that changes its arguments does not change the key its answer is kept under."""
    llm = StepCacheLLM(llm=_Meddling())
    for _ in range(3):
        llm.complete(TALK, schema={"type": "object"})
    assert llm.engine.routes == {"miss": 1, "exact": 2}


def test_peer_b8_another_process_finds_the_same_answers(endpoint: Any, tmp_path: Path) -> None:
    """Keys hold no address and no chance order: two processes with one file ask once."""
    script = """
import sys
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from llamaindex_stepcache import StepCacheLLM, StepCacheTokenCounter

def look(place: str, what: set[str] | None = None) -> str:
    "Look at a place."
    return place

inner = OpenAILike(model="m", api_base=sys.argv[1], api_key="k", is_chat_model=True,
                   is_function_calling_model=True)
llm = StepCacheLLM(llm=inner, store=sys.argv[2])
llm.chat([ChatMessage(role="user", content="Say it.")], extra_body={"b": 1, "a": 2})
llm.complete("Say it.")
llm.chat_with_tools([FunctionTool.from_defaults(look)], "at 'Rome'")
llm.engine.close()
"""
    command = [sys.executable, "-W", "ignore", "-c", script]
    for _ in range(2):
        subprocess.run([*command, endpoint.url, str(tmp_path / "a.db")], check=True, timeout=120)
        assert endpoint.calls == 3


def test_peer_b11_other_images_are_other_requests(endpoint: Any, inner: Make) -> None:
    """The same words beside two pictures are two questions."""
    llm = StepCacheLLM(llm=inner())
    for asked, name in enumerate(("a", "b"), 1):
        blocks = [TextBlock(text="What is it?"), ImageBlock(url=f"https://example.org/{name}.png")]
        for _ in range(2):
            llm.chat([ChatMessage(role="user", blocks=blocks)])
            assert endpoint.calls == asked


def test_peer_b13_the_model_that_answered_is_named(inner: Make) -> None:
    """What a served answer says of its model is what the endpoint said when it made it."""
    llm = StepCacheLLM(llm=inner(model="small"))
    llm.chat(user(TALK))
    assert llm.chat(user(TALK)).raw["model"] == "small"


def test_peer_b14_another_endpoint_is_another_model(endpoint: Any, inner: Make) -> None:
    """One model name behind two addresses is two models."""
    engine = StepCacheEngine()
    StepCacheLLM(llm=inner(), engine=engine).chat(user(TALK))
    elsewhere = inner(api_base=endpoint.url.replace("127.0.0.1", "localhost"))
    StepCacheLLM(llm=elsewhere, engine=engine).chat(user(TALK))
    assert endpoint.calls == 2


def test_peer_c7_every_answer_says_how_it_came_about(inner: Make) -> None:
    """Route, reason, entry and trace are on a miss, on a hit and on a patch."""
    llm = StepCacheLLM(llm=inner())
    city = "Describe Paris as a JSON object with keys name, country"
    routes = []
    for text in (city + ".", city + ".", city + ", river."):
        summary = told(llm.chat(user(text)))
        routes.append(summary["route"])
        assert summary["reason"]
        assert summary["trace"]
        assert summary["entry_id"]
        json.dumps(summary)
    assert routes == ["miss", "exact", "patch"]


@pytest.mark.parametrize("first", METHODS)
async def test_peer_d5_streams_and_whole_answers_are_one(
    first: str, endpoint: Any, inner: Make
) -> None:
    """What one of a kind's four methods learned, the other three serve, in the same words."""
    llm = StepCacheLLM(llm=inner())
    answer = str((await ask(llm, first))[-1])
    kind = "complete" if "complete" in first else "chat"
    for method in METHODS:
        if kind in method:
            assert str((await ask(llm, method))[-1]) == answer
    assert endpoint.calls == 1


async def test_peer_d3_a_served_stream_comes_in_steps(inner: Make) -> None:
    """A hit of several steps comes in as many chunks and a closing one, and they add up."""
    llm = StepCacheLLM(llm=inner())
    whole = str(llm.chat(user("Solve 2x + 3 = 13 for x.")).message.content)
    for method in ("stream_chat", "astream_chat"):
        chunks = await ask(llm, method, "Solve 2x + 3 = 13 for x.")
        assert [bool(chunk.delta) for chunk in chunks] == [True, True, False]
        assert "".join(chunk.delta for chunk in chunks) == whole
        assert chunks[-1].message.content == whole


def test_peer_e1_own_counters_agree_with_the_endpoint(endpoint: Any, inner: Make) -> None:
    """Spent is what the endpoint delivered, over misses, hits, patches, repairs and tools."""
    llm = StepCacheLLM(llm=inner())
    tools = [FunctionTool.from_defaults(get_weather)]
    city = "Describe Paris as a JSON object with keys name, country"
    endpoint.wrong = 1
    for _ in range(3):
        for text in (TALK, city + ".", city + ", river.", "Solve 2x + 3 = 13 for x."):
            llm.chat(user(text))
        llm.chat_with_tools(tools, "weather in 'Rome'")
        llm.structured_predict(Weather, PROMPT, degrees=7)
    assert llm.spent.tokens == endpoint.delivered
    assert llm.spent.calls == endpoint.calls
    assert llm.avoided.calls >= 12


async def test_peer_e1_the_hosts_counter_takes_nothing_for_unknown(
    endpoint: Any, inner: Make
) -> None:
    """``TokenCountingHandler`` agrees with the endpoint on misses and patches; a hit's 0 it takes for
    unknown and counts the words itself, which is why ``spent`` and ``avoided`` are there."""
    # Asynchronous, for outside of a loop the host opens one to count with and leaves it open.
    counter = TokenCountingHandler(tokenizer=str.split)
    llm = StepCacheLLM(llm=inner(), callback_manager=CallbackManager([counter]))
    city = "Describe Paris as a JSON object with keys name, country"
    for text in (city + ".", city + ", river.", TALK):
        llm.chat(user(text))
        assert counter.total_llm_token_count == endpoint.delivered
    llm.chat(user(TALK))
    assert counter.total_llm_token_count > endpoint.delivered
    assert llm.spent.tokens == endpoint.delivered


@pytest.mark.parametrize("method", METHODS)
async def test_peer_e1_our_counter_agrees_over_hits_and_patches(
    method: str, endpoint: Any, inner: Make
) -> None:
    """``StepCacheTokenCounter`` counts what the endpoint delivered, whatever came from the cache."""
    usage = {"additional_kwargs": {"stream_options": {"include_usage": True}}}
    made = inner(**usage if "stream" in method else {})
    delivered = endpoint.delivered + 1
    counter = StepCacheTokenCounter(tokenizer=str.split)
    llm = StepCacheLLM(llm=made, callback_manager=CallbackManager([counter]))
    city = "Describe Paris as a JSON object with keys name, country"
    for text in (city + ".", city + ", river.", TALK) * 2:
        await ask(llm, method, text)
        assert counter.total_llm_token_count == endpoint.delivered >= delivered
    assert len(counter.llm_token_counts) == 6
    assert endpoint.calls == 3


def test_peer_e1_handlers_of_the_settings_are_told_once(endpoint: Any, inner: Make) -> None:
    """A counter that the settings push onto the wrapper counts a miss once."""
    counter = TokenCountingHandler(tokenizer=str.split)
    Settings.callback_manager = CallbackManager([counter])
    Settings.llm = StepCacheLLM(llm=inner())
    Settings.llm.chat(user(TALK))
    assert counter.total_llm_token_count == endpoint.delivered


async def test_peer_f6_a_waiting_call_blocks_no_loop() -> None:
    """While the model takes its time for one task, the loop goes on with others."""
    inner = _Slow()
    llm = StepCacheLLM(llm=inner)
    waiting = asyncio.create_task(llm.achat(user(TALK)))
    await asyncio.sleep(0)
    await asyncio.wait_for(llm.acomplete("And this?"), 5)
    assert not waiting.done()
    inner._gate.set()
    assert str(await waiting)


def test_peer_f6_threads_share_a_store_on_disk(inner: Make, tmp_path: Path) -> None:
    """Threads that ask different things of one SQLite store get what they asked for."""
    llm = StepCacheLLM(llm=MockLLM(), store=tmp_path / "a.db")
    failed: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for number in range(8):
                assert f"{name}-{number}" in str(llm.complete(f"Say {name}-{number}."))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n % 4,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert llm.engine.count() == 32
    llm.engine.close()


def test_peer_h3_a_retry_can_have_another_answer(endpoint: Any, inner: Make) -> None:
    """Where the same bad answer would come back, a call can refresh it or go past the cache."""
    llm = StepCacheLLM(llm=inner())
    llm.chat(user(TALK))
    assert told(llm.chat(user(TALK), stepcache="refresh"))["route"] == "miss"
    assert told(llm.chat(user(TALK), stepcache="bypass"))["route"] == "bypass"
    assert endpoint.calls == 3


def test_peer_i2_who_speaks_before_is_identity(endpoint: Any, inner: Make) -> None:
    """A system prompt, given or set on the LLM, and earlier turns separate answers."""
    llm = StepCacheLLM(llm=inner())
    question = user("How old is he?")
    before = [
        [],
        [ChatMessage(role="system", content="Be brief.")],
        user("Who leads the post office?"),
        user("Who leads the railway?"),
    ]
    for asked, turns in enumerate(before, 1):
        for _ in range(2):
            llm.chat([*turns, *question])
            assert endpoint.calls == asked
