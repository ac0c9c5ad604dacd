"""``stepcache forget``: remove entries by what they are."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from stepcache._counts import count
from stepcache.cli._common import (
    AsJson,
    ModelOption,
    NamespaceOption,
    OlderThan,
    StoreName,
    TagOption,
    TaskOption,
    looked_into,
    print_json,
    resolved,
    selected,
    tracked,
    usage,
)

__all__ = ["add_forget_command"]


def add_forget_command(app: typer.Typer) -> None:
    """Give the application this one."""
    app.command("forget")(_forget)


def _forget(
    entry: Annotated[
        str | None, typer.Argument(metavar="[ENTRY]", help="An entry's id or its beginning.")
    ] = None,
    store: StoreName = None,
    namespace: NamespaceOption = None,
    tag: TagOption = None,
    task: TaskOption = None,
    model: ModelOption = None,
    older_than: OlderThan = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many; remove none.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove one entry, or all that have everything named in common.

    Asks before it removes. An answer that was wrong comes back with the next equal request unless
    it is reported: engine.report_bad(entry_id).
    """
    from stepcache.explain import entries_of

    with looked_into("forget", store) as engine:
        chosen = selected(
            tag=tag, namespace=namespace, task=task, model=model, older_than=older_than
        )
        if (entry is None) is chosen.names_nothing:
            usage(
                "name an entry, or what all that go have in common "
                "(--tag, --namespace, --task, --model, --older-than), not both and not nothing",
                "forget",
            )
        now = time.time()
        reading = tracked(entries_of(engine.store), "reading")
        if entry is not None:
            found = resolved(reading, entry)
            ids = [found.id] if found is not None else []
        else:
            ids = [each.id for each in reading if chosen.takes(each, now)]
        removed = 0
        if ids and not dry_run:
            if not yes:
                many = count(len(ids), "entry", "entries")
                typer.confirm(f"Remove {many}?", abort=True, err=True)
            removed = sum(engine.forget(each) for each in tracked(ids, "removing", len(ids)))
        if as_json:
            print_json({"matching": len(ids), "removed": removed, "dry_run": dry_run})
        else:
            dry = " (--dry-run)" if dry_run else ""
            typer.echo(f"{len(ids):,} matching, {removed:,} removed{dry}")
        if entry is not None and not ids:
            raise typer.Exit(1)
