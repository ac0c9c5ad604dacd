"""The asynchronous store keeps the contract too, and works under ``aresolve``."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from stepcache import Message, Reply, Request, StepCacheEngine, StoreError
from stepcache.stores import AsyncPostgresStore
from stepcache.testing.stores import Clock, StoreContract, direction, make_entry


class Waited:
    """An asynchronous store seen by a synchronous suite: each call waits for its loop's answer."""

    def __init__(self, store: AsyncPostgresStore) -> None:
        self._store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _wait(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            method = getattr(self._store, name)
            done: Future[Any] = asyncio.run_coroutine_threadsafe(
                method(*args, **options), self._loop
            )
            return done.result(30)

        return call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._wait(name)

    def get(self, *args: Any) -> Any:
        return self._wait("get")(*args)

    def search(self, *args: Any, limit: int) -> Any:
        return self._wait("search")(*args, limit=limit)

    def put(self, *args: Any, ttl: float | None = None) -> Any:
        return self._wait("put")(*args, ttl=ttl)

    def remove(self, *args: Any) -> Any:
        return self._wait("remove")(*args)

    def clear(self, *args: Any) -> Any:
        return self._wait("clear")(*args)

    def count(self, *args: Any) -> Any:
        return self._wait("count")(*args)

    def close(self) -> Any:
        return self._wait("close")()

    def end(self) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class TestAsyncPostgresStore(StoreContract):
    """Every sentence of the protocol, awaited."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, server: Any, schema: str, clock: Clock) -> Iterator[Waited]:
        waited = Waited(AsyncPostgresStore(server.url, schema=schema, clock=clock))
        yield waited
        waited.end()


class Model:
    """Counts its calls; each takes a moment."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, call: Any) -> Reply:
        self.calls += 1
        await asyncio.sleep(0.01)
        return Reply(text="Oslo is the capital of Norway.")


def _request(text: str) -> Request:
    return Request(messages=(Message(role="user", text=text),))


async def test_it_serves_aresolve(server: Any, schema: str) -> None:
    """An engine on the asynchronous store misses once and then serves."""
    store = AsyncPostgresStore(server.url, schema=schema)
    model = Model()
    engine = StepCacheEngine(store=store, backend=model)
    asked = _request("What is the capital of Norway?")
    first = await engine.aresolve(asked)
    second = await engine.aresolve(asked)
    assert (first.route, model.calls) == ("miss", 1)
    assert second.route != "miss"
    assert second.text == first.text
    await store.close()


def test_each_loop_has_its_own_connections(server: Any, schema: str) -> None:
    """A store made once works in one event loop after another."""
    store = AsyncPostgresStore(server.url, schema=schema)

    async def one(turn: int) -> int:
        await store.put(make_entry(str(turn)), direction(1), "f")
        return await store.count()

    assert [asyncio.run(one(turn)) for turn in range(3)] == [1, 2, 3]
    asyncio.run(store.close())


async def test_a_cancelled_call_spoils_nothing(server: Any, schema: str) -> None:
    """Calls given up in the middle leave no connection that answers somebody else's question."""
    store = AsyncPostgresStore(server.url, schema=schema, max_connections=2)
    for name in "abcd":
        await store.put(make_entry(name), direction(1), "f")
    for delay in (0.0, 0.0002, 0.0005, 0.001):
        tasks = [asyncio.create_task(store.get("scope", f"exact-{name}")) for name in "abcd" * 5]
        await asyncio.sleep(delay)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for name in "abcd":
            assert (await store.get("scope", f"exact-{name}")).exact_key == f"exact-{name}"
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.count()
