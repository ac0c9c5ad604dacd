"""Two things timed turn by turn in one process: what is left of a noisy machine is their ratio."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Pair", "Result", "compare", "table"]

Turn = Callable[[int], object]
"""Does the thing once; told which time this is, so that each can be another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A path, and the least that anything like it has to do."""

    name: str
    floor_name: str
    floor: Turn
    path: Turn
    unit: str
    """What is promised: ``ratio`` of the medians, or ``ms`` (the path's), or ``added ms``."""
    limit: float
    rounds: int = 300
    limit_p99: float | None = None
    """Milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was measured of a pair. Microseconds, but for what the unit says of ``figure``."""

    name: str
    floor_name: str
    rounds: int
    floor_p10: float
    """Of the quiet tenth: where neighbours share the machine, nearer to the truth."""
    floor_p50: float
    floor_p99: float
    path_p10: float
    path_p50: float
    path_p99: float
    spread: float
    """Half the distance between the path's quartiles, as a portion of its median."""
    ratio: float
    unit: str
    figure: float
    """What is promised about."""
    limit: float
    met: bool

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def compare(pair: Pair) -> Result:
    """Time floor and path in turn, after a tenth of the rounds for warming up."""
    floor: list[int] = []
    path: list[int] = []
    warm = max(2, pair.rounds // 10)
    clock = time.perf_counter_ns
    gc.collect()
    for turn in range(warm + pair.rounds):
        start = clock()
        pair.floor(turn)
        middle = clock()
        pair.path(turn)
        end = clock()
        if turn >= warm:
            floor.append(middle - start)
            path.append(end - middle)
    return _result(pair, np.array(floor) / 1e3, np.array(path) / 1e3)


def _result(pair: Pair, floor: Any, path: Any) -> Result:
    quiet, low, median, high, late = np.percentile(path, [10, 25, 50, 75, 99]).tolist()
    floor_quiet, floor_median, floor_late = np.percentile(floor, [10, 50, 99]).tolist()
    ratio = median / floor_median
    figure = {"ratio": ratio, "ms": median / 1e3, "added ms": (median - floor_median) / 1e3}[
        pair.unit
    ]
    in_time = pair.limit_p99 is None or late / 1e3 <= pair.limit_p99
    return Result(
        name=pair.name,
        floor_name=pair.floor_name,
        rounds=pair.rounds,
        floor_p10=round(floor_quiet, 2),
        floor_p50=round(floor_median, 2),
        floor_p99=round(floor_late, 2),
        path_p10=round(quiet, 2),
        path_p50=round(median, 2),
        path_p99=round(late, 2),
        spread=round((high - low) / 2 / median, 3),
        ratio=round(ratio, 3),
        unit=pair.unit,
        figure=round(figure, 3),
        limit=pair.limit,
        met=figure <= pair.limit and in_time,
    )


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| path | floor | floor p10 / p50 / p99 us | path p10 / p50 / p99 us "
        "| spread | ratio | promise | met |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        promise = f"{r.figure:g} of {r.limit:g} {r.unit}"
        lines.append(
            f"| {r.name} | {r.floor_name} "
            f"| {r.floor_p10:,.1f} / {r.floor_p50:,.1f} / {r.floor_p99:,.1f} "
            f"| {r.path_p10:,.1f} / {r.path_p50:,.1f} / {r.path_p99:,.1f} "
            f"| {r.spread:.0%} | {r.ratio:.2f} "
            f"| {promise} | {'yes' if r.met else 'no'} |"
        )
    return "\n".join(lines)
