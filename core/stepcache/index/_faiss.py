"""An exact vector index over FAISS, small enough to have one per scope.

Slots of an ``IndexFlatIP`` are addressed directly. An overwrite writes the slot; a removal moves
the last vector into the hole and shortens the index by one. Both cost one vector copy, where
``remove_ids`` moves everything behind the hole and scans every id. Searches are exact, so a miss is
a miss; an approximate block for large scopes can replace ``_block`` without touching a store, for
ids, slots and locking live outside it.
"""

from __future__ import annotations

import importlib
import math
import threading
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stepcache._errors import StoreError

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["VectorIndex", "unit_vector"]

_UNIT_TOLERANCE = 1e-4


def unit_vector(vector: Any, dimension: int | None = None) -> Vector:
    """Check a vector and bring it to unit length, so that inner products are cosines.

    Args:
        vector: Real floating-point array of shape (dimension,). A zero vector stays zero: it is
            near to nothing.
        dimension: The length it must have; None accepts any above 0.

    Returns:
        Contiguous float32 array of shape (dimension,); the argument itself where it already is one.

    Raises:
        StoreError: It is not one, with what was wrong and what to pass instead.
    """
    array = np.asarray(vector)
    if array.ndim != 1 or array.dtype.kind != "f" or not array.size:
        raise StoreError(
            f"a vector of dtype {array.dtype} and shape {array.shape} cannot be indexed: "
            "pass one float32 array of shape (dimension,)"
        )
    if dimension is not None and array.size != dimension:
        raise StoreError(
            f"a vector of length {array.size} does not fit an index of dimension {dimension}: "
            "give the embedder another fingerprint when its dimension changes"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        single: Vector = np.ascontiguousarray(array, dtype=np.float32)
        square = float(single @ single)
    if abs(square - 1.0) <= _UNIT_TOLERANCE:
        return single
    return _rescaled(single)


def _rescaled(vector: Vector) -> Vector:
    if not np.isfinite(vector).all():
        bad = vector[~np.isfinite(vector)][0]
        raise StoreError(
            f"a vector holding {float(bad)!r} cannot be indexed: every element has to be finite; "
            "check the embedder's output for this text"
        )
    wide = vector.astype(np.float64)
    norm = math.sqrt(float(wide @ wide))
    return (wide / norm).astype(np.float32) if norm else vector


class VectorIndex:
    """Finds the nearest of the vectors it holds, each under an integer id. Thread-safe.

    Args:
        dimension: Length of every vector.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._faiss = _load_faiss()
        self._block: Any = self._faiss.IndexFlatIP(dimension)
        self._ids: list[int] = []
        self._slots: dict[int, int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, number: int) -> bool:
        return number in self._slots

    def numbers(self) -> list[int]:
        """The ids of all vectors now in the index."""
        with self._lock:
            return list(self._ids)

    def add(self, number: int, vector: Vector) -> None:
        """Keep a vector; one under the same id is replaced.

        Args:
            number: The id to find it by.
            vector: float32 array of shape (dimension,), unit length (rescaled where it is not).

        Raises:
            StoreError: Not such a vector.
        """
        unit = unit_vector(vector, self.dimension)
        with self._lock:
            slot = self._slots.get(number)
            if slot is not None:
                self._view()[slot] = unit
                return
            self._block.add(unit[None])
            self._slots[number] = len(self._ids)
            self._ids.append(number)

    def extend(self, numbers: Sequence[int], vectors: Vector) -> None:
        """Keep many vectors under new, distinct ids at once: for filling an index.

        Args:
            numbers: One id a row, none of them in the index.
            vectors: float32 array of shape (len(numbers), dimension), rows of unit length.

        Raises:
            StoreError: A shape or an id that does not fit.
        """
        rows: Vector = np.ascontiguousarray(vectors, dtype=np.float32)
        if rows.shape != (len(numbers), self.dimension):
            raise StoreError(
                f"an array of shape {rows.shape} does not hold {len(numbers)} vectors of length "
                f"{self.dimension}: pass one row per id"
            )
        with self._lock:
            if len({*numbers}) < len(numbers) or any(n in self._slots for n in numbers):
                raise StoreError("an id is there twice: add() replaces, extend() takes new ids")
            if not numbers:
                return
            self._block.add(rows)
            self._slots.update(zip(numbers, range(len(self._ids), len(self._ids) + len(numbers))))
            self._ids.extend(numbers)

    def remove(self, number: int) -> bool:
        """Forget a vector; False when there was none."""
        with self._lock:
            slot = self._slots.pop(number, None)
            if slot is None:
                return False
            last = self._ids.pop()
            if last != number:
                view = self._view()
                view[slot] = view[-1]
                self._ids[slot] = last
                self._slots[last] = slot
            # The next add() resizes the storage from ntotal, so the freed slot is used again.
            self._block.ntotal -= 1
            return True

    def search(self, vector: Vector, limit: int) -> list[tuple[int, float]]:
        """The nearest ids with their cosines, best first; at most ``limit`` of them.

        Args:
            vector: float32 array of shape (dimension,).
            limit: How many to look for; 0 or less finds nothing.

        Raises:
            StoreError: Not such a vector.
        """
        unit = unit_vector(vector, self.dimension)
        with self._lock:
            wanted = min(limit, len(self._ids))
            if wanted <= 0:
                return []
            # A setting of the calling thread. One query uses one thread anyhow; with more, OpenMP
            # keeps a spinning team that starves the neighbours and does not survive a fork.
            self._faiss.omp_set_num_threads(1)
            cosines, slots = self._block.search(unit[None], wanted)
            ids = self._ids
            return [
                (ids[slot], max(-1.0, min(1.0, cosine)))
                for slot, cosine in zip(slots[0].tolist(), cosines[0].tolist())
                if slot >= 0
            ]

    def _view(self) -> Vector:
        """The slots in use as a writable array of shape (slots, dimension)."""
        count = self._block.ntotal
        flat = self._faiss.rev_swig_ptr(self._block.get_xb(), count * self.dimension)
        rows: Vector = flat.reshape(count, self.dimension)
        return rows


def _load_faiss() -> Any:
    try:
        with warnings.catch_warnings():
            # Its generated wrapper classes lack __module__, which Python 3.12 warns about.
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module("faiss")
    except ImportError as error:
        raise StoreError(f"faiss cannot be imported ({error}): pip install faiss-cpu") from error
