"""``TraceLog``: every request as a line of JSON in a file, and the reader of such files.

Each line is written by one call to the system at the file's end, so processes may share a file, and
a crash loses no line but the one it interrupts. What a crash has torn off is ended before the next
line, and passed over by the reader.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from stepcache._counts import count
from stepcache._errors import ConfigurationError, UsageError
from stepcache._forking import fork_safe_lock
from stepcache._types import Outcome, Request
from stepcache.protocols import Timing
from stepcache.telemetry._prices import Price
from stepcache.telemetry._trace_parse import parse_record
from stepcache.telemetry._trace_record import TraceRecord, failure_record, outcome_record

try:
    import fcntl
except ImportError:  # no such thing on Windows, where one process rotates its own file
    fcntl = None  # type: ignore[assignment]

__all__ = ["TraceLog", "read_trace_log"]

_MAX_LINE = 16_000_000
"""Bytes; a longer line is damage."""
_MAX_KEPT = 1_000

OnBroken = Callable[[Path, int, str], object]
"""Told of a line that is no record: its file, its number from 1, and what is wrong."""


class TraceLog:
    """A listener that keeps every request as a line of JSON in a file.

    Lines hold routes, reason codes, times, tokens, the origin and verdict of each step, and the
    candidates with what spoke against them. ``stepcache report`` makes a page of them.

    Args:
        path: The file; its folder must exist. It is created readable by its owner only.
        texts: Whether prompts, answers and the reasons that quote them are kept too.
        max_bytes: Beyond this size the file is put aside as ``<path>.1``, that one as ``.2``, ...
        keep: How many files put aside are kept; the oldest is removed.
        price: What tokens cost, to keep money beside them.

    Raises:
        ConfigurationError: The file cannot be opened, or a number is out of range.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        texts: bool = False,
        max_bytes: int = 50_000_000,
        keep: int = 5,
        price: Price | None = None,
    ) -> None:
        if max_bytes < 1:
            raise ConfigurationError(f"max_bytes is {max_bytes}: use at least 1")
        if not 0 <= keep <= _MAX_KEPT:
            raise ConfigurationError(f"keep is {keep}: use 0 to {_MAX_KEPT}")
        self.path = Path(path)
        self.texts = texts
        self._max_bytes = max_bytes
        self._keep = keep
        self._price = price
        self._lock = fork_safe_lock()
        self._file: int | None = None
        try:
            self._open()
        except OSError as error:
            raise ConfigurationError(
                f"the trace log {str(self.path)!r} cannot be written: {error.strerror or error}"
            ) from error

    def __call__(self, request: Request, outcome: Outcome, timing: Timing, /) -> None:
        self.write(
            outcome_record(
                request, outcome, timing, time=time.time(), texts=self.texts, price=self._price
            )
        )

    def failed(self, request: Request, error: Exception, timing: Timing, /) -> None:
        self.write(failure_record(request, error, timing, time=time.time(), texts=self.texts))

    def write(self, record: TraceRecord) -> None:
        """Append one record.

        Raises:
            OSError: The file cannot be written; an engine logs that and goes on.
        """
        line = record.line()
        with self._lock:
            file = self._current()
            if os.fstat(file).st_size and os.fstat(file).st_size + len(line) > self._max_bytes:
                file = self._rotated(file)
            written = os.write(file, line)
            if written < len(line):  # the disk is full: what was torn off is ended by who opens it
                self._close()
                raise OSError(f"{written:,} of {count(len(line), 'byte')} could be written")

    def close(self) -> None:
        """Let go of the file; writing opens it again."""
        with self._lock:
            self._close()

    # --- the file ------------------------------------------------------------------------------

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        file = os.open(self.path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
        size = os.fstat(file).st_size
        if size:
            os.lseek(file, size - 1, os.SEEK_SET)
            if os.read(file, 1) != b"\n":
                os.write(file, b"\n")
        self._file = file
        return file

    def _current(self) -> int:
        """The file at the path, which another process may have put aside."""
        if self._file is None:
            return self._open()
        if not _is_at(self._file, self.path):
            self._close()
            return self._open()
        return self._file

    def _rotated(self, file: int) -> int:
        """Put the file aside, unless another process has just done so, and begin a new one."""
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            mine = _is_at(file, self.path)
            if mine and os.name == "nt":
                self._close()  # an open file cannot be renamed there
            if mine:
                self._shift()
        finally:
            self._close()  # and the lock goes with it
        return self._open()

    def _shift(self) -> None:
        free = 1
        while free < self._keep and _aside(self.path, free).exists():
            free += 1
        for number in range(free - 1, 0, -1):
            os.replace(_aside(self.path, number), _aside(self.path, number + 1))
        if self._keep:
            os.replace(self.path, _aside(self.path, 1))
        else:
            os.remove(self.path)

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)


def read_trace_log(
    path: str | os.PathLike[str], *, on_broken: OnBroken | None = None
) -> Iterator[TraceRecord]:
    """The records of a trace log, oldest first, those put aside included; one line at a time.

    Args:
        path: The file as :class:`TraceLog` was given it.
        on_broken: Told of each line that is no record, which is passed over.

    Raises:
        UsageError: There is no such file.
    """
    file = Path(path)
    aside = [_aside(file, number) for number in range(_MAX_KEPT, 0, -1)]
    files = [each for each in (*aside, file) if each.is_file()]
    if not files:
        raise UsageError(f"there is no trace log {str(file)!r}: name the file TraceLog writes to")
    return _read(files, on_broken)


def _read(files: list[Path], on_broken: OnBroken | None) -> Iterator[TraceRecord]:
    for path in files:
        try:
            opened = open(path, "rb")  # noqa: SIM115 - closed below
        except FileNotFoundError:  # put aside or removed meanwhile
            continue
        with opened as file:
            for number, line in enumerate(_lines(file), start=1):
                if not line or line.isspace():
                    continue
                try:
                    if len(line) > _MAX_LINE:
                        raise ValueError("too long")
                    record = parse_record(line)
                except ValueError as error:
                    if on_broken is not None:
                        on_broken(path, number, str(error))
                    continue
                yield record


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is too long, its beginning."""
    while line := file.readline(_MAX_LINE + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(_MAX_LINE + 1)
        yield line


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is the one at the path."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
