"""``stepcache bench``: the benchmark's commands. Each imports what it needs when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from stepcache.cli._common import AsJson, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from stepcache.bench._figures import Row
    from stepcache.bench._main import Elsewhere

__all__ = ["bench"]

bench = typer.Typer(
    help="Measure StepCache beside the bare model and other caches, on a real model.",
    no_args_is_help=True,
    add_completion=False,
)

_WIDTH_WITHOUT_TERMINAL = 160
_MODES = "bare,langchain,gptcache,stepcache-paper,stepcache"

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for log and report.")]
Seeds = Annotated[str, typer.Option(metavar="N,N", help="Seeds of the workload.")]
Splits = Annotated[str, typer.Option(metavar="NAMES", help="paper, extended, or both.")]
Quick = Annotated[bool, typer.Option("--quick", help="24 requests of the first seed.")]
WordingsFile = Annotated[
    Path | None,
    typer.Option("--wordings", metavar="FILE", help="Paraphrases of your own, as JSON."),
]
LocalName = Annotated[str, typer.Option(metavar="NAME", help="Local model to fetch and to serve.")]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Use this OpenAI-compatible endpoint instead.")
]
ModelName = Annotated[
    str | None, typer.Option(metavar="NAME", help="The model's name at that endpoint.")
]
ApiKeyEnv = Annotated[
    str | None, typer.Option(metavar="VAR", help="Environment variable that holds its API key.")
]
Prefill = Annotated[
    bool, typer.Option("--prefill", help="That endpoint continues an assistant message.")
]
MaxTokens = Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")]
EachCall = Annotated[
    bool,
    typer.Option(
        "--ask-every-time",
        help="Make a call again that another mode made for the same request, instead of counting "
        "its measured time.",
    ),
]
SideBySide = Annotated[
    int, typer.Option(min=1, help="Seeds played at the same time, on a server that is then busy.")
]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of the local server.")]


@bench.command()
def paper(
    out: Out = Path("benchmarks/out/paper"),
    seeds: Seeds = "42,43,44",
    splits: Splits = "paper,extended",
    modes: Annotated[str, typer.Option(metavar="NAMES", help="What to measure.")] = _MODES,
    quick: Quick = False,
    wordings: WordingsFile = None,
    model: LocalName = "qwen2.5-coder-0.5b",
    base_url: BaseUrl = None,
    model_name: ModelName = None,
    api_key_env: ApiKeyEnv = None,
    prefill: Prefill = False,
    max_tokens: MaxTokens = 200,
    threads: Threads = None,
    ask_every_time: EachCall = False,
    side_by_side: SideBySide = 1,
    as_json: AsJson = False,
) -> None:
    """The paper's micro-benchmark and more, every mode in one run.

    A run that was stopped goes on when it is started again with the same arguments. Ends with
    status 1 when StepCache served a wrong answer.
    """

    def go(console: Console) -> bool:
        from stepcache.bench._main import BenchOptions, run

        options = BenchOptions(
            out=out,
            seeds=_numbers(seeds, "--seeds"),
            splits=_names(splits),
            modes=_names(modes),
            quick=quick,
            wordings=wordings,
            model=_local(model),
            max_tokens=max_tokens,
            threads=threads,
            share_calls=not ask_every_time,
            side_by_side=side_by_side,
            elsewhere=_elsewhere(base_url, model_name, api_key_env, prefill=prefill),
        )
        return _shown(run(options, console), console, as_json=as_json)

    _guarded(go, aside=as_json)


@bench.command()
def ablate(
    out: Out = Path("benchmarks/out/ablate"),
    seeds: Seeds = "42",
    splits: Splits = "paper",
    without: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Some of no-adapt, no-canonical, neural, candidates-1, candidates-4, no-prefill, "
            "no-constrain, no-fallback, no-patch; the first eight when not given.",
        ),
    ] = "",
    quick: Quick = False,
    wordings: WordingsFile = None,
    model: LocalName = "qwen2.5-coder-0.5b",
    base_url: BaseUrl = None,
    model_name: ModelName = None,
    api_key_env: ApiKeyEnv = None,
    prefill: Prefill = False,
    max_tokens: MaxTokens = 200,
    threads: Threads = None,
    ask_every_time: EachCall = False,
    side_by_side: SideBySide = 1,
    as_json: AsJson = False,
) -> None:
    """What each part of StepCache is worth: the workload again with one part off at a time."""

    def go(console: Console) -> bool:
        from stepcache.bench._main import BenchOptions, run
        from stepcache.bench._modes import ABLATIONS

        chosen = tuple(f"stepcache-{name}" for name in _names(without)) or ABLATIONS
        options = BenchOptions(
            out=out,
            seeds=_numbers(seeds, "--seeds"),
            splits=_names(splits),
            modes=tuple(dict.fromkeys(("bare", "stepcache", *chosen))),
            quick=quick,
            wordings=wordings,
            model=_local(model),
            max_tokens=max_tokens,
            threads=threads,
            share_calls=not ask_every_time,
            side_by_side=side_by_side,
            elsewhere=_elsewhere(base_url, model_name, api_key_env, prefill=prefill),
        )
        return _shown(run(options, console), console, as_json=as_json)

    _guarded(go, aside=as_json)


@bench.command()
def load(
    out: Out = Path("benchmarks/out/load"),
    users: Annotated[str, typer.Option(metavar="N,N", help="Levels of load.")] = "1,4,16,64,256",
    seconds: Annotated[float, typer.Option(min=1, help="Of arrivals at each level.")] = 20.0,
    drain: Annotated[float, typer.Option(min=0, help="Seconds to finish after that.")] = 10.0,
    rate: Annotated[float, typer.Option(min=0.001, help="Requests a second of one user.")] = 0.2,
    shape: Annotated[
        float, typer.Option(min=0.01, help="Of the gamma gaps: 1 is Poisson, less is burstier.")
    ] = 0.3,
    zipf: Annotated[float, typer.Option(min=0, help="Exponent of the choice of requests.")] = 1.1,
    templates: Annotated[int, typer.Option(min=1, max=222, help="Different requests.")] = 100,
    modes: Annotated[str, typer.Option(metavar="NAMES", help="bare, stepcache.")] = (
        "bare,stepcache"
    ),
    parallel: Annotated[int, typer.Option(min=1, help="Requests the server decodes at once.")] = 4,
    seed: Annotated[int, typer.Option(help="Of the arrivals and the workload.")] = 42,
    model: LocalName = "qwen2.5-coder-0.5b",
    base_url: BaseUrl = None,
    model_name: ModelName = None,
    api_key_env: ApiKeyEnv = None,
    prefill: Prefill = False,
    max_tokens: MaxTokens = 200,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Bursts of requests from 1 to 256 users, through the asynchronous engine; bounded in time."""

    def go(console: Console) -> bool:
        from stepcache.bench._load import MODES, LoadOptions, run_load
        from stepcache.bench._main import BenchOptions

        if not set(_names(modes)) <= set(MODES):
            _usage(f"--modes may name {', '.join(MODES)}")
        options = LoadOptions(
            users=_numbers(users, "--users"),
            seconds=seconds,
            drain=drain,
            rate=rate,
            shape=shape,
            zipf=zipf,
            templates=templates,
            seed=seed,
            modes=_names(modes),
        )
        about = BenchOptions(
            out=out,
            model=_local(model),
            max_tokens=max_tokens,
            threads=threads,
            elsewhere=_elsewhere(base_url, model_name, api_key_env, prefill=prefill),
        )
        levels = run_load(options, about, console, parallel=parallel)
        if as_json:
            print_json(levels)
        return not any(one["served_and_wrong"] for one in levels if one["mode"] != "bare")

    _guarded(go, aside=as_json)


