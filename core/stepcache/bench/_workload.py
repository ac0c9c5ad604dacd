"""The whole workload of one seed, in the order it is asked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import sha256

from stepcache.bench._items import Item
from stepcache.bench._json import (
    JsonGroup,
    json_extended,
    json_extra_warm_up,
    json_paper,
    json_warm_up,
)
from stepcache.bench._math import MathGroup, math_extended, math_paper, math_warm_up
from stepcache.bench._wordings import Wordings, load_wordings

__all__ = ["QUICK", "SEEDS", "SPLITS", "fingerprint", "workload"]

SEEDS = (42, 43, 44)
SPLITS = ("paper", "extended")
QUICK = 24


def workload(
    seed: int,
    splits: Sequence[str] = SPLITS,
    wordings: Wordings | None = None,
    *,
    quick: bool = False,
) -> list[Item]:
    """Base prompts first, then the requests of each split in an order of the seed's own.

    Every split follows on those before it, so the extended split is asked of a cache that holds
    what the paper split left there. The same arguments give the same items.

    Args:
        seed: Decides equations, subjects, choice of wordings and order.
        splits: ``paper``, ``extended`` or both.
        wordings: Where paraphrases come from; None takes the shipped file.
        quick: 24 requests that touch every group, and the base prompts they need.

    Raises:
        ValueError: No split of that name.
    """
    unknown = [split for split in splits if split not in SPLITS]
    if unknown or not splits:
        raise ValueError(f"splits are {list(splits)}: use {', '.join(SPLITS)}")
    words = wordings if wordings is not None else load_wordings()
    math, objects = MathGroup(seed, words.math), JsonGroup(seed, words.json)
    warm_up = [*math_warm_up(math), *json_warm_up(objects)]
    paper = [*math_paper(math), *json_paper(objects)]
    extra = list(json_extra_warm_up(objects))
    extended = [*math_extended(math), *json_extended(objects)]
    order = random.Random(f"order {seed}")  # noqa: S311 - an order, not a secret
    order.shuffle(paper)
    order.shuffle(extended)
    phases = []
    if "paper" in splits:
        phases.append((warm_up, paper))
    if "extended" in splits:
        phases.append((extra if phases else [*warm_up, *extra], extended))
    if quick:
        return _quick(phases)
    return [item for bases, asked in phases for item in (*bases, *asked)]


def _quick(phases: Sequence[tuple[list[Item], list[Item]]]) -> list[Item]:
    """Requests taken in turn from every group, few bases first so that little has to be warmed."""
    asked = [item for _, requests in phases for item in requests]
    groups: dict[tuple[str, str], list[Item]] = {}
    for item in sorted(asked, key=lambda item: (item.base, item.id)):
        groups.setdefault((item.family, item.group), []).append(item)
    chosen: list[Item] = []
    while len(chosen) < QUICK:
        for group in groups.values():
            if group and len(chosen) < QUICK:
                chosen.append(group.pop(0))
    wanted = {item.id for item in chosen}
    bases = {item.base for item in chosen}
    return [
        item
        for warm_up, requests in phases
        for item in (
            *(item for item in warm_up if item.base in bases),
            *(item for item in requests if item.id in wanted),
        )
    ]


def fingerprint(items: Sequence[Item]) -> str:
    """A digest of the requests and of what is demanded of their answers."""
    return sha256("\n".join(repr(item.as_dict()) for item in items).encode()).hexdigest()
