"""The benchmark from end to end: server, workload, play, record, report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepcache._counts import count
from stepcache._types import ModelCall, Reply
from stepcache.backends import OpenAICompatibleBackend
from stepcache.bench._figures import Row
from stepcache.bench._items import Item
from stepcache.bench._log import Exchange, Log
from stepcache.bench._modes import DEFAULT_MODES, MODES, Mode
from stepcache.bench._record import load_record, machine, record_of, rows_of, write_record
from stepcache.bench._report import markdown
from stepcache.bench._run import play, steps
from stepcache.bench._wordings import Wordings, load_wordings
from stepcache.bench._workload import SEEDS, SPLITS, fingerprint, workload
from stepcache.demo import MODELS, LocalModelServer, fetch

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["BenchOptions", "Elsewhere", "ModelAddress", "model_server", "report", "run"]

LOG = "exchanges.jsonl"
RECORD = "results.json"
REPORT = "report.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """Where the model is and how it is asked."""

    base_url: str
    model: str
    api_key: str | None = None
    prefill: bool = False
    constrain: bool = True
    prompt_cache: str = "not known"

    def backend(self, mode: Mode, params: dict[str, Any]) -> OpenAICompatibleBackend:
        """A client for one mode."""
        return OpenAICompatibleBackend(
            self.base_url,
            self.model,
            api_key=self.api_key,
            params=params,
            prefill=self.prefill and mode.prefill,
            constrain=self.constrain and mode.constrain,
            timeout=600.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """An endpoint that the user named, instead of a local server."""

    base_url: str
    model_name: str
    api_key: str | None = None
    prefill: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What the user chose."""

    out: Path
    seeds: tuple[int, ...] = SEEDS
    splits: tuple[str, ...] = SPLITS
    modes: tuple[str, ...] = DEFAULT_MODES
    quick: bool = False
    wordings: Path | None = None
    model: str = "qwen2.5-coder-0.5b"
    elsewhere: Elsewhere | None = None
    max_tokens: int = 200
    threads: int | None = None
    share_calls: bool = True
    """Whether a call that several modes make for one request is made once and counted for each."""
    side_by_side: int = 1
    """Seeds played at the same time: sooner done, and latencies are those of a busy server."""

    @property
    def params(self) -> dict[str, Any]:
        """Sampling: greedy, so that all modes get the same answer to the same question."""
        return {"temperature": 0, "seed": 0, "max_tokens": self.max_tokens}


@contextmanager
def model_server(options: BenchOptions, *, parallel: int = 1) -> Iterator[ModelAddress]:
    """The endpoint that was named, or a local server without a prompt cache.

    Raises:
        WeightsError: The model's weights cannot be had.
        LocalServerError: The local server does not come up.
    """
    if options.elsewhere is not None:
        named = options.elsewhere
        yield ModelAddress(
            base_url=named.base_url,
            model=named.model_name,
            api_key=named.api_key,
            prefill=named.prefill,
        )
        return
    weights = MODELS[options.model]
    with LocalModelServer(
        fetch(weights),
        name=weights.name,
        ctx=2048,
        threads=options.threads,
        parallel=parallel,
        prompt_cache=False,
    ) as server:
        yield ModelAddress(
            base_url=server.base_url, model=weights.name, prefill=True, prompt_cache="off"
        )


def available(modes: Sequence[str]) -> tuple[list[str], str]:
    """The modes that can run here, and a sentence about those that cannot.

    Raises:
        ValueError: No mode of that name.
    """
    unknown = [name for name in modes if name not in MODES]
    if unknown:
        raise ValueError(f"no mode {', '.join(unknown)}: use {', '.join(MODES)}")
    missing = {name: MODES[name].missing for name in modes if MODES[name].missing}
    told = "; ".join(f"{name} (needs {', '.join(what)})" for name, what in missing.items())
    return [name for name in dict.fromkeys(modes) if name not in missing], told


