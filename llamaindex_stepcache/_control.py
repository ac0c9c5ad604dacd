"""What one call asks of the cache, taken out of the host's keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from stepcache import Control, UsageError

__all__ = ["KEY", "Asked", "Given", "merged", "read_control"]

KEY = "stepcache"
"""Name of the keyword argument; it never reaches the wrapped LLM and is no part of a request."""

Given: TypeAlias = Mapping[str, Any] | Control | None
"""What a caller may pass under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A caller's wishes, read."""

    control: Control = field(default_factory=Control)
    namespace: str | None = None
    """Another wall for this call; None keeps the LLM's own."""


def read_control(given: Given) -> Asked:
    """The wishes a caller passed.

    Raises:
        UsageError: There is no such wish, or its value cannot be one.
    """
    if given is None:
        return Asked()
    if isinstance(given, Control):
        return Asked(control=given)
    if not isinstance(given, Mapping):
        raise UsageError(f"{KEY} is {given!r}: pass a dict such as {{'bypass': True}}")
    wishes = dict(given)
    namespace = wishes.pop("namespace", None)
    if namespace is not None and not isinstance(namespace, str):
        raise UsageError(f"{KEY}['namespace'] is {namespace!r}: pass a string")
    known = [each.name for each in fields(Control)]
    strange = sorted(str(name) for name in wishes if name not in known)
    if strange:
        names = ", ".join(sorted({*known, "namespace"}))
        raise UsageError(f"{KEY} has {', '.join(strange)}: it takes {names}")
    if "tags" in wishes:
        tags = wishes["tags"]
        wishes["tags"] = (tags,) if isinstance(tags, str) else tuple(tags or ())
    try:
        return Asked(control=Control(**wishes), namespace=namespace)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{KEY} cannot be {given!r}: {error}") from error


def merged(standing: Given, given: Given) -> Given:
    """The wishes of one call over those that stand for all; a ``Control`` replaces them whole."""
    if given is None:
        return standing
    if isinstance(standing, Mapping) and isinstance(given, Mapping):
        return {**standing, **given}
    return given
