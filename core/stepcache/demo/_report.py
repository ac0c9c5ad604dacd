"""What the demonstration shows: a line for each request, and the summary against the bare model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median, quantiles
from typing import TYPE_CHECKING, Any

from stepcache._counts import count
from stepcache.demo._run import Answer, Exchange

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

__all__ = ["Figures", "Summary", "header", "row", "summarise", "summary_table"]

_ROOMY = 130
"""Columns of a terminal that has room for the reason at the end of a line."""
_WIDTHS = (3, 9, 31, 8, 9, 18, 13, 8)
_NARROW = (2, 27, 8, 16, 13, 7)
_COLOURS = {
    "exact": "green",
    "reuse": "green",
    "adapt": "green",
    "patch": "cyan",
    "skip": "yellow",
    "miss": "yellow",
    "fallback": "magenta",
    "bypass": "yellow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One chain's figures over the whole script."""

    mean_seconds: float
    median_seconds: float
    p95_seconds: float
    total_seconds: float
    prompt_tokens: int
    completion_tokens: int
    tokens: int
    correct: int
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Both chains' figures and the verdict."""

    requests: int
    bare: Figures
    cached: Figures
    routes: dict[str, int]
    avoided_tokens: int
    passed: bool
    verdict: str
    """One sentence."""


def summarise(exchanges: Sequence[Exchange]) -> Summary:
    """The figures of a play, and whether it showed what it should.

    It did when every answer served by StepCache was correct and its mean latency and its tokens
    are below the bare model's.
    """
    bare = _figures([exchange.bare for exchange in exchanges])
    cached = _figures([exchange.cached for exchange in exchanges])
    wrong = [
        f"{exchange.number} ({_route(exchange.cached)})"
        for exchange in exchanges
        if not exchange.cached.correct
    ]
    faults = []
    if not exchanges:
        faults.append("nothing was asked")
    if wrong:
        faults.append(f"the answers to {', '.join(wrong)} are not correct")
    if exchanges and cached.mean_seconds >= bare.mean_seconds:
        faults.append("mean latency is not below the bare model's")
    if exchanges and cached.tokens >= bare.tokens:
        faults.append("tokens are not below the bare model's")
    return Summary(
        requests=len(exchanges),
        bare=bare,
        cached=cached,
        routes=dict(Counter(_route(exchange.cached) for exchange in exchanges)),
        avoided_tokens=sum(_avoided(exchange.cached) for exchange in exchanges),
        passed=not faults,
        verdict=_sentence(faults) if faults else _success(bare, cached),
    )


def _sentence(faults: Sequence[str]) -> str:
    return f"With StepCache {' and '.join(faults)}."


def _success(bare: Figures, cached: Figures) -> str:
    faster = bare.mean_seconds / cached.mean_seconds if cached.mean_seconds else float("inf")
    return (
        f"Every answer served by StepCache is correct, {faster:.1f} times faster on average and "
        f"with {1 - cached.tokens / bare.tokens:.0%} fewer tokens."
    )


def _figures(answers: Sequence[Answer]) -> Figures:
    seconds = [answer.seconds for answer in answers] or [0.0]
    prompt = sum(answer.prompt_tokens for answer in answers)
    completion = sum(answer.completion_tokens for answer in answers)
    return Figures(
        mean_seconds=mean(seconds),
        median_seconds=median(seconds),
        p95_seconds=_p95(seconds),
        total_seconds=sum(seconds) if answers else 0.0,
        prompt_tokens=prompt,
        completion_tokens=completion,
        tokens=prompt + completion,
        correct=sum(answer.correct for answer in answers),
        errors=sum(answer.error is not None for answer in answers),
    )


def _p95(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=20, method="inclusive")[18] if len(seconds) > 1 else seconds[0]


def _route(answer: Answer) -> str:
    if answer.stepcache is None:
        return "error" if answer.error else "unknown"
    return str(answer.stepcache["route"])


