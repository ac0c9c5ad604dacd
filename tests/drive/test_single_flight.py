"""Law 8: one generation per key, across threads and tasks, and nobody is left waiting."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from stepcache import Message, ModelCall, Outcome, Policy, Reply, Request, StepCacheEngine, Usage
from stepcache.stores import MemoryStore

PAID = Usage(calls=1, prompt_tokens=5, completion_tokens=7)


def ask(text: str = "Name a river.") -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),))


class Slow:
    """A model that waits to be let go, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.calls = 0
        self.lock = threading.Lock()
        self.started = threading.Event()
        self.go = threading.Event()

    def generate(self, call: ModelCall) -> Reply:
        """Wait, then fail or answer."""
        with self.lock:
            self.calls += 1
            number = self.calls
        self.started.set()
        assert self.go.wait(20)
        if number <= self.failures:
            raise ConnectionError("the endpoint hung up")
        return Reply(text=f"The Elbe, {number}.", usage=PAID)


class AsyncSlow:
    """As ``Slow``, for one event loop."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.calls = 0
        self.started = asyncio.Event()
        self.go = asyncio.Event()

    async def generate(self, call: ModelCall) -> Reply:
        """Wait, then fail or answer."""
        self.calls += 1
        number = self.calls
        self.started.set()
        await asyncio.wait_for(self.go.wait(), 20)
        if number <= self.failures:
            raise ConnectionError("the endpoint hung up")
        return Reply(text=f"The Elbe, {number}.", usage=PAID)


def test_threads_share_one_call() -> None:
    """Eight threads asking the same thing make one model call, and one pays for it."""
    backend = Slow()
    engine = StepCacheEngine(backend=backend)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(engine.resolve, ask()) for _ in range(8)]
        assert backend.started.wait(20)
        backend.go.set()
        outcomes = [future.result() for future in futures]
    assert backend.calls == 1
    assert {o.text for o in outcomes} == {"The Elbe, 1."}
    assert sorted(o.spent.calls for o in outcomes) == [0] * 7 + [1]
    assert sum(o.avoided.calls for o in outcomes) == 7
    assert {o.route for o in outcomes} == {"miss", "exact"}


async def test_tasks_share_one_call() -> None:
    """Sixty-four tasks asking the same thing make one model call."""
    backend = AsyncSlow()
    engine = StepCacheEngine(backend=backend)
    tasks = [asyncio.create_task(engine.aresolve(ask())) for _ in range(64)]
    await backend.started.wait()
    backend.go.set()
    outcomes = await asyncio.gather(*tasks)
    assert backend.calls == 1
    assert sum(o.spent.calls for o in outcomes) == 1


async def test_threads_and_tasks_share_one_call() -> None:
    """A thread follows a task's lead as well as another thread's."""
    backend = AsyncSlow()
    engine = StepCacheEngine(backend=backend)
    leader = asyncio.create_task(engine.aresolve(ask()))
    await backend.started.wait()
    follower = asyncio.create_task(asyncio.to_thread(engine.resolve, ask()))
    await asyncio.sleep(0.05)
    backend.go.set()
    first, second = await asyncio.gather(leader, follower)
    assert backend.calls == 1
    assert first.text == second.text


def test_a_failed_leader_hands_over() -> None:
    """The leader sees its model's error, its followers still get an answer."""
    backend = Slow(failures=1)
    engine = StepCacheEngine(backend=backend)
    with ThreadPoolExecutor(4) as pool:
        leader = pool.submit(engine.resolve, ask())
        assert backend.started.wait(20)
        followers = [pool.submit(engine.resolve, ask()) for _ in range(3)]
        backend.go.set()
        with pytest.raises(ConnectionError, match="hung up"):
            leader.result()
        assert [f.result().text for f in followers] == ["The Elbe, 2."] * 3
    assert backend.calls == 2


async def test_a_cancelled_leader_hands_over() -> None:
    """Cancelling the leader costs its followers one more call at most, and fails none of them."""
    backend = AsyncSlow()
    engine = StepCacheEngine(backend=backend)
    leader = asyncio.create_task(engine.aresolve(ask()))
    await backend.started.wait()
    followers = [asyncio.create_task(engine.aresolve(ask())) for _ in range(5)]
    await asyncio.sleep(0.02)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    backend.go.set()
    outcomes = await asyncio.gather(*followers)
    assert backend.calls == 2
    assert {o.text for o in outcomes} == {"The Elbe, 2."}


