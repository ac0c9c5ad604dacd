"""What one call may ask of the cache, in every way of asking."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import PromptTemplate, SummaryIndex
from llama_index.core.agent.react import ReActChatFormatter, ReActOutputParser
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.llms import LLM, ChatMessage, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, PrivateAttr

from llamaindex_stepcache import StepCacheLLM
from stepcache import Control, Policy, UsageError
from stepcache.stores import MemoryStore

Make = Callable[..., LLM]
TALK = "Say something about old ships."


class Place(BaseModel):
    """A place."""

    name: str
    degrees: int


def user(text: str) -> list[ChatMessage]:
    """A conversation of one question."""
    return [ChatMessage(role="user", content=text)]


# --- every face ----------------------------------------------------------------------------------


async def test_bypass(face: Any, endpoint: Any, inner: Make) -> None:
    """A call past the cache asks the model, neither serves nor keeps, and tells the model nothing."""
    llm = StepCacheLLM(llm=inner())
    await face.ask(llm, "small")
    asked, kept = endpoint.calls, llm.engine.count()
    for _ in range(2):
        await face.ask(llm, "small", stepcache={"bypass": True})
    assert endpoint.calls == 3 * asked
    assert llm.engine.count() == kept
    assert "stepcache" not in json.dumps(endpoint.asked)
    await face.ask(llm, "small")
    assert endpoint.calls == 3 * asked


async def test_refresh(face: Any, endpoint: Any, inner: Make) -> None:
    """A refreshing call asks the model and what it got is served from then on."""
    llm = StepCacheLLM(llm=inner())
    await face.ask(llm, "small")
    asked = endpoint.calls
    await face.ask(llm, "small", stepcache={"refresh": True})
    assert endpoint.calls == 2 * asked
    await face.ask(llm, "small")
    assert endpoint.calls == 2 * asked


async def test_tags_and_ttl_are_kept_and_are_no_identity(
    face: Any, endpoint: Any, inner: Make
) -> None:
    """What labels an answer and how long it may live do not make it another request."""
    store = MemoryStore()
    llm = StepCacheLLM(llm=inner(), store=store)
    await face.ask(llm, "small", stepcache={"tags": ["a", "b"], "ttl": 1000})
    asked = endpoint.calls
    kept = list(store.entries())
    assert kept
    assert all(entry.tags == ("a", "b") and entry.expires is not None for entry in kept)
    await face.ask(llm, "small")
    await face.ask(llm, "small", stepcache={"tags": "c", "ttl": 5})
    assert endpoint.calls == asked


async def test_a_namespace_for_one_call(face: Any, endpoint: Any, inner: Make) -> None:
    """A call behind another wall sees nothing from before it, and leaves nothing behind."""
    llm = StepCacheLLM(llm=inner())
    await face.ask(llm, "small", stepcache={"namespace": "tenant"})
    asked = endpoint.calls
    await face.ask(llm, "small", stepcache={"namespace": "tenant"})
    assert endpoint.calls == asked
    await face.ask(llm, "small")
    assert endpoint.calls == 2 * asked


async def test_a_wish_that_does_not_exist_is_named(face: Any, endpoint: Any, inner: Make) -> None:
    """A misspelt wish is the caller's mistake and is told before the model is asked."""
    with pytest.raises(UsageError, match="bypas"):
        await face.ask(StepCacheLLM(llm=inner()), "small", stepcache={"bypas": True})
    assert endpoint.calls == 0


# --- the rest ------------------------------------------------------------------------------------


def test_wishes_in_llm_kwargs(endpoint: Any, inner: Make) -> None:
    """Structured calls take them beside the LLM's own arguments, and leave the caller's dict alone."""
    llm = StepCacheLLM(llm=inner())
    given: dict[str, Any] = {"max_tokens": 50, "stepcache": {"bypass": True}}

    for asked in (1, 2):
        llm.structured_predict(Place, PromptTemplate("Name 'Oslo'."), llm_kwargs=given)
        assert endpoint.calls == asked
    assert given == {"max_tokens": 50, "stepcache": {"bypass": True}}
    assert endpoint.asked[-1]["max_tokens"] == 50


def test_a_prompt_may_have_a_variable_of_that_name(endpoint: Any, inner: Make) -> None:
    """Where the template names ``stepcache`` itself, the argument is the template's."""
    llm = StepCacheLLM(llm=inner())
    llm.predict(PromptTemplate("Say {stepcache} aloud."), stepcache="bypass")
    assert endpoint.asked[0]["messages"][0]["content"] == "Say bypass aloud."
    assert llm.engine.routes == {"miss": 1}


