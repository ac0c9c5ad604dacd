"""``stepcache report``: one HTML page about what a cache did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from stepcache._counts import count
from stepcache.cli._common import busy

__all__ = ["HELP", "report_command"]

# One line a paragraph: the help printer keeps line ends.
HELP = (
    "Make one self-contained HTML page from a store, a trace log or a benchmark's record.\n\n"
    "The page shows savings over time, routes, reasons for misses, the slowest verifications, a "
    "table to search, and every answer step by step beside the earlier one it was made from. It "
    "asks the network for nothing.\n\n"
    "SOURCE is a SQLite file, sqlite:///path, postgresql://user@host/database, a trace log (JSON "
    "Lines), or results.json of stepcache bench paper. Texts of a store are left out unless "
    "--show-text asks for them; a trace log shows what was recorded."
)


def report_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            envvar="STEPCACHE_STORE",
            help="A store, a trace log or a results.json.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")
    ] = Path("stepcache-report.html"),
    texts: Annotated[
        bool | None,
        typer.Option("--show-text/--hide-text", help="Show prompts and answers, or their lengths."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="Rows on the page, the newest.")
    ] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was written as JSON.")] = False,
) -> None:
    """Make the page."""
    from stepcache.report import SourceError, read_source, write_page

    try:
        with busy("reading"):
            report = read_source(source, texts=texts, limit=limit)
        size = write_page(report, out)
    except SourceError as error:
        _usage(str(error))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("stepcache"):
            raise
        _fail(f'this source needs {error.name}: run pip install "stepcache[{_extra(error)}]"')
    except OSError as error:
        _fail(f"{out} cannot be written: {error.strerror or error}")
    told = {
        "page": str(out),
        "bytes": size,
        "source": report.kind,
        "rows": len(report.rows),
        "left_out": report.left_out,
        "texts": report.texts,
    }
    if as_json:
        typer.echo(json.dumps(told))
        return
    rows = count(len(report.rows), "answer" if report.kind == "store" else "request")
    typer.echo(f"{out}: {rows} of a {report.kind}, {size / 1e6:.1f} MB")
    if report.texts:
        typer.echo("It holds prompts and answers in plain text, readable by you only.")


def _extra(error: ModuleNotFoundError) -> str:
    return "postgres" if error.name in ("psycopg", "psycopg_pool", "pgvector") else "bench"


def _usage(message: str) -> NoReturn:
    typer.echo(f"Error: {message}. Try stepcache report --help.", err=True)
    raise typer.Exit(2)


def _fail(message: str) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(1)
