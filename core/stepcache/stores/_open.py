"""From what a user writes for a store to a store."""

from __future__ import annotations

import os

from stepcache._errors import ConfigurationError
from stepcache.protocols import Store

__all__ = ["open_store"]

_SCHEMES = "a file's path, 'sqlite:///path', 'postgresql://user@host/database' or 'memory:'"


def open_store(store: str | os.PathLike[str] | Store | None = None) -> Store:
    """The store somebody means.

    Args:
        store: None or ``"memory:"`` for a new :class:`MemoryStore`; a path, or
            ``"sqlite:///relative"`` or ``"sqlite:////absolute"``, for a :class:`SQLiteStore`; a URL
            ``"postgresql://user:password@host:port/database"`` for a :class:`PostgresStore`; or an
            object with the methods of :class:`stepcache.protocols.Store`, which is returned.

    Raises:
        ConfigurationError: Anything else, or a file or server that cannot be used.
    """
    if store is None:
        return _memory()
    if isinstance(store, str):
        return _from_text(store)
    if isinstance(store, os.PathLike):
        return _sqlite(store)
    if isinstance(store, Store) and not isinstance(store, type):
        return store
    raise _refused(store, "it lacks methods of stepcache.protocols.Store")


def _from_text(text: str) -> Store:
    if text in ("memory:", "memory://"):
        return _memory()
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _sqlite(text)
    scheme = scheme.lower()
    if scheme == "sqlite":
        if not rest.startswith("/") or rest == "/":
            raise _refused(text, "a SQLite URL has three slashes before its path")
        return _sqlite(rest[1:])
    if scheme in ("postgresql", "postgres"):
        from stepcache.stores._postgres import PostgresStore

        return PostgresStore(text)
    raise _refused(_without_password(text), f"the scheme {scheme!r} is unknown")


def _memory() -> Store:
    from stepcache.stores._memory import MemoryStore

    return MemoryStore()


def _sqlite(path: str | os.PathLike[str]) -> Store:
    from stepcache.stores._sqlite import SQLiteStore

    return SQLiteStore(path)


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("?")[0].partition("://")
    _, at, place = rest.rpartition("@")
    return f"{scheme}://***@{place}" if at else f"{scheme}://{rest}"


def _refused(store: object, reason: str) -> ConfigurationError:
    return ConfigurationError(f"store={store!r}: {reason}; use {_SCHEMES}, or a Store object")
