"""From what a user writes for a store to a store, and what importing stores costs."""

import subprocess
import sys
from pathlib import Path

import pytest

from stepcache import stores
from stepcache._errors import ConfigurationError
from stepcache.stores import MemoryStore, SQLiteStore, open_store


@pytest.mark.parametrize("spec", [None, "memory:", "memory://"])
def test_memory(spec):
    """Nothing, or the word for it, is a new memory store each time."""
    first, second = open_store(spec), open_store(spec)
    assert type(first) is type(second) is MemoryStore
    assert first is not second


def test_files(tmp_path, monkeypatch):
    """Paths and SQLite URLs, relative and absolute, open that file."""
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "cache.db"
    for spec in (target, str(target), "cache.db", "sqlite:///cache.db", f"sqlite:///{target}"):
        store = open_store(spec)
        assert isinstance(store, SQLiteStore)
        assert Path(store.path) == target
        store.close()


def test_objects():
    """An object with a store's methods is taken as it is."""
    store = MemoryStore()
    assert open_store(store) is store


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("postgresql://me:secret@127.0.0.1:1/db", "'127.0.0.1/db' cannot be used|needs psycopg"),
        ("postgres://me:secret@127.0.0.1:x/db?password=secret", "cannot be used|needs psycopg"),
        ("postgres://me:sec%zzret@host/db?password=secret", "cannot be read|needs psycopg"),
        ("redis://:secret@host", "'redis' is unknown.*memory:"),
        ("sqlite://cache.db", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("sqlite:///:memory:", "MemoryStore"),
        (":memory:", "MemoryStore"),
        ("", "MemoryStore"),
        (7, "store=7.*methods.*Store object"),
        (MemoryStore, "methods"),
        (object(), "methods"),
    ],
)
def test_anything_else_is_named(spec, words, monkeypatch):
    """The error says what was given, why it will not do and what will; passwords stay out."""
    monkeypatch.setenv("STEPCACHE_KEY", "5a" * 32)
    with pytest.raises(ConfigurationError, match=f"(?s){words}") as caught:
        open_store(spec)
    assert "secret" not in str(caught.value)


def test_names_are_listed():
    """The public names can be listed and reached; others are attribute errors."""
    assert dir(stores) == [
        "AsyncPostgresStore",
        "MemoryStore",
        "PostgresStore",
        "RecordGuard",
        "SQLiteStore",
        "open_store",
    ]
    with pytest.raises(AttributeError, match="Nowhere"):
        stores.Nowhere  # noqa: B018


def test_importing_stores_loads_nothing_heavy():
    """Neither FAISS, SQLite nor psycopg is loaded before a store needs it."""
    script = (
        "import sys, stepcache.stores; assert not {'faiss', 'numpy', 'psycopg', 'sqlite3'} & {*sys.modules};"
        "stepcache.stores.MemoryStore(); assert not {'faiss', 'sqlite3'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
