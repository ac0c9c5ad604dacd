"""The engine's promises beyond the laws: controls, repairs, refusals, bad arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stepcache import (
    AnswerRejected,
    ConfigurationError,
    Contract,
    Control,
    Message,
    ModelCall,
    Policy,
    Reply,
    Request,
    Step,
    StepCacheEngine,
    Usage,
    UsageError,
)
from stepcache._effects import Generate, Get, Join, Put, Settle
from stepcache._flow import Setup, resolve
from stepcache.stores import MemoryStore
from stepcache.tasks.text import TextTask
from stepcache.testing import CountingEmbedder, FaultyEmbedder, ScriptedBackend

RIGHT = "2x + 3 = 13\n\n2x = 10\n\nx = 5"
MATH = "Solve 2x + 3 = 13 for x."
ROME = "Describe Rome as a JSON object with keys name, country."
ROME_AND_RIVER = "Describe Rome as a JSON object with keys name, country, river."


def ask(text: str, **fields: Any) -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),), **fields)


def test_the_flow_by_hand() -> None:
    """Each wish is answered by hand: no driver, no port, no model."""
    flow = resolve(ask("Name a river."), Setup(tasks=(TextTask(),), policy=Policy()), Control())
    wish = next(flow)
    assert isinstance(wish, Get)
    joining = flow.send(None)
    assert isinstance(joining, Join)
    assert isinstance(flow.send(None), Get)
    assert isinstance(flow.send(None), Get)
    asking = flow.send(None)
    assert isinstance(asking, Generate)
    assert asking.call.purpose == "answer"
    assert asking.call.live
    assert isinstance(flow.send(Reply(text="The Elbe.")), Get)  # was it reported as bad?
    keeping = flow.send(None)
    assert isinstance(keeping, Put)
    assert keeping.entry.text == "The Elbe."
    settling = flow.throw(OSError("disk full"))
    assert isinstance(settling, Settle)
    assert settling.outcome.entry_id is None
    assert "store failed" in settling.outcome.trace.names()
    with pytest.raises(StopIteration) as stop:
        flow.send(None)
    assert stop.value.value.text == "The Elbe."


def test_re_worded_requests_need_no_embedding() -> None:
    """Exact and canonical tiers come first; the embedder is asked once, to keep the answer."""
    from stepcache.embedders import LexicalEmbedder

    embedder = CountingEmbedder(LexicalEmbedder())
    engine = StepCacheEngine(embedder=embedder, backend=ScriptedBackend(lambda call: RIGHT))
    engine.resolve(ask(MATH))
    before = embedder.calls
    for text in (MATH, "Solve 13 = 3 + 2x for x.", "$2x + 3 = 13$", "13 = 3 + 2x"):
        assert engine.resolve(ask(text)).route in ("exact", "reuse")
    assert embedder.calls == before


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_prompt_is_embedded_once(asynchronous: bool) -> None:
    """A host that looks up, asks the model itself and brings the answer pays for one embedding; so
    does one that asks anew what was forgotten."""
    from stepcache.embedders import LexicalEmbedder

    embedder = CountingEmbedder(LexicalEmbedder())
    engine = StepCacheEngine(embedder=embedder)

    def look() -> bool:
        if asynchronous:
            return asyncio.run(engine.alookup(ask(MATH))).served
        return engine.lookup(ask(MATH)).served

    assert not look()
    assert engine.admit(ask(MATH), Reply(text=RIGHT)) is not None
    assert engine.clear() == 1
    assert not look()
    assert embedder.calls == 1
    assert engine.admit(ask(MATH), Reply(text=RIGHT)) is not None
    assert engine.lookup(ask("Solve 2x + 3 = 15 for x.")).route == "adapt"
    assert embedder.calls == 2


def test_what_an_embedder_failed_at_is_not_remembered() -> None:
    """Nor is a remembered vector changed by whoever was given it."""
    from stepcache.embedders import LexicalEmbedder

    class Spoiling(MemoryStore):
        def search(self, scope: str, vector: Any, fingerprint: str, /, *, limit: int) -> Any:
            found = super().search(scope, vector, fingerprint, limit=limit)
            vector[:] = 0
            return found

    embedder = FaultyEmbedder(LexicalEmbedder())
    engine = StepCacheEngine(embedder=embedder, store=Spoiling())
    engine.admit(ask("Solve 2x + 3 = 15 for x."), Reply(text=RIGHT.replace("5", "6")))
    assert "embedder failed" in engine.lookup(ask(MATH)).trace.names()
    embedder.fail_on.clear()
    assert engine.admit(ask(MATH), Reply(text=RIGHT)) is not None
    for _ in range(3):
        outcome = engine.lookup(ask("Why does one solve 2x + 3 = 13 for x?"))
        assert [each.entry.prompt for each in outcome.candidates] == [MATH]


@pytest.mark.parametrize(
    "other",
    [
        "Solve 2x - 3 = 13 for x.",
        "Solve 2x + 3 > 13 for x.",
        "Solve 3 = 2x + 13 for x.",
        "Solve 2y + 3 = 13 for y.",
        "Solve 2x + 3 != 13 for x.",
        "Do not solve 2x + 3 = 13 for x.",
        "Solve 2x + 3 = 13 for x in French.",
    ],
)
@pytest.mark.parametrize("adapt", [True, False])
def test_a_changed_meaning_never_gets_the_old_answer(other: str, adapt: bool) -> None:
    """Sign, relation, order, variable, negation, language: none of them serves ``x = 5`` as is."""
    backend = ScriptedBackend(lambda call: RIGHT if call.messages[-1].text == MATH else "no idea")
    engine = StepCacheEngine(backend=backend, policy=Policy(adapt=adapt))
    engine.resolve(ask(MATH))
    outcome = engine.resolve(ask(other))
    assert outcome.text != RIGHT
    assert outcome.route not in ("exact", "reuse")


def test_another_source_text_is_never_a_reuse() -> None:
    """What is to be extracted from belongs to the request."""
    answers = {"Ann": '{"name": "Ann", "age": 30}', "Bob": '{"name": "Bob", "age": 25}'}
    backend = ScriptedBackend(
        lambda call: next(a for n, a in answers.items() if n in call.messages[-1].text)
    )
    engine = StepCacheEngine(backend=backend)
    for name, age in (("Ann", 30), ("Bob", 25), ("Ann", 31)):
        outcome = engine.resolve(ask(f"Extract name and age as JSON from: {name} is {age}"))
        assert outcome.route in ("miss", "skip")
        assert name in outcome.text


def test_bypass_neither_looks_up_nor_keeps() -> None:
    """The model is asked, and the store is as it was."""
    backend = ScriptedBackend(lambda call: "The Elbe.")
    engine = StepCacheEngine(backend=backend)
    for _ in range(2):
        outcome = engine.resolve(ask("Name a river."), control=Control(bypass=True))
        assert outcome.route == "bypass"
    assert (engine.count(), len(backend.calls)) == (0, 2)


def test_refresh_asks_and_replaces() -> None:
    """What is stored is not looked at, and gives way to the new answer."""
    replies = iter(["The Elbe.", "The Oder."])
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: next(replies)))
    engine.resolve(ask("Name a river."))
    fresh = engine.resolve(ask("Name a river."), control=Control(refresh=True))
    assert (fresh.text, fresh.route, fresh.reason) == ("The Oder.", "miss", "asked to refresh")
    assert engine.resolve(ask("Name a river.")).text == "The Oder."
    assert engine.count() == 1


def test_an_answer_grows_no_younger_by_being_served() -> None:
    """Re-worded repeats do not stretch a time to live."""
    now = [1000.0]
    store = MemoryStore(clock=lambda: now[0])
    engine = StepCacheEngine(store=store, ttl=60, backend=ScriptedBackend(lambda call: RIGHT))
    engine.resolve(ask(MATH))
    now[0] += 50
    assert engine.resolve(ask("Solve 13 = 3 + 2x for x.")).route == "reuse"
    now[0] += 20
    assert engine.resolve(ask("Solve 13 = 3 + 2x for x.")).route == "miss"


def test_a_call_may_set_its_own_time_to_live() -> None:
    """Shorter than the policy's, and for that answer only."""
    now = [1000.0]
    store = MemoryStore(clock=lambda: now[0])
    engine = StepCacheEngine(store=store, ttl=60, backend=ScriptedBackend(lambda call: "The Elbe."))
    engine.resolve(ask("Name a river."), control=Control(ttl=5))
    engine.resolve(ask("Name a lake."))
    now[0] += 10
    assert engine.resolve(ask("Name a river.")).route == "miss"
    assert engine.resolve(ask("Name a lake.")).route == "exact"


