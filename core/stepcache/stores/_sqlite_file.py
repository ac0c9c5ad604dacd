"""Opening a SQLite file: what it must be, how it is tuned, and one connection per thread.

A connection never crosses a fork: the child opens its own and leaves the parent's alone, which
SQLite demands even of closing them. And a fork waits until no thread is inside SQLite, whose own
mutexes would stay locked in the child for ever.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

from stepcache._errors import ConfigurationError, StoreError

__all__ = ["BUSY_SECONDS", "Database"]

_APPLICATION_ID = 0x53746570  # "Step"
BUSY_SECONDS = 30.0
_MAX_VALUE_BYTES = 64 * 2**20
_PAGE_BYTES = 2048
"""An entry changes some seven pages, and every one is written out whole. Measured: admitting takes
a tenth less time than with SQLite's 4096, and a file is a third smaller, a look-up as long."""

# Numbers are never used again (AUTOINCREMENT): a later number is a newer row, in the order of
# commits, for every process. The vector stands last, so that reading a record does not walk it.
_SCHEMA = (
    """CREATE TABLE entries (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        scope BLOB NOT NULL,
        exact_key BLOB NOT NULL,
        canonical_key BLOB,
        entry_id BLOB NOT NULL,
        fingerprint BLOB,
        expires REAL,
        checksum INTEGER NOT NULL,
        record BLOB NOT NULL,
        vector BLOB,
        UNIQUE (scope, exact_key)
    )""",
    "CREATE INDEX entries_by_canonical_key ON entries (scope, canonical_key)"
    " WHERE canonical_key IS NOT NULL",
    "CREATE INDEX entries_by_id ON entries (entry_id)",
    "CREATE INDEX entries_by_fingerprint ON entries (scope, fingerprint)"
    " WHERE fingerprint IS NOT NULL",
    "CREATE INDEX entries_by_deadline ON entries (expires) WHERE expires IS NOT NULL",
)
# What eviction and invalidation go by, kept by triggers so that every writer keeps it: how many
# entries of how many bytes there are, up to which number they are invalid, and (of stores that
# rank) how worth keeping each is.
_SECOND = (
    """CREATE TABLE totals (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        entries INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        inflation REAL NOT NULL
    )""",
    "CREATE TABLE uses (number INTEGER PRIMARY KEY, rank REAL NOT NULL, uses INTEGER NOT NULL)",
    "CREATE INDEX uses_by_rank ON uses (rank)",
    """CREATE TRIGGER entry_came AFTER INSERT ON entries BEGIN
        UPDATE totals SET entries = entries + 1,
            bytes = bytes + length(new.record) + coalesce(length(new.vector), 0);
    END""",
    """CREATE TRIGGER entry_went AFTER DELETE ON entries BEGIN
        UPDATE totals SET entries = entries - 1,
            bytes = bytes - length(old.record) - coalesce(length(old.vector), 0);
        DELETE FROM uses WHERE number = old.number;
    END""",
    "INSERT INTO totals SELECT 1, count(*),"
    " coalesce(sum(length(record) + coalesce(length(vector), 0)), 0), 0, 0 FROM entries",
)
# Whose an entry is: a digest of its namespace, for what one namespace may keep.
_THIRD = (
    "ALTER TABLE entries ADD COLUMN tenant BLOB",
    "CREATE INDEX entries_by_tenant ON entries (tenant) WHERE tenant IS NOT NULL",
)
# Who is making which answer, by tokens that are never given again; and up to which number a
# namespace's entries are invalid, for as long as there are any.
_FOURTH = (
    "ALTER TABLE totals ADD COLUMN token INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE leases (key BLOB PRIMARY KEY, token INTEGER NOT NULL, until REAL NOT NULL,"
    " holder TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE epochs (tenant BLOB PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID",
)
_VERSIONS = (_SCHEMA, _SECOND, _THIRD, _FOURTH)
"""The statements that lead from each version of the schema to the next."""
_COLUMNS = (
    "SELECT number, scope, exact_key, canonical_key, entry_id, fingerprint, expires, checksum,"
    " record, vector, entries.tenant, totals.epoch, totals.token, inflation, rank, uses, holder,"
    " epochs.epoch FROM entries LEFT JOIN uses USING (number), totals, leases, epochs LIMIT 0"
)
# One statement: another process may be giving the file its schema right now.
_NATURE = (
    "SELECT (SELECT count(*) FROM sqlite_master),"
    " (SELECT application_id FROM pragma_application_id),"
    " (SELECT user_version FROM pragma_user_version)"
)

