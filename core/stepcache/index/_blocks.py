"""Where vectors lie: exactly, one after another, or coarsely, in cells around centroids.

Neither is thread-safe; the index that owns a block has the lock. Both remove and overwrite at the
price of one vector, where FAISS's plain ``remove_ids`` moves everything behind the hole and its
graph index (HNSW) cannot remove at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from stepcache.index._vectors import load_faiss

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["Block", "CoarseBlock", "ExactBlock"]

_PROBES, _MORE_PROBES = 64, 256
"""Cells searched, and cells searched for a query that is near to no centroid: such vectors lie in
any cell by chance. Measured: see ``benchmarks/results/scale.md``."""
_NEAR = 0.35
"""Cosine with the nearest centroid."""
_CELLS_PER_ROOT = 2.0
_SAMPLES_PER_CELL = 32
_ROUNDS = 6
_WORTH_A_THREAD = 1024
"""Rows; finding their cells takes nearly all the time of adding them."""


class Block(Protocol):
    """Vectors under distinct ids from 0 on."""

    def __len__(self) -> int: ...

    def add(self, numbers: Sequence[int], rows: Vector, /) -> None:
        """Keep float32 rows of unit length under ids that are not there."""

    def remove(self, number: int, /) -> None:
        """Forget the vector of an id that is there."""

    def rows(self, numbers: Sequence[int], /) -> Vector:
        """The vectors of ids that are there: float32 array of shape (len(numbers), dimension)."""

    def search(self, unit: Vector, limit: int, /) -> list[tuple[int, float]]:
        """The nearest ids with their cosines, best first."""


class ExactBlock:
    """Slots of an ``IndexFlatIP``, addressed directly. A removal moves the last vector into the
    hole and shortens the block by one. A miss is a miss."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._faiss = load_faiss()
        self._flat: Any = self._faiss.IndexFlatIP(dimension)
        self._ids: list[int] = []
        self._slots: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, numbers: Sequence[int], rows: Vector, /) -> None:
        self._flat.add(rows)
        self._slots.update(zip(numbers, range(len(self._ids), len(self._ids) + len(numbers))))
        self._ids.extend(numbers)

    def remove(self, number: int, /) -> None:
        slot = self._slots.pop(number)
        last = self._ids.pop()
        if last != number:
            view = self._view()
            view[slot] = view[-1]
            self._ids[slot] = last
            self._slots[last] = slot
        # The next add() resizes the storage from ntotal, so the freed slot is used again.
        self._flat.ntotal -= 1

    def rows(self, numbers: Sequence[int], /) -> Vector:
        rows: Vector = self._view()[[self._slots[number] for number in numbers]]
        return rows

    def search(self, unit: Vector, limit: int, /) -> list[tuple[int, float]]:
        # A setting of the calling thread. One query uses one thread anyhow; with more, OpenMP
        # keeps a spinning team that starves the neighbours and does not survive a fork.
        self._faiss.omp_set_num_threads(1)
        cosines, slots = self._flat.search(unit[None], min(limit, len(self._ids)))
        ids = self._ids
        return [
            (ids[slot], cosine)
            for slot, cosine in zip(slots[0].tolist(), cosines[0].tolist())
            if slot >= 0
        ]

    def _view(self) -> Vector:
        """The slots in use as a writable array of shape (slots, dimension)."""
        count = self._flat.ntotal
        flat = self._faiss.rev_swig_ptr(self._flat.get_xb(), count * self._dimension)
        rows: Vector = flat.reshape(count, self._dimension)
        return rows


class CoarseBlock:
    """An inverted file over k-means cells whose vectors have one byte an element (IVF-SQ8).

    Approximate: a search reads the cells nearest to the query, and cosines are off by a
    thousandth. A hash table from id to place makes removal cheap.

    Args:
        sample: float32 array of shape (rows, dimension) the cells and the range of each element
            are learned from; should look like what comes.
        size: How many vectors are expected.
    """

    def __init__(self, sample: Vector, size: int) -> None:
        self._faiss = load_faiss()
        self._faiss.omp_set_num_threads(1)
        self._dimension = sample.shape[1]
        cells = min(self.cells(size), max(1, len(sample) // 8))
        self._centroids = self._faiss.IndexFlatIP(self._dimension)
        self._file: Any = self._faiss.IndexIVFScalarQuantizer(
            self._centroids,
            self._dimension,
            cells,
            self._faiss.ScalarQuantizer.QT_8bit,
            self._faiss.METRIC_INNER_PRODUCT,
            False,
        )
        self._file.cp.niter = _ROUNDS
        self._file.cp.min_points_per_centroid = 1
        self._file.cp.max_points_per_centroid = _SAMPLES_PER_CELL
        self._file.train(np.ascontiguousarray(sample))
        self._file.set_direct_map_type(self._faiss.DirectMap.Hashtable)
        self._cells = cells

    @staticmethod
    def cells(size: int) -> int:
        """The number of cells for so many vectors."""
        return max(1, round(_CELLS_PER_ROOT * math.sqrt(size)))

    @classmethod
    def sample_size(cls, size: int) -> int:
        """How many rows are worth learning from, for so many vectors."""
        return min(size, _SAMPLES_PER_CELL * cls.cells(size))

    def __len__(self) -> int:
        return int(self._file.ntotal)

    def add(self, numbers: Sequence[int], rows: Vector, /) -> None:
        self._faiss.omp_set_num_threads(1)
        ids = np.asarray(numbers, dtype=np.int64)
        if len(ids) < _WORTH_A_THREAD:
            self._file.add_with_ids(rows, ids)
            return
        # Threads of Python's, which end: a team of OpenMP's would not survive a fork.
        half = len(ids) // 2
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(self._cells_of, rows[half:])
            cells = np.concatenate([self._cells_of(rows[:half]), second.result()])
        pointer = self._faiss.swig_ptr
        self._file.add_core(len(ids), pointer(rows), pointer(ids), pointer(cells))

    def _cells_of(self, rows: Vector) -> Any:
        self._faiss.omp_set_num_threads(1)
        return np.ascontiguousarray(self._centroids.assign(rows, 1).ravel(), dtype=np.int64)

    def remove(self, number: int, /) -> None:
        one = np.array([number], dtype=np.int64)
        self._file.remove_ids(self._faiss.IDSelectorArray(1, self._faiss.swig_ptr(one)))

    def rows(self, numbers: Sequence[int], /) -> Vector:
        rows: Vector = self._file.reconstruct_batch(np.asarray(numbers, dtype=np.int64))
        return rows

    def search(self, unit: Vector, limit: int, /) -> list[tuple[int, float]]:
        self._faiss.omp_set_num_threads(1)
        query = unit[None]
        near, cells = self._centroids.search(query, min(_MORE_PROBES, self._cells))
        probes = min(_PROBES if near[0, 0] >= _NEAR else _MORE_PROBES, self._cells)
        self._file.nprobe = probes
        cosines, found = self._file.search_preassigned(
            query,
            min(limit, len(self)),
            np.ascontiguousarray(cells[:, :probes]),
            np.ascontiguousarray(near[:, :probes]),
        )
        return [
            (number, cosine)
            for number, cosine in zip(found[0].tolist(), cosines[0].tolist())
            if number >= 0
        ]
