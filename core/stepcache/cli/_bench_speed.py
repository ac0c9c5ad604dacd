"""``stepcache bench hotpath`` and ``scale``: the cache alone, without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from stepcache._counts import count
from stepcache.cli._common import print_json

__all__ = ["add_speed_commands"]

JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the figures to this file; - for stdout."),
]
TextFile = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the table to this file.")
]


def add_speed_commands(bench: typer.Typer) -> None:
    """Give the group of benchmark commands these two."""
    bench.command("hotpath")(_hotpath)
    bench.command("scale")(_scale)


def _hotpath(
    paths: Annotated[
        str, typer.Option(metavar="NAMES", help="Paths to measure, separated by commas, or all.")
    ] = "",
    entries: Annotated[
        int, typer.Option(min=10, help="Entries in a namespace, and namespaces.")
    ] = 10_000,
    json_file: JsonFile = None,
    markdown: TextFile = None,
) -> None:
    """Time every path of the cache in turn with the least it could cost, in one process.

    Without --paths it takes all but reuse-neural, which loads torch. Ends with status 0 whatever
    the figures: a machine that others share cannot promise any.
    """
    from stepcache.bench._hotpath import PATHS, hotpath
    from stepcache.bench._timing import table

    chosen = tuple(name.strip() for name in paths.split(",") if name.strip())
    chosen = chosen or tuple(name for name in PATHS if name != "reuse-neural")
    if unknown := [name for name in chosen if name not in PATHS]:
        typer.echo(f"Error: no path {unknown[0]!r}: use {', '.join(PATHS)}", err=True)
        raise typer.Exit(2)
    results = []
    for result, _ in hotpath(chosen, entries):
        typer.echo(f"{result.name}: {result.figure:g} of {result.limit:g} {result.unit}", err=True)
        results.append(result)
    _told("Hot paths", table(results), [r.as_dict() for r in results], json_file, markdown)


def _scale(
    sizes: Annotated[
        str, typer.Option(metavar="N,N", help="Entries in one namespace, one run each.")
    ] = "1000,10000,100000",
    prompts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Vary the prompts of this folder's .jsonl files."),
    ] = None,
    json_file: JsonFile = None,
    markdown: TextFile = None,
) -> None:
    """Fill one namespace with more and more entries: memory, latency, recall on hits, upkeep."""
    from stepcache.bench._scale import scale, scale_table

    counts = [int(part) for part in sizes.split(",") if part.strip().isdigit()]
    if not counts or min(counts) < 100:
        typer.echo(f"Error: --sizes is {sizes!r}: use whole numbers from 100 on", err=True)
        raise typer.Exit(2)
    rows: list[dict[str, Any]] = []
    for row in scale(counts, prompts):
        typer.echo(json.dumps(row), err=True)
        rows.append(row)
    _told("Scale", scale_table(rows), rows, json_file, markdown)


def _told(
    title: str, text: str, rows: list[dict[str, Any]], json_file: Path | None, markdown: Path | None
) -> None:
    from stepcache.bench._record import machine

    where = machine()
    aside = json_file is not None and str(json_file) == "-"
    typer.echo(text, err=aside)
    record = {"machine": where, "rows": rows}
    if aside:
        print_json(record)
    elif json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        versions = ", ".join(f"{name} {found}" for name, found in where["versions"].items())
        about = (
            f"{where['processor']}, {count(where['cores'], 'core')}, {where['memory_gib']} GiB, "
            f"Python {where['python']}, {where['system']}; {versions}."
        )
        markdown.write_text(f"# {title}\n\n{about}\n\n{text}\n", encoding="utf-8")
