"""Known traps of caching under LangChain, one test each; the numbers are those of the design notes.

25 to 28 concern the other host and are tested with it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.globals import set_llm_cache
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.load import dumps, loads
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import ConfigurableField
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, create_model

from langchain_stepcache import StepCache, StepCacheChatModel, StepCacheMiddleware
from stepcache import Reply, StepCacheEngine
from stepcache.stores import MemoryStore
from stepcache.testing import FaultyStore
from stepcache.testing.endpoint import ScriptedEndpoint
from stepcache.testing.obliging import obliging

Make = Callable[..., ChatOpenAI]
Face = Callable[[], Any]
RIVER = "Name a river."
ROME = "Describe Rome as a JSON object with keys name, country."
ROME_AND_RIVER = "Describe Rome as a JSON object with keys name, country, river."
ENDED = "[('stop', None)]"


@pytest.fixture(params=["cache", "model"])
def face(request: pytest.FixtureRequest, chat: Make) -> Face:
    """A model behind either face, a new cache each time it is called."""
    if request.param == "cache":
        return lambda: chat(cache=StepCache())
    return lambda: StepCacheChatModel(llm=chat())


def joined(chunks: Any) -> Any:
    """One message of all chunks."""
    total = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return total


def route(message: Any) -> str:
    """The way an answer went; "none" for LangChain's own."""
    return str(message.response_metadata.get("stepcache", {}).get("route", "none"))


def test_trap_01_aliasing(face: Face) -> None:
    """What a user does to a returned message stays theirs."""
    model = face()
    for _ in range(3):
        message = model.invoke(RIVER)
        assert message.content == "The Elbe."
        message.content = "changed"
        message.response_metadata["stepcache"] = "changed"
        message.additional_kwargs["changed"] = True


def test_trap_02_a_hit_is_a_list_with_something_in_it() -> None:
    """A tuple is a silent miss, an empty list an IndexError."""
    cache = StepCache()
    assert cache.lookup("prompt", "model") is None
    for generations in ([Generation(text="a")], [Generation(text="a"), Generation(text="b")]):
        cache.update("prompt", "model", tuple(generations))
        found = cache.lookup("prompt", "model")
        assert type(found) is list
        assert found == generations
    cache.update("other", "model", [])
    assert cache.lookup("other", "model") is None


@pytest.mark.parametrize("methods", [{"get"}, {"put"}, {"search"}, {"get", "put", "search"}])
def test_trap_03_errors_do_not_escape(chat: Make, methods: set[str]) -> None:
    """A store that fails to read or to write costs reuse only."""
    for model in (
        chat(cache=StepCache(store=FaultyStore(MemoryStore(), set(methods)))),
        StepCacheChatModel(llm=chat(), store=FaultyStore(MemoryStore(), set(methods))),
    ):
        assert [model.invoke(RIVER).content for _ in range(2)] == ["The Elbe."] * 2


def test_trap_04_ids_are_not_repeated(face: Face) -> None:
    """No id comes twice, and two equal hits in one graph are two messages."""
    model = face()
    ids = [i for i in (model.invoke(RIVER).id for _ in range(3)) if i is not None]
    assert len(set(ids)) == len(ids)
    graph = StateGraph(MessagesState)
    graph.add_node("a", lambda state: {"messages": [model.invoke(RIVER)]})
    graph.add_node("b", lambda state: {"messages": [model.invoke(RIVER)]})
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    assert len(graph.compile().invoke({"messages": [("user", "hi")]})["messages"]) == 3