@bench.command()
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A results.json.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder; the file's own if not given."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make tables and pictures again from a record; nothing is measured."""

    def go(console: Console) -> bool:
        from stepcache.bench._main import report as again

        again(file, out or file.parent, console)
        if as_json:
            from stepcache.bench import load_record, rows_of, summary

            rows = rows_of(load_record(file))
            print_json(summary([row for row in rows if row.item.split != "warm-up"]))
        return True

    _guarded(go, aside=as_json)


def _shown(rows: list[Row], console: Console, *, as_json: bool) -> bool:
    """Print what matters most; False when StepCache served a wrong answer."""
    from stepcache.bench._figures import summary

    asked = [row for row in rows if row.item.split != "warm-up"]
    figures = summary(asked)
    if as_json:
        print_json(figures)
    for split, modes in figures.items():
        for name, one in modes.items():
            f = one["overall"]
            console.print(
                f"{split:9} {name:24} mean {f['mean_seconds']:8.3f} s  "
                f"median {f['median_seconds'] * 1000:9.2f} ms  p95 {f['p95_seconds']:8.3f} s  "
                f"tokens {f['tokens']:8,}  calls {f['calls']:5}  correct {f['correct']:6.1%}  "
                f"wrong serves {f['wrong_serves']}",
                markup=False,
                highlight=False,
            )
    bad = [r for r in asked if r.exchange.mode == "stepcache" and r.fault == "wrong serve"]
    return not bad


def _elsewhere(
    base_url: str | None, model_name: str | None, api_key_env: str | None, *, prefill: bool
) -> Elsewhere | None:
    if (base_url is None) != (model_name is None):
        _usage("--base-url and --model-name go together")
    if base_url is None and (api_key_env is not None or prefill):
        _usage("--api-key-env and --prefill are about the endpoint that --base-url names")
    api_key = os.environ.get(api_key_env) if api_key_env is not None else None
    if api_key_env is not None and not api_key:
        _usage(f"--api-key-env names {api_key_env}, which is not set")
    if base_url is None or model_name is None:
        return None
    from stepcache.bench._main import Elsewhere

    return Elsewhere(base_url=base_url, model_name=model_name, api_key=api_key, prefill=prefill)


def _local(name: str) -> str:
    from stepcache.demo._weights import MODELS

    if name not in MODELS:
        _usage(f"--model is {name!r}: use one of {', '.join(sorted(MODELS))}")
    return name


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str, option: str) -> tuple[int, ...]:
    try:
        found = tuple(int(name) for name in _names(text))
    except ValueError:
        found = ()
    if not found or min(found) < 0:
        _usage(f"{option} is {text!r}: use whole numbers, separated by commas")
    return found


def _guarded(go: Callable[[Console], bool], *, aside: bool = False) -> None:
    """Run a command; errors that a person can act on end it in one line.

    Args:
        aside: Tell what is for people on standard error.
    """
    try:
        from rich.console import Console

        width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
        passed = go(Console(width=width, stderr=aside))
    except typer.Exit:
        raise
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("stepcache"):
            raise
        _fail(f'the benchmark needs {error.name}: run pip install "stepcache[bench]"')
    except KeyboardInterrupt:
        typer.echo("Stopped; the same command goes on from here.", err=True)
        raise typer.Exit(130) from None
    except Exception as error:  # noqa: BLE001 - a person reads this, and no traceback would help
        _fail(f"{type(error).__name__}: {error}"[:1000])
    raise typer.Exit(0 if passed else 1)


def _usage(message: str) -> NoReturn:
    typer.echo(f"Error: {message}. Try stepcache bench --help.", err=True)
    raise typer.Exit(2)


def _fail(message: str) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(1)
