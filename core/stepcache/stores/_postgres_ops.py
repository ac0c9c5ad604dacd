"""What the PostgreSQL store does, written once: generators that yield a statement and are sent its
rows. A synchronous and an asynchronous store run them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

from stepcache._errors import ConfigurationError, StoreError
from stepcache._reports import tenant_of
from stepcache._types import Entry
from stepcache.index import unit_vector
from stepcache.protocols import Match, Vector
from stepcache.stores._check import stamped
from stepcache.stores._guard import Opened, RecordGuard, Refused
from stepcache.stores._postgres_sql import (
    MAX_INDEXED_DIMENSION,
    MIGRATIONS,
    TRIGGERS,
    Statements,
    digest,
)
from stepcache.stores._seal import Reason, binding

__all__ = ["Found", "Op", "Operations", "Said"]

T = TypeVar("T")
Said: TypeAlias = tuple[str, Mapping[str, Any]]
"""A statement and its values."""
Op: TypeAlias = Generator[Said, list[Any], T]

_ROWS_AT_ONCE = 256
_DELETED_AT_ONCE = 5_000
_EXPIRED_AT_ONCE = 64
_CANDIDATES = 16
_SPACES_KNOWN = 65_536
_MOST_INDEXES = 64
"""Every index of a table costs each put a look at its condition."""
_PUTS_BETWEEN_SWEEPS = 16
_LOCK = 0x53746570  # "Step": the advisory lock of migrations


class Found(NamedTuple):
    """An entry, and the server's time when it was read."""

    entry: Entry | None
    now: float


class _Space(NamedTuple):
    id: int
    dimension: int
    indexed: bool


