"""Figures out of exchanges, nothing else: everything here can be made again from a record."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepcache.bench._items import Item, ObjectDemand
from stepcache.bench._judge import Judgement, judge, object_values
from stepcache.bench._log import Exchange

__all__ = ["PAPER_TABLE", "Row", "judged", "percentile", "summary", "wilson"]

_SERVED = ("hit", "exact", "reuse", "adapt")
"""Routes whose answer came out of a cache, whole, and asked no model."""
_AS_IT_STANDS = ("hit", "exact", "reuse")

PAPER_TABLE: dict[str, dict[str, float]] = {
    "baseline": {
        "mean_seconds": 2.13,
        "median_seconds": 2.42,
        "p95_seconds": 3.38,
        "tokens": 36_100,
        "correct": 0.725,
    },
    "stepcache": {
        "mean_seconds": 0.67,
        "median_seconds": 0.01,
        "p95_seconds": 3.30,
        "tokens": 27_300,
        "correct": 1.0,
        "without_call": 0.797,
        "patch": 0.054,
        "skip": 0.149,
    },
}
"""arXiv 2603.28795, main table: 222 requests a seed, three seeds, on a CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One exchange with its item and what the judge said."""

    item: Item
    exchange: Exchange
    judgement: Judgement
    fault: str
    """Empty, ``wrong serve`` (an answer for another demand), ``inherited`` (an answer that was
    wrong when the model made it, given again), ``wrong patch``, ``wrong generation`` or
    ``error``."""

    @property
    def served(self) -> bool:
        return self.exchange.route in _SERVED


def judged(items: Mapping[str, Item], exchanges: Iterable[Exchange]) -> list[Row]:
    """Judge every answer, in order, warm-up included.

    Beyond what the answer's own text shows, two things make a serve wrong. One is where it came
    from: every value of an object must have been made by the model, in this mode and seed, for the
    same subject or source text. The other is a group marked ``must_not``: no earlier answer
    satisfies it, even if its text shows nothing (an answer in English to a request for French), so
    any answer served as it stands is wrong, and only deriving a new one counts.
    """
    memories: dict[tuple[str, int], _Memory] = defaultdict(_Memory)
    rows = []
    for exchange in exchanges:
        item, memory = items[exchange.item], memories[exchange.mode, items[exchange.item].seed]
        verdict = judge(exchange.text, item.demand)
        memory.take(item, exchange)
        foreign = memory.foreign(item, exchange)
        if foreign:
            verdict = Judgement(False, foreign)
        fault = _fault(item, exchange, verdict, memory.right.get(exchange.text), bool(foreign))
        rows.append(Row(item=item, exchange=exchange, judgement=verdict, fault=fault))
        if exchange.calls and not exchange.error:
            memory.right.setdefault(exchange.text, verdict.correct and not verdict.stale)
    return rows


class _Memory:
    """What the model said so far to one mode in one seed."""

    def __init__(self) -> None:
        self.right: dict[str, bool] = {}
        """Of answers the model took part in: whether they were right where they were made."""
        self._made: dict[str, set[str]] = defaultdict(set)
        """Values of objects, by subject."""

    def take(self, item: Item, exchange: Exchange) -> None:
        """Remember what the model's own replies hold."""
        if isinstance(item.demand, ObjectDemand):
            for call in exchange.calls:
                # Broken JSON was mended by somebody: what it held stands in the answer.
                values = object_values(call.text or exchange.text)
                if values is None:
                    values = object_values(exchange.text) or frozenset()
                self._made[item.demand.topic] |= values

    def foreign(self, item: Item, exchange: Exchange) -> str:
        """Why a value of a cached object is nothing the model said of this subject, or nothing."""
        cached = exchange.route in (*_SERVED, "patch")
        if not cached or not isinstance(item.demand, ObjectDemand):
            return ""
        values = object_values(exchange.text) or frozenset()
        foreign = sorted(values - self._made[item.demand.topic])
        return f"{foreign[0]!r} was never said of {item.demand.topic!r}" if foreign else ""


