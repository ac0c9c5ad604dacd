"""``stepcache compact``, ``export`` and ``import``: the upkeep of a SQLite store."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from stepcache._counts import count
from stepcache.cli._common import (
    VARIABLE,
    AsJson,
    busy,
    guarded,
    open_named,
    print_json,
    tracked,
)

if TYPE_CHECKING:
    from stepcache.stores import SQLiteStore

__all__ = ["add_store_commands"]

StoreFile = Annotated[
    str,
    typer.Argument(metavar="STORE", envvar=VARIABLE, help="The SQLite file, or sqlite:///path."),
]


def add_store_commands(app: typer.Typer) -> None:
    """Give the application these three."""
    app.command("compact")(_compact)
    app.command("export")(_export)
    app.command("import")(_import)


def _compact(store: StoreFile, as_json: AsJson = False) -> None:
    """Remove expired and invalidated entries and give the file's free space back."""
    with _opened("compact", store) as opened:
        with busy("compacting"):
            given, kept = opened.compact(), opened.count()
        if as_json:
            print_json({"bytes_given_back": given, "entries": kept})
        else:
            typer.echo(f"{count(given, 'byte')} given back, {count(kept, 'entry', 'entries')} kept")


def _export(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The SQLite file, or its URL.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines to write, or -.")],
    trust_unsealed: Annotated[
        bool,
        typer.Option("--trust-unsealed", help="Records from before there were seals too."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write every live entry with its vector as JSON Lines.

    They hold prompts in plain text, and no seal: whoever imports the file vouches for it.
    """
    from stepcache.stores._transfer import write_lines

    with _opened("export", store) as opened:
        rows = tracked(opened.rows(trust_unsealed=trust_unsealed), "writing", opened.count())
        if str(file) == "-":
            written = write_lines(rows, sys.stdout.buffer)
        else:
            # As private as the store itself.
            flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
            with os.fdopen(os.open(file, flags, 0o600), "wb") as lines:
                written = write_lines(rows, lines)
        if as_json and str(file) != "-":
            print_json({"entries": written})
        else:
            typer.echo(f"{count(written, 'entry', 'entries')} written", err=True)


def _import(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The SQLite file, or its URL, or a new one.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines to read, or -.")],
    as_json: AsJson = False,
) -> None:
    """Keep every entry of a file written by export; ages count from now, deadlines stay."""
    with _opened("import", store, new=True) as opened:
        if str(file) == "-":
            kept, skipped = _keep(opened, sys.stdin.buffer)
        else:
            with file.open("rb") as lines:
                kept, skipped = _keep(opened, lines)
    if as_json:
        print_json({"entries": kept, "skipped": skipped})
    else:
        told = f"{count(kept, 'entry', 'entries')} kept, {count(skipped, 'line')} skipped"
        typer.echo(told, err=True)
    raise typer.Exit(1 if skipped and not kept else 0)


def _keep(store: SQLiteStore, lines: IO[bytes]) -> tuple[int, int]:
    from stepcache import StoreError
    from stepcache.stores._transfer import read_lines

    kept = skipped = 0
    for row in tracked(read_lines(lines), "keeping"):
        try:
            if row is None:
                skipped += 1
                continue
            store.put(*row)
            kept += 1
        except StoreError as error:
            if "failed" in str(error):  # the file, not the entry
                raise
            skipped += 1
    return kept, skipped


@contextlib.contextmanager
def _opened(command: str, name: str, *, new: bool = False) -> Iterator[SQLiteStore]:
    """The SQLite store of a name; errors that a person can act on end the command in one line."""
    from stepcache import ConfigurationError
    from stepcache.stores import SQLiteStore, open_store

    with guarded(command):
        store = open_store(name) if new else open_named(name)
        try:
            if not isinstance(store, SQLiteStore):
                kind = type(store).__name__
                raise ConfigurationError(f"it is a {kind}: {command} is for SQLite files")
            yield store
        finally:
            store.close()
