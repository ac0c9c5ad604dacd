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
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepcache._errors import StoreError
from stepcache.index._blocks import Block, CoarseBlock, ExactBlock
from stepcache.index._growth import Growth
from stepcache.index._vectors import unit_vector

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["EXACT_UP_TO", "VectorIndex"]

EXACT_UP_TO = 5_000
"""Distinct vectors searched exactly; above it a coarse block is faster, once it is made."""

_FIRST_SPARE = 2**62
_OUTGROWN = 3
"""A coarse block with this many times the vectors it was made for is made over."""


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
        self.lock = threading.Lock()
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
                f"an array of shape {rows.shape} does not hold {len(numbers)} vectors of length "
                f"{self.dimension}: pass one row per id"
            )
        with self.lock:
            if len({*numbers}) < len(numbers) or any(n in self for n in numbers):
                raise StoreError("an id is there twice: add() replaces, extend() takes new ids")
            taken = [self._enter(number, row) for number, row in zip(numbers, rows)]
            fresh = [at for at, place in enumerate(taken) if place is not None]
            if fresh:
                self.block.add([p for p in taken if p is not None], rows[fresh])
                self._fill() if self._expected else self._grow()

    def remove(self, number: int) -> bool:
        """Forget a vector; False when there was none."""
        with self.lock:
            return self._remove(number)

    def search(self, vector: Vector, limit: int) -> list[tuple[int, float]]:
        """The nearest ids with their cosines, best first; at most ``limit`` of them.

        Of ids with equal vectors the one added last comes first.

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
            found: list[tuple[int, float]] = []
            for place, cosine in self.block.search(unit, limit):
                similarity = max(-1.0, min(1.0, cosine))
                if (numbers := self._sharing.get(place)) is None:
                    found.append((place, similarity))
                else:
                    some = itertools.islice(reversed(numbers), limit - len(found))
                    found += [(number, similarity) for number in some]
                if len(found) >= limit:
                    break
            return found

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

    def _place(self, number: int) -> int | None:
        place = self._place_of.get(number)
        if place is None and number in self._digests and number not in self._sharing:
            return number
        return place

    def _enter(self, number: int, unit: Vector) -> int | None:
        """Note an id; the place to keep its vector at, or None where an equal one is there."""
        self._count += 1
        # Only told apart by a hash: two vectors confused would be a wrong hint, not a wrong answer.
        digest = hash(unit.tobytes())
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
            self.block = CoarseBlock(rows, self._expected)
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
