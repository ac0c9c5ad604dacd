"""``stepcache stats``, ``list`` and ``top``: what a store holds."""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepcache._counts import count
from stepcache.cli._common import (
    AsJson,
    ModelOption,
    NamespaceOption,
    OlderThan,
    ShowText,
    StoreName,
    TagOption,
    TaskOption,
    ago,
    console,
    looked_into,
    print_json,
    safe,
    selected,
    size_of,
    tracked,
    usage,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stepcache._types import Entry
    from stepcache.explain import Figures

__all__ = ["add_look_commands"]

_SHOWN_GROUPS = 8
_REST = 5.0
"""A view rests so many times as long as it takes to read the store."""


def add_look_commands(app: typer.Typer) -> None:
    """Give the application these three."""
    app.command("stats")(_stats)
    app.command("list")(_list)
    app.command("top")(_top)


def _stats(store: StoreName = None, as_json: AsJson = False) -> None:
    """Count what a store holds: entries, namespaces, families, models, tags, bytes, costs.

    Stores keep answers, not decisions: routes and hits are counted by each engine
    (engine.routes) and its listeners.
    """
    from stepcache.explain import entries_of, figures

    with looked_into("stats", store) as engine:
        total = engine.store.count()
        entries = tracked(entries_of(engine.store), "reading", _number(total))
        told = figures(engine.store, entries)
        if as_json:
            print_json(told.as_dict())
        else:
            console().print(_table(told))


def _list(
    store: StoreName = None,
    namespace: NamespaceOption = None,
    tag: TagOption = None,
    task: TaskOption = None,
    model: ModelOption = None,
    older_than: OlderThan = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Entries on a page.")] = 20,
    page: Annotated[int, typer.Option(min=1, help="Which page; the newest are on the first.")] = 1,
    show_text: ShowText = False,
    as_json: AsJson = False,
) -> None:
    """List a store's entries, the newest first."""
    from stepcache.explain import entries_of, entry_facts

    with looked_into("list", store) as engine:
        chosen = selected(
            tag=tag, namespace=namespace, task=task, model=model, older_than=older_than
        )
        now = time.time()
        met = 0

        def taken() -> Any:
            nonlocal met
            for entry in tracked(
                entries_of(engine.store), "reading", _number(engine.store.count())
            ):
                if chosen.takes(entry, now):
                    met += 1
                    yield entry

        newest = heapq.nlargest(limit * page, taken(), key=lambda entry: entry.created)
        rows = newest[limit * (page - 1) :]
        pages = -(-met // limit)
        if as_json:
            found = [entry_facts(entry, show_text=show_text) for entry in rows]
            print_json({"entries": found, "page": page, "pages": pages, "matching": met})
            return
        screen = console()
        if rows:
            screen.print(_rows(rows, now, show_text=show_text))
        told = f"{count(met, 'entry', 'entries')} {'matches' if met == 1 else 'match'}"
        screen.print(f"{told}; page {page} of {max(pages, 1)}.")


def _top(
    store: StoreName = None,
    interval: Annotated[
        float, typer.Option(min=0.2, metavar="SECONDS", help="Between two readings.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Read once, print and end.")] = False,
    show_text: ShowText = False,
    as_json: AsJson = False,
) -> None:
    """Watch a store: its figures, how it grows, and its newest entries. Ctrl-C ends it.

    With --json one line a reading.
    """
    import sys

    with looked_into("top", store) as engine:
        view = _View(engine.store, show_text=show_text)
        if once or as_json:
            while True:
                began = time.monotonic()
                view.read()
                if as_json:
                    typer.echo(json.dumps(view.as_dict()))
                else:
                    console().print(view.render())
                if once:
                    return
                time.sleep(max(interval, _REST * (time.monotonic() - began)))
        if not sys.stdout.isatty():
            usage("standard output is no terminal: add --once or --json", "top")
        from rich.live import Live

        view.read()
        with Live(view.render(), screen=True, auto_refresh=False) as live:
            while True:
                began = time.monotonic()
                view.read()
                live.update(view.render(), refresh=True)
                time.sleep(max(interval, _REST * (time.monotonic() - began)))


class _View:
    """A store's figures beside those of the first reading."""

    def __init__(self, store: Any, *, show_text: bool, newest: int = 10) -> None:
        self._store = store
        self._show_text = show_text
        self._most = newest
        self._first: tuple[float, Figures] | None = None

    def read(self) -> None:
        from stepcache._reports import REPORTS
        from stepcache.explain import entries_of, figures

        newest: list[tuple[float, int, Entry]] = []

        def watched() -> Any:
            for number, entry in enumerate(entries_of(self._store)):
                if entry.scope != REPORTS:
                    row = (entry.created, number, entry)
                    if len(newest) < self._most:
                        heapq.heappush(newest, row)
                    else:
                        heapq.heappushpop(newest, row)
                yield entry

        self._now = time.time()
        self._figures = figures(self._store, watched())
        self._newest = [entry for *_, entry in sorted(newest, reverse=True)]
        self._first = self._first or (self._now, self._figures)

    def as_dict(self) -> dict[str, Any]:
        from stepcache.explain import entry_facts

        newest = [entry_facts(entry, show_text=self._show_text) for entry in self._newest]
        return {"at": self._now, **self._figures.as_dict(), "newest": newest}

    def render(self) -> RenderableType:
        from rich.console import Group

        assert self._first is not None
        since, first = self._first
        grown, minutes = self._figures.entries - first.entries, (self._now - since) / 60
        rate = f", {grown / minutes:+.1f} a minute" if minutes > 0 else ""
        told = f"{grown:+,} in {ago(since, self._now)}{rate}" if minutes > 0 else ""
        parts: list[RenderableType] = [_table(self._figures), told]
        if self._newest:
            parts.append(_rows(self._newest, self._now, show_text=self._show_text))
        return Group(*parts)


def _table(told: Figures) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    names = {"": "default"}
    rows = {
        "entries": f"{told.entries:,} in {count(told.scopes, 'scope')}",
        "bytes": size_of(told.bytes),
        "namespaces": _groups({names.get(k, f"#{k[:8]}"): v for k, v in told.namespaces.items()}),
        "families": _groups({k or "byte-equal only": v for k, v in told.tasks.items()}),
        "models": _groups({k or "not told": v for k, v in told.models.items()}),
        "tags": _groups(told.tags),
        "steps": f"{told.steps:,}, {count(told.characters, 'character')} of prompts and answers",
        "kept": f"from {ago(told.oldest)} to {ago(told.newest)} ago" if told.entries else "-",
        "expiring": f"{told.expiring:,}",
        "a hit of each": f"avoids {count(told.cost.calls, 'model call')} and "
        f"{count(told.cost.tokens, 'token')}",
        "reported bad": f"{told.reports:,}",
        "unreadable": f"{told.unreadable:,}",
        "hits, routes": "counted by engines, not kept in stores",
    }
    for name, value in rows.items():
        table.add_row(Text(name), Text(safe(value)))
    return table


def _rows(entries: list[Entry], now: float, *, show_text: bool) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from stepcache.explain import entry_facts

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("entry", "age", "ends in", "family", "model", "namespace", "tags", "steps"):
        table.add_column(name, no_wrap=name in ("entry", "age"))
    if show_text:
        table.add_column("prompt")
    for entry in entries:
        told = entry_facts(entry)
        cells = [
            entry.id[:12],
            ago(entry.created, now),
            ago(entry.expires, now),
            told["task"] or "byte-equal",
            told["model"] or "-",
            f"#{told['namespace'][:8]}" if told["namespace"] else "default",
            ", ".join(told["tags"]) or "-",
            f"{len(entry.steps):,}",
        ]
        if show_text:
            cells.append(safe(entry.prompt, 60))
        table.add_row(*(Text(safe(cell)) for cell in cells))
    return table


def _groups(counts: Mapping[str, int]) -> str:
    told = [f"{name} {count:,}" for name, count in list(counts.items())[:_SHOWN_GROUPS]]
    more = len(counts) - _SHOWN_GROUPS
    return ", ".join(told) + (f" and {more:,} more" if more > 0 else "") or "-"


def _number(count: Any) -> int | None:
    return count if isinstance(count, int) else None
