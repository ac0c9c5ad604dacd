"""Server-sent events (WHATWG HTML, 9.2): cut without changing a byte, and written. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["DONE", "EventCutter", "RawEvent", "comment", "event"]

DONE = b"data: [DONE]\n\n"
_MAX_EVENT = 8 << 20


class RawEvent(NamedTuple):
    """One event as it came."""

    raw: bytes
    """Every byte up to and including the blank line that ends it."""
    data: str | None
    """Its data; None where it has none, or is too long to be read."""


class EventCutter:
    """Cuts a stream of bytes into events; joining their ``raw`` gives the stream back."""

    def __init__(self) -> None:
        self._raw: list[bytes] = []
        self._line = b""
        self._size = 0
        self._data: list[str] | None = []

    def feed(self, chunk: bytes) -> Iterator[RawEvent]:
        """The events that this chunk completes."""
        lines = (self._line + chunk).split(b"\n")
        self._line = lines.pop()
        for line in lines:
            yield from self._take(line + b"\n")
        if self._size + len(self._line) > _MAX_EVENT:
            yield from self._overflow()

    def rest(self) -> Iterator[RawEvent]:
        """What is left when the stream has ended; an event without its blank line is none."""
        raw = b"".join((*self._raw, self._line))
        if raw:
            yield RawEvent(raw, None)

    def _take(self, line: bytes) -> Iterator[RawEvent]:
        self._raw.append(line)
        self._size += len(line)
        field = line.rstrip(b"\r\n")
        if field:
            if self._data is not None and field.startswith(b"data:"):
                text = field[5:].decode("utf-8", "replace")
                self._data.append(text.removeprefix(" "))
            if self._size > _MAX_EVENT:
                yield from self._overflow()
            return
        data = "\n".join(self._data) if self._data else None
        yield RawEvent(b"".join(self._raw), data)
        self._raw, self._size, self._data = [], 0, []

    def _overflow(self) -> Iterator[RawEvent]:
        """Pass a monster on unread; the rest of it is not taken for an event of its own."""
        yield RawEvent(b"".join((*self._raw, self._line)), None)
        self._raw, self._line, self._size, self._data = [], b"", 0, None


def event(value: Mapping[str, Any]) -> bytes:
    """One event with a JSON object."""
    # ASCII: a lone surrogate, which JSON can say, is nothing that UTF-8 can.
    return b"data: " + json.dumps(value).encode("ascii") + b"\n\n"


def comment(text: str) -> bytes:
    """A line that readers of events skip.

    Args:
        text: Without line ends.
    """
    return b": " + text.encode("ascii", "replace") + b"\n\n"
