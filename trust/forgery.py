"""Rows of a store forged by somebody who can write its file but has not its key.

Each trial changes one stored row below the store, asks for it as a request would (by key, by
canonical key, by its vector, by its id) and puts it back. Served is what comes back and is not the
entry that was stored; what comes back unchanged is no forgery (a column nobody believes).
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from stepcache._types import Entry, Step
from stepcache.stores import SQLiteStore
from trust._mutate import mutated_bytes
from trust.targets.records import sample_entry

__all__ = ["Forgeries", "PostgresRows", "SQLiteRows", "forge"]

_SHOWN = 8
_FINGERPRINT = "forged/1"
_ROWS = 40
_BITS = 3
"""Of eight trials so many change a bit."""
_SHORT = 3.0
"""Seconds after which the old entries are over: more than reading them back takes."""
_DIMENSION = 16


@dataclass(slots=True, kw_only=True)
class Forgeries:
    """What the trials came to."""

    store: str
    trials: int = 0
    served: int = 0
    """Forged content that came back. Must be 0."""
    unharmed: int = 0
    """Trials after which the true entry came back: nothing that counts was changed."""
    lost: int = 0
    """Trials after which nothing came back: the row was refused."""
    errors: int = 0
    """Calls that raised: a forged row must be a miss. Must be 0."""
    kinds: dict[str, int] = field(default_factory=dict)
    regions: int = 0
    """Byte offsets within records at which a bit was changed; of ``longest``."""
    longest: int = 0
    """Bytes of the longest record."""
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)


class SQLiteRows:
    """The rows of a SQLite store, below it."""

    name = "sqlite"
    columns = (
        *("scope", "exact_key", "canonical_key", "entry_id", "fingerprint", "expires"),
        *("checksum", "record", "vector"),
    )

    def __init__(self, path: Path) -> None:
        self._path = path
        self.store: Any = SQLiteStore(path)
        self._raw = sqlite3.connect(path, isolation_level=None)
        self._raw.execute("PRAGMA synchronous = OFF")

    def all(self) -> list[dict[str, Any]]:
        """Every row."""
        cursor = self._raw.execute("SELECT * FROM entries ORDER BY number")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row)) for row in cursor]

    def set(self, number: int, changes: dict[str, Any]) -> bool:
        """Change columns of a row; False where the database itself refuses."""
        told = ", ".join(f"{name} = ?" for name in changes)
        statement = f"UPDATE OR REPLACE entries SET {told} WHERE number = ?"
        try:
            self._raw.execute(statement, (*changes.values(), number))
        except sqlite3.Error:
            return False
        return True

    def restore(self, rows: Sequence[dict[str, Any]]) -> None:
        """Put rows back as they were, whatever has become of them."""
        for row in rows:
            names = ", ".join(row)
            marks = ", ".join("?" * len(row))
            statement = f"INSERT OR REPLACE INTO entries ({names}) VALUES ({marks})"
            self._raw.execute(statement, tuple(row.values()))

    def reopened(self) -> Any:
        """The store as another process would open it: nothing remembered."""
        self.store.close()
        self.store = SQLiteStore(self._path)
        return self.store

    def close(self) -> None:
        """Let go of the file."""
        self.store.close()
        self._raw.close()


class PostgresRows:
    """The rows of a PostgreSQL store, below it."""

    name = "postgresql"
    columns = (
        *("scope", "exact_key", "canonical_key", "entry_id", "created", "expires", "checksum"),
        *("record", "embedding"),
    )

    def __init__(self, url: str, schema: str, key: bytes) -> None:
        import psycopg

        from stepcache.stores import PostgresStore

        self._url, self._schema = url, schema
        self._open: Callable[[], Any] = lambda: PostgresStore(url, schema=schema, integrity_key=key)
        self.store: Any = self._open()
        self._raw = psycopg.connect(url, autocommit=True)

    def all(self) -> list[dict[str, Any]]:
        """Every row."""
        cursor = self._raw.execute(f"SELECT * FROM {self._schema}.entries ORDER BY number")
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row)) for row in cursor]

    def set(self, number: int, changes: dict[str, Any]) -> bool:
        """Change columns of a row; False where the database itself refuses."""
        import psycopg

        told = ", ".join(f"{name} = %s" for name in changes)
        statement = f"UPDATE {self._schema}.entries SET {told} WHERE number = %s"
        try:
            self._raw.execute(statement, (*changes.values(), number))
        except psycopg.Error:
            return False
        return True

    def restore(self, rows: Sequence[dict[str, Any]]) -> None:
        """Put rows back as they were."""
        for row in rows:
            self._raw.execute(
                f"DELETE FROM {self._schema}.entries WHERE number = %s"
                " OR (scope = %s AND exact_key = %s)",
                (row["number"], row["scope"], row["exact_key"]),
            )
            names = ", ".join(row)
            marks = ", ".join(["%s"] * len(row))
            self._raw.execute(
                f"INSERT INTO {self._schema}.entries ({names}) VALUES ({marks})",
                tuple(row.values()),
            )

    def reopened(self) -> Any:
        """The store as another process would open it."""
        self.store.close()
        self.store = self._open()
        return self.store

    def close(self) -> None:
        """Let go of the connections."""
        self.store.close()
        self._raw.close()


def forge(
    rows: SQLiteRows | PostgresRows,
    *,
    trials: int,
    seed: int,
    progress: Callable[[str], None] = lambda told: None,
) -> Forgeries:
    """Run the trials on a store that is empty."""
    dice = random.Random(f"{seed}/forgery/{rows.name}")
    tally = Forgeries(store=rows.name)
    began = time.perf_counter()
    entries, stored = _filled(rows, dice)
    older = _replaced(rows, entries, stored)
    touched: set[int] = set()
    lengths = [len(bytes(row["record"])) for row in stored]
    tally.longest = max(lengths)
    for trial in range(trials):
        at = dice.randrange(len(stored))
        if trial % 8 < _BITS and _turn(trial) < tally.longest:
            at = lengths.index(tally.longest)  # first all of its bytes, then some of everybody's
        kind, changes, byte = _forgery(rows, stored, older, at, trial, dice)
        if byte is not None:
            touched.add(byte)
        tally.trials += 1
        tally.kinds[kind] = tally.kinds.get(kind, 0) + 1
        rows.set(stored[at]["number"], changes)
        # Half of the time by a store that has read the row before, half by one that has not.
        store = rows.store if trial % 20 else rows.reopened()
        _asked(tally, store, entries, at, f"{rows.name} #{trial} {kind}")
        rows.restore([stored[at]] if not kind.startswith("moved") else stored)
        if trial % 1000 == 999:
            progress(f"{rows.name}: {trial + 1} forged, {tally.served} served")
    tally.regions = len(touched)
    tally.seconds = time.perf_counter() - began
    return tally


def _turn(trial: int) -> int:
    """How many bits were changed before a trial that changes one."""
    return trial // 8 * _BITS + trial % 8


def _filled(
    rows: SQLiteRows | PostgresRows, dice: random.Random
) -> tuple[list[Entry], list[dict[str, Any]]]:
    """Entries of several scopes, each with a vector of its own, and their rows."""
    entries: list[Entry] = []
    stored: list[dict[str, Any]] = []
    for number in range(_ROWS):
        entry = replace(
            sample_entry(dice),
            scope=f"{number % 4:064x}",
            exact_key=f"{number + 1000:064x}",
            canonical_key=f"{number + 5000:064x}",
            steps=(Step(index=0, text=f"the answer {number}"),),
            expires=None,
        )
        stored.append(_put(rows, entry, number))
        entries.append(rows.store.get(entry.scope, entry.exact_key))
    return entries, stored


def _replaced(
    rows: SQLiteRows | PostgresRows, entries: list[Entry], stored: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Rows as they were before some entries expired: genuine, and over."""
    before: list[dict[str, Any]] = []
    for at in range(0, len(entries), 4):
        short = replace(entries[at], steps=(Step(index=0, text="of yesterday"),))
        before.append(_put(rows, short, at, ttl=_SHORT))
        stored[at] = _put(rows, entries[at], at)
        entries[at] = rows.store.get(entries[at].scope, entries[at].exact_key)
    time.sleep(_SHORT)
    return before


