"""Every way LangChain has of running a model, and what one call may ask of the cache."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import ConfigurableField
from langchain_openai import ChatOpenAI

from langchain_stepcache import StepCache, StepCacheChatModel
from stepcache import StepCacheEngine, UsageError
from stepcache.testing.endpoint import ScriptedEndpoint

Make = Callable[..., ChatOpenAI]
RIVER = "Name a river."
MATH = "Solve 2x + 3 = 13 for x."
ROME = "Describe Rome as a JSON object with keys name, country."
ROME_AND_RIVER = "Describe Rome as a JSON object with keys name, country, river."

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")


def route(message: Any) -> str:
    """The way an answer went."""
    return str(message.response_metadata["stepcache"]["route"])


def joined(chunks: Any) -> Any:
    """One message of all chunks."""
    total = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return total


class Runs(BaseCallbackHandler):
    """Notes what a tracer would see."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.text = ""
        self.params: list[dict[str, Any]] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("start")
        self.params.append(kwargs.get("invocation_params") or {})

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.text += token if isinstance(token, str) else ""

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("end")

    def on_llm_error(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("error")


# --- one run, whichever way ----------------------------------------------------------------------


@pytest.mark.parametrize("ask", [RIVER, MATH, ROME_AND_RIVER])
def test_every_call_is_exactly_one_run(chat: Make, ask: str) -> None:
    """Miss, hit and patch, whole and streamed: one start, one end, and the tokens of the answer."""
    model = StepCacheChatModel(llm=chat())
    model.invoke(ROME)
    for call in (model.invoke, model.stream, model.invoke, model.stream):
        runs = Runs()
        answer = call(ask, config={"callbacks": [runs]})
        message = answer if isinstance(answer, AIMessage) else joined(answer)
        assert runs.seen == ["start", "end"]
        if call == model.stream:
            assert runs.text == message.content


async def test_an_asynchronous_call_is_one_run_too(chat: Make) -> None:
    """``ainvoke`` and ``astream``."""
    async with httpx.AsyncClient() as client:
        model = StepCacheChatModel(llm=chat(http_async_client=client))
        for _ in range(2):
            runs = Runs()
            message = await model.ainvoke(MATH, {"callbacks": [runs]})
            chunks = [c async for c in model.astream(MATH, {"callbacks": [runs]})]
            assert runs.seen == ["start", "end"] * 2
            assert joined(chunks).content == runs.text == message.content


def test_a_failed_call_is_one_failed_run(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The tracer sees the model's error once."""
    endpoint.answer = lambda request: 400
    runs = Runs()
    with pytest.raises(Exception, match="scripted failure"):
        StepCacheChatModel(llm=chat()).invoke(RIVER, {"callbacks": [runs]})
    assert runs.seen == ["start", "error"]


# --- combinators ---------------------------------------------------------------------------------


def test_with_retry_asks_again_and_keeps_the_good_answer(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """A failure is not kept; what came in the end is."""
    replies = iter([400, "The Elbe."])
    endpoint.answer = lambda request: next(replies)
    model = StepCacheChatModel(llm=chat(max_retries=0))
    chain = model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    assert [chain.invoke(RIVER).content for _ in range(2)] == ["The Elbe."] * 2
    assert endpoint.calls == 2


def test_with_fallbacks_keeps_each_models_answers_apart(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """The fallback's answer is kept as its own: the first model is asked again, and then heard."""
    engine = StepCacheEngine()
    endpoint.answer = lambda request: 500 if request["model"] == "first" else "The Oder."
    first, second = (
        StepCacheChatModel(llm=chat(model=name, max_retries=0), engine=engine)
        for name in ("first", "second")
    )
    chain = first.with_fallbacks([second])
    assert chain.invoke(RIVER).content == "The Oder."
    assert (route(chain.invoke(RIVER)), endpoint.calls) == ("exact", 3)
    endpoint.answer = lambda request: "The Elbe."
    assert chain.invoke(RIVER).content == "The Elbe."
    assert second.invoke(RIVER).content == "The Oder."


def test_with_fallbacks_binds_tools_on_both(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """LangChain forwards ``bind_tools`` to every model of the chain."""

    def lake(city: str) -> str:
        """A lake."""
        return city

    function = {"name": "lake", "arguments": '{"city": "Rome"}'}
    call = {"id": "call-1", "type": "function", "function": function}
    endpoint.answer = lambda request: 500 if request["model"] == "first" else {"tool_calls": [call]}
    first, second = (
        StepCacheChatModel(llm=chat(model=name, max_retries=0)) for name in ("first", "second")
    )
    chain = first.with_fallbacks([second]).bind_tools([lake])  # type: ignore[attr-defined]
    for _ in range(2):
        assert chain.invoke("A lake?").tool_calls[0]["name"] == "lake"
    assert (first.engine.count(), second.engine.count()) == (0, 1)


def test_configurable_fields_and_alternatives(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Another inner model at run time is another request, answered from the same engine."""
    model = StepCacheChatModel(llm=chat())
    chain = model.configurable_fields(llm=ConfigurableField("llm")).configurable_alternatives(
        ConfigurableField("which"), other=StepCacheChatModel(llm=chat(temperature=1))
    )
    chain.invoke(RIVER)
    other = {"configurable": {"llm": chat(model="other")}}
    assert [route(chain.invoke(RIVER, other)) for _ in range(2)] == ["miss", "exact"]
    assert model.engine.count() == 2
    assert route(chain.invoke(RIVER, {"configurable": {"which": "other"}})) == "miss"
    assert route(chain.invoke(RIVER)) == "exact"


def test_bound_stop_and_arguments(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """``bind`` reaches the endpoint and parts requests, chained as often as one likes."""
    model = StepCacheChatModel(llm=chat())
    bound = model.bind(stop=["."]).bind(temperature=0.5)
    assert [route(bound.invoke(RIVER)) for _ in range(2)] == ["miss", "exact"]
    assert endpoint.requests[-1]["stop"] == ["."]
    assert endpoint.requests[-1]["temperature"] == 0.5
    assert route(model.invoke(RIVER)) == "miss"


def test_chains_stream_and_batch(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Through a prompt and a parser; a batch of equal questions is one call."""
    prompt = ChatPromptTemplate.from_messages([("user", "{ask}")])
    chain = prompt | StepCacheChatModel(llm=chat()) | StrOutputParser()
    assert chain.batch([{"ask": RIVER}] * 6) == ["The Elbe."] * 6
    assert endpoint.calls == 1
    assert "".join(chain.stream({"ask": RIVER})) == "The Elbe."
    done = dict(chain.batch_as_completed([{"ask": RIVER}, {"ask": MATH}]))
    assert done[0] == "The Elbe."
    assert endpoint.calls == 2


# --- several answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["field", "argument"])
def test_several_answers_pass_through(chat: Make, endpoint: ScriptedEndpoint, how: str) -> None:
    """``n=3`` gives three each time, and is never the answer to a request for one."""
    inner = chat(n=3) if how == "field" else chat()
    model = StepCacheChatModel(llm=inner)
    kwargs = {} if how == "field" else {"n": 3}
    for _ in range(2):
        result = model.generate([[HumanMessage(MATH)]], **kwargs)
        assert len(result.generations[0]) == 3
        assert {g.text for g in result.generations[0]} == {"2x + 3 = 13\n\n2x = 10\n\nx = 5"}
    assert model.engine.count() == 0
    one = StepCacheChatModel(llm=chat(), engine=model.engine)
    assert route(one.invoke(MATH)) == "miss"


# --- content in blocks ---------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [RIVER, MATH, ROME])
def test_v1_content_blocks(chat: Make, endpoint: ScriptedEndpoint, ask: str) -> None:
    """A model of ``output_version="v1"`` answers in blocks, from a miss, a hit and streams alike."""
    plain = StepCacheChatModel(llm=chat()).invoke(ask).content
    model = StepCacheChatModel(llm=chat(output_version="v1"))
    messages = [model.invoke(ask), model.invoke(ask), joined(model.stream(ask))]
    fresh = StepCacheChatModel(llm=chat(output_version="v1"))
    messages += [joined(fresh.stream(ask)), fresh.invoke(ask)]
    for message in messages:
        assert isinstance(message.content, list)
        assert [block["type"] for block in message.content] == ["text"]
        assert message.text == plain


def test_blocks_a_provider_sends_come_back_whole(chat: Make) -> None:
    """Reasoning and citations are part of an answer, served to the same request only."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    content: list[Any] = [
        {"type": "reasoning", "reasoning": "Rivers have names."},
        {"type": "text", "text": "The Elbe.", "annotations": [{"type": "citation", "url": "u"}]},
    ]
    inner = GenericFakeChatModel(messages=iter([AIMessage(content)]))
    model = StepCacheChatModel(llm=inner)
    first, second = model.invoke(RIVER), model.invoke(RIVER)
    assert first.content == second.content == content
    streamed = joined(model.stream(RIVER))
    assert streamed.content == content


# --- events --------------------------------------------------------------------------------------


def test_stream_events_v3(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Typed projections, from a miss and from a hit; a call's wishes are heard."""
    model = StepCacheChatModel(llm=chat())
    texts = []
    for config in (None, None, {"configurable": {"stepcache": "bypass"}}):
        stream = model.stream_events(MATH, config, version="v3")
        texts.append("".join(stream.text))
        assert "".join(b["text"] for b in stream.output.content) == texts[-1]
    assert len(set(texts)) == 1
    assert endpoint.calls == 2


async def test_astream_events_v2_and_v3(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The older events too: start, one stream event per chunk, end."""
    async with httpx.AsyncClient() as client:
        model = StepCacheChatModel(llm=chat(http_async_client=client))
        for _ in range(2):
            events = [e async for e in model.astream_events(MATH, version="v2")]
            kinds = [e["event"] for e in events]
            assert kinds[0] == "on_chat_model_start"
            assert kinds[-1] == "on_chat_model_end"
            streamed = "".join(
                e["data"]["chunk"].content for e in events if e["event"] == "on_chat_model_stream"
            )
            assert streamed == events[-1]["data"]["output"].content
        stream = await model.astream_events(MATH, version="v3")
        assert "".join([text async for text in stream.text]) == streamed
    assert endpoint.calls == 1


# --- rate limits ---------------------------------------------------------------------------------


class Counter(BaseRateLimiter):
    """Counts permits."""

    def __init__(self) -> None:
        self.taken = 0

    def acquire(self, *, blocking: bool = True) -> bool:
        self.taken += 1
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        self.taken += 1
        return True


def test_permits_are_taken_for_model_calls_only(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """One for each call that reached the endpoint, patches included; none for hits."""
    limiter = Counter()
    model = StepCacheChatModel(llm=chat(rate_limiter=limiter))
    for ask in (ROME, ROME, ROME_AND_RIVER, MATH, RIVER):
        model.invoke(ask)
        list(model.stream(ask))
    assert limiter.taken == endpoint.calls == 4


# --- what one call asks --------------------------------------------------------------------------


def asks(model: Any, how: str) -> Callable[[Any], Any]:
    """Ways to say the same to one call."""
    if how == "argument":
        return lambda wish: model.invoke(RIVER, stepcache=wish)
    if how == "config":
        return lambda wish: model.invoke(RIVER, {"configurable": {"stepcache": wish}})
    if how == "bind":
        return lambda wish: model.bind(stepcache=wish).invoke(RIVER)
    if how == "stream":
        return lambda wish: joined(model.stream(RIVER, stepcache=wish))
    if how == "batch":
        return lambda wish: model.batch([RIVER], {"configurable": {"stepcache": wish}})[0]
    chain = ChatPromptTemplate.from_messages([("user", RIVER)]) | model
    return lambda wish: chain.invoke({}, {"configurable": {"stepcache": wish}})


HOW = ["argument", "config", "bind", "stream", "batch", "chain"]


@pytest.mark.parametrize("how", HOW)
def test_a_call_may_bypass_or_refresh(chat: Make, endpoint: ScriptedEndpoint, how: str) -> None:
    """As a word or as a field; nothing of it reaches the endpoint."""
    model = StepCacheChatModel(llm=chat())
    ask = asks(model, how)
    told = [
        route(ask(wish))
        for wish in ("bypass", {}, {}, {"bypass": True}, "refresh", {"refresh": False}, None)
    ]
    assert told == ["bypass", "miss", "exact", "bypass", "miss", "exact", "exact"]
    assert "stepcache" not in json.dumps(endpoint.requests)


@pytest.mark.parametrize("how", HOW)
def test_a_call_may_name_its_wall_and_labels(
    chat: Make, endpoint: ScriptedEndpoint, how: str
) -> None:
    """Namespaces do not see each other; tags are what an answer is forgotten by."""
    model = StepCacheChatModel(llm=chat())
    ask = asks(model, how)
    for wish in ({"namespace": "ann", "tags": "a"}, {"namespace": "bob", "tags": ["b", "c"]}):
        assert [route(ask(wish)) for _ in range(2)] == ["miss", "exact"]
    assert model.forget(tag="b") == 1
    assert route(ask({"namespace": "bob"})) == "miss"
    assert route(ask({"namespace": "ann"})) == "exact"
    assert model.forget(namespace="ann") == 1
    assert route(ask({"namespace": "ann"})) == "miss"


@pytest.mark.parametrize("how", HOW)
def test_a_misspelled_wish_is_an_error(chat: Make, how: str) -> None:
    """Not a wish unheard."""
    with pytest.raises(UsageError, match="refresh"):
        asks(StepCacheChatModel(llm=chat()), how)({"bypas": True})


def test_the_argument_comes_before_the_configuration(chat: Make) -> None:
    """Field by field where both are mappings, whole where one is not."""
    model = StepCacheChatModel(llm=chat())
    config = {"configurable": {"stepcache": {"bypass": True, "tags": "a"}}}
    assert route(model.invoke(RIVER, config, stepcache={"bypass": False})) == "miss"
    assert model.forget(tag="a") == 1
    assert route(model.invoke(RIVER, config, stepcache="refresh")) == "miss"
    assert model.forget(tag="a") == 0


async def test_wishes_are_heard_asynchronously(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """``ainvoke``, ``astream``, ``abatch``, and chains in tasks of their own."""
    async with httpx.AsyncClient() as client:
        model = StepCacheChatModel(llm=chat(http_async_client=client))
        chain = ChatPromptTemplate.from_messages([("user", RIVER)]) | model
        config = {"configurable": {"stepcache": {"namespace": "ann"}}}
        told = [
            await model.ainvoke(RIVER, config),
            joined([c async for c in model.astream(RIVER, config)]),
            (await model.abatch([RIVER], config))[0],
            *(await asyncio.gather(chain.ainvoke({}, config), chain.ainvoke({}))),
        ]
    assert [route(m) for m in told] == ["miss", "exact", "exact", "exact", "miss"]


def test_a_time_to_live_for_one_call(chat: Make) -> None:
    """Seconds this answer may be served."""
    from stepcache.stores import MemoryStore

    now = [1000.0]
    model = StepCacheChatModel(llm=chat(), store=MemoryStore(clock=lambda: now[0]))
    model.invoke(RIVER, stepcache={"ttl": 10})
    now[0] += 11
    assert route(model.invoke(RIVER)) == "miss"


def test_reporting_a_bad_answer(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """It goes, its re-worded twin too, and the same text is not kept again."""
    model = StepCacheChatModel(llm=chat())
    entry = model.invoke(MATH).response_metadata["stepcache"]["entry_id"]
    model.invoke("Please find x if 13 = 3 + 2x.")
    assert model.report_bad(entry)
    assert [route(model.invoke(MATH)) for _ in range(2)] == ["miss", "miss"]
    assert model.engine.count() == 0
    assert model.forget("nothing") == 0


def test_the_cache_face_hears_what_a_chain_is_told(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """LangChain hands a cache no configuration; inside a chain it can be read all the same."""
    cache = StepCache()
    chain = ChatPromptTemplate.from_messages([("user", RIVER)]) | chat(cache=cache)

    def ask(wish: Any) -> int:
        chain.invoke({}, {"configurable": {"stepcache": wish}})
        return endpoint.calls

    assert [ask("bypass"), ask("bypass"), ask(None), ask(None)] == [1, 2, 3, 3]
    assert [ask({"namespace": "ann", "tags": "t"}), ask({"namespace": "ann"})] == [4, 4]
    assert cache.forget(tag="t") == 1
    assert ask(None) == 4


def test_readers_may_want_the_unverified(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """As a field of the model, or for one call: the model's own chunks, and no line is proven."""
    endpoint.answer = lambda request: "2x = 11\n\nx = 5.5"
    for model, kwargs in (
        (StepCacheChatModel(llm=chat(), stream_unverified=True), {}),
        (StepCacheChatModel(llm=chat()), {"stepcache": {"stream_unverified": True}}),
    ):
        chunks = list(model.stream(MATH, **kwargs))
        assert len([c for c in chunks if c.content]) > 2
        assert joined(chunks).content == "2x = 11\n\nx = 5.5"
        assert model.engine.count() == 0
        assert model.invoke(MATH).content.endswith("x = 5")


def test_a_miss_streams_verified_lines_as_they_come(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """A wrong third line is never read; what was read stands."""
    endpoint.answer = lambda request: "2x + 3 = 13\n\n2x = 10\n\nx = 6"
    model = StepCacheChatModel(llm=chat())
    chunks = [c.content for c in model.stream(MATH) if c.content]
    assert chunks[:2] == ["2x + 3 = 13\n\n", "2x = 10\n\n"]
    assert "6" not in "".join(chunks)
    assert "".join(chunks).endswith("x = 5")
    again = StepCacheChatModel(llm=chat()).invoke(MATH)
    assert again.content == "".join(chunks)