def test_a_repair_that_succeeds_is_kept() -> None:
    """The model is told why, answers rightly, and both calls are counted."""

    def answer(call: ModelCall) -> Reply:
        usage = Usage(calls=1, prompt_tokens=10, completion_tokens=5)
        if call.purpose == "repair":
            assert "x = 4" in call.messages[-2].text
            return Reply(text=RIGHT, usage=usage)
        return Reply(text="x = 4", usage=usage)

    engine = StepCacheEngine(backend=ScriptedBackend(answer))
    outcome = engine.resolve(ask(MATH))
    assert (outcome.text, outcome.route) == (RIGHT, "miss")
    assert outcome.spent == Usage(calls=2, prompt_tokens=20, completion_tokens=10)
    hit = engine.resolve(ask(MATH))
    assert hit.avoided == outcome.spent


def test_without_repair_or_fallback_the_models_own_answer_is_returned() -> None:
    """Law 11: and it is not kept."""
    backend = ScriptedBackend(lambda call: "x = 4")
    policy = Policy(max_repairs=0, fallback=False)
    engine = StepCacheEngine(backend=backend, policy=policy)
    outcome = engine.resolve(ask(MATH))
    assert (outcome.text, outcome.route) == ("x = 4", "miss")
    assert (engine.count(), len(backend.calls)) == (0, 1)


