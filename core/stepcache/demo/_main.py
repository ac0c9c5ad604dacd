"""The demonstration from end to end: model, server, chains, play, report."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepcache.demo import _report as report
from stepcache.demo._run import Endpoint, Exchange, open_chains, play, warm_up
from stepcache.demo._script import SCRIPT, Item
from stepcache.demo._server import LocalModelServer
from stepcache.demo._weights import MODELS, fetch

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

__all__ = ["Options", "run"]

_NEXT = "Next, a prompt of your own and why it misses: docs/getting-started.md, from step 2."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user chose."""

    model: str = "qwen2.5-coder-0.5b"
    """Name of a local model; see :data:`stepcache.demo._weights.MODELS`."""
    base_url: str | None = None
    """Another endpoint to use instead of a local model."""
    model_name: str | None = None
    api_key: str | None = None
    prefill: bool = False
    """Whether that endpoint goes on from a closing assistant message."""
    seed: int = 0
    json_file: Path | None = None


def run(options: Options, console: Console, items: Sequence[Item] = SCRIPT) -> bool:
    """Play the demonstration and print it; True when it showed what it should.

    Raises:
        WeightsError: The model's weights cannot be had.
        LocalServerError: The local server does not come up.
        Exception: Whatever the endpoint answers to the first call.
    """
    started = time.time()
    with _endpoint(options, console) as endpoint, open_chains(endpoint) as (bare, cached):
        with console.status("asking the model once, off the record"):
            warm_up(bare)
        exchanges = _play(bare, cached, items, console)
    summary = report.summarise(exchanges)
    console.print(report.summary_table(summary))
    console.print(summary.verdict, style="green" if summary.passed else "bold red")
    console.print(_NEXT, style="dim", soft_wrap=True)
    if options.json_file is not None:
        record = _record(endpoint, started, exchanges, summary)
        _write(options.json_file, record)
        if str(options.json_file) != "-":
            console.print(f"The raw record is in {options.json_file}", markup=False)
    return summary.passed


@contextlib.contextmanager
def _endpoint(options: Options, console: Console) -> Iterator[Endpoint]:
    if options.base_url is not None:
        yield Endpoint(
            base_url=options.base_url,
            model=options.model_name or "default",
            api_key=options.api_key or "none",
            seed=options.seed,
            prefill=options.prefill,
        )
        return
    weights = MODELS[options.model]
    console.print(f"Model: {weights.title} ({weights.licence})", markup=False)
    path = _fetch(options.model, console)
    server = LocalModelServer(path, name=weights.name, seed=options.seed)
    with contextlib.ExitStack() as stack:
        with console.status("starting the local server"):
            stack.enter_context(server)
        console.print(f"Serving it at {server.base_url}", markup=False)
        yield Endpoint(
            base_url=server.base_url,
            model=weights.name,
            seed=options.seed,
            prefill=True,
            loopback=True,
        )


def _fetch(model: str, console: Console) -> Path:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with _progress(console, *columns) as progress:
        task = progress.add_task("looking for the weights", total=MODELS[model].size)
        return fetch(
            MODELS[model],
            progress=lambda what, done, total: progress.update(
                task, description=what, completed=done, total=total
            ),
        )


def _play(bare: Any, cached: Any, items: Sequence[Item], console: Console) -> list[Exchange]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    text = TextColumn("{task.description}", markup=False)
    with _progress(console, *columns, text) as progress:
        task = progress.add_task("", total=len(items))
        progress.console.print(report.header())

        def before(_number: int, item: Item, chain: str) -> None:
            who = "bare model" if chain == "bare" else "StepCache"
            progress.update(task, description=f"{who}: {item.prompt}")

        def after(exchange: Exchange) -> None:
            progress.console.print(report.row(exchange))
            progress.advance(task)

        return play(bare, cached, items, before=before, after=after)


def _progress(console: Console, *columns: ProgressColumn) -> Progress:
    """A display that moves on a terminal and leaves no trace in a file."""
    from rich.progress import Progress

    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _record(
    endpoint: Endpoint, started: float, exchanges: Sequence[Exchange], summary: report.Summary
) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "stepcache": version("stepcache"),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 3),
        "endpoint": {
            "base_url": endpoint.base_url,
            "model": endpoint.model,
            "temperature": 0,
            "seed": endpoint.seed,
            "max_tokens": endpoint.max_tokens,
            "prefill": endpoint.prefill,
        },
        "requests": [exchange.as_dict() for exchange in exchanges],
        "summary": asdict(summary),
    }


def _write(path: Path, record: dict[str, Any]) -> None:
    text = json.dumps(record, indent=2, ensure_ascii=True) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
