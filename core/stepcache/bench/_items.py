"""What is asked and what a right answer to it is, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "Demand",
    "EquationDemand",
    "Family",
    "Item",
    "ObjectDemand",
    "Split",
    "demand_from",
    "item_from",
]

Family: TypeAlias = Literal["math", "json"]
Split: TypeAlias = Literal["warm-up", "paper", "extended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationDemand:
    """The answer must state for which values of the variable ``left relation right`` holds."""

    variable: str
    left: str
    """One side, in sympy's notation."""
    right: str
    relation: str = "="
    """``=``, ``<``, ``>``, ``<=`` or ``>=``."""
    form: str = ""
    """``number`` (the bare number), ``boxed`` (in a LaTeX box), ``object`` (a JSON object with the
    variable as its key), or empty for any form."""
    language: str = ""
    """The language demanded, where it is not that of the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDemand:
    """The answer must be one JSON object about one subject."""

    required: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    """Keys that an earlier request asked for and this one does not."""
    topic_key: str | None = None
    """The key under which the topic is named; None where no key names it."""
    topic: str = ""
    """What the object is about: a name, or the text to extract from."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values that the prompt itself states."""
    schema: Mapping[str, Any] | None = None
    rule: str = ""
    """``upper`` (strings in capitals), ``strings`` (every value a string) or ``short`` (strings of
    three words at most)."""


Demand: TypeAlias = EquationDemand | ObjectDemand


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One request of the workload."""

    id: str
    """Unique within a run: seed, split and number."""
    seed: int
    split: Split
    family: Family
    group: str
    """The perturbation."""
    base: str
    """Which base prompt was perturbed."""
    prompt: str
    demand: Demand
    must_not: bool = False
    """No answer that was made before satisfies this request as it stands."""

    def as_dict(self) -> dict[str, Any]:
        """The item as JSON-able data; :func:`item_from` reads it back."""
        return asdict(self)


def demand_from(data: Mapping[str, Any]) -> Demand:
    """Read a demand back from its JSON-able form."""
    if "variable" in data:
        return EquationDemand(**data)
    fields = dict(data)
    fields["required"] = tuple(fields["required"])
    fields["forbidden"] = tuple(fields["forbidden"])
    return ObjectDemand(**fields)


def item_from(data: Mapping[str, Any]) -> Item:
    """Read an item back from its JSON-able form."""
    return Item(**{**data, "demand": demand_from(data["demand"])})
