"""Every store we ship keeps the store contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepcache.stores import MemoryStore, SQLiteStore
from stepcache.testing.stores import Clock, StoreContract


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
