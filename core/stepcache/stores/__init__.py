"""Stores: where entries are kept. Import one by name; nothing is loaded before that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepcache.stores._guard import RecordGuard
    from stepcache.stores._memory import MemoryStore
    from stepcache.stores._open import open_store
    from stepcache.stores._postgres import PostgresStore
    from stepcache.stores._postgres_async import AsyncPostgresStore
    from stepcache.stores._sqlite import SQLiteStore

__all__ = [
    "AsyncPostgresStore",
    "MemoryStore",
    "PostgresStore",
    "RecordGuard",
    "SQLiteStore",
    "open_store",
]

_HOMES = {
    "AsyncPostgresStore": "stepcache.stores._postgres_async",
    "MemoryStore": "stepcache.stores._memory",
    "PostgresStore": "stepcache.stores._postgres",
    "RecordGuard": "stepcache.stores._guard",
    "SQLiteStore": "stepcache.stores._sqlite",
    "open_store": "stepcache.stores._open",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
