"""The PostgreSQL store keeps the store contract, with and without entries remembered locally."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest

from stepcache.stores import PostgresStore
from stepcache.testing import Clock, NamespaceLimitContract, SealedStoreContract, StoreContract
from stepcache.testing.stores import direction, make_entry


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


@pytest.mark.parametrize("encrypt", [False, True])
class TestSealedPostgresStore(SealedStoreContract):
    """What others write into the table is not believed."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(
        self, clock: Clock, opened: Callable[..., PostgresStore], encrypt: bool
    ) -> PostgresStore:
        return opened(clock=clock, encrypt=encrypt, clear_vectors=encrypt)

    @pytest.fixture
    def tamper(
        self, store: PostgresStore, server: Any, schema: str
    ) -> Callable[[Callable[[bytes], bytes]], None]:
        import psycopg

        def tampered(edit: Callable[[bytes], bytes]) -> None:
            table = f"{schema}.entries"
            with psycopg.connect(server.url, autocommit=True) as connection:
                rows = connection.execute(f"SELECT record, number FROM {table}").fetchall()
                for record, number in rows:
                    new = edit(bytes(record))
                    connection.execute(
                        f"UPDATE {table} SET record = %s, checksum = %s WHERE number = %s",
                        (new, crc32(new), number),
                    )

        return tampered


class TestLimitedPostgresStore(NamespaceLimitContract):
    """At most three entries of one namespace, on every host together."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock, opened: Callable[..., PostgresStore]) -> PostgresStore:
        return opened(clock=clock, max_entries_per_namespace=3)


def test_a_forged_deadline_does_not_revive(
    opened: Callable[..., PostgresStore], server: Any, schema: str
) -> None:
    """The record's own deadline counts, whatever the row says."""
    clock = Clock()
    store = opened(clock=clock)
    store.put(make_entry("a", canonical_key="c"), direction(1), "f", ttl=5)
    server.execute(f"UPDATE {schema}.entries SET expires = NULL, created = 9e9")
    clock.advance(6)
    assert store.get("scope", "exact-a") is None
    assert store.search("scope", direction(1), "f", limit=1) == ()
    assert store.find("id-scope-a") is None
    assert list(store.entries()) == []


def test_encrypted_entries_have_no_vector_unless_asked(
    opened: Callable[..., PostgresStore], server: Any, schema: str
) -> None:
    """Nothing of a text is in the table, its vector included; equal demands are still found."""
    store = opened(encrypt=True)
    store.put(make_entry("a", canonical_key="c"), direction(1), "f")
    assert store.get("scope", "c") is not None
    assert store.search("scope", direction(1), "f", limit=1) == ()
    ((record, vector),) = server.execute(f"SELECT record, embedding FROM {schema}.entries")
    assert vector is None
    assert b"It is a" not in record


def test_a_key_is_changed_without_losing_anything(opened: Callable[..., PostgresStore]) -> None:
    """After a rotation the new key alone reads all, and hosts with both keys read on."""
    old, new = b"o" * 32, b"n" * 32
    before = opened(integrity_key=old)
    before.put(make_entry("a", canonical_key="c"), direction(1), "f", ttl=500)
    both = opened(integrity_key=[new, old])
    assert both.get("scope", "c") is not None
    assert both.rotate() == 1
    assert both.rotate() == 0
    after = opened(integrity_key=new)
    assert after.get("scope", "exact-a") == both.get("scope", "exact-a")
    assert len(after.search("scope", direction(1), "f", limit=1)) == 1
    assert before.get("scope", "exact-a") is None
    assert set(before.refusals) == {"unknown key"}
