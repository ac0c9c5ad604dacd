"""Between a store and its storage: what goes out is sealed, what comes back is verified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stepcache._forking import fork_safe_lock
from stepcache._notices import tell
from stepcache._types import Entry
from stepcache.protocols import Vector
from stepcache.stores._keys import KeyRing, KeySource, key_ring
from stepcache.stores._record import encode
from stepcache.stores._seal import (
    BAD,
    Opened,
    Reason,
    Refused,
    aead,
    binding,
    hide,
    key_of,
    open_record,
    seal,
    unhide,
)

__all__ = ["Opened", "RecordGuard", "Refused", "Sealed", "as_vector"]

_WORDS: dict[Reason, str] = {
    "forged": "its seal does not hold",
    "malformed": "it is no record",
    "misplaced": "it is not what belongs there",
    "unsealed": "it has no seal",
    "newer": "it is of another release",
    "unknown key": "it was sealed with a key that is not known here",
}


class Sealed(NamedTuple):
    """What a store keeps of an entry."""

    record: bytes
    vector: bytes | None
    """float32 numbers, little-endian, or hidden where records are encrypted."""


class RecordGuard:
    """Seals entries and believes nothing that is not sealed. Thread-safe; for stores to use.

    Args:
        owner: The store, for messages.
        integrity_key: Keys, a key file, or None for what the environment or a file offers; see
            :func:`stepcache.stores._keys.key_ring`.
        beside: A store's file, beside which a key may lie.
        encrypt: Make records and vectors unreadable without the key.
        remembered: Records of which the entry is remembered: equal bytes are verified once.
        largest: Bytes of the largest record that is remembered.

    Raises:
        ConfigurationError: No usable key, or no cipher.
    """

    def __init__(
        self,
        owner: str,
        integrity_key: KeySource | KeyRing | None = None,
        *,
        beside: str | None = None,
        encrypt: bool = False,
        remembered: int = 1024,
        largest: int = 8_192,
    ) -> None:
        if encrypt:
            aead()
        self.ring = key_ring(owner, integrity_key, beside=beside)
        self.encrypt = encrypt
        self._largest = largest
        self._lock = fork_safe_lock()
        self._counts: Counter[str] = Counter()
        # Whether bytes are genuine depends on them and on the keys alone. What is refused is not
        # remembered, for the ring may learn a key.
        self._open_again: Callable[[bytes], Opened] = lru_cache(maxsize=remembered)(self._open)

    @property
    def refusals(self) -> dict[str, int]:
        """Records refused so far, by reason."""
        with self._lock:
            return dict(self._counts)

    @property
    def refused(self) -> int:
        """Records refused so far."""
        with self._lock:
            return self._counts.total()

    def seal(self, entry: Entry, unit: Vector | None = None, fingerprint: str = "") -> Sealed:
        """What to keep of an entry and its vector.

        Args:
            unit: float32 array of shape (dimension,).

        Raises:
            StoreError: The entry has no record.
        """
        vector = None if unit is None else unit.astype("<f4", copy=False).tobytes()
        return Sealed(
            self.reseal(entry, binding(fingerprint, vector)),
            hide(vector, self.ring.newest) if vector is not None and self.encrypt else vector,
        )

    def reseal(self, entry: Entry, bound: bytes) -> bytes:
        """The record of an entry that stays bound to the vector it has."""
        return seal(encode(entry), bound, self.ring.newest, encrypt=self.encrypt)

    def open(self, blob: object) -> Opened:
        """What a stored record holds.

        Raises:
            Refused: It is not genuine; say so with :meth:`refuse`.
        """
        if isinstance(blob, bytes) and len(blob) <= self._largest:
            return self._open_again(blob)
        return open_record(blob, self.ring)

    def _open(self, blob: bytes) -> Opened:
        return open_record(blob, self.ring)

    def refuse(self, reason: Reason) -> bool:
        """Count a record that is not believed and tell the engine; whether it is to be removed."""
        bad = reason in BAD
        with self._lock:
            self._counts[reason] += 1
        tell(f"a stored record is {'removed' if bad else 'not used'}: {_WORDS[reason]}")
        return bad

    def vector(self, blob: object) -> bytes | None:
        """The bytes of a stored vector; None for what is none."""
        return unhide(blob, self.ring)

    def holds(self, opened: Opened, fingerprint: str, blob: object) -> bool:
        """Whether this is the very vector that the record was kept with."""
        vector = None if blob is None else self.vector(blob)
        if vector is None and blob is not None:
            return False
        return opened.bound == binding(fingerprint, vector)

    def is_current(self, blob: object) -> bool:
        """Whether a record is sealed with the newest key, in the form that is wanted now."""
        wanted = bytes([int(self.encrypt)])
        return (
            key_of(blob) == self.ring.newest.id and isinstance(blob, bytes) and blob[1:2] == wanted
        )

    def forget(self) -> None:
        """Let go of remembered entries."""
        self._open_again.cache_clear()  # type: ignore[attr-defined]


def as_vector(data: bytes) -> Vector:
    """Stored bytes as float32 numbers."""
    vector: Vector = np.frombuffer(data, dtype="<f4")
    return vector
