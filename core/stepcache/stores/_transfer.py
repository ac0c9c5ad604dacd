"""Entries as JSON Lines, to move them between stores.

Each line holds a record (``_record``), and the vector with its embedder's fingerprint where there
is one. A file is untrusted, as all storage is: what does not fit exactly is skipped and counted.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np

from stepcache._errors import StoreError
from stepcache._types import Entry
from stepcache.protocols import Vector
from stepcache.stores._record import MAX_RECORD_BYTES, decode, encode

__all__ = ["read_lines", "write_lines"]

_MAX_LINE = 2 * MAX_RECORD_BYTES
_MAX_DIMENSION = 65_536


def write_lines(rows: Iterable[tuple[Entry, Vector | None, str]], file: IO[bytes]) -> int:
    """Write entries, one a line; returns how many.

    Raises:
        StoreError: An entry has no record.
        OSError: The file cannot be written.
    """
    count = 0
    for entry, vector, fingerprint in rows:
        line: dict[str, Any] = {"record": base64.b64encode(encode(entry)).decode("ascii")}
        if vector is not None:
            line["fingerprint"] = fingerprint
            line["vector"] = base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
        file.write(json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n")
        count += 1
    return count


def read_lines(file: IO[bytes]) -> Iterator[tuple[Entry, Vector | None, str] | None]:
    """Read entries, one a line; None for a line that does not hold one."""
    while line := file.readline(_MAX_LINE + 1):
        if len(line) > _MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(_MAX_LINE)
            yield None
        elif line.strip():
            yield _row(line)


def _row(line: bytes) -> tuple[Entry, Vector | None, str] | None:
    try:
        parts = json.loads(line)
        entry = decode(base64.b64decode(parts["record"], validate=True))
        if entry is None:
            return None
        if parts.keys() == {"record"}:
            return entry, None, ""
        if parts.keys() != {"record", "fingerprint", "vector"}:
            return None
        if not isinstance(parts["fingerprint"], str):
            return None
        return entry, _vector(parts["vector"]), parts["fingerprint"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, binascii.Error):
        return None
    except StoreError:
        return None


def _vector(text: str) -> Vector:
    blob = base64.b64decode(text, validate=True)
    if not blob or len(blob) % 4 or len(blob) > 4 * _MAX_DIMENSION:
        raise ValueError("not a vector")
    vector: Vector = np.frombuffer(blob, dtype="<f4").astype(np.float32)
    if not np.isfinite(vector).all():
        raise ValueError("not finite")
    return vector
