"""The load: arrivals that come in bursts, and a bounded run over real HTTP."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import mean, pvariance

import pytest
from rich.console import Console

from stepcache.bench._load import LoadOptions, arrivals, run_level, run_load
from stepcache.bench._main import BenchOptions, Elsewhere
from stepcache.bench._workload import workload
from stepcache.testing.endpoint import ScriptedEndpoint

pytest.importorskip("fastjsonschema")

ITEMS = [item for item in workload(42, ("paper",)) if item.split == "paper"][:50]


def test_arrivals_are_seeded_and_bounded() -> None:
    """The same options give the same arrivals, in order, all before the end."""
    options = LoadOptions(seconds=200)
    found = arrivals(options, 16, ITEMS)
    assert found == arrivals(options, 16, ITEMS)
    assert found != arrivals(LoadOptions(seconds=200, seed=43), 16, ITEMS)
    dues = [one.due for one in found]
    assert dues == sorted(dues)
    assert dues[0] > 0
    assert dues[-1] < 200


def test_the_rate_is_that_of_the_users() -> None:
    """Arrivals a second are users times rate, within what chance allows."""
    found = arrivals(LoadOptions(seconds=2000, rate=0.2), 16, ITEMS)
    assert len(found) / 2000 == pytest.approx(3.2, rel=0.1)


def test_gaps_come_in_bursts() -> None:
    """The gaps vary more than those of a Poisson process, whose variance is the mean squared."""
    dues = [one.due for one in arrivals(LoadOptions(seconds=3000), 16, ITEMS)]
    gaps = [b - a for a, b in itertools.pairwise(dues)]
    assert pvariance(gaps) / mean(gaps) ** 2 == pytest.approx(1 / 0.3, rel=0.25)


def test_a_few_templates_are_asked_for_most() -> None:
    """Zipf: the first is asked for about twice as often as the second, and far more than the last."""
    found = arrivals(LoadOptions(seconds=3000), 16, ITEMS)
    counts = Counter(one.item.id for one in found)
    first, second, last = (counts[ITEMS[n].id] for n in (0, 1, -1))
    assert first == pytest.approx(second * 2**1.1, rel=0.2)
    assert first > 20 * last


async def test_latency_counts_from_when_a_request_was_due() -> None:
    """A stalled server shows in every request behind it, and what is late is cut off and counted."""
    options = LoadOptions(seconds=0.4, drain=0.2, rate=20)
    schedule = arrivals(options, 4, ITEMS)
    assert len(schedule) > 3

    async def never(prompt: str) -> tuple[str, str, bool]:
        await asyncio.sleep(60)
        return "", "model", False

    figures = await run_level(never, schedule, options)
    assert figures["answered"] == 0
    assert figures["unfinished"] == len(schedule)
    assert figures["peak_in_flight"] == len(schedule)
    assert figures["seconds"] < 5


async def test_errors_and_wrong_serves_are_figures() -> None:
    """A failing model is counted; so is a served answer that the judge finds wrong."""
    options = LoadOptions(seconds=0.2, drain=1, rate=40)
    schedule = arrivals(options, 4, ITEMS)
    odd = iter(range(10_000))

    async def half(prompt: str) -> tuple[str, str, bool]:
        if next(odd) % 2:
            raise RuntimeError("down")
        return "no answer", "reuse", True

    figures = await run_level(half, schedule, options)
    assert figures["errors"] == len(schedule) // 2
    assert figures["served_and_wrong"] == figures["shared_calls"] == figures["answered"]


def test_a_load_over_http(answers: Callable[[str], str], tmp_path: Path) -> None:
    """Two levels of both modes: files written, calls saved, nothing wrong served."""
    with ScriptedEndpoint(lambda request: answers(request["messages"][-1]["content"])) as endpoint:
        where = Elsewhere(base_url=endpoint.url, model_name="scripted")
        bench = BenchOptions(out=tmp_path, elsewhere=where)
        load = LoadOptions(users=(1, 8), seconds=1.5, drain=5, rate=4, templates=20)
        levels = run_load(load, bench, Console(file=io.StringIO()))
    assert [(one["mode"], one["users"]) for one in levels] == [
        *(("bare", 1), ("stepcache", 1), ("bare", 8), ("stepcache", 8))
    ]
    for one in levels:
        assert one["errors"] == one["unfinished"] == one["served_and_wrong"] == 0
        assert one["answered"] == one["requests"]
    by = {(one["mode"], one["users"]): one for one in levels}
    assert by["bare", 8]["calls"] == by["bare", 8]["answered"]
    assert by["stepcache", 8]["calls"] < by["bare", 8]["calls"]
    assert by["stepcache", 8]["calls_saved"] > 0
    assert json.loads((tmp_path / "load.json").read_text())["levels"] == levels
    assert "| 8 | stepcache |" in (tmp_path / "load.md").read_text()
