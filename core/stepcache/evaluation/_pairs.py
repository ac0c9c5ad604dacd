"""Labelled pairs of requests, from JSON Lines.

Two forms are read, told apart line by line:

- ours: ``{"id", "a", "b", "label": "same_answer" | "different_answer", "category", ...}``
- that of the ``fow-cache`` package (CC BY 4.0): ``same_answer`` is true or false, conversations
  have a ``subtype``, and a pair with ``ambiguous`` counts as different, as is its own default.

``a`` and ``b`` are texts, or conversations as lists of ``{"role", "content"}``. ``answer_a`` and
``answer_b`` may hold what a model answered; without them the answer is a stand-in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, Any

from stepcache._errors import ConfigurationError
from stepcache._types import Message

__all__ = ["FOW_SETS", "Pair", "read_fow", "read_pairs"]

FOW_SETS = ("questions", "conversations")
"""What the ``fow-cache`` package ships."""
_LONGEST_LINE = 2_000_000
_LABELS = {"same_answer": True, "different_answer": False, True: True, False: False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two requests, and whether one answer is right for both."""

    id: str
    a: tuple[Message, ...]
    b: tuple[Message, ...]
    same: bool
    category: str
    answer_a: str | None = None
    answer_b: str | None = None

    @classmethod
    def of(cls, id: str, a: str, b: str, *, same: bool, category: str = "all") -> Pair:  # noqa: A002
        """A pair of single texts."""
        return cls(id=id, a=_messages(a), b=_messages(b), same=same, category=category)


def read_pairs(path: Path | str) -> list[Pair]:
    """The pairs of a JSON Lines file, or of all ``*.jsonl`` files below a folder.

    Raises:
        ConfigurationError: There is no such file, or a line is no pair; names file and line.
    """
    path = Path(path)
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise ConfigurationError(f"{path} holds no *.jsonl file")
    pairs: list[Pair] = []
    for file in files:
        try:
            with file.open(encoding="utf-8") as lines:
                pairs.extend(_read(lines, str(file)))
        except OSError as error:
            raise ConfigurationError(f"{file} cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{file} cannot be read: {error}") from error
    return pairs


def read_fow(name: str) -> list[Pair]:
    """The ``questions`` or the ``conversations`` that the ``fow-cache`` package ships.

    Raises:
        ConfigurationError: No such set, or the package is not installed.
    """
    if name not in FOW_SETS:
        raise ConfigurationError(f"fow-cache has no set {name!r}: use one of {', '.join(FOW_SETS)}")
    try:
        data = resources.files("fow_cache").joinpath("data")
    except ModuleNotFoundError as error:
        raise ConfigurationError("fow-cache is not installed: pip install fow-cache") from error
    with resources.as_file(data) as folder:
        if name == "questions":
            return read_pairs(folder / "pairs.jsonl")
        return [*read_pairs(folder / "conv-parts"), *read_pairs(folder / "conv-long")]


def _read(lines: IO[str], name: str) -> Iterator[Pair]:
    number = 0
    while line := lines.readline(_LONGEST_LINE):
        number += 1
        if not line.strip():
            continue
        try:
            if not line.endswith("\n") and len(line) >= _LONGEST_LINE:
                raise ValueError(f"the line is longer than {_LONGEST_LINE} characters")
            yield _pair(json.loads(line), f"{Path(name).stem}:{number}")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigurationError(f"{name}:{number} is no pair of requests: {why}") from error


def _pair(record: Mapping[str, Any], default_id: str) -> Pair:
    if not isinstance(record, Mapping):
        raise TypeError("it is no JSON object")
    label = record["label"] if "label" in record else record["same_answer"]
    if not isinstance(label, (str, bool)) or label not in _LABELS:
        raise ValueError(f"the label is {label!r}")
    ambiguous = record.get("ambiguous")
    category = ambiguous or record.get("category") or record.get("subtype") or "all"
    return Pair(
        id=str(record.get("id", default_id)),
        a=_messages(record["a"]),
        b=_messages(record["b"]),
        same=_LABELS[label] and not ambiguous,
        category=str(category),
        answer_a=_optional(record.get("answer_a")),
        answer_b=_optional(record.get("answer_b")),
    )


def _messages(side: Any) -> tuple[Message, ...]:
    if isinstance(side, str):
        return (Message(role="user", text=side),)
    if not isinstance(side, list) or not side:
        raise TypeError("a side is a text or a list of messages")
    return tuple(Message(role=str(m["role"]), text=_text(m["content"])) for m in side)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is {type(value).__name__}")
    return value


def _optional(value: Any) -> str | None:
    return None if value is None else _text(value)
