"""Many processes on one store: does it lose, mix up or ask twice?

    python -m stepcache.testing.load sqlite:///cache.db --seconds 60

Every process has an engine of its own and asks, from many threads, what the others ask too, in
several namespaces; meanwhile it puts entries of its own, reads them back and searches. The model is
a stand-in that takes some milliseconds and answers with what it was asked, so that an answer of
another key or namespace shows. In the end each acknowledged answer and entry is looked for.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from stepcache._counts import count
from stepcache._types import Message, ModelCall, Reply, Request
from stepcache.engine import StepCacheEngine
from stepcache.testing.stores import direction, make_entry

__all__ = ["check_load", "faults_of"]

_NAMESPACES = ("", "north", "south", "west")
_FINGERPRINT = "load/1"
_MODEL_SECONDS = (0.001, 0.02)
_NEW_KEYS_A_SECOND = 40
_LATEST = 200
_TOLD = 5
_HEAD_START = 0.2
_END_SECONDS = 300.0
"""How long processes may take to end after their time."""


def check_load(
    store: str, *, seconds: float, processes: int = 4, threads: int = 8
) -> dict[str, Any]:
    """Load a store and say what came of it.

    Args:
        store: As an engine takes it; empty, and reachable from other processes.
        seconds: How long to go on.

    Returns:
        Figures: requests, model calls and keys they were for, entries put and read, and what
        :func:`faults_of` looks at.
    """
    command = [sys.executable, "-m", "stepcache.testing.load", store, "--seconds", str(seconds)]
    command += ["--threads", str(threads)]
    running = [
        subprocess.Popen(  # noqa: S603 - this very module
            [*command, "--process", str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for process in running:
        if process.stdout is not None:
            process.stdout.readline()  # it is ready, or has ended
    start = f"{time.time() + _HEAD_START}\n"
    told: list[dict[str, Any]] = []
    errors: list[str] = []
    for process in running:
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.write(start)
                process.stdin.flush()
    for process in running:
        try:
            output, error = process.communicate(timeout=seconds + _END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, error = process.communicate()
        if process.returncode:
            errors.append(f"a process ended with {process.returncode}: {error[-2000:]}")
        else:
            told.append(json.loads(output))
    return _summed(store, told, errors)


def faults_of(figures: dict[str, Any]) -> list[str]:
    """What was not as it must be, in words; nothing where all was."""
    faults = [str(error) for error in figures["errors"]]
    if figures["lost"]:
        faults.append(f"acknowledged and gone: {count(figures['lost'], 'entry', 'entries')}")
    if figures["foreign"]:
        faults.append(f"of another key or namespace: {count(figures['foreign'], 'read')}")
    if figures["model_calls"] != figures["keys"]:
        calls, keys = count(figures["model_calls"], "model call"), count(figures["keys"], "key")
        faults.append(f"{calls} for {keys}")
    return faults


def _summed(store: str, told: Sequence[dict[str, Any]], errors: list[str]) -> dict[str, Any]:
    calls: Counter[str] = Counter()
    for each in told:
        calls.update(each.pop("calls"))
        errors += each.pop("errors")[:_TOLD]
    kept = {name: scope for each in told for name, scope in each.pop("kept").items()}
    waits = sorted(wait for each in told for wait in each.pop("waits"))
    total: Counter[str] = Counter()
    for each in told:
        total.update(each)
    lost = foreign = 0
    engine = StepCacheEngine(store=store, backend=_Silent())
    try:
        for key in calls:
            text = engine.resolve(*_asked(key)).text
            lost += not text
            foreign += bool(text) and text != _answer(key)
        getter: Any = engine.store
        for name, scope in kept.items():
            entry = getter.get(scope, f"exact-{name}")
            lost += entry is None
            foreign += entry is not None and entry.scope != scope
    finally:
        engine.close()
    return {
        **total,
        "errors": errors,
        "lost": total["lost"] + lost,
        "foreign": total["foreign"] + foreign,
        "model_calls": calls.total(),
        "keys": len(calls),
        "wait_p50_ms": round(1e3 * waits[len(waits) // 2], 2) if waits else None,
        "wait_p99_ms": round(1e3 * waits[len(waits) * 99 // 100], 2) if waits else None,
    }


# --- what is asked -----------------------------------------------------------------------------


def _asked(key: str) -> tuple[Request]:
    namespace, _, number = key.partition(" ")
    text = f"Tell me about the harbour with the number {number}."
    return (Request(messages=(Message(role="user", text=text),), namespace=namespace),)


def _answer(key: str) -> str:
    return f"In {key!r} the barges wait for the tide."


class _Silent:
    """Asked for what should have been kept."""

    def generate(self, call: ModelCall, /) -> Reply:
        return Reply(text="")


class _Model:
    """Takes its time, and counts."""

    def __init__(self, key: str, calls: Counter[str], lock: threading.Lock) -> None:
        self._key, self._calls, self._lock = key, calls, lock

    def generate(self, call: ModelCall, /) -> Reply:
        with self._lock:
            self._calls[self._key] += 1
        time.sleep(random.uniform(*_MODEL_SECONDS))  # noqa: S311 - a wait, not a secret
        return Reply(text=_answer(self._key))


# --- one process -------------------------------------------------------------------------------


@dataclass
class _Worker:
    """What the threads of one process do and find."""

    engine: StepCacheEngine
    process: int
    start: float
    end: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    calls: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)

    def work(self, thread: int) -> None:
        dice = random.Random(f"{self.process} {thread}")  # noqa: S311 - a load, not a secret
        counts: Counter[str] = Counter()
        waits: list[float] = []
        mine: dict[str, str] = {}
        turn = 0
        try:
            while time.time() < self.end:
                turn += 1
                draw = dice.random()
                if draw < 0.6:
                    self._ask(dice, counts, waits)
                elif draw < 0.75:
                    self._put(f"{self.process}-{thread}-{turn}", dice, mine, counts)
                elif draw < 0.9 and mine:
                    self._get(dice, mine, counts)
                else:
                    self._search(dice, counts)
        except Exception as error:  # noqa: BLE001 - an error is a finding here
            with self.lock:
                self.errors.append(f"{type(error).__name__}: {error}")
        with self.lock:
            self.counts.update(counts)
            self.kept.update(mine)
            self.waits += waits

    def _ask(self, dice: random.Random, counts: Counter[str], waits: list[float]) -> None:
        newest = int((time.time() - self.start) * _NEW_KEYS_A_SECOND)
        number = max(0, newest - int(dice.expovariate(1 / _LATEST)))
        key = f"{dice.choice(_NAMESPACES)} {number}"
        begun = time.perf_counter()
        outcome = self.engine.resolve(*_asked(key), backend=_Model(key, self.calls, self.lock))
        waits.append(time.perf_counter() - begun)
        counts["requests"] += 1
        counts["foreign"] += outcome.text != _answer(key)
        for event in outcome.trace.events:
            if event.name.endswith("failed"):
                with self.lock:
                    self.errors.append(str(event))

    def _put(
        self, name: str, dice: random.Random, mine: dict[str, str], counts: Counter[str]
    ) -> None:
        scope = f"scope-{dice.randrange(4)}"
        store: Any = self.engine.store
        store.put(make_entry(name, scope, message=scope + "x" * 500), _vector(dice), _FINGERPRINT)
        mine[name] = scope
        counts["puts"] += 1

    def _get(self, dice: random.Random, mine: dict[str, str], counts: Counter[str]) -> None:
        name = dice.choice(list(mine))
        scope, store = mine[name], self.engine.store
        entry: Any = store.get(scope, f"exact-{name}")
        elsewhere: Any = store.get(f"{scope}-", f"exact-{name}")
        counts["gets"] += 2
        counts["lost"] += entry is None
        counts["foreign"] += elsewhere is not None

    def _search(self, dice: random.Random, counts: Counter[str]) -> None:
        scope = f"scope-{dice.randrange(4)}"
        found: Any = self.engine.store.search(scope, _vector(dice), _FINGERPRINT, limit=4)
        counts["searches"] += 1
        counts["foreign"] += sum(
            match.entry.scope != scope or not str(match.entry.message).startswith(scope)
            for match in found
        )


def _vector(dice: random.Random) -> Any:
    return direction(*(dice.uniform(-1, 1) for _ in range(8)))


def _work(store: str, process: int, threads: int, seconds: float) -> dict[str, Any]:
    engine = StepCacheEngine(store=store)
    print("ready", flush=True)
    start = float(sys.stdin.readline())
    time.sleep(max(0.0, start - time.time()))
    worker = _Worker(engine, process, start, start + seconds)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(worker.work, range(threads)))
    engine.close()
    return {
        **worker.counts,
        "calls": worker.calls,
        "errors": worker.errors,
        "kept": worker.kept,
        "waits": worker.waits,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Load a store from the command line; 1 where a fault was found."""
    parser = argparse.ArgumentParser(prog="python -m stepcache.testing.load", description=__doc__)
    parser.add_argument("store", help="as an engine takes it; empty")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    taken = parser.parse_args(arguments)
    if taken.process is not None:
        told = _work(taken.store, taken.process, taken.threads, taken.seconds)
        print(json.dumps(told))
        return 0
    figures = check_load(
        taken.store, seconds=taken.seconds, processes=taken.processes, threads=taken.threads
    )
    print(json.dumps(figures, indent=1))
    faults = faults_of(figures)
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
