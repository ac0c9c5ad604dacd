"""What befalls a process: forks, signals, its end, other event loops, full pools, wrong clocks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stepcache import Message, Policy, Request, StepCacheEngine
from stepcache.embedders import LexicalEmbedder
from stepcache.stores import MemoryStore, SQLiteStore
from stepcache.testing import AsyncScriptedBackend, ScriptedBackend

GUARD = 120
"""Seconds after which a process counts as stuck."""

PREAMBLE = """
import asyncio, os, random, signal, sys, threading, time
from stepcache import Message, Policy, Reply, Request, StepCacheEngine
from stepcache.stores import MemoryStore, SQLiteStore
from stepcache.testing import ScriptedBackend

def ask(text):
    return Request(messages=(Message(role="user", text=text),))

def answer(call):
    return "It is " + call.messages[-1].text[-3:]

def right(outcome, text):
    assert outcome.text == "It is " + text[-3:], (outcome.text, text)
    return outcome
"""


def run(script: str, *arguments: object) -> str:
    """The standard output of a script that must end well, without a word of complaint."""
    line = [sys.executable, "-W", "error", "-c", PREAMBLE + textwrap.dedent(script)]
    done = subprocess.run(
        [*line, *map(str, arguments)], capture_output=True, text=True, timeout=GUARD, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(not hasattr(sys, "getswitchinterval") or sys.platform == "win32", reason="fork")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_children_of_a_busy_process_answer(kind: str, tmp_path: Path) -> None:
    """A fork while other threads hold every lock there is; child and parent both go on."""
    script = """
    store = MemoryStore() if sys.argv[1] == "memory" else SQLiteStore(sys.argv[2])
    engine = StepCacheEngine(store=store, backend=ScriptedBackend(answer))
    right(engine.resolve(ask("Name 000")), "Name 000")
    stop = threading.Event()
    def work(thread):
        turn = 0
        while not stop.is_set():
            text = f"Thread {thread} asks {turn % 500:03}"
            right(engine.resolve(ask(text)), text)
            turn += 1
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for child in range(6):
        time.sleep(0.02)
        pid = os.fork()
        if not pid:
            try:
                signal.alarm(60)
                assert right(engine.resolve(ask("Name 000")), "Name 000").route == "exact"
                for turn in range(20):
                    text = f"Child {child} asks {turn:03}"
                    right(engine.resolve(ask(text)), text)
                    assert right(engine.resolve(ask(text)), text).route == "exact"
                os._exit(0)
            except BaseException as error:
                print("child:", repr(error), flush=True)
                os._exit(1)
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    stop.set()
    for thread in threads:
        thread.join()
    right(engine.resolve(ask("Name after")), "Name after")
    print(codes)
    """
    assert run(script, kind, tmp_path / "a.db") == "[0, 0, 0, 0, 0, 0]\n"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_signals_at_any_moment_leave_nothing_stuck(kind: str, tmp_path: Path) -> None:
    """An interrupt ends the call it strikes, and no other: the same request is answered after."""
    script = """
    class Struck(BaseException):
        pass
    def strike(*_):
        raise Struck
    signal.signal(signal.SIGALRM, strike)
    store = MemoryStore() if sys.argv[1] == "memory" else SQLiteStore(sys.argv[2])
    policy = Policy(max_wait=0.5)  # what an interrupted leader may cost the next one
    engine = StepCacheEngine(store=store, backend=ScriptedBackend(answer), policy=policy)
    dice, struck = random.Random(1), 0
    for turn in range(300):
        text = f"Name {turn:03}"
        try:
            signal.setitimer(signal.ITIMER_REAL, dice.uniform(0.0001, 0.004))
            engine.resolve(ask(text))
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Struck:
            struck += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if turn % 10 == 0:
            signal.alarm(0)
            right(engine.resolve(ask(text)), text)
            assert not len(engine._flights), text
    for turn in range(0, 300, 7):
        text = f"Name {turn:03}"
        right(engine.resolve(ask(text)), text)
    print(struck > 0)
    """
    assert run(script, kind, tmp_path / "a.db") == "True\n"


def test_an_interrupt_in_the_model_is_the_users_own() -> None:
    """It passes through every driver, and the next call leads again."""
    calls = 0

    def answer(call: Any) -> str:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise KeyboardInterrupt
        return "Elbe"

    backend = ScriptedBackend(answer)  # type: ignore[arg-type]
    engine = StepCacheEngine(backend=backend)
    for number, call in enumerate(
        (
            lambda request: engine.resolve(request),
            lambda request: list(engine.stream(request)),
            lambda request: asyncio.run(engine.aresolve(request)),
        )
    ):
        request = Request(messages=(Message(role="user", text=f"Name river {number}."),))
        with pytest.raises(KeyboardInterrupt):
            call(request)
        call(request)
    assert not len(engine._flights)


@pytest.mark.parametrize("ending", ["exit", "exception", "daemon", "stream", "sys.exit"])
def test_the_end_of_the_interpreter_is_quiet(ending: str, tmp_path: Path) -> None:
    """Open stores, streams half read and ports still at work do not keep a process, or complain."""
    script = """
    ending, path = sys.argv[1:]
    class Slow:
        fingerprint, dimension = "slow", 4
        def embed(self, texts):
            time.sleep(30)
    engine = StepCacheEngine(store=path, backend=ScriptedBackend(answer))
    right(engine.resolve(ask("Name 000")), "Name 000")
    if ending == "daemon":
        policy = Policy(max_embed_seconds=0.05)
        slow = StepCacheEngine(embedder=Slow(), backend=ScriptedBackend(answer), policy=policy)
        slow.resolve(ask("Solve 2x + 3 = 13 for x."))
    if ending == "stream":
        pieces = engine.stream(ask("Name 111"))
        next(pieces)
        keep = pieces
    if ending == "exception":
        try:
            engine.resolve(None)
        except Exception:
            pass
    print("done", flush=True)
    if ending == "sys.exit":
        sys.exit(0)
    """
    assert run(script, ending, tmp_path / "a.db") == "done\n"


def test_one_engine_under_many_event_loops() -> None:
    """A loop that has closed leaves nothing behind that the next one would wait for."""
    backend = AsyncScriptedBackend(lambda call: "Elbe")
    engine = StepCacheEngine(backend=backend, store=MemoryStore(), embedder=LexicalEmbedder())

    async def several(start: int) -> list[str]:
        requests = [
            Request(messages=(Message(role="user", text=f"Name river {start + n % 3}."),))
            for n in range(9)
        ]
        outcomes = await asyncio.gather(*(engine.aresolve(request) for request in requests))
        return [outcome.text for outcome in outcomes]

    async def abandoned(start: int) -> None:
        task = asyncio.ensure_future(several(start))
        await asyncio.sleep(0)
        task.cancel()

    for start in range(0, 40, 10):
        assert asyncio.run(several(start)) == ["Elbe"] * 9
        asyncio.run(abandoned(start + 5))
        assert asyncio.run(several(start + 5)) == ["Elbe"] * 9
    with ThreadPoolExecutor(4) as pool:
        for texts in pool.map(lambda start: asyncio.run(several(start)), range(100, 140, 10)):
            assert texts == ["Elbe"] * 9
    assert not len(engine._flights)


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_full_thread_pool_delays_and_does_not_lock_up(workers: int, tmp_path: Path) -> None:
    """A blocking store with fewer workers than requests: all are answered, equal ones once."""
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(workers)
    loop.set_default_executor(pool)
    released = threading.Event()
    pool.submit(released.wait, 30)  # somebody else's work, in the way at first
    store = SQLiteStore(tmp_path / "a.db")
    backend = AsyncScriptedBackend(lambda call: "Elbe")
    engine = StepCacheEngine(store=store, backend=backend)
    requests = [
        Request(messages=(Message(role="user", text=f"Name river {n % 6}."),)) for n in range(30)
    ]
    everything = asyncio.gather(*(engine.aresolve(request) for request in requests))
    await asyncio.sleep(0.05)
    released.set()
    outcomes = await asyncio.wait_for(everything, GUARD)
    assert {outcome.text for outcome in outcomes} == {"Elbe"}
    assert len(backend.calls) == 6
    store.close()


class Clock:
    """A clock that does what it is told."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_no_clock_makes_an_expired_answer_served(kind: str, tmp_path: Path) -> None:
    """Clocks that jump ahead, back, to zero and far away: past its time an answer is not served,
    and nothing raises."""
    clock = Clock()
    store: Any = MemoryStore(clock=clock)
    if kind == "sqlite":
        store = SQLiteStore(tmp_path / "a.db", clock=clock)
    said = iter(range(10_000))
    backend = ScriptedBackend(lambda call: f"answer {next(said)}")
    engine = StepCacheEngine(store=store, backend=backend, policy=Policy(ttl=60.0))
    request = Request(messages=(Message(role="user", text="Name a river."),))
    kept_at, text = clock.now, engine.resolve(request).text
    for jump in (30, 59, 61, -3600, 0, 1e9, -1e9, 5e8, 120, -1e6, 60, 59.9, 0.5):
        clock.now = 1_000_000.0 + jump
        outcome = engine.resolve(request)
        if outcome.route == "exact":
            assert outcome.text == text
            assert clock.now < kept_at + 60
        else:
            kept_at, text = clock.now, outcome.text
    assert engine.count() >= 0
    store.close()
