"""Leases in a SQLite file: one process at a time does what they are for.

All processes are on one machine, so whoever finds a lease held can often see that its holder is
dead, and need not wait for the end of the lease. Where that cannot be told (another container,
another system) the lease runs out as it would anyhow; and a holder wrongly taken for dead finds
itself fenced off.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from stepcache.stores._sqlite_file import Database
from stepcache.stores._sqlite_rows import as_bytes

__all__ = ["Leasing", "is_leader"]

_HELD = "SELECT holder FROM leases WHERE key = ? AND until > ?"
_NEXT = "UPDATE totals SET token = token + 1"
_TAKE = (
    "INSERT OR REPLACE INTO leases (key, token, until, holder) SELECT ?, token, ?, ? FROM totals"
)
_LATEST = "SELECT token FROM totals"
_RENEW = "UPDATE leases SET until = ? WHERE key = ? AND token = ?"
_RELEASE = "DELETE FROM leases WHERE key = ? AND token = ?"
_FENCE = "SELECT 1 FROM leases WHERE key = ? AND token = ?"
_LOST = "DELETE FROM leases WHERE until < ?"
_KEPT_SECONDS = 3600.0
"""How long after its end a lease that nobody released is still known."""


class Leasing:
    """The leases of a store. A token is given once only, and a later one is higher."""

    _database: Database
    _clock: Callable[[], float]

    def acquire(self, key: str, seconds: float, /) -> int | None:
        """Take the lease of a key, if nobody holds it.

        Args:
            key: What is to be done by one at a time.
            seconds: Until it ends by itself, by this store's clock.

        Returns:
            A token, higher than any given before, or None when another holds the lease.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        name, now = as_bytes(key), self._clock()
        with self._database.lend() as connection:
            # Who waits for another's lease asks often: that does not hold up writers.
            if _is_held(connection, name, now):
                return None
            connection.execute("BEGIN IMMEDIATE")
            token = None
            now = self._clock()
            if not _is_held(connection, name, now):
                connection.execute(_LOST, (now - _KEPT_SECONDS,))
                connection.execute(_NEXT)
                connection.execute(_TAKE, (name, now + seconds, _this_process(os.getpid())))
                token = int(connection.execute(_LATEST).fetchone()[0])
            connection.execute("COMMIT")
            return token

    def renew(self, key: str, token: int, seconds: float, /) -> bool:
        """Prolong a lease, counted from now; False when it is somebody else's by now.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        with self._database.lend() as connection:
            values = (self._clock() + seconds, as_bytes(key), token)
            return connection.execute(_RENEW, values).rowcount > 0

    def release(self, key: str, token: int, /) -> bool:
        """Let go of a lease; False when it was somebody else's by now.

        Raises:
            StoreError: The file failed, or the store is closed.
        """
        with self._database.lend() as connection:
            return connection.execute(_RELEASE, (as_bytes(key), token)).rowcount > 0


def is_leader(connection: sqlite3.Connection, key: str, token: int) -> bool:
    """Whether nobody has taken a lease since; true for as long as the transaction lasts."""
    return connection.execute(_FENCE, (as_bytes(key), token)).fetchone() is not None


def _is_held(connection: sqlite3.Connection, name: bytes, now: float) -> bool:
    held = connection.execute(_HELD, (name, now)).fetchone()
    return held is not None and not _is_dead(held[0])


def _is_dead(holder: object) -> bool:
    """Whether a process is known to have ended."""
    world, _, rest = str(holder).rpartition(" ")
    here, _, _ = _this_process(os.getpid()).rpartition(" ")
    number, _, begun = rest.partition("-")
    if not world or world != here or not number.isdecimal():
        return False
    now = _begun(number)
    return now is not None and now != begun


def _begun(number: str) -> str | None:
    """When a process began, in ticks since the start of the machine; empty for one that has ended;
    None where that cannot be told."""
    try:
        # Behind the name, which may hold anything: state, 18 numbers, start.
        fields = (
            Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        )
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[19]


@lru_cache(maxsize=1)
def _this_process(number: int) -> str:
    """Machine since its start, space of process numbers, and this process in it; empty where that
    cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')} {number}-{_begun(str(number))}"
    except (OSError, ValueError):
        return ""
