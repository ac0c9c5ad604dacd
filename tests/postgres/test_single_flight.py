"""Equal requests of several processes share one call of the model, through the engine."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from stepcache import Message, Policy, Reply, Request, StepCacheEngine
from stepcache.stores import PostgresStore

ASKER = """
import asyncio, sys, time
from concurrent.futures import ThreadPoolExecutor
from stepcache import Message, Reply, Request, StepCacheEngine
from stepcache.stores import AsyncPostgresStore, PostgresStore

url, schema, start, mode = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
calls = 0

class Model:
    def generate(self, call):
        global calls
        calls += 1
        time.sleep(0.05)
        return Reply(text="Barges wait there for the tide.")

def asked(turn):
    text = f"Tell me about harbour {turn}, {mode}."
    return Request(messages=(Message(role="user", text=text),))

async def main(engine):
    for turn in range(12):
        await asyncio.gather(*(engine.aresolve(asked(turn)) for _ in range(4)))
    await engine.store.close()

kind = AsyncPostgresStore if mode == "async" else PostgresStore
engine = StepCacheEngine(store=kind(url, schema=schema), backend=Model())
time.sleep(max(0, start - time.time()))
if mode == "threads":
    with ThreadPoolExecutor(4) as pool:
        for turn in range(12):
            list(pool.map(lambda _: engine.resolve(asked(turn)), range(4)))
    engine.close()
elif mode == "async":
    asyncio.run(main(engine))
print(calls)
"""


@pytest.mark.parametrize("mode", ["threads", "async"])
def test_one_call_a_key_among_four_processes(
    server: Any, schema: str, opened: Callable[..., PostgresStore], mode: str
) -> None:
    """Four processes that ask the same things at the same time pay for each once."""
    opened()
    start = str(time.time() + 3)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", ASKER, server.url, schema, start, mode],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    calls = [int(process.communicate(timeout=90)[0]) for process in running]
    assert sum(calls) == 12


class Model:
    """Waits for leave before it answers."""

    def __init__(self) -> None:
        self.calls = 0
        self.leave = threading.Event()

    def generate(self, call: Any) -> Reply:
        self.calls += 1
        self.leave.wait(20)
        return Reply(text="Barges wait there for the tide.")


def test_a_leader_that_sleeps_is_overtaken_and_fenced(opened: Callable[..., PostgresStore]) -> None:
    """Whoever outlasts the others' patience still gets its answer, but does not replace theirs."""
    policy = Policy(max_wait=1.0)
    slow, quick = Model(), Model()
    quick.leave.set()
    first = StepCacheEngine(store=opened(), backend=slow, policy=policy)
    second = StepCacheEngine(store=opened(), backend=quick, policy=policy)
    asked = Request(messages=(Message(role="user", text="What is a lock gate for?"),))
    outcomes: list[Any] = []
    leader = threading.Thread(target=lambda: outcomes.append(first.resolve(asked)))
    leader.start()
    while not slow.calls:
        time.sleep(0.01)
    other = second.resolve(asked)
    slow.leave.set()
    leader.join()
    assert (slow.calls, quick.calls) == (1, 1)
    assert other.entry_id is not None
    assert outcomes[0].text
    assert outcomes[0].entry_id is None
    assert second.store.count() == 1
