"""Bytes that come back from a store or a file: nothing but exactly a record is an entry."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import numpy as np

from stepcache._types import Constraints, Entry, Span, Step, Usage
from stepcache.stores._record import decode, encode
from stepcache.stores._transfer import read_lines, write_lines
from trust._fuzz import Target
from trust._mutate import mutated_bytes
from trust.targets._json_texts import value

__all__ = ["LINES", "RECORDS", "sample_entry"]


def sample_entry(dice: Random) -> Entry:
    """An entry with something in every field."""
    texts = ("x = 5", "", "é\n", '{"a": 1}', "2x = 10\n\n", "🚀")
    constraints = Constraints(
        task=dice.choice(("json", "linear-equation")),
        version="1",
        values={"keys": ["a", "b"], "any": value(dice, 2)},
        spans=(Span(start=0, stop=3, name="keys"),),
        whole=dice.random() < 0.5,
    )
    return Entry(
        id=f"{dice.getrandbits(96):024x}",
        scope=f"{dice.getrandbits(256):064x}",
        exact_key=f"{dice.getrandbits(256):064x}",
        canonical_key=dice.choice((None, "c" * 64)),
        prompt=dice.choice(texts),
        constraints=dice.choice((None, constraints)),
        steps=tuple(Step(index=n, text=dice.choice(texts)) for n in range(dice.randrange(4))),
        message=dice.choice((None, '{"v": 1, "kind": "chat"}')),
        usage=Usage(calls=1, prompt_tokens=dice.randrange(100), completion_tokens=7),
        model=dice.choice((None, "local")),
        tags=dice.choice(((), ("geo", "stepcache:ns:a"))),
        created=dice.choice((0.0, 1e9, 1.5)),
        expires=dice.choice((None, 2e9)),
    )


_JSONISH: tuple[bytes, ...] = (
    *(b"null", b"true", b"-1", b"1e999", b"NaN", b'""', b"[]", b"{}", b"9" * 5000, b"[" * 100),
    *(
        b'"v":1',
        b'"v":2',
        b'"id":"x"',
        b'"steps":[]',
        b'"steps":[[0,"prose","x"]]',
        b"\\u0000",
        b"\xff",
    ),
)


def _record(dice: Random) -> bytes:
    data = encode(sample_entry(dice))
    if dice.random() < 0.4:
        return _spliced(data, dice)
    if dice.random() < 0.3:
        return _retyped(data, dice)
    return mutated_bytes(data, dice, encode(sample_entry(dice)))


def _spliced(data: bytes, dice: Random) -> bytes:
    at = dice.randrange(len(data))
    stop = min(len(data), at + dice.randrange(12))
    return data[:at] + dice.choice(_JSONISH) + data[stop:]


def _retyped(data: bytes, dice: Random) -> bytes:
    """A well-formed record with one value of another type."""
    payload = json.loads(data.decode("utf-8", "surrogatepass"))
    place: Any = payload
    for _ in range(3):
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = dice.choice(keys)
        if isinstance(place[key], (dict, list)) and dice.random() < 0.6:
            place = place[key]
            continue
        place[key] = value(dice, 2)
        break
    return json.dumps(payload, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str | None:
    entry = decode(data)
    if entry is None:
        return None
    again = decode(encode(entry))
    return None if again == entry else "reading and writing changed an entry"


RECORDS = Target(
    name="records",
    what="stored records with bits, bytes and types changed",
    inputs=200_000,
    make=_record,
    check=_decoded,
    read=lambda data: data,
)

# --- files of records --------------------------------------------------------------------------


def _lines(dice: Random) -> bytes:
    rows = [
        (sample_entry(dice), dice.choice((None, np.ones(4, dtype=np.float32))), "lexical/1")
        for _ in range(dice.randint(1, 3))
    ]
    file = io.BytesIO()
    write_lines(rows, file)
    return mutated_bytes(file.getvalue(), dice, file.getvalue())


def _imported(data: bytes) -> str | None:
    for row in read_lines(io.BytesIO(data)):
        if row is None:
            continue
        entry, vector, fingerprint = row
        if decode(encode(entry)) != entry or len(fingerprint) > len(data):
            return "gave an entry that cannot be written"
        if vector is not None and not np.isfinite(vector).all():
            return "gave a vector that is not finite"
    return None


LINES = Target(
    name="exported-files",
    what="files of exported entries, damaged",
    inputs=25_000,
    make=_lines,
    check=_imported,
    read=lambda data: data,
)
