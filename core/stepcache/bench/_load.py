"""Bursty load: requests arrive when they arrive, whether or not the last ones were answered.

An open loop: latency counts from the moment a request was due, so that a stalled server cannot hide
by delaying the next request. The gaps are gamma distributed with a shape below one (bursts), and
templates are chosen by Zipf's law; that is the shape of the BurstGPT traces (arXiv 2401.17644).
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from stepcache import Message, ModelCall, Outcome, Reply, Request, StepCacheEngine
from stepcache._counts import count
from stepcache.backends import AsyncOpenAICompatibleBackend
from stepcache.bench._figures import percentile
from stepcache.bench._items import Item
from stepcache.bench._judge import judge
from stepcache.bench._record import machine
from stepcache.bench._workload import workload

if TYPE_CHECKING:
    from rich.console import Console

    from stepcache.bench._main import BenchOptions, ModelAddress

__all__ = ["Arrival", "LoadOptions", "arrivals", "load_markdown", "run_level", "run_load"]

LEVELS = (1, 4, 16, 64, 256)
MODES = ("bare", "stepcache")
_SETTLE_SECONDS = 60.0

Ask: TypeAlias = Callable[[str], Awaitable[tuple[str, str, bool]]]
"""From a prompt to the answer, its route, and whether it shared another request's model call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The load and its bounds."""

    users: tuple[int, ...] = LEVELS
    seconds: float = 20.0
    """How long requests arrive at each level."""
    drain: float = 10.0
    """How long answers are waited for after that; what is left is cut off and counted."""
    rate: float = 0.2
    """Requests a second of one user, on average."""
    shape: float = 0.3
    """Of the gamma distribution of gaps; 1 is a Poisson process, less comes in bursts."""
    zipf: float = 1.1
    templates: int = 100
    seed: int = 42
    modes: tuple[str, ...] = MODES


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request and the second it is due."""

    due: float
    item: Item


@dataclass(slots=True)
class _Done:
    seconds: float
    text: str
    route: str
    joined: bool
    item: Item
    error: str = ""


def arrivals(options: LoadOptions, users: int, items: Sequence[Item]) -> list[Arrival]:
    """When which request comes; the same options give the same arrivals.

    Args:
        items: Templates by rank: the first is the most popular one.
    """
    source = random.Random(f"load {options.seed} {users}")  # noqa: S311 - a load, not a secret
    weights = [1 / (rank + 1) ** options.zipf for rank in range(len(items))]
    scale = 1 / (options.rate * users * options.shape)
    due = 0.0
    found: list[Arrival] = []
    while True:
        due += source.gammavariate(options.shape, scale)
        if due >= options.seconds:
            return found
        found.append(Arrival(due, source.choices(items, weights)[0]))


async def run_level(ask: Ask, schedule: Sequence[Arrival], options: LoadOptions) -> dict[str, Any]:
    """Send every request when it is due; figures of what was answered in time."""
    done: list[_Done] = []
    in_flight = peak = 0
    begun = time.perf_counter()

    async def one(arrival: Arrival) -> None:
        nonlocal in_flight, peak
        in_flight += 1
        peak = max(peak, in_flight)
        text, route, joined, error = "", "error", False, ""
        try:
            text, route, joined = await ask(arrival.item.prompt)
        except Exception as raised:  # noqa: BLE001 - an error is a figure here
            error = f"{type(raised).__name__}: {raised}"[:200]
        finally:
            in_flight -= 1
        seconds = time.perf_counter() - begun - arrival.due
        done.append(_Done(seconds, text, route, joined, arrival.item, error))

    tasks = []
    for arrival in schedule:
        await asyncio.sleep(max(0.0, arrival.due - (time.perf_counter() - begun)))
        tasks.append(asyncio.create_task(one(arrival)))
    if tasks:
        left = options.seconds + options.drain - (time.perf_counter() - begun)
        _, late = await asyncio.wait(tasks, timeout=max(0.0, left))
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    return _figures(done, len(schedule), peak, time.perf_counter() - begun)


def _figures(done: Sequence[_Done], due: int, peak: int, seconds: float) -> dict[str, Any]:
    good = [one for one in done if not one.error]
    waits = [one.seconds for one in good]
    served = [one for one in good if one.route in ("exact", "reuse", "adapt")]
    wrong = [one for one in served if not judge(one.text, one.item.demand).correct]
    return {
        "requests": due,
        "answered": len(good),
        "errors": len(done) - len(good),
        "unfinished": due - len(done),
        "seconds": seconds,
        "throughput": len(good) / seconds if seconds else 0.0,
        "p50_seconds": percentile(waits, 0.5),
        "p95_seconds": percentile(waits, 0.95),
        "p99_seconds": percentile(waits, 0.99),
        "peak_in_flight": peak,
        "calls_saved": len(served),
        "shared_calls": sum(one.joined for one in good),
        "served_and_wrong": len(wrong),
        "routes": dict(sorted(Counter(one.route for one in good).items())),
    }


class _Counted:
    """An asynchronous backend that counts the calls it is asked for."""

    def __init__(self, inner: AsyncOpenAICompatibleBackend) -> None:
        self._inner = inner
        self.calls = 0

    async def generate(self, call: ModelCall, /) -> Reply:
        self.calls += 1
        return await self._inner.generate(call)


def _asker(mode: str, backend: _Counted) -> Ask:
    if mode == "bare":

        async def ask_model(prompt: str) -> tuple[str, str, bool]:
            message = Message(role="user", text=prompt)
            reply = await backend.generate(ModelCall(purpose="answer", messages=(message,)))
            return reply.text, "model", False

        return ask_model
    engine = StepCacheEngine(backend=backend)

    async def ask_engine(prompt: str) -> tuple[str, str, bool]:
        request = Request(messages=(Message(role="user", text=prompt),))
        outcome: Outcome = await engine.aresolve(request)
        return outcome.text, outcome.route, "joined" in outcome.trace.names()

    return ask_engine


async def _level(
    mode: str,
    users: int,
    address: ModelAddress,
    params: dict[str, Any],
    options: LoadOptions,
    items: Sequence[Item],
) -> dict[str, Any]:
    backend = AsyncOpenAICompatibleBackend(
        address.base_url,
        address.model,
        api_key=address.api_key,
        params=params,
        prefill=address.prefill,
        constrain=address.constrain,
        timeout=600.0,
    )
    try:
        await _settled(backend)
        counted = _Counted(backend)
        schedule = arrivals(options, users, items)
        figures = await run_level(_asker(mode, counted), schedule, options)
    finally:
        await backend.close()
    return {"mode": mode, "users": users, "calls": counted.calls, **figures}


async def _settled(backend: AsyncOpenAICompatibleBackend) -> None:
    """Wait until the server has put away what the last level left, or stop waiting."""
    call = ModelCall(purpose="answer", messages=(Message(role="user", text="Say OK."),))
    with suppress(Exception):  # whatever is wrong shows in the figures
        await asyncio.wait_for(backend.generate(call), _SETTLE_SECONDS)


def run_load(
    options: LoadOptions, bench: BenchOptions, console: Console, *, parallel: int = 4
) -> list[dict[str, Any]]:
    """Put every level on every mode, each with an empty cache, and write figures and a table."""
    from stepcache.bench._main import model_server

    everything = [i for i in workload(options.seed, ("paper",)) if i.split == "paper"]
    items = everything[: options.templates]
    levels = []
    with model_server(bench, parallel=parallel) as address:
        for users in options.users:
            for mode in options.modes:
                level = asyncio.run(_level(mode, users, address, bench.params, options, items))
                levels.append(level)
                console.print(
                    f"{mode}, {count(users, 'user')}: {level['answered']} of {level['requests']} "
                    f"answered, p95 {level['p95_seconds']:.2f} s, {count(level['calls'], 'call')}",
                    markup=False,
                )
        model = address.model
    bench.out.mkdir(parents=True, exist_ok=True)
    record = {
        "model": model,
        "parallel": parallel,
        "machine": machine(),
        "load": _described(options),
        "levels": levels,
    }
    (bench.out / "load.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (bench.out / "load.md").write_text(load_markdown(record), encoding="utf-8")
    console.print(f"figures are in {bench.out}", markup=False)
    return levels


def _described(options: LoadOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.__dataclass_fields__}


def load_markdown(record: dict[str, Any]) -> str:
    """The levels as a table."""
    head = [
        *("users", "mode", "requests", "answered", "unfinished", "errors", "a second", "p50"),
        *("p95", "p99", "peak in flight", "model calls", "calls saved", "calls shared", "wrong"),
    ]
    lines = [
        [
            str(x["users"]),
            x["mode"],
            *(str(x[name]) for name in ("requests", "answered", "unfinished", "errors")),
            f"{x['throughput']:.2f}",
            *(f"{x[f'p{q}_seconds']:.3f} s" for q in (50, 95, 99)),
            *(str(x[n]) for n in ("peak_in_flight", "calls", "calls_saved", "shared_calls")),
            str(x["served_and_wrong"]),
        ]
        for x in record["levels"]
    ]
    rule = ["---:"] * len(head)
    table = "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))
    load = record["load"]
    told = (
        f"Open loop: {load['rate']} requests a second for each user during {load['seconds']} s, "
        f"gamma gaps of shape {load['shape']}, Zipf {load['zipf']} over "
        f"{count(load['templates'], 'request')}; {load['drain']} s to finish. Latency counts from "
        "when a request was due. "
        f"Model {record['model']}, {record['parallel']} at a time."
    )
    return f"# Bursty load\n\n{told}\n\n{table}\n"
