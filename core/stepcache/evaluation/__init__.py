"""How often does a cache serve the wrong answer? Pairs of requests, both ways round.

    >>> from stepcache.evaluation import EngineFace, Pair, evaluate
    >>> pairs = [Pair.of("1", "Name 3 rivers.", "Name 4 rivers.", same=False, category="number")]
    >>> evaluate(EngineFace(), pairs).wrong
    0

For each pair the answer to one request is put into an empty cache, the other is asked for, and the
other way round. A stored answer that comes back where the two want different ones is *wrong*.
"""

from stepcache.evaluation._faces import (
    EngineFace,
    Face,
    LangChainFace,
    Served,
    load_engine,
    load_face,
)
from stepcache.evaluation._pairs import FOW_SETS, Pair, read_fow, read_pairs
from stepcache.evaluation._report import LookUp, Report, Tally, wilson
from stepcache.evaluation._run import evaluate

__all__ = [
    "FOW_SETS",
    "EngineFace",
    "Face",
    "LangChainFace",
    "LookUp",
    "Pair",
    "Report",
    "Served",
    "Tally",
    "evaluate",
    "load_engine",
    "load_face",
    "read_fow",
    "read_pairs",
    "wilson",
]
