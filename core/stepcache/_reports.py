"""Answers reported as bad, and the names under which the engine keeps its own notes. Pure.

A report is an entry of a scope of its own, which no request can have: any store keeps it, in the
same place and for as long as the answers it is about.
"""

from __future__ import annotations

from stepcache._identity import digest
from stepcache._types import RESERVED_TAG, Entry

__all__ = [
    "REPORTS",
    "has_namespace",
    "namespace_tags",
    "report_key",
    "report_of",
    "tenant_named",
    "tenant_of",
]

REPORTS = digest("reports")
"""The scope of all reports."""

_NAMESPACE = f"{RESERVED_TAG}namespace:"


def report_key(scope: str, demands: str, answer: str | None) -> str:
    """The key of a report on one answer to one demand.

    Args:
        demands: The canonical key of the request, or its exact key where it has none.
        answer: The answer's text, or the host's record of it where it has no text.
    """
    return digest("report", scope, demands, answer)


def report_of(entry: Entry) -> Entry:
    """The report on an entry's answer."""
    demands = entry.canonical_key or entry.exact_key
    key = report_key(entry.scope, demands, entry.text or entry.message)
    return Entry(
        id=key[:24],
        scope=REPORTS,
        exact_key=key,
        canonical_key=None,
        prompt="",
        constraints=None,
        steps=(),
        tags=tuple(tag for tag in entry.tags if tag.startswith(_NAMESPACE)),
    )


def namespace_tags(namespace: str) -> tuple[str, ...]:
    """The tag by which entries of a namespace are found again; a hash, for it may name a person."""
    return (f"{_NAMESPACE}{digest('namespace', namespace)[:32]}",) if namespace else ()


def has_namespace(entry: Entry, namespace: str) -> bool:
    """Whether an entry was kept under a namespace."""
    if namespace:
        return namespace_tags(namespace)[0] in entry.tags
    return not any(tag.startswith(_NAMESPACE) for tag in entry.tags)


def tenant_named(namespace: str) -> bytes:
    """What :func:`tenant_of` says of a namespace's entries."""
    return "".join(namespace_tags(namespace)).removeprefix(_NAMESPACE).encode()


def tenant_of(entry: Entry) -> bytes | None:
    """Whose an entry is, for limits by namespace; None for the engine's own notes, which are
    nobody's and are not crowded out."""
    if entry.scope == REPORTS:
        return None
    for tag in entry.tags:
        if tag.startswith(_NAMESPACE):
            return tag.removeprefix(_NAMESPACE).encode("utf-8", "surrogatepass")
    return b""
