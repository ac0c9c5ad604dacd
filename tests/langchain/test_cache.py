"""``set_llm_cache(StepCache())``: what a cache that sees two strings can do, and what it must not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.globals import set_llm_cache
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, Generation
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from langchain_stepcache import StepCache
from stepcache import ConfigurationError, Reply, StepCacheEngine
from stepcache.testing.endpoint import ScriptedEndpoint

Make = Callable[..., ChatOpenAI]
ADDED = "Describe Rome as a JSON object with keys name, country, river."
BASE = "Describe Rome as a JSON object with keys name, country."


@pytest.fixture
def installed() -> Iterator[Callable[..., StepCache]]:
    """Installs a cache for LangChain as a whole, and takes it out again."""

    def install(**fields: Any) -> StepCache:
        cache = StepCache(**fields)
        set_llm_cache(cache)
        return cache

    yield install
    set_llm_cache(None)


def route(message: Any) -> str:
    """The way an answer went; misses are LangChain's own answers."""
    return str(message.response_metadata.get("stepcache", {}).get("route", "none"))


def test_no_argument_is_needed(installed: Any, chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Exact repeats, re-worded requests and deterministic changes are served without the model."""
    installed()
    model = chat()
    asks = [
        "Solve 2x + 3 = 13 for x.",
        "Solve 2x + 3 = 13 for x.",
        "Please find x if 13 = 3 + 2x.",
        ADDED,
        BASE,
        "Describe Oslo as a JSON object with keys name, country.",
        "Solve 2x - 3 = 13 for x.",
    ]
    told = [route(model.invoke(ask)) for ask in asks]
    assert told[:6] == ["none", "exact", "reuse", "none", "adapt", "none"]
    assert told[6] in ("none", "adapt")
    assert endpoint.calls == told.count("none")
    assert model.invoke(asks[6]).content.strip().endswith("x = 8")


def test_without_a_model_a_missing_part_is_a_miss(
    installed: Any, chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """An added key cannot be made up: LangChain asks the model for the whole answer."""
    installed()
    model = chat()
    model.invoke(BASE)
    assert route(model.invoke(ADDED)) == "none"
    assert endpoint.calls == 2


@pytest.mark.parametrize("how", ["argument", "register"])
def test_with_a_model_only_the_missing_part_is_asked_for(
    installed: Any, chat: Make, endpoint: ScriptedEndpoint, how: str
) -> None:
    """The bound model is asked once, beside LangChain, and the tokens are counted once."""
    model = chat()
    cache = installed(model=model) if how == "argument" else installed()
    if how == "register":
        assert cache.register(model) is model
    with get_usage_metadata_callback() as counted:
        model.invoke(BASE)
        patched = model.invoke(ADDED)
    assert route(patched) == "patch"
    assert '"river": "Tiber"' in patched.content
    assert endpoint.calls == 2
    assert sum(u["total_tokens"] for u in counted.usage_metadata.values()) == endpoint.tokens


def test_another_model_is_never_asked(
    installed: Any, chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """A registered model makes parts of its own answers only."""
    installed(model=chat(temperature=1))
    model = chat()
    model.invoke(BASE)
    assert route(model.invoke(ADDED)) == "none"


def test_the_asynchronous_face_does_the_same(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """``ainvoke`` and ``abatch``: same routes, the patch made by the asynchronous client."""
    import httpx

    async def run() -> list[str]:
        async with httpx.AsyncClient() as client:
            model = chat(http_async_client=client)
            cache = StepCache(model=model)
            model.cache = cache
            first = await model.ainvoke(BASE)
            rest = await model.abatch([BASE, ADDED], {"max_concurrency": 1})
            return [route(m) for m in [first, *rest]]

    assert asyncio.run(run()) == ["none", "exact", "patch"]


def test_hits_are_lists_of_fresh_copies(chat: Make) -> None:
    """LangChain changes what a cache returns; nothing kept may notice."""
    cache = StepCache()
    model = chat(cache=cache)
    model.invoke("Name a river.")
    first = model.invoke("Name a river.")
    first.content = "changed"
    first.response_metadata.clear()
    again = model.invoke("Name a river.")
    assert again.content == "The Elbe."
    assert again.usage_metadata["total_tokens"] == 0
    assert AIMessage.model_validate(again.model_dump()) == again
    assert again.id is None or again.id != first.id


@pytest.mark.parametrize(
    "metadata",
    [
        {"model_name": "m", "finish_reason": "stop"},
        {"safety": [{"category": "none"}], "empty": []},
        {"filters": {"prompt": {}}},
    ],
)
def test_records_are_not_shared_by_the_messages_made_of_them(metadata: dict[str, Any]) -> None:
    """Whatever a reader does to one, down to what is nested in it, the next is as it was kept."""
    cache = StepCache()
    kept = ChatGeneration(
        message=AIMessage(content="The Elbe.", response_metadata=metadata),
        generation_info={**metadata},
    )
    prompt, model = dumps([HumanMessage("Name a river.")]), "[('model', 'm'), ('stop', None)]"
    cache.update(prompt, model, [kept])
    before = None
    for _ in range(3):
        found = cache.lookup(prompt, model)
        assert found is not None
        generation: Any = found[0]
        told = generation.message.response_metadata
        said = {**told, "stepcache": None}, generation.generation_info, generation.text
        assert before in (None, deepcopy(said))
        before = deepcopy(said)
        for value in (*told.values(), *generation.generation_info.values()):
            if isinstance(value, list):
                value.append("changed")
            elif isinstance(value, dict):
                value["changed"] = True
        told["changed"] = generation.generation_info["changed"] = True
    assert before is not None
    assert before[1] == metadata


def test_a_call_read_before_is_read_by_the_settings_of_now() -> None:
    """What is remembered of a call's two strings is not what was decided of them."""
    cache = StepCache()
    prompt, model = "Name a river.", "[('_type', 'fake-list'), ('stop', None)]"
    answer = [Generation(text="The Elbe.")]
    cache.update(prompt, model, answer)
    assert cache.lookup(prompt, model) is None
    cache.completions = True
    cache.update(prompt, model, answer)
    assert cache.lookup(prompt, model) == answer
    cache.completions = False
    assert cache.lookup(prompt, model) is None


def test_secrets_are_not_stored(chat: Make, tmp_path: Path) -> None:
    """Headers and bodies stand in LangChain's key in clear; the file never holds them."""
    path = tmp_path / "cache.sqlite3"
    cache = StepCache(store=path)
    model = chat(cache=cache, default_headers={"Authorization": "hunter2-secret"})
    model.invoke("Name a river.")
    assert route(model.invoke("Name a river.")) == "exact"
    cache.engine.close()
    for file in tmp_path.iterdir():
        assert b"hunter2-secret" not in file.read_bytes()


def test_tenants_are_apart(chat: Make) -> None:
    """LangChain's key names no tenant, so the namespace does."""
    engine = StepCacheEngine(namespace="one")
    model = chat(cache=StepCache(engine=engine))
    model.invoke("Name a river.")
    other = chat(cache=StepCache(store=engine.store, namespace="two"))
    assert route(other.invoke("Name a river.")) == "none"


class Broken:
    """A store of which every method raises."""

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError("no such disk")

    get = search = put = remove = clear = count = close = _fail


def test_faults_stay_inside(chat: Make) -> None:
    """A broken store costs the reuse, never the call."""
    model = chat(cache=StepCache(store=Broken()))
    assert [model.invoke("Name a river.").content for _ in range(2)] == ["The Elbe."] * 2


def test_forged_records_are_misses() -> None:
    """What stands in a store is believed as far as it can be read, and revives nothing."""
    cache = StepCache()
    prompt = dumps([HumanMessage("Name a river.")])
    for record in (
        "",
        "[",
        '{"v": 99}',
        '{"lc": 1, "type": "constructor", "id": ["os", "system"]}',
    ):
        request, _ = cache._asked(prompt, "[('stop', None)]")
        cache.engine.admit(request, Reply(text="The Elbe.", message=record))
        (generation,) = cache.lookup(prompt, "[('stop', None)]")
        assert type(generation) is ChatGeneration
        assert generation.message.content == "The Elbe."


def test_completion_models_pass_through_by_default() -> None:
    """Their key leaves per-call arguments out, so a hit could be another request's answer."""
    model = FakeListLLM(responses=["one", "two", "three"], cache=StepCache())
    assert model.invoke("hi") == "one"
    assert model.invoke("hi") != "one"
    model = FakeListLLM(responses=["one", "two"], cache=StepCache(completions=True))
    assert [model.invoke("hi"), model.invoke("hi")] == ["one", "one"]


def test_several_samples_are_kept_as_several(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """``n=3`` comes back as three, in order, and is never taken for one answer."""
    model = chat(cache=StepCache(), n=3)
    messages = [[HumanMessage("Name a river.")]]
    first, second = model.generate(messages), model.generate(messages)
    assert [len(r.generations[0]) for r in (first, second)] == [3, 3]
    assert [g.text for g in second.generations[0]] == ["The Elbe."] * 3
    assert endpoint.calls == 1


def test_tool_calls_come_back_whole(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Name, arguments and type survive; another tool list is another request."""
    function = {"name": "river", "arguments": '{"city": "Rome"}'}
    endpoint.answer = lambda request: {
        "tool_calls": [{"id": "call-1", "type": "function", "function": function}]
    }

    def river(city: str) -> str:
        """The river of a city."""
        return city

    def lake(city: str) -> str:
        """The lake of a city."""
        return city

    model = chat(cache=StepCache())
    first, second = (model.bind_tools([river]).invoke("Rome?") for _ in range(2))
    assert route(second) == "exact"
    assert second.tool_calls[0]["args"] == first.tool_calls[0]["args"] == {"city": "Rome"}
    assert route(model.bind_tools([river, lake]).invoke("Rome?")) == "none"


def test_a_second_agent_run_is_the_same_request() -> None:
    """Ids, token counts and provider metadata of earlier turns are chance, and left out."""
    cache = StepCache()

    def history(run: int) -> str:
        call = {"name": "river", "args": {"city": "Rome"}, "id": f"call-{run}"}
        usage = {"input_tokens": run, "output_tokens": 1, "total_tokens": run + 1}
        return dumps(
            [
                HumanMessage("Which river?", id=f"h{run}"),
                AIMessage(
                    "", tool_calls=[call], usage_metadata=usage, response_metadata={"id": run}
                ),
                ToolMessage("Tiber", tool_call_id=f"call-{run}", artifact=object()),
            ]
        )

    answer = [ChatGeneration(message=AIMessage("The Tiber."))]
    cache.update(history(1), "[('stop', None)]", answer)
    hit = cache.lookup(history(2), "[('stop', None)]")
    assert hit is not None
    assert hit[0].message.content == "The Tiber."
    assert cache.lookup(history(2).replace("Tiber", "Elbe"), "[('stop', None)]") is None


class One(BaseModel):
    """A schema."""

    name: str


def test_a_schema_that_cannot_be_read_is_exact_only(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """A class shows in LangChain's key by its name only: re-worded requests miss."""
    endpoint.answer = lambda request: '{"name": "Rome"}'
    model = chat(cache=StepCache()).with_structured_output(One)
    ask = "Describe Rome as a JSON object with keys name."
    assert model.invoke(ask) == One(name="Rome")
    assert model.invoke(ask) == One(name="Rome")
    assert endpoint.calls == 1
    model.invoke("Give a JSON object describing Rome with the keys: name")
    assert endpoint.calls == 2


def test_plain_generations_come_back_as_they_were() -> None:
    """No metadata is put into what is not ours."""
    cache = StepCache()
    stored = [Generation(text="one", generation_info={"a": 1}), Generation(text="two")]
    cache.update("prompt", "model", stored)
    assert cache.lookup("prompt", "model") == stored
    cache.clear()
    assert cache.lookup("prompt", "model") is None


def test_only_chat_models_can_be_registered() -> None:
    """The error names what was given."""
    with pytest.raises(ConfigurationError, match="FakeListLLM"):
        StepCache(model=FakeListLLM(responses=["x"]))  # type: ignore[arg-type]


def test_a_global_cache_is_not_consulted_by_the_wrapper(installed: Any, chat: Make) -> None:
    """Two caches in a row would count and keep everything twice."""
    from langchain_stepcache import StepCacheChatModel

    cache = installed()
    StepCacheChatModel(llm=chat()).invoke("Name a river.")
    assert cache.engine.count() == 0


def test_restarting_keeps_the_answers(
    chat: Make, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    """The same file in a new cache object answers without the model, re-worded too."""
    for ask in ("Solve 2x + 3 = 13 for x.", "Please find x if 13 = 3 + 2x."):
        cache = StepCache(store=tmp_path / "cache.sqlite3")
        message = chat(cache=cache).invoke(ask)
        cache.engine.close()
    assert route(message) == "reuse"
    assert endpoint.calls == 1
