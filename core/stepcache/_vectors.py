"""Vectors of what was embedded before, apart for each tenant where tenants are kept apart."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from stepcache._forking import fork_safe_lock
from stepcache._memo import wall

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["VectorMemo"]


class VectorMemo:
    """The vectors of what was embedded last: a host that looks up, asks the model itself and brings
    the answer has its prompt embedded once. Thread-safe; holds no texts.

    Args:
        maxsize: Vectors to remember, of all namespaces together.
    """

    def __init__(self, maxsize: int = 1024) -> None:
        self._maxsize = maxsize
        self._lock = fork_safe_lock()
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()

    def get(self, fingerprint: str, views: Sequence[str]) -> Vector | None:
        """A copy of the vector, for whoever gets it may change it."""
        key = _key(fingerprint, views)
        with self._lock:
            vector = self._vectors.get(key)
            if vector is None:
                return None
            self._vectors.move_to_end(key)
            return vector.copy()

    def put(self, fingerprint: str, views: Sequence[str], vector: Vector) -> None:
        """Remember a copy of a vector."""
        key, own = _key(fingerprint, views), vector.copy()
        with self._lock:
            self._vectors[key] = own
            self._vectors.move_to_end(key)
            if len(self._vectors) > self._maxsize:
                self._vectors.popitem(last=False)


def _key(fingerprint: str, views: Sequence[str]) -> bytes:
    mark = blake2b(digest_size=16)
    for text in (wall(), fingerprint, *views):
        data = text.encode("utf-8", "surrogatepass")
        mark.update(len(data).to_bytes(8, "little"))
        mark.update(data)
    return mark.digest()
