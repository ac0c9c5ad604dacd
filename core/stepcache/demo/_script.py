"""What the demonstration asks, in order.

Base prompts of the two families, then the ways in which applications ask nearly the same again.
The expected routes are documentation: nothing reads them to decide or to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["SCRIPT", "Demand", "EquationDemand", "Item", "KeysDemand", "TextDemand"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationDemand:
    """The answer must state the solution of ``left = right`` in ``variable``."""

    variable: str
    left: str
    """One side, in sympy's notation."""
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysDemand:
    """The answer must be one JSON object with exactly these keys."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDemand:
    """The answer must not be empty."""


Demand: TypeAlias = EquationDemand | KeysDemand | TextDemand


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One request."""

    kind: str
    """What it is, beside what came before."""
    prompt: str
    demand: Demand
    expected: str
    """The routes a reader may expect. Documentation only."""
    stream: bool = False

    @property
    def family(self) -> Literal["equation", "json", "text"]:
        """The family of answers it belongs to."""
        if isinstance(self.demand, EquationDemand):
            return "equation"
        return "json" if isinstance(self.demand, KeysDemand) else "text"


def _equation(
    kind: str,
    prompt: str,
    left: str,
    right: str,
    expected: str,
    *,
    variable: str = "x",
    stream: bool = False,
) -> Item:
    demand = EquationDemand(variable=variable, left=left, right=right)
    return Item(kind=kind, prompt=prompt, demand=demand, expected=expected, stream=stream)


def _json(kind: str, topic: str, keys: str, expected: str, *, stream: bool = False) -> Item:
    return Item(
        kind=kind,
        prompt=f"Describe {topic} as a JSON object with keys {keys}.",
        demand=KeysDemand(keys=tuple(keys.split(", "))),
        expected=expected,
        stream=stream,
    )


_PARIS, _NILE = "the city of Paris", "the river Nile"

SCRIPT: tuple[Item, ...] = (
    _equation("base", "Solve 2x + 3 = 13 for x.", "2*x + 3", "13", "miss"),
    _json("base", _PARIS, "name, country, population", "miss"),
    _equation("again", "Solve 2x + 3 = 13 for x.", "2*x + 3", "13", "exact"),
    _equation("paraphrase", "Please find x when 2x + 3 = 13.", "2*x + 3", "13", "reuse"),
    _equation("sides swapped", "Solve 13 = 3 + 2x for x.", "13", "3 + 2*x", "reuse"),
    _equation("LaTeX", "Solve $2x + 3 = 13$ for $x$.", "2*x + 3", "13", "reuse"),
    _equation(
        "variable renamed", "Solve 2y + 3 = 13 for y.", "2*y + 3", "13", "adapt", variable="y"
    ),
    _equation("constant changed", "Solve 2x + 3 = 17 for x.", "2*x + 3", "17", "adapt or patch"),
    _equation("sign changed", "Solve 2x - 3 = 13 for x.", "2*x - 3", "13", "adapt, patch or skip"),
    _json("again", _PARIS, "name, country, population", "exact"),
    _json("key added", _PARIS, "name, country, population, language", "patch"),
    _json("key removed", _PARIS, "name, country", "adapt"),
    _json("key renamed", _PARIS, "title, country, population", "adapt or patch"),
    _json("topic changed", "the city of Tokyo", "name, country, population", "skip"),
    _json("base", _NILE, "name, continent, length", "miss or skip"),
    _json("key added", _NILE, "name, continent, length, mouth", "patch"),
    _json("keys reordered, streamed", _NILE, "length, continent, name", "reuse", stream=True),
    _equation("base, streamed", "Solve 5x - 7 = 18 for x.", "5*x - 7", "18", "adapt", stream=True),
    _equation("again, streamed", "Solve 5x - 7 = 18 for x.", "5*x - 7", "18", "exact", stream=True),
    _equation("paraphrase", "What is x if 5x - 7 = 18?", "5*x - 7", "18", "reuse"),
    _equation(
        "variable and constants", "Solve 4t + 6 = 30 for t.", "4*t + 6", "30", "adapt", variable="t"
    ),
    Item(
        kind="plain text",
        prompt="Write one short sentence about the sea.",
        demand=TextDemand(),
        expected="miss",
    ),
    Item(
        kind="plain text, again",
        prompt="Write one short sentence about the sea.",
        demand=TextDemand(),
        expected="exact",
    ),
    Item(
        kind="plain text, one word changed",
        prompt="Write one short sentence about the moon.",
        demand=TextDemand(),
        expected="miss or skip",
    ),
)
