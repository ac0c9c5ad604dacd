"""The chat model in chains: every way of asking, the same story."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from langchain_stepcache import StepCacheChatModel
from stepcache import Policy
from stepcache.testing.endpoint import ScriptedEndpoint

Make = Callable[..., ChatOpenAI]
PROMPT = ChatPromptTemplate.from_messages([("system", "Answer briefly."), ("user", "{ask}")])

STORY = [
    ("Solve 2x + 3 = 13 for x.", "miss"),
    ("Solve 2x + 3 = 13 for x.", "exact"),
    ("Please find x if 13 = 3 + 2x.", "reuse"),
    ("Describe Rome as a JSON object with keys name, country.", "miss"),
    ("Give a JSON object describing Rome with the keys: name, country", "reuse"),
    ("Describe Rome as a JSON object with keys name, country, river.", "patch"),
    ("Describe Rome as a JSON object with keys country, river.", "adapt"),
    ("Describe Oslo as a JSON object with keys name, country.", "skip"),
    ("Name a river.", "miss"),
    ("Name a river.", "exact"),
]


def seen(message: Any) -> dict[str, Any]:
    """What StepCache says of an answer."""
    told: dict[str, Any] = message.response_metadata["stepcache"]
    return told


def story(messages: Sequence[Any]) -> list[tuple[str, str, list[str]]]:
    """Text, route and trace of each answer."""
    return [(m.content, seen(m)["route"], seen(m)["trace"]) for m in messages]


def wrapped(make: Make, **fields: Any) -> Any:
    """The prompt in front of a wrapped model."""
    return PROMPT | StepCacheChatModel(llm=make(), **fields)


def invoked(chain: Any) -> list[Any]:
    """The story by ``invoke``."""
    return [chain.invoke({"ask": text}) for text, _ in STORY]


def joined(chunks: Sequence[Any]) -> Any:
    """One message of all chunks."""
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


def test_the_story_by_invoke(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Each request goes the expected way, and only misses, skips and patches ask the model."""
    messages = invoked(wrapped(chat))
    assert [(text, seen(m)["route"]) for (text, _), m in zip(STORY, messages)] == STORY
    assert endpoint.calls == sum(route in ("miss", "skip", "patch") for _, route in STORY)
    assert json.loads(messages[5].content) == {"name": "Rome", "country": "Italy", "river": "Tiber"}
    assert json.loads(messages[6].content) == {"country": "Italy", "river": "Tiber"}


def test_every_way_of_asking_tells_the_same_story(chat: Make) -> None:
    """invoke, ainvoke, batch, abatch, stream and astream: same text, route and trace."""
    expected = story(invoked(wrapped(chat)))
    asks = [{"ask": text} for text, _ in STORY]
    one = {"max_concurrency": 1}

    async def asynchronous() -> list[list[Any]]:
        async with httpx.AsyncClient() as client:

            def make() -> ChatOpenAI:
                return chat(http_async_client=client)

            invoking, batching, streaming = (wrapped(make) for _ in range(3))
            return [
                [await invoking.ainvoke(ask) for ask in asks],
                await batching.abatch(asks, one),
                [joined([c async for c in streaming.astream(ask)]) for ask in asks],
            ]

    streaming = wrapped(chat)
    assert story([joined(list(streaming.stream(ask))) for ask in asks]) == expected
    assert story(wrapped(chat).batch(asks, one)) == expected
    for messages in asyncio.run(asynchronous()):
        assert story(messages) == expected


def test_a_hit_streams_step_by_step(chat: Make) -> None:
    """Each verified step is a chunk; what is said once is said on the last."""
    model = StepCacheChatModel(llm=chat())
    model.invoke("Solve 2x + 3 = 13 for x.")
    chunks = list(model.stream("Solve 2x + 3 = 13 for x."))
    assert [c.content for c in chunks if c.content] == ["2x + 3 = 13\n\n", "2x = 10\n\n", "x = 5"]
    assert ["stepcache" in c.response_metadata for c in chunks] == [False] * (len(chunks) - 1) + [
        True
    ]
    assert joined(chunks).response_metadata["model_name"] == "scripted"