async def test_a_cancelled_follower_leaves_the_leader_alone() -> None:
    """Giving up waiting is nobody else's concern."""
    backend = AsyncSlow()
    engine = StepCacheEngine(backend=backend)
    leader = asyncio.create_task(engine.aresolve(ask()))
    await backend.started.wait()
    follower = asyncio.create_task(engine.aresolve(ask()))
    await asyncio.sleep(0.02)
    follower.cancel()
    with pytest.raises(asyncio.CancelledError):
        await follower
    backend.go.set()
    assert (await leader).text == "The Elbe, 1."


def test_an_answer_that_is_not_kept_is_still_shared() -> None:
    """Followers get what the leader got, even where law 5 keeps it out of the store."""
    backend = Slow()
    engine = StepCacheEngine(backend=backend)
    original = backend.generate
    backend.generate = lambda call: Reply(text=original(call).text, finish_reason="length")  # type: ignore[method-assign]
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(engine.resolve, ask()) for _ in range(3)]
        assert backend.started.wait(20)
        while len(engine._flights) == 0:
            pass
        threading.Event().wait(0.1)
        backend.go.set()
        texts = {future.result().text for future in futures}
    assert texts == {"The Elbe, 1."}
    assert engine.count() == 0


def test_waiting_ends() -> None:
    """A leader that never comes back costs its followers ``max_wait``, not for ever."""
    backend = Slow()
    engine = StepCacheEngine(backend=backend, policy=Policy(max_wait=0.05))
    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(engine.resolve, ask())
        assert backend.started.wait(20)
        follower = pool.submit(engine.resolve, ask())
        while backend.calls < 2:
            threading.Event().wait(0.01)
        backend.go.set()
        assert leader.result().text
        assert follower.result().text
    assert backend.calls == 2


def test_a_nested_call_does_not_wait_for_itself() -> None:
    """A model that asks the same engine the same thing is let through."""
    engine: StepCacheEngine

    class Nested:
        depth = 0

        def generate(self, call: ModelCall) -> Reply:
            self.depth += 1
            if self.depth == 1:
                return Reply(text=engine.resolve(ask()).text + " indeed")
            return Reply(text="The Elbe")

    engine = StepCacheEngine(backend=Nested())
    assert engine.resolve(ask()).text == "The Elbe indeed"


def test_a_paused_stream_does_not_lock_its_own_thread() -> None:
    """While a stream of the same request stands still, the thread can ask again."""

    class Streaming:
        def generate(self, call: ModelCall) -> Reply:
            return Reply(text="The Elbe.")

        def stream(self, call: ModelCall):  # type: ignore[no-untyped-def]
            from stepcache.protocols import Delta

            yield Delta("The ")
            yield Delta("Elbe.")
            yield Reply(text="The Elbe.")

    engine = StepCacheEngine(backend=Streaming())
    pieces = engine.stream(ask())
    next(pieces)
    assert engine.resolve(ask()).text == "The Elbe."
    assert isinstance(list(pieces)[-1], Outcome)


def test_after_all_nothing_is_in_flight() -> None:
    """Leads are released however a call ends, and later calls lead again."""
    backend = Slow(failures=1)
    backend.go.set()
    engine = StepCacheEngine(backend=backend)
    with pytest.raises(ConnectionError):
        engine.resolve(ask())
    assert len(engine._flights) == 0
    assert engine.resolve(ask()).route == "miss"
    assert engine.resolve(ask()).route == "exact"
    assert len(engine._flights) == 0


def test_separate_event_loops_may_share_an_engine() -> None:
    """Nothing is bound to the loop it was first used in."""
    engine = StepCacheEngine()

    async def once() -> str:
        backend = AsyncSlow()
        backend.go.set()
        outcomes = await asyncio.gather(
            *(engine.aresolve(ask("Name a lake."), backend=backend) for _ in range(3))
        )
        return outcomes[0].text

    assert asyncio.run(once()) == asyncio.run(once())


class Leaseless(MemoryStore):
    """A store whose leases are out of order in a way of their own."""

    def acquire(self, *args: object) -> int:
        """Fails."""
        raise LookupError("no such table")

    release = put_leased = acquire


@pytest.mark.parametrize("asynchronous", [False, True])
def test_broken_leases_cost_the_sharing_only(asynchronous: bool) -> None:
    """Law 11: whatever a lease raises, the answer comes and is kept."""
    backend = Slow()
    backend.go.set()
    engine = StepCacheEngine(store=Leaseless(), backend=backend)
    for route in ("miss", "exact"):
        outcome = asyncio.run(engine.aresolve(ask())) if asynchronous else engine.resolve(ask())
        assert outcome.route == route
