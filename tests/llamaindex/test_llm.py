"""``StepCacheLLM`` around a real LlamaIndex LLM at a real HTTP endpoint."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import openai
import pytest
from llama_index.core.base.llms.types import CompletionResponse, ImageBlock, TextBlock
from llama_index.core.llms import LLM, ChatMessage, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from pydantic import BaseModel, ConfigDict

from llamaindex_stepcache import StepCacheLLM
from stepcache import AnswerRejected, ConfigurationError, Policy, StepCacheEngine
from stepcache.stores import MemoryStore

EQUATION = "Solve 2x + 3 = 13 for x."
REWORDED = "Please solve 2x + 3 = 13 for x."
CITY = "Describe Paris as a JSON object with keys name, country."
LARGER = "Describe Paris as a JSON object with keys name, country, population."
OTHER_CITY = "Describe Rome as a JSON object with keys name, country, population."
TALK = "Say something about old ships."

SCRIPT = (EQUATION, EQUATION, REWORDED, CITY, LARGER, OTHER_CITY, TALK, TALK)
ROUTES = ["miss", "exact", "reuse", "miss", "patch", "skip", "miss", "exact"]
CALLS = [1, 0, 0, 1, 1, 1, 1, 0]

Make = Callable[..., LLM]


def user(text: str) -> list[ChatMessage]:
    """A conversation of one question."""
    return [ChatMessage(role="user", content=text)]


def told(response: Any) -> dict[str, Any]:
    """What StepCache says of a response."""
    summary: dict[str, Any] = response.additional_kwargs["stepcache"]
    return summary


# --- the main job ------------------------------------------------------------------------------


def test_a_script_takes_every_main_route(endpoint: Any, inner: Make) -> None:
    """Miss, exact, reuse, patch and skip happen where they should, and cost the calls they should."""
    llm = StepCacheLLM(llm=inner())
    routes, calls = [], []
    for prompt in SCRIPT:
        before = endpoint.calls
        routes.append(told(llm.chat(user(prompt)))["route"])
        calls.append(endpoint.calls - before)
    assert (routes, calls) == (ROUTES, CALLS)


def test_a_patch_asks_for_the_missing_key_only(endpoint: Any, inner: Make) -> None:
    """The added key is asked for, and the rest of the answer is the earlier one."""
    llm = StepCacheLLM(llm=inner())
    first = json.loads(llm.chat(user(CITY)).message.content or "")
    response = llm.chat(user(LARGER))
    answer = json.loads(response.message.content or "")
    assert {k: answer[k] for k in first} == first
    assert list(answer) == ["name", "country", "population"]
    assert 'only the keys: "population"' in endpoint.asked[-1]["messages"][-1]["content"]
    assert told(response)["patched_steps"] == 1


def test_a_patch_carries_the_hosts_own_history(endpoint: Any, inner: Make) -> None:
    """Messages that are more than text reach the model in a patch as they do in the request."""
    image = ImageBlock(url="https://example.org/paris.png")
    history = [ChatMessage(role="user", blocks=[TextBlock(text="Look."), image])]
    history.append(ChatMessage(role="assistant", content="I see."))
    llm = StepCacheLLM(llm=inner())
    llm.chat([*history, *user(CITY)])
    assert told(llm.chat([*history, *user(LARGER)]))["route"] == "patch"
    first, second = endpoint.asked
    assert second["messages"][:-1] == first["messages"][:-1]
    assert "example.org" in json.dumps(second["messages"][0])


def test_a_rejected_answer_can_be_an_error(endpoint: Any, inner: Make) -> None:
    """With ``on_reject="raise"`` a caller learns that nothing passed, and gets the answer with it."""
    endpoint.wrong = 2
    policy = Policy(on_reject="raise", fallback=False)
    llm = StepCacheLLM(llm=inner(), policy=policy)
    with pytest.raises(AnswerRejected) as caught:
        llm.chat(user(EQUATION))
    assert "x = 6" in caught.value.outcome.text
    assert llm.engine.count() == 0


def test_usage_is_what_was_spent(endpoint: Any, inner: Make) -> None:
    """Token fields tell of calls made now: the endpoint's own sum over misses, hits and patches."""
    llm = StepCacheLLM(llm=inner())
    responses = [llm.chat(user(prompt)) for prompt in SCRIPT]
    assert sum(r.additional_kwargs["total_tokens"] for r in responses) == endpoint.delivered
    hit = responses[1]
    assert hit.additional_kwargs["total_tokens"] == 0
    assert dict(hit.raw)["usage"]["total_tokens"] == 0
    assert told(hit)["avoided"]["calls"] == 1


