"""From what somebody names on the command line to a report: which reader takes it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepcache._errors import StepCacheError
from stepcache.report._rows import Report, Row, without_texts

__all__ = ["SourceError", "newest", "read_source"]

_URLS = ("sqlite:", "postgresql:", "postgres:")
_KINDS = (
    "a store (a SQLite file, sqlite:///path, postgresql://user@host/database), a trace log "
    "(JSON Lines) or a benchmark's results.json"
)


class SourceError(ValueError):
    """A source cannot be read; the message says why and what to name instead."""


def read_source(source: str, *, texts: bool | None = None, limit: int = 10_000) -> Report:
    """Read a source.

    Args:
        source: A store's path or URL, a trace log, or a benchmark's record (or its folder).
        texts: Whether prompts and answers are shown. None: of a store not, of a trace log what it
            holds, of a benchmark yes (its prompts are the published workload).
        limit: Rows to keep, the newest.

    Raises:
        SourceError: The source is missing, unreadable, or none of these.
        ModuleNotFoundError: An extra that the source needs is not installed.
    """
    try:
        report = _read(source, texts, limit)
    except (StepCacheError, OSError) as error:
        raise SourceError(str(error)) from error
    if texts is False or (texts is None and report.kind == "store"):
        rows = tuple(without_texts(row) for row in report.rows)
        return replace(report, rows=rows, texts=False)
    shown = any(row.prompt is not None or row.answer for row in report.rows)
    return replace(report, texts=shown or not report.rows)


def newest(rows: Iterable[Row], limit: int) -> tuple[tuple[Row, ...], int]:
    """The last rows, and how many came before them."""
    kept: deque[Row] = deque(maxlen=limit)
    total = 0
    for row in rows:
        kept.append(row)
        total += 1
    return tuple(kept), total - len(kept)


def _read(source: str, texts: bool | None, limit: int) -> Report:
    if source.lower().startswith(_URLS):
        return _store(source, limit)
    path = Path(source)
    if path.is_dir():
        path /= "results.json"
    if not path.is_file():
        raise SourceError(f"there is no file {path}: name {_KINDS}")
    with path.open("rb") as file:
        start = file.read(4096)
    if start.startswith(b"SQLite format 3\0"):
        return _store(str(path), limit)
    first = next(_objects(start), None)
    if first is not None and "route" in first and "v" in first:
        from stepcache.report._tracelog import read_log

        return read_log(path, limit)
    if start.lstrip().startswith(b'{"format"'):
        from stepcache.report._bench import read_record

        return read_record(path, limit)
    if first is not None and "run" in first:
        raise SourceError(f"{path} is a benchmark's journal: name the results.json beside it")
    if not start.strip():
        raise SourceError(f"{path} is empty: name {_KINDS}")
    raise SourceError(f"{path} is none of: {_KINDS}")


def _store(source: str, limit: int) -> Report:
    from stepcache.report._store import read_store

    return read_store(source, limit)


def _objects(start: bytes) -> Iterator[dict[str, Any]]:
    """The first line, where it is a JSON object; a line longer than what was read is told by its
    beginning."""
    line = start.split(b"\n", 1)[0]
    try:
        found = json.loads(line)
    except ValueError:
        text = line.decode("utf-8", "replace")
        found = {name: None for name in ("v", "route", "run") if f'"{name}"' in text}
    if isinstance(found, dict):
        yield found
