"""``stepcache bench hotpath``: every path of the cache beside the least it could cost.

No model is asked: the backend answers at once, so that what is measured is the cache. Prompts are
made from templates and made-up words; each round asks another one where a path needs that.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import blake2b
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from stepcache import Message, ModelCall, Reply, Request, StepCacheEngine
from stepcache._counts import count as counted
from stepcache._identity import identify
from stepcache._types import Entry, Step
from stepcache.bench._timing import Pair, Result, compare
from stepcache.embedders import LexicalEmbedder
from stepcache.stores import MemoryStore, SQLiteStore
from stepcache.tasks.linear_equation import LinearEquationTask

__all__ = ["PATHS", "hotpath"]

_SYLLABLES = ("ba", "del", "fi", "gor", "hu", "kal", "lo", "men", "ni", "por", "ru", "sal", "tir")
_KEYS = '{"name": "Ada", "city": "Paris", "age": 36}'
_STEPS = "Subtract 3 from both sides: 2x = 8.\nDivide both sides by 2: x = 4."
_TEXTS = {20: 12, 400: 300}
"""Words for so many tokens."""


class _Instant:
    """A model that takes no time."""

    def generate(self, call: ModelCall, /) -> Reply:
        text = call.messages[-1].text
        return Reply(text=_KEYS if "JSON" in text else _STEPS if " for x" in text else "Noted.")


def _request(text: str, namespace: str = "") -> Request:
    return Request(messages=(Message(role="user", text=text),), model="m", namespace=namespace)


def _word(number: int) -> str:
    """A made-up word, another one for every number."""
    parts = []
    for _ in range(4):
        number, at = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[at])
    return "".join(parts)


def _words(length: int, seed: int = 0) -> str:
    dice = random.Random(seed)  # noqa: S311 - a workload, not a secret
    return " ".join(_word(dice.randrange(13**4)) for _ in range(length))


def _thing(number: int) -> str:
    return f"the {_word(number)} of {_word(number * 7919 % 13**4)}"


def _json_prompt(number: int, keys: str = '"name", "city" and "age"') -> str:
    return f"Give me a JSON object about {_thing(number)} with the keys {keys}."


def _engine(**options: Any) -> StepCacheEngine:
    return StepCacheEngine(backend=_Instant(), **options)


def _fill(engine: StepCacheEngine, total: int, asked: int, namespace: str = "") -> None:
    """Real entries to be asked for, and neighbours of theirs up to a total."""
    for number in range(asked):
        engine.admit(_request(_json_prompt(number), namespace), Reply(text=_KEYS))
    scope = identify(_request("", namespace)).scope
    embedder: Any = engine.embedder
    for start in range(asked, total, 512):
        numbers = range(start, min(total, start + 512))
        rows = embedder.embed([_json_prompt(number) for number in numbers])
        for number, row in zip(numbers, rows):
            engine.store.put(filler(scope, number), row, embedder.fingerprint)


def filler(scope: str, number: int) -> Entry:
    """An entry that similarity finds and nothing serves."""
    name = f"filler-{number}"
    return Entry(
        id=name,
        scope=scope,
        exact_key=name,
        canonical_key=None,
        prompt=_json_prompt(number),
        constraints=None,
        steps=(Step(index=0, text=_KEYS, kind="json"),),
    )


# --- the paths ---------------------------------------------------------------------------------


def _exact(tokens: int) -> Callable[[ExitStack, int], Pair]:
    def made(stack: ExitStack, entries: int) -> Pair:
        engine = _engine()
        request = _request(_words(_TEXTS[tokens]))
        engine.resolve(request)
        body = {"model": "m", "messages": [{"role": "user", "content": request.text}]}
        known: dict[bytes, str] = {}

        def floor(turn: int) -> object:
            text = json.dumps(body, sort_keys=True, separators=(",", ":"))
            return known.get(blake2b(text.encode(), digest_size=16).digest())

        def path(turn: int) -> object:
            return _routed(engine, request, "exact")

        return Pair(
            name=f"exact hit, engine, memory, {counted(tokens, 'token')}",
            floor_name="canonical JSON, hash, dict",
            floor=floor,
            path=path,
            unit="ratio",
            limit=3,
            rounds=2000,
        )

    return made


def _langchain(stack: ExitStack, entries: int) -> Pair:
    from langchain_core.caches import InMemoryCache
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from langchain_stepcache import StepCache

    def model(cache: Any) -> Any:
        return GenericFakeChatModel(messages=iter([AIMessage("Noted.")]), cache=cache)

    theirs, ours, text = model(InMemoryCache()), model(StepCache()), _words(_TEXTS[20])
    return Pair(
        name="exact hit through LangChain invoke",
        floor_name="InMemoryCache",
        floor=lambda turn: theirs.invoke(text),
        path=lambda turn: ours.invoke(text),
        unit="ratio",
        limit=1.25,
        rounds=1000,
    )


def _canonical(stack: ExitStack, entries: int) -> Pair:
    engine, task = _engine(), LinearEquationTask()
    engine.resolve(_request("Solve for x: 2x + 3 = 11. Show the steps."))
    wordings = count()

    def request() -> Request:
        # White space does not change the demands and does change the exact key.
        number, spaced = next(wordings), ""
        for sign in "Please solve 2x + 3 = 11 for x. Show the steps.":
            spaced += sign
            if sign == " ":
                number, wide = divmod(number, 2)
                spaced += " " * wide
        return _request(spaced)

    return Pair(
        name="canonical hit, equation re-worded",
        floor_name="parsing",
        floor=lambda turn: task.parse(request()),
        path=lambda turn: _routed(engine, request(), "reuse"),
        unit="ms",
        limit=0.5,
    )


def _reuse(embedder: Callable[[], Any], limit: float, unit: str, late: float | None) -> Any:
    def made(stack: ExitStack, entries: int) -> Pair:
        from stepcache.index._vectors import load_faiss

        rounds = 200
        engine = _engine(embedder=embedder())
        _fill(engine, entries, rounds + rounds // 10)
        tool: Any = engine.embedder
        flat = load_faiss().IndexFlatIP(tool.dimension)
        dice = np.random.default_rng(0)
        flat.add(dice.normal(size=(entries, tool.dimension)).astype(np.float32))
        rows = dict.fromkeys(range(entries), "row")

        def floor(turn: int) -> object:
            text = _json_prompt(turn, '"name" and "age"')
            _, found = flat.search(tool.embed([text, text])[:1], 4)
            return rows.get(int(found[0][0]))

        def path(turn: int) -> object:
            return _routed(engine, _request(_json_prompt(turn, '"name" and "age"')), "adapt")

        return Pair(
            name=f"verified reuse, {tool.fingerprint.partition('/')[0]}, "
            f"{counted(entries, 'entry', 'entries')}",
            floor_name="two views embedded, flat search, dict",
            floor=floor,
            path=path,
            unit=unit,
            limit=limit,
            limit_p99=late,
            rounds=rounds,
        )

    return made


def _namespaces(stack: ExitStack, entries: int) -> Pair:
    embedder = LexicalEmbedder()
    rows = embedder.embed([_json_prompt(number) for number in range(10)])

    def store(namespaces: int) -> MemoryStore:
        made = MemoryStore()
        for scope in range(namespaces):
            for number, row in enumerate(rows):
                made.put(filler(str(scope), number), row, embedder.fingerprint)
        return made

    few, many = store(10), store(entries)
    return Pair(
        name=f"search, {counted(entries, 'namespace')} of 10 entries",
        floor_name="the same with 10 namespaces",
        floor=lambda turn: few.search(str(turn % 10), rows[0], embedder.fingerprint, limit=4),
        path=lambda turn: many.search(
            str(turn * 7919 % entries), rows[0], embedder.fingerprint, limit=4
        ),
        unit="ratio",
        limit=2,
        rounds=1000,
    )


def _folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(TemporaryDirectory(prefix="stepcache-bench-")))


def _raw_table(stack: ExitStack) -> sqlite3.Connection:
    raw = sqlite3.connect(_folder(stack) / "raw.db", isolation_level=None)
    stack.callback(raw.close)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "mmap_size = 268435456"):
        raw.execute(f"PRAGMA {pragma}")
    raw.execute(
        "CREATE TABLE t (n INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, answer BLOB, v BLOB)"
    )
    return raw


def _exact_sqlite(stack: ExitStack, entries: int) -> Pair:
    raw, asked = _raw_table(stack), 500
    engine = _engine(store=SQLiteStore(_folder(stack) / "cache.db"))
    stack.callback(engine.close)
    requests = [_request(f"{_words(_TEXTS[20], number)}") for number in range(asked)]
    for request in requests:
        engine.admit(request, Reply(text="x" * 2000))
        key = blake2b(request.text.encode(), digest_size=16).digest()
        raw.execute("INSERT INTO t (key, answer) VALUES (?, ?)", (key, b"x" * 2000))

    def floor(turn: int) -> object:
        key = blake2b(requests[turn % asked].text.encode(), digest_size=16).digest()
        return raw.execute("SELECT answer FROM t WHERE key = ?", (key,)).fetchone()

    return Pair(
        name="exact hit, engine, SQLite",
        floor_name="hash, one row by key",
        floor=floor,
        path=lambda turn: _routed(engine, requests[turn % asked], "exact"),
        unit="ratio",
        limit=5,
        rounds=2000,
    )


def _put_sqlite(stack: ExitStack, entries: int) -> Pair:
    raw, store = _raw_table(stack), SQLiteStore(_folder(stack) / "cache.db")
    stack.callback(store.close)
    embedder = LexicalEmbedder()
    row = embedder.embed(["one text"])[0]
    blob, answer = row.tobytes(), b"x" * 2000
    step = (Step(index=0, text="x" * 2000),)

    def floor(turn: int) -> object:
        key = blake2b(str(turn).encode(), digest_size=16).digest()
        values = (key, answer, blob)
        return raw.execute("INSERT OR REPLACE INTO t (key, answer, v) VALUES (?, ?, ?)", values)

    def path(turn: int) -> object:
        entry = Entry(
            id=f"id-{turn}",
            scope="s",
            exact_key=f"key-{turn}",
            canonical_key=f"canonical-{turn}",
            prompt="one text",
            constraints=None,
            steps=step,
        )
        store.put(entry, row, embedder.fingerprint)
        return entry

    return Pair(
        name="admit one entry, SQLite",
        floor_name="one row of key, vector, 2 KB",
        floor=floor,
        path=path,
        unit="ratio",
        limit=5,
        rounds=500,
    )


def _miss(stack: ExitStack, entries: int) -> Pair:
    engine, backend, rounds = _engine(), _Instant(), 200
    _fill(engine, entries, 4)

    def text(turn: int) -> str:
        return _json_prompt(100_000 + turn)

    def floor(turn: int) -> object:
        messages = (Message(role="user", text=text(turn)),)
        return backend.generate(ModelCall(purpose="answer", messages=messages))

    return Pair(
        name=f"a miss, lexical, {counted(entries, 'entry', 'entries')}",
        floor_name="the bare model (instant)",
        floor=floor,
        path=lambda turn: _asked(engine, _request(text(turn))),
        unit="added ms",
        limit=2,
        rounds=rounds,
    )


def _import(stack: ExitStack, entries: int) -> Pair:
    def run(module: str) -> Callable[[int], object]:
        line = [sys.executable, "-c", f"import {module}"]
        return lambda turn: subprocess.run(line, check=True, timeout=60)  # noqa: S603

    return Pair(
        name="import stepcache",
        floor_name="import numpy",
        floor=run("numpy"),
        path=run("stepcache"),
        unit="added ms",
        limit=100,
        rounds=7,
    )


def _neural() -> Any:
    from stepcache.bench._modes import mini_lm

    return mini_lm()


PATHS: dict[str, Callable[[ExitStack, int], Pair]] = {
    "exact-20": _exact(20),
    "exact-400": _exact(400),
    "langchain": _langchain,
    "canonical": _canonical,
    "reuse": _reuse(LexicalEmbedder, 1.5, "ms", 5),
    "namespaces": _namespaces,
    "exact-sqlite": _exact_sqlite,
    "put-sqlite": _put_sqlite,
    "miss": _miss,
    "import": _import,
    "reuse-neural": _reuse(_neural, 1.2, "ratio", None),
}
"""Every path by its name, made with the number of entries to have."""


def hotpath(names: tuple[str, ...], entries: int = 10_000) -> Iterator[tuple[Result, float]]:
    """Measure paths one after another; each result comes with the seconds it took to set up."""
    for name in names:
        with ExitStack() as stack:
            started = time.perf_counter()
            pair = PATHS[name](stack, entries)
            seconds = time.perf_counter() - started
            yield compare(pair), seconds


def _asked(engine: StepCacheEngine, request: Request) -> object:
    outcome = engine.resolve(request)
    if outcome.route not in ("miss", "skip") or "candidates" not in outcome.trace.names():
        raise AssertionError(f"no searched miss: {outcome.trace.render()}")
    return outcome


def _routed(engine: StepCacheEngine, request: Request, route: str) -> object:
    outcome = engine.resolve(request)
    if outcome.route != route:
        raise AssertionError(f"{outcome.route}, not {route}: {outcome.trace.render()}")
    return outcome