def run(options: BenchOptions, console: Console) -> list[Row]:
    """Run the benchmark, write record and report, and return the judged rows."""
    words = load_wordings(options.wordings)
    modes, left_out = available(options.modes)
    seeds = options.seeds[:1] if options.quick else options.seeds
    items = {seed: workload(seed, options.splits, words, quick=options.quick) for seed in seeds}
    if left_out:
        console.print(f"left out: {left_out}", markup=False)
    _go_straight_to_loopback()
    with model_server(options, parallel=options.side_by_side) as address:
        head = _head(options, words, modes, items, address)
        started = time.time()
        with Log(options.out / LOG, head) as log:
            exchanges = _play(options, items, modes, address, log, console)
    head |= {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(sum(exchange.seconds for exchange in exchanges), 1),
        "machine": machine(),
        "left_out": left_out,
    }
    everything = [item for one in items.values() for item in one]
    write_record(options.out / RECORD, record_of(head, everything, exchanges))
    return report(options.out / RECORD, options.out, console)


def _head(
    options: BenchOptions,
    words: Wordings,
    modes: Sequence[str],
    items: dict[int, list[Item]],
    address: ModelAddress,
) -> dict[str, Any]:
    """What a log belongs to: a run goes on only with the same of all of this."""
    named = options.elsewhere
    digest = sha256("".join(fingerprint(one) for one in items.values()).encode()).hexdigest()
    return {
        "model": address.model,
        "endpoint": named.base_url if named is not None else "a local server on loopback",
        "prompt_cache": address.prompt_cache,
        "server_threads": options.threads if options.elsewhere is None else None,
        "sampling": options.params,
        "seeds": list(items),
        "splits": list(options.splits),
        "modes": list(modes),
        "quick": options.quick,
        "share_calls": options.share_calls,
        "side_by_side": options.side_by_side,
        "wordings": words.source,
        "wordings_digest": words.digest,
        "workload": digest,
    }


def _play(
    options: BenchOptions,
    items: dict[int, list[Item]],
    modes: Sequence[str],
    address: ModelAddress,
    log: Log,
    console: Console,
) -> list[Exchange]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    backends: list[OpenAICompatibleBackend] = []

    def generate(mode: Mode) -> Callable[[ModelCall], Reply]:
        backends.append(address.backend(mode, options.params))
        return backends[-1].generate

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    known_before = len(log.done)
    if known_before:
        console.print(
            f"going on after {count(known_before, 'exchange')} in {log.path}", markup=False
        )
    every = max(1, steps(items, modes) // 20)
    met = 0
    # The rate of the last minutes says more than that of the last second: most answers are cached.
    with Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        speed_estimate_period=300,
    ) as progress:
        task = progress.add_task("", total=steps(items, modes))
        begun = time.monotonic()

        def told(exchange: Exchange, item: Item, known: bool) -> None:
            nonlocal met
            met += 1
            progress.update(task, advance=1, description=f"seed {item.seed}, {item.split}")
            if not console.is_terminal and met % every == 0:
                console.print(_line(met, steps(items, modes), known_before, begun), markup=False)

        try:
            return play(
                items,
                modes,
                generate,
                log,
                salt=f"{address.model} {options.params}",
                share=options.share_calls,
                side_by_side=options.side_by_side,
                told=told,
            )
        finally:
            for backend in backends:
                backend.close()


def _line(done: int, total: int, known: int, begun: float) -> str:
    spent = time.monotonic() - begun
    fresh = done - min(done, known)
    left = f"{spent / fresh * (total - done):.0f} s left" if fresh else "reading the log"
    return f"{done:,} of {count(total, 'exchange')}, {spent:.0f} s, {left}"


def report(file: Path, out: Path, console: Console) -> list[Row]:
    """Make tables and pictures again from a record.

    Raises:
        RecordError: The file is no record of a run.
    """
    from stepcache.bench._plots import draw

    record = load_record(file)
    rows = rows_of(record)
    out.mkdir(parents=True, exist_ok=True)
    (out / REPORT).write_text(markdown(record, rows), encoding="utf-8")
    draw(rows, out)
    console.print(f"report and pictures are in {out}", markup=False)
    return rows


def _go_straight_to_loopback() -> None:
    """Keep the clients' calls to this machine out of any proxy that the environment names."""
    for name in ("no_proxy", "NO_PROXY"):
        known = os.environ.get(name, "")
        if "127.0.0.1" not in known:
            os.environ[name] = f"{known},127.0.0.1,localhost".lstrip(",")
