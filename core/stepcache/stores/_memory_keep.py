"""Who goes first in a full memory store."""

from __future__ import annotations

import heapq
from collections import OrderedDict

from stepcache.stores._limits import Limits

__all__ = ["Keeper"]

_SPARE_RANKS = 64


class Keeper:
    """Numbers of entries with their sizes, in the order in which they would go. Not thread-safe.

    ``lfu-size`` is Greedy-Dual-Size-Frequency (Cherkasova, 1998), as in the SQLite store: an entry
    is worth its uses over its bytes, beside the worth of the last that went, so that old fame
    fades.

    Args:
        limits: How much may be kept.

    Attributes:
        size: Bytes of all together.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ordered = limits.evict in ("oldest", "lru") and limits.of_all
        self._by_size = limits.evict == "lfu-size" and limits.of_all
        self.size = 0
        self._sizes: OrderedDict[int, int] = OrderedDict()  # whoever goes first, first
        self._ranks: dict[int, tuple[float, int]] = {}  # with how often it was used
        self._heap: list[tuple[float, int]] = []  # ranks of now, and of before
        self._inflation = 0.0

    def came(self, number: int, size: int) -> None:
        """An entry was put in."""
        self._sizes[number] = size
        self.size += size
        if self._by_size:
            self._rank(number, size, 0)

    def went(self, number: int) -> None:
        """An entry was taken out, by whomever."""
        self.size -= self._sizes.pop(number)
        self._ranks.pop(number, None)

    def used(self, number: int) -> None:
        """An entry was served."""
        if self._by_size:
            self._rank(number, self._sizes[number], self._ranks[number][1] + 1)
        elif self._ordered and self._limits.evict == "lru":
            self._sizes.move_to_end(number)

    def victim(self, newest: int) -> int | None:
        """Who has to go now, if anybody; not the entry that was just put in."""
        limits = self._limits
        many = limits.max_entries is not None and len(self._sizes) > limits.max_entries
        large = limits.max_bytes is not None and self.size > limits.max_bytes
        if not many and not large:
            return None
        if not self._by_size:
            return next(iter(self._sizes))
        spared: list[tuple[float, int]] = []
        found = None
        while self._heap and found is None:
            rank, number = heapq.heappop(self._heap)
            if self._ranks.get(number, (None, 0))[0] != rank:
                continue
            if number == newest:
                spared.append((rank, number))
            else:
                found, self._inflation = number, max(self._inflation, rank)
        for each in spared:
            heapq.heappush(self._heap, each)
        return found

    def _rank(self, number: int, size: int, uses: int) -> None:
        rank = self._inflation + (uses + 1) * 1e6 / max(1, size)
        self._ranks[number] = rank, uses
        heapq.heappush(self._heap, (rank, number))
        if len(self._heap) > 2 * len(self._ranks) + _SPARE_RANKS:
            self._heap = [(rank, number) for number, (rank, _) in self._ranks.items()]
            heapq.heapify(self._heap)
