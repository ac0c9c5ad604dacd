"""The report's pictures: latency, routes, tokens, correctness. Drawn without a screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from stepcache._counts import count
from stepcache.bench._figures import Row, summary
from stepcache.bench._modes import MODES

__all__ = ["draw"]

_ROUTES = {
    "exact": "#1b7837",
    "reuse": "#5aae61",
    "adapt": "#a6dba0",
    "hit": "#5aae61",
    "patch": "#4393c3",
    "skip": "#fdb863",
    "miss": "#e08214",
    "model": "#e08214",
    "fallback": "#9970ab",
    "bypass": "#bbbbbb",
    "error": "#b2182b",
}
_DPI = 120

Paint: TypeAlias = Callable[[Any, Any], None]


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write the pictures of every split; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for split, modes in summary(rows).items():
        part = [row for row in rows if row.item.split == split]
        pictures: tuple[tuple[str, float, Paint, Any], ...] = (
            ("latency", 4.5, _latency, part),
            ("routes", 5.5, _routes, modes),
            ("tokens", 4.0, _tokens, modes),
            ("correctness", 4.0, _correctness, modes),
        )
        for name, height, paint, what in pictures:
            path = folder / f"{split}-{name}.png"
            _save(path, height, paint, what)
            paths.append(path)
    return paths


def _save(path: Path, height: float, paint: Paint, what: Any) -> None:
    # By name: its types are not complete enough for a strict checker.
    figure: Any = import_module("matplotlib.figure").Figure((8.0, height), layout="constrained")
    import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    paint(figure.add_subplot(), what)
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})


def _title(mode: str) -> str:
    return MODES[mode].title if mode in MODES else mode


def _latency(axes: Any, rows: Sequence[Row]) -> None:
    by_mode: dict[str, list[float]] = {}
    for row in rows:
        by_mode.setdefault(row.exchange.mode, []).append(max(row.exchange.seconds, 1e-6))
    for mode, seconds in by_mode.items():
        ranked = sorted(seconds)
        shares = [(place + 1) / len(ranked) for place in range(len(ranked))]
        axes.step(ranked, shares, where="post", label=_title(mode))
    axes.set_xscale("log")
    axes.set_xlabel("seconds a request (log scale)")
    axes.set_ylabel("share of requests")
    axes.set_ylim(0, 1.01)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)


def _routes(axes: Any, modes: Mapping[str, Any]) -> None:
    shipped = modes.get("stepcache") or next(iter(modes.values()))
    groups = sorted(shipped["by_group"].items(), reverse=True)
    names = [name for name in _ROUTES if any(name in f["routes"] for _, f in groups)]
    left = [0.0] * len(groups)
    for name in names:
        shares = [f["routes"].get(name, 0) / f["requests"] for _, f in groups]
        axes.barh([g for g, _ in groups], shares, left=left, color=_ROUTES[name], label=name)
        left = [a + b for a, b in zip(left, shares)]
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of requests, StepCache as shipped")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.1), ncols=len(names) or 1, fontsize=8)


def _tokens(axes: Any, modes: Mapping[str, Any]) -> None:
    titles = [_title(mode) for mode in modes]
    prompt = [one["overall"]["tokens_in"] for one in modes.values()]
    completion = [one["overall"]["tokens_out"] for one in modes.values()]
    axes.barh(titles, prompt, color="#4393c3", label="in")
    axes.barh(titles, completion, left=prompt, color="#fdb863", label="out")
    axes.invert_yaxis()
    axes.set_xlabel("tokens the model read and wrote")
    axes.legend(fontsize=8)


def _correctness(axes: Any, modes: Mapping[str, Any]) -> None:
    titles = [_title(mode) for mode in modes]
    told = [one["overall"] for one in modes.values()]
    shares = [f["correct"] for f in told]
    below = [max(0.0, f["correct"] - f["correct_low"]) for f in told]
    above = [max(0.0, f["correct_high"] - f["correct"]) for f in told]
    axes.barh(titles, shares, xerr=[below, above], color="#5aae61", ecolor="#333333", capsize=3)
    for place, f in enumerate(told):
        if f["wrong_serves"]:
            axes.text(0.02, place, count(f["wrong_serves"], "wrong serve"), va="center", fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("correct, with Wilson's 95 % interval")
