"""Connections to PostgreSQL: who may have one, how long a call may take, what its errors mean.

A cache must not hold up what it is to speed up. A server that refuses, hangs or crawls costs a call
at most its time limit, and the calls after it nothing until the next attempt is due.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from stepcache._errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["Address", "Health", "Pool", "psycopg_module", "watch"]

_PERMANENT = ("0A", "42", "58P01")
"""SQLSTATE classes that do not go by themselves: rights, syntax, a missing extension. What is wrong
with a log-in comes without one."""


def psycopg_module() -> Any:
    """psycopg 3, with pgvector beside it.

    Raises:
        ConfigurationError: One of them is not installed.
    """
    try:
        import pgvector.psycopg  # noqa: F401
        import psycopg
    except ImportError as error:
        raise ConfigurationError(
            f"PostgresStore needs psycopg and pgvector ({error}): pip install 'stepcache[postgres]'"
        ) from error
    return psycopg


class Address:
    """A checked connection URL, which never shows its password.

    Args:
        url: ``postgresql://user:password@host:port/database?option=value``.
        timeout: Seconds one statement may take.

    Raises:
        ConfigurationError: No URL of PostgreSQL.
    """

    def __init__(self, url: str, timeout: float) -> None:
        psycopg = psycopg_module()
        scheme = url.partition("://")[0].lower() if isinstance(url, str) else ""
        if scheme not in ("postgresql", "postgres"):
            raise ConfigurationError(
                "PostgresStore needs a URL that begins with postgresql://, such as "
                "postgresql://user:password@host:5432/database"
            )
        try:
            parts = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            # The parser's own words repeat the URL, so neither they nor their traceback go on.
            raise ConfigurationError(
                "the PostgreSQL URL cannot be read: percent-encode special characters of user and "
                "password, as in postgresql://user:p%40ss@host:5432/database"
            ) from None
        options = f"{parts.get('options') or ''} -c statement_timeout={max(1, int(timeout * 1000))}"
        # An index is asked on until it has found enough that passes the filter for deadlines.
        options += " -c hnsw.ef_search=100 -c hnsw.iterative_scan=strict_order"
        self._options = {
            "connect_timeout": max(2, round(timeout)),
            "application_name": "stepcache",
            "tcp_user_timeout": max(1, int(timeout * 1000)),
            "keepalives_idle": 30,
            **parts,
            "options": options,
        }
        host = parts.get("host") or parts.get("hostaddr") or "localhost"
        self.place = f"{host}/{parts.get('dbname') or parts.get('user') or ''}"
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"Address({self.place!r})"

    def connect(self) -> Connection[Any]:
        """A new connection in autocommit mode."""
        psycopg = psycopg_module()
        connection: Connection[Any] = psycopg.connect(
            "", autocommit=True, prepare_threshold=0, **self._options
        )
        return connection

    async def aconnect(self) -> Any:
        """As :meth:`connect`, asynchronously."""
        return await psycopg_module().AsyncConnection.connect(
            "", autocommit=True, prepare_threshold=0, **self._options
        )

    def failed(self, error: BaseException) -> StoreError:
        """What a call raises in place of the library's own error."""
        code = getattr(error, "sqlstate", None)
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        return StoreError(
            f"PostgreSQL at {self.place!r} failed{f' ({code})' * bool(code)}: {first}"
        )

    def refuse(self, error: BaseException) -> NoReturn:
        """Say at construction what will not go by itself.

        Raises:
            ConfigurationError: Always.
        """
        reason = str(error).strip().partition("\n")[0]
        raise ConfigurationError(
            f"PostgreSQL at {self.place!r} cannot be used: {reason}; check that it runs, that the "
            "user may create a schema in the database, and that pgvector is installed there "
            "(CREATE EXTENSION vector)"
        ) from error

    @staticmethod
    def is_permanent(error: BaseException) -> bool:
        """Whether trying again later is pointless."""
        code = getattr(error, "sqlstate", None)
        return bool(code) and str(code).startswith(_PERMANENT)


@dataclass
class Health:
    """Whether the server is worth asking now. A failure closes the door for a while that grows with
    what the attempt cost; one caller then tries, and the rest wait for how that ends."""

    place: str
    least: float = 0.5
    most: float = 10.0

    def __post_init__(self) -> None:
        self._closed_until = 0.0
        self._strikes = 0
        self._reason = ""

    def ask(self) -> None:
        """Raises:
        StoreError: It failed a moment ago.
        """
        now = time.monotonic()
        if now < self._closed_until:
            raise StoreError(
                f"PostgreSQL at {self.place!r} is left alone for {self._closed_until - now:.1f} s "
                f"more: {self._reason}"
            )

    def failed(self, cost: float, reason: str) -> None:
        """It cannot be reached, or did not answer in time."""
        self._reason = reason
        self._closed_until = time.monotonic() + min(self.most, max(self.least, 4 * cost))

    def slow(self, cost: float) -> None:
        """It gave up a statement: twice in a row is a failure."""
        self._strikes += 1
        if self._strikes > 1:
            self.failed(cost, "it answers too slowly")

    def well(self) -> None:
        """It answered."""
        self._strikes = 0


