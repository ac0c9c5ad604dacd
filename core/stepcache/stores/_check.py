"""Checks that every store makes, worded once."""

from __future__ import annotations

import math
from dataclasses import replace

from stepcache._errors import ConfigurationError, StoreError
from stepcache._types import Entry

__all__ = ["check_max_entries", "stamped"]


def check_max_entries(store: str, value: int | None, name: str = "max_entries") -> None:
    """Refuse a capacity that cannot work.

    Raises:
        ConfigurationError: Not None and not a whole number above 0.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return
    raise ConfigurationError(
        f"{store}({name}={value!r}): use a whole number above 0, or None for no limit"
    )


def stamped(entry: Entry, now: float, ttl: float | None) -> Entry:
    """The entry as a store keeps it: created now, expiring ``ttl`` seconds later.

    Without a ``ttl`` it keeps the ``expires`` it came with: an answer served again under another
    wording grows no younger.

    Raises:
        StoreError: A time to live that is not a finite number above 0.
    """
    if ttl is None:
        return replace(entry, created=now)
    if not isinstance(ttl, (int, float)) or not 0 < ttl < math.inf:
        raise StoreError(f"ttl is {ttl!r}: use seconds above 0, or None to keep the entry")
    return replace(entry, created=now, expires=now + ttl)