def test_a_standing_wish_yields_to_a_calls_own(endpoint: Any, inner: Make) -> None:
    """Single wishes of a call go before those that stand; a whole control takes the place of all."""
    llm = StepCacheLLM(llm=inner()).controlled(bypass=True, tags=("x",))
    llm.chat(user(TALK))
    assert llm.engine.routes == {"bypass": 1}
    llm.chat(user(TALK), stepcache={"bypass": False})
    assert list(llm.engine.store.entries())[0].tags == ("x",)  # type: ignore[attr-defined] # noqa: RUF015
    llm.chat(user(TALK), stepcache=Control())
    llm.chat(user(TALK), stepcache="refresh")
    assert llm.engine.routes == {"bypass": 1, "miss": 2, "exact": 1}
    assert endpoint.calls == 3


def test_a_controlled_llm_shares_engine_and_counters(endpoint: Any, inner: Make) -> None:
    """It is the same cache with a wish: what one learns the other serves, and both count together."""
    llm = StepCacheLLM(llm=inner())
    other = llm.controlled(tags=("query",))
    assert other.engine is llm.engine
    index = SummaryIndex([])
    index.as_query_engine(llm=other)
    other.chat(user(TALK))
    llm.chat(user(TALK))
    assert llm.engine.routes == {"miss": 1, "exact": 1}
    assert llm.spent == other.spent
    assert llm.spent.tokens == llm.avoided.tokens == endpoint.delivered
    with pytest.raises(UsageError, match="ttl"):
        llm.controlled(ttl=-1)


