"""The store of one machine: a SQLite file that any number of threads and processes share.

The file is the truth. Vector indexes live in memory, one per scope and embedder, are rebuilt from
the file, and are never believed: each row an index finds is read again before it counts. A vector
is never changed in place, so an index catches up with other writers by reading the rows beyond the
last it knows, and forgets a row when it turns out to be gone.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from zlib import crc32

import numpy as np

from stepcache._types import Entry
from stepcache.index import unit_vector
from stepcache.protocols import Match, Vector
from stepcache.stores import _sqlite_sql as sql
from stepcache.stores._check import stamped
from stepcache.stores._record import decode, encode
from stepcache.stores._sqlite_file import Database
from stepcache.stores._sqlite_index import Indexes, as_bytes
from stepcache.stores._sqlite_keep import Keeper, Limits

__all__ = ["SQLiteStore"]

_SEARCH_ATTEMPTS = 4
_FURTHER = 8
_DEAD_AT_ONCE = 256
_ENTRIES_AT_ONCE = 256
_RECORDS_KNOWN = 1024
_KNOWN_RECORD_BYTES = 8_192
_PROLONGED = 0.05
"""Portion of its life an entry has lost before a use gives it back."""


class SQLiteStore:
    """Keeps entries in one SQLite file, for the threads and processes of one machine.

    A put is on its way to disk when it returns: it survives the end of the process, also by
    ``kill -9``; a power cut may take the last ones but leaves the file sound (WAL,
    ``synchronous=NORMAL``). The file must not lie on a network drive.

    Args:
        path: The file; created, with its directories, where it is missing, and then readable by
            its owner only. Answers are in it in plain text.
        max_entries: Above this many, some go; None keeps all.
        clock: Seconds since the epoch; processes that share the file should agree on it.
        max_bytes: Above this many bytes of records and vectors, some go; None keeps all.
        evict: Who goes first: ``"oldest"``, the entries written longest ago, whether read or not;
            ``"lru"``, those used longest ago; ``"lfu-size"``, those used least for their size.
            Reads do not write: what a process used counts from its next put on.
        sliding: Give an entry its whole time to live again when it is used, and a new ``created``
            with it; such reads write. Off, entries expire when their put said.

    Attributes:
        blocking: True: calls wait for the disk and for other writers, up to 30 seconds.

    Raises:
        ConfigurationError: The path or a limit cannot work; says why and what to do.
    """

    blocking = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_entries: int | None = None,
        clock: Callable[[], float] = time.time,
        *,
        max_bytes: int | None = None,
        evict: str = "oldest",
        sliding: bool = False,
    ) -> None:
        limits = Limits(max_entries=max_entries, max_bytes=max_bytes, evict=evict)
        self._keeper = Keeper(limits)
        self._sliding = sliding
        self._clock = clock
        self._unreadable = 0
        # Reading a row is cheap, making an entry of it is not. Equal records are equal entries.
        self._decode_again = lru_cache(maxsize=_RECORDS_KNOWN)(decode)
        self._database = Database(path)
        if self._keeper.ranks:
            with self._database.lend() as connection:
                connection.execute(sql.RANK_ALL)
        self._indexes = Indexes(self._database, clock)

    @property
    def path(self) -> str:
        """The file, as an absolute path."""
        return self._database.path

    @property
    def unreadable(self) -> int:
        """Rows met whose record or vector was damaged; each was a miss."""
        return self._unreadable + self._indexes.damaged

    def get(self, scope: str, key: str, /) -> Entry | None:
        """The live entry whose exact or, failing that, canonical key is ``key``, or None.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        now = self._clock()
        place = (as_bytes(scope), as_bytes(key), now)
        with self._database.lend() as connection:
            for statement in (sql.GET_EXACT, sql.GET_CANONICAL):
                rows = connection.execute(statement, place)
                for row in rows:
                    entry = self._read(row[1:], scope, now)
                    if entry is not None and key in (entry.exact_key, entry.canonical_key):
                        rows.close()
                        return self._used(connection, row, entry, now)
        return None

    def search(
        self, scope: str, vector: Vector, fingerprint: str, /, *, limit: int
    ) -> tuple[Match, ...]:
        """The nearest live entries of a scope embedded by ``fingerprint``, best first.

        Args:
            vector: float32 array of shape (dimension,).
            limit: How many at most.

        Raises:
            StoreError: Not a vector of these entries' dimension, the file failed, or the store is
                closed.
        """
        unit = unit_vector(vector)
        matches: tuple[Match, ...] = ()
        with self._database.lend() as connection:
            for attempt in range(_SEARCH_ATTEMPTS):
                block = self._indexes.caught_up(connection, scope, fingerprint, len(unit))
                if block is None:
                    return ()
                # Rows that are gone hide some that are there: look further each time.
                found = block.index.search(unit, limit * _FURTHER**attempt)
                matches, stale = self._confirm(connection, scope, fingerprint, found, limit)
                if not stale:
                    break
                for number in stale:
                    block.index.remove(number)
                if len(matches) >= limit:
                    break
                if attempt == _SEARCH_ATTEMPTS - 2:
                    self._indexes.forget_gone(connection, scope, fingerprint, block)
        return matches

    def put(
        self, entry: Entry, vector: Vector | None, fingerprint: str, /, *, ttl: float | None = None
    ) -> None:
        """Keep an entry; one with the same scope and exact key is replaced.

        Args:
            vector: float32 array of shape (dimension,), or None to keep it out of searches.
            fingerprint: Of the embedder that made the vector.
            ttl: Seconds it may be served from now; None leaves ``entry.expires`` as it is.

        Raises:
            StoreError: A vector, a ``ttl`` or an entry that cannot be kept, the file failed, or the
                store is closed. Nothing has changed then.
        """
        now = self._clock()
        kept = stamped(entry, now, ttl)
        unit = None if vector is None else unit_vector(vector)
        record = encode(kept)
        row = (
            as_bytes(kept.scope),
            as_bytes(kept.exact_key),
            None if kept.canonical_key is None else as_bytes(kept.canonical_key),
            as_bytes(kept.id),
            None if unit is None else as_bytes(fingerprint),
            kept.expires,
            crc32(record),
            record,
            None if unit is None else unit.astype("<f4", copy=False).tobytes(),
        )
        size = len(record) + (0 if unit is None else unit.nbytes)
        self._keeper.check(size)
        with self._database.lend() as connection:
            block = self._indexes.known(kept.scope, fingerprint)
            if unit is not None and block is not None and block.index.dimension != len(unit):
                block = self._indexes.caught_up(connection, kept.scope, fingerprint, len(unit))
                unit_vector(unit, None if block is None else block.index.dimension)
            if connection.execute(sql.SOME_DEAD, (now,)).fetchone():
                connection.execute(sql.DROP_EXPIRED, (now, _DEAD_AT_ONCE))
                connection.execute(sql.DROP_INVALID, (_DEAD_AT_ONCE,))
            if not self._keeper.limits.any:
                connection.execute(sql.PUT, row)
                return
            connection.execute("BEGIN IMMEDIATE")
            number = connection.execute(sql.PUT, row).lastrowid or 0
            self._keeper.came(connection, number, size, now)
            connection.execute("COMMIT")

    def remove(self, entry_id: str, /) -> bool:
        """Forget one entry; False when there was none.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        with self._database.lend() as connection:
            self._drop_dead(connection)
            statement = "DELETE FROM entries WHERE entry_id = ?"
            return connection.execute(statement, (as_bytes(entry_id),)).rowcount > 0

    def clear(self, scope: str | None = None, /) -> int:
        """Forget a scope, or everything; returns how many live entries went.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        with self._database.lend() as connection:
            self._drop_dead(connection)
            if scope is None:
                return connection.execute("DELETE FROM entries").rowcount
            statement = "DELETE FROM entries WHERE scope = ?"
            return connection.execute(statement, (as_bytes(scope),)).rowcount

    def invalidate(self) -> None:
        """Make every entry now in the file unservable at once, however many there are.

        Their rows go little by little with later puts, or with :meth:`compact`.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        with self._database.lend() as connection:
            connection.execute(sql.INVALIDATE)

    def compact(self) -> int:
        """Remove what can no longer be served and give the file's free space back.

        Returns:
            Bytes by which the file shrank.

        Raises:
            StoreError: The file failed, is in use by a long reader, or the store is closed.
        """
        with self._database.lend() as connection:
            before = os.path.getsize(self.path)
            self._drop_dead(connection)
            connection.execute(sql.RECOUNT)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            before = max(before, os.path.getsize(self.path))
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return before - os.path.getsize(self.path)

    def rows(self) -> Iterator[tuple[Entry, Vector | None, str]]:
        """Every live entry with its vector and its embedder's fingerprint, the oldest first.

        Raises:
            StoreError: While reading on: the file failed, or the store is closed.
        """
        last = 0
        while True:
            now = self._clock()
            with self._database.lend() as connection:
                some = connection.execute(sql.ALL_ROWS, (last, now, _ENTRIES_AT_ONCE)).fetchall()
            for number, scope, checksum, record, fingerprint, blob in some:
                last = number
                entry = self._read((checksum, record), _text(scope), now)
                sound = isinstance(blob, bytes) and blob and len(blob) % 4 == 0
                vector = np.frombuffer(blob, dtype="<f4") if sound else None
                if entry is not None:
                    yield entry, vector, _text(fingerprint)
            if len(some) < _ENTRIES_AT_ONCE:
                return

    def count(self, scope: str | None = None, /) -> int:
        """Live entries in a scope, or in all.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        now = self._clock()
        statement: str = sql.COUNT if scope is None else sql.COUNT_SCOPE
        values = (now,) if scope is None else (as_bytes(scope), now, as_bytes(scope))
        with self._database.lend() as connection:
            count: int = connection.execute(statement, values).fetchone()[0]
            return count

    def find(self, entry_id: str, /) -> Entry | None:
        """The live entry of an id, or None.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        now = self._clock()
        with self._database.lend() as connection:
            for scope, *row in connection.execute(sql.FIND, (as_bytes(entry_id), now)):
                entry = self._read((row[1], row[2]), _text(scope), now)
                if entry is not None:
                    return entry
        return None

    def entries(self) -> Iterator[Entry]:
        """Every live entry, the oldest first, read a few at a time.

        Raises:
            StoreError: While reading on: the file failed, or the store is closed.
        """
        for entry, _, _ in self.rows():
            yield entry

    def close(self) -> None:
        """Close every connection to the file. Further calls raise, except to close again."""
        self._database.close()
        self._indexes.forget()
        self._decode_again.cache_clear()

    # --- rows ----------------------------------------------------------------------------------

    def _read(self, row: tuple[object, object], scope: str, now: float) -> Entry | None:
        """The entry of a checksum and record, when it is whole and of this scope."""
        checksum, record = row
        entry = None
        if isinstance(record, bytes) and crc32(record) == checksum:
            known = len(record) <= _KNOWN_RECORD_BYTES
            entry = self._decode_again(record) if known else decode(record)
        if entry is None or entry.scope != scope:
            self._unreadable += 1
            return None
        return entry if entry.expires is None or entry.expires > now else None

    def _used(
        self, connection: sqlite3.Connection, row: tuple[int, int, bytes], entry: Entry, now: float
    ) -> Entry:
        """The entry of a row that is served, with a new life where uses give one."""
        self._keeper.used(row[0], now)
        if not self._sliding or entry.expires is None:
            return entry
        life = entry.expires - entry.created
        if now - entry.created < _PROLONGED * life:
            return entry
        longer = replace(entry, created=now, expires=now + life)
        record = encode(longer)
        with suppress(sqlite3.Error):  # the answer is good, whoever holds the file
            values = (longer.expires, crc32(record), record, row[0], row[1])
            connection.execute(sql.PROLONG, values)
        return longer

    def _drop_dead(self, connection: sqlite3.Connection) -> None:
        now = self._clock()
        if connection.execute(sql.SOME_DEAD, (now,)).fetchone():
            connection.execute(sql.DROP_EXPIRED, (now, -1))
            connection.execute(sql.DROP_INVALID, (-1,))

    def _confirm(
        self,
        connection: sqlite3.Connection,
        scope: str,
        fingerprint: str,
        found: Sequence[tuple[int, float]],
        limit: int,
    ) -> tuple[tuple[Match, ...], list[int]]:
        """The first found rows that are there, and the numbers of those met that are not."""
        now = self._clock()
        place = (as_bytes(scope), as_bytes(fingerprint), now)
        matches: list[Match] = []
        stale: list[int] = []
        for number, similarity in found:
            if len(matches) == limit:
                break
            row = connection.execute(sql.GET_NUMBER, (number, *place)).fetchone()
            entry = None if row is None else self._read(row[1:], scope, now)
            if entry is None:
                stale.append(number)
            else:
                matches.append(Match(self._used(connection, row, entry, now), similarity))
        return tuple(matches), stale


def _text(value: object) -> str:
    """What :func:`as_bytes` was given; a text no scope is for anything else."""
    if not isinstance(value, bytes):
        return ""
    return value.decode("utf-8", "surrogatepass")
