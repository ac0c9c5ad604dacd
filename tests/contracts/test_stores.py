"""Every store we ship keeps the store contract."""

from collections.abc import Iterator

import pytest

from stepcache.stores import MemoryStore
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
