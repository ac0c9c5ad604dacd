"""What answers cost and what they saved, added up: calls, tokens and money, spent and avoided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from stepcache._forking import fork_safe_lock
from stepcache._types import Outcome, Request, Usage
from stepcache.protocols import Timing
from stepcache.telemetry._prices import Money, Price, priced

__all__ = ["Saved", "Savings"]

_NOTHING = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Sums over some answers. What was avoided is never taken off what was spent."""

    requests: int = 0
    spent: Usage = _NOTHING
    avoided: Usage = _NOTHING
    money_spent: float = 0.0
    money_avoided: float = 0.0
    unpriced: int = 0
    """Answers whose model has no known price; their money is in neither sum."""
    routes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Answers by route."""

    def as_dict(self) -> dict[str, Any]:
        """The sums as plain JSON-able data."""
        return {
            "requests": self.requests,
            "spent": self.spent.as_dict(),
            "avoided": self.avoided.as_dict(),
            "money_spent": self.money_spent,
            "money_avoided": self.money_avoided,
            "unpriced": self.unpriced,
            "routes": dict(self.routes),
        }


class Savings:
    """A listener that adds up; ``savings.total`` reads the sums at any time.

    Args:
        price: What tokens cost; None leaves money out.
    """

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._lock = fork_safe_lock()
        self._sums = Saved()

    def __call__(self, request: Request, outcome: Outcome, timing: Timing, /) -> None:
        money = priced(outcome, self._price)
        self.add(outcome.route, outcome.spent, outcome.avoided, money)

    def add(self, route: str, spent: Usage, avoided: Usage, money: Money | None = None) -> None:
        """Add one answer that is known from elsewhere, e.g. from a trace log."""
        with self._lock:
            sums = self._sums
            self._sums = Saved(
                requests=sums.requests + 1,
                spent=sums.spent + spent,
                avoided=sums.avoided + avoided,
                money_spent=sums.money_spent + (money.spent if money else 0.0),
                money_avoided=sums.money_avoided + (money.avoided if money else 0.0),
                unpriced=sums.unpriced + (money is None and self._price is not None),
                routes={**sums.routes, route: sums.routes.get(route, 0) + 1},
            )

    @property
    def total(self) -> Saved:
        """The sums up to now."""
        return self._sums
