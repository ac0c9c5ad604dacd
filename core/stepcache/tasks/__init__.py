"""Families of answers, and the words to write one of your own with.

Import a name from here; the tasks themselves are loaded when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepcache._stitch import renumber, segment
from stepcache._types import Block, Declined, Difference, Fix, Span, Status

if TYPE_CHECKING:
    from stepcache.tasks.json_answer import JsonAnswerTask
    from stepcache.tasks.linear_equation import LinearEquationTask
    from stepcache.tasks.text import TextTask

__all__ = [
    "Block",
    "Declined",
    "Difference",
    "Fix",
    "JsonAnswerTask",
    "LinearEquationTask",
    "Span",
    "Status",
    "TextTask",
    "renumber",
    "segment",
]

_HOMES = {
    "JsonAnswerTask": "stepcache.tasks.json_answer",
    "LinearEquationTask": "stepcache.tasks.linear_equation",
    "TextTask": "stepcache.tasks.text",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
