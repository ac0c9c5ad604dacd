"""What users of other caches complain about, as far as it concerns a plugin; by the number it has
in the notes on peers.

Covered elsewhere, by the test named:

- B2, B3: ``test_traps`` 13 and 12. B5, B7, C1, C2: ``test_structured``.
- B12: ``test_tools.test_another_schema_another_choice_is_another_request``.
- B13: ``test_modes.test_with_fallbacks_keeps_each_models_answers_apart``.
- C3: ``test_cache.test_several_samples_are_kept_as_several``. C5: ``test_tools``.
- C6, C8: ``test_traps`` 04 and 01. D1, D4: ``test_traps`` 15.
- D2: ``test_modes.test_every_call_is_exactly_one_run``.
- D3: ``test_chat_model.test_a_hit_streams_step_by_step``.
- E1, E2: ``test_traps`` 05 and 18. F3: ``test_traps`` 03.
- F5: ``test_architecture.test_a_bare_environment_answers_a_request``.
- Taking out a wrong answer (A11): ``test_modes.test_reporting_a_bad_answer``.
"""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI

from langchain_stepcache import StepCache, StepCacheChatModel
from stepcache import StepCacheEngine
from stepcache.embedders import LexicalEmbedder
from stepcache.stores import MemoryStore
from stepcache.testing import FaultyEmbedder
from stepcache.testing.endpoint import ScriptedEndpoint
from stepcache.testing.obliging import obliging

Make = Callable[..., ChatOpenAI]
RIVER = "Name a river."
MATH = "Solve 2x + 3 = 13 for x."
ROME = "Describe Rome as a JSON object with keys name, country."
ROME_AND_RIVER = "Describe Rome as a JSON object with keys name, country, river."


def route(message: Any) -> str:
    """The way an answer went; "none" for LangChain's own."""
    return str(message.response_metadata.get("stepcache", {}).get("route", "none"))


def joined(chunks: Any) -> Any:
    """One message of all chunks."""
    total = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return total


# --- B: identity ---------------------------------------------------------------------------------


@pytest.mark.parametrize("face", ["cache", "model"])
def test_b1_two_models_do_not_share(chat: Make, endpoint: ScriptedEndpoint, face: str) -> None:
    """The same words to another model are another request."""
    engine = StepCacheEngine()
    for name in ("one", "two", "one", "two"):
        inner = chat(model=name, cache=StepCache(engine=engine) if face == "cache" else None)
        model: Any = inner if face == "cache" else StepCacheChatModel(llm=inner, engine=engine)
        model.invoke(RIVER)
    assert [request["model"] for request in endpoint.requests] == ["one", "two"]


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0.1},
        {"max_tokens": 5},
        {"seed": 1},
        {"logit_bias": {"5": 1}},
        {"top_p": 0.5},
        {"frequency_penalty": 1.0},
        {"extra_body": {"top_k": 3}},
        {"extra_body": {"num_ctx": 4096}},
        {"model_kwargs": {"user": "ann"}},
        {"stop": ["."]},
        {"reasoning_effort": "low"},
    ],
)
def test_b4_parameters_nobody_knows_are_identity(
    chat: Make, endpoint: ScriptedEndpoint, fields: dict[str, Any]
) -> None:
    """As a field of the model, and those that can be given to one call there too."""
    engine = StepCacheEngine()
    StepCacheChatModel(llm=chat(), engine=engine).invoke(RIVER)
    model = StepCacheChatModel(llm=chat(**fields), engine=engine)
    assert [route(model.invoke(RIVER)) for _ in range(2)] == ["miss", "exact"]
    plain = StepCacheChatModel(llm=chat(), engine=engine)
    if "model_kwargs" not in fields:
        assert [route(plain.invoke(RIVER, **fields)) for _ in range(2)] == ["miss", "exact"]


