"""``stepcache key`` and ``stepcache rotate``: the keys that a store's records are sealed with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stepcache._counts import count
from stepcache.cli._common import AsJson, busy, print_json

__all__ = ["add_key_commands"]


def add_key_commands(app: typer.Typer) -> None:
    """Give the application these two."""
    app.command("key")(_key)
    app.command("rotate")(_rotate)


def _key(
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Write it there, readable by you only."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a new key: 64 hexadecimal digits, for STEPCACHE_KEY or a key file."""
    from stepcache import ConfigurationError
    from stepcache.stores._keys import new_key, write_key_file

    if file is None:
        key = new_key().hex()
        if as_json:
            print_json({"key": key})
        else:
            typer.echo(key)
        return
    try:
        write_key_file(file.expanduser())
    except ConfigurationError as error:
        _fail(error)
    if as_json:
        print_json({"file": str(file)})
    else:
        typer.echo(f"a new key is in {file}", err=True)


def _rotate(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A SQLite file, or a store's URL.")],
    new: Annotated[
        bool, typer.Option("--new", help="Put a new key into the store's key file first.")
    ] = False,
    retire: Annotated[
        bool,
        typer.Option("--retire", help="Then forget all older keys, and what only they can open."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Seal every record with the newest key. Others may use the store meanwhile.

    Where the keys come from the environment, put the new key before the old ones there instead of
    --new, on every host, and take the old ones away when this is done.
    """
    from stepcache import StepCacheError
    from stepcache.stores import open_store

    if "://" not in store and not Path(store).is_file():
        typer.echo(f"Error: there is no file {store}", err=True)
        raise typer.Exit(2)
    try:
        opened: Any = open_store(store)
        try:
            ring = opened.key_ring
            if new:
                ring.renew()
            with busy("sealing"):
                sealed = opened.rotate()
            if retire:
                ring.renew(retire=True)
        finally:
            opened.close()
    except (StepCacheError, OSError) as error:
        _fail(error)
    if as_json:
        print_json({"records": sealed})
    else:
        typer.echo(f"{count(sealed, 'record')} sealed with the newest key", err=True)


def _fail(error: Exception) -> None:
    typer.echo(f"Error: {error}", err=True)
    raise typer.Exit(1) from None