def test_a_policy_may_ask_to_raise() -> None:
    """The error carries what would have been returned."""
    policy = Policy(max_repairs=0, fallback=False, on_reject="raise")
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: "x = 4"), policy=policy)
    with pytest.raises(AnswerRejected) as caught:
        engine.resolve(ask(MATH))
    assert caught.value.outcome.text == "x = 4"


@pytest.mark.parametrize(
    "patch",
    [
        '{"river": ',
        '{"lake": "Bracciano"}',
        "I do not know.",
        "",
        Reply(text='{"river": "Tiber"}', finish_reason="length"),
        ConnectionError("gone"),
    ],
)
def test_a_patch_that_fails_ends_in_the_whole_answer(patch: Any) -> None:
    """A reply that does not fit the gap costs the gap's call, and the user nothing else."""
    whole = '{"name": "Rome", "country": "Italy", "river": "Tiber"}'

    def answer(call: ModelCall) -> Any:
        if call.purpose == "patch":
            return patch
        return (
            whole if "river" in call.messages[-1].text else '{"name": "Rome", "country": "Italy"}'
        )

    engine = StepCacheEngine(backend=ScriptedBackend(answer))
    engine.resolve(ask(ROME))
    outcome = engine.resolve(ask(ROME_AND_RIVER))
    assert (outcome.text, outcome.route) == (whole, "skip")


def test_a_patch_asks_for_the_missing_key_only() -> None:
    """The prompt quotes what is known, the schema allows nothing else, and the rest is as it was."""

    def answer(call: ModelCall) -> str:
        if call.purpose == "patch":
            assert set(call.schema["properties"]) == {"river"}  # type: ignore[index]
            return '{"river": "Tiber"}'
        return '{\n  "name": "Rome",\n  "country": "Italy"\n}'

    engine = StepCacheEngine(backend=ScriptedBackend(answer))
    engine.resolve(ask(ROME))
    outcome = engine.resolve(ask(ROME_AND_RIVER))
    assert outcome.text == '{\n  "name": "Rome",\n  "country": "Italy",\n  "river": "Tiber"\n}'
    assert outcome.patched_steps == 1


