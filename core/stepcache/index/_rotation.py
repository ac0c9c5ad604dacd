"""A random rotation, after which every element of a vector tells about as much as any other.

Hashed words leave most elements at nothing and some very large. One byte an element is then coarse,
and a sign says little; after a rotation bytes are four times as fine, and the share of equal signs
tells the angle between two vectors (Charikar, 2002).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["Rotation"]

_LARGEST = 512
"""Elements that are rotated among each other; longer vectors are shuffled and cut into parts."""
_SEED = 20_240_301


class Rotation:
    """Orthogonal, so that inner products stay as they are.

    Args:
        order: A permutation of ``range(width)``, where the width is the dimension brought up to a
            multiple of the matrix's size.
        matrix: Orthogonal float32 array of shape (size, size), the size a multiple of 8.
        dimension: Length of the vectors that are rotated.
    """

    def __init__(self, order: Any, matrix: Vector, dimension: int) -> None:
        self.order = order
        self.matrix = matrix
        self.dimension = dimension
        self._back = np.argsort(order)
        self._inverse = np.ascontiguousarray(matrix.T)

    @classmethod
    def random(cls, dimension: int) -> Rotation:
        """A rotation for vectors of a length; the same one on the same machine."""
        parts = -(-dimension // _LARGEST)
        size = 8 * -(-dimension // (8 * parts))
        random = np.random.default_rng(_SEED)
        matrix, _ = np.linalg.qr(random.standard_normal((size, size)))
        return cls(random.permutation(parts * size), matrix.astype(np.float32), dimension)

    @property
    def width(self) -> int:
        """Length of rotated vectors."""
        return len(self.order)

    def apply(self, rows: Vector) -> Vector:
        """Rotated vectors.

        Args:
            rows: float32 array of shape (n, dimension).

        Returns:
            float32 array of shape (n, width).
        """
        if self.dimension < self.width:
            rows = np.pad(rows, ((0, 0), (0, self.width - self.dimension)))
        return self._turned(rows[:, self.order], self.matrix)

    def undo(self, rows: Vector) -> Vector:
        """What :meth:`apply` was given."""
        back: Vector = self._turned(rows, self._inverse)[:, self._back[: self.dimension]]
        return np.ascontiguousarray(back)

    def _turned(self, rows: Vector, matrix: Vector) -> Vector:
        parts: Vector = rows.reshape(-1, len(matrix)) @ matrix
        return parts.reshape(rows.shape)