def test_closing_a_stream_early_keeps_nothing(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Half an answer is no answer; the next reader gets a whole one."""
    model = StepCacheChatModel(llm=chat())
    stream = model.stream("Name a river.")
    next(stream)
    stream.close()
    assert model.engine.count() == 0
    assert seen(model.invoke("Name a river."))["route"] == "miss"


def test_tokens_are_counted_as_the_server_counts_them(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """Over misses, hits, patches and repairs the usage callback agrees with the endpoint."""
    chain = wrapped(chat)
    with get_usage_metadata_callback() as counted:
        messages = invoked(chain)
    assert sum(use["total_tokens"] for use in counted.usage_metadata.values()) == endpoint.tokens
    spent = sum(
        seen(m)["spent"]["prompt_tokens"] + seen(m)["spent"]["completion_tokens"] for m in messages
    )
    assert spent == endpoint.tokens


def test_a_hit_is_fresh(chat: Make) -> None:
    """Changing a returned message changes nothing kept, and no message id comes twice."""
    model = StepCacheChatModel(llm=chat())
    first = model.invoke("Name a river.")
    first.content = "changed"
    second = model.invoke("Name a river.")
    second.content, second.response_metadata["model_name"] = "changed", "changed"
    third = model.invoke("Name a river.")
    assert third.content == "The Elbe."
    assert third.response_metadata["model_name"] == "scripted"
    assert third.usage_metadata == {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    assert len({m.id for m in (first, second, third)}) == 3


def test_parameters_part_requests(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """A call's own arguments, and changed fields of a live model, make another request."""
    inner = chat()
    model = StepCacheChatModel(llm=inner)
    model.invoke("Name a river.")
    model.invoke("Name a river.", stop=["."])
    model.bind(temperature=0.5).invoke("Name a river.")
    inner.temperature = 0.9
    model.invoke("Name a river.")
    assert endpoint.calls == 4
    model.invoke("Name a river.")
    assert endpoint.calls == 4


def test_two_endpoints_are_two_models(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """One engine in front of two base URLs keeps their answers apart."""
    with ScriptedEndpoint(lambda request: "The Oder.") as other:
        one = StepCacheChatModel(llm=chat())
        two = StepCacheChatModel(llm=chat(base_url=other.url), engine=one.engine)
        assert one.invoke("Name a river.").content == "The Elbe."
        assert two.invoke("Name a river.").content == "The Oder."


def test_a_bound_model_is_taken_with_its_arguments(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """``llm.bind(...)`` is accepted, and what it binds reaches the endpoint."""
    model = StepCacheChatModel(llm=chat().bind(temperature=0.25))
    model.invoke("Name a river.")
    assert endpoint.requests[-1]["temperature"] == 0.25


def test_anything_else_is_refused_with_the_fix(chat: Make) -> None:
    """A runnable around the model says to wrap the model first."""
    with pytest.raises(ValueError, match="with_retry"):
        StepCacheChatModel(llm=chat().with_retry())


class Failing(BaseChatModel):
    """A model with an error of its own."""

    error: Any = None

    @property
    def _llm_type(self) -> str:
        return "failing"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise self.error


@pytest.mark.parametrize("prompt", ["", "Name a river.", "Solve 2x + 3 = 13 for x."])
def test_the_models_own_error_comes_through(prompt: str) -> None:
    """The same exception object, by every way of asking."""
    error = ConnectionResetError("the endpoint hung up")
    model = StepCacheChatModel(llm=Failing(error=error))
    for ask in (
        lambda: model.invoke(prompt),
        lambda: list(model.stream(prompt)),
        lambda: asyncio.run(model.ainvoke(prompt)),
    ):
        with pytest.raises(ConnectionResetError) as caught:
            ask()
        assert caught.value is error


class Broken:
    """A store of which every method raises."""

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError("no such disk")

    get = search = put = remove = clear = count = close = _fail


def test_a_broken_store_is_never_the_users_fault(chat: Make) -> None:
    """The answer is the bare model's; the trace says what broke."""
    model = StepCacheChatModel(llm=chat(), store=Broken())
    for _ in range(2):
        message = model.invoke("Name a river.")
        assert message.content == "The Elbe."
        assert any("store failed" in line for line in seen(message)["trace"])
    assert "".join(c.content for c in model.stream("Name a river.")) == "The Elbe."


@pytest.mark.parametrize(
    "prompt", ["", " ", "x" * 1_000_000, "a\0b", "Solve 2x\0 + 3 = 13", "naïve café 解方程"]
)
def test_odd_prompts_get_what_the_bare_model_gives(chat: Make, prompt: str) -> None:
    """Empty, huge, NUL, other languages: the bare model's answer, twice."""
    bare = chat().invoke(prompt).content
    model = StepCacheChatModel(llm=chat())
    assert [model.invoke(prompt).content for _ in range(2)] == [bare, bare]


def test_lone_surrogates_raise_what_the_bare_model_raises(chat: Make) -> None:
    """What cannot be sent cannot be sent, in the model's own words."""
    with pytest.raises(UnicodeEncodeError) as bare:
        chat().invoke("a\ud800b")
    with pytest.raises(UnicodeEncodeError) as ours:
        StepCacheChatModel(llm=chat()).invoke("a\ud800b")
    assert str(ours.value) == str(bare.value)


def test_calls_beside_the_users_are_silent(chat: Make) -> None:
    """A patch starts no run of its own and none of its tokens reach the callbacks."""

    class Listening(BaseCallbackHandler):
        def __init__(self) -> None:
            self.starts = 0
            self.tokens: list[str] = []

        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            self.starts += 1

        def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
            self.tokens.append(str(token))

    model = StepCacheChatModel(llm=chat())
    model.invoke("Describe Rome as a JSON object with keys name, country.")
    heard = Listening()
    ask = "Describe Rome as a JSON object with keys name, country, river."
    chunks = list(model.stream(ask, config={"callbacks": [heard]}))
    assert seen(chunks[-1])["route"] == "patch"
    assert heard.starts == 1
    assert "".join(heard.tokens) == "".join(c.content for c in chunks)


def test_the_rate_limiter_is_for_the_model_only(chat: Make) -> None:
    """A hit takes no permit; a miss takes one."""

    class Counting(InMemoryRateLimiter):
        taken = 0

        def acquire(self, *, blocking: bool = True) -> bool:
            type(self).taken += 1
            return True

    model = StepCacheChatModel(llm=chat(rate_limiter=Counting(requests_per_second=1000)))
    for _ in range(3):
        model.invoke("Name a river.")
    list(model.stream("Name a lake."))
    assert Counting.taken == 2


def test_truncated_answers_are_not_kept(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """``finish_reason: length`` reaches the user once and nobody again."""
    from stepcache import Reply

    endpoint.answer = lambda request: Reply(text="The El", finish_reason="length")
    model = StepCacheChatModel(llm=chat())
    assert [seen(model.invoke("Name a river."))["route"] for _ in range(2)] == ["miss", "miss"]
    assert model.engine.count() == 0


def test_a_wrong_answer_is_corrected(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The paper's fallback: the user reads the right value, with the reason beside it."""
    endpoint.answer = lambda request: "x = 4"
    message = StepCacheChatModel(llm=chat(), policy=Policy(max_repairs=1)).invoke(
        "Solve 2x + 3 = 13 for x."
    )
    assert message.content.strip().endswith("x = 5")
    assert seen(message)["route"] == "fallback"
    assert endpoint.calls == 2


class City(BaseModel):
    """A city."""

    name: str
    country: str


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output_returns_the_callers_class(chat: Make, method: str) -> None:
    """On a miss and on a hit alike."""
    from langchain_openai import ChatOpenAI as Inner

    def script(request: Any) -> Any:
        if request.get("tools"):
            function = {"name": "City", "arguments": '{"name": "Rome", "country": "Italy"}'}
            return {"tool_calls": [{"id": "call-1", "type": "function", "function": function}]}
        return '{"name": "Rome", "country": "Italy"}'

    with ScriptedEndpoint(script) as endpoint:
        inner = Inner(model="scripted", base_url=endpoint.url, api_key="none")
        chain = StepCacheChatModel(llm=inner).with_structured_output(City, method=method)
        answers = [chain.invoke("Describe Rome.") for _ in range(3)]
        assert answers == [City(name="Rome", country="Italy")] * 3
        assert endpoint.calls == 1


def test_configurable_fields_keep_the_engine(chat: Make) -> None:
    """A model rebuilt for another inner one still answers from the same engine."""
    from langchain_core.runnables import ConfigurableField

    model = StepCacheChatModel(llm=chat())
    configurable = model.configurable_fields(llm=ConfigurableField("llm"))
    prepared, _ = configurable._prepare({"configurable": {"llm": chat(temperature=1)}})
    assert prepared.engine is model.engine


def test_generations_carry_what_the_suites_expect(chat: Make) -> None:
    """A hit's generation is one ``ChatGeneration`` of an ``AIMessage`` without the old id."""
    model = StepCacheChatModel(llm=chat())
    model.invoke("Name a river.")
    result = model.generate([[HumanMessage("Name a river.")]])
    generation = result.generations[0][0]
    assert isinstance(generation, ChatGeneration)
    assert generation.message.id.startswith("lc_run")