def _avoided(answer: Answer) -> int:
    avoided = (answer.stepcache or {}).get("avoided", {})
    return int(avoided.get("prompt_tokens", 0)) + int(avoided.get("completion_tokens", 0))


def header() -> RenderableType:
    """The heads of the columns that :func:`row` fills."""
    names = (
        "#",
        "family",
        "request",
        "route",
        "reused",
        "bare -> here",
        "tokens, saved",
        "correct",
    )
    return _Line((*names, "why"), style="bold", heads=True)


def row(exchange: Exchange) -> RenderableType:
    """One request as one line, or as two where the terminal is narrow."""
    from rich.text import Text

    told = exchange.cached.stepcache or {}
    route = _route(exchange.cached)
    reused = f"{told.get('reused_steps', 0)}"
    if told.get("patched_steps"):
        reused += f" +{told['patched_steps']} new"
    return _Line(
        (
            str(exchange.number),
            exchange.item.family,
            exchange.item.kind,
            Text(route, style=_COLOURS.get(route, "red")),
            reused,
            f"{exchange.bare.seconds:.2f} -> {exchange.cached.seconds:.2f} s",
            f"{exchange.cached.tokens}, {_avoided(exchange.cached)}",
            Text("yes", style="green") if exchange.cached.correct else Text("NO", style="bold red"),
            str(told.get("reason") or exchange.cached.error or ""),
        )
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """A request's cells: side by side, or the reason below where that leaves no room for it."""

    cells: Sequence[Any]
    style: str = ""
    heads: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= _ROOMY:
            yield self._grid(self.cells, (*_WIDTHS, None))
            return
        number, family, kind, route, _reused, seconds, tokens, correct, why = self.cells
        what = kind if self.heads else f"{family}, {kind}"
        yield self._grid((number, what, route, seconds, tokens, correct), _NARROW)
        if why and not self.heads:
            yield self._grid(("", why), (_NARROW[0], None), "dim")

    def _grid(self, cells: Sequence[Any], widths: Sequence[int | None], style: str = "") -> Table:
        from rich.table import Table
        from rich.text import Text

        line = Table.grid(padding=(0, 1), expand=None in widths)
        for width in widths:
            ratio = None if width else 1
            line.add_column(width=width, ratio=ratio, no_wrap=True, overflow="ellipsis")
        # Text, never markup: prompts and answers may hold square brackets.
        texts = (Text(c) if isinstance(c, str) else c for c in cells)
        line.add_row(*texts, style=style or self.style)
        return line


def summary_table(summary: Summary) -> RenderableType:
    """The summary against the bare model."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    bare, cached = summary.bare, summary.cached
    table = Table(
        box=SIMPLE_HEAD,
        title=f"{count(summary.requests, 'request')}, both measured in this run",
        caption="correct: an equation by its solution, JSON by its keys (facts are the model's "
        "own), text by not being empty",
    )
    table.add_column("")
    for name in ("bare model", "with StepCache"):
        table.add_column(name, justify="right")
    for name, left, right in (
        ("mean latency, s", bare.mean_seconds, cached.mean_seconds),
        ("median latency, s", bare.median_seconds, cached.median_seconds),
        ("p95 latency, s", bare.p95_seconds, cached.p95_seconds),
        ("total, s", bare.total_seconds, cached.total_seconds),
    ):
        table.add_row(name, f"{left:.2f}", f"{right:.2f}")
    table.add_row("tokens", f"{bare.tokens:,}", f"{cached.tokens:,}")
    table.add_row(
        "prompt + completion",
        f"{bare.prompt_tokens:,} + {bare.completion_tokens:,}",
        f"{cached.prompt_tokens:,} + {cached.completion_tokens:,}",
    )
    total = summary.requests
    table.add_row("correct", f"{bare.correct} of {total}", f"{cached.correct} of {total}")
    routes = ", ".join(f"{count} {route}" for route, count in sorted(summary.routes.items()))
    table.add_row("routes", "", routes)
    return table