class Operations:
    """The operations of one schema; safe for any number of threads.

    Args:
        schema: The schema's name.
        clock: Seconds since the epoch; None for the server's clock.
        guard: Seals records, and says which are genuine.
        clear_vectors: Keep vectors, which the server must be able to read, beside records that it
            cannot read.
        most_of_one: Entries of one namespace at most; None for no limit.
    """

    def __init__(
        self,
        schema: str,
        clock: Callable[[], float] | None,
        guard: RecordGuard,
        *,
        clear_vectors: bool = False,
        most_of_one: int | None = None,
    ) -> None:
        self.sql = Statements(schema)
        self._clock = clock
        self.guard = guard
        self._keeps_vectors = clear_vectors or not guard.encrypt
        self._most_of_one = most_of_one
        self._puts = 0
        self._spaces: dict[tuple[bytes, bytes], _Space] = {}

    # --- set-up --------------------------------------------------------------------------------

    def migrate(self) -> Op[None]:
        """Bring the schema to this release's version; whoever comes second finds it done."""
        s = self.sql.schema
        known = yield f"SELECT to_regclass('{s}.migrations') IS NOT NULL", {}
        version = 0
        if known[0][0]:
            version = yield from self._version()
        if version == len(MIGRATIONS):
            return
        yield "BEGIN", {}
        yield "SET LOCAL statement_timeout = '60s'", {}
        yield "SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": _LOCK}
        yield "CREATE EXTENSION IF NOT EXISTS vector", {}
        yield f"CREATE SCHEMA IF NOT EXISTS {s}", {}
        yield (
            f"CREATE TABLE IF NOT EXISTS {s}.migrations (version integer PRIMARY KEY,"
            " applied timestamptz NOT NULL DEFAULT clock_timestamp())",
            {},
        )
        version = yield from self._version()
        for number, statements in enumerate(MIGRATIONS[version:], version + 1):
            for statement in statements:
                yield statement.replace("{s}", s), {}
            yield self.sql.migrated, {"version": number}
        yield "COMMIT", {}

    def _version(self) -> Op[int]:
        rows = yield self.sql.version, {}
        version = int(rows[0][0])
        if version > len(MIGRATIONS):
            raise ConfigurationError(
                f"the schema {self.sql.schema!r} has version {version}, and this release knows "
                f"{len(MIGRATIONS)}: upgrade stepcache, or name another schema"
            )
        return version

    def notify(self) -> Op[None]:
        """Have every change announced from now on, whoever makes it.

        Creating a trigger waits for the writers at work and makes later ones wait, so no change
        falls between.
        """
        rows = yield self.sql.has_triggers, {}
        if rows[0][0] >= len(TRIGGERS):
            return
        yield "BEGIN", {}
        yield "SET LOCAL statement_timeout = '60s'", {}
        yield "SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": _LOCK}
        yield f"LOCK TABLE {self.sql.schema}.entries IN SHARE ROW EXCLUSIVE MODE", {}
        rows = yield self.sql.has_triggers, {}
        if rows[0][0] < len(TRIGGERS):
            for statement in TRIGGERS:
                yield statement.replace("{s}", self.sql.schema), {}
        yield "COMMIT", {}

    # --- entries -------------------------------------------------------------------------------

    def get(self, scope: str, key: str) -> Op[Found]:
        values = {"scope": digest(scope), "key": digest(key), "limit": 1, **self._time()}
        bad: list[int] = []
        while True:
            rows = yield self.sql.get, values
            for row in rows:
                opened = self._read(row, scope, bad)
                if opened is None:
                    continue
                if key not in (opened.entry.exact_key, opened.entry.canonical_key):
                    self._refuse(row, "misplaced", bad)
                elif _lives(opened.entry, row):
                    yield from self._remove(bad)
                    return Found(opened.entry, row[3])
            yield from self._remove(bad)
            if not rows or values["limit"] > 1:
                return Found(None, 0.0)
            values["limit"] = _CANDIDATES  # the best one cannot be read: the next may

    def search(
        self, scope: str, vector: Vector, fingerprint: str, limit: int
    ) -> Op[tuple[Match, ...]]:
        unit = unit_vector(vector)
        place = (digest(scope), digest(fingerprint))
        space = self._spaces.get(place)
        if space is None or space.dimension != unit.size:
            space = yield from self._space(place, unit.size)
        if space is None or limit < 1:
            return ()
        values = {"space": space.id, "vector": unit, "limit": limit, **self._time()}
        rows = yield self.sql.search(*space), values
        matches = []
        bad: list[int] = []
        for *row, embedding, similarity in rows:
            opened = self._read(row, scope, bad)
            if opened is None:
                continue
            if not self.guard.holds(opened, fingerprint, _data(embedding)):
                self._refuse(row, "misplaced", bad)
            elif _lives(opened.entry, row):
                matches.append(Match(opened.entry, float(similarity)))
        yield from self._remove(bad)
        return tuple(matches)

    def put(
        self,
        entry: Entry,
        vector: Vector | None,
        fingerprint: str,
        ttl: float | None,
        lease: tuple[str, int] | None = None,
    ) -> Op[bool]:
        unit = None if vector is None else unit_vector(vector)
        if not self._keeps_vectors:
            unit = None
        scope, space = digest(entry.scope), None
        # The seal is over the times too, and they are the server's.
        now = self._clock() if self._clock is not None else (yield self.sql.now, {})[0][0]
        kept = stamped(entry, now, ttl)
        record = self.guard.seal(kept, unit, fingerprint).record
        if unit is not None:
            place = (scope, digest(fingerprint))
            space = self._spaces.get(place)
            if space is None or space.dimension != unit.size:
                space = yield from self._space(place, unit.size, add=True)
        values = {
            "scope": scope,
            "key": digest(entry.exact_key),
            "canonical": None if entry.canonical_key is None else digest(entry.canonical_key),
            "id": digest(entry.id),
            "created": kept.created,
            "expires": kept.expires,
            "checksum": crc32(record),
            "record": record,
            "space": None if space is None else space.id,
            "vector": unit,
            "tenant": tenant_of(entry),
        }
        if lease is None:
            yield self.sql.put, values
            done = True
        else:
            values |= {"lease": digest(lease[0]), "token": lease[1]}
            done = bool((yield self.sql.put_fenced, values))
        if self._most_of_one is not None and values["tenant"] is not None:
            yield self.sql.crowd, {"tenant": values["tenant"], "most": self._most_of_one}
        self._puts += 1
        if not self._puts % _PUTS_BETWEEN_SWEEPS:
            yield self.sql.drop_expired, {"limit": _EXPIRED_AT_ONCE, **self._time()}
        return done

    def remove(self, entry_id: str) -> Op[bool]:
        rows = yield self.sql.remove, {"id": digest(entry_id), **self._time()}
        return bool(rows[0][0])

    def clear(self, scope: str | None) -> Op[int]:
        # Piece by piece: one statement for a million rows would run into its time limit.
        rows = yield self.sql.newest, {}
        values = {
            "newest": rows[0][0] or 0,
            "scope": None if scope is None else digest(scope),
            "limit": _DELETED_AT_ONCE,
            **self._time(),
        }
        total = 0
        while True:
            rows = yield self.sql.clear, values
            gone, live = rows[0]
            total += int(live)
            if gone < _DELETED_AT_ONCE:
                return total

    def count(self, scope: str | None) -> Op[int]:
        if scope is None:
            rows = yield self.sql.count, self._time()
        else:
            rows = yield self.sql.count_scope, {"scope": digest(scope), **self._time()}
        return int(rows[0][0])

    def size(self) -> Op[int]:
        rows = yield self.sql.size, {}
        return int(rows[0][0])

    def find(self, entry_id: str) -> Op[Entry | None]:
        rows = yield self.sql.find, {"id": digest(entry_id), **self._time()}
        bad: list[int] = []
        found = None
        for row in rows:
            opened = self._read(row, None, bad)
            if opened is not None and opened.entry.id != entry_id:
                self._refuse(row, "misplaced", bad)
            elif opened is not None and found is None and _lives(opened.entry, row):
                found = opened.entry
        yield from self._remove(bad)
        return found

    def page(self, after: int) -> Op[tuple[list[Entry], int | None]]:
        """Some entries beyond a number, and the number to go on from; None at the end."""
        values = {"after": after, "limit": _ROWS_AT_ONCE, **self._time()}
        rows = yield self.sql.page, values
        read = [(self._read(row, None, []), row) for row in rows]
        entries = [o.entry for o, row in read if o is not None and _lives(o.entry, row)]
        return entries, rows[-1][0] if len(rows) == _ROWS_AT_ONCE else None

    def pager(self, after: int) -> Callable[[], Op[tuple[list[Entry], int | None]]]:
        """:meth:`page`, to be begun as often as needed."""
        return lambda: self.page(after)

    def reseal(self, after: int) -> Op[tuple[int, int | None]]:
        """Seal some records beyond a number with the newest key, where they are not; returns how
        many, and the number to go on from."""
        values = {"after": after, "limit": _ROWS_AT_ONCE, **self._time()}
        rows = yield self.sql.page, values
        count = 0
        for number, checksum, record, now in rows:
            if self.guard.is_current(record):
                continue
            opened = self._read((number, checksum, record, now), None, [])
            if opened is None:
                continue
            bare = not self._keeps_vectors
            new = self.guard.reseal(opened.entry, binding("", None) if bare else opened.bound)
            change = {"number": number, "old": checksum, "checksum": crc32(new), "record": new}
            count += len((yield self.sql.reseal, {**change, "bare": bare}))
        return count, rows[-1][0] if len(rows) == _ROWS_AT_ONCE else None

    def resealer(self, after: int) -> Callable[[], Op[tuple[int, int | None]]]:
        """:meth:`reseal`, to be begun as often as needed."""
        return lambda: self.reseal(after)

    # --- leases --------------------------------------------------------------------------------

    def acquire(self, key: str, holder: str, seconds: float) -> Op[int | None]:
        values = {"key": digest(key), "holder": holder, "seconds": seconds}
        rows = yield self.sql.acquire, values
        return int(rows[0][0]) if rows else None

    def renew(self, key: str, token: int, seconds: float) -> Op[bool]:
        rows = yield self.sql.renew, {"key": digest(key), "token": token, "seconds": seconds}
        return bool(rows)

    def release(self, key: str, token: int) -> Op[bool]:
        rows = yield self.sql.release, {"key": digest(key), "token": token}
        return bool(rows)

    # --- upkeep --------------------------------------------------------------------------------

    def upkeep(
        self, every: float, max_entries: int | None, index_above: int | None
    ) -> Op[tuple[int, ...] | None]:
        """One host's turn to tidy up; None when another had it less than ``every`` seconds ago.

        Returns the spaces that were given an index.
        """
        if not (yield self.sql.turn, {"seconds": every}):
            return None
        yield "SET statement_timeout = 0", {}
        yield self.sql.old_leases, {}
        yield self.sql.drop_expired, {"limit": 10 * _DELETED_AT_ONCE, **self._time()}
        if max_entries is not None:
            yield self.sql.beyond, {"most": max_entries}
        if index_above is None:
            return ()
        large = {"above": index_above, "widest": MAX_INDEXED_DIMENSION, "most": _MOST_INDEXES}
        rows = yield self.sql.large_spaces, large
        for space, dimension in rows:
            for statement in self.sql.build_index(space, dimension):
                yield statement, {}
            yield self.sql.mark_indexed, {"id": space}
        self.forget_spaces()
        return tuple(space for space, _ in rows)

    def forget_spaces(self) -> None:
        """Ask anew what is known of each space."""
        self._spaces.clear()

    # --- inside --------------------------------------------------------------------------------

    def _time(self) -> dict[str, Any]:
        return {"now": None if self._clock is None else self._clock()}

    def _space(self, place: tuple[bytes, bytes], dimension: int, add: bool = False) -> Op[Any]:
        """The space of a scope and embedder, or None where there is none yet.

        Raises:
            StoreError: Live entries of that embedder have another dimension.
        """
        values = {"scope": place[0], "fingerprint": place[1], **self._time()}
        rows = yield self.sql.spaces, values
        for _, other, _, live in rows:
            if live and other != dimension:
                unit_vector(_ones(dimension), other)
        fitting = [_Space(*row[:3]) for row in rows if row[1] == dimension]
        if not fitting and add:
            yield self.sql.add_space, {**values, "dimension": dimension}
            rows = yield self.sql.spaces, values
            fitting = [_Space(*row[:3]) for row in rows if row[1] == dimension]
            if not fitting:
                raise StoreError("the store could not make room for a new kind of vectors")
        if not fitting:
            return None
        if len(self._spaces) >= _SPACES_KNOWN:
            self._spaces.clear()
        self._spaces[place] = fitting[0]
        return fitting[0]

    def _read(self, row: Sequence[Any], scope: str | None, bad: list[int]) -> Opened | None:
        """What a row holds when it is genuine, and of this scope."""
        try:
            opened = self.guard.open(row[2])
        except Refused as refused:
            self._refuse(row, refused.reason, bad)
            return None
        if scope is not None and opened.entry.scope != scope:
            self._refuse(row, "misplaced", bad)
            return None
        return opened

    def _refuse(self, row: Sequence[Any], reason: Reason, bad: list[int]) -> None:
        if self.guard.refuse(reason):
            bad.append(row[0])

    def _remove(self, bad: list[int]) -> Op[None]:
        if bad:
            yield self.sql.drop, {"numbers": list(bad)}
            bad.clear()


def _lives(entry: Entry, row: Sequence[Any]) -> bool:
    """Whether a genuine record may be served at the server's time, whatever its row says."""
    return entry.expires is None or bool(entry.expires > row[3])


def _data(embedding: Any) -> bytes | None:
    """A column's vector as float32 bytes."""
    import numpy as np

    if embedding is None:
        return None
    values = embedding.to_numpy() if hasattr(embedding, "to_numpy") else embedding
    return bytes(np.asarray(values, dtype="<f4").tobytes())


def _ones(dimension: int) -> Vector:
    import numpy as np

    return np.ones(dimension, dtype=np.float32)
