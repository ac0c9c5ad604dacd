"""JSON values, documents and the words a damaged one is made with."""

from __future__ import annotations

import json
from random import Random
from typing import Any

__all__ = ["KEYS", "PIECES", "WORDS", "document", "retyped", "value"]

KEYS = (
    "name",
    "country",
    "population",
    "language",
    "river",
    "a",
    "",
    "ключ",
    "név",
    "x y",
    "name ",
)
_STRINGS = (
    "Paris",
    "France",
    "",
    "a\\b",
    'say "hi"',
    "line\nbreak",
    "é",
    "\u2028",
    "{x}",
    "[1]",
    "🚀",
)
WORDS: tuple[str, ...] = (
    *('"a": 1', '{"a": 1}', "[1, 2]", '"name"', "name", ", ", ": ", "{", "}", "[", "]", '"', "'"),
    *("\\n", "\\u00e9", "\\ud83d\\ude80", "\\ud800", "\\frac", "\\x", "\\", "\\\\", "//", "/* */"),
    *(
        "null",
        "true",
        "None",
        "True",
        "undefined",
        "NaN",
        "Infinity",
        "-0",
        "0.1",
        "1e400",
        "1E-400",
    ),
    *(
        "0x10",
        "01",
        "1.",
        ".5",
        "--1",
        "1" * 50,
        "...",
        "```json\n",
        "```",
        "Here you are:\n",
        "[x]",
    ),
    *("{service}", "\n\n", "\t", "\x00", "\ufeff", "“", "”", '\\"', '""', "''", ",,", ",}", ",]"),
)

PIECES: tuple[str, ...] = (
    *(
        "---",
        "[(",
        ")]",
        "('a', 1)",
        "<class 'x'>",
        "<X object at 0x1>",
        "'",
        '"',
        "\\",
        "{",
        "}",
        "lc",
    ),
    *(
        "None",
        "True",
        "1e999",
        "-",
        "~",
        "not ",
        "lambda: 1",
        "f''",
        "b''",
        "...",
        "__lc_escaped__",
    ),
    *('"lc": 1', '"type": "constructor"', '"kwargs": {}', "[" * 200, "(" * 120, "-" * 300, "\x00"),
    *(
        '{"__lc_escaped__": {}}',
        '"content": null',
        '"id": ["x"]',
        "set()",
        "1_000",
        "0x" + "f" * 300,
    ),
)
"""Of serialised calls and messages."""


def value(dice: Random, depth: int = 3) -> Any:
    """Any JSON value."""
    kind = dice.randrange(9 if depth else 6)
    if kind == 0:
        return dice.choice((None, True, False))
    if kind == 1:
        return dice.choice((0, 1, -1, 7, 10**6, 2**53, 10**30))
    if kind == 2:
        return dice.choice((0.5, -1.25, 1e-9, 1e22, 3.0))
    if kind < 6:
        return dice.choice(_STRINGS)
    if kind == 6:
        return [value(dice, depth - 1) for _ in range(dice.randrange(4))]
    return {dice.choice(KEYS): value(dice, depth - 1) for _ in range(dice.randrange(5))}


def document(dice: Random) -> str:
    """A value as a model writes it: bare, indented, fenced, with words around."""
    held = {dice.choice(KEYS): value(dice, 2) for _ in range(dice.randint(1, 5))}
    text = json.dumps(held, ensure_ascii=dice.random() < 0.3, indent=dice.choice((None, None, 2)))
    match dice.randrange(5):
        case 0:
            return f"```json\n{text}\n```"
        case 1:
            return f"Here is the object:\n\n{text}\n\nAnything else?"
        case 2:
            return f"[{text}, {text}]"
        case _:
            return text


def retyped(record: str, dice: Random) -> str:
    """A JSON text with one value of another type."""
    payload = json.loads(record)
    place: Any = payload
    for _ in range(4):
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = dice.choice(keys)
        if isinstance(place[key], (dict, list)) and dice.random() < 0.6:
            place = place[key]
            continue
        place[key] = value(dice, 2)
        break
    return json.dumps(payload)
