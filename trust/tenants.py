"""One tenant asking, in every way there is, for what another tenant's entries say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from stepcache import Control, Message, Reply, Request, StepCacheEngine
from trust.targets.serving import Everywhere

__all__ = ["Crossings", "cross"]

_SHOWN = 8


@dataclass(slots=True, kw_only=True)
class Crossings:
    """What the tries came to."""

    tries: int = 0
    crossed: int = 0
    """Something of another tenant's was served, counted, found or removed. Must be 0."""
    tenants: int = 0
    own: int = 0
    """Look-ups of one's own entries that were served: proof that something was there to take."""
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)


_NAMES: tuple[str, ...] = (
    *(
        "",
        "a",
        "A",
        "a ",
        " a",
        "a\x00",
        "a\n",
        "aa",
        "a/b",
        "a:b",
        "a|b",
        "a,b",
        'a","b',
        "a\\",
        "á",
    ),
    *("a\u0301", "á"[:1] + "\u200b", "ａ", "а", "null", "None", "0", "[]", "{}", "default"),
    *(
        "stepcache:ns:a",
        "tenant-1",
        "tenant-10",
        "tenant-1 ",
        "../a",
        "a%00",
        "%61",
        "a" * 300,
        "a" * 301,
    ),
)


def _secret(tenant: int) -> str:
    return f"secret of tenant {tenant}!"


_PROMPTS = (
    ("Write a line about the river Elbe.", "{secret}: it flows north."),
    ("What is our revenue?", "It is 7, by the {secret}."),
    (
        "Describe Rome as JSON with keys name, country.",
        '{{"name": "{secret}", "country": "Italy"}}',
    ),
    ("Extract name as JSON from: Ann is 30.", '{{"name": "{secret}"}}'),
    ("Solve 2x + 3 = 13 for x.", "2x + 3 = 13\n\n2x = 10\n\nx = 5"),
)


def cross(
    store: Any, *, tries: int, seed: int, progress: Callable[[str], None] = lambda told: None
) -> Crossings:
    """Fill a store for many tenants, and let each ask for the others'."""
    tally = Crossings(tenants=len(_NAMES))
    dice = Random(f"{seed}/tenants")
    engine = StepCacheEngine(store=store, embedder=Everywhere())
    began = time.perf_counter()
    ids: dict[int, list[str]] = {}
    for tenant in range(0, len(_NAMES), 2):  # every other one has entries
        for text, answer in _PROMPTS:
            reply = Reply(text=answer.format(secret=_secret(tenant)))
            kept = engine.admit(_request(text, tenant), reply)
            if kept is not None:
                ids.setdefault(tenant, []).append(kept)
    for number, (tenant, text) in enumerate(_tries(dice, tries)):
        tally.tries += 1
        told = f"#{number}: tenant {_NAMES[tenant]!r} asking {text!r}"
        _ask(tally, engine, tenant, text, told)
        if number % 50 == 0:
            _meddle(tally, engine, tenant, ids, dice, told)
        if number % 20_000 == 19_999:
            progress(f"{number + 1} tries, {tally.crossed} crossed")
    tally.seconds = time.perf_counter() - began
    return tally


def _tries(dice: Random, count: int) -> Iterator[tuple[int, str]]:
    wordings = [text for text, _ in _PROMPTS]
    wordings += ["Please find x if 13 = 3 + 2x.", "Solve 4x + 3 = 23 for x."]
    wordings += ["Describe Rome as JSON with keys name, country, river.", "what is our revenue"]
    for _ in range(count):
        yield dice.randrange(len(_NAMES)), dice.choice(wordings)


def _request(text: str, tenant: int) -> Request:
    return Request(messages=(Message(role="user", text=text),), namespace=_NAMES[tenant])


def _ask(tally: Crossings, engine: StepCacheEngine, tenant: int, text: str, told: str) -> None:
    # The namespace may come with the request or with the call; either way it is the wall.
    if tally.tries % 2:
        outcome = engine.lookup(_request(text, tenant))
    else:
        request = Request(messages=(Message(role="user", text=text),))
        outcome = engine.lookup(request, control=Control(namespace=_NAMES[tenant]))
    empty = tenant % 2 == 1
    if outcome.served and empty:
        _crossed(tally, f"{told}: {outcome.route} {outcome.text!r}")
    elif outcome.served:
        tally.own += 1
        if "secret" in outcome.text and _secret(tenant) not in outcome.text:
            _crossed(tally, f"{told}: {outcome.text!r}")
    if empty and "entry" in outcome.trace.render().replace("no entry", ""):
        _crossed(tally, f"{told}: the trace tells of an entry: {outcome.trace.render()!r}")


def _meddle(
    tally: Crossings,
    engine: StepCacheEngine,
    tenant: int,
    ids: dict[int, list[str]],
    dice: Random,
    told: str,
) -> None:
    """Count, inspect, forget and report by the ids of others."""
    if tenant % 2 == 0:
        return
    victim = dice.choice(sorted(ids))
    stolen = dice.choice(ids[victim])
    if engine.count(namespace=_NAMES[tenant]):
        _crossed(tally, f"{told}: counts entries that are not its own")
    if engine.forget(namespace=_NAMES[tenant]):
        _crossed(tally, f"{told}: removed entries that are not its own")
    if engine.report_bad(stolen, namespace=_NAMES[tenant]):
        _crossed(tally, f"{told}: reported an entry that is not its own")


def _crossed(tally: Crossings, told: str) -> None:
    tally.crossed += 1
    if len(tally.found) < _SHOWN:
        tally.found.append(told)
