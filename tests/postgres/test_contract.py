"""The PostgreSQL store keeps the store contract, with and without entries remembered locally."""

from collections.abc import Callable

import pytest

from stepcache.stores import PostgresStore
from stepcache.testing.stores import Clock, StoreContract


class TestPostgresStore(StoreContract):
    """Every call asks the server."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock, opened: Callable[..., PostgresStore]) -> PostgresStore:
        return opened(clock=clock)


class TestPostgresStoreWithLocalEntries(StoreContract):
    """What one process does itself it sees at once, though it remembers entries."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock, opened: Callable[..., PostgresStore]) -> PostgresStore:
        return opened(clock=clock, local_entries=100)