# Measured for rows of key, vector and 2 KB; the last two are for files that are not to be trusted.
_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA mmap_size = 268435456",
    "PRAGMA cache_size = -65536",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA recursive_triggers = ON",  # a row that is replaced is a row that went
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)

_FORK_PATIENCE = 10.0
"""Seconds a fork waits for one thread; a handler that forks in mid-statement waits for itself."""

_gate = threading.RLock()  # around SQLite calls that no handle's lock covers
_forking = threading.RLock()
_held: list[threading.Lock | threading.RLock] = []
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_pinned: list[_Handle] = []
"""What a fork must not take down with the threads that are gone in the child."""
_abandoned: list[_Handle] = []
"""The parent's connections, in a child: neither used nor closed."""
_fork_hook: list[bool] = []

_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What a statement raises; the second where a damaged file gets into the message of the first."""


class _Handle:
    """One thread's connection; a context that lends it and words its errors.

    An interrupt may strike between the lines of a context's own methods. Only this thread lends the
    connection, once at a time; so what it finds locked or begun, an interrupt left behind.
    """

    __slots__ = ("__weakref__", "_connection", "_path", "close", "lock")

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self.lock = threading.RLock()  # against close() from another thread in mid-statement
        self._path = path
        self.close = weakref.finalize(self, _close, connection, self.lock)

    def __enter__(self) -> sqlite3.Connection:
        self.lock.acquire()
        if not self.close.alive:
            self.lock.release()
            raise _closed(self._path)
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except _FAILURES:
            pass  # the error that led here says more
        finally:
            with suppress(RuntimeError):  # once too often, in case an interrupt left it locked
                while True:
                    self.lock.release()
        if isinstance(error, _FAILURES):
            raise StoreError(f"the store {self._path!r} failed: {error}") from error


def _close(connection: sqlite3.Connection, lock: threading.RLock) -> None:
    with lock, _gate:
        connection.close()


def _closed(path: str) -> StoreError:
    return StoreError(f"the store {path!r} is closed: open a new one")


class Database:
    """A checked SQLite file.

    Args:
        path: Where it is, or shall be.

    Attributes:
        path: The same, absolute.
        generation: Rises in a child process: what was derived from the file may be mid-change.

    Raises:
        ConfigurationError: The file cannot be opened, is not SQLite, is somebody else's, or was
            written by a newer version; the message names the path, the reason and what to do.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = _checked_path(path)
        self.generation = 0
        self._closed = False
        self._local = threading.local()
        self._handles: weakref.WeakSet[_Handle] = weakref.WeakSet()
        self._lock = threading.Lock()
        _watch_forks()
        with _gate:
            _create(self.path)
            self._check()
            _databases.add(self)

    def lend(self) -> _Handle:
        """This thread's connection, as a context.

        Raises:
            StoreError: The database is closed, or a statement inside the context failed.
        """
        handle: _Handle | None = getattr(self._local, "handle", None)
        if handle is None:
            handle = self._open()
        return handle

    def close(self) -> None:
        """Close every connection, once its statement is done. Later calls raise."""
        with self._lock:
            self._closed = True
            handles = list(self._handles)
        for handle in handles:
            handle.close()

    def _check(self) -> None:
        connection = None
        try:
            connection = self._connect()
            _prepare(connection, self.path)
        except _FAILURES as error:
            _refuse(self.path, str(error), "pass the path of a SQLite file, or of none yet", error)
        finally:
            if connection is not None:
                connection.close()

    def _open(self) -> _Handle:
        with self._lock:
            if self._closed:
                raise _closed(self.path)
            try:
                handle = _Handle(self._connect(), self.path)
            except _FAILURES as error:
                raise StoreError(f"the store {self.path!r} failed: {error}") from error
            self._handles.add(handle)
        self._local.handle = handle
        return handle

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            for pragma in _PRAGMAS:
                connection.execute(pragma)
        except _FAILURES:
            connection.close()
            raise
        return connection

    def _after_fork(self) -> None:
        self._local = threading.local()
        self._handles = weakref.WeakSet()
        self._lock = threading.Lock()
        self.generation += 1