def test_a_wrong_answer_is_replaced_and_the_new_one_is_told(endpoint: Any, inner: Make) -> None:
    """An answer that fails the check is not handed on with the raw form of the wrong one."""
    endpoint.wrong = 2
    llm = StepCacheLLM(llm=inner())
    response = llm.chat(user(EQUATION))
    assert "x = 5" in (response.message.content or "")
    assert told(response)["spent"]["calls"] == 2
    assert response.additional_kwargs["total_tokens"] == endpoint.delivered
    assert response.raw["usage"]["total_tokens"] == endpoint.delivered


def test_a_miss_keeps_the_models_own_response(endpoint: Any, inner: Make) -> None:
    """What the model said reaches the caller with its raw form, beside the summary."""
    bare, wrapped = inner().chat(user(TALK)), StepCacheLLM(llm=inner()).chat(user(TALK))
    assert wrapped.message == bare.message
    assert type(wrapped.raw) is type(bare.raw)
    assert {k: wrapped.additional_kwargs[k] for k in bare.additional_kwargs} == {
        **bare.additional_kwargs
    }


def test_completions_endpoint(endpoint: Any, inner: Make) -> None:
    """A model that is no chat model is cached, patched and repaired too."""
    llm = StepCacheLLM(llm=inner(is_chat_model=False, is_function_calling_model=False))
    routes = [told(llm.complete(prompt))["route"] for prompt in SCRIPT]
    assert routes == ROUTES
    assert all("prompt" in body for body in endpoint.asked)


# --- all ways of asking are one ------------------------------------------------------------------


async def _chat(llm: StepCacheLLM, prompt: str) -> Any:
    return llm.chat(user(prompt))


async def _achat(llm: StepCacheLLM, prompt: str) -> Any:
    return await llm.achat(user(prompt))


async def _stream(llm: StepCacheLLM, prompt: str) -> Any:
    return _checked(list(llm.stream_chat(user(prompt))), lambda c: c.message.content or "")


async def _astream(llm: StepCacheLLM, prompt: str) -> Any:
    chunks = [chunk async for chunk in await llm.astream_chat(user(prompt))]
    return _checked(chunks, lambda c: c.message.content or "")


async def _complete(llm: StepCacheLLM, prompt: str) -> Any:
    return llm.complete(prompt)


async def _acomplete(llm: StepCacheLLM, prompt: str) -> Any:
    return await llm.acomplete(prompt)


async def _stream_complete(llm: StepCacheLLM, prompt: str) -> Any:
    return _checked(list(llm.stream_complete(prompt)), lambda c: c.text)


async def _astream_complete(llm: StepCacheLLM, prompt: str) -> Any:
    chunks = [chunk async for chunk in await llm.astream_complete(prompt)]
    return _checked(chunks, lambda c: c.text)


def _checked(chunks: list[Any], text: Callable[[Any], str]) -> Any:
    """The last chunk, after seeing that all are cumulative and only the last has a summary."""
    said = ""
    for chunk in chunks:
        said += chunk.delta or ""
        assert text(chunk) == said
    assert [("stepcache" in c.additional_kwargs) for c in chunks] == [
        *(False for _ in chunks[1:]),
        True,
    ]
    return chunks[-1]