class _Watch:
    """Ends waiting for a server that says nothing: a statement's own time limit is kept by the
    server, and one that is stopped keeps none."""

    _STEP = 0.1
    _PATIENCE = 5.0

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._due: dict[int, tuple[float, Any]] = {}
        self._numbers = itertools.count()
        self._busy = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, connection: Any, seconds: float) -> int:
        number = next(self._numbers)
        self._due[number] = (time.monotonic() + seconds, connection)
        if not self._busy.is_set():
            self._busy.set()
        if self._thread is None:
            self._start()
        return number

    def end(self, number: int) -> bool:
        """Whether it was in time."""
        with self._lock:
            return self._due.pop(number, None) is not None

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="stepcache-postgres-watch", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        idle = 0.0
        while True:
            time.sleep(self._STEP)
            idle = 0.0 if self._due else idle + self._STEP
            if idle > self._PATIENCE:
                self._busy.clear()
                if not self._due:  # whoever comes from here on finds the event clear, and sets it
                    self._busy.wait()
                idle = 0.0
            self._hang_up(time.monotonic())

    def _hang_up(self, now: float) -> None:
        for number, (due, connection) in list(self._due.items()):
            if due > now:
                continue
            with self._lock:  # not while its owner gives the connection back
                if self._due.pop(number, None) is not None:
                    _shut(connection)


def _shut(connection: Any) -> None:
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


_watch: _Watch | None = None


def watch() -> _Watch:
    """The watch of this process; threads do not survive a fork."""
    global _watch
    if _watch is None or _watch._pid != os.getpid():
        _watch = _Watch()
    return _watch


class Pool:
    """Some connections, each with one thread at a time.

    Args:
        address: Where to.
        size: How many at most.
        health: Of that server.
        prepare: Run once on each new connection.
    """

    def __init__(
        self, address: Address, size: int, health: Health, prepare: Callable[[Any], None]
    ) -> None:
        self._address = address
        self._size = size
        self._health = health
        self._prepare = prepare
        self._closed = False
        self._abandoned: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._idle: list[Connection[Any]] = []
        self._free = threading.BoundedSemaphore(self._size)
        self._guard = threading.Lock()

    @contextmanager
    def lend(self, patience: float) -> Iterator[tuple[Connection[Any], bool]]:
        """A connection, and whether it is new. Broken ones are thrown away after use.

        Args:
            patience: Seconds until the server counts as hanging.

        Raises:
            StoreError: None is to be had, or the pool is closed.
        """
        if self._pid != os.getpid():
            # The parent goes on using its sockets: neither used nor closed here.
            self._abandoned.append(self._idle)
            self._reset()
        if self._closed:
            raise StoreError("the store is closed: open a new one")
        free = self._free
        if not free.acquire(timeout=self._address.timeout):
            raise StoreError(f"no connection is free, of {self._size}: raise max_connections")
        try:
            connection, new = self._take()
            watched, begun = watch(), time.monotonic()
            number = watched.begin(connection, patience)
            in_time = True
            try:
                yield connection, new
            finally:
                in_time = watched.end(number)
                self._give_back(connection, in_time)
                if not in_time:
                    self._health.failed(time.monotonic() - begun, "it did not answer in time")
        finally:
            free.release()

    def forget_idle(self) -> None:
        """Close what is not in use: the server went away."""
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            _close(connection)

    def close(self) -> None:
        """Close all; those in use as soon as they are given back."""
        self._closed = True
        self.forget_idle()

    def _take(self) -> tuple[Connection[Any], bool]:
        with self._guard:
            if self._idle:
                return self._idle.pop(), False
        self._health.ask()
        begun = time.monotonic()
        try:
            connection = self._address.connect()
            try:
                self._prepare(connection)
            except BaseException:
                _close(connection)
                raise
        except ConfigurationError as error:
            raise StoreError(str(error)) from error
        except Exception as error:
            self._health.failed(time.monotonic() - begun, "it cannot be reached")
            raise self._address.failed(error) from error
        return connection, True

    def _give_back(self, connection: Connection[Any], in_time: bool) -> None:
        usable = in_time and not connection.closed and not connection.broken
        if usable and connection.info.transaction_status != 0:  # left inside a transaction
            with suppress(Exception):
                connection.rollback()
            usable = connection.info.transaction_status == 0
        if not usable or self._closed:
            _close(connection)
            return
        with self._guard:
            self._idle.append(connection)


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()
