"""Large indexes of a SQLite store in files beside it, so that a start need not read every vector.

They are a saving and nothing else: one that is missing, damaged, of other vectors or behind is
completed from the rows, or the index is made from them. They hold vectors in a coarse form, so a
store whose records are encrypted has none, and what removes data for good removes them.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from glob import escape, glob
from hashlib import blake2b

import numpy as np

from stepcache.index import VectorIndex, digest_of, load_index, save_index, seen_in
from stepcache.stores import _sqlite_sql as sql
from stepcache.stores._guard import as_vector
from stepcache.stores._sqlite_rows import as_bytes

__all__ = ["Snapshots"]

_COMPARED = 64
"""Vectors that are compared with their rows before a snapshot is believed."""


class Snapshots:
    """The files of one store.

    Args:
        path: The store's file.
        read: The float32 bytes of a stored vector; None for what is none.
        kept: Whether there may be any.
    """

    def __init__(self, path: str, read: Callable[[object], bytes | None], *, kept: bool) -> None:
        self._path = path
        self._read = read
        self._kept = kept
        if not kept:
            self.remove_all()

    def load(
        self, connection: sqlite3.Connection, scope: str, fingerprint: str, dimension: int
    ) -> tuple[VectorIndex, int, list[int]] | None:
        """An index, the row up to which it is complete, and the rows it lacks nevertheless."""
        path, about = self._place(scope, fingerprint)
        if not self._kept or not os.path.isfile(path):
            return None
        place = (as_bytes(scope), as_bytes(fingerprint))
        rows = connection.execute(sql.ALL_NUMBERS, place)
        there = np.fromiter((number for (number,) in rows), dtype=np.int64)
        found = load_index(
            path, about, dimension, there, lambda some: self._right(connection, some)
        )
        if found is None:
            with suppress(OSError):  # it would keep a good one from being written
                os.unlink(path)
            return None
        index, seen = found
        known = np.array(index.numbers(), dtype=np.int64)
        lacking = np.setdiff1d(there[: np.searchsorted(there, seen, "right")], known)
        return index, seen, lacking.tolist()

    def save(self, index: VectorIndex, scope: str, fingerprint: str, seen: int) -> None:
        """Write one, unless another process has written one as good; a failure costs nothing."""
        path, about = self._place(scope, fingerprint)
        if self._kept and (seen_in(path, about) or 0) < seen:
            with suppress(OSError):
                save_index(index, path, about, seen)

    def remove_all(self) -> None:
        """Remove every one of this store."""
        for path in glob(f"{escape(self._path)}-index-*"):
            with suppress(OSError):
                os.unlink(path)

    def _place(self, scope: str, fingerprint: str) -> tuple[str, str]:
        """Where one lies, and what it is about."""
        parts = (as_bytes(scope), as_bytes(fingerprint))
        about = blake2b(b"".join(len(p).to_bytes(8, "big") + p for p in parts)).hexdigest()
        return f"{self._path}-index-{about[:16]}", about

    def _right(self, connection: sqlite3.Connection, some: dict[int, int]) -> bool:
        """Whether vectors are those of the rows; the file may have been put in another's place."""
        chosen = random.sample(sorted(some), min(_COMPARED, len(some)))
        for number in chosen:
            row = connection.execute(sql.VECTOR, (number,)).fetchone()
            if row is None:
                continue  # just gone
            data = self._read(row[0])
            if data is None or digest_of(as_vector(data)) != some[number]:
                return False
        return bool(chosen)
