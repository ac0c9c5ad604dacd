"""What ports answer, looked at before anybody uses it.

A port may be anybody's: one that answers something else than it should must cost the answer of the
cache, not the user's (law 11), and what it hands over for another scope or key is never served (law
4).
"""

from __future__ import annotations

import math
from typing import Any

from stepcache._counts import count
from stepcache._effects import Effect, Embed, Generate, Get, Put, Search
from stepcache._errors import EmbedderError, StoreError, UsageError
from stepcache._leases import kept
from stepcache._types import Constraints, Entry, Reply, Step, Usage
from stepcache.protocols import Embedder, Match, Vector

__all__ = ["answered", "replied"]


def answered(effect: Effect, result: Any, embedder: Embedder) -> Any:
    """A port's answer to an effect, as the effect promises it.

    Args:
        embedder: Who makes vectors, of one length.

    Raises:
        StoreError, EmbedderError, UsageError: It is something else; says what.
    """
    match effect:
        case Get():
            return _found(result, effect)
        case Search():
            return _matches(result, effect)
        case Put():
            return kept(result)
        case Embed():
            return _combined(result, len(effect.views), embedder.dimension)
        case Generate():
            return replied(result)
        case _:
            return result


def replied(result: Any) -> Reply:
    """A backend's reply.

    Raises:
        UsageError: It is none.
    """
    if (
        isinstance(result, Reply)
        and isinstance(result.text, str)
        and isinstance(result.usage, Usage)
        and _is_text(result.finish_reason, result.message, result.model)
    ):
        return result
    raise UsageError(
        f"the backend returned a {type(result).__name__}: return a stepcache.Reply, whose text is "
        "a string"
    )


def _found(result: Any, get: Get) -> Entry | None:
    if result is None:
        return None
    entry = _entry(result, get.scope)
    if get.key not in (entry.exact_key, entry.canonical_key):
        raise StoreError("the store returned an entry of another key")
    return entry


def _matches(result: Any, search: Search) -> tuple[Match, ...]:
    if not isinstance(result, (tuple, list)):
        raise StoreError(f"the store returned a {type(result).__name__}: return a tuple of Match")
    for match in result:
        if not isinstance(match, Match):
            raise StoreError(f"the store found a {type(match).__name__}: return a tuple of Match")
        _entry(match.entry, search.scope)
        if not isinstance(match.similarity, (int, float)) or not math.isfinite(match.similarity):
            raise StoreError("the store returned a similarity that is no number")
    return tuple(result)


def _entry(entry: Any, scope: str) -> Entry:
    if not isinstance(entry, Entry):
        raise StoreError(f"the store returned a {type(entry).__name__}: return an Entry or None")
    if entry.scope != scope:
        raise StoreError("the store returned an entry of another scope")
    sound = (
        isinstance(entry.id, str)
        and isinstance(entry.prompt, str)
        and isinstance(entry.steps, tuple)
        and (entry.constraints is None or isinstance(entry.constraints, Constraints))
        and isinstance(entry.usage, Usage)
        and isinstance(entry.tags, tuple)
        and (entry.message is None or isinstance(entry.message, str))
        and (entry.model is None or isinstance(entry.model, str))
    )
    for step in entry.steps if sound else ():
        sound = sound and isinstance(step, Step) and isinstance(step.text, str)
    if not sound:
        raise StoreError("the store returned an entry whose fields are not an entry's")
    return entry


def _is_text(*values: object) -> bool:
    return all(value is None or isinstance(value, str) for value in values)


def _combined(vectors: Any, views: int, dimension: int) -> Vector:
    """One unit vector for several views of a request: the direction of their sum."""
    import numpy as np

    array = np.asarray(vectors, dtype=np.float32)
    if array.shape != (views, dimension) or not np.isfinite(array).all():
        raise EmbedderError(
            f"the embedder returned shape {array.shape} for {count(views, 'text')}: "
            f"return a finite float32 array of shape ({views}, {dimension})"
        )
    total = array.sum(axis=0)
    length = float(np.linalg.norm(total))
    combined: Vector = total / length if length else total
    return combined
