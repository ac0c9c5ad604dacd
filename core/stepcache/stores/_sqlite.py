"""The store of one machine: a SQLite file that any number of threads and processes share.

The file is the truth, as far as its records are sealed with this store's key; all else is a miss.
Vector indexes live in memory, one per scope and embedder, are rebuilt from the file, and are never
believed: each row an index finds is read again before it counts. A vector is never changed in
place, so an index catches up with other writers by reading the rows beyond the last it knows, and
forgets a row when it turns out to be gone.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from zlib import crc32

from stepcache._reports import tenant_named, tenant_of
from stepcache._types import Entry
from stepcache.index import unit_vector
from stepcache.protocols import Match, Vector
from stepcache.stores import _sqlite_sql as sql
from stepcache.stores._check import stamped
from stepcache.stores._guard import Opened, RecordGuard
from stepcache.stores._keys import KeyRing, KeySource
from stepcache.stores._limits import Limits
from stepcache.stores._sqlite_file import Database
from stepcache.stores._sqlite_index import Indexes
from stepcache.stores._sqlite_keep import Keeper
from stepcache.stores._sqlite_leases import Leasing, is_leader
from stepcache.stores._sqlite_rows import (
    Reading,
    all_entries,
    as_bytes,
    as_text,
    compact,
    lives,
    rotate,
)
from stepcache.stores._sqlite_snapshots import Snapshots

__all__ = ["SQLiteStore"]

_SEARCH_ATTEMPTS = 4
_FURTHER = 8
_DEAD_AT_ONCE = 256
_PROLONGED = 0.05
"""Portion of its life an entry has lost before a use gives it back."""


class SQLiteStore(Leasing):
    """Keeps entries in one SQLite file, for the threads and processes of one machine.

    A put is on its way to disk when it returns: it survives the end of the process, also by
    ``kill -9``; a power cut may take the last ones but leaves the file sound (WAL,
    ``synchronous=NORMAL``). The file must not lie on a network drive.

    Args:
        path: The file; created, with its directories, where it is missing, and then readable by
            its owner only. Answers are in it in plain text, unless ``encrypt`` says otherwise.
        max_entries: Above this many, some go; None keeps all.
        clock: Seconds since the epoch; processes that share the file should agree on it.
        max_bytes: Above this many bytes of records and vectors, some go; None keeps all.
        evict: Who goes first: ``"oldest"``, the entries written longest ago, whether read or not;
            ``"lru"``, those used longest ago; ``"lfu-size"``, those used least for their size.
            Reads do not write: what a process used counts from its next put on.
        sliding: Give an entry its whole time to live again when it is used, and a new ``created``
            with it; such reads write. Off, entries expire when their put said.
        max_entries_per_namespace: Above this many of one namespace, its oldest go with its next
            put; None sets no such limit.
        integrity_key: What records are sealed with: key bytes, a key file's path, or several keys
            with the newest first. None takes ``STEPCACHE_KEY`` or ``STEPCACHE_KEY_FILE`` from the
            environment, else the file ``<path>.key``, which is made where it is missing.
        encrypt: Make records and vectors unreadable without the key (extra ``crypto``).

    Attributes:
        blocking: True: calls wait for the disk and for other writers, up to 30 seconds.

    Raises:
        ConfigurationError: The path, a limit or the key cannot work; says why and what to do.
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
        max_entries_per_namespace: int | None = None,
        integrity_key: KeySource | KeyRing | None = None,
        encrypt: bool = False,
    ) -> None:
        limits = Limits(
            store="SQLiteStore",
            max_entries=max_entries,
            max_bytes=max_bytes,
            evict=evict,
            max_entries_per_namespace=max_entries_per_namespace,
        )
        self._keeper = Keeper(limits)
        self._sliding = sliding
        self._clock = clock
        self._database = Database(path)
        self._guard = RecordGuard("SQLiteStore", integrity_key, beside=self.path, encrypt=encrypt)
        if self._keeper.ranks:
            with self._database.lend() as connection:
                connection.execute(sql.RANK_ALL)
        read = self._guard.vector
        snapshots = Snapshots(self.path, read, kept=not encrypt)
        self._indexes = Indexes(self._database, clock, read, snapshots)

    @property
    def path(self) -> str:
        """The file, as an absolute path."""
        return self._database.path

    @property
    def unreadable(self) -> int:
        """Rows met whose record or vector was not to be believed; each was a miss."""
        return self._guard.refused + self._indexes.damaged

    @property
    def key_ring(self) -> KeyRing:
        """The keys that records are sealed and opened with."""
        return self._guard.ring

    @property
    def refusals(self) -> dict[str, int]:
        """Records met that were not served, by reason: ``forged``, ``malformed`` and ``misplaced``
        ones are removed, ``unsealed`` and ``newer`` ones and those of an ``unknown key`` left."""
        return self._guard.refusals

    def get(self, scope: str, key: str, /) -> Entry | None:
        """The live entry whose exact or, failing that, canonical key is ``key``, or None.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        now = self._clock()
        place = (as_bytes(scope), as_bytes(key), now)
        reading = Reading(self._guard)
        with self._database.lend() as connection:
            for statement in (sql.GET_EXACT, sql.GET_CANONICAL):
                rows = connection.execute(statement, place)
                for row in rows:
                    opened = reading.open(row, scope)
                    if opened is None:
                        continue
                    entry = opened.entry
                    if key not in (entry.exact_key, entry.canonical_key):
                        reading.refuse(row, "misplaced")
                    elif lives(entry, now):
                        rows.close()
                        reading.remove_bad(connection)
                        return self._used(connection, row, opened, now)
            reading.remove_bad(connection)
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
        self._put(entry, vector, fingerprint, ttl, None)

    def put_leased(
        self,
        entry: Entry,
        vector: Vector | None,
        fingerprint: str,
        /,
        *,
        key: str,
        token: int,
        ttl: float | None = None,
    ) -> bool:
        """As :meth:`put`, unless somebody else has taken the lease since: then nothing is kept.

        Args:
            key: What the lease is for.
            token: What :meth:`acquire` returned.

        Returns:
            Whether the entry is kept.
        """
        return self._put(entry, vector, fingerprint, ttl, (key, token))

    def _put(
        self,
        entry: Entry,
        vector: Vector | None,
        fingerprint: str,
        ttl: float | None,
        lease: tuple[str, int] | None,
    ) -> bool:
        now = self._clock()
        kept = stamped(entry, now, ttl)
        unit = None if vector is None else unit_vector(vector)
        record, blob = self._guard.seal(kept, unit, fingerprint)
        row = (
            as_bytes(kept.scope),
            as_bytes(kept.exact_key),
            None if kept.canonical_key is None else as_bytes(kept.canonical_key),
            as_bytes(kept.id),
            None if unit is None else as_bytes(fingerprint),
            kept.expires,
            crc32(record),
            record,
            blob,
            tenant_of(kept),
        )
        size = len(record) + len(blob or b"")
        self._keeper.check(size)
        with self._database.lend() as connection:
            block = self._indexes.known(kept.scope, fingerprint)
            if unit is not None and block is not None and block.index.dimension != len(unit):
                block = self._indexes.caught_up(connection, kept.scope, fingerprint, len(unit))
                unit_vector(unit, None if block is None else block.index.dimension)
            self._drop_dead(connection, _DEAD_AT_ONCE)
            if lease is None and not self._keeper.limits.any:
                connection.execute(sql.PUT, row)
                return True
            connection.execute("BEGIN IMMEDIATE")
            leads = lease is None or is_leader(connection, *lease)
            if leads:
                number = connection.execute(sql.PUT, row).lastrowid or 0
                if self._keeper.limits.any:
                    self._keeper.came(connection, number, size, now, tenant_of(kept))
            connection.execute("COMMIT")
            return leads

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
            self._indexes.unsave()
            if scope is None:
                return connection.execute("DELETE FROM entries").rowcount
            statement = "DELETE FROM entries WHERE scope = ?"
            return connection.execute(statement, (as_bytes(scope),)).rowcount

    def invalidate(self, namespace: str | None = None) -> None:
        """Make every entry now in the file unservable at once, however many there are.

        Their rows go little by little with later puts, or with :meth:`compact`.

        Args:
            namespace: Only those kept under this namespace, "" being the default one.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        with self._database.lend() as connection:
            if namespace is None:
                connection.execute(sql.INVALIDATE)
            else:
                connection.execute(sql.INVALIDATE_ONE, (tenant_named(namespace),))

    def compact(self) -> int:
        """Remove what can no longer be served and give the file's free space back.

        Returns:
            Bytes by which the file shrank.

        Raises:
            StoreError: The file failed, is in use by a long reader, or the store is closed.
        """
        with self._database.lend() as connection:
            self._drop_dead(connection)
            self._indexes.unsave()
            return compact(connection, self.path)

    def rows(self, *, trust_unsealed: bool = False) -> Iterator[tuple[Entry, Vector | None, str]]:
        """Every live entry with its vector and its embedder's fingerprint, the oldest first.

        Args:
            trust_unsealed: Believe records of before there were seals too, whoever wrote them.

        Raises:
            StoreError: While reading on: the file failed, or the store is closed.
        """
        return all_entries(self._database, self._guard, self._clock, trust_unsealed=trust_unsealed)

    def rotate(self) -> int:
        """Seal every record with the newest key, encrypted or not as this store is now.

        Others may go on reading and writing meanwhile. What a key this store does not know has
        sealed stays as it is.

        Returns:
            How many records were sealed anew.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        return rotate(self._database, self._guard, self._clock)

    def count(self, scope: str | None = None, /) -> int:
        """Live entries in a scope, or in all.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        now = self._clock()
        statement: str = sql.COUNT if scope is None else sql.COUNT_SCOPE
        values = (now,) if scope is None else (now, as_bytes(scope))
        with self._database.lend() as connection:
            count: int = connection.execute(statement, values).fetchone()[0]
            return count

    def find(self, entry_id: str, /) -> Entry | None:
        """The live entry of an id, or None.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        now = self._clock()
        reading, found = Reading(self._guard), None
        with self._database.lend() as connection:
            for scope, *row in connection.execute(sql.FIND, (as_bytes(entry_id), now)):
                opened = reading.open(row, as_text(scope))
                if opened is not None and opened.entry.id != entry_id:
                    reading.refuse(row, "misplaced")
                elif opened is not None and found is None and lives(opened.entry, now):
                    found = opened.entry
            reading.remove_bad(connection)
        return found

    def entries(self) -> Iterator[Entry]:
        """Every live entry, the oldest first, read a few at a time.

        Raises:
            StoreError: While reading on: the file failed, or the store is closed.
        """
        for entry, _, _ in self.rows():
            yield entry

    def close(self) -> None:
        """Close every connection to the file. Further calls raise, except to close again."""
        self._indexes.save()
        self._database.close()
        self._indexes.forget()
        self._guard.forget()

    # --- rows ----------------------------------------------------------------------------------

    def _used(
        self, connection: sqlite3.Connection, row: Sequence[Any], opened: Opened, now: float
    ) -> Entry:
        """The entry of a row that is served, with a new life where uses give one."""
        entry = opened.entry
        self._keeper.used(row[0], now)
        if not self._sliding or entry.expires is None:
            return entry
        life = entry.expires - entry.created
        if now - entry.created < _PROLONGED * life:
            return entry
        longer = replace(entry, created=now, expires=now + life)
        record = self._guard.reseal(longer, opened.bound)
        with suppress(sqlite3.Error):  # the answer is good, whoever holds the file
            values = (longer.expires, crc32(record), record, row[0], row[1])
            connection.execute(sql.PROLONG, values)
        return longer

    def _drop_dead(self, connection: sqlite3.Connection, most: int = -1) -> None:
        """Remove what can no longer be served, or so much of each kind of it."""
        now = self._clock()
        if connection.execute(sql.SOME_DEAD, (now,)).fetchone():
            connection.execute(sql.DROP_EXPIRED, (now, most))
            connection.execute(sql.DROP_INVALID, (most,))
            connection.execute(sql.DROP_INVALID_OF_ONE, (most,))
            connection.execute(sql.DROP_EPOCHS)

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
        reading = Reading(self._guard)
        for number, similarity in found:
            if len(matches) == limit:
                break
            row = connection.execute(sql.GET_NUMBER, (number, *place)).fetchone()
            opened = None if row is None else reading.find(row, scope, fingerprint)
            if opened is None or not lives(opened.entry, now):
                stale.append(number)
            else:
                matches.append(Match(self._used(connection, row, opened, now), similarity))
        reading.remove_bad(connection)
        return tuple(matches), stale
