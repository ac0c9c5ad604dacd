"""Every store we ship keeps the store contract."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from stepcache.stores import MemoryStore, SQLiteStore
from stepcache.testing import Clock, NamespaceLimitContract, SealedStoreContract, StoreContract


class TestMemoryStore(StoreContract):
    """The store of one process."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock) -> Iterator[MemoryStore]:
        store = MemoryStore(clock=clock)
        yield store
        store.close()


class TestSQLiteStore(StoreContract):
    """The store of one machine."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock, tmp_path: Path) -> Iterator[SQLiteStore]:
        store = SQLiteStore(tmp_path / "cache.db", clock=clock)
        yield store
        assert store.unreadable == 0
        store.close()


class TestEncryptedSQLiteStore(TestSQLiteStore):
    """The same, with everything in the file encrypted."""

    @pytest.fixture
    def store(self, clock: Clock, tmp_path: Path) -> Iterator[SQLiteStore]:
        store = SQLiteStore(tmp_path / "cache.db", clock=clock, encrypt=True)
        yield store
        assert store.unreadable == 0
        store.close()


@pytest.mark.parametrize("encrypt", [False, True])
class TestSealedSQLiteStore(SealedStoreContract):
    """What others write into the file is not believed."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock, tmp_path: Path, encrypt: bool) -> Iterator[SQLiteStore]:
        store = SQLiteStore(tmp_path / "cache.db", clock=clock, encrypt=encrypt)
        yield store
        store.close()

    @pytest.fixture
    def tamper(self, store: SQLiteStore) -> Callable[[Callable[[bytes], bytes]], None]:
        def tampered(edit: Callable[[bytes], bytes]) -> None:
            connection = sqlite3.connect(store.path)
            rows: list[Any] = connection.execute("SELECT record, number FROM entries").fetchall()
            edited = [(edit(record), number) for record, number in rows]
            values = [(record, crc32(record), number) for record, number in edited]
            with connection:
                connection.executemany(
                    "UPDATE entries SET record = ?, checksum = ? WHERE number = ?", values
                )
            connection.close()

        return tampered


class TestLimitedMemoryStore(NamespaceLimitContract):
    """At most three entries of one namespace, in memory."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock) -> Iterator[MemoryStore]:
        store = MemoryStore(clock=clock, max_entries_per_namespace=3)
        yield store
        store.close()


class TestLimitedSQLiteStore(NamespaceLimitContract):
    """At most three entries of one namespace, in a file."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock, tmp_path: Path) -> Iterator[SQLiteStore]:
        store = SQLiteStore(tmp_path / "cache.db", clock=clock, max_entries_per_namespace=3)
        yield store
        store.close()
