"""Looking into a store from outside, where nobody knows what a request's identity was.

A store keeps only a hash of model, parameters and earlier turns: the scope. A prompt is therefore
looked up in the scopes whose entries come nearest to it, as if it were a request of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stepcache._difference import residue_differences, tokens
from stepcache._inspection import Inspection
from stepcache._reports import REPORTS
from stepcache._selection import Selection
from stepcache._types import Difference, Entry, Request
from stepcache.engine import StepCacheEngine
from stepcache.explain._explain import as_request
from stepcache.explain._figures import entries_of, namespace_of

__all__ = ["Found", "inspect", "inspect_entry", "inspect_prompt"]

_RANK = {route: rank for rank, route in enumerate(("exact", "reuse", "adapt", "patch", "skip"))}
_LONGEST = 4_000
"""Characters of a prompt that are compared to find the nearest scopes; nothing rests on it."""


_IN_COMMON = 0.25
"""Portion of the words that two prompts have to share for one to be told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one scope says to a request."""

    scope: str
    entries: int
    """That the scope holds."""
    model: str | None
    """That answered its newest entry."""
    namespace: str
    """Hash of the namespace; "" is the default one."""
    now: Inspection
    before: Inspection | None
    """Where this very request is stored by now: what was decided before it was."""
    nearest: Entry | None
    """The other entry whose wording has most in common with the request's; it decides nothing."""
    differences: tuple[Difference, ...]
    """Between the wordings of that entry and of the request."""


def inspect(engine: StepCacheEngine, request: Request | str) -> Inspection:
    """What an engine would do with a request now, and why; nothing is asked, kept or counted."""
    return engine.inspect(as_request(request))


def inspect_entry(engine: StepCacheEngine, entry: Entry) -> Inspection:
    """What was decided about an entry's request before its answer was kept, as far as the store is
    still what it was."""
    return engine.inspect(as_request(entry.prompt), scope=entry.scope, without=entry.id)


def inspect_prompt(
    engine: StepCacheEngine,
    request: Request | str,
    *,
    entries: Iterable[Entry] | None = None,
    namespace: str | None = None,
    scope: str | None = None,
    limit: int = 5,
) -> tuple[Found, ...]:
    """What a store says to a prompt, in the scopes whose entries come nearest to it; best first.

    Args:
        request: Its closing message and its schema count; model, parameters and earlier turns are
            those of each scope.
        entries: The store's entries, where somebody reads along.
        namespace: Only scopes of this namespace.
        scope: Only scopes whose hash begins like this.
        limit: How many scopes at most.

    Raises:
        UsageError: The store cannot list its entries.
        StoreError: The store failed.
    """
    asked = as_request(request)
    chosen = Selection(namespace=namespace)
    words = _words(asked.text)
    scopes: dict[str, _Scope] = {}
    for entry in entries if entries is not None else entries_of(engine.store):
        if entry.scope == REPORTS or not chosen.takes(entry, 0.0):
            continue
        if scope is not None and not entry.scope.startswith(scope):
            continue
        scopes.setdefault(entry.scope, _Scope(entry)).add(entry, asked.text, words)
    nearest = sorted(scopes.values(), key=lambda s: (-s.nearness, -s.newest.created))[:limit]
    inside = replace(asked, namespace=engine.namespace if namespace is None else namespace)
    found = [_found(engine, inside, each) for each in nearest]
    return tuple(sorted(found, key=lambda f: _RANK.get(f.now.route, len(_RANK))))


class _Scope:
    """What was read of one scope."""

    def __init__(self, entry: Entry) -> None:
        self.newest = entry
        self.entries = 0
        self.nearness = 0.0
        self.nearest: Entry | None = None
        self._shared = 0.0

    def add(self, entry: Entry, text: str, words: frozenset[str]) -> None:
        self.entries += 1
        if entry.created >= self.newest.created:
            self.newest = entry
        if entry.prompt == text:
            self.nearness = 2.0
            return
        theirs = _words(entry.prompt)
        union = len(words | theirs)
        shared = len(words & theirs) / union if union else 0.0
        self.nearness = max(self.nearness, shared)
        if shared > max(self._shared, _IN_COMMON):
            self.nearest, self._shared = entry, shared


def _found(engine: StepCacheEngine, asked: Request, scope: _Scope) -> Found:
    now = engine.inspect(asked, scope=scope.newest.scope)
    before = None
    if now.route == "exact" and now.source is not None:
        before = engine.inspect(asked, scope=scope.newest.scope, without=now.source.id)
    differences: tuple[Difference, ...] = ()
    if scope.nearest is not None:
        old, new = (tuple(tokens(text[:_LONGEST])) for text in (scope.nearest.prompt, asked.text))
        differences = residue_differences(old, new)
    return Found(
        scope=scope.newest.scope,
        entries=scope.entries,
        model=scope.newest.model,
        namespace=namespace_of(scope.newest),
        now=now,
        before=before,
        nearest=scope.nearest,
        differences=differences,
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(text[:_LONGEST].casefold().split())
