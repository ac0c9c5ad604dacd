"""Entries named by what they are: by tag, namespace, age or a predicate of the caller's. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from stepcache._errors import UsageError
from stepcache._reports import REPORTS, has_namespace
from stepcache._types import Entry

__all__ = ["Selection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """All entries of which everything that is named holds; the engine's own notes never.

    Raises:
        UsageError: An age that is none.
    """

    tag: str | None = None
    """A tag they carry."""
    namespace: str | None = None
    """What they were kept under, "" being the default one."""
    older_than: float | None = None
    """Seconds that have to have gone by since they were kept."""
    where: Callable[[Entry], bool] | None = None
    """A predicate of the entry."""

    def __post_init__(self) -> None:
        age = self.older_than
        number = isinstance(age, (int, float)) and not isinstance(age, bool)
        if age is not None and not (number and 0 <= age < math.inf):
            raise UsageError(f"older_than is {age!r}: use seconds of at least 0")

    @property
    def names_nothing(self) -> bool:
        """Whether every entry is meant."""
        return self == Selection()

    def takes(self, entry: Entry, now: float) -> bool:
        """Whether an entry is meant.

        Args:
            now: Seconds since the epoch.
        """
        return (
            entry.scope != REPORTS
            and (self.tag is None or self.tag in entry.tags)
            and (self.namespace is None or has_namespace(entry, self.namespace))
            and (self.older_than is None or now - entry.created > self.older_than)
            and (self.where is None or bool(self.where(entry)))
        )
