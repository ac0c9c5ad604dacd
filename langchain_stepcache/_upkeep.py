"""Taking answers out again: the same for every face that has an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Upkeep"]


class _HasEngine(Protocol):
    """Read-only, so that a face may hold its engine however it likes."""

    @property
    def engine(self) -> Any: ...


class Upkeep:
    """Methods of a face that has an ``engine``."""

    def forget(
        self: _HasEngine,
        entry_id: str | None = None,
        *,
        tag: str | None = None,
        namespace: str | None = None,
        older_than: float | None = None,
        where: Callable[[Any], bool] | None = None,
    ) -> int:
        """Remove answers: one entry, or all that have everything named in common.

        On an asynchronous store, use ``engine.aforget``.

        Args:
            entry_id: ``response_metadata["stepcache"]["entry_id"]`` of a message.
            tag: A tag they carry.
            namespace: What they were kept under.
            older_than: Seconds that have gone by since they were kept.
            where: A predicate of the entry.

        Returns:
            How many went.
        """
        return int(
            self.engine.forget(
                entry_id, tag=tag, namespace=namespace, older_than=older_than, where=where
            )
        )

    def report_bad(self: _HasEngine, entry_id: str) -> bool:
        """Remove an entry whose answer was bad, and keep that answer from coming back.

        Args:
            entry_id: ``response_metadata["stepcache"]["entry_id"]`` of the bad message.
        """
        return bool(self.engine.report_bad(entry_id))
