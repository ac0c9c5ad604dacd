"""The PostgreSQL store for programs that await: the same operations, run on asynchronous
connections."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, finalize

from stepcache._errors import ConfigurationError, StoreError
from stepcache._types import Entry
from stepcache.protocols import Match, Vector
from stepcache.stores._check import check_max_entries
from stepcache.stores._guard import RecordGuard
from stepcache.stores._keys import KeyRing, KeySource
from stepcache.stores._postgres import GRACE, LONG, check_numbers
from stepcache.stores._postgres_link import Address, Health, psycopg_module, watch
from stepcache.stores._postgres_ops import Op, Operations

__all__ = ["AsyncPostgresStore"]

T = TypeVar("T")


class _LoopPool:
    """The connections that one event loop uses."""

    def __init__(self, size: int) -> None:
        self.pid = os.getpid()
        self.idle: list[Any] = []
        self.free = asyncio.Semaphore(size)
        self.setting_up = asyncio.Lock()


class AsyncPostgresStore:
    """:class:`PostgresStore` for ``aresolve``, ``astream`` and their like: every method but
    :meth:`close` returns an awaitable. Same tables, same promises, no remembered entries; both may
    be open on one database at once. Each event loop has connections of its own.

    The first call connects, for a constructor cannot wait: a server that will not do makes that
    call, and the later ones, raise ``StoreError``.

    Args:
        url: ``postgresql://user:password@host:port/database``; the password shows up nowhere.
        schema: Name of the schema for the tables.
        timeout: Seconds one statement may take, and to wait for a free connection.
        max_connections: Connections of one event loop at most.
        max_entries: Above this many, upkeep drops those written longest ago; None keeps all.
        index_above: Vectors of one scope and embedder from which on :meth:`upkeep` builds an index.
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

    Raises:
        ConfigurationError: The packages, the URL or another argument will not do.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "stepcache",
        timeout: float = 2.0,
        max_connections: int = 8,
        max_entries: int | None = None,
        index_above: int | None = 10_000,
        max_entries_per_namespace: int | None = None,
        integrity_key: KeySource | KeyRing | None = None,
        encrypt: bool = False,
        clear_vectors: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        check_max_entries("AsyncPostgresStore", max_entries)
        check_max_entries(
            "AsyncPostgresStore", max_entries_per_namespace, "max_entries_per_namespace"
        )
        check_numbers("AsyncPostgresStore", timeout=timeout, max_connections=max_connections)
        self._address = Address(url, timeout)
        self._operations = Operations(
            schema,
            clock,
            RecordGuard(
                "AsyncPostgresStore", integrity_key, encrypt=encrypt, remembered=256, largest=16_384
            ),
            clear_vectors=clear_vectors,
            most_of_one=max_entries_per_namespace,
        )
        self._errors: type[Exception] = psycopg_module().Error
        self._size = max_connections
        self._patience = timeout + GRACE
        self._max_entries = max_entries
        self._index_above = index_above
        self._health = Health(self._address.place)
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopPool] = WeakKeyDictionary()
        self._abandoned: list[_LoopPool] = []
        self._ready = False
        self._closed = False

    def __repr__(self) -> str:
        return (
            f"AsyncPostgresStore({self._address.place!r}, schema={self._operations.sql.schema!r})"
        )

    @property
    def unreadable(self) -> int:
        """Rows this store met whose record was not to be believed; each was a miss."""
        return self._operations.guard.refused

    @property
    def refusals(self) -> dict[str, int]:
        """Records met that were not served, by reason, as :attr:`SQLiteStore.refusals`."""
        return self._operations.guard.refusals

    async def get(self, scope: str, key: str, /) -> Entry | None:
        """As :meth:`PostgresStore.get`."""
        return (await self._run(lambda: self._operations.get(scope, key))).entry

    async def search(
        self, scope: str, vector: Vector, fingerprint: str, /, *, limit: int
    ) -> tuple[Match, ...]:
        """As :meth:`PostgresStore.search`."""
        return await self._run(lambda: self._operations.search(scope, vector, fingerprint, limit))

    async def put(
        self, entry: Entry, vector: Vector | None, fingerprint: str, /, *, ttl: float | None = None
    ) -> None:
        """As :meth:`PostgresStore.put`."""
        await self._run(lambda: self._operations.put(entry, vector, fingerprint, ttl))

    async def put_leased(
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
        """As :meth:`PostgresStore.put_leased`."""
        lease = (key, token)
        return await self._run(lambda: self._operations.put(entry, vector, fingerprint, ttl, lease))

    async def remove(self, entry_id: str, /) -> bool:
        """As :meth:`PostgresStore.remove`."""
        return await self._run(lambda: self._operations.remove(entry_id), check=True)

    async def clear(self, scope: str | None = None, /) -> int:
        """As :meth:`PostgresStore.clear`."""
        return await self._run(lambda: self._operations.clear(scope), check=True, patience=LONG)

    async def count(self, scope: str | None = None, /) -> int:
        """As :meth:`PostgresStore.count`."""
        return await self._run(lambda: self._operations.count(scope))

    async def find(self, entry_id: str, /) -> Entry | None:
        """As :meth:`PostgresStore.find`."""
        return await self._run(lambda: self._operations.find(entry_id))

    async def entries(self) -> tuple[Entry, ...]:
        """Every live entry, the oldest first."""
        everything: list[Entry] = []
        after: int | None = 0
        while after is not None:
            page, after = await self._run(self._operations.pager(after))
            everything += page
        return tuple(everything)

    async def acquire(self, key: str, seconds: float, /) -> int | None:
        """As :meth:`PostgresStore.acquire`."""
        holder = uuid.uuid4().hex
        return await self._run(lambda: self._operations.acquire(key, holder, seconds))

    async def renew(self, key: str, token: int, seconds: float, /) -> bool:
        """As :meth:`PostgresStore.renew`."""
        return await self._run(lambda: self._operations.renew(key, token, seconds))

    async def release(self, key: str, token: int, /) -> bool:
        """As :meth:`PostgresStore.release`."""
        return await self._run(lambda: self._operations.release(key, token))

    async def upkeep(self) -> tuple[int, ...]:
        """As :meth:`PostgresStore.upkeep`; nothing does it by itself here."""
        self._check_open()
        self._health.ask()
        operation = self._operations.upkeep(0.0, self._max_entries, self._index_above)
        try:
            async with await self._address.aconnect() as connection:
                return await _driven(connection, operation) or ()
        except self._errors as error:
            raise self._address.failed(error) from error

    async def rotate(self) -> int:
        """As :meth:`PostgresStore.rotate`."""
        count = 0
        after: int | None = 0
        while after is not None:
            done, after = await self._run(self._operations.resealer(after), patience=LONG)
            count += done
        self._operations.guard.forget()
        return count

    async def close(self) -> None:
        """Close this loop's connections, and other loops' when they are next used. Further calls
        raise, except to close again."""
        self._closed = True
        self._leave_ended_loops()
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None and pool.pid == os.getpid():
            await _empty(pool)

    # --- inside ----------------------------------------------------------------------------------

    async def _run(
        self,
        operation: Callable[[], Op[T]],
        *,
        patience: float | None = None,
        check: bool = False,
    ) -> T:
        pool = self._pool()
        again = True
        while True:
            new, begun = True, time.monotonic()
            try:
                async with self._lend(pool, patience or self._patience) as (connection, new):
                    if check and not new:
                        await connection.execute("SELECT 1")
                    result = await _driven(connection, operation())
                self._health.well()
            except self._errors as error:
                spent = time.monotonic() - begun
                if getattr(error, "sqlstate", None) == "57014":
                    self._health.slow(spent)
                gone = connection.closed or connection.broken
                if gone:
                    await _empty(pool)
                if gone and again and not new and spent < self._patience:
                    again = False
                    continue
                raise self._address.failed(error) from error
            else:
                return result

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed: open a new one")

    def _pool(self) -> _LoopPool:
        self._check_open()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None or pool.pid != os.getpid():
            if pool is not None:
                self._abandoned.append(pool)  # the parent's sockets: neither used nor closed
            self._leave_ended_loops()
            pool = self._pools[loop] = _LoopPool(self._size)
            finalize(loop, _hang_up, pool)
        return pool

    def _leave_ended_loops(self) -> None:
        for ended in [loop for loop in self._pools if loop.is_closed()]:
            _hang_up(self._pools.pop(ended))

    @asynccontextmanager
    async def _lend(self, pool: _LoopPool, patience: float) -> AsyncIterator[tuple[Any, bool]]:
        try:
            await asyncio.wait_for(pool.free.acquire(), self._address.timeout)
        except TimeoutError:
            raise StoreError(
                f"no connection is free, of {self._size}: raise max_connections"
            ) from None
        try:
            new = not pool.idle
            connection = await self._connected(pool) if new else pool.idle.pop()
            begun = time.monotonic()
            number = watch().begin(connection, patience)
            in_time = whole = False
            try:
                yield connection, new
                whole = True
            except self._errors:
                whole = True
                raise
            finally:
                in_time = watch().end(number)
                if not in_time:
                    self._health.failed(time.monotonic() - begun, "it did not answer in time")
                # One whose statement was cancelled on this side may still be talking.
                await self._give_back(pool, connection, usable=in_time and whole)
        finally:
            pool.free.release()

    async def _connected(self, pool: _LoopPool) -> Any:
        self._health.ask()
        begun = time.monotonic()
        try:
            connection = await self._address.aconnect()
            try:
                await self._prepare(pool, connection)
            except BaseException:
                await _close(connection)
                raise
        except ConfigurationError as error:
            raise StoreError(str(error)) from error
        except Exception as error:
            self._health.failed(time.monotonic() - begun, "it cannot be reached")
            raise self._address.failed(error) from error
        return connection

    async def _prepare(self, pool: _LoopPool, connection: Any) -> None:
        from pgvector.psycopg import register_vector_async

        async with pool.setting_up:
            if not self._ready:
                number = watch().begin(connection, LONG)
                try:
                    await _driven(connection, self._operations.migrate())
                finally:
                    watch().end(number)
                self._ready = True
        await register_vector_async(connection)

    async def _give_back(self, pool: _LoopPool, connection: Any, *, usable: bool) -> None:
        usable = usable and not connection.closed and not connection.broken
        if usable and connection.info.transaction_status != 0:
            with suppress(Exception):
                await connection.rollback()
            usable = connection.info.transaction_status == 0
        if usable and not self._closed:
            pool.idle.append(connection)
        else:
            await _close(connection)


async def _driven(connection: Any, operation: Op[T]) -> T:
    try:
        said = next(operation)
        while True:
            cursor = await connection.execute(*said, binary=True)
            said = operation.send(await cursor.fetchall() if cursor.description else [])
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        operation.close()


def _hang_up(pool: _LoopPool) -> None:
    """Close the connections of a loop that has ended, where nothing can be awaited."""
    if pool.pid != os.getpid():
        return
    idle, pool.idle = pool.idle, []
    for connection in idle:
        connection.pgconn.finish()


async def _empty(pool: _LoopPool) -> None:
    idle, pool.idle = pool.idle, []
    for connection in idle:
        await _close(connection)


async def _close(connection: Any) -> None:
    with suppress(Exception):
        await connection.close()