def _put(
    rows: SQLiteRows | PostgresRows, entry: Entry, number: int, ttl: float | None = None
) -> dict[str, Any]:
    """Keep an entry; the row that holds it."""
    known = {(row["number"], bytes(row["record"])) for row in rows.all()}
    rows.store.put(entry, _vector(number), _FINGERPRINT, ttl=ttl)
    (new,) = [r for r in rows.all() if (r["number"], bytes(r["record"])) not in known]
    return new


def _vector(number: int) -> Any:
    vector = np.zeros(_DIMENSION, dtype=np.float32)
    vector[number % _DIMENSION] = 1.0
    vector[(number * 7 + 3) % _DIMENSION] += 0.5
    return vector / np.linalg.norm(vector)


def _forgery(
    rows: SQLiteRows | PostgresRows,
    stored: list[dict[str, Any]],
    older: list[dict[str, Any]],
    at: int,
    trial: int,
    dice: random.Random,
) -> tuple[str, dict[str, Any], int | None]:
    """A kind of forgery, the columns it changes, and the byte of the record where it does."""
    row = stored[at]
    other = stored[dice.randrange(len(stored))]
    record = bytes(row["record"])
    match trial % 8:
        case 0 | 1 | 2:  # every byte in turn
            place = _turn(trial) % len(record)
            bit = 1 << dice.randrange(8)
            forged = record[:place] + bytes([record[place] ^ bit]) + record[place + 1 :]
            return "a bit of the record", {"record": forged}, place
        case 3:
            return (
                "bytes of the record",
                {"record": mutated_bytes(record, dice, bytes(other["record"]))},
                None,
            )
        case 4:
            return "another row's record", {"record": other["record"]}, None
        case 5:
            names = ("record", "checksum", "vector", "embedding", "entry_id", "canonical_key")
            return (
                "moved: another row but for its keys",
                {name: other[name] for name in names if name in row},
                None,
            )
        case 6 if older:
            over = older[dice.randrange(len(older))]
            return (
                "an expired record put back",
                {
                    "record": over["record"],
                    "checksum": over["checksum"],
                    "expires": None,
                },
                None,
            )
        case _:
            name = dice.choice(rows.columns)
            value = dice.choice((other[name], None, 0, b"", b"x" * 64, "x", 1e18))
            return f"the column {name}", {name: value}, None


def _asked(tally: Forgeries, store: Any, entries: Sequence[Entry], at: int, told: str) -> None:
    entry = entries[at]
    calls: tuple[Callable[[], Any], ...] = (
        lambda: [store.get(entry.scope, entry.exact_key)],
        lambda: [store.get(entry.scope, entry.canonical_key)],
        lambda: [m.entry for m in store.search(entry.scope, _vector(at), _FINGERPRINT, limit=4)],
        lambda: [store.find(entry.id)],
    )
    found: list[Entry] = []
    for call in calls:
        try:
            found.extend(each for each in call() if each is not None)
        except Exception as error:
            tally.errors += 1
            _note(tally, f"{told}: raised {type(error).__name__}: {error}")
    # Whatever comes back must be a true entry, in the scope that was asked for.
    strange = [each for each in found if each not in entries or each.scope != entry.scope]
    if strange:
        tally.served += 1
        _note(tally, f"{told}: served {strange[0].text!r} of {strange[0].scope[-4:]}")
    elif entry in found:
        tally.unharmed += 1
    else:
        tally.lost += 1


def _note(tally: Forgeries, told: str) -> None:
    if len(tally.found) < _SHOWN:
        tally.found.append(told)
