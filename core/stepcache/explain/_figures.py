"""What a store holds, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcache._errors import UsageError
from stepcache._reports import REPORTS, namespace_tags
from stepcache._types import RESERVED_TAG, Entry, Usage

__all__ = ["Figures", "entries_of", "figures", "namespace_of", "own_tags"]

_NAMESPACE = namespace_tags("any")[0].rpartition(":")[0] + ":"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a store holds. How often it served is counted by engines and their listeners."""

    entries: int
    scopes: int
    """Walls between entries: model, endpoint, parameters, tools, earlier turns, namespace."""
    namespaces: Mapping[str, int]
    """Entries by namespace; "" is the default one, others are told by a hash."""
    tasks: Mapping[str, int]
    """Entries by family; "" holds those kept for byte-equal requests only."""
    models: Mapping[str, int]
    """Entries by the model that answered; "" where the backend did not say."""
    tags: Mapping[str, int]
    steps: int
    characters: int
    """Of prompts and answers."""
    bytes: int | None
    """On disk, indexes and free space included; None where the store does not say."""
    reports: int
    """Answers reported as bad."""
    unreadable: int
    """Records met that are damaged, or sealed with another key; each is a miss."""
    oldest: float | None
    newest: float | None
    """Seconds since the epoch."""
    expiring: int
    """Entries with a deadline."""
    cost: Usage
    """What making all answers cost: what serving each of them once avoids."""

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain JSON-able data."""
        return {
            "entries": self.entries,
            "scopes": self.scopes,
            "namespaces": dict(self.namespaces),
            "tasks": dict(self.tasks),
            "models": dict(self.models),
            "tags": dict(self.tags),
            "steps": self.steps,
            "characters": self.characters,
            "bytes": self.bytes,
            "reports": self.reports,
            "unreadable": self.unreadable,
            "oldest": self.oldest,
            "newest": self.newest,
            "expiring": self.expiring,
            "cost": self.cost.as_dict(),
        }


def figures(store: Any, entries: Iterable[Entry] | None = None) -> Figures:
    """Count what a store holds, by reading every entry once.

    Args:
        store: One that can list its entries.
        entries: Its entries, where somebody reads along.

    Raises:
        UsageError: The store cannot list its entries.
        StoreError: The store failed.
    """
    namespaces: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    models: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    scopes: set[str] = set()
    total = steps = characters = reports = expiring = 0
    oldest = newest = None
    cost = Usage()
    for entry in entries if entries is not None else entries_of(store):
        if entry.scope == REPORTS:
            reports += 1
            continue
        total += 1
        scopes.add(entry.scope)
        namespaces[namespace_of(entry)] += 1
        tasks[entry.constraints.task if entry.constraints is not None else ""] += 1
        models[entry.model or ""] += 1
        tags.update(own_tags(entry))
        steps += len(entry.steps)
        characters += len(entry.prompt) + sum(len(step.text) for step in entry.steps)
        expiring += entry.expires is not None
        oldest = entry.created if oldest is None else min(oldest, entry.created)
        newest = entry.created if newest is None else max(newest, entry.created)
        cost += entry.usage
    return Figures(
        entries=total,
        scopes=len(scopes),
        namespaces=_ordered(namespaces),
        tasks=_ordered(tasks),
        models=_ordered(models),
        tags=_ordered(tags),
        steps=steps,
        characters=characters,
        bytes=_bytes(store),
        reports=reports,
        unreadable=int(getattr(store, "unreadable", 0)),
        oldest=oldest,
        newest=newest,
        expiring=expiring,
        cost=cost,
    )


def entries_of(store: Any) -> Iterator[Entry]:
    """Every live entry of a store, reports included.

    Raises:
        UsageError: The store cannot list its entries.
        StoreError: While reading on: the store failed.
    """
    if not hasattr(store, "entries"):
        raise UsageError(f"{type(store).__name__} cannot list its entries")
    yield from store.entries()


def own_tags(entry: Entry) -> tuple[str, ...]:
    """The tags a caller gave."""
    return tuple(tag for tag in entry.tags if not tag.startswith(RESERVED_TAG))


def namespace_of(entry: Entry) -> str:
    """The hash of the namespace an entry was kept under; "" for the default one."""
    found = (tag for tag in entry.tags if tag.startswith(_NAMESPACE))
    return next(found, "").removeprefix(_NAMESPACE)


def _bytes(store: Any) -> int | None:
    size = getattr(store, "size", None)
    if size is not None:
        return int(size())
    path = getattr(store, "path", None)
    if not isinstance(path, str):
        return None
    parts = (Path(path), Path(f"{path}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
