"""The SQLite store's vector indexes: one per scope and embedder, rebuilt from the rows."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stepcache.index import VectorIndex
from stepcache.stores import _sqlite_sql as sql
from stepcache.stores._sqlite_file import Database

__all__ = ["IndexBlock", "Indexes", "as_bytes"]

_ROWS_AT_ONCE = 2048
_UNIT_TOLERANCE = 1e-3


@dataclass(slots=True)
class IndexBlock:
    """The index of one scope and fingerprint, with the last row it has seen."""

    index: VectorIndex
    seen: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Indexes:
    """The indexes of one store. Thread-safe; a forked child begins with none.

    Args:
        database: Where the rows are.
        clock: Seconds since the epoch.

    Attributes:
        damaged: Rows met whose vector was none.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self.damaged = 0
        self.forget()

    def forget(self) -> None:
        """Begin with none."""
        self._blocks: dict[tuple[str, str], IndexBlock] = {}
        self._lock = threading.Lock()
        # Last: until then other threads of a forked child know that they must do this too.
        self._generation = self._database.generation

    def caught_up(
        self, connection: sqlite3.Connection, scope: str, fingerprint: str, length: int
    ) -> IndexBlock | None:
        """The index for vectors of a length, or the one that will refuse them, or None."""
        for _ in range(2):
            block = self._loaded(connection, scope, fingerprint)
            if block is None or block.index.dimension == length:
                return block
            # All rows of the other dimension may be gone.
            self.forget_gone(connection, scope, fingerprint, block)
            if len(block.index):
                return block
            self._blocks.pop((scope, fingerprint), None)
        return None

    def _loaded(
        self, connection: sqlite3.Connection, scope: str, fingerprint: str
    ) -> IndexBlock | None:
        """The index of a scope and fingerprint with every row now in the file, or None."""
        if self._generation != self._database.generation:
            self.forget()
        place = (as_bytes(scope), as_bytes(fingerprint))
        with self._lock:
            block = self._blocks.get((scope, fingerprint))
            if block is None:
                # What most rows have: one damaged row does not decide the dimension.
                row = connection.execute(sql.LENGTHS, place).fetchone()
                if row is None or not row[0] or row[0] % 4:
                    return None
                index = VectorIndex(row[0] // 4, expected=row[1])
                block = self._blocks[scope, fingerprint] = IndexBlock(index)
        with block.lock:
            rows = connection.execute(sql.BEYOND, (*place, block.seen, self._clock()))
            while some := rows.fetchmany(_ROWS_AT_ONCE):
                self._extend(block, some)
        if not len(block.index):
            # The next rows may have another dimension.
            self._blocks.pop((scope, fingerprint), None)
            return None
        return block

    def _extend(self, block: IndexBlock, rows: Sequence[tuple[int, object]]) -> None:
        size = 4 * block.index.dimension
        whole = [(n, v) for n, v in rows if isinstance(v, bytes) and len(v) == size]
        flat = np.frombuffer(b"".join([v for _, v in whole]), dtype="<f4")
        vectors = flat.reshape(len(whole), block.index.dimension)
        with np.errstate(all="ignore"):
            squares = np.einsum("ij,ij->i", vectors, vectors)
            sound = (np.abs(squares - 1.0) <= _UNIT_TOLERANCE) | (squares == 0.0)
        block.index.extend([n for (n, _), good in zip(whole, sound) if good], vectors[sound])
        self.damaged += len(rows) - int(sound.sum())
        block.seen = rows[-1][0]

    def known(self, scope: str, fingerprint: str) -> IndexBlock | None:
        """The index of a scope and fingerprint as far as it is loaded."""
        return self._blocks.get((scope, fingerprint))

    def forget_gone(
        self, connection: sqlite3.Connection, scope: str, fingerprint: str, block: IndexBlock
    ) -> None:
        """Take rows out of an index that are not in the file any more."""
        place = (as_bytes(scope), as_bytes(fingerprint), self._clock())
        with block.lock:
            there = {number for (number,) in connection.execute(sql.NUMBERS, place)}
            for number in block.index.numbers():
                if number not in there:
                    block.index.remove(number)


def as_bytes(text: str) -> bytes:
    """A text as SQLite compares it: byte by byte, whatever it holds."""
    return text.encode("utf-8", "surrogatepass")
