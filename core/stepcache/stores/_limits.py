"""How much a store keeps, and who goes first when that is too much."""

from __future__ import annotations

from dataclasses import dataclass

from stepcache._counts import count
from stepcache._errors import ConfigurationError, StoreError
from stepcache.stores._check import check_max_entries

__all__ = ["Limits"]

_POLICIES = ("oldest", "lru", "lfu-size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a store.

    Args:
        store: Its name, for messages.

    Raises:
        ConfigurationError: A value that cannot work.
    """

    store: str
    max_entries: int | None
    max_bytes: int | None
    evict: str
    max_entries_per_namespace: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_entries", "max_bytes", "max_entries_per_namespace"):
            check_max_entries(self.store, getattr(self, name), name)
        if self.evict not in _POLICIES:
            raise ConfigurationError(
                f"{self.store}(evict={self.evict!r}): use one of {', '.join(_POLICIES)}"
            )

    @property
    def of_all(self) -> bool:
        """Whether all entries together are limited."""
        return self.max_entries is not None or self.max_bytes is not None

    @property
    def any(self) -> bool:
        """Whether anything is limited."""
        return self.of_all or self.max_entries_per_namespace is not None

    def check(self, size: int) -> None:
        """Refuse an entry that can never be kept.

        Raises:
            StoreError: It is larger than the whole store may be.
        """
        most = self.max_bytes
        if most is not None and size > most:
            raise StoreError(f"an entry of {count(size, 'byte')} is larger than max_bytes={most}")