def test_large_quotations_are_not_sent() -> None:
    """Cached text a patch prompt may hold is capped; above it the whole is asked for."""
    long = '{"name": "' + "R" * 5000 + '", "country": "Italy"}'
    backend = ScriptedBackend(
        lambda call: long if "river" not in call.messages[-1].text else "no idea"
    )
    engine = StepCacheEngine(backend=backend, policy=Policy(max_quoted_chars=1000, max_repairs=0))
    engine.resolve(ask(ROME))
    engine.resolve(ask(ROME_AND_RIVER))
    assert [call.purpose for call in backend.calls] == ["answer", "answer"]


def test_switches_switch() -> None:
    """Each tier can be turned off, and the answer is right all the same."""
    for policy in (
        Policy(exact=False),
        Policy(canonical=False),
        Policy(candidates=0),
        Policy(exact=False, canonical=False, candidates=0, adapt=False, patch=False),
    ):
        engine = StepCacheEngine(backend=ScriptedBackend(lambda call: RIGHT), policy=policy)
        texts = [engine.resolve(ask(t)).text for t in (MATH, MATH, "Solve 13 = 3 + 2x for x.")]
        assert all(t.strip().endswith("x = 5") for t in texts)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"params": {"n": 3}}, "more than one answer"),
        ({"contract": Contract(tools=({"name": "t"},))}, "tools are offered"),
        ({"contract": Contract(opaque=True)}, "cannot be read"),
    ],
)
def test_exact_only_requests_say_why(fields: dict[str, Any], why: str) -> None:
    """Re-worded, they miss; repeated, they hit."""
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: RIGHT))
    first = engine.resolve(ask(MATH, **fields))
    assert why in first.trace.render()
    assert engine.resolve(ask(MATH, **fields)).route == "exact"
    assert engine.resolve(ask("Solve 13 = 3 + 2x for x.", **fields)).route == "miss"


@pytest.mark.parametrize(
    "params", [{"logprobs": True}, {"top_logprobs": 3}, {"callback": object()}, {"t": {1, 2}}]
)
def test_what_cannot_be_cached_is_bypassed(params: dict[str, Any]) -> None:
    """Log probabilities, and parameters without a JSON form."""
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: RIGHT))
    assert engine.resolve(ask(MATH, params=params)).route == "bypass"
    assert engine.count() == 0


def test_lookup_never_asks_for_a_whole_answer() -> None:
    """It serves, or says that it did not; with a backend it may have a part made."""
    backend = ScriptedBackend(lambda call: '{"river": "Tiber"}')
    engine = StepCacheEngine()
    assert not engine.lookup(ask(ROME)).served
    assert engine.admit(ask(ROME), Reply(text='{"name": "Rome", "country": "Italy"}')) is not None
    assert engine.lookup(ask(ROME)).served
    assert not engine.lookup(ask(ROME_AND_RIVER)).served
    patched = engine.lookup(ask(ROME_AND_RIVER), backend=backend)
    assert patched.served
    assert patched.route == "patch"
    assert engine.routes == {"miss": 1, "exact": 1, "skip": 1, "patch": 1}


def test_admit_refuses_what_is_wrong() -> None:
    """Law 5 holds for answers made elsewhere too."""
    engine = StepCacheEngine()
    assert engine.admit(ask(MATH), Reply(text="x = 4")) is None
    assert engine.admit(ask(MATH), Reply(text=RIGHT, finish_reason="length")) is None
    assert engine.count() == 0


def test_listeners_hear_and_cannot_hurt() -> None:
    """Every answer is told; a listener that raises is ignored."""
    heard: list[str] = []

    def loud(request: Request, outcome: Any, timing: Any) -> None:
        heard.append(outcome.route)
        raise RuntimeError("my dashboard is down")

    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: RIGHT), listeners=[loud])
    engine.resolve(ask(MATH))
    list(engine.stream(ask(MATH)))
    assert heard == ["miss", "exact"]


