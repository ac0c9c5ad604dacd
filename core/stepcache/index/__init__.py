"""Vector indexes: disposable snapshots that find entries by similarity. Stores own the truth."""

from stepcache.index._index import VectorIndex
from stepcache.index._vectors import unit_vector

__all__ = ["VectorIndex", "unit_vector"]
