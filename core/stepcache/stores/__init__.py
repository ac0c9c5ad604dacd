"""Stores: where entries are kept. Import one by name; nothing is loaded before that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepcache.stores._memory import MemoryStore

__all__ = ["MemoryStore"]

_HOMES = {"MemoryStore": "stepcache.stores._memory"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
