"""The store of many machines: PostgreSQL with pgvector holds the truth, its clock the time."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from stepcache._errors import ConfigurationError, StoreError
from stepcache._types import Entry
from stepcache.protocols import Match, Vector
from stepcache.stores._check import check_max_entries
from stepcache.stores._guard import RecordGuard
from stepcache.stores._keys import KeyRing, KeySource
from stepcache.stores._postgres_link import Address, Health, Pool, psycopg_module, watch
from stepcache.stores._postgres_local import LocalEntries
from stepcache.stores._postgres_ops import Op, Operations

__all__ = ["GRACE", "LONG", "PostgresStore", "check_numbers"]

T = TypeVar("T")

GRACE = 0.5
"""Seconds beyond the server's own time limit after which it counts as hanging."""
LONG = 90.0


class PostgresStore:
    """Keeps entries in a PostgreSQL database that any number of hosts share. Thread-safe.

    The server decides what is true and what time it is: an entry put, replaced, removed or expired
    is so for every host with its next call. A put is durable when it returns (as the server's
    ``synchronous_commit`` has it). Tables live in a schema of their own, which is created, and
    brought up to date, under a lock. The user needs the right to create it and, where pgvector is
    not yet enabled in the database, to do that.

    Whatever the server does, a call ends within about ``timeout`` plus half a second with a result
    or a ``StoreError``; after a failure to connect, calls fail at once until the next attempt is
    due (half a second to ten, growing with what an attempt costs). Nothing has to be restarted.

    Similarity search is exact until a scope holds more than ``index_above`` vectors of an embedder;
    upkeep then gives it an HNSW index of its own.

    Args:
        url: ``postgresql://user:password@host:port/database``; the password shows up nowhere.
        schema: Name of the schema for the tables: up to 40 small letters, digits, underscores.
        timeout: Seconds one statement may take, and to wait for a free connection.
        max_connections: Connections of this process at most.
        max_entries: Above this many, upkeep drops those written longest ago; None keeps all.
        upkeep_seconds: How often one of the hosts tidies up (expired entries, old leases,
            ``max_entries``, indexes), in the background after a put; None leaves it to
            :meth:`upkeep`.
        index_above: Vectors of one scope and embedder from which on an index pays; None never
            builds one.
        local_entries: Entries to remember in this process, for ``get`` only; 0 asks the server each
            time. Needs every change announced (LISTEN/NOTIFY), which opening such a store switches
            on for the database.
        local_seconds: How long another host's change may go unnoticed by remembered entries.
        required: False starts without a server too, and finds it when it is there. One that is
            there and will not do (rights, pgvector, version) is refused at once all the same.
        max_entries_per_namespace: Above this many of one namespace, its oldest go with its next
            put; None sets no such limit.
        integrity_key: What records are sealed with, the same on every host: key bytes, a key file's
            path, or several keys with the newest first. None takes ``STEPCACHE_KEY`` or
            ``STEPCACHE_KEY_FILE`` from the environment, else the file ``stepcache/key`` in the
            user's configuration folder. A server that can be written to cannot forge answers.
        encrypt: Make records unreadable without the key (extra ``crypto``). Vectors, which the
            server would have to read, are then left out, and only equal demands are found.
        clear_vectors: With ``encrypt``, keep vectors all the same, in the clear.
        clock: Seconds since the epoch, in place of the server's clock; for tests.

    Attributes:
        blocking: True: calls wait for the server.

    Raises:
        ConfigurationError: The packages, the URL, another argument or the server will not do; the
            message says which and what to do.
    """

    blocking = True

    def __init__(
        self,
        url: str,
        *,
        schema: str = "stepcache",
        timeout: float = 2.0,
        max_connections: int = 8,
        max_entries: int | None = None,
        upkeep_seconds: float | None = 60.0,
        index_above: int | None = 10_000,
        local_entries: int = 0,
        local_seconds: float = 1.0,
        required: bool = True,
        max_entries_per_namespace: int | None = None,
        integrity_key: KeySource | KeyRing | None = None,
        encrypt: bool = False,
        clear_vectors: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        check_max_entries("PostgresStore", max_entries)
        check_max_entries("PostgresStore", max_entries_per_namespace, "max_entries_per_namespace")
        check_numbers(
            "PostgresStore",
            timeout=timeout,
            max_connections=max_connections,
            local_seconds=local_seconds,
        )
        self._address = Address(url, timeout)
        self._operations = Operations(
            schema,
            clock,
            RecordGuard(
                "PostgresStore", integrity_key, encrypt=encrypt, remembered=256, largest=16_384
            ),
            clear_vectors=clear_vectors,
            most_of_one=max_entries_per_namespace,
        )
        self._errors: type[Exception] = psycopg_module().Error
        self._patience = timeout + GRACE
        self._max_entries = max_entries
        self._upkeep_seconds = upkeep_seconds
        self._index_above = index_above
        self._tidied = time.monotonic()
        self._tidying = threading.Lock()
        self._ready = False
        self._closed = False
        self._health = Health(self._address.place)
        self._pool = Pool(self._address, max_connections, self._health, self._prepare)
        self._local: LocalEntries | None = None
        if local_entries:
            self._local = LocalEntries(self._address, schema, local_entries, local_seconds, clock)
        try:
            self._run(lambda: self._operations.count(""))
        except StoreError as error:
            cause = error.__cause__ or error
            if isinstance(cause, ConfigurationError):
                self.close()
                raise cause from None
            if required or Address.is_permanent(cause):
                self.close()
                self._address.refuse(cause)

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.place!r}, schema={self._operations.sql.schema!r})"

    @property
    def unreadable(self) -> int:
        """Rows this store met whose record was not to be believed; each was a miss."""
        return self._operations.guard.refused

    @property
    def key_ring(self) -> KeyRing:
        """The keys that records are sealed and opened with."""
        return self._operations.guard.ring

    @property
    def refusals(self) -> dict[str, int]:
        """Records met that were not served, by reason, as :attr:`SQLiteStore.refusals`."""
        return self._operations.guard.refusals

    def get(self, scope: str, key: str, /) -> Entry | None:
        """The live entry whose exact or, failing that, canonical key is ``key``, or None.

        Raises:
            StoreError: The server failed, or the store is closed.
        """
        local = self._local
        if local is None:
            return self._run(lambda: self._operations.get(scope, key)).entry
        if self._closed:
            raise StoreError("the store is closed: open a new one")
        known = local.get(scope, key)
        if known is not None:
            return known
        ticket = local.ticket()
        found = self._run(lambda: self._operations.get(scope, key))
        if found.entry is not None:
            local.remember(ticket, scope, key, found)
        return found.entry

    def search(
        self, scope: str, vector: Vector, fingerprint: str, /, *, limit: int
    ) -> tuple[Match, ...]:
        """The nearest live entries of a scope embedded by ``fingerprint``, best first.

        Args:
            vector: float32 array of shape (dimension,).
            limit: How many at most.

        Raises:
            StoreError: Not a vector of these entries' dimension, the server failed, or the store
                is closed.
        """
        return self._run(lambda: self._operations.search(scope, vector, fingerprint, limit))

    def put(
        self, entry: Entry, vector: Vector | None, fingerprint: str, /, *, ttl: float | None = None
    ) -> None:
        """Keep an entry; one with the same scope and exact key is replaced.

        Args:
            vector: float32 array of shape (dimension,), or None to keep it out of searches.
            fingerprint: Of the embedder that made the vector.
            ttl: Seconds it may be served from now; None leaves ``entry.expires`` as it is.

        Raises:
            StoreError: A vector, a ``ttl`` or an entry that cannot be kept, the server failed, or
                the store is closed.
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

    def remove(self, entry_id: str, /) -> bool:
        """Forget one entry; False when there was none.

        Raises:
            StoreError: The server failed, or the store is closed.
        """
        return self._change(lambda: self._operations.remove(entry_id), check=True)

    def clear(self, scope: str | None = None, /) -> int:
        """Forget a scope, or everything; returns how many live entries went.

        Raises:
            StoreError: The server failed, or the store is closed. Some may have gone.
        """
        return self._change(lambda: self._operations.clear(scope), check=True, patience=LONG)

    def count(self, scope: str | None = None, /) -> int:
        """Live entries in a scope, or in all.

        Raises:
            StoreError: The server failed, or the store is closed.
        """
        return self._run(lambda: self._operations.count(scope))

    def size(self) -> int:
        """Bytes of the schema's tables and their indexes, dead rows included.

        Raises:
            StoreError: The server failed, or the store is closed.
        """
        return self._run(self._operations.size)

    def find(self, entry_id: str, /) -> Entry | None:
        """The live entry of an id, or None.

        Raises:
            StoreError: The server failed, or the store is closed.
        """
        return self._run(lambda: self._operations.find(entry_id))

    def entries(self) -> Iterator[Entry]:
        """Every live entry, the oldest first, read a few at a time.

        Raises:
            StoreError: While reading on: the server failed, or the store is closed.
        """
        after: int | None = 0
        while after is not None:
            page, after = self._run(self._operations.pager(after))
            yield from page

    def close(self) -> None:
        """Close every connection. Further calls raise, except to close again."""
        self._closed = True
        if self._local is not None:
            self._local.close()
        self._pool.close()

    # --- one leader among processes --------------------------------------------------------------

    def acquire(self, key: str, seconds: float, /) -> int | None:
        """Take the lease of a key, if nobody holds it.

        Args:
            key: What is to be done by one at a time.
            seconds: Until it ends by itself, counted by the server.

        Returns:
            A token, higher than any given before, or None when another holds the lease.

        Raises:
            StoreError: The server failed, or the store is closed.
        """
        holder = uuid.uuid4().hex  # a repeated attempt recognises its own lease
        return self._run(lambda: self._operations.acquire(key, holder, seconds))

    def renew(self, key: str, token: int, seconds: float, /) -> bool:
        """Prolong a lease, counted from now; False when it is somebody else's by now."""
        return self._run(lambda: self._operations.renew(key, token, seconds))

    def release(self, key: str, token: int, /) -> bool:
        """Let go of a lease; False when it was somebody else's by now."""
        return self._run(lambda: self._operations.release(key, token))

    # --- upkeep ----------------------------------------------------------------------------------

    def upkeep(self) -> tuple[int, ...]:
        """Tidy up now, whenever that was done last; returns the numbers of indexes built.

        Raises:
            StoreError: The server failed, or the store is closed.
        """
        return self._tidy(0.0) or ()

    def rotate(self) -> int:
        """Seal every record with the newest key, as :meth:`SQLiteStore.rotate`.

        Returns:
            How many records were sealed anew.

        Raises:
            StoreError: The server failed, or the store is closed.
        """
        count = 0
        after: int | None = 0
        while after is not None:
            done, after = self._run(self._operations.resealer(after), patience=LONG)
            count += done
        self._operations.guard.forget()
        return count

    # --- inside ----------------------------------------------------------------------------------

    def _put(
        self,
        entry: Entry,
        vector: Vector | None,
        fingerprint: str,
        ttl: float | None,
        lease: tuple[str, int] | None,
    ) -> bool:
        kept = self._change(
            lambda: self._operations.put(entry, vector, fingerprint, ttl, lease), entry
        )
        if self._upkeep_seconds is not None:
            self._tidy_soon(self._upkeep_seconds)
        return kept

    def _prepare(self, connection: Any) -> None:
        if not self._ready:
            number = watch().begin(connection, LONG)
            try:
                _driven(connection, self._operations.migrate())
                if self._local is not None:
                    _driven(connection, self._operations.notify())
            finally:
                watch().end(number)
            self._ready = True
        from pgvector.psycopg import register_vector

        register_vector(connection)

    def _change(
        self,
        operation: Callable[[], Op[T]],
        entry: Entry | None = None,
        *,
        patience: float | None = None,
        check: bool = False,
    ) -> T:
        """Run an operation that changes one entry or, with None, who knows which."""
        try:
            return self._run(operation, patience=patience, check=check)
        finally:
            if self._local is not None:
                if entry is None:
                    self._local.forget_all()
                else:
                    self._local.forget(entry)

    def _run(
        self,
        operation: Callable[[], Op[T]],
        *,
        patience: float | None = None,
        check: bool = False,
    ) -> T:
        """Run an operation on a connection; once more when the server had gone away meanwhile.

        Args:
            check: Try an idle connection first, for what must not be done twice.
        """
        again = True
        while True:
            new, begun = True, time.monotonic()
            try:
                with self._pool.lend(patience or self._patience) as (connection, new):
                    if check and not new:
                        connection.execute("SELECT 1")
                    result = _driven(connection, operation())
                self._health.well()
            except self._errors as error:
                spent = time.monotonic() - begun
                if getattr(error, "sqlstate", None) == "57014":
                    self._health.slow(spent)
                gone = connection.closed or connection.broken
                if gone:
                    self._pool.forget_idle()
                if gone and again and not new and spent < self._patience:
                    again = False
                    continue
                raise self._address.failed(error) from error
            else:
                return result

    def _tidy_soon(self, every: float) -> None:
        if time.monotonic() - self._tidied < every or not self._tidying.acquire(blocking=False):
            return
        try:
            if time.monotonic() - self._tidied < every:
                return
            self._tidied = time.monotonic()
            threading.Thread(
                target=self._tidy_quietly,
                args=(every,),
                name="stepcache-postgres-upkeep",
                daemon=True,
            ).start()
        finally:
            self._tidying.release()

    def _tidy_quietly(self, every: float) -> None:
        with suppress(StoreError):  # nobody asked for it; it is tried again
            self._tidy(every)

    def _tidy(self, every: float) -> tuple[int, ...] | None:
        """On a connection of its own, for it may take as long as an index takes to build."""
        if self._closed:
            raise StoreError("the store is closed: open a new one")
        self._health.ask()
        try:
            with self._address.connect() as connection:
                return _driven(
                    connection,
                    self._operations.upkeep(every, self._max_entries, self._index_above),
                )
        except self._errors as error:
            raise self._address.failed(error) from error


def _driven(connection: Any, operation: Op[T]) -> T:
    try:
        said = next(operation)
        while True:
            cursor = connection.execute(*said, binary=True)
            said = operation.send(cursor.fetchall() if cursor.description else [])
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        operation.close()


def check_numbers(store: str, **values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
            raise ConfigurationError(f"{store}({name}={value!r}): use a number above 0")