def test_b6_a_schema_changed_while_the_model_answers(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """The key and what is kept are those of the question as it was asked."""
    schema: dict[str, Any] = {
        "title": "City",
        "description": "A city.",
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }

    def answer(request: Any) -> str:
        schema["properties"]["name"]["description"] = "changed"
        schema["required"].append("country")
        return '{"name": "Rome"}'

    endpoint.answer = answer
    model = StepCacheChatModel(llm=chat())
    original = copy.deepcopy(schema)
    wanted = {"type": "json_schema", "json_schema": {"name": "City", "schema": schema}}
    model.bind(response_format=wanted).invoke("Describe Rome.")
    (entry,) = model.engine.store.entries()
    assert entry.constraints.values["schema"] == original
    wanted["json_schema"] = {"name": "City", "schema": original}
    for _ in range(2):
        assert route(model.bind(response_format=wanted).invoke("Describe Rome.")) == "exact"
    assert endpoint.calls == 1


PROGRAM = """
import sys
from langchain_openai import ChatOpenAI
from langchain_stepcache import StepCache, StepCacheChatModel

def river(city: str) -> str:
    '''The river of a city.'''
    return city

url, path, face = sys.argv[1:]
llm = ChatOpenAI(model="m", base_url=url, api_key="k")
if face == "cache":
    llm.cache = StepCache(store=path)
else:
    llm = StepCacheChatModel(llm=llm, store=path)
print(llm.bind_tools([river]).invoke("The river of 'Rome'?").tool_calls[0]["args"])
print(llm.invoke("Name a river.").content)
"""


@pytest.mark.parametrize("face", ["cache", "model"])
def test_b8_b9_a_restart_keeps_the_answers(
    chat: Make, endpoint: ScriptedEndpoint, tmp_path: Path, face: str
) -> None:
    """Another process, other addresses, another hash seed: the same keys, tools included."""
    endpoint.answer = obliging
    said = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-c", PROGRAM, endpoint.url, str(tmp_path / "c.db"), face]
        env = {"PYTHONHASHSEED": seed, "PATH": ""}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
        said.add(done.stdout)
    assert endpoint.calls == 2
    assert len(said) == 1


def test_b10_ids_metadata_and_white_space_are_no_difference(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """Of earlier turns chance is left out; of the closing words, white space at their ends."""
    model = StepCacheChatModel(llm=chat())

    def thread(run: int, tail: str = "") -> list[Any]:
        return [
            HumanMessage("Hello.", id=f"h{run}"),
            AIMessage(
                "Hello!",
                id=f"a{run}",
                response_metadata={"id": run},
                additional_kwargs={"trace": run},
            ),
            HumanMessage(f"{RIVER}{tail}", id=f"q{run}"),
        ]

    told = [route(model.invoke(thread(run))) for run in (1, 2)]
    told.append(route(model.invoke(thread(3, " \n"))))
    assert told == ["miss", "exact", "reuse"]
    assert endpoint.calls == 1


@pytest.mark.parametrize("face", ["cache", "model"])
def test_b11_images_are_identity(chat: Make, endpoint: ScriptedEndpoint, face: str) -> None:
    """The same words beside another picture are another question."""
    model: Any = chat(cache=StepCache()) if face == "cache" else StepCacheChatModel(llm=chat())

    def ask(picture: str) -> Any:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        return model.invoke([HumanMessage([{"type": "text", "text": RIVER}, image])])

    for picture in ("AAAA", "BBBB", "AAAA"):
        ask(picture)
    assert endpoint.calls == 2


@pytest.mark.parametrize("face", ["cache", "model"])
def test_b14_endpoints_are_identity(chat: Make, endpoint: ScriptedEndpoint, face: str) -> None:
    """One model name at two places is two models."""
    engine = StepCacheEngine()
    with ScriptedEndpoint(lambda request: "The Oder.") as other:
        for url, expected in ((endpoint.url, "The Elbe."), (other.url, "The Oder.")):
            inner = chat(base_url=url)
            model: Any = StepCacheChatModel(llm=inner, engine=engine)
            if face == "cache":
                inner.cache = StepCache(engine=engine)
                model = inner
            assert model.invoke(RIVER).content == expected


def test_b15_system_prompts_and_history_are_identity(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """Two programs behind one store do not answer for each other."""
    engine = StepCacheEngine()
    for system in ("Answer in one word.", "Answer at length."):
        model = StepCacheChatModel(llm=chat(), engine=engine)
        for ask in (MATH, "Please find x if 13 = 3 + 2x."):
            model.invoke([SystemMessage(system), HumanMessage(ask)])
    assert endpoint.calls == 2


def test_b16_sharing_is_asked_for_by_name(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Models of one group serve each other; others do not, and groups stay apart."""
    engine = StepCacheEngine()
    told = []
    for name, group in (("a", "g"), ("b", "g"), ("c", None), ("d", "h"), ("a", None)):
        model = StepCacheChatModel(llm=chat(model=name), group=group, engine=engine)
        told.append(route(model.invoke(RIVER)))
    assert told == ["miss", "exact", "miss", "miss", "miss"]


# --- C: fidelity ---------------------------------------------------------------------------------


def test_c4_reasoning_and_usage_details(chat: Make) -> None:
    """What a provider puts beside the text is there on a hit, streamed too; usage is the call's."""
    answer = AIMessage(
        "The Elbe.",
        additional_kwargs={"reasoning_content": "Rivers have names."},
        usage_metadata={
            "input_tokens": 3,
            "output_tokens": 9,
            "total_tokens": 12,
            "output_token_details": {"reasoning": 5},
        },
    )
    model = StepCacheChatModel(llm=GenericFakeChatModel(messages=iter([answer])))
    first = model.invoke(RIVER)
    assert first.usage_metadata["output_token_details"] == {"reasoning": 5}
    for hit in (model.invoke(RIVER), joined(model.stream(RIVER))):
        assert hit.additional_kwargs["reasoning_content"] == "Rivers have names."
        assert hit.usage_metadata["total_tokens"] == 0
        spent = hit.response_metadata["stepcache"]["avoided"]
        assert (spent["prompt_tokens"], spent["completion_tokens"]) == (3, 9)


def test_c7_every_answer_says_what_it_is(chat: Make) -> None:
    """Route, reason, steps, entry, tokens and trace, on a miss as on a hit."""
    model = StepCacheChatModel(llm=chat())
    for ask in (ROME, ROME, ROME_AND_RIVER, "Describe Oslo as a JSON object with keys name."):
        told = model.invoke(ask).response_metadata["stepcache"]
        assert set(told) >= {
            *("route", "reason", "reused_steps", "patched_steps"),
            *("entry_id", "spent", "avoided", "trace"),
        }
        assert told["reason"]
        assert json.loads(json.dumps(told)) == told


class Odd(GenericFakeChatModel):
    """A model whose messages hold what no JSON can."""

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        message = next(self.messages)
        assert isinstance(message, AIMessage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def test_c9_what_cannot_be_written_is_not_kept(chat: Make) -> None:
    """It reaches the user as it is, and no half of it anybody else."""
    odd = [{"type": "text", "text": "a"}, {"type": "thing", "value": object()}]
    model = StepCacheChatModel(llm=Odd(messages=iter([AIMessage(odd), AIMessage("The Elbe.")])))
    assert model.invoke(RIVER).content == odd
    assert model.engine.count() == 0
    assert model.invoke(RIVER).content == "The Elbe."


# --- D: streaming --------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [RIVER, MATH, ROME])
def test_d5_streams_and_calls_share(chat: Make, endpoint: ScriptedEndpoint, ask: str) -> None:
    """What one has made the other finds, in both directions."""
    one, two = StepCacheChatModel(llm=chat()), StepCacheChatModel(llm=chat())
    called, streamed = one.invoke(ask), joined(one.stream(ask))
    assert (called.content, route(streamed)) == (streamed.content, "exact")
    streamed, called = joined(two.stream(ask)), two.invoke(ask)
    assert (called.content, route(called)) == (streamed.content, "exact")
    assert endpoint.calls == 2


def test_d6_answers_can_be_copied_and_pickled(chat: Make) -> None:
    """No live stream, lock or client hides in them."""
    model = StepCacheChatModel(llm=chat())
    for message in (joined(model.stream(MATH)), model.invoke(MATH), joined(model.stream(MATH))):
        assert copy.deepcopy(message) == message
        assert pickle.loads(pickle.dumps(message)) == message


# --- E: accounting -------------------------------------------------------------------------------


def test_e3_partial_reuse_says_what_it_spent_and_what_it_saved(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """``usage_metadata`` is what the patch cost; what it avoided stands beside it."""
    model = StepCacheChatModel(llm=chat())
    model.invoke(ROME)
    before = endpoint.tokens
    message = model.invoke(ROME_AND_RIVER)
    told = message.response_metadata["stepcache"]
    assert route(message) == "patch"
    assert message.usage_metadata["total_tokens"] == endpoint.tokens - before
    assert told["spent"]["calls"] == 1
    spent = told["spent"]["prompt_tokens"] + told["spent"]["completion_tokens"]
    assert spent == message.usage_metadata["total_tokens"]


# --- F: concurrency and reliability --------------------------------------------------------------


@pytest.mark.parametrize("face", ["cache", "model"])
def test_f1_one_file_and_many_threads(
    chat: Make, endpoint: ScriptedEndpoint, tmp_path: Path, face: str
) -> None:
    """Eight at once, twice, over SQLite: no error, no lock left behind."""
    path = tmp_path / "c.db"
    model: Any = StepCacheChatModel(llm=chat(), store=path)
    if face == "cache":
        model = chat(cache=StepCache(store=path))
    for _ in range(2):
        assert {m.content for m in model.batch([RIVER] * 8)} == {"The Elbe."}
    engine = model.engine if face == "model" else model.cache.engine
    assert engine.count() == 1
    assert face == "cache" or endpoint.calls == 1
    engine.close()


def test_f2_a_failed_leader_does_not_fail_its_followers(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """One caller gets the error, the others one more call's answer."""
    first = threading.Event()

    def answer(request: Any) -> Any:
        if not first.is_set():
            first.set()
            time.sleep(0.3)
            return 500
        return "The Elbe."

    endpoint.answer = answer
    model = StepCacheChatModel(llm=chat(max_retries=0))
    results = model.batch([RIVER] * 6, return_exceptions=True)
    assert sum(isinstance(r, Exception) for r in results) == 1
    assert {r.content for r in results if isinstance(r, AIMessage)} == {"The Elbe."}
    assert endpoint.calls == 2


async def test_f2_a_cancelled_leader_hands_over(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The followers ask at most once more; a streaming follower gets the whole answer."""

    def answer(request: Any) -> str:
        time.sleep(0.2)
        return "The Elbe."

    endpoint.answer = answer
    async with httpx.AsyncClient() as client:
        model = StepCacheChatModel(llm=chat(http_async_client=client))

        async def read() -> str:
            return "".join([c.content async for c in model.astream(RIVER)])

        leader = asyncio.create_task(model.ainvoke(RIVER))
        await asyncio.sleep(0.05)
        followers = [asyncio.create_task(model.ainvoke(RIVER)) for _ in range(5)]
        readers = [asyncio.create_task(read()) for _ in range(3)]
        await asyncio.sleep(0.05)
        leader.cancel()
        messages = await asyncio.gather(*followers)
        assert {m.content for m in messages} == {"The Elbe."}
        assert set(await asyncio.gather(*readers)) == {"The Elbe."}
    assert endpoint.calls <= 2


def test_f4_an_embedder_that_is_down_costs_reuse_only(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """Answers come, exact repeats are served, and when it is back so is everything."""
    embedder = FaultyEmbedder(LexicalEmbedder())
    model = StepCacheChatModel(llm=chat(), embedder=embedder)
    assert [route(model.invoke(MATH)) for _ in range(2)] == ["miss", "exact"]
    assert model.invoke("Solve 2x + 3 = 15 for x.").content.endswith("x = 6")
    embedder.fail_on.clear()
    model.invoke(ROME)
    assert route(model.invoke(ROME_AND_RIVER)) == "patch"


class Slow(MemoryStore):
    """A store that waits for a disk."""

    blocking = True

    def get(self, scope: str, key: str, /) -> Any:
        time.sleep(0.6)
        return super().get(scope, key)


@pytest.mark.parametrize("face", ["cache", "model"])
async def test_f6_a_slow_store_does_not_hold_up_the_loop(
    chat: Make, endpoint: ScriptedEndpoint, face: str
) -> None:
    """Other tasks run on while one waits for it."""
    async with httpx.AsyncClient() as client:
        inner = chat(http_async_client=client)
        model: Any = StepCacheChatModel(llm=inner, store=Slow())
        if face == "cache":
            inner.cache = StepCache(store=Slow())
            model = inner
        longest, running = 0.0, True

        async def heart() -> None:
            nonlocal longest
            while running:
                at = time.perf_counter()
                await asyncio.sleep(0.01)
                longest = max(longest, time.perf_counter() - at)

        beating = asyncio.create_task(heart())
        await asyncio.sleep(0)
        await model.ainvoke(RIVER)
        running = False
        await beating
    assert longest < 0.5


def test_f7_one_file_is_one_file(chat: Make, tmp_path: Path) -> None:
    """Models and settings make entries, never files of their own; beside the file lies its key."""
    cache = StepCache(store=tmp_path / "c.db")
    for temperature in (0, 0.5, 1):
        chat(cache=cache, temperature=temperature, model_kwargs={"user": "a" * 500}).invoke(RIVER)
    assert cache.engine.count() == 3
    cache.engine.close()
    # Where a key of the user is set, none lies beside the file.
    names = {p.name.partition("-")[0] for p in tmp_path.iterdir()}
    assert names - {"c.db.key"} == {"c.db"}


def test_f8_memory_can_be_bounded(chat: Make) -> None:
    """The least recently used go first."""
    model = StepCacheChatModel(llm=chat(), store=MemoryStore(max_entries=2))
    for name in ("a", "b", "c", "d"):
        model.invoke(f"Name a river of {name}.")
    assert model.engine.count() == 2
    assert route(model.invoke("Name a river of d.")) == "exact"
    assert route(model.invoke("Name a river of a.")) == "miss"
