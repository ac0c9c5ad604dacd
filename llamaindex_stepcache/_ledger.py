"""What all calls together cost and saved."""

from __future__ import annotations

import threading

from stepcache import Outcome, Usage

__all__ = ["Ledger"]


class Ledger:
    """Sums of what outcomes tell; shared by the copies of one wrapper, safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = self._avoided = Usage()

    def note(self, outcome: Outcome) -> None:
        """Add one outcome."""
        with self._lock:
            self._spent += outcome.spent
            self._avoided += outcome.avoided

    @property
    def spent(self) -> Usage:
        """Calls and tokens that were paid for."""
        with self._lock:
            return self._spent

    @property
    def avoided(self) -> Usage:
        """Calls and tokens that were not needed."""
        with self._lock:
            return self._avoided
