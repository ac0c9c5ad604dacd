"""What goes into an index: finite vectors of unit length."""

from __future__ import annotations

import importlib
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from stepcache._errors import StoreError

if TYPE_CHECKING:
    from stepcache.protocols import Vector

__all__ = ["load_faiss", "unit_vector"]

_UNIT_TOLERANCE = 1e-4


def unit_vector(vector: Any, dimension: int | None = None) -> Vector:
    """Check a vector and bring it to unit length, so that inner products are cosines.

    Args:
        vector: Real floating-point array of shape (dimension,). A zero vector stays zero: it is
            near to nothing.
        dimension: The length it must have; None accepts any above 0.

    Returns:
        Contiguous float32 array of shape (dimension,); the argument itself where it already is one.

    Raises:
        StoreError: It is not one, with what was wrong and what to pass instead.
    """
    array = np.asarray(vector)
    if array.ndim != 1 or array.dtype.kind != "f" or not array.size:
        raise StoreError(
            f"a vector of dtype {array.dtype} and shape {array.shape} cannot be indexed: "
            "pass one float32 array of shape (dimension,)"
        )
    if dimension is not None and array.size != dimension:
        raise StoreError(
            f"a vector of length {array.size} does not fit an index of dimension {dimension}: "
            "give the embedder another fingerprint when its dimension changes"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        single: Vector = np.ascontiguousarray(array, dtype=np.float32)
        square = float(single @ single)
    if abs(square - 1.0) <= _UNIT_TOLERANCE:
        return single
    return _rescaled(single)


def load_faiss() -> Any:
    """The faiss module.

    Raises:
        StoreError: It cannot be imported.
    """
    try:
        with warnings.catch_warnings():
            # Its generated wrapper classes lack __module__, which Python 3.12 warns about.
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module("faiss")
    except ImportError as error:
        raise StoreError(f"faiss cannot be imported ({error}): pip install faiss-cpu") from error


def _rescaled(vector: Vector) -> Vector:
    if not np.isfinite(vector).all():
        bad = vector[~np.isfinite(vector)][0]
        raise StoreError(
            f"a vector holding {float(bad)!r} cannot be indexed: every element has to be finite; "
            "check the embedder's output for this text"
        )
    wide = vector.astype(np.float64)
    norm = math.sqrt(float(wide @ wide))
    return (wide / norm).astype(np.float32) if norm else vector
