"""``stepcache compact``, ``export`` and ``import``: the upkeep of a store's file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from stepcache.stores import SQLiteStore

__all__ = ["add_store_commands"]

StoreFile = Annotated[Path, typer.Argument(metavar="STORE", help="The store's SQLite file.")]


def add_store_commands(app: typer.Typer) -> None:
    """Give the application these three."""
    app.command("compact")(_compact)
    app.command("export")(_export)
    app.command("import")(_import)


def _compact(store: StoreFile) -> None:
    """Remove expired and invalidated entries and give the file's free space back."""
    with _opened(store) as opened:
        typer.echo(f"{opened.compact():,} bytes given back, {opened.count():,} entries kept")


def _export(
    store: StoreFile,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines to write, or -.")],
) -> None:
    """Write every live entry with its vector as JSON Lines. They hold prompts in plain text."""
    from stepcache.stores._transfer import write_lines

    with _opened(store) as opened:
        if str(file) == "-":
            count = write_lines(opened.rows(), sys.stdout.buffer)
        else:
            # As private as the store itself.
            flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
            with os.fdopen(os.open(file, flags, 0o600), "wb") as lines:
                count = write_lines(opened.rows(), lines)
        typer.echo(f"{count:,} entries written", err=True)


def _import(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A SQLite file, or a new one.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines to read, or -.")],
) -> None:
    """Keep every entry of a file written by export; ages count from now, deadlines stay."""
    with _opened(store, new=True) as opened:
        if str(file) == "-":
            kept, skipped = _keep(opened, sys.stdin.buffer)
        else:
            with file.open("rb") as lines:
                kept, skipped = _keep(opened, lines)
    typer.echo(f"{kept:,} entries kept, {skipped:,} lines skipped", err=True)
    raise typer.Exit(1 if skipped and not kept else 0)


def _keep(store: SQLiteStore, lines: IO[bytes]) -> tuple[int, int]:
    from stepcache import StoreError
    from stepcache.stores._transfer import read_lines

    kept = skipped = 0
    for row in read_lines(lines):
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
def _opened(path: Path, *, new: bool = False) -> Iterator[SQLiteStore]:
    """The store of a file; errors that a person can act on end the command in one line."""
    from stepcache import StepCacheError
    from stepcache.stores import SQLiteStore

    if not new and not path.is_file():
        typer.echo(f"Error: there is no file {path}", err=True)
        raise typer.Exit(2)
    try:
        store = SQLiteStore(path)
        try:
            yield store
        finally:
            store.close()
    except (StepCacheError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
