"""One bit an element: small enough to compare a query with all vectors there are.

Where the cells near to a query hold nothing near to it, the vectors whose signs are most like its
own are looked at: 64 bytes for one of length 512, some milliseconds for a million of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stepcache.index._vectors import load_faiss

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["Sketches"]

_GROWTH = 1.125
_FIRST = 1024


class Sketches:
    """The signs of rotated vectors, under ids. Not thread-safe.

    A removal leaves its sketch behind; whoever removes many has them swept out.

    Args:
        width: Elements of a vector, a multiple of 8.
    """

    def __init__(self, width: int) -> None:
        self._faiss = load_faiss()
        self._bits = np.empty((0, width // 8), np.uint8)
        self._ids = np.empty(0, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, ids: Any, signs: Any) -> None:
        """Take down signs under ids, some of which may be known already.

        Args:
            ids: int64 array of shape (n,).
            signs: bool array of shape (n, width), True for elements above 0.
        """
        count = self._count + len(ids)
        if count > len(self._ids):
            self._resize(max(_FIRST, count, int(_GROWTH * self._count)))
        self._ids[self._count : count] = ids
        self._bits[self._count : count] = np.packbits(signs, axis=1)
        self._count = count

    def nearest(self, unit: Vector, limit: int) -> list[int]:
        """Ids of the sketches most like that of a rotated vector; some may be gone or old."""
        limit = min(limit, self._count)
        if not limit:
            return []
        sketch = np.packbits(unit > 0)[None]
        _, slots = self._faiss.knn_hamming(sketch, self._bits[: self._count], limit, "mc")
        ids: list[int] = self._ids[slots[0][slots[0] >= 0]].tolist()
        return list(dict.fromkeys(ids))

    def sweep(self, ids: Any) -> None:
        """Keep the latest sketch of each of these ids, and no other.

        Args:
            ids: int64 array.
        """
        known = self._ids[: self._count]
        latest = self._count - 1 - np.unique(known[::-1], return_index=True)[1]
        kept = np.sort(latest[np.isin(known[latest], ids)])
        self._ids, self._bits = self._ids[kept], self._bits[kept]
        self._count = len(kept)

    def _resize(self, size: int) -> None:
        ids, bits = np.empty(size, np.int64), np.empty((size, self._bits.shape[1]), np.uint8)
        ids[: self._count], bits[: self._count] = (
            self._ids[: self._count],
            self._bits[: self._count],
        )
        self._ids, self._bits = ids, bits