def _fault(
    item: Item, exchange: Exchange, verdict: Judgement, made_right: bool | None, foreign: bool
) -> str:
    if exchange.error:
        return "error"
    stands = exchange.route in _AS_IT_STANDS
    if stands and (item.must_not or foreign):
        return "wrong serve"
    served = exchange.route in _SERVED or exchange.route == "fallback"
    if verdict.correct and not (served and verdict.stale):
        return ""
    if served:
        return "inherited" if stands and made_right is False else "wrong serve"
    return "wrong patch" if exchange.route == "patch" else "wrong generation"


def wilson(right: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval of a share (95 % by default); (0, 1) of nothing."""
    if not of:
        return 0.0, 1.0
    share = right / of
    middle = share + z * z / (2 * of)
    spread = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def percentile(values: Sequence[float], share: float) -> float:
    """Linear interpolation between the two nearest ranks; 0 of nothing."""
    if not values:
        return 0.0
    ranked = sorted(values)
    place = share * (len(ranked) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (place - low)


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Latency, tokens, calls, correctness, wrong serves and routes of some rows."""
    seconds = [row.exchange.seconds for row in rows]
    count = len(rows)
    right = sum(not row.fault for row in rows)
    faults = Counter(row.fault for row in rows if row.fault)
    routes = Counter(row.exchange.route for row in rows)
    low, high = wilson(right, count)
    prompt = sum(row.exchange.prompt_tokens for row in rows)
    completion = sum(row.exchange.completion_tokens for row in rows)
    return {
        "requests": count,
        "mean_seconds": sum(seconds) / count if count else 0.0,
        "median_seconds": percentile(seconds, 0.5),
        "p95_seconds": percentile(seconds, 0.95),
        "p99_seconds": percentile(seconds, 0.99),
        "tokens_in": prompt,
        "tokens_out": completion,
        "tokens": prompt + completion,
        "calls": sum(len(row.exchange.calls) for row in rows),
        "without_call": sum(not row.exchange.calls for row in rows) / count if count else 0.0,
        "correct": right / count if count else 0.0,
        "correct_low": low,
        "correct_high": high,
        "wrong_serves": faults["wrong serve"],
        "faults": dict(sorted(faults.items())),
        "routes": dict(sorted(routes.items())),
    }


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Figures by split and mode: overall, by seed, by family, by perturbation; ratios to bare."""
    asked = [row for row in rows if row.item.split != "warm-up"]
    return {split: _of_split(part) for split, part in _parted(asked, lambda r: r.item.split)}


def _of_split(rows: Sequence[Row]) -> dict[str, Any]:
    modes = {}
    for mode, part in _parted(rows, lambda r: r.exchange.mode):
        modes[mode] = {
            "overall": figures(part),
            "by_seed": {k: figures(p) for k, p in _parted(part, lambda r: str(r.item.seed))},
            "by_family": {k: figures(p) for k, p in _parted(part, lambda r: r.item.family)},
            "by_group": {
                k: {**figures(p), "must_not": p[0].item.must_not}
                for k, p in _parted(part, lambda r: f"{r.item.family}: {r.item.group}")
            },
        }
    bare = modes.get("bare", {}).get("overall")
    for one in modes.values():
        one["ratios_to_bare"] = ratios(bare, one["overall"]) if bare else {}
    return modes


def ratios(bare: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float | None]:
    """How many times lower than bare a latency is, and the portion of tokens and calls saved."""
    times = {
        name: _times(bare[name], other[name])
        for name in ("mean_seconds", "median_seconds", "p95_seconds", "p99_seconds")
    }
    saved = {
        f"{name}_saved": 1 - other[name] / bare[name] if bare[name] else None
        for name in ("tokens", "calls")
    }
    return {**times, **saved}


def _times(bare: float, other: float) -> float | None:
    return bare / other if other else None


def _parted(rows: Sequence[Row], key: Any) -> list[tuple[str, list[Row]]]:
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(key(row), []).append(row)
    return list(parts.items())
