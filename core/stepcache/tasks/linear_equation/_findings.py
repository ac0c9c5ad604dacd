"""What is found in one step: what fails, what is in doubt, what holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepcache._counts import count
from stepcache._types import Verdict
from stepcache.tasks.linear_equation._algebra import Quotient

__all__ = ["Findings"]


@dataclass
class Findings:
    """What was found in a step."""

    failed: Verdict | None = None
    unknown: Verdict | None = None
    claims: int = 0
    """Statements that were read and hold."""
    equations: list[tuple[Quotient, Quotient]] = field(default_factory=list)
    """The equations in the unknown that hold, in order."""
    operations: list[tuple[str, Quotient]] = field(default_factory=list)
    """What is said to be done to both sides: ``("subtract", 3)``."""
    final: bool = False
    """It states the value of the unknown, or that there is none, as a result."""

    @property
    def verdict(self) -> Verdict:
        if self.failed is not None:
            return self.failed
        if self.unknown is not None:
            return self.unknown
        if self.claims:
            hold = "holds" if self.claims == 1 else "hold"
            return Verdict.passed("holds", f"{count(self.claims, 'statement')} {hold}")
        return Verdict.passed("no-claim", "it makes no claim")

    def fail(self, code: str, reason: str) -> None:
        if self.failed is None:
            self.failed = Verdict.failed(code, reason)

    def doubt(self, code: str, reason: str) -> None:
        if self.unknown is None:
            self.unknown = Verdict.unknown(code, reason)
