"""What tests need: fakes for models and failing ports, and suites for ports and tasks.

Import a name from here; nothing is loaded before that. The suites are run by pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepcache.testing.backends import (
        AsyncScriptedBackend,
        CountingEmbedder,
        FaultyEmbedder,
        FaultyStore,
        Interrupted,
        ScriptedBackend,
    )
    from stepcache.testing.embedders import EmbedderContract
    from stepcache.testing.sealed import NamespaceLimitContract, SealedStoreContract
    from stepcache.testing.stores import Clock, StoreContract
    from stepcache.testing.tasks import TaskContract

__all__ = [
    "AsyncScriptedBackend",
    "Clock",
    "CountingEmbedder",
    "EmbedderContract",
    "FaultyEmbedder",
    "FaultyStore",
    "Interrupted",
    "NamespaceLimitContract",
    "ScriptedBackend",
    "SealedStoreContract",
    "StoreContract",
    "TaskContract",
]

_HOMES = {
    "AsyncScriptedBackend": "stepcache.testing.backends",
    "Clock": "stepcache.testing.stores",
    "CountingEmbedder": "stepcache.testing.backends",
    "EmbedderContract": "stepcache.testing.embedders",
    "FaultyEmbedder": "stepcache.testing.backends",
    "FaultyStore": "stepcache.testing.backends",
    "Interrupted": "stepcache.testing.backends",
    "NamespaceLimitContract": "stepcache.testing.sealed",
    "ScriptedBackend": "stepcache.testing.backends",
    "SealedStoreContract": "stepcache.testing.sealed",
    "StoreContract": "stepcache.testing.stores",
    "TaskContract": "stepcache.testing.tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
