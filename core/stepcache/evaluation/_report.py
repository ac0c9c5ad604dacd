"""What came of an evaluation, by category, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stepcache._counts import count

__all__ = ["LookUp", "Report", "Tally", "wilson"]

_Z95 = 1.959963984540054


def wilson(successes: float, n: int, z: float = _Z95) -> tuple[float, float]:
    """The Wilson score interval of a share, 0 to 1 (Wilson 1927); the whole range for no trial.

    Args:
        successes: 0 to n; may be a fraction where a trial was half a success.
        z: Quantile of the normal distribution; the default gives 95 %.
    """
    if n <= 0:
        return 0.0, 1.0
    p, z2 = successes / n, z * z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # At the ends the formula gives exactly 0 or 1, which floats may miss.
    low = 0.0 if successes <= 0 else max(0.0, centre - half)
    return low, 1.0 if successes >= n else min(1.0, centre + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """One side admitted, the other looked up."""

    id: str
    order: str
    """``a->b``: the answer to a was stored, b was asked."""
    category: str
    same: bool
    kept: bool
    """Whether the cache kept the answer at all."""
    hit: bool
    derived: bool
    """A hit whose text is not the stored answer: made from it for this very request."""
    route: str
    reason: str
    text: str
    """What the hit gave."""

    @property
    def served(self) -> bool:
        """The stored answer came back as it was."""
        return self.hit and not self.derived

    @property
    def wrong(self) -> bool:
        return self.served and not self.same


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The look-ups of one category and label."""

    category: str
    same: bool
    look_ups: int
    pairs: int
    served: int
    derived: int
    not_kept: int

    @property
    def share(self) -> float:
        return self.served / self.look_ups if self.look_ups else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of :attr:`share`. The pair is the unit, for its two orders are no two
        independent trials."""
        return wilson(self.share * self.pairs, self.pairs)

    def as_dict(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "category": self.category,
            "label": "same_answer" if self.same else "different_answer",
            "pairs": self.pairs,
            "look_ups": self.look_ups,
            "served": self.served,
            "derived": self.derived,
            "not_kept": self.not_kept,
            "share": round(self.share, 6),
            "interval": [round(low, 6), round(high, 6)],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All look-ups of one evaluation."""

    face: str
    look_ups: tuple[LookUp, ...]

    @property
    def wrong(self) -> int:
        """Look-ups served a stored answer that another request wants."""
        return sum(look_up.wrong for look_up in self.look_ups)

    def wrongs(self) -> tuple[LookUp, ...]:
        return tuple(look_up for look_up in self.look_ups if look_up.wrong)

    def tallies(self) -> tuple[Tally, ...]:
        """By category: first those that should be served, then those that must not be."""
        groups: dict[tuple[bool, str], list[LookUp]] = {}
        for look_up in self.look_ups:
            groups.setdefault((not look_up.same, look_up.category), []).append(look_up)
        return tuple(
            _tally(category, not differs, group)
            for (differs, category), group in sorted(groups.items())
        )

    def total(self, *, same: bool) -> Tally:
        """Over all categories of one label."""
        return _tally("all", same, [u for u in self.look_ups if u.same is same])

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON-able data; texts of the wrong serves only."""
        return {
            "face": self.face,
            "wrong": self.wrong,
            "totals": [self.total(same=same).as_dict() for same in (True, False)],
            "categories": [tally.as_dict() for tally in self.tallies()],
            "wrong_serves": [
                {
                    "id": u.id,
                    "order": u.order,
                    "category": u.category,
                    "route": u.route,
                    "reason": u.reason,
                }
                for u in self.wrongs()
            ],
        }

    def render(self) -> str:
        """The report as a table, for a person."""
        tallies = self.tallies()
        width = max([len(t.category) for t in tallies] + [12])
        lines = [f"{self.face}: {count(len(self.look_ups), 'look-up')}"]
        for same, title in ((True, "same answer wanted"), (False, "another answer wanted")):
            rows = [t for t in tallies if t.same is same]
            if rows:
                lines += ["", _header(title, width, same)]
                lines += [_row(t, width) for t in (*rows, self.total(same=same))]
        wrongs = self.wrongs()
        if wrongs:
            lines += ["", "served wrongly:"]
            lines += [f"  {u.id} {u.order} ({u.category}): {u.route}, {u.reason}" for u in wrongs]
        lines += ["", f"wrong serves: {self.wrong}"]
        return "\n".join(lines)


def _tally(category: str, same: bool, group: Iterable[LookUp]) -> Tally:
    look_ups = list(group)
    return Tally(
        category=category,
        same=same,
        look_ups=len(look_ups),
        pairs=len({u.id for u in look_ups}),
        served=sum(u.served for u in look_ups),
        derived=sum(u.derived for u in look_ups),
        not_kept=sum(not u.kept for u in look_ups),
    )


def _header(title: str, width: int, same: bool) -> str:
    served = "served" if same else "wrong"
    return f"{title:<{width}}  {'n':>5}  {served:>6}    share  95 % interval   derived  not kept"


def _row(tally: Tally, width: int) -> str:
    low, high = tally.interval
    return (
        f"{tally.category:<{width}}  {tally.look_ups:>5}  {tally.served:>6}  {tally.share:>6.1%}  "
        f"{low:>6.1%} - {high:<6.1%}  {tally.derived:>7}  {tally.not_kept:>8}"
    )
