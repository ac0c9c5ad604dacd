"""The coarse index on wordings that people wrote: near requests are found as by a full scan."""

import numpy as np

from stepcache.bench._scale import Prompts
from stepcache.embedders import LexicalEmbedder
from stepcache.index import VectorIndex

ENTRIES, QUERIES = 12_000, 400


def test_hits_are_recalled_among_real_wordings(external_path):
    """Of queries with a near request, 99 of 100 get one as near as the nearest, in four."""
    prompts, embedder = Prompts(external_path("pairs.jsonl").parent), LexicalEmbedder()
    texts = [prompts.next() for _ in range(ENTRIES)]
    rows = embedder.embed(texts)
    queries = embedder.embed([prompts.varied(text, 1) for text in texts[:QUERIES]])
    index = VectorIndex(rows.shape[1])
    for start in range(0, ENTRIES, 1000):
        index.extend(range(start, start + 1000), rows[start : start + 1000])
    assert index.settle(60)
    assert not index.exact
    scores = queries @ rows.T
    nearest = scores.max(axis=1)
    right = [
        max(scores[at, n] for n, _ in index.search(query, 4)) >= nearest[at] - 1e-5
        for at, query in enumerate(queries)
    ]
    hits = nearest >= 0.8
    assert hits.sum() > 100
    assert np.mean(np.array(right)[hits]) >= 0.99
