"""The SQLite store's vector indexes: one per scope and embedder, rebuilt from the rows."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stepcache.index import EXACT_UP_TO, VectorIndex
from stepcache.stores import _sqlite_sql as sql
from stepcache.stores._seal import vector_size
from stepcache.stores._sqlite_file import Database
from stepcache.stores._sqlite_rows import as_bytes
from stepcache.stores._sqlite_snapshots import Snapshots

__all__ = ["IndexBlock", "Indexes"]

_ROWS_AT_ONCE = 2048
_UNIT_TOLERANCE = 1e-3
_UNSAVED, _UNSAVED_AT_END = 0.1, 0.02
"""Portion of an index that a start may have to read anew; less, where the store is closed."""


@dataclass(slots=True)
class IndexBlock:
    """The index of one scope and fingerprint, with the last row it has seen."""

    index: VectorIndex
    expected: int = 0
    """Rows to be loaded at first; 0 when that is done."""
    seen: int = 0
    unsaved: int = 0
    """Rows seen since the index was saved to a file."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    saving: threading.Lock = field(default_factory=threading.Lock)


class Indexes:
    """The indexes of one store. Thread-safe; a forked child begins with none.

    Args:
        database: Where the rows are.
        clock: Seconds since the epoch.
        read: The float32 bytes of a stored vector; None for what is none.
        snapshots: Where large indexes are kept for the next start.

    Attributes:
        damaged: Rows met whose vector was none.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float],
        read: Callable[[object], bytes | None],
        snapshots: Snapshots,
    ) -> None:
        self._database = database
        self._clock = clock
        self._read = read
        self._snapshots = snapshots
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
                size = None if row is None else vector_size(row[0] or 0)
                if not size:
                    return None
                index = VectorIndex(size // 4, expected=row[1])
                block = self._blocks[scope, fingerprint] = IndexBlock(index, expected=row[1])
        with block.lock:
            if block.expected:
                self._restore(connection, scope, fingerprint, block)
            rows = connection.execute(sql.BEYOND, (*place, block.seen, self._clock()))
            while some := rows.fetchmany(_ROWS_AT_ONCE):
                self._extend(block, some)
        if not len(block.index):
            # The next rows may have another dimension.
            self._blocks.pop((scope, fingerprint), None)
            return None
        if block.unsaved > _UNSAVED * len(block.index):
            self._save_soon(scope, fingerprint, block)
        return block

    def _restore(
        self, connection: sqlite3.Connection, scope: str, fingerprint: str, block: IndexBlock
    ) -> None:
        """Take over what an earlier process has left of the index, and complete it."""
        large, block.expected = block.expected > EXACT_UP_TO, 0
        dimension = block.index.dimension
        found = self._snapshots.load(connection, scope, fingerprint, dimension) if large else None
        if found is None:
            return
        block.index, seen, lacking = found
        for start in range(0, len(lacking), _ROWS_AT_ONCE):
            rows = [
                row
                for number in lacking[start : start + _ROWS_AT_ONCE]
                for row in connection.execute(sql.LIVE_VECTOR, (number, self._clock()))
            ]
            if rows:
                self._extend(block, rows)
        block.seen, block.unsaved = seen, 0

    def _save_soon(self, scope: str, fingerprint: str, block: IndexBlock) -> None:
        """Have an index saved by a thread of its own, if it is one to be saved."""
        if block.index.exact or block.index.growth is not None:
            return
        if block.saving.acquire(blocking=False):
            block.unsaved = 0
            threading.Thread(
                target=self._save, args=(scope, fingerprint, block), name="stepcache-index-save"
            ).start()

    def _save(self, scope: str, fingerprint: str, block: IndexBlock) -> None:
        try:
            self._snapshots.save(block.index, scope, fingerprint, block.seen)
        finally:
            block.saving.release()

    def save(self) -> None:
        """Save the indexes of which a start would have to read much anew."""
        if self._generation != self._database.generation:
            return
        for (scope, fingerprint), block in list(self._blocks.items()):
            with block.saving:
                much = block.unsaved > _UNSAVED_AT_END * len(block.index)
            if much and block.saving.acquire(blocking=False):
                self._save(scope, fingerprint, block)

    def unsave(self) -> None:
        """Remove what was saved; it is saved again when it is used again."""
        self._snapshots.remove_all()
        for block in list(self._blocks.values()):
            block.unsaved = max(block.unsaved, len(block.index))

    def _extend(self, block: IndexBlock, rows: Sequence[tuple[int, object]]) -> None:
        size = 4 * block.index.dimension
        read = [(n, self._read(v)) for n, v in rows]
        whole = [(n, v) for n, v in read if v is not None and len(v) == size]
        flat = np.frombuffer(b"".join([v for _, v in whole]), dtype="<f4")
        vectors = flat.reshape(len(whole), block.index.dimension)
        with np.errstate(all="ignore"):
            squares = np.einsum("ij,ij->i", vectors, vectors)
            sound = (np.abs(squares - 1.0) <= _UNIT_TOLERANCE) | (squares == 0.0)
        block.index.extend([n for (n, _), good in zip(whole, sound) if good], vectors[sound])
        self.damaged += len(rows) - int(sound.sum())
        block.seen = rows[-1][0]
        block.unsaved += len(rows)

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
