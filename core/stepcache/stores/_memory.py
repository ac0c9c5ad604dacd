"""The store of one process: dictionaries, and an exact vector index per scope and embedder."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from stepcache._errors import StoreError
from stepcache._forking import fork_safe_lock
from stepcache._reports import tenant_of
from stepcache._types import Entry
from stepcache.index import VectorIndex, unit_vector
from stepcache.protocols import Match, Vector
from stepcache.stores._check import stamped
from stepcache.stores._limits import Limits
from stepcache.stores._memory_keep import Keeper
from stepcache.stores._record import encode

__all__ = ["MemoryStore"]

_K = TypeVar("_K")
_SEARCH_ATTEMPTS = 3
_SPARE_DEADLINES = 64


class _Kept(NamedTuple):
    entry: Entry
    block: tuple[str, str] | None
    """Scope and fingerprint of the index that holds its vector."""
    tenant: bytes | None
    """Whose it is, where there is a limit by namespace."""


class MemoryStore:
    """Keeps entries in memory, for one process; they are gone when it ends. Thread-safe.

    Entries are frozen, so what is handed out is what was put in. Every entry has a number that is
    never used again: a later number is a newer entry, and an index that still knows the number of
    an entry just removed finds nothing under it.

    Args:
        max_entries: Above this many, some go; None keeps all.
        clock: Seconds since the epoch.
        max_bytes: Above this many bytes of records and vectors, some go; None keeps all. Counted as
            a file would hold them: in memory an entry takes two or three times as much.
        evict: Who goes first: ``"lru"``, the entries not put, got or found for longest;
            ``"oldest"``, those put longest ago, whether read or not; ``"lfu-size"``, those used
            least for their size.
        max_entries_per_namespace: Above this many of one namespace, its oldest go with its next
            put; None sets no such limit.

    Raises:
        ConfigurationError: A limit that cannot work.
    """

    def __init__(
        self,
        max_entries: int | None = None,
        clock: Callable[[], float] = time.time,
        *,
        max_bytes: int | None = None,
        evict: str = "lru",
        max_entries_per_namespace: int | None = None,
    ) -> None:
        self._limits = Limits(
            store="MemoryStore",
            max_entries=max_entries,
            max_bytes=max_bytes,
            evict=evict,
            max_entries_per_namespace=max_entries_per_namespace,
        )
        self._most_of_one = max_entries_per_namespace
        self._clock = clock
        self._lock = fork_safe_lock()
        self._closed = False
        self._numbers = itertools.count()
        self._forget_all()

    def get(self, scope: str, key: str, /) -> Entry | None:
        """The live entry whose exact or, failing that, canonical key is ``key``, or None."""
        with self._lock:
            self._settle()
            number = self._exact.get((scope, key))
            if number is None:
                sharing = self._canonical.get((scope, key))
                if sharing is None:
                    return None
                number = next(reversed(sharing))
            return self._used(number)

    def search(
        self, scope: str, vector: Vector, fingerprint: str, /, *, limit: int
    ) -> tuple[Match, ...]:
        """The nearest live entries of a scope embedded by ``fingerprint``, best first.

        Args:
            vector: float32 array of shape (dimension,).
            limit: How many at most.

        Raises:
            StoreError: Not a vector of these entries' dimension, or the store is closed.
        """
        unit = unit_vector(vector)
        matches: tuple[Match, ...] = ()
        for _ in range(_SEARCH_ATTEMPTS):
            with self._lock:
                self._settle()
                index = self._indexes.get((scope, fingerprint))
            if index is None:
                return ()
            # Outside the lock: readers by key do not wait for a scan.
            found = index.search(unit, limit)
            with self._lock:
                self._settle()
                matches = tuple(
                    Match(self._used(number), similarity)
                    for number, similarity in found
                    if number in self._entries
                )
            if len(matches) == len(found):
                break
            # Something found was removed meanwhile and may have hidden a live entry: look again.
        return matches

    def put(
        self, entry: Entry, vector: Vector | None, fingerprint: str, /, *, ttl: float | None = None
    ) -> None:
        """Keep an entry; one with the same scope and exact key is replaced.

        Args:
            vector: float32 array of shape (dimension,), or None to keep it out of searches.
            fingerprint: Of the embedder that made the vector.
            ttl: Seconds it may be served from now; None leaves ``entry.expires`` as it is.

        Raises:
            StoreError: A vector, a ``ttl`` or an entry that cannot be kept, or the store is closed.
                Nothing has changed then.
        """
        unit = None if vector is None else unit_vector(vector)
        kept = stamped(entry, self._clock(), ttl)
        size = 0
        if self._limits.max_bytes is not None or self._limits.evict == "lfu-size":
            size = len(encode(kept)) + (0 if unit is None else unit.nbytes)
            self._limits.check(size)
        with self._lock:
            self._settle()
            block = None if unit is None else (kept.scope, fingerprint)
            number = next(self._numbers)
            if unit is not None and block is not None:
                # First, for it may refuse the vector's length.
                index = self._indexes.get(block)
                if index is None:
                    index = self._indexes[block] = VectorIndex(len(unit))
                index.add(number, unit)
            replaced = self._exact.get((kept.scope, kept.exact_key))
            if replaced is not None:
                self._drop(replaced)
            tenant = None if self._most_of_one is None else tenant_of(kept)
            self._enter(number, _Kept(kept, block, tenant), size)
            if tenant is not None and self._most_of_one is not None:
                own = self._by_tenant[tenant]
                while len(own) > self._most_of_one:
                    self._drop(next(iter(own)))
            while (victim := self._keeper.victim(number)) is not None:
                self._drop(victim)

    def remove(self, entry_id: str, /) -> bool:
        """Forget one entry; False when there was none."""
        with self._lock:
            self._settle()
            numbers = tuple(self._by_id.get(entry_id, ()))
            for number in numbers:
                self._drop(number)
            return bool(numbers)

    def clear(self, scope: str | None = None, /) -> int:
        """Forget a scope, or everything; returns how many live entries went."""
        with self._lock:
            self._settle()
            if scope is None:
                gone = len(self._entries)
                self._forget_all()
                return gone
            numbers = tuple(self._by_scope.get(scope, ()))
            for number in numbers:
                self._drop(number)
            return len(numbers)

    def count(self, scope: str | None = None, /) -> int:
        """Live entries in a scope, or in all."""
        with self._lock:
            self._settle()
            return len(self._entries if scope is None else self._by_scope.get(scope, ()))

    def find(self, entry_id: str, /) -> Entry | None:
        """The live entry of an id, or None."""
        with self._lock:
            self._settle()
            numbers = self._by_id.get(entry_id)
            return self._entries[next(reversed(numbers))].entry if numbers else None

    def entries(self) -> tuple[Entry, ...]:
        """Every live entry, the oldest first."""
        with self._lock:
            self._settle()
            return tuple(kept.entry for kept in self._entries.values())

    def close(self) -> None:
        """Let go of everything. Further calls raise, except to close again."""
        with self._lock:
            self._closed = True
            self._forget_all()

    # What follows runs under the lock.

    def _forget_all(self) -> None:
        self._entries: dict[int, _Kept] = {}  # oldest first
        self._keeper = Keeper(self._limits)
        self._exact: dict[tuple[str, str], int] = {}
        self._canonical: dict[tuple[str, str], dict[int, None]] = {}  # newest last
        self._by_id: dict[str, dict[int, None]] = {}
        self._by_scope: dict[str, dict[int, None]] = {}
        self._by_tenant: dict[bytes, dict[int, None]] = {}  # oldest first
        self._indexes: dict[tuple[str, str], VectorIndex] = {}
        self._deadlines: list[tuple[float, int]] = []

    def _settle(self) -> None:
        """Refuse a closed store and drop what has expired: after it, every entry is live."""
        if self._closed:
            raise StoreError("the store is closed: open a new one")
        if not self._deadlines:
            return
        now = self._clock()
        while self._deadlines and self._deadlines[0][0] <= now:
            self._drop(heapq.heappop(self._deadlines)[1])

    def _used(self, number: int) -> Entry:
        self._keeper.used(number)
        return self._entries[number].entry

    def _enter(self, number: int, kept: _Kept, size: int) -> None:
        entry = kept.entry
        self._entries[number] = kept
        self._keeper.came(number, size)
        self._exact[entry.scope, entry.exact_key] = number
        if entry.canonical_key is not None:
            self._canonical.setdefault((entry.scope, entry.canonical_key), {})[number] = None
        self._by_id.setdefault(entry.id, {})[number] = None
        self._by_scope.setdefault(entry.scope, {})[number] = None
        if kept.tenant is not None:
            self._by_tenant.setdefault(kept.tenant, {})[number] = None
        if entry.expires is not None:
            heapq.heappush(self._deadlines, (entry.expires, number))
            if len(self._deadlines) > 2 * len(self._entries) + _SPARE_DEADLINES:
                # Deadlines of entries replaced before their time; else they pile up until then.
                self._deadlines = [d for d in self._deadlines if d[1] in self._entries]
                heapq.heapify(self._deadlines)

    def _drop(self, number: int) -> None:
        kept = self._entries.pop(number, None)
        if kept is None:
            return
        self._keeper.went(number)
        entry = kept.entry
        del self._exact[entry.scope, entry.exact_key]
        if entry.canonical_key is not None:
            _unlink(self._canonical, (entry.scope, entry.canonical_key), number)
        _unlink(self._by_id, entry.id, number)
        _unlink(self._by_scope, entry.scope, number)
        if kept.tenant is not None:
            _unlink(self._by_tenant, kept.tenant, number)
        if kept.block is not None:
            index = self._indexes[kept.block]
            index.remove(number)
            if not len(index):
                del self._indexes[kept.block]


def _unlink(table: dict[_K, dict[int, None]], key: _K, number: int) -> None:
    numbers = table[key]
    del numbers[number]
    if not numbers:
        del table[key]
