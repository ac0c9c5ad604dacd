"""What a full SQLite store keeps: the newest, the last used, or what is worth most a byte."""

from __future__ import annotations

import sqlite3

from stepcache._forking import fork_safe_lock
from stepcache.stores import _sqlite_sql as sql
from stepcache.stores._limits import Limits

__all__ = ["Keeper"]

_NOTED = 8192
_VICTIMS_AT_ONCE = 256


class Keeper:
    """Takes down what is used, and evicts inside the transaction of a put.

    Uses are kept in memory until the next put of this process, so that reads do not write.
    ``lfu-size`` is Greedy-Dual-Size-Frequency (Cherkasova, 1998): an entry is worth its uses over
    its bytes, beside the worth of the last that went, so that old fame fades.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.ranks = limits.of_all and limits.evict != "oldest"
        self._by_size = limits.evict == "lfu-size"
        self._uses: dict[int, tuple[int, float]] = {}  # times and the last, by number
        self._lock = fork_safe_lock()

    def check(self, size: int) -> None:
        """Refuse an entry that can never be kept.

        Raises:
            StoreError: It is larger than the whole store may be.
        """
        self.limits.check(size)

    def used(self, number: int, now: float) -> None:
        """Take down that a row was served."""
        if self.ranks:
            with self._lock:
                times, _ = self._uses.pop(number, (0, 0.0))
                self._uses[number] = (times + 1, now)
                if len(self._uses) > _NOTED:
                    del self._uses[next(iter(self._uses))]

    def came(
        self,
        connection: sqlite3.Connection,
        number: int,
        size: int,
        now: float,
        tenant: bytes | None,
    ) -> None:
        """Rank a row just written, and evict what is too much; the row itself stays."""
        most = self.limits.max_entries_per_namespace
        if most is not None and tenant is not None:
            connection.execute(sql.CROWD, (tenant, most))
        if self.ranks:
            self._write_down(connection)
            new = sql.RANK_NEW_BY_SIZE if self._by_size else sql.RANK_NEW
            connection.execute(new, (number, float(size) if self._by_size else now))
        while surplus := self._surplus(connection):
            victims = self._victims(connection, number, min(surplus, _VICTIMS_AT_ONCE))
            if not victims:
                return
            for victim, rank in victims:
                connection.execute("DELETE FROM entries WHERE number = ?", (victim,))
                if self._by_size:
                    connection.execute(sql.INFLATE, (rank,))

    def _write_down(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            uses, self._uses = self._uses, {}
        statement = sql.RANK_USED_BY_SIZE if self._by_size else sql.RANK_USED
        connection.executemany(
            statement, [(times, last, number) for number, (times, last) in uses.items()]
        )

    def _surplus(self, connection: sqlite3.Connection) -> int:
        """How many entries at least have to go."""
        entries, size = connection.execute("SELECT entries, bytes FROM totals").fetchone()
        limits = self.limits
        if limits.max_entries is not None and entries > limits.max_entries:
            return int(entries - limits.max_entries)
        return int(limits.max_bytes is not None and size > limits.max_bytes)

    def _victims(
        self, connection: sqlite3.Connection, newest: int, count: int
    ) -> list[tuple[int, float]]:
        found: list[tuple[int, float]] = []
        if self.ranks:
            found = connection.execute(sql.WORST, (newest, count)).fetchall()
        # Rows of writers that do not rank have no rank.
        return found or connection.execute(sql.OLDEST, (newest, count)).fetchall()
