"""What has been done so far, in numbers; no texts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from stepcache._types import Outcome, Usage

__all__ = ["Tally"]


class Tally:
    """Counts of one proxy since it began."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.passed_through = 0
        """Requests that no cache is for: other paths, bodies that are not understood."""
        self.upstream_errors = 0
        """Error responses handed on, and calls without a response."""
        self.faults = 0
        """Our own, each of which the client was spared."""
        self._routes: Counter[str] = Counter()
        self._spent = Usage()
        self._avoided = Usage()

    def note(self, outcome: Outcome) -> None:
        """One request was answered."""
        self._routes[outcome.route] += 1
        self._spent += outcome.spent
        self._avoided += outcome.avoided

    def as_dict(self) -> dict[str, Any]:
        """The counts, for JSON."""
        return {
            "requests": self._routes.total(),
            "routes": dict(sorted(self._routes.items())),
            "spent": {**self._spent.as_dict(), "tokens": self._spent.tokens},
            "avoided": {**self._avoided.as_dict(), "tokens": self._avoided.tokens},
            "passed_through": self.passed_through,
            "upstream_errors": self.upstream_errors,
            "faults": self.faults,
            "in_flight": self.in_flight,
        }
