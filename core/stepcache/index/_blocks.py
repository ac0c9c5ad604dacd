"""Where vectors lie: exactly, one after another, or coarsely, in cells around centroids.

Neither is thread-safe; the index that owns a block has the lock. Both remove and overwrite at the
price of one vector, where FAISS's plain ``remove_ids`` moves everything behind the hole and its
graph index (HNSW) cannot remove at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from stepcache.index._rotation import Rotation
from stepcache.index._sketches import Sketches
from stepcache.index._vectors import load_faiss

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["Block", "CoarseBlock", "ExactBlock"]

_PROBES = 32
"""Cells searched of so many times ``_OF_CELLS`` or more. Measured: see
``benchmarks/results/scale.md``."""
_OF_CELLS = 16
_PROBES_AT_LEAST = 8
_FOUND = 0.8
"""Cosine of a nearest vector so near that other cells seldom hold a nearer one."""
_LIKE = 256
"""Vectors looked at for their sketches, where the cells hold none as near as that: of a block of
so many times ``_AMONG`` or more."""
_AMONG = 128
_LIKE_AT_LEAST = 64
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
    """An inverted file over k-means cells whose vectors have one byte an element (IVF-SQ8), and a
    sketch of each.

    Approximate: a search reads the cells nearest to the query. A vector that is near to no centroid
    lies in any cell by chance; where those read hold nothing near, the vectors of the likest
    sketches are looked at too. Cosines are off by a thousandth at most times. A hash table from id
    to place makes removal cheap.

    Args:
        rotation: Of vectors, before anything else.
        centroids: Rotated; float32 array of shape (cells, rotation.width).
        ranges: float32 array of shape (2 * rotation.width,): the least value of each element, then
            how far its values reach from there.
    """

    def __init__(self, rotation: Rotation, centroids: Vector, ranges: Vector) -> None:
        self._faiss = load_faiss()
        self.rotation = rotation
        self._cells, self._width = centroids.shape
        self._centroids = self._faiss.IndexFlatIP(self._width)
        self._file: Any = self._faiss.IndexIVFScalarQuantizer(
            self._centroids,
            self._width,
            self._cells,
            self._faiss.ScalarQuantizer.QT_8bit,
            self._faiss.METRIC_INNER_PRODUCT,
            False,
        )
        self._centroids.add(np.ascontiguousarray(centroids))
        self._ranges = np.ascontiguousarray(ranges)
        self._faiss.copy_array_to_vector(self._ranges, self._file.sq.trained)
        self._file.is_trained = True
        self._file.set_direct_map_type(self._faiss.DirectMap.Hashtable)
        self._sketches = Sketches(self._width)
        self._asked = (np.empty((0, 0), np.float32),) * 2
        """The vector rotated last, as it was and rotated."""

    @classmethod
    def learned(cls, sample: Vector, size: int) -> CoarseBlock:
        """An empty block for vectors like those of a sample.

        Args:
            sample: float32 array of shape (rows, dimension), at least one row.
            size: How many vectors are expected.
        """
        faiss = load_faiss()
        faiss.omp_set_num_threads(1)
        rotation = Rotation.random(sample.shape[1])
        sample = rotation.apply(sample)
        cells = min(cls.cells(size), max(1, len(sample) // 8))
        means = faiss.Kmeans(
            rotation.width,
            cells,
            niter=_ROUNDS,
            spherical=True,
            min_points_per_centroid=1,
            max_points_per_centroid=_SAMPLES_PER_CELL,
        )
        means.train(sample)
        codes = faiss.ScalarQuantizer(rotation.width, faiss.ScalarQuantizer.QT_8bit)
        codes.train(sample)
        return cls(rotation, means.centroids, faiss.vector_to_array(codes.trained))

    @property
    def centroids(self) -> Vector:
        """As the constructor takes them."""
        rows: Vector = self._centroids.reconstruct_n(0, self._cells)
        return rows

    @property
    def ranges(self) -> Vector:
        """As the constructor takes them."""
        return self._ranges

    def cell(self, at: int) -> tuple[Any, Any]:
        """Copies of a cell's ids, int64 array of shape (n,), and codes, uint8 of (n, width)."""
        lists, view = self._file.invlists, self._faiss.rev_swig_ptr
        count = lists.list_size(at)
        if not count:
            return np.empty(0, np.int64), np.empty((0, self._width), np.uint8)
        codes = view(lists.get_codes(at), count * self._width)
        return view(lists.get_ids(at), count).copy(), codes.copy().reshape(count, self._width)

    def fill(self, cells: Iterable[tuple[Any, Any]]) -> None:
        """Put into an empty block what :meth:`cell` gave, cell by cell."""
        pointer = self._faiss.swig_ptr
        # A code stands for the middle of its share of the range.
        least, reach = self._ranges[: self._width], self._ranges[self._width :]
        with np.errstate(divide="ignore", invalid="ignore"):
            nought = -least / reach * 255 - 0.5
        for at, (ids, codes) in enumerate(cells):
            if len(ids):
                ids, codes = np.ascontiguousarray(ids), np.ascontiguousarray(codes)
                self._file.invlists.add_entries(at, len(ids), pointer(ids), pointer(codes))
                self._file.ntotal += len(ids)
                self._sketches.add(ids, codes > nought)
        # Made from the lists when it is switched on.
        self._file.set_direct_map_type(self._faiss.DirectMap.NoMap)
        self._file.set_direct_map_type(self._faiss.DirectMap.Hashtable)

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
        rows = self._turned(rows)
        if len(ids) < _WORTH_A_THREAD:
            self._file.add_with_ids(rows, ids)
        else:
            # Threads of Python's, which end: a team of OpenMP's would not survive a fork.
            half = len(ids) // 2
            with ThreadPoolExecutor(1) as pool:
                second = pool.submit(self._cells_of, rows[half:])
                cells = np.concatenate([self._cells_of(rows[:half]), second.result()])
            pointer = self._faiss.swig_ptr
            self._file.add_core(len(ids), pointer(rows), pointer(ids), pointer(cells))
        self._sketches.add(ids, rows > 0)

    def _cells_of(self, rows: Vector) -> Any:
        self._faiss.omp_set_num_threads(1)
        return np.ascontiguousarray(self._centroids.assign(rows, 1).ravel(), dtype=np.int64)

    def remove(self, number: int, /) -> None:
        one = np.array([number], dtype=np.int64)
        self._file.remove_ids(self._faiss.IDSelectorArray(1, self._faiss.swig_ptr(one)))
        if len(self._sketches) > 2 * len(self) + _LIKE:
            there = [self.cell(at)[0] for at in range(self._cells)]
            self._sketches.sweep(np.concatenate(there))

    def rows(self, numbers: Sequence[int], /) -> Vector:
        return self.rotation.undo(self._rotated(numbers))

    def search(self, unit: Vector, limit: int, /) -> list[tuple[int, float]]:
        self._faiss.omp_set_num_threads(1)
        query, limit = self._turned(unit[None]), min(limit, len(self))
        probes = min(_PROBES, max(_PROBES_AT_LEAST, self._cells // _OF_CELLS))
        self._file.nprobe = probes
        cosines, numbers = self._file.search(query, limit)
        found = dict(zip(numbers[0].tolist(), cosines[0].tolist()))
        found.pop(-1, None)
        if self._cells > probes and max(found.values(), default=-1.0) < _FOUND:
            like = min(_LIKE, max(_LIKE_AT_LEAST, len(self) // _AMONG))
            found |= self._like(query[0], max(like, limit))
        return sorted(found.items(), key=itemgetter(1), reverse=True)[:limit]

    def _turned(self, rows: Vector) -> Vector:
        """Rotated; what was looked for and not found is often what is added next."""
        if len(rows) > 1:
            return np.ascontiguousarray(self.rotation.apply(rows))
        asked, turned = self._asked
        if not np.array_equal(asked, rows):
            turned = np.ascontiguousarray(self.rotation.apply(rows))
            self._asked = (rows.copy(), turned)
        return turned

    def _like(self, query: Vector, limit: int) -> dict[int, float]:
        """The vectors of the likest sketches, with their cosines."""
        enough, whole = min(len(self), limit // 4), len(self._sketches) == len(self)
        while True:
            like = self._sketches.nearest(query, limit)
            # Sketches stay when their vectors are removed.
            there = like if whole else [number for number in like if self._holds(number)]
            if len(there) >= enough or limit >= len(self._sketches):
                break
            limit *= 4  # those of vectors that are gone hide others
        if not there:
            return {}
        return dict(zip(there, (self._rotated(there) @ query).tolist()))

    def _rotated(self, numbers: Sequence[int]) -> Vector:
        rows: Vector = self._file.reconstruct_batch(np.asarray(numbers, dtype=np.int64))
        return rows

    def _holds(self, number: int) -> bool:
        try:
            self._file.direct_map.get(number)
        except RuntimeError:
            return False
        return True
