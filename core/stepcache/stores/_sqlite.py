"""The store of one machine: a SQLite file that any number of threads and processes share.

The file is the truth. Vector indexes live in memory, one per scope and embedder, are rebuilt from
the file, and are never believed: each row an index finds is read again before it counts. Rows are
never changed in place, so an index catches up with other writers by reading the rows beyond the
last it knows, and forgets a row when it turns out to be gone.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from zlib import crc32

import numpy as np

from stepcache._types import Entry
from stepcache.index import VectorIndex, unit_vector
from stepcache.protocols import Match, Vector
from stepcache.stores._check import check_max_entries, stamped
from stepcache.stores._record import decode, encode
from stepcache.stores._sqlite_file import Database

__all__ = ["SQLiteStore"]

_SEARCH_ATTEMPTS = 4
_ROWS_AT_ONCE = 2048
_EXPIRED_AT_ONCE = 256
_ENTRIES_AT_ONCE = 256
_UNIT_TOLERANCE = 1e-3
_RECORDS_KNOWN = 256
_KNOWN_RECORD_BYTES = 16_384

_GET_EXACT = (
    "SELECT checksum, record FROM entries WHERE scope = ? AND exact_key = ?"
    " AND (expires IS NULL OR expires > ?)"
)
_GET_CANONICAL = (
    "SELECT checksum, record FROM entries WHERE scope = ? AND canonical_key = ?"
    " AND (expires IS NULL OR expires > ?) ORDER BY number DESC"
)
_FIND = (
    "SELECT scope, checksum, record FROM entries WHERE entry_id = ?"
    " AND (expires IS NULL OR expires > ?) ORDER BY number DESC"
)
_ALL = (
    "SELECT number, scope, checksum, record FROM entries WHERE number > ?"
    " AND (expires IS NULL OR expires > ?) ORDER BY number LIMIT ?"
)
_GET_NUMBER = (
    "SELECT checksum, record FROM entries WHERE number = ? AND scope = ? AND fingerprint = ?"
    " AND (expires IS NULL OR expires > ?)"
)
_PUT = (
    "INSERT OR REPLACE INTO entries"
    " (scope, exact_key, canonical_key, entry_id, fingerprint, expires, checksum, record, vector)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_LENGTHS = (
    "SELECT length(vector), (SELECT count(*) FROM entries WHERE scope = ?1 AND fingerprint = ?2)"
    " FROM (SELECT vector FROM entries WHERE scope = ?1 AND fingerprint = ?2 LIMIT 101)"
    " GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
)
_BEYOND = (
    "SELECT number, vector FROM entries WHERE scope = ? AND fingerprint = ?"
    " AND (expires IS NULL OR expires > ?) AND number > ? ORDER BY number"
)
_NUMBERS = (
    "SELECT number FROM entries WHERE scope = ? AND fingerprint = ?"
    " AND (expires IS NULL OR expires > ?)"
)
# All minus expired: the first reads an index only, the second (+: by deadline) a few rows.
_COUNT = "SELECT (SELECT count(*) FROM entries) - (SELECT count(*) FROM entries WHERE expires <= ?)"
_COUNT_SCOPE = (
    "SELECT (SELECT count(*) FROM entries WHERE scope = ?)"
    " - (SELECT count(*) FROM entries WHERE expires <= ? AND +scope = ?)"
)
_SOME_EXPIRED = "SELECT 1 FROM entries WHERE expires <= ? LIMIT 1"
_DROP_EXPIRED = (
    "DELETE FROM entries WHERE number IN (SELECT number FROM entries WHERE expires <= ? LIMIT ?)"
)
_DROP_OLDEST = (
    "DELETE FROM entries WHERE number IN (SELECT number FROM entries ORDER BY number LIMIT ?)"
)


@dataclass(slots=True)
class _Block:
    """The index of one scope and fingerprint, with the last row it has seen."""

    index: VectorIndex
    seen: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class SQLiteStore:
    """Keeps entries in one SQLite file, for the threads and processes of one machine.

    A put is on its way to disk when it returns: it survives the end of the process, also by
    ``kill -9``; a power cut may take the last ones but leaves the file sound (WAL,
    ``synchronous=NORMAL``). The file must not lie on a network drive.

    Args:
        path: The file; created, with its directories, where it is missing, and then readable by
            its owner only. Answers are in it in plain text.
        max_entries: Above this many, the entries written longest ago go; None keeps all. Reads do
            not write, so being read does not keep an entry.
        clock: Seconds since the epoch; processes that share the file should agree on it.

    Attributes:
        blocking: True: calls wait for the disk and for other writers, up to 30 seconds.
        unreadable: Rows this store met whose record or vector was damaged; each was a miss.

    Raises:
        ConfigurationError: The path or ``max_entries`` cannot work; says why and what to do.
    """

    blocking = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_entries: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_max_entries("SQLiteStore", max_entries)
        self._max_entries = max_entries
        self._clock = clock
        self.unreadable = 0
        # Reading a row is cheap, making an entry of it is not. Equal records are equal entries.
        self._decode_again = lru_cache(maxsize=_RECORDS_KNOWN)(decode)
        self._database = Database(path)
        self._forget_indexes()

    @property
    def path(self) -> str:
        """The file, as an absolute path."""
        return self._database.path

    def get(self, scope: str, key: str, /) -> Entry | None:
        """The live entry whose exact or, failing that, canonical key is ``key``, or None.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        now = self._clock()
        place = (_bytes(scope), _bytes(key), now)
        with self._database.lend() as connection:
            for statement in (_GET_EXACT, _GET_CANONICAL):
                rows = connection.execute(statement, place)
                for row in rows:
                    entry = self._read(row, scope, now)
                    if entry is not None and key in (entry.exact_key, entry.canonical_key):
                        rows.close()
                        return entry
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
                block = self._caught_up(connection, scope, fingerprint, len(unit))
                if block is None:
                    return ()
                found = block.index.search(unit, limit)
                matches, stale = self._confirm(connection, scope, fingerprint, found)
                if not stale:
                    break
                # They hid entries further away, or were replaced since: forget them, and after
                # that whatever else is gone, and look again.
                for number in stale:
                    block.index.remove(number)
                if attempt:
                    self._forget_gone(connection, scope, fingerprint, block)
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
            _bytes(kept.scope),
            _bytes(kept.exact_key),
            None if kept.canonical_key is None else _bytes(kept.canonical_key),
            _bytes(kept.id),
            None if unit is None else _bytes(fingerprint),
            kept.expires,
            crc32(record),
            record,
            None if unit is None else unit.astype("<f4", copy=False).tobytes(),
        )
        with self._database.lend() as connection:
            block = self._blocks.get((kept.scope, fingerprint))
            if unit is not None and block is not None and block.index.dimension != len(unit):
                block = self._caught_up(connection, kept.scope, fingerprint, len(unit))
                unit_vector(unit, None if block is None else block.index.dimension)
            if connection.execute(_SOME_EXPIRED, (now,)).fetchone():
                connection.execute(_DROP_EXPIRED, (now, _EXPIRED_AT_ONCE))
            if self._max_entries is None:
                connection.execute(_PUT, row)
                return
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_PUT, row)
            (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
            if count > self._max_entries:
                connection.execute(_DROP_OLDEST, (count - self._max_entries,))
            connection.execute("COMMIT")

    def remove(self, entry_id: str, /) -> bool:
        """Forget one entry; False when there was none.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        with self._database.lend() as connection:
            self._drop_expired(connection)
            statement = "DELETE FROM entries WHERE entry_id = ?"
            return connection.execute(statement, (_bytes(entry_id),)).rowcount > 0

    def clear(self, scope: str | None = None, /) -> int:
        """Forget a scope, or everything; returns how many live entries went.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        with self._database.lend() as connection:
            self._drop_expired(connection)
            if scope is None:
                return connection.execute("DELETE FROM entries").rowcount
            statement = "DELETE FROM entries WHERE scope = ?"
            return connection.execute(statement, (_bytes(scope),)).rowcount

    def count(self, scope: str | None = None, /) -> int:
        """Live entries in a scope, or in all.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        now = self._clock()
        statement: str = _COUNT if scope is None else _COUNT_SCOPE
        values = (now,) if scope is None else (_bytes(scope), now, _bytes(scope))
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
            for scope, *row in connection.execute(_FIND, (_bytes(entry_id), now)):
                entry = self._read((row[0], row[1]), _text(scope), now)
                if entry is not None:
                    return entry
        return None

    def entries(self) -> Iterator[Entry]:
        """Every live entry, the oldest first, read a few at a time.

        Raises:
            StoreError: While reading on: the file failed, or the store is closed.
        """
        last = 0
        while True:
            now = self._clock()
            with self._database.lend() as connection:
                rows = connection.execute(_ALL, (last, now, _ENTRIES_AT_ONCE)).fetchall()
            for number, scope, checksum, record in rows:
                entry = self._read((checksum, record), _text(scope), now)
                if entry is not None:
                    yield entry
                last = number
            if len(rows) < _ENTRIES_AT_ONCE:
                return

    def close(self) -> None:
        """Close every connection to the file. Further calls raise, except to close again."""
        self._database.close()
        self._forget_indexes()
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
            self.unreadable += 1
            return None
        return entry if entry.expires is None or entry.expires > now else None

    def _drop_expired(self, connection: sqlite3.Connection) -> None:
        now = self._clock()
        if connection.execute(_SOME_EXPIRED, (now,)).fetchone():
            connection.execute("DELETE FROM entries WHERE expires <= ?", (now,))

    # --- indexes -------------------------------------------------------------------------------

    def _forget_indexes(self) -> None:
        self._blocks: dict[tuple[str, str], _Block] = {}
        self._lock = threading.Lock()
        # Last: until then other threads of a forked child know that they must do this too.
        self._generation = self._database.generation

    def _caught_up(
        self, connection: sqlite3.Connection, scope: str, fingerprint: str, length: int
    ) -> _Block | None:
        """The index for vectors of a length, or the one that will refuse them, or None."""
        for _ in range(2):
            block = self._loaded(connection, scope, fingerprint)
            if block is None or block.index.dimension == length:
                return block
            # All rows of the other dimension may be gone.
            self._forget_gone(connection, scope, fingerprint, block)
            if len(block.index):
                return block
            self._blocks.pop((scope, fingerprint), None)
        return None

    def _loaded(
        self, connection: sqlite3.Connection, scope: str, fingerprint: str
    ) -> _Block | None:
        """The index of a scope and fingerprint with every row now in the file, or None."""
        if self._generation != self._database.generation:
            self._forget_indexes()
        place = (_bytes(scope), _bytes(fingerprint))
        with self._lock:
            block = self._blocks.get((scope, fingerprint))
            if block is None:
                # What most rows have: one damaged row does not decide the dimension.
                row = connection.execute(_LENGTHS, place).fetchone()
                if row is None or not row[0] or row[0] % 4:
                    return None
                index = VectorIndex(row[0] // 4, expected=row[1])
                block = self._blocks[scope, fingerprint] = _Block(index)
        with block.lock:
            rows = connection.execute(_BEYOND, (*place, self._clock(), block.seen))
            while some := rows.fetchmany(_ROWS_AT_ONCE):
                self._extend(block, some)
        if not len(block.index):
            # The next rows may have another dimension.
            self._blocks.pop((scope, fingerprint), None)
            return None
        return block

    def _extend(self, block: _Block, rows: Sequence[tuple[int, object]]) -> None:
        size = 4 * block.index.dimension
        whole = [(n, v) for n, v in rows if isinstance(v, bytes) and len(v) == size]
        flat = np.frombuffer(b"".join([v for _, v in whole]), dtype="<f4")
        vectors = flat.reshape(len(whole), block.index.dimension)
        with np.errstate(all="ignore"):
            squares = np.einsum("ij,ij->i", vectors, vectors)
            sound = (np.abs(squares - 1.0) <= _UNIT_TOLERANCE) | (squares == 0.0)
        block.index.extend([n for (n, _), good in zip(whole, sound) if good], vectors[sound])
        self.unreadable += len(rows) - int(sound.sum())
        block.seen = rows[-1][0]

    def _confirm(
        self,
        connection: sqlite3.Connection,
        scope: str,
        fingerprint: str,
        found: Sequence[tuple[int, float]],
    ) -> tuple[tuple[Match, ...], list[int]]:
        """The found rows that are there, and the numbers of those that are not."""
        now = self._clock()
        place = (_bytes(scope), _bytes(fingerprint), now)
        matches: list[Match] = []
        stale: list[int] = []
        for number, similarity in found:
            row = connection.execute(_GET_NUMBER, (number, *place)).fetchone()
            entry = None if row is None else self._read(row, scope, now)
            if entry is None:
                stale.append(number)
            else:
                matches.append(Match(entry, similarity))
        return tuple(matches), stale

    def _forget_gone(
        self, connection: sqlite3.Connection, scope: str, fingerprint: str, block: _Block
    ) -> None:
        place = (_bytes(scope), _bytes(fingerprint), self._clock())
        with block.lock:
            there = {number for (number,) in connection.execute(_NUMBERS, place)}
            for number in block.index.numbers():
                if number not in there:
                    block.index.remove(number)


def _text(value: object) -> str:
    """What :func:`_bytes` was given; a text no scope is for anything else."""
    if not isinstance(value, bytes):
        return ""
    return value.decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    """A text as SQLite compares it: byte by byte, whatever it holds."""
    return text.encode("utf-8", "surrogatepass")