def test_a_task_that_loses_text_is_not_believed() -> None:
    """Law 3: the answer is then one step, whole, and the trace says so."""

    class Losing(TextTask):
        def segment(self, text: str) -> tuple[Step, ...]:
            return (Step(index=0, text=text[:-1]),)

    engine = StepCacheEngine(tasks=[Losing()], backend=ScriptedBackend(lambda call: "The Elbe."))
    outcome = engine.resolve(ask("Name a river."))
    assert "".join(step.text for step in outcome.steps) == "The Elbe."
    assert outcome.trace.render().count("broke law 3") == 1


@pytest.mark.parametrize("method", ["parse", "segment", "verify", "check", "differences", "block"])
def test_a_task_that_raises_costs_reuse_only(method: str) -> None:
    """Law 6: whatever method breaks, the model's answer comes through."""
    broken = type("Broken", (TextTask,), {method: _raise})
    engine = StepCacheEngine(
        tasks=[broken()],
        backend=ScriptedBackend(lambda call: "The Elbe."),
        policy=Policy(exact=False),
    )
    for text in ("Name a river.", "Name  a river."):
        assert engine.resolve(ask(text)).text == "The Elbe."


def _raise(self: Any, *args: Any) -> Any:
    raise ZeroDivisionError("broken task")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"store": 7}, "store=7"),
        ({"store": "redis://localhost"}, "redis"),
        ({"embedder": "minilm"}, "embedder is 'minilm'"),
        ({"tasks": ["math"]}, "tasks holds 'math'"),
        ({"policy": {"ttl": 5}}, "policy is"),
        ({"namespace": None}, "namespace is None"),
        ({"ttl": -1}, "ttl is -1"),
    ],
)
def test_bad_arguments_are_named(fields: dict[str, Any], said: str) -> None:
    """The value, the reason and the fix."""
    with pytest.raises(ConfigurationError) as caught:
        StepCacheEngine(**fields)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: engine.resolve("Solve 2x + 3 = 13"),
        lambda engine: engine.resolve_many([ask(MATH)], max_concurrency=0),
    ],
)
def test_bad_calls_are_named(call: Callable[[Any], Any]) -> None:
    """A wrong call says what to pass."""
    with pytest.raises(UsageError):
        call(StepCacheEngine(backend=ScriptedBackend(lambda call: RIGHT)))


def test_forgetting() -> None:
    """One entry, or all."""
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: "The Elbe."))
    first = engine.resolve(ask("Name a river."))
    engine.resolve(ask("Name a lake."))
    assert first.entry_id is not None
    assert engine.forget(first.entry_id)
    assert not engine.forget(first.entry_id)
    assert engine.resolve(ask("Name a river.")).route == "miss"
    assert engine.clear() == 2
    assert engine.count() == 0


def test_an_answer_cut_off_in_its_last_line_is_not_ended_by_half_a_line() -> None:
    """What was being said when the tokens ran out does not stand; whole lines before it do."""
    whole = "2x + 3 = 13\n\n2x = 10\n\nx = 5\n\n"
    half = "Therefore the value of x is \\(\\boxed{"
    engine = StepCacheEngine(
        backend=ScriptedBackend([Reply(text=whole + half, finish_reason="length")])
    )
    prompt = "Solve 2x + 3 = 13 for x. Put the value of x into \\boxed{} on the last line."
    outcome = engine.resolve(ask(prompt))
    assert outcome.route == "fallback"
    assert half not in outcome.text
    assert outcome.text.startswith(whole.strip())
    assert outcome.text.splitlines()[-1] == "\\boxed{5}"
    again = engine.resolve(
        ask("Solve 3x - 14 = -2 for x. Put the value of x into \\boxed{} on the last line.")
    )
    assert again.route == "adapt"
    assert again.text.splitlines()[-1] == "\\boxed{4}"
