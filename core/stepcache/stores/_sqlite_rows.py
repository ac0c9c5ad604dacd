"""Reading rows of the SQLite store: what they hold when they are to be believed, and upkeep that
walks over all of them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from zlib import crc32

from stepcache._types import Entry
from stepcache.protocols import Vector
from stepcache.stores import _sqlite_sql as sql
from stepcache.stores._guard import Opened, RecordGuard, Refused, as_vector
from stepcache.stores._record import decode
from stepcache.stores._seal import Reason
from stepcache.stores._sqlite_file import BUSY_SECONDS, Database

__all__ = ["Reading", "all_entries", "as_bytes", "as_text", "compact", "lives", "rotate"]

_ROWS_AT_ONCE = 256


class Reading:
    """One operation's reading of rows of number, checksum and record; collects those to remove.

    Args:
        guard: Says what is genuine.
    """

    __slots__ = ("_bad", "_guard")

    def __init__(self, guard: RecordGuard) -> None:
        self._guard = guard
        self._bad: list[tuple[Any, Any]] = []

    def open(self, row: Sequence[Any], scope: str) -> Opened | None:
        """What a row holds, when it is genuine and of this scope."""
        try:
            opened = self._guard.open(row[2])
        except Refused as refused:
            self.refuse(row, refused.reason)
            return None
        if opened.entry.scope != scope:
            self.refuse(row, "misplaced")
            return None
        return opened

    def find(self, row: Sequence[Any], scope: str, fingerprint: str) -> Opened | None:
        """As :meth:`open`, for a row that ends with its vector: that must be the entry's own."""
        opened = self.open(row, scope)
        if opened is not None and not self._guard.holds(opened, fingerprint, row[-1]):
            self.refuse(row, "misplaced")
            return None
        return opened

    def refuse(self, row: Sequence[Any], reason: Reason) -> None:
        """A row is not believed."""
        if self._guard.refuse(reason):
            self._bad.append((row[0], row[1]))

    def remove_bad(self, connection: sqlite3.Connection) -> None:
        """Remove the rows that nobody shall meet again, unless another writer is busy."""
        if not self._bad:
            return
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            with suppress(sqlite3.Error):  # they are met again
                connection.executemany(sql.DROP, self._bad)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")


def all_entries(
    database: Database,
    guard: RecordGuard,
    clock: Callable[[], float],
    *,
    trust_unsealed: bool,
) -> Iterator[tuple[Entry, Vector | None, str]]:
    """Every live entry with its vector and its embedder's fingerprint, the oldest first."""
    for number, scope, checksum, record, name, blob in _all_rows(database, clock):
        fingerprint = as_text(name)
        if trust_unsealed and (entry := _unsealed(checksum, record)) is not None:
            data = guard.vector(blob)
        else:
            row = (number, checksum, record, blob)
            opened = Reading(guard).find(row, as_text(scope), fingerprint)
            if opened is None:
                continue
            entry, data = opened.entry, guard.vector(blob)
        if lives(entry, clock()):
            yield entry, None if data is None else as_vector(data), fingerprint


def rotate(database: Database, guard: RecordGuard, clock: Callable[[], float]) -> int:
    """Seal every record that is not sealed as the guard would seal it now; returns how many."""
    count = 0
    for number, scope, checksum, record, name, blob in _all_rows(database, clock):
        if guard.is_current(record):
            continue
        row = (number, checksum, record, blob)
        opened = Reading(guard).find(row, as_text(scope), as_text(name))
        if opened is None:
            continue
        data = guard.vector(blob)
        sealed = guard.seal(opened.entry, None if data is None else as_vector(data), as_text(name))
        values = (crc32(sealed.record), *sealed, number, checksum)
        with database.lend() as connection:
            count += connection.execute(sql.RESEAL, values).rowcount
    with database.lend() as connection:
        connection.execute(sql.RECOUNT)
    guard.forget()
    return count


def compact(connection: sqlite3.Connection, path: str) -> int:
    """Give a file's free space back; returns by how many bytes it shrank."""
    before = os.path.getsize(path)
    connection.execute(sql.RECOUNT)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = max(before, os.path.getsize(path))
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return before - os.path.getsize(path)


def lives(entry: Entry, now: float) -> bool:
    """Whether an entry may be served."""
    return entry.expires is None or entry.expires > now


def as_bytes(text: str) -> bytes:
    """A text as SQLite compares it: byte by byte, whatever it holds."""
    return text.encode("utf-8", "surrogatepass")


def as_text(value: object) -> str:
    """What :func:`as_bytes` was given; a text no scope is for anything else."""
    if not isinstance(value, bytes):
        return ""
    return value.decode("utf-8", "surrogatepass")


def _all_rows(database: Database, clock: Callable[[], float]) -> Iterator[tuple[Any, ...]]:
    last = 0
    while True:
        with database.lend() as connection:
            some = connection.execute(sql.ALL_ROWS, (last, clock(), _ROWS_AT_ONCE)).fetchall()
        for row in some:
            last = row[0]
            yield row
        if len(some) < _ROWS_AT_ONCE:
            return


def _unsealed(checksum: object, record: object) -> Entry | None:
    """The entry of a record of before there were seals."""
    if not isinstance(record, bytes) or crc32(record) != checksum:
        return None
    return decode(record)