WAYS = (
    *(_chat, _achat, _stream, _astream),
    *(_complete, _acomplete, _stream_complete, _astream_complete),
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
async def test_every_way_of_asking_is_the_same(
    way: Callable[[StepCacheLLM, str], Awaitable[Any]], inner: Make
) -> None:
    """Text, route and trace of the script are equal in all eight methods."""
    reference, llm = StepCacheLLM(llm=inner()), StepCacheLLM(llm=inner())
    complete = "complete" in way.__name__
    for prompt in SCRIPT:
        expected = reference.complete(prompt) if complete else reference.chat(user(prompt))
        response = await way(llm, prompt)
        assert str(response) == str(expected)
        assert _without_tokens(told(response)) == _without_tokens(told(expected))
    assert reference.engine.routes == llm.engine.routes


def _without_tokens(summary: dict[str, Any]) -> dict[str, Any]:
    """A stream tells no token counts unless it is asked to."""
    return {
        k: v for k, v in summary.items() if k not in ("spent", "avoided", "entry_id", "trace")
    } | {
        "trace": [event for event in summary["trace"] if not event.startswith("admitted")],
        "calls": (summary["spent"]["calls"], summary["avoided"]["calls"]),
    }


async def test_the_ways_share_their_answers(endpoint: Any, inner: Make) -> None:
    """What one chat method has learned the others serve without asking."""
    llm = StepCacheLLM(llm=inner())
    async for _ in await llm.astream_chat(user(TALK)):
        pass
    before = endpoint.calls
    assert [told(await way(llm, TALK))["route"] for way in WAYS[:4]] == ["exact"] * 4
    assert endpoint.calls == before


async def test_async_methods_ask_asynchronously(inner: Make) -> None:
    """No synchronous method of the wrapped LLM is used by an asynchronous one."""

    class OnlyAsync(type(inner())):  # type: ignore[misc]
        def chat(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("asked synchronously")

        complete = stream_chat = stream_complete = chat

    made = inner()
    settings = {"model": made.model, "api_base": made.api_base, "is_chat_model": True}
    llm = StepCacheLLM(llm=OnlyAsync(**settings, api_key="k", max_retries=0))
    for way in WAYS[1::2]:
        assert [told(await way(llm, p))["route"] for p in (CITY, LARGER)][-1] in ("patch", "exact")


# --- streams -----------------------------------------------------------------------------------


def test_live_chunks_pass_through_untouched(inner: Make) -> None:
    """On a miss that nothing has to verify, the model's own chunks come, the last with the summary."""
    bare = list(inner().stream_chat(user(TALK)))
    ours = list(StepCacheLLM(llm=inner()).stream_chat(user(TALK)))
    assert [(c.message, c.delta, type(c.raw)) for c in ours] == [
        (c.message, c.delta, type(c.raw)) for c in bare
    ]
    assert [c.additional_kwargs for c in ours[:-1]] == [c.additional_kwargs for c in bare[:-1]]
    assert ours[-1].additional_kwargs.pop("stepcache")["route"] == "miss"
    assert ours[-1].additional_kwargs == bare[-1].additional_kwargs


def test_a_stream_closed_early_stores_nothing(inner: Make) -> None:
    """Half an answer is no answer."""
    llm = StepCacheLLM(llm=inner())
    stream = llm.stream_chat(user(TALK))
    next(stream)
    next(stream)
    stream.close()
    assert llm.engine.count() == 0
    assert told(list(llm.stream_chat(user(TALK)))[-1])["route"] == "miss"


async def test_an_async_stream_closed_early_stores_nothing(inner: Make) -> None:
    """Half an answer is no answer, asynchronously."""
    llm = StepCacheLLM(llm=inner())
    stream = await llm.astream_chat(user(TALK))
    await anext(stream)
    await stream.aclose()
    assert llm.engine.count() == 0
    assert told(await llm.achat(user(TALK)))["route"] == "miss"


def test_a_stream_without_its_terminal_event_stores_nothing(endpoint: Any, inner: Make) -> None:
    """A stream that just stops is not known to be whole."""
    endpoint.finish = None
    llm = StepCacheLLM(llm=inner())
    assert list(llm.stream_chat(user(TALK)))
    assert llm.engine.count() == 0


class _Breaking(MockLLM):
    """A model whose stream breaks after two pieces."""

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        def pieces() -> Iterator[CompletionResponse]:
            yield CompletionResponse(text="one ", delta="one ")
            yield CompletionResponse(text="one two ", delta="two ")
            raise ConnectionError("gone")

        return pieces()


async def test_what_came_before_a_break_is_handed_over() -> None:
    """The chunk held back for the summary is not lost when the stream breaks; nothing is kept."""
    llm = StepCacheLLM(llm=_Breaking())
    seen: list[str | None] = []

    async def read() -> None:
        async for chunk in await llm.astream_complete(TALK):
            seen.append(chunk.delta)  # noqa: PERF401 - what came before the error is looked at

    with pytest.raises(ConnectionError, match="gone"):
        seen.extend(chunk.delta for chunk in llm.stream_complete(TALK))
    with pytest.raises(ConnectionError, match="gone"):
        await read()
    assert seen == ["one ", "two "] * 2
    assert llm.engine.count() == 0


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_cut_answer_stores_nothing(finish: str, endpoint: Any, inner: Make) -> None:
    """An answer that did not come to its own end is handed over and not kept."""
    endpoint.finish = finish
    llm = StepCacheLLM(llm=inner())
    assert llm.chat(user(TALK)).message.content
    assert list(llm.stream_chat(user(TALK)))[-1].message.content
    assert llm.engine.count() == 0


# --- nothing is hidden, nothing breaks -----------------------------------------------------------


def test_the_models_error_passes_through(endpoint: Any, inner: Make) -> None:
    """The caller sees the very error that the bare LLM raises."""
    endpoint.status = 500
    llm = StepCacheLLM(llm=inner())
    calls: list[Callable[[], Any]] = [
        lambda: llm.chat(user(TALK)),
        lambda: llm.complete(EQUATION),
        lambda: list(llm.stream_chat(user(TALK))),
        lambda: list(llm.stream_complete(EQUATION)),
    ]
    for call in calls:
        with pytest.raises(openai.InternalServerError, match="the model is out"):
            call()
    assert llm.engine.count() == 0
    endpoint.status = 200
    assert told(llm.chat(user(TALK)))["route"] == "miss"


async def test_the_models_error_passes_through_async(endpoint: Any, inner: Make) -> None:
    """The same for the asynchronous methods."""
    endpoint.status = 500
    llm = StepCacheLLM(llm=inner())
    for way in WAYS[1::2]:
        with pytest.raises(openai.InternalServerError):
            await way(llm, TALK)


class _Broken:
    """A store and an embedder of which nothing works."""

    fingerprint, dimension = "broken", 8

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def fail(*_: Any, **__: Any) -> Any:
            raise OSError(f"{name} is broken")

        return fail

    get = search = put = remove = clear = count = close = embed = lambda self, *_, **__: _fail()


def _fail() -> Any:
    raise OSError("broken")


@pytest.mark.parametrize("broken", ["store", "embedder"])
async def test_a_broken_port_breaks_no_call(broken: str, inner: Make) -> None:
    """A store or embedder that raises costs hits, not answers."""
    settings: dict[str, Any] = {broken: _Broken()}
    llm = StepCacheLLM(llm=inner(), **settings)
    for way in WAYS:
        for prompt in (EQUATION, LARGER, TALK):
            assert str(await way(llm, prompt))


@pytest.mark.parametrize(
    "text",
    ["", " ", "\0", "a\ud800b", "x" * 1_000_000],
    ids=["empty", "blank", "nul", "lone", "1MB"],
)
def test_odd_prompts_are_answered_as_the_bare_model_would(text: str, inner: Make) -> None:
    """Whatever the bare LLM does with an odd prompt, the wrapped one does."""

    def outcome(call: Callable[[], Any]) -> Any:
        try:
            return str(call())
        except Exception as error:
            return type(error)

    assert outcome(lambda: StepCacheLLM(llm=inner()).chat(user(text))) == outcome(
        lambda: inner().chat(user(text))
    )


def test_a_call_the_translation_cannot_read_reaches_the_model() -> None:
    """A demand that makes the translation itself fail is the wrapped LLM's affair, and is not kept."""

    class Schemaless(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        lock: Flag

    llm = StepCacheLLM(llm=MockLLM())
    response = llm.complete("fine", response_format=Schemaless)
    assert str(response) == "fine"
    assert told(response)["route"] == "bypass"
    assert llm.engine.count() == 0


class Flag:
    """A class that has no JSON schema."""


# --- what callers get is theirs ------------------------------------------------------------------


def test_answers_are_new_objects_every_time(inner: Make) -> None:
    """A caller who changes an answer changes nothing for the next one."""
    llm = StepCacheLLM(llm=inner())
    for _ in range(3):
        response = llm.chat(user(TALK))
        assert "ruined" not in str(response)
        assert "noise" not in response.message.additional_kwargs
        response.message.content = "ruined"
        response.message.additional_kwargs["noise"] = 1
        told(response)["trace"].clear()
        assert told(llm.chat(user(TALK)))["trace"]


def test_an_answer_in_the_history_is_the_same_fresh_or_from_the_cache(
    endpoint: Any, inner: Make
) -> None:
    """The second run of a conversation is served to its end."""
    llm = StepCacheLLM(llm=inner())
    for expected in (2, 2):
        history = user(TALK)
        history.append(llm.chat(history).message)
        history += user("And about new ones?")
        llm.chat(history)
        assert endpoint.calls == expected


def test_a_caller_keeps_his_lists(inner: Make) -> None:
    """Neither messages nor keyword arguments of the caller are changed."""
    llm = StepCacheLLM(llm=inner())
    messages, extra = user(LARGER), {"extra_body": {"seed": 1}}
    for _ in range(2):
        llm.chat(messages, **extra)
    assert messages == user(LARGER)
    assert extra == {"extra_body": {"seed": 1}}


# --- walls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 0.9},
        {"max_tokens": 7},
        {"additional_kwargs": {"seed": 1}},
        {"default_headers": {"x-org": "b"}},
        {"model": "other"},
        {"api_key": "another account"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_setting_is_another_wall(changes: dict[str, Any], inner: Make) -> None:
    """Whatever may change an answer separates answers."""
    engine = StepCacheEngine()
    StepCacheLLM(llm=inner(), engine=engine).chat(user(EQUATION))
    other = StepCacheLLM(llm=inner(**changes), engine=engine)
    assert told(other.chat(user(EQUATION)))["route"] == "miss"


def test_machinery_is_no_wall(inner: Make) -> None:
    """Timeouts and retries do not change answers."""
    engine = StepCacheEngine()
    StepCacheLLM(llm=inner(), engine=engine).chat(user(EQUATION))
    other = StepCacheLLM(llm=inner(timeout=5.0, max_retries=1), engine=engine)
    assert told(other.chat(user(EQUATION)))["route"] == "exact"


def test_settings_are_read_at_every_call(inner: Make) -> None:
    """Changing the wrapped LLM changes the wall at once."""
    made = inner()
    llm = StepCacheLLM(llm=made)
    llm.chat(user(EQUATION))
    made.temperature = 0.7  # type: ignore[attr-defined]
    assert told(llm.chat(user(EQUATION)))["route"] == "miss"


def test_call_arguments_are_a_wall(inner: Make) -> None:
    """Per-call arguments separate answers; one without a JSON form keeps the call out."""
    llm = StepCacheLLM(llm=inner())
    llm.chat(user(EQUATION))
    assert told(llm.chat(user(EQUATION), max_tokens=9))["route"] == "miss"
    assert told(llm.chat(user(EQUATION), max_tokens=9))["route"] == "exact"
    assert told(llm.chat(user(EQUATION), timeout=openai.Timeout(20)))["route"] == "bypass"


def test_chat_and_complete_are_apart(inner: Make) -> None:
    """A completion is not a conversation."""
    llm = StepCacheLLM(llm=inner())
    llm.chat(user(EQUATION))
    assert told(llm.complete(EQUATION))["route"] == "miss"


def test_namespaces_are_apart(inner: Make) -> None:
    """Tenants that share an engine share no answers."""
    engine = StepCacheEngine()
    first, second = (StepCacheLLM(llm=inner(), engine=engine, namespace=n) for n in "ab")
    first.chat(user(EQUATION))
    assert told(second.chat(user(EQUATION)))["route"] == "miss"
    assert told(first.chat(user(EQUATION)))["route"] == "exact"


def test_a_system_prompt_is_a_wall(inner: Make) -> None:
    """Earlier messages are identity."""
    llm = StepCacheLLM(llm=inner())
    llm.chat(user(EQUATION))
    system = ChatMessage(role="system", content="Answer in Latin.")
    assert told(llm.chat([system, *user(EQUATION)]))["route"] == "miss"


def test_prompt_functions_are_a_wall_for_completions(inner: Make) -> None:
    """A template that the LLM itself applies is part of the question; a closure has no identity."""
    engine = StepCacheEngine()

    def asked(**changes: Any) -> str:
        return str(told(StepCacheLLM(llm=inner(**changes), engine=engine).complete(TALK))["route"])

    mark = "Q: "
    assert asked() == "miss"
    assert asked(completion_to_prompt=_loud) == "miss"
    assert asked(completion_to_prompt=_loud) == "exact"
    assert asked(completion_to_prompt=lambda prompt: mark + prompt) == "bypass"


def _loud(prompt: str) -> str:
    return prompt.upper()


# --- the host's expectations ---------------------------------------------------------------------


def test_it_is_what_the_host_looks_for(inner: Make) -> None:
    """Class, metadata and the shape of the streaming methods are what LlamaIndex inspects."""
    made = inner()
    llm = StepCacheLLM(llm=made)
    assert isinstance(llm, FunctionCallingLLM)
    assert llm.metadata == made.metadata
    assert llm.model == "small"
    assert inspect.iscoroutinefunction(StepCacheLLM.astream_chat)
    assert inspect.iscoroutinefunction(StepCacheLLM.astream_complete)


def test_what_the_host_applies_is_taken_over(inner: Make) -> None:
    """System prompt and prompt functions of the wrapped LLM work on the wrapper."""
    made = inner(system_prompt="Be brief.", completion_to_prompt=_loud)
    llm = StepCacheLLM(llm=made)
    assert llm.system_prompt == "Be brief."
    assert llm.completion_to_prompt is _loud
    assert llm.callback_manager is made.callback_manager
    assert StepCacheLLM(llm=made, system_prompt="Be long.").system_prompt == "Be long."


def test_no_secret_leaves_by_serialisation(endpoint: Any, inner: Make) -> None:
    """Neither the settings nor the event payload nor a stored entry holds the key."""
    store = MemoryStore()
    made = inner(default_headers={"Authorization": "Bearer sk-never-to-be-kept"})
    heard: list[Any] = []
    engine = StepCacheEngine(store=store, listeners=[lambda r, o, s: heard.append((r, o))])
    llm = StepCacheLLM(llm=made, engine=engine)
    llm.chat(user(TALK))
    assert "sk-never-to-be-kept" not in json.dumps(llm.to_dict())
    assert "sk-never-to-be-kept" not in json.dumps(llm.to_payload(), default=str)
    assert "sk-never-to-be-kept" not in repr(llm)
    assert "sk-never-to-be-kept" not in repr(heard)
    assert "sk-never-to-be-kept" not in repr(vars(store))


def test_settings_come_back_with_the_llm_given_anew(inner: Make) -> None:
    """``from_dict`` rebuilds the wrapper around an LLM that brings its own secrets."""
    llm = StepCacheLLM(llm=inner(), namespace="a", prefill=True, system_prompt="Be brief.")
    again = StepCacheLLM.from_dict(llm.to_dict(), llm=inner())
    assert (again.namespace, again.prefill, again.system_prompt) == ("a", True, "Be brief.")


def test_wrong_arguments_are_named(inner: Make) -> None:
    """What cannot work is said when it is given."""
    with pytest.raises(ConfigurationError, match="pass a LlamaIndex LLM"):
        StepCacheLLM(llm="gpt")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="engine and policy, ttl"):
        StepCacheLLM(llm=inner(), engine=StepCacheEngine(), policy=Policy(), ttl=3)
    with pytest.raises(ConfigurationError, match="ttl"):
        StepCacheLLM(llm=inner(), ttl=-1)


def test_prefill_sends_the_verified_beginning(endpoint: Any, inner: Make) -> None:
    """With ``prefill`` a closing assistant message carries the beginning; without it none does."""
    from llamaindex_stepcache._ports import InnerLLM
    from llamaindex_stepcache._translate import HostCall, to_request
    from stepcache import Message, ModelCall

    made = inner()
    call = HostCall(kind="chat", messages=user(EQUATION), kwargs={})
    request = to_request(call, made, "")
    part = ModelCall(
        purpose="patch",
        messages=(Message(role="user", text="Go on: Solve x + 1 = 3"),),
        prefix="Subtract 1 from both sides: x = 2",
    )
    for prefill in (True, False):
        backend: InnerLLM[Any] = InnerLLM(made, call, request, prefill)
        reply = backend.generate(part)
        last = endpoint.asked[-1]["messages"][-1]
        assert (last["role"] == "assistant") is prefill
        # This endpoint repeats what it was to go on from.
        assert reply.text.startswith("Subtract 1") is not prefill
