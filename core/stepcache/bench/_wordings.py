"""Paraphrases come from a file, so that anybody can bring wordings that nobody here ever saw."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from string import Formatter
from typing import Any

__all__ = ["LEVELS", "Level", "Voice", "Wordings", "WordingsError", "load_wordings"]

LEVELS = ("low", "medium", "high")
LEAST = 12
"""Wordings that every level of every family must have."""

_MAX_BYTES = 1_000_000
_MAX_CHARS = 1_000
_SLOTS = {
    "math": frozenset({"equation", "variable"}),
    "json": frozenset({"thing", "keys", "keys_and", "keys_quoted"}),
}
_NEEDED = {
    "math": (frozenset({"equation"}),),
    "json": (frozenset({"thing"}), frozenset({"keys", "keys_and", "keys_quoted"})),
}


class WordingsError(ValueError):
    """A file of wordings cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Level:
    """The wordings of one level of paraphrase; ``tails`` say what form the answer is to have."""

    wordings: tuple[str, ...]
    tails: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Voice:
    """How one family's prompts are worded."""

    base: str
    tail: str
    levels: dict[str, Level]


@dataclass(frozen=True, slots=True)
class Wordings:
    """Both families' wordings, and the digest of the file they came from."""

    math: Voice
    json: Voice
    digest: str
    source: str


def load_wordings(path: Path | None = None) -> Wordings:
    """Read a file of wordings; the one that is shipped without a path.

    The file is a JSON object with ``math`` and ``json``; each may have ``base`` and ``tail`` (the
    shipped ones stand in) and must have ``low``, ``medium`` and ``high``: a list of at least 12
    wordings, or an object with ``wordings`` and ``tails``. Slots are ``{equation}`` and
    ``{variable}``; ``{thing}`` and one of ``{keys}``, ``{keys_and}``, ``{keys_quoted}``.

    Raises:
        WordingsError: The file is missing, too large, no such object, or a wording lacks a slot.
    """
    shipped = Path(__file__).with_name("wordings.json")
    file = path or shipped
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise WordingsError(f"{file} cannot be read: {error.strerror}") from error
    if len(raw) > _MAX_BYTES:
        raise WordingsError(f"{file} is larger than {_MAX_BYTES} bytes")
    own = _object(raw, file)
    default = own if path is None else _object(shipped.read_bytes(), shipped)
    voices = {family: _voice(own, default, family) for family in _SLOTS}
    return Wordings(
        math=voices["math"],
        json=voices["json"],
        digest=sha256(raw).hexdigest(),
        source="shipped" if path is None else file.name,
    )


def _object(raw: bytes, file: Path) -> dict[str, Any]:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise WordingsError(f"{file} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise WordingsError(f"{file} holds no JSON object")
    return data


def _voice(own: dict[str, Any], default: dict[str, Any], family: str) -> Voice:
    data = own.get(family)
    if not isinstance(data, dict):
        raise WordingsError(f"there is no object under {family!r}")
    base = _text(data.get("base", default[family]["base"]), f"{family}.base")
    tail = _text(data.get("tail", default[family]["tail"]), f"{family}.tail")
    _check_slots(base, family, f"{family}.base", needed=True)
    _check_slots(tail, family, f"{family}.tail", needed=False)
    levels = {level: _level(data.get(level), family, level, tail) for level in LEVELS}
    return Voice(base=base, tail=tail, levels=levels)


def _level(data: Any, family: str, level: str, tail: str) -> Level:
    where = f"{family}.{level}"
    given = data if isinstance(data, dict) else {"wordings": data}
    wordings = _texts(given.get("wordings"), f"{where}.wordings")
    tails = _texts(given.get("tails", [tail]), f"{where}.tails")
    if len(set(wordings)) < LEAST:
        raise WordingsError(f"{where} has {len(set(wordings))} wordings: at least {LEAST} needed")
    for wording in wordings:
        _check_slots(wording, family, where, needed=True)
    for ending in tails:
        _check_slots(ending, family, f"{where}.tails", needed=False)
    return Level(wordings=wordings, tails=tails)


def _texts(data: Any, where: str) -> tuple[str, ...]:
    if not isinstance(data, list) or not data:
        raise WordingsError(f"{where} is not a list of texts")
    return tuple(_text(one, where) for one in data)


def _text(data: Any, where: str) -> str:
    if not isinstance(data, str) or not data.strip() or len(data) > _MAX_CHARS:
        raise WordingsError(f"{where} holds {data!r}: use texts of 1 to {_MAX_CHARS} characters")
    return data


def _check_slots(text: str, family: str, where: str, *, needed: bool) -> None:
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise WordingsError(f"{where}: {text!r}: {error}") from error
    slots = {name for _, name, _, _ in parts if name is not None}
    plain = all(not spec and not conversion for _, _, spec, conversion in parts)
    if not plain or not slots <= _SLOTS[family]:
        allowed = ", ".join(f"{{{slot}}}" for slot in sorted(_SLOTS[family]))
        raise WordingsError(f"{where}: {text!r} may use these slots only: {allowed}")
    if needed and not all(slots & group for group in _NEEDED[family]):
        raise WordingsError(f"{where}: {text!r} lacks a slot that says what is asked")
