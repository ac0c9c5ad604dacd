"""Where the steps of an answer come from, by what they have in common with a stored one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stepcache._types import Origin, Step

__all__ = ["all_of", "of_adapted", "of_beginning", "of_patched"]


def all_of(origin: Origin, steps: Sequence[Step]) -> tuple[Origin, ...]:
    """Of steps that all come from one place."""
    return (origin,) * len(steps)


def of_adapted(steps: Sequence[Step], source: Sequence[Step]) -> tuple[Origin, ...]:
    """Of steps re-derived in place: those whose text is the stored one's are reused.

    Args:
        steps: The answer's.
        source: Those of the entry it was derived from.
    """
    same = [a.text == b.text for a, b in zip(steps, source)]
    same += [False] * (len(steps) - len(same))
    return tuple("reused" if kept else "adapted" for kept in same)


def of_patched(steps: Sequence[Step], source: Sequence[Step]) -> tuple[Origin, ...]:
    """Of an answer with one block made anew: what it begins and ends with as before is reused."""
    head = _common(steps, source)
    tail = _common(steps[head:][::-1], source[head:][::-1])
    middle = len(steps) - head - tail
    reused, patched = all_of("reused", steps), all_of("patched", steps)
    return (*reused[:head], *patched[:middle], *reused[:tail])


def of_beginning(
    steps: Sequence[Step], beginning: str, source: Sequence[Step], anew: Origin
) -> tuple[Origin, ...]:
    """Of an answer whose end is the task's own.

    Args:
        beginning: The text up to that end.
        source: Stored steps it may begin with; those are reused.
        anew: Where the rest of the beginning comes from.
    """
    head = _common(steps, source)
    origins: list[Origin] = []
    at = 0
    for index, step in enumerate(steps):
        at += len(step.text)
        within = at <= len(beginning)
        origins.append("reused" if within and index < head else anew if within else "solved")
    return tuple(origins)


def _common(steps: Sequence[Step], source: Sequence[Step]) -> int:
    """How many steps two answers have in common at their beginning."""
    count = 0
    for one, other in zip(steps, source):
        if one.text != other.text:
            break
        count += 1
    return count
