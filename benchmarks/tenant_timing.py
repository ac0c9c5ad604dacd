"""Can one tenant tell by the clock what another has asked?

One store holds a tenant's entries. Another tenant looks up prompts of two kinds, in turns: those
that the first has asked ("present") and those that nobody has ("absent"). Every look-up is a miss
either way; what is compared is how long it takes. The figure is the area under the ROC curve of
guessing the kind by the time alone: 0.5 is a coin's, 1 is certainty; with the 95 % interval of a
bootstrap. The same is done within one tenant, where present prompts are hits, to show that the
measurement can see a difference where there is one.

Usage: python benchmarks/tenant_timing.py [--turns N] [--json FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from stepcache import Message, Policy, Reply, Request, StepCacheEngine
from stepcache.stores import MemoryStore, SQLiteStore

CITIES = ("Paris", "Rome", "Oslo", "Bern", "Riga", "Cairo", "Lima", "Quito", "Hanoi", "Dakar")
ANSWERS = ('{"name": "x", "country": "y"}', "Somebody did, in some year.")


def prompt(number: int) -> str:
    """One of two families in turn; other words and numbers each time."""
    city = CITIES[number % len(CITIES)]
    if number % 2:
        return f"Who built house {number} in {city}, and when?"
    return f'Give me a JSON object about street {number} of {city} with the keys "name", "country".'


def ask(number: int, namespace: str) -> Request:
    message = Message(role="user", text=prompt(number))
    return Request(messages=(message,), model="m", namespace=namespace)


def measure(store: Any, turns: int, asking: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of look-ups by ``asking`` of what "ours" has asked, and of what nobody has."""
    engine = StepCacheEngine(store=store, policy=Policy(require_namespace=True))
    dice = random.Random(seed)  # noqa: S311 - a workload, not a secret
    numbers = list(range(4 * turns))
    dice.shuffle(numbers)
    present, absent = numbers[:turns], numbers[turns : 2 * turns]
    for number in present:
        kept = engine.admit(ask(number, "ours"), Reply(text=ANSWERS[number % 2]))
        assert kept is not None
    for number in numbers[2 * turns : 2 * turns + 200]:
        engine.lookup(ask(number, asking))  # warm
    seconds: dict[bool, list[float]] = {True: [], False: []}
    order = [(number, True) for number in present] + [(number, False) for number in absent]
    dice.shuffle(order)
    gc.disable()
    for number, known in order:
        request = ask(number, asking)
        started = time.perf_counter()
        engine.lookup(request)
        seconds[known].append(time.perf_counter() - started)
    gc.enable()
    engine.close()
    return np.array(seconds[True]), np.array(seconds[False])


def auc(one: np.ndarray, other: np.ndarray) -> float:
    """Probability that a value of the first is the larger, ties halved."""
    ranks = np.argsort(np.argsort(np.concatenate((one, other)))) + 1
    return float((ranks[: len(one)].sum() - len(one) * (len(one) + 1) / 2) / len(one) / len(other))


def compared(name: str, present: np.ndarray, absent: np.ndarray) -> dict[str, Any]:
    dice = np.random.default_rng(0)
    drawn = [
        auc(dice.choice(present, len(present)), dice.choice(absent, len(absent)))
        for _ in range(400)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return {
        "case": name,
        "look-ups": len(present) + len(absent),
        "present p50 us": round(1e6 * median(present), 1),
        "absent p50 us": round(1e6 * median(absent), 1),
        "auc": round(auc(present, absent), 4),
        "auc 95 %": [round(float(low), 4), round(float(high), 4)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed, asking in enumerate(("theirs", "ours")):
            who = "another tenant" if asking == "theirs" else "the same tenant"
            stores = (
                ("memory", MemoryStore()),
                ("SQLite", SQLiteStore(Path(folder) / f"{asking}.db")),
            )
            for kind, store in stores:
                times = measure(store, options.turns, asking, seed)
                rows.append(compared(f"{kind}, {who}", *times))
    print("| case | look-ups | present, median | absent, median | AUC (95 %) |")
    print("|---|---|---|---|---|")
    for row in rows:
        low, high = row["auc 95 %"]
        print(
            f"| {row['case']} | {row['look-ups']:,} | {row['present p50 us']} us "
            f"| {row['absent p50 us']} us | {row['auc']} ({low} to {high}) |"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
