"""What one request may cost: proofs within a budget, ports waited for so long and no longer."""

import asyncio
import threading

import numpy as np
import pytest

from stepcache import (
    ConfigurationError,
    EmbedderError,
    Message,
    Policy,
    Reply,
    Request,
    StepCacheEngine,
)
from stepcache._drive import drive
from stepcache._flow import Setup, lookup, resolve
from stepcache._patience import Budget, Patience
from stepcache._types import Control
from stepcache.embedders import LexicalEmbedder
from stepcache.testing import ScriptedBackend
from stepcache.testing.stores import Clock

FIRST = 'Give me a JSON object about Paris with the keys "name" and "country".'
SECOND = 'Give me a JSON object about Paris with the keys "name", "country" and "language".'
ONE = '{"name": "Paris", "country": "France"}'
SOLVE = "Solve for x: 2x + 3 = 13."
REWORDED = "Please solve 2x + 3 = 13 for x."
SOLVED = "Subtract 3 from both sides: 2x = 10.\nDivide by 2: x = 5."
LONG = 300.0  # seconds until a hang is a hang


def ask(text):
    return Request(messages=(Message(role="user", text=text),), model="m")


# --- the budget of proofs ----------------------------------------------------------------------


def slow(engine, clock, seconds):
    """The engine's set-up with a clock of its own and a verifier that takes time on it."""

    def verifier(step, constraints):
        clock.advance(seconds)

    policy = engine.policy
    return Setup(tasks=engine.tasks, policy=policy, verifiers=(verifier,), clock=clock)


def run(engine, setup, text, replies):
    backend = ScriptedBackend(replies)
    outcome = drive(resolve(ask(text), setup, Control()), engine._ports(backend))
    return outcome, backend


def test_proofs_beyond_their_budget_are_unknown_and_nothing_is_served():
    """Over the budget the model is asked for the whole, and its answer is handed on."""
    engine = StepCacheEngine(policy=Policy(max_verify_seconds=5))
    engine.admit(ask(SOLVE), Reply(text=SOLVED))
    outcome, backend = run(engine, slow(engine, Clock(), 6), REWORDED, [SOLVED])
    assert outcome.text == SOLVED
    assert outcome.route in ("skip", "miss")
    assert backend.purposes == ["answer"]
    assert "max_verify_seconds" in outcome.trace.render()


def test_proofs_within_their_budget_are_served():
    """The same, a little faster: so the refusal above is the clock's doing."""
    engine = StepCacheEngine(policy=Policy(max_verify_seconds=5))
    engine.admit(ask(SOLVE), Reply(text=SOLVED))
    outcome, backend = run(engine, slow(engine, Clock(), 0.01), REWORDED, [])
    assert outcome.route == "reuse"
    assert backend.purposes == []


def test_a_reply_nobody_had_time_to_check_is_handed_on_and_not_kept():
    """Neither asked again, nor replaced, nor kept as proven: the bare model's answer."""
    engine = StepCacheEngine(policy=Policy(max_verify_seconds=5))
    clock = Clock()

    class Slow(type(engine.tasks[0])):
        def segment(self, text, /):
            clock.advance(6)
            return super().segment(text)

        def check(self, steps, constraints, /):
            clock.advance(6)
            return super().check(steps, constraints)

    setup = Setup(tasks=(Slow(),), policy=engine.policy, clock=clock)
    wrong = '{"name": "Paris"}'
    outcome, backend = run(engine, setup, FIRST, [wrong] * 3)
    assert outcome.text == wrong
    assert len(backend.calls) <= 2


def test_the_model_s_own_time_is_not_counted():
    """The budget is for proofs: a slow model costs it nothing."""
    clock = Clock()
    budget = Budget(5, clock)
    with budget:
        clock.advance(2)
    clock.advance(1_000)
    assert not budget.over
    with budget:
        with budget:
            clock.advance(2)
        assert not budget.over
        clock.advance(2)
        assert budget.over
    assert budget.over
    assert not Budget(None, clock).over


def test_a_blocking_verifier_is_not_waited_for():
    """One that hangs is unknown; the request goes on."""
    release = threading.Event()

    class Hanging:
        blocking = True

        def __call__(self, step, constraints):
            release.wait(LONG)

    engine = StepCacheEngine(verifiers=[Hanging()], policy=Policy(max_verify_seconds=0.05))
    engine.admit(ask(SOLVE), Reply(text=SOLVED))
    outcome = engine.lookup(ask(REWORDED))
    assert not outcome.served
    assert "verifier" in outcome.trace.render()
    release.set()


@pytest.mark.parametrize("name", ["max_verify_seconds", "max_embed_seconds", "max_store_seconds"])
@pytest.mark.parametrize("value", [0, -1, "5", True, float("nan")])
def test_a_bound_that_cannot_work_is_refused(name, value):
    """The message names the knob and what it takes."""
    with pytest.raises(ConfigurationError, match=rf"{name}.*seconds above 0"):
        Policy(**{name: value})


# --- ports that hang ---------------------------------------------------------------------------


class Hanging:
    """An embedder that hangs until it is let go."""

    fingerprint, dimension = "hanging/1", 512

    def __init__(self):
        self.release = threading.Event()
        self.calls = 0
        self._inner = LexicalEmbedder()

    def embed(self, texts, /):
        self.calls += 1
        assert self.release.wait(LONG)
        return self._inner.embed(texts)


