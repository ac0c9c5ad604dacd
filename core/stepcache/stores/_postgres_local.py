"""Entries remembered beside a shared store, with a proof of how old they may be.

Every change of the table is announced in the transaction that makes it. A listening thread asks the
server a trivial question every fraction of the bound. A server delivers what was announced before
it answers a later question, so with each answer everything acknowledged before the question was
asked has been heard. Remembered entries are served only while the last such question is younger
than the bound, and are all forgotten when the line breaks. So no removed, replaced or expired entry
is served longer than the bound after its change was acknowledged.

An entry read before a change but handed in after its announcement would stay for good: it is
remembered only when nothing at all was announced since the reading began.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from stepcache._forking import fork_safe_lock
from stepcache._types import Entry
from stepcache.stores._postgres_link import Address, watch
from stepcache.stores._postgres_ops import Found
from stepcache.stores._postgres_sql import digest

__all__ = ["LocalEntries"]

_DIGEST = 64  # hexadecimal digits
_CHECKS_PER_BOUND = 4


class LocalEntries:
    """What one process remembers of a schema's entries.

    Args:
        address: Where to listen.
        schema: Whose changes.
        size: Keys to remember at most.
        seconds: The bound.
        clock: Seconds since the epoch, where it is not the server's that counts.
    """

    def __init__(
        self,
        address: Address,
        schema: str,
        size: int,
        seconds: float,
        clock: Callable[[], float] | None,
    ) -> None:
        self._address = address
        self._channel = f"{schema}_changes"
        self._size = size
        self._seconds = seconds
        self._clock = clock
        self._closed = threading.Event()
        self._pid = 0
        self._reset()

    def _reset(self) -> None:
        self._lock = fork_safe_lock()
        self._entries: OrderedDict[str, tuple[Entry, float | None]] = OrderedDict()
        self._places: dict[str, set[str]] = {}  # of each exact key, where it is remembered
        self._heard = 0
        self._sure_since = -1e9  # monotonic time of the last question that was answered

    def get(self, scope: str, key: str) -> Entry | None:
        """A remembered entry that is surely not older than the bound, or None."""
        if self._pid != os.getpid():
            self._listen()
            return None
        place = _place(scope, key)
        with self._lock:
            known = self._entries.get(place)
            if known is None or time.monotonic() - self._sure_since > self._seconds:
                return None
            entry, deadline = known
            if deadline is not None and self._is_over(entry, deadline):
                self._drop(place)
                return None
            self._entries.move_to_end(place)
            return entry

    def ticket(self) -> tuple[int, float]:
        """To be taken before reading what is to be remembered."""
        return self._heard, time.monotonic()

    def remember(self, ticket: tuple[int, float], scope: str, key: str, found: Found) -> None:
        """Keep what was read under a ticket, unless something was announced since."""
        entry = found.entry
        if entry is None:
            return
        heard, began = ticket
        deadline = None
        if entry.expires is not None:
            deadline = began + (entry.expires - found.now)
        with self._lock:
            if heard != self._heard or began - self._sure_since > self._seconds:
                return
            place = _place(scope, key)
            self._drop(place)
            self._entries[place] = (entry, deadline)
            self._places.setdefault(_place(entry.scope, entry.exact_key), set()).add(place)
            while len(self._entries) > self._size:
                self._drop(next(iter(self._entries)))

    def forget(self, entry: Entry) -> None:
        """This process put an entry: what is remembered of its keys is old."""
        with self._lock:
            self._heard += 1
            for place in tuple(self._places.get(_place(entry.scope, entry.exact_key), ())):
                self._drop(place)
            self._drop(_place(entry.scope, entry.exact_key))
            if entry.canonical_key is not None:
                self._drop(_place(entry.scope, entry.canonical_key))

    def forget_all(self) -> None:
        """Something of unknown extent has changed."""
        with self._lock:
            self._heard += 1
            self._entries.clear()
            self._places.clear()

    def _drop(self, place: str) -> None:
        entry, _ = self._entries.pop(place, (None, None))
        if entry is not None:
            owner = _place(entry.scope, entry.exact_key)
            places = self._places[owner]
            places.discard(place)
            if not places:
                del self._places[owner]

    def _is_over(self, entry: Entry, deadline: float) -> bool:
        if self._clock is not None and entry.expires is not None:
            return entry.expires <= self._clock()
        return time.monotonic() >= deadline

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        self.forget_all()

    # --- the listening thread ------------------------------------------------------------------

    def _listen(self) -> None:
        with self._lock:
            if self._pid == os.getpid():
                return
            self._reset()
            self._pid = os.getpid()
        threading.Thread(target=self._run, name="stepcache-postgres-listen", daemon=True).start()

    def _run(self) -> None:
        while not self._closed.is_set():
            with suppress(Exception):
                self._hear()
            self.forget_all()
            self._sure_since = -1e9
            self._closed.wait(self._seconds)

    def _hear(self) -> None:
        with self._address.connect() as connection:
            connection.add_notify_handler(self._noted)
            connection.execute(f"LISTEN {self._channel}")
            self.forget_all()  # what was read before nobody announces
            while not self._closed.is_set():
                asked = time.monotonic()
                number = watch().begin(connection, self._address.timeout)
                try:
                    # Announcements come with the answer, and the handler has run when it is here.
                    connection.execute("SELECT 1")
                finally:
                    watch().end(number)
                self._sure_since = asked
                self._closed.wait(self._seconds / _CHECKS_PER_BOUND)

    def _noted(self, notice: Any) -> None:
        text: str = notice.payload
        scope, exact, canonical = text[:_DIGEST], text[_DIGEST : 2 * _DIGEST], text[2 * _DIGEST :]
        with self._lock:
            self._heard += 1
            if not exact:
                self._entries.clear()
                self._places.clear()
                return
            self._drop(scope + exact)
            if canonical:
                self._drop(scope + canonical)


def _place(scope: str, key: str) -> str:
    return digest(scope).hex() + digest(key).hex()