# --- forks -------------------------------------------------------------------------------------


def _watch_forks() -> None:
    if not _fork_hook and hasattr(os, "register_at_fork"):
        _fork_hook.append(True)
        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_after_fork_in_parent,
            after_in_child=_after_fork_in_child,
        )


def _before_fork() -> None:
    _forking.acquire()
    for database in list(_databases):
        _hold(database._lock)  # it opens no more connections now
        handles = list(database._handles)
        _pinned.extend(handles)
        for handle in handles:
            _hold(handle.lock)
    _hold(_gate)


def _hold(lock: threading.Lock | threading.RLock) -> None:
    if lock.acquire(timeout=_FORK_PATIENCE):
        _held.append(lock)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().release()
    _pinned.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    global _gate, _forking
    _held.clear()
    _gate, _forking = threading.RLock(), threading.RLock()
    for handle in _pinned:
        handle.close.detach()
    _abandoned.extend(_pinned)
    _pinned.clear()
    for database in list(_databases):
        database._after_fork()


# --- opening -----------------------------------------------------------------------------------


def _refuse(path: object, reason: str, fix: str, cause: BaseException | None = None) -> NoReturn:
    raise ConfigurationError(f"SQLiteStore({path!r}): {reason}; {fix}") from cause


def _checked_path(path: str | os.PathLike[str]) -> str:
    try:
        text = os.fsdecode(path)
    except TypeError as error:
        _refuse(path, f"a {type(path).__name__} is no path", "pass a str or a Path", error)
    if not text or text.startswith(":memory:"):
        _refuse(path, "a file is needed", "use MemoryStore() to keep entries in memory")
    if text.startswith("file:"):
        _refuse(path, "SQLite URIs are not taken", "pass the plain path of the file")
    if "\0" in text:
        _refuse(path, "a path cannot hold NUL", "pass another path")
    return os.path.abspath(os.path.expanduser(text))


def _create(path: str) -> None:
    """Make sure there is a file, readable by its owner only; SQLite's own files take its mode.

    One that is there is not opened here: closing it again would drop the locks that this process
    holds on it through SQLite.
    """
    if os.path.isdir(path):
        _refuse(path, "it is a directory", "add a file name")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
        os.close(os.open(path, flags, 0o600))
    except FileExistsError as error:
        if not os.path.isfile(path):
            _refuse(path, f"{error.filename!r} is in the way", "choose another path", error)
    except OSError as error:
        _refuse(path, f"it cannot be created ({error.strerror})", "choose a writable place", error)


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Give an empty file our schema; refuse any other that does not have it."""
    if _version(connection, path) != len(_VERSIONS):
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # heeded by an empty file only
        _patiently(connection, "PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have been faster since.
        version = _version(connection, path)
        for statements in _VERSIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(_VERSIONS)}")
        connection.execute("COMMIT")
    connection.execute(_COLUMNS).close()
    # A file that nobody can write to would fail at the first put: say so now.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection, path: str) -> int:
    """The version of our schema that a file has; 0 for an empty one. Refuses any other."""
    tables, owner, version = connection.execute(_NATURE).fetchone()
    if not tables and not owner and not version:
        return 0
    if owner != _APPLICATION_ID:
        _refuse(path, "the database belongs to another application", "choose another file")
    if not 1 <= version <= len(_VERSIONS):
        _refuse(
            path,
            f"its schema has version {version}, and this release reads {len(_VERSIONS)}",
            "upgrade stepcache, or choose another file",
        )
    return int(version)


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement that does not wait for locks by itself."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
