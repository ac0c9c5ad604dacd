"""A vector index small enough to have one per scope, and good for a million vectors in one.

It begins exact. Above a size it has a coarse block made in the background, and changes over when
that holds everything: reading 10,000 vectors of length 512 takes longer than all the rest of a
look-up. Ids and locking live here, vectors in blocks (``_blocks``).

Equal vectors are kept once. Requests that differ by numbers only have equal vectors when the
embedder masks numbers, and thousands of copies would fill one cell of a coarse block, or all the
slots that a search may look at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from stepcache._counts import count
from stepcache._errors import StoreError
from stepcache._forking import fork_safe_lock
from stepcache.index._blocks import Block, CoarseBlock, ExactBlock
from stepcache.index._growth import Growth
from stepcache.index._vectors import unit_vector

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["EXACT_UP_TO", "VectorIndex", "digest_of"]

EXACT_UP_TO = 5_000
"""Distinct vectors searched exactly; above it a coarse block is faster, once it is made."""

_FIRST_SPARE = 2**62
_OUTGROWN = 3
"""A coarse block with this many times the vectors it was made for is made over."""


def digest_of(unit: Vector) -> int:
    """What equal vectors are known by, on every machine. Two that are confused are a wrong hint,
    not a wrong answer."""
    return int.from_bytes(blake2b(unit.tobytes(), digest_size=8).digest(), "little", signed=True)


class VectorIndex:
    """Finds the nearest of the vectors it holds, each under an integer id. Thread-safe.

    Args:
        dimension: Length of every vector.
        expected: How many vectors are about to be filled in with :meth:`extend`; a hint that has a
            coarse block made on the way, when it would be needed in the end.
        exact_up_to: Distinct vectors up to which searches are exact. Above it they become
            approximate as soon as a background thread is ready: fast, near to exact, and with
            cosines that are off by about a thousandth.

    Attributes:
        dimension: Length of every vector.
    """

    def __init__(
        self, dimension: int, *, expected: int = 0, exact_up_to: int = EXACT_UP_TO
    ) -> None:
        self.dimension = dimension
        self.block: Block = ExactBlock(dimension)
        """Vectors under places. A place is the id of the first vector it was taken for."""
        self.lock = fork_safe_lock()
        self._room = exact_up_to
        self._expected = expected if expected > exact_up_to else 0
        self.growth: Growth | None = None
        """What makes the next block, while it is at it."""
        self._count = 0
        self._digests: dict[int, int] = {}  # by place
        self._known: dict[int, int] = {}  # places by digest
        # Only of places that several ids share, or that are not called by their only id:
        self._sharing: dict[int, dict[int, None]] = {}  # ids by place, the newest last
        self._place_of: dict[int, int] = {}
        self._spare = itertools.count(_FIRST_SPARE)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: int) -> bool:
        return self._place(number) is not None

    @property
    def exact(self) -> bool:
        """Whether searches compare with every vector now."""
        return isinstance(self.block, ExactBlock)

    def numbers(self) -> list[int]:
        """The ids of all vectors now in the index."""
        with self.lock:
            alone = [place for place in self._digests if place not in self._sharing]
            return [*alone, *self._place_of]

    def add(self, number: int, vector: Vector) -> None:
        """Keep a vector; one under the same id is replaced.

        Args:
            number: The id to find it by, 0 to 2**62 - 1.
            vector: float32 array of shape (dimension,), unit length (rescaled where it is not).

        Raises:
            StoreError: Not such a vector.
        """
        unit = unit_vector(vector, self.dimension)
        with self.lock:
            self._remove(number)
            place = self._enter(number, unit)
            if place is not None:
                self.block.add([place], unit[None])
                self._grow()

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
                f"an array of shape {rows.shape} does not hold {count(len(numbers), 'vector')} "
                f"of length {self.dimension}: pass one row per id"
            )
        with self.lock:
            if len({*numbers}) < len(numbers) or any(n in self for n in numbers):
                raise StoreError("an id is there twice: add() replaces, extend() takes new ids")
            taken = [self._enter(number, row) for number, row in zip(numbers, rows)]
            fresh = [at for at, place in enumerate(taken) if place is not None]
            if fresh:
                self.block.add([p for p in taken if p is not None], rows[fresh])
                self._fill() if self._expected else self._grow()

    def take(
        self, block: Block, digests: dict[int, int], shared: Iterable[tuple[int, int]]
    ) -> None:
        """Begin with a block made before, in place of being filled.

        Args:
            block: Vectors under places.
            digests: What :func:`digest_of` says of the vector of each place; no two alike.
            shared: Places with the ids that lead to them, where that is not the one id of the same
                number; ids of one place in the order they came.
        """
        with self.lock:
            self.block = block
            self._digests = digests
            self._known = {digest: place for place, digest in digests.items()}
            self._sharing, self._place_of = {}, {}
            for place, number in shared:
                self._sharing.setdefault(place, {})[number] = None
                self._place_of[number] = place
            self._count = len(digests) - len(self._sharing) + len(self._place_of)
            # Those of before may still be among the places.
            self._spare = itertools.count(max(_FIRST_SPARE, max(digests, default=0) + 1))
            self._room, self._expected = max(self._room, _OUTGROWN * len(digests)), 0

    def remove(self, number: int) -> bool:
        """Forget a vector; False when there was none."""
        with self.lock:
            return self._remove(number)

    def search(self, vector: Vector, limit: int) -> list[tuple[int, float]]:
        """The nearest ids with their cosines, best first; at most ``limit`` of them.

        Of ids with equal vectors the one added last comes first. Where searches are approximate,
        others of equal vectors come after the first of each of the nearest vectors.

        Args:
            vector: float32 array of shape (dimension,).
            limit: How many to look for; 0 or less finds nothing.

        Raises:
            StoreError: Not such a vector.
        """
        unit = unit_vector(vector, self.dimension)
        with self.lock:
            if limit <= 0 or not self._count:
                return []
            near = [(p, max(-1.0, min(1.0, c))) for p, c in self.block.search(unit, limit)]
            return self._ids_of(near, limit) if self.exact else self._mixed_ids_of(near, limit)

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until no block is being made, for so many seconds at most; whether that came."""
        growth = self.growth
        return growth is None or growth.wait(timeout)

    # What follows runs under the lock.

    def places(self) -> list[int]:
        """All places of the block."""
        return list(self._digests)

    def holds(self, place: int) -> bool:
        """Whether the block has such a place."""
        return place in self._digests

    def known_as(self, places: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
        """Digests and shared ids of places that are there, as :meth:`take` wants them."""
        shared = [(place, n) for place in places for n in self._sharing.get(place, ())]
        return [self._digests[place] for place in places], shared

    def _ids_of(self, near: Sequence[tuple[int, float]], limit: int) -> list[tuple[int, float]]:
        """The ids of places, the nearest first, of each place the newest first."""
        found: list[tuple[int, float]] = []
        for place, cosine in near:
            numbers = reversed(self._sharing.get(place, {place: None}))
            found += [(n, cosine) for n in itertools.islice(numbers, limit - len(found))]
            if len(found) >= limit:
                break
        return found

    def _mixed_ids_of(
        self, near: Sequence[tuple[int, float]], limit: int
    ) -> list[tuple[int, float]]:
        """The newest id of each place, and further ones where that is not enough: coarse cosines
        do not tell which of two is the nearest, and one with many ids would leave no room for the
        other."""
        first = [(next(reversed(self._sharing.get(p, {p: None}))), c) for p, c in near]
        if len(first) < limit:
            known = {number for number, _ in first}
            more = self._ids_of(near, limit + len(first))
            first += [each for each in more if each[0] not in known][: limit - len(first)]
            first.sort(key=itemgetter(1), reverse=True)
        return first

    def _place(self, number: int) -> int | None:
        place = self._place_of.get(number)
        if place is None and number in self._digests and number not in self._sharing:
            return number
        return place

    def _enter(self, number: int, unit: Vector) -> int | None:
        """Note an id; the place to keep its vector at, or None where an equal one is there."""
        self._count += 1
        digest = digest_of(unit)
        place = self._known.get(digest)
        if place is not None:
            sharing = self._sharing.get(place)
            if sharing is None:
                sharing = self._sharing[place] = {place: None}
                self._place_of[place] = place
            sharing[number] = None
            self._place_of[number] = place
            return None
        place = number
        if number in self._digests:  # a place that others keep on using after its own id left
            place = next(self._spare)
            self._sharing[place] = {number: None}
            self._place_of[number] = place
        self._digests[place] = digest
        self._known[digest] = place
        self._touch(place)
        return place

    def _remove(self, number: int) -> bool:
        place = self._place(number)
        if place is None:
            return False
        self._count -= 1
        sharing = self._sharing.get(place)
        if sharing is not None:
            del sharing[number], self._place_of[number]
            if sharing:
                return True
            del self._sharing[place]
        del self._known[self._digests.pop(place)]
        self.block.remove(place)
        self._touch(place)
        return True

    def _touch(self, place: int) -> None:
        if (growth := self.growth) is not None:
            growth.touched.add(place)

    def _fill(self) -> None:
        """Go on in a coarse block for all that is expected, once there is enough to learn from."""
        size = len(self._digests)
        if size >= CoarseBlock.sample_size(self._expected):
            self._room = _OUTGROWN * self._expected
            places = self.places()
            rows = self.block.rows(places)
            self.block = CoarseBlock.learned(rows, self._expected)
            self.block.add(places, rows)
            self._expected = 0

    def _grow(self) -> None:
        """Have a block made that suits the size, where this one no longer does."""
        size = len(self._digests)
        growth = self.growth
        if size <= self._room or (growth is not None and growth.running):
            return
        self._room = _OUTGROWN * size
        self.growth = Growth(self)
