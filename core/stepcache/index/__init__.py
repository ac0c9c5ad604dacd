"""Vector indexes: disposable snapshots that find entries by similarity. Stores own the truth."""

from stepcache.index._faiss import VectorIndex, unit_vector

__all__ = ["VectorIndex", "unit_vector"]