@pytest.fixture
def hanging():
    embedder = Hanging()
    yield embedder
    embedder.release.set()


def test_a_wedged_embedder_is_a_miss_for_every_request(hanging):
    """Each goes on without it, the first ones after the bound, later ones at once; it is told."""
    engine = StepCacheEngine(embedder=hanging, policy=Policy(max_embed_seconds=0.05))
    for turn in range(8):
        text = FIRST.replace("Paris", f"Paris {turn}")
        outcome = engine.resolve(ask(text), backend=ScriptedBackend([ONE] * 2))
        assert outcome.text == ONE
        assert "embedder failed" in outcome.trace.names()
    assert hanging.calls == 4
    assert "has not answered its last 4 calls" in outcome.trace.render()


async def test_a_wedged_embedder_does_not_hold_up_the_event_loop(hanging):
    """Blocking or not by its own account, it is waited for elsewhere, and no longer than allowed;
    the loop's own worker threads stay free."""
    engine = StepCacheEngine(embedder=hanging, policy=Policy(max_embed_seconds=0.05))
    requests = [ask(FIRST.replace("Paris", f"Paris {turn}")) for turn in range(20)]
    outcomes = await asyncio.gather(
        *(engine.aresolve(request, backend=ScriptedBackend([ONE] * 2)) for request in requests)
    )
    assert [outcome.text for outcome in outcomes] == [ONE] * 20
    assert await asyncio.to_thread(lambda: "free") == "free"


async def test_an_asynchronous_embedder_that_never_answers_is_given_up():
    """Also one that does not heed its cancellation."""
    release = asyncio.Event()

    class Stubborn:
        fingerprint, dimension = "stubborn/1", 8

        async def embed(self, texts, /):
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return np.ones((len(texts), 8), np.float32)

    engine = StepCacheEngine(embedder=Stubborn(), policy=Policy(max_embed_seconds=0.05))
    outcome = await engine.aresolve(ask(FIRST), backend=ScriptedBackend([ONE] * 2))
    assert outcome.text == ONE
    assert "embedder failed" in outcome.trace.names()
    release.set()


def test_an_embedder_that_comes_back_is_asked_again(hanging):
    """Once what was left behind has ended, calls are made as before."""
    engine = StepCacheEngine(embedder=hanging, policy=Policy(max_embed_seconds=0.05))
    for turn in range(6):
        engine.admit(ask(FIRST.replace("Paris", f"Paris {turn}")), Reply(text=ONE))
    hanging.release.set()
    while engine._embedding.left_behind:
        threading.Event().wait(0.01)
    engine.admit(ask(FIRST), Reply(text=ONE))
    assert "candidates" in engine.lookup(ask(SECOND)).trace.names()


def test_a_wedged_store_is_a_miss_where_a_bound_is_set():
    """A store that hangs costs the hit, not the answer."""
    from stepcache.stores import MemoryStore

    release = threading.Event()

    class Wedged(MemoryStore):
        def get(self, scope, key, /):
            assert release.wait(LONG)

    engine = StepCacheEngine(store=Wedged(), policy=Policy(max_store_seconds=0.05))
    outcome = engine.resolve(ask("Q"), backend=ScriptedBackend(["A"]))
    assert outcome.text == "A"
    assert "store failed" in outcome.trace.names()
    release.set()


def test_what_is_waited_for_returns_raises_and_sees_its_context():
    """In time, a call is as if made at once: its value, its error, its context variables."""
    from contextvars import ContextVar

    seen = ContextVar("seen", default="")
    patience = Patience("the port", LONG, EmbedderError)
    seen.set("yes")
    assert patience.call(lambda: seen.get()) == "yes"
    with pytest.raises(ZeroDivisionError):
        patience.call(lambda: 1 / 0)
    assert patience.left_behind == 0


def test_an_embedder_that_says_it_never_blocks_gets_no_thread():
    """The lexical one runs where it is called."""
    threads = set()

    class Noting(LexicalEmbedder):
        def embed(self, texts, /):
            threads.add(threading.current_thread())
            return super().embed(texts)

    engine = StepCacheEngine(embedder=Noting())
    engine.admit(ask(FIRST), Reply(text=ONE))
    engine.lookup(ask(SECOND))
    assert threads == {threading.current_thread()}


def test_a_look_up_asks_no_more_than_one_repair():
    """Repairs are counted: a model that is always wrong is asked as often as the policy says."""
    for repairs in (0, 1, 3):
        engine = StepCacheEngine(policy=Policy(max_repairs=repairs))
        backend = ScriptedBackend(lambda call: "no JSON at all")
        engine.resolve(ask(FIRST), backend=backend)
        assert backend.purposes == ["answer"] + ["repair"] * repairs


def test_verdicts_of_the_budget_have_their_code():
    """Others can tell an unknown for want of time from any other."""
    clock = Clock()
    engine = StepCacheEngine(policy=Policy(max_verify_seconds=1))
    engine.admit(ask(SOLVE), Reply(text=SOLVED))
    setup = slow(engine, clock, 2)
    outcome = drive(lookup(ask(REWORDED), setup, Control(), may_patch=False), engine._ports(None))
    codes = [v.code for candidate in outcome.candidates for v in candidate.verdicts]
    codes += [candidate.code for candidate in outcome.candidates]
    assert "over-budget" in codes
