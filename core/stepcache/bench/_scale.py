"""``stepcache bench scale``: one namespace with more and more entries, and what that costs.

Prompts are varied from base prompts by putting in other words and numbers, so that vectors are
those of real wording. Queries are stored prompts with one more word changed. A hit is a query with
an exact nearest cosine of at least 0.8; it is recalled when one of the candidates that the index
gives is as near as the exact nearest.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from stepcache.bench._hotpath import filler
from stepcache.embedders import LexicalEmbedder
from stepcache.index import VectorIndex
from stepcache.stores import SQLiteStore

__all__ = ["Prompts", "scale", "scale_table"]

_WORD = re.compile(r"[^\W\d_]{4,32}|\d{1,12}")
_QUERIES = 500
_CANDIDATES = 4
_HIT = 0.8
_AT_ONCE = 2000
_UPKEEP = 2000
_WINDOWS, _WINDOW_SECONDS = 20, 1.0
_BETWEEN_PUTS = 0.005
_MAX_PROMPT = 1500
_IN_A_FILE = 1_200_000
"""Larger sizes are measured in the index only: such a file has many gigabytes."""


class Prompts:
    """Endless prompts of real wording.

    Args:
        folder: Where ``.jsonl`` files with ``prompt``, ``a`` or ``b`` lie; None takes the
            benchmark's own workload.
        seed: Of the words put in.
    """

    def __init__(self, folder: Path | None, seed: int = 0) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - a workload, not a secret
        self.source = str(folder.name) if folder is not None else "the benchmark's workload"
        texts = _read(folder) if folder is not None else _own()
        self._base = sorted({text for text in texts if len(text) < _MAX_PROMPT})
        words = {word for text in self._base for word in _WORD.findall(text)}
        self._words = sorted(word for word in words if not word[0].isdigit())
        if not self._words:
            raise ValueError(f"{folder}: no prompts in its .jsonl files")

    def next(self) -> str:
        """A base prompt with one to four words changed, and every number."""
        return self.varied(self._dice.choice(self._base), self._dice.choice((1, 2, 3, 4)))

    def varied(self, text: str, words: int) -> str:
        """A text with so many words changed, and every number."""
        spots = list(_WORD.finditer(text))
        chosen = set(self._dice.sample(range(len(spots)), min(words, len(spots))))
        parts, at = [], 0
        for number, spot in enumerate(spots):
            if spot.group()[0].isdigit():
                new = str(self._dice.randrange(10 ** len(spot.group())))
            elif number in chosen:
                new = self._dice.choice(self._words)
            else:
                continue
            parts += [text[at : spot.start()], new]
            at = spot.end()
        return "".join(parts) + text[at:]


def _read(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                for name in ("prompt", "a", "b"):
                    if isinstance(record.get(name), str):
                        yield record[name]


def _own() -> Iterator[str]:
    from stepcache.bench._workload import workload

    for seed in (42, 43, 44):
        for item in workload(seed):
            yield item.prompt


def scale(sizes: Sequence[int], folder: Path | None) -> Iterator[dict[str, Any]]:
    """One row of figures a size."""
    for size in sizes:
        yield _row(size, Prompts(folder))
        gc.collect()


def _row(size: int, prompts: Prompts) -> dict[str, Any]:
    embedder = LexicalEmbedder()
    with TemporaryDirectory(prefix="stepcache-bench-") as name:
        # In a file, so that the memory of the process is that of the index.
        vectors = np.lib.format.open_memmap(
            Path(name) / "v.npy", "w+", np.float32, (size, embedder.dimension)
        )
        queries = _embedded(vectors, prompts, embedder, size)
        nearest = _nearest(vectors, queries)
        row = {"entries": size, "prompts": prompts.source, **_index(vectors, queries, nearest)}
        if size <= _IN_A_FILE:
            row |= _file(Path(name), vectors, queries, nearest, embedder.fingerprint)
    return row


def _embedded(vectors: Any, prompts: Prompts, embedder: LexicalEmbedder, size: int) -> Any:
    asked: list[str] = []
    for start in range(0, size, _AT_ONCE):
        texts = [prompts.next() for _ in range(min(_AT_ONCE, size - start))]
        vectors[start : start + len(texts)] = embedder.embed(texts)
        share = -(-_QUERIES * len(texts) // size)
        asked += [prompts.varied(text, 1) for text in texts[:share]]
    return embedder.embed(asked[:_QUERIES])


def _nearest(vectors: Any, queries: Any) -> Any:
    best = np.full(len(queries), -2.0, dtype=np.float32)
    for start in range(0, len(vectors), 20_000):
        best = np.maximum(best, (queries @ vectors[start : start + 20_000].T).max(axis=1))
    return best


def _index(vectors: Any, queries: Any, nearest: Any) -> dict[str, Any]:
    size, dimension = vectors.shape
    VectorIndex(dimension).add(0, vectors[0])  # faiss itself is not an entry's memory
    before = _memory()
    started = time.perf_counter()
    index = VectorIndex(dimension, expected=size)
    for start in range(0, size, _AT_ONCE):
        rows = np.array(vectors[start : start + _AT_ONCE])
        index.extend(range(start, start + len(rows)), rows)
    index.settle()
    filled = time.perf_counter() - started
    gc.collect()
    bytes_each = (_memory() - before) / size
    times, right = [], []
    for query, best in zip(queries, nearest):
        start_ns = time.perf_counter_ns()
        found = index.search(query, _CANDIDATES)
        times.append(time.perf_counter_ns() - start_ns)
        right.append(max(float(vectors[n] @ query) for n, _ in found) >= best - 1e-5)
    hits = nearest >= _HIT
    return {
        "distinct_vectors": len(index.block),
        "exact": index.exact,
        "fill_seconds": round(filled, 2),
        "bytes_per_entry": round(bytes_each),
        "hits": int(hits.sum()),
        "recall_on_hits": round(float(np.mean(np.array(right)[hits])), 4) if hits.any() else None,
        **_spread("search_hit", np.array(times)[hits]),
        **_spread("search_all", times),
        **_upkeep(index, vectors, queries[hits]),
    }


def _upkeep(index: VectorIndex, vectors: Any, queries: Any) -> dict[str, Any]:
    """Hits in turn alone and right after an entry was evicted and another added."""
    adds, removes, quiet, searches = [], [], [], []
    clock = time.perf_counter_ns
    for turn in range(min(_UPKEEP, len(vectors) // 2)):
        query, row = queries[turn % len(queries)], np.array(vectors[turn])
        start = clock()
        index.search(query, _CANDIDATES)
        quiet.append(clock() - start)
        start = clock()
        index.remove(turn)
        removed = clock()
        index.add(len(vectors) + turn, row)
        added = clock()
        index.search(query, _CANDIDATES)
        searches.append(clock() - added)
        adds.append(added - removed)
        removes.append(removed - start)
    return {
        **_spread("add", adds),
        **_spread("remove", removes),
        **_spread("hit_between_changes", quiet),
        **_spread("hit_after_changes", searches),
    }


def _file(
    folder: Path, vectors: Any, queries: Any, nearest: Any, fingerprint: str
) -> dict[str, Any]:
    """The same entries in a SQLite file: put, make the index, start again, search, evict."""
    path = folder / "cache.db"
    store = SQLiteStore(path)
    started = time.perf_counter()
    for number, row in enumerate(vectors):
        store.put(filler("s", number), np.array(row), fingerprint)
    put = (time.perf_counter() - started) / len(vectors)
    made = _first(store, queries[0], fingerprint)
    store.close()
    beside = sum(file.stat().st_size for file in folder.glob("cache.db-index-*"))
    started = time.perf_counter()
    store = SQLiteStore(path, max_entries=len(vectors))
    again = time.perf_counter() - started + _first(store, queries[0], fingerprint)
    right = []
    for query, best in zip(queries, nearest):
        found = store.search("s", query, fingerprint, limit=_CANDIDATES)
        near = max(float(vectors[_number(m.entry.id)] @ query) for m in found)
        right.append(near >= best - 1e-5)
    hits = nearest >= _HIT
    row = {
        "sqlite_put_us": round(put * 1e6),
        "sqlite_start_without_snapshot_seconds": round(made, 2),
        "sqlite_start_seconds": round(again, 2),
        "sqlite_snapshot_bytes_per_entry": round(beside / len(vectors)),
        "sqlite_file_bytes_per_entry": round(path.stat().st_size / len(vectors)),
        "sqlite_recall_on_hits": round(float(np.mean(np.array(right)[hits])), 4)
        if hits.any()
        else None,
        **_evicting(store, vectors, queries[hits], fingerprint),
    }
    store.close()
    return row


def _first(store: SQLiteStore, query: Any, fingerprint: str) -> float:
    """Seconds of the first search of a store just opened."""
    started = time.perf_counter()
    store.search("s", query, fingerprint, limit=_CANDIDATES)
    return time.perf_counter() - started


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _evicting(store: SQLiteStore, vectors: Any, queries: Any, fingerprint: str) -> dict[str, float]:
    """Hits while another thread puts entries, each of which evicts one, and while it rests."""
    puts: list[int] = []
    busy, over = threading.Event(), threading.Event()

    def put_and_evict() -> None:
        turn = 0
        while not over.is_set():
            if not busy.wait(0.01):
                continue
            entry = filler("s", len(vectors) + turn)
            start = time.perf_counter_ns()
            store.put(entry, np.array(vectors[turn % len(vectors)]), fingerprint)
            puts.append(time.perf_counter_ns() - start)
            turn += 1
            time.sleep(_BETWEEN_PUTS)

    other = threading.Thread(target=put_and_evict)
    other.start()
    alone: list[int] = []
    beside: list[int] = []
    turn = 0
    try:
        for window in range(_WINDOWS):
            times = beside if window % 2 else alone
            (busy.set if window % 2 else busy.clear)()
            time.sleep(0.02)
            end = time.perf_counter() + _WINDOW_SECONDS
            while time.perf_counter() < end:
                start = time.perf_counter_ns()
                query = queries[turn % len(queries)]
                store.search("s", query, fingerprint, limit=_CANDIDATES)
                times.append(time.perf_counter_ns() - start)
                turn += 1
    finally:
        over.set()
        other.join()
    return {
        **_spread("sqlite_put_and_evict", puts),
        **_spread("sqlite_hit_alone", alone),
        **_spread("sqlite_hit_beside_puts", beside),
    }


def _spread(name: str, times: Sequence[int]) -> dict[str, float]:
    quiet, median, late = (np.percentile(times, [10, 50, 99]) / 1e3).tolist()
    return {
        f"{name}_p10_us": round(quiet, 1),
        f"{name}_p50_us": round(median, 1),
        f"{name}_p99_us": round(late, 1),
    }


def _memory() -> int:
    """Bytes of this process that are its own; 0 where the system does not say."""
    try:
        with open(f"/proc/{os.getpid()}/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
    except (OSError, StopIteration, ValueError):
        return 0


def scale_table(rows: Sequence[dict[str, Any]]) -> str:
    """The figures as a Markdown table, a column a size."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = f"| | {' | '.join(format(row['entries'], ',') for row in rows)} |"
    lines = [head, "|---" * (len(rows) + 1) + "|"]
    for name in names[1:]:
        cells = " | ".join(str(row.get(name, "")) for row in rows)
        lines.append(f"| {name.replace('_', ' ')} | {cells} |")
    return "\n".join(lines)
