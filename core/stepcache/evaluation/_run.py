"""Both ways round through every pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stepcache._types import Message
from stepcache.evaluation._faces import Face
from stepcache.evaluation._pairs import Pair
from stepcache.evaluation._report import LookUp, Report

__all__ = ["evaluate"]


def evaluate(
    face: Face, pairs: Iterable[Pair], *, progress: Callable[[int], object] | None = None
) -> Report:
    """Put one side's answer into the empty cache, ask for the other; then the other way round.

    Args:
        face: The cache. Its entries are removed before every look-up.
        progress: Told how many pairs are done, after each.
    """
    look_ups: list[LookUp] = []
    for done, pair in enumerate(pairs, start=1):
        look_ups.extend(_both_orders(face, pair))
        if progress is not None:
            progress(done)
    return Report(face=face.name, look_ups=tuple(look_ups))


def _both_orders(face: Face, pair: Pair) -> Iterator[LookUp]:
    yield _look_up(face, pair, "a->b", pair.a, pair.b, pair.answer_a)
    yield _look_up(face, pair, "b->a", pair.b, pair.a, pair.answer_b)


def _look_up(
    face: Face,
    pair: Pair,
    order: str,
    stored: tuple[Message, ...],
    asked: tuple[Message, ...],
    answer: str | None,
) -> LookUp:
    face.reset()
    kept = face.admit(stored, answer or f"This is the answer to side {order[0]} of {pair.id}.")
    hit = face.ask(asked)
    return LookUp(
        id=pair.id,
        order=order,
        category=pair.category,
        same=pair.same,
        kept=kept is not None,
        hit=hit is not None,
        derived=hit is not None and hit.text != kept,
        route=hit.route if hit is not None else "",
        reason=hit.reason if hit is not None else "",
        text=hit.text if hit is not None else "",
    )
