"""Vector indexes: disposable snapshots that find entries by similarity. Stores own the truth."""

from stepcache.index._index import EXACT_UP_TO, VectorIndex, digest_of
from stepcache.index._snapshot import load_index, save_index, seen_in
from stepcache.index._vectors import unit_vector

__all__ = [
    "EXACT_UP_TO",
    "VectorIndex",
    "digest_of",
    "load_index",
    "save_index",
    "seen_in",
    "unit_vector",
]
