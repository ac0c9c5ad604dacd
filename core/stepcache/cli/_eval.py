"""``stepcache eval``: how often a cache serves a wrong answer, on files of labelled pairs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from stepcache.cli._common import print_json, progress_bar

if TYPE_CHECKING:
    from stepcache.evaluation import Pair

__all__ = ["HELP", "evaluate_command"]

# One line a paragraph: the help printer keeps line ends.
HELP = (
    "Put each pair's one answer into an empty cache, ask for the other side, and the other way "
    "round.\n\n"
    "PAIRS are JSON Lines files, folders of them, or fow:questions and fow:conversations for what "
    "the fow-cache package ships. Ends with status 1 when more stored answers than --max-wrong "
    "were served to requests that want another one, with status 2 when something cannot be read.\n"
    "\nThe cache is emptied before every look-up: name one that holds nothing you need."
)


def evaluate_command(
    pairs: Annotated[
        list[str], typer.Argument(metavar="PAIRS...", help="Files, folders or fow:SET.")
    ],
    cache: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:ATTRIBUTE",
            help="A StepCacheEngine or a LangChain BaseCache, or what makes one. "
            "Left out: the default engine.",
        ),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Give a LangChain cache the closing text, not the messages."),
    ] = False,
    max_wrong: Annotated[int, typer.Option(min=0, help="Wrong serves still accepted.")] = 0,
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Leave a pair out, e.g. one whose label is disputed."),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write the record to this file; - for standard output, and nothing else there.",
        ),
    ] = None,
) -> None:
    """Evaluate a cache."""
    from stepcache._errors import ConfigurationError
    from stepcache.evaluation import Report, evaluate, load_face

    sys.path.insert(0, "")  # as python -m does, so that a cache beside the caller is found
    left_out = frozenset(skip or ())
    try:
        face = load_face(cache, plain=plain)
        reports: list[tuple[str, Report]] = []
        for source in pairs:
            chosen = [pair for pair in _read(source) if pair.id not in left_out]
            with progress_bar(f"evaluating {source}", len(chosen)) as advance:
                reports.append((source, evaluate(face, chosen, progress=advance)))
    except ConfigurationError as error:
        _usage(str(error))
    aside = json_file is not None and str(json_file) == "-"
    for source, report in reports:
        typer.echo(f"{source}\n{report.render()}\n", err=aside)
    if left_out:
        typer.echo(f"left out: {', '.join(sorted(left_out))}", err=aside)
    wrong = sum(report.wrong for _, report in reports)
    if json_file is not None:
        record = {
            "max_wrong": max_wrong,
            "wrong": wrong,
            "left_out": sorted(left_out),
            "sources": [{"source": source, **report.as_dict()} for source, report in reports],
        }
        if str(json_file) == "-":
            print_json(record)
        else:
            json_file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    raise typer.Exit(0 if wrong <= max_wrong else 1)


def _read(source: str) -> list[Pair]:
    from stepcache.evaluation import read_fow, read_pairs

    kind, _, name = source.partition(":")
    return read_fow(name) if kind == "fow" else read_pairs(source)


def _usage(message: str) -> NoReturn:
    typer.echo(f"Error: {message}. Try stepcache eval --help.", err=True)
    raise typer.Exit(2)
