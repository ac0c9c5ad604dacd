"""A store's entries as rows. A store keeps answers, not decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from stepcache._errors import ConfigurationError
from stepcache._reports import REPORTS
from stepcache._types import Entry, Usage
from stepcache.report._rows import Report, Row, Shown
from stepcache.report._sources import SourceError, newest

__all__ = ["read_store", "rows_of_entries"]

_REMARK = (
    "A store keeps answers, not decisions: routes, reasons and savings are in a trace log "
    "(listeners=[TraceLog('trace.jsonl')])."
)


def read_store(source: str, limit: int) -> Report:
    """Read a store's live entries, the oldest first.

    Args:
        source: A file's path or a store's URL.

    Raises:
        SourceError: The file is not there; a report makes no new store.
        StoreError: The store failed.
    """
    from stepcache.stores import open_store

    if source.lower().startswith("sqlite:"):
        path = source.partition("://")[2].removeprefix("/")
        if not Path(path).is_file():
            raise SourceError(f"there is no file {path}")
    store: Any = open_store(source)
    with closing(store):
        if not hasattr(store, "entries"):
            raise ConfigurationError(f"{type(store).__name__} cannot list its entries")
        reported = 0

        def live() -> Iterator[Entry]:
            nonlocal reported
            for entry in store.entries():
                if entry.scope == REPORTS:
                    reported += 1
                else:
                    yield entry

        rows, left_out = newest(rows_of_entries(live()), limit)
    facts = (("answers reported as bad", f"{reported:,}"),) if reported else ()
    return Report(
        kind="store",
        source=_told(source),
        rows=rows,
        left_out=left_out,
        remarks=(_REMARK,),
        facts=facts,
    )


def rows_of_entries(entries: Iterable[Entry]) -> Iterator[Row]:
    """A row for each entry."""
    for number, entry in enumerate(entries, start=1):
        demands = entry.constraints
        task = demands.task if demands is not None else "exact only"
        steps = tuple(
            Shown(text=step.text, chars=len(step.text), kind=step.kind) for step in entry.steps
        )
        if not steps and entry.message:
            steps = (Shown(text=entry.message, chars=len(entry.message), kind="host record"),)
        notes = (
            [] if demands is None else [("demands", json.dumps(dict(demands.values), default=str))]
        )
        yield Row(
            number=number,
            time=entry.created or None,
            pool=f"{entry.scope[:12]} {task}",
            task=task,
            model=entry.model,
            prompt=entry.prompt,
            steps=steps,
            spent=Usage(),
            avoided=entry.usage,
            entry=entry.id,
            notes=(*notes, *_kept(entry)),
        )


def _kept(entry: Entry) -> Iterator[tuple[str, str]]:
    from datetime import UTC, datetime

    if entry.expires is not None:
        until = datetime.fromtimestamp(entry.expires, UTC).isoformat(" ", "seconds")
        yield "expires", until
    if entry.tags:
        yield "tags", ", ".join(entry.tags)


def _told(url: str) -> str:
    """A file's name, or a URL without its password and options."""
    scheme, separator, rest = url.partition("?")[0].partition("://")
    _, at, place = rest.rpartition("@")
    if not separator:
        return Path(url).name
    return f"{scheme}://***@{place}" if at else url.partition("?")[0]
