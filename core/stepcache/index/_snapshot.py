"""A coarse index in a file: nothing but time is lost with it.

A snapshot is written beside what the index was made from, to a file of its own that is put in
place when it is whole, and it is read with suspicion: what is not exactly what one of this version
writes, or is not about the same vectors, is no snapshot, and the index is made anew. Bytes of it
become numbers and vectors, never an object of a library's own format.

    magic | header, one line of JSON | rotation | centroids | ranges | cells | BLAKE2b of all that

A cell is the number of its vectors and of its shared ids, then ids, digests, shared ids, codes.
While one is written the index goes on being read and changed: each cell is copied by itself. So it
may hold ids that went meanwhile, or lack some that came; its reader is told which there are.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from glob import escape, glob
from hashlib import blake2b
from typing import Any, BinaryIO

import numpy as np

from stepcache.index._blocks import CoarseBlock
from stepcache.index._index import VectorIndex
from stepcache.index._rotation import Rotation

__all__ = ["load_index", "save_index", "seen_in"]

_MAGIC = b"stepcache index 2\n"
_DIGEST = 32
_STALE_SECONDS = 600.0
_LONGEST_HEADER = 4096
_MOST_CELLS, _MOST_PARTS = 2**20, 2**10
_HEADER = {"about", "seen", "cells", "dimension", "width", "part"}


class _UnfitError(ValueError):
    """No snapshot of this index."""


def save_index(index: VectorIndex, path: str, about: str, seen: int) -> bool:
    """Write a snapshot, unless the index is exact or is being made over.

    Args:
        about: What the vectors are, for :func:`load_index` to compare.
        seen: Ids up to this one are in the index, so far as they exist; later ones may be.

    Returns:
        Whether there is a snapshot of now.

    Raises:
        OSError: It cannot be written. An earlier one is as it was.
    """
    block = index.block
    if not isinstance(block, CoarseBlock) or index.growth is not None:
        return False
    _tidy(path)
    part = f"{path}.{os.getpid()}-{threading.get_ident()}.part"
    flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)
    try:
        with open(os.open(part, flags, 0o600), "wb") as file:
            whole = _write(_Hashed(file), index, block, about, seen)
        if whole:
            os.replace(part, path)
        return whole
    finally:
        with suppress(OSError):
            os.unlink(part)


def load_index(
    path: str, about: str, dimension: int, there: Any, check: Callable[[dict[int, int]], bool]
) -> tuple[VectorIndex, int] | None:
    """The index of a snapshot with the id up to which it is complete, or None.

    Args:
        about: What the vectors must be.
        dimension: Their length.
        there: int64 array of the ids that exist now, rising; others are left out.
        check: Given some ids with the digests of their vectors, says whether they are right.
    """
    try:
        with open(path, "rb") as file:
            left = os.fstat(file.fileno()).st_size
            found = _read(_Hashed(file, left), about, dimension, there)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
        return None
    index, seen, some = found
    return (index, seen) if check(some) else None


class _Hashed:
    """A file of which every byte is hashed on its way, and none is read that is not there.

    Args:
        file: Open for bytes.
        left: Bytes there are to read.
    """

    def __init__(self, file: BinaryIO, left: int = 0) -> None:
        self._file = file
        self._left = left
        self._mark = blake2b(digest_size=_DIGEST)

    def write(self, data: Any) -> None:
        self._mark.update(data)
        self._file.write(data)

    def seal(self) -> None:
        """Write the digest of all that was written."""
        self._file.write(self._mark.digest())

    def read(self, size: int) -> bytes:
        if size > self._left:
            raise _UnfitError("it ends too early")
        data = self._file.read(size)
        self._left -= size
        self._mark.update(data)
        return data

    def line(self) -> bytes:
        data = self._file.readline(_LONGEST_HEADER)
        self._left -= len(data)
        self._mark.update(data)
        return data

    def array(self, kind: str, *shape: int) -> Any:
        size = math.prod(shape) * np.dtype(kind).itemsize
        return np.frombuffer(self.read(size), kind).reshape(shape)

    def is_sealed(self) -> bool:
        """Whether what was read ends with its digest, and the file with that."""
        return self._left == _DIGEST and self._file.read(_DIGEST) == self._mark.digest()


def seen_in(path: str, about: str) -> int | None:
    """Up to which id the snapshot there is complete; None where there is none about this."""
    try:
        with open(path, "rb") as file:
            header = _header(_Hashed(file, os.fstat(file.fileno()).st_size))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    seen = header["seen"]
    return seen if header["about"] == about and type(seen) is int else None


# --- writing -----------------------------------------------------------------------------------


def _tidy(path: str) -> None:
    """Remove what processes that were killed have left half written."""
    for part in glob(f"{escape(path)}.*.part"):
        with suppress(OSError):
            if time.time() - os.path.getmtime(part) > _STALE_SECONDS:
                os.unlink(part)


def _write(file: _Hashed, index: VectorIndex, block: CoarseBlock, about: str, seen: int) -> bool:
    centroids, rotation = block.centroids, block.rotation
    cells, width = centroids.shape
    header = {
        "about": about,
        "seen": seen,
        "cells": cells,
        "dimension": rotation.dimension,
        "width": width,
        "part": len(rotation.matrix),
    }
    file.write(_MAGIC)
    file.write(json.dumps(header).encode() + b"\n")
    file.write(rotation.order.astype("<i4"))
    file.write(rotation.matrix.astype("<f4"))
    file.write(centroids.astype("<f4"))
    file.write(block.ranges.astype("<f4"))
    for at in range(cells):
        with index.lock:
            if index.block is not block:
                return False
            ids, codes = block.cell(at)
            digests, shared = index.known_as(ids.tolist())
        if not threading.main_thread().is_alive():
            return False
        file.write(np.array([len(ids), len(shared)], "<i8"))
        file.write(ids.astype("<i8"))
        file.write(np.array(digests, "<i8"))
        if shared:
            file.write(np.array(shared, "<i8"))
        if len(ids):
            file.write(codes)
    file.seal()
    return True


# --- reading -----------------------------------------------------------------------------------


def _read(
    file: _Hashed, about: str, dimension: int, there: Any
) -> tuple[VectorIndex, int, dict[int, int]]:
    header = _header(file)
    if header["about"] != about or header["dimension"] != dimension:
        raise _UnfitError("it is about other vectors")
    seen, count, width, part = (header[name] for name in ("seen", "cells", "width", "part"))
    if (
        any(type(number) is not int for number in (seen, count, width, part))
        or not 0 < count <= _MOST_CELLS
        or not dimension <= width < dimension + 8 * _MOST_PARTS
        or not 0 < part <= width
        or width % part
        or part % 8
    ):
        raise _UnfitError("its header cannot be")
    order = file.array("<i4", width).astype(np.int64)
    matrix = file.array("<f4", part, part).astype(np.float32)
    if not np.array_equal(np.sort(order), np.arange(width)):
        raise _UnfitError("its rotation is none")
    centroids = file.array("<f4", count, width).astype(np.float32)
    ranges = file.array("<f4", 2 * width).astype(np.float32)
    block = CoarseBlock(Rotation(order, matrix, dimension), centroids, ranges)
    cells = _Cells(file, count, width, there[: np.searchsorted(there, seen, "right")])
    block.fill(cells)
    if not file.is_sealed():
        raise _UnfitError("it is damaged")
    index = VectorIndex(dimension)
    index.take(block, cells.digests, cells.shared)
    return index, seen, cells.some


def _header(file: _Hashed) -> dict[str, Any]:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise _UnfitError("it is none, or of another version")
    header = json.loads(file.line())
    if not isinstance(header, dict) or header.keys() != _HEADER:
        raise _UnfitError("its header cannot be")
    return header


class _Cells:
    """The cells of a snapshot, one after another, without the ids that are gone.

    Attributes:
        digests: By place.
        shared: Places with ids, as :meth:`VectorIndex.take` wants them.
        some: An id of each cell that has one, with the digest of its vector.
    """

    def __init__(self, file: _Hashed, count: int, width: int, there: Any) -> None:
        self._file = file
        self._count = count
        self._width = width
        self._there = there
        self._known: set[int] = set()
        self._numbers: set[int] = set()
        self.digests: dict[int, int] = {}
        self.shared: list[tuple[int, int]] = []
        self.some: dict[int, int] = {}

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for _ in range(self._count):
            count, links = self._file.array("<i8", 2).tolist()
            if count < 0 or links < 0:
                raise _UnfitError("a cell's size cannot be")
            ids = self._file.array("<i8", count)
            digests = self._file.array("<i8", count)
            shared = self._file.array("<i8", links, 2)
            codes = self._file.array("u1", count, self._width)
            keep = self._kept(ids, digests, shared)
            yield ids[keep].astype(np.int64), codes[keep]

    def _kept(self, ids: Any, digests: Any, shared: Any) -> Any:
        """Which vectors of a cell are still somebody's; takes down whose."""
        alone = ~np.isin(ids, shared[:, 0])
        shared = shared[self._are_there(shared[:, 1])]
        keep = np.where(alone, self._are_there(ids), np.isin(ids, shared[:, 0]))
        if not self._known.isdisjoint(digests.tolist()):
            # An equal vector went, and came again elsewhere, while the snapshot was written.
            keep &= [mark not in self._known for mark in digests.tolist()]
        places, marks = ids[keep].tolist(), digests[keep].tolist()
        links = shared[np.isin(shared[:, 0], ids[keep])].tolist()
        single = ids[keep & alone].tolist()
        numbers = {*single, *(number for _, number in links)}
        if (
            len(numbers) < len(single) + len(links)
            or not self._numbers.isdisjoint(numbers)
            or len({*marks}) < len(places)
            or not self.digests.keys().isdisjoint(places)
        ):
            raise _UnfitError("an id is there twice")
        self._known.update(marks)
        self._numbers |= numbers
        self.digests.update(zip(places, marks))
        self.shared += [(place, number) for place, number in links]
        if single:
            self.some[single[0]] = self.digests[single[0]]
        return keep

    def _are_there(self, numbers: Any) -> Any:
        if not len(self._there):
            return np.zeros(len(numbers), bool)
        at = np.searchsorted(self._there, numbers).clip(max=len(self._there) - 1)
        return self._there[at] == numbers
