"""Making a block over while the index goes on being read and written."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepcache.index._blocks import Block, CoarseBlock

if TYPE_CHECKING:
    from stepcache.index._index import VectorIndex

__all__ = ["Growth"]

_ROWS_AT_ONCE = 2048
_LAST_ROWS = 64
_SEED = 20_240_229


class Growth:
    """A thread that copies an index's vectors into a coarse block and puts it in place.

    The index tells it of every id that comes or goes meanwhile; those are copied again at the end,
    the last few while the index stands still. It gives up when the index or the main thread ends,
    so that neither waits for it. What it does is lost with the process, and nothing else.
    """

    def __init__(self, index: VectorIndex) -> None:
        self.touched: set[int] = set()
        """Ids that came or went since they were read. The index's lock guards it."""
        self._index = weakref.ref(index)
        self._thread = threading.Thread(target=self._run, name="stepcache-index")
        self._thread.start()

    @property
    def running(self) -> bool:
        """False also in a forked child, where the thread is not."""
        return self._thread.is_alive()

    def wait(self, timeout: float | None) -> bool:
        """Wait for the end, for so many seconds at most; whether it came."""
        self._thread.join(timeout)
        return not self.running

    def _run(self) -> None:
        try:
            block = self._learned()
            if block is not None:
                self._copy(block)
        except (MemoryError, RuntimeError):  # faiss says RuntimeError
            pass  # the old block serves on, until it has outgrown that too
        finally:
            index = self._index()
            if index is not None:
                index.growth = None

    def _living(self) -> VectorIndex | None:
        """The index, unless there is no more use for the work."""
        return self._index() if threading.main_thread().is_alive() else None

    def _learned(self) -> CoarseBlock | None:
        index = self._living()
        if index is None:
            return None
        with index.lock:
            places = index.places()
        size = len(places)
        count = CoarseBlock.sample_size(size)
        chosen = np.random.default_rng(_SEED).choice(size, count, replace=False)
        parts = []
        for start in range(0, count, _ROWS_AT_ONCE):
            some = [places[at] for at in chosen[start : start + _ROWS_AT_ONCE].tolist()]
            parts.append(_read(index, some, None)[1])
        del index
        return CoarseBlock.learned(np.concatenate(parts), size)

    def _copy(self, block: CoarseBlock) -> None:
        index = self._living()
        if index is None:
            return
        with index.lock:
            todo = index.places()
            self.touched.clear()
        copied: set[int] = set()
        while True:
            for start in range(0, len(todo), _ROWS_AT_ONCE):
                some = todo[start : start + _ROWS_AT_ONCE]
                _renew(block, copied, some, *_read(index, some, self.touched))
                del index
                index = self._living()
                if index is None:
                    return
            with index.lock:
                todo = list(self.touched)
                self.touched.clear()
                if len(todo) <= _LAST_ROWS:
                    there = [place for place in todo if index.holds(place)]
                    _renew(block, copied, todo, there, index.block.rows(there))
                    index.block = block
                    return


def _read(
    index: VectorIndex, places: Sequence[int], touched: set[int] | None
) -> tuple[list[int], np.ndarray]:
    """Those of the places that are there, with their vectors."""
    with index.lock:
        there = [place for place in places if index.holds(place)]
        if touched is not None:
            touched.difference_update(places)
        return there, index.block.rows(there)


def _renew(
    block: Block,
    copied: set[int],
    places: Sequence[int],
    there: Sequence[int],
    rows: np.ndarray,
) -> None:
    """Make the block hold exactly these of the places."""
    for place in copied.intersection(places):
        block.remove(place)
    copied.difference_update(places)
    if there:
        block.add(there, rows)
        copied.update(there)
