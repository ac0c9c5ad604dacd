"""The words and the colour families by which every screen tells how an answer came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepcache._types import Status

__all__ = ["ORIGINS", "ROUTES", "STATUSES", "origins_of"]

ROUTES: Mapping[str, tuple[str, str]] = {
    "exact": ("reused", "the same request was answered before; the model was not asked"),
    "reuse": ("reused", "other words, same demands; every step verified, the model was not asked"),
    "adapt": ("adapted", "steps re-derived for new demands and verified; the model was not asked"),
    "patch": ("patched", "the failing part was made anew by the model, the whole verified"),
    "skip": ("generated", "a difference nobody can vouch for; the model answered"),
    "miss": ("generated", "nothing stored was near enough; the model answered"),
    "fallback": ("solved", "the model was wrong; the task's deterministic answer stands in"),
    "bypass": ("generated", "the cache stood aside; the model answered"),
    "model": ("generated", "the model answered"),
    "hit": ("reused", "another cache's hit; nothing was verified"),
    "error": ("failed", "the model's own error went through"),
}
"""Route -> its colour family, and what it means."""

ORIGINS: Mapping[str, str] = {
    "reused": "taken as it stands from an earlier answer",
    "adapted": "re-derived for this request without the model",
    "patched": "made anew by the model for this request",
    "generated": "written by the model as part of a whole answer",
    "solved": "the task's own deterministic answer",
    "stored": "kept in the store",
}
"""Where a step comes from, and what that means."""

STATUSES: Mapping[str, tuple[str, str]] = {
    Status.PASS.value: ("✓", "verified"),
    Status.FAIL.value: ("✗", "failed"),
    Status.UNKNOWN.value: ("?", "unknown"),
}

_ROUTE_ORIGINS = {"exact": "reused", "reuse": "reused", "adapt": "adapted", "hit": "reused"}


def origins_of(
    route: str | None, steps: Sequence[str], earlier: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Where each step comes from, for sources that do not say.

    Args:
        steps: Texts of the answer's steps.
        earlier: Texts of the earlier answer's steps, where it is known which one that was.
    """
    if route not in ("adapt", "patch"):
        return (_ROUTE_ORIGINS.get(route or "", "generated"),) * len(steps)
    anew = "adapted" if route == "adapt" else "patched"
    known = set(earlier or ())
    return tuple("reused" if step in known else anew for step in steps)
