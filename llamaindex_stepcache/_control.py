"""What one call asks of the cache, beside what it asks of the LLM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from stepcache import Control

__all__ = ["KEY", "merged"]

KEY = "stepcache"
"""Name of the keyword argument; it never reaches the wrapped LLM and is no part of a request."""


def merged(standing: Control, given: object) -> Control:
    """The wishes of one call over those that stand for all.

    Args:
        given: None, or what :meth:`stepcache.Control.of` reads. A mapping changes single wishes,
            anything else takes the place of all.

    Raises:
        UsageError: ``given`` is nothing of that kind.
    """
    if given is None:
        return standing
    if isinstance(given, Mapping):
        own = {field.name: getattr(standing, field.name) for field in fields(standing)}
        return Control.of({**own, **given})
    return Control.of(given)