def test_wishes_never_reach_an_llm_that_prepares_tools_its_own_way(inner: Make) -> None:
    """Neither what prepares a call with tools nor what validates its answer is told of the cache."""
    seen: list[dict[str, Any]] = []

    class Watching(type(inner())):  # type: ignore[misc]
        def _prepare_chat_with_tools(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            seen.append(kwargs)
            prepared: dict[str, Any] = super()._prepare_chat_with_tools(*args, **kwargs)
            return prepared

        def _validate_chat_with_tools_response(self, *args: Any, **kwargs: Any) -> Any:
            seen.append(kwargs)
            return super()._validate_chat_with_tools_response(*args, **kwargs)

        def chat(self, messages: Any, **kwargs: Any) -> Any:
            seen.append(kwargs)
            return super().chat(messages, **kwargs)

    made: Any = inner()
    settings = {"model": made.model, "api_base": made.api_base, "api_key": "k"}
    llm = StepCacheLLM(
        llm=Watching(**settings, is_chat_model=True, is_function_calling_model=True, max_retries=0)
    )

    def look(place: str) -> str:
        """Look at a place."""
        return place

    for stepcache in ("refresh", {"tags": ["t"]}):
        llm.chat_with_tools([FunctionTool.from_defaults(look)], "at 'Rome'", stepcache=stepcache)
    assert len(seen) >= 3
    assert all("stepcache" not in kwargs for kwargs in seen)


@pytest.mark.filterwarnings(
    "ignore:The `(__fields__|model_fields|model_computed_fields|__fields_set__)` attribute",
    "ignore:Accessing the 'model_(fields|computed_fields)' attribute",
)
def test_react_over_an_llm_without_tools() -> None:
    """The host's text-prompted way of calling tools is cached and controlled like any chat."""
    llm = StepCacheLLM(llm=MockLLM())

    def look(place: str) -> str:
        """Look at a place."""
        return place

    host: dict[str, Any] = {
        "react_chat_formatter": ReActChatFormatter(),
        "output_parser": ReActOutputParser(),
        "memory": ChatMemoryBuffer.from_defaults(token_limit=4000, tokenizer_fn=str.split),
    }
    tools = [FunctionTool.from_defaults(look)]
    bare = str(MockLLM().predict_and_call(tools, user_msg="hello", **host))
    if "requires a running workflow" in bare:
        pytest.skip("this host's shortcut does not run outside of a workflow")
    answers = [str(llm.predict_and_call(tools, user_msg="hello", **host)) for _ in range(2)]
    assert answers == [bare, bare]
    assert llm.engine.routes == {"miss": 1, "exact": 1}
    llm.predict_and_call(tools, user_msg="hello", **host, stepcache={"bypass": True})
    assert llm.engine.routes == {"miss": 1, "exact": 1, "bypass": 1}


# --- streams ---------------------------------------------------------------------------------------


class _Paced(MockLLM):
    """A model that solves the equation word by word, and knows how far it was read."""

    _given: list[str] = PrivateAttr(default_factory=list)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        def pieces() -> Iterator[CompletionResponse]:
            for word in re.findall(r"\S+\s*", SOLUTION):
                self._given.append(word)
                yield CompletionResponse(text="".join(self._given), delta=word)

        return pieces()


EQUATION = "Solve 2x + 3 = 13 for x."
SOLUTION = "Subtract 3 from both sides: 2x = 10\n\nDivide both sides by 2: x = 5"


def test_a_verified_step_is_shown_before_the_next_is_made() -> None:
    """On a miss of a known family, the first step reaches the reader while the model still writes."""
    inner = _Paced()
    stream = StepCacheLLM(llm=inner).stream_complete(EQUATION)
    first = next(stream)
    assert first.text.strip() == SOLUTION.split("\n\n")[0]
    assert "".join(inner._given) != SOLUTION
    rest = list(stream)
    assert first.delta + "".join(chunk.delta for chunk in rest) == rest[-1].text == SOLUTION
    assert rest[-1].additional_kwargs["stepcache"]["route"] == "miss"


def test_a_verified_stream_closed_early_keeps_nothing() -> None:
    """Half an answer is no answer, proven or not."""
    llm = StepCacheLLM(llm=_Paced())
    stream = llm.stream_complete(EQUATION)
    next(stream)
    stream.close()
    assert llm.engine.count() == 0


@pytest.mark.parametrize("how", ["call", "policy", "standing"])
async def test_a_stream_may_pass_through_unverified(how: str, inner: Make) -> None:
    """Whoever wants the first token soonest gets the model's own chunks on every miss."""
    bare = list(inner().stream_chat(user(EQUATION)))
    assert len(bare) > 3
    wish: dict[str, Any] = {"stepcache": {"stream_unverified": True}} if how == "call" else {}
    policy = Policy(stream_unverified=True) if how == "policy" else None
    for asynchronous in (False, True):
        llm = StepCacheLLM(llm=inner(), policy=policy)
        if how == "standing":
            llm = llm.controlled(stream_unverified=True)
        if asynchronous:
            ours = [chunk async for chunk in await llm.astream_chat(user(EQUATION), **wish)]
        else:
            ours = list(llm.stream_chat(user(EQUATION), **wish))
        assert [chunk.delta for chunk in ours] == [chunk.delta for chunk in bare]
        assert llm.chat(user(EQUATION)).additional_kwargs["stepcache"]["route"] == "exact"


@pytest.mark.parametrize("by_schema", [True, False], ids=["by-schema", "by-tool"])
def test_structured_streams_grow_where_they_may_pass_unverified(
    by_schema: bool, inner: Make
) -> None:
    """Then the caller sees the object grow, as without a cache; the answer is kept all the same."""
    llm = StepCacheLLM(llm=inner(should_use_structured_outputs=by_schema))
    prompt = PromptTemplate("The weather in 'Oslo' at 7 degrees.")
    bare = list(
        inner(should_use_structured_outputs=by_schema).stream_structured_predict(Place, prompt)
    )
    ours = list(llm.stream_structured_predict(Place, prompt, stepcache={"stream_unverified": True}))
    assert [o.model_dump() for o in ours] == [b.model_dump() for b in bare]
    assert llm.structured_predict(Place, prompt).model_dump() == bare[-1].model_dump()
    assert llm.engine.routes == {"miss": 1, "exact": 1}


# --- forgetting ------------------------------------------------------------------------------------


def test_an_answer_is_forgotten_by_entry_tag_or_namespace(inner: Make) -> None:
    """What is forgotten is asked for again, and nothing else is."""
    llm = StepCacheLLM(llm=inner())
    asked = [f"Say something about {what}." for what in ("one", "two", "three", "four")]
    wishes: list[Any] = [None, {"tags": ["a"]}, {"namespace": "n"}, {"tags": ["a", "b"]}]
    responses = [llm.chat(user(text), stepcache=w) for text, w in zip(asked, wishes)]

    def known() -> list[bool]:
        entries = llm.engine.store.entries()  # type: ignore[attr-defined]
        prompts = {entry.prompt for entry in entries}
        return [text in prompts for text in asked]

    assert known() == [True] * 4
    entry = responses[0].additional_kwargs["stepcache"]["entry_id"]
    assert llm.forget(entry) == 1
    assert known() == [False, True, True, True]
    assert llm.forget(tag="a") == 2
    assert known() == [False, False, True, False]
    assert llm.forget(namespace="n") == 1
    assert known() == [False] * 4
    with pytest.raises(UsageError):
        llm.forget()


def test_a_bad_answer_does_not_come_back(endpoint: Any, inner: Make) -> None:
    """A reported answer is removed, and the same words are not kept when the model repeats them."""
    llm = StepCacheLLM(llm=inner())
    bad = llm.chat(user(TALK)).additional_kwargs["stepcache"]["entry_id"]
    assert llm.report_bad(bad)
    assert not llm.report_bad(bad)
    for asked in (2, 3):
        llm.chat(user(TALK))
        assert endpoint.calls == asked
    assert llm.engine.count() == 0