def test_trap_05_usage_of_a_hit_is_whole(face: Face) -> None:
    """All three counts are there and zero, and the message can be written and read again."""
    model = face()
    model.invoke(RIVER)
    hit = model.invoke(RIVER)
    counts = ("input_tokens", "output_tokens", "total_tokens")
    assert [hit.usage_metadata[name] for name in counts] == [0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading is a beta function of the host's
        assert loads(dumps(hit), allowed_objects="messages").content == "The Elbe."


@pytest.mark.parametrize("how", ["cache", "model", "middleware"])
def test_trap_06_history_is_compared_without_its_chance(
    chat: Make, endpoint: ScriptedEndpoint, how: str
) -> None:
    """The second run of a two-step agent makes no call."""
    from langchain.agents import create_agent

    def river(city: str) -> str:
        """The river of a city."""
        return f"The Tiber flows through {city}."

    endpoint.answer = obliging
    model: Any = chat(cache=StepCache()) if how == "cache" else chat()
    if how == "model":
        model = StepCacheChatModel(llm=model)
    middleware = [StepCacheMiddleware()] if how == "middleware" else []
    agent = create_agent(model, [river], middleware=middleware)
    for _ in range(2):
        agent.invoke({"messages": [("user", "The river of 'Rome'?")]})
    assert endpoint.calls == 2


def test_trap_07_classes_of_one_name_and_two_shapes(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Each caller gets an instance of their own class, with values of its types."""

    def answer(request: Any) -> str:
        properties = request["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps({k: [1] if v["type"] == "array" else 1 for k, v in properties.items()})

    endpoint.answer = answer
    model = StepCacheChatModel(llm=chat())
    number, several = create_model("Same", x=(int, ...)), create_model("Same", x=(list[int], ...))
    for _ in range(2):
        for kind, value in ((number, 1), (several, [1])):
            got = model.with_structured_output(kind).invoke("Give x.")
            assert type(got) is kind
            assert got.x == value
    assert endpoint.calls == 2


def test_trap_07_for_the_cache_face(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """It sees a class by its name only, so two of one name share entries: what comes back is
    read under the caller's own class, or refused by it; never an instance of the other."""
    endpoint.answer = lambda request: '{"x": 1}'
    model = chat(cache=StepCache())
    one, other = create_model("Same", x=(int, ...)), create_model("Same", x=(float, ...))
    assert type(model.with_structured_output(one).invoke("Give x.")) is one
    assert type(model.with_structured_output(other).invoke("Give x.")) is other


def test_trap_08_parsed_follows_a_patch(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The object beside the text is made from the patched text."""

    def answer(request: Any) -> str:
        text = str(request["messages"][-1]["content"])
        if "only the keys" in text:
            return '{"river": "Tiber"}'
        return '{"name": "Rome"}'

    endpoint.answer = answer
    model = StepCacheChatModel(llm=chat())
    narrow = create_model("City", name=(str, ...))
    wide = create_model("City", name=(str, ...), river=(str, ...))
    model.with_structured_output(narrow).invoke("Describe Rome.")
    got = model.with_structured_output(wide, include_raw=True).invoke("Describe Rome.")
    assert route(got["raw"]) == "patch"
    assert got["parsed"] == wide(**json.loads(got["raw"].content))


def test_trap_09_nothing_is_revived(tmp_path: Path) -> None:
    """What is saved comes back equal; a foreign record in its place is a miss or plain text."""
    cache = StepCache(store=tmp_path / "c.db")
    call = {"name": "a", "args": {"b": 1}, "id": "c", "type": "tool_call"}
    kept = [
        ChatGeneration(
            message=AIMessage(
                "text",
                additional_kwargs={"parsed": {"x": 1}, "refusal": None},
                response_metadata={"model_name": "m", "finish_reason": "stop"},
            ),
            generation_info={"finish_reason": "stop"},
        ),
        ChatGeneration(message=AIMessage("", tool_calls=[call])),
    ]
    prompt = dumps([HumanMessage("one")])
    cache.update(prompt, ENDED, kept[:1])
    (back,) = cache.lookup(prompt, ENDED) or ()
    assert isinstance(back, ChatGeneration)
    assert back.message.content == "text"
    assert back.generation_info == {"finish_reason": "stop"}
    evil = json.dumps(
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "prompts", "prompt", "PromptTemplate"],
            "kwargs": {"template": "x", "input_variables": []},
        }
    )
    asked = cache._asked(dumps([HumanMessage("two")]), ENDED)
    assert asked is not None
    cache.engine.admit(asked[0], Reply(text="", message=evil, reusable=False))
    # What was never a generation of ours is a miss, whatever it asks to be made of it.
    assert cache.lookup(dumps([HumanMessage("two")]), ENDED) is None
    cache.engine.close()


def test_trap_10_secrets_are_not_written(chat: Make, tmp_path: Path) -> None:
    """Headers and keys stand in LangChain's strings and in the model; never in the file."""
    headers = {"Authorization": "hunter2-secret"}
    for name, make in (
        ("cache", lambda path: chat(cache=StepCache(store=path), default_headers=headers)),
        (
            "model",
            lambda path: StepCacheChatModel(llm=chat(default_headers=headers), store=path),
        ),
    ):
        model = make(tmp_path / f"{name}.db")
        model.invoke(RIVER)
        engine = getattr(model, "engine", None) or model.cache.engine
        assert engine.count() == 1
        engine.close()
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        assert b"hunter2" not in data
        assert b"secret-key" not in data


def test_trap_11_tenants_do_not_mix() -> None:
    """One store, two namespaces: nothing crosses."""
    store = MemoryStore()
    StepCache(store=store, namespace="A").update("p", "l", [Generation(text="a")])
    assert StepCache(store=store, namespace="B").lookup("p", "l") is None
    assert StepCache(store=store, namespace="A").lookup("p", "l") == [Generation(text="a")]


def test_trap_12_changed_attributes_are_another_model(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """The wrapper reads the live model; LangChain's own key is frozen at first use."""
    inner = chat(temperature=0)
    model = StepCacheChatModel(llm=inner)
    model.invoke(RIVER)
    inner.temperature = 0.9
    assert route(model.invoke(RIVER)) == "miss"
    inner.temperature = 0
    assert route(model.invoke(RIVER)) == "exact"


def test_trap_13_completion_models_pass_through() -> None:
    """Their per-call arguments are not in the key, so nothing may be served."""
    model = FakeListLLM(responses=["one", "two"], cache=StepCache())
    assert [model.invoke("p"), model.invoke("p", max_tokens=1)] == ["one", "two"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_trap_14_a_patch_does_not_look_itself_up(
    chat: Make, endpoint: ScriptedEndpoint, asynchronous: bool
) -> None:
    """With the cache installed for everything, a patch is two calls in all, not a recursion."""
    async with httpx.AsyncClient() as client:
        model = chat(http_async_client=client)
        set_llm_cache(StepCache(model=model))
        try:
            for ask in (ROME, ROME_AND_RIVER):
                message = await model.ainvoke(ask) if asynchronous else model.invoke(ask)
        finally:
            set_llm_cache(None)
    assert (route(message), endpoint.calls) == ("patch", 2)


def test_trap_15_a_stream_is_cached_whole_or_not_at_all(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """Closed early: nothing. Read to the end: the next makes no call."""
    model = StepCacheChatModel(llm=chat())
    stream = model.stream(RIVER)
    next(stream)
    stream.close()
    assert model.engine.count() == 0
    list(model.stream(RIVER))
    before = endpoint.calls
    assert joined(model.stream(RIVER)).content == "The Elbe."
    assert endpoint.calls == before


@pytest.mark.parametrize("ask", [RIVER, "Solve 2x + 3 = 13 for x.", ROME])
def test_trap_16_metadata_is_said_once(chat: Make, endpoint: ScriptedEndpoint, ask: str) -> None:
    """Joined chunks name the model once and count the tokens once, on a miss and on a hit."""
    model = StepCacheChatModel(llm=chat(stream_usage=True))
    miss, hit = joined(model.stream(ask)), joined(model.stream(ask))
    assert miss.response_metadata["model_name"] == "scripted"
    assert hit.response_metadata["model_name"] == "scripted"
    assert miss.usage_metadata["total_tokens"] == endpoint.tokens
    assert hit.usage_metadata["total_tokens"] == 0
    assert (
        hit.response_metadata["finish_reason"] == miss.response_metadata["finish_reason"] == "stop"
    )


class Counter(BaseRateLimiter):
    """Counts permits."""

    taken = 0

    def acquire(self, *, blocking: bool = True) -> bool:
        self.taken += 1
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        self.taken += 1
        return True


def test_trap_17_the_inner_models_own_path_is_taken(chat: Make) -> None:
    """Streaming models, rate limits and v1 content work as they do bare."""
    limiter = Counter()
    inner = chat(streaming=True, rate_limiter=limiter, output_version="v1")
    model = StepCacheChatModel(llm=inner)
    contents = [model.invoke(RIVER).content for _ in range(2)]
    assert limiter.taken == 1
    for content in contents:
        assert [(b["type"], b["text"]) for b in content] == [("text", "The Elbe.")]


def test_trap_18_nothing_is_cached_or_counted_twice(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Under a global cache the wrapper alone is asked; tokens agree with the server's."""
    spy = StepCache()
    set_llm_cache(spy)
    try:
        model = StepCacheChatModel(llm=chat())
        with get_usage_metadata_callback() as counted:
            for ask in (ROME, ROME, ROME_AND_RIVER):
                model.invoke(ask)
    finally:
        set_llm_cache(None)
    assert spy.engine.routes == {}
    assert spy.engine.count() == 0
    assert sum(u["total_tokens"] for u in counted.usage_metadata.values()) == endpoint.tokens


@pytest.mark.parametrize("how", ["cache", "model"])
def test_trap_19_a_patch_is_not_streamed_to_readers(
    chat: Make, endpoint: ScriptedEndpoint, how: str
) -> None:
    """A graph's reader sees the answer, and none of what was asked beside it."""
    inner = chat()
    model: Any = StepCacheChatModel(llm=inner)
    if how == "cache":
        model = inner
        model.cache = StepCache(model=inner)
    model.invoke(ROME)
    graph = StateGraph(MessagesState)
    graph.add_node("a", lambda state: {"messages": [model.invoke(ROME_AND_RIVER)]})
    graph.add_edge(START, "a")
    parts = list(graph.compile().stream({"messages": [("user", "x")]}, stream_mode="messages"))
    said = [m for m, _ in parts if isinstance(m, (AIMessage, AIMessageChunk))]
    assert json.loads("".join(m.text for m in said)) == {
        "name": "Rome",
        "country": "Italy",
        "river": "Tiber",
    }
    assert endpoint.calls == 2


def test_trap_20_the_engine_survives_being_rebuilt(chat: Make) -> None:
    """``configurable_fields`` makes the model anew from its fields; the engine is one."""
    model = StepCacheChatModel(llm=chat())
    configurable = model.configurable_fields(llm=ConfigurableField("llm"))
    prepared, _ = configurable._prepare({"configurable": {"llm": chat(model="other")}})
    assert prepared.engine is model.engine
    assert model.model_copy().engine is model.engine


def test_trap_21_v1_content_on_hits(chat: Make) -> None:
    """A list on a miss is a list on a hit, behind either face."""
    for model in (
        StepCacheChatModel(llm=chat(output_version="v1")),
        chat(output_version="v1", cache=StepCache()),
    ):
        contents = [model.invoke(RIVER).content for _ in range(2)]
        assert all(isinstance(content, list) for content in contents)
        assert contents[1][0]["text"] == "The Elbe."


def test_trap_22_tool_calls_are_whole(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """A changed tool schema is a new request; replayed calls are equal, their ids are not."""

    def river(city: str) -> str:
        """The river of a city."""
        return city

    class River(BaseModel):
        """The river of a city."""

        city: str
        language: str = "en"

    River.__name__ = "river"
    endpoint.answer = obliging
    model = StepCacheChatModel(llm=chat())
    first, second = (model.bind_tools([river]).invoke("'Rome'?") for _ in range(2))
    assert endpoint.calls == 1
    assert first.tool_calls[0]["args"] == second.tool_calls[0]["args"] == {"city": "Rome"}
    assert first.tool_calls[0]["id"] != second.tool_calls[0]["id"]
    model.bind_tools([River]).invoke("'Rome'?")
    assert endpoint.calls == 2


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="The El", finish_reason="length"),
        Reply(text="The El", finish_reason="content_filter"),
        Reply(text="I will not.", refusal=True),
        "",
        "I'm sorry, but I can't help with that.",
    ],
)
@pytest.mark.parametrize("how", ["invoke", "stream", "cache"])
def test_trap_23_what_is_no_answer_is_not_kept(
    chat: Make, endpoint: ScriptedEndpoint, reply: Any, how: str
) -> None:
    """Truncated, filtered, refused, empty: handed over, and asked again next time."""
    endpoint.answer = lambda request: reply
    cache = StepCache()
    model: Any = chat(cache=cache) if how == "cache" else StepCacheChatModel(llm=chat())
    for _ in range(2):
        list(model.stream(RIVER)) if how == "stream" else model.invoke(RIVER)
    engine = cache.engine if how == "cache" else model.engine
    assert (engine.count(), endpoint.calls) == (0, 2)


def test_trap_24_a_stampede_is_one_call(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Threads and tasks alike, and one cache object lives through several event loops."""
    model = StepCacheChatModel(llm=chat())
    assert {m.content for m in model.batch([RIVER] * 8)} == {"The Elbe."}
    assert endpoint.calls == 1

    async def many() -> None:
        async with httpx.AsyncClient() as client:
            other = StepCacheChatModel(llm=chat(http_async_client=client), engine=model.engine)
            messages = await asyncio.gather(*(other.ainvoke("Name a lake.") for _ in range(64)))
            assert {m.content for m in messages} == {"The Elbe."}

    asyncio.run(many())
    asyncio.run(many())
    assert endpoint.calls == 2


def test_trap_29_the_core_loads_no_framework() -> None:
    """``import stepcache`` and its engine leave both hosts alone."""
    program = (
        "import sys, stepcache; stepcache.StepCacheEngine(); "
        "print([m for m in sys.modules if m.startswith(('langchain', 'llama_index', 'pydantic'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_trap_30_the_suites_are_wired_as_they_ask() -> None:
    """One class for each standard suite, none of whose tests is overridden."""
    import ast

    here = Path(__file__).parent
    for name in ("test_standard_suites.py", "test_standard_cache_suites.py"):
        tree = ast.parse((here / name).read_text())
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        suites = [c for c in classes if c.name.startswith("Test")]
        assert suites
        for suite in suites:
            methods = [
                n.name for n in suite.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
            ]
            assert not [m for m in methods if m.startswith("test_")]
            bases = [ast.unparse(base) for base in suite.bases]
            assert sum("Tests" in b or "Suite" in b for b in bases) == 1


def test_an_engine_may_stand_behind_both_faces(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """One store for all: each face keeps its own, and neither takes the other's for its own."""
    engine = StepCacheEngine()
    model = StepCacheChatModel(llm=chat(), engine=engine)
    cached = chat(cache=StepCache(engine=engine))
    for each in (model, cached, model, cached):
        assert each.invoke(RIVER).content == "The Elbe."
    assert endpoint.calls == 2
