"""Prompts made to lie next to stored ones: one character, digit, sign, negation, name or key apart.

Each base prompt is stored with its right answer; each neighbour is then looked up beside it. What is
served must be right for the neighbour, by the benchmark's judge (sympy and a JSON Schema validator
of its own); where only another answer can be right, nothing may be served.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from stepcache import Message, Policy, Reply, Request, StepCacheEngine
from stepcache.bench._items import Demand, EquationDemand, ObjectDemand
from stepcache.bench._judge import judge

__all__ = ["Collisions", "Neighbour", "collide", "neighbours"]

_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Two prompts that nearly are one."""

    kind: str
    stored: str
    answer: str
    asked: str
    demand: Demand | None
    """What a right answer to the asked one is; None where any stored answer is wrong."""


@dataclass(slots=True, kw_only=True)
class Collisions:
    """What the look-ups came to under one embedder."""

    embedder: str
    asked: int = 0
    near: int = 0
    """Pairs that the embedder puts within the policy's reach."""
    served: int = 0
    wrong: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    nearest: float = 0.0
    """Mean cosine of the pairs."""
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)


def neighbours(seed: int, count: int) -> Iterator[Neighbour]:
    """Neighbours of equations, JSON demands and open questions, in turn."""
    dice = Random(f"{seed}/collisions")
    makers = (_equation, _object, _question)
    seen: set[tuple[str, str]] = set()
    number = 0
    while len(seen) < count:
        made = makers[number % 3](dice)
        number += 1
        if made.stored != made.asked and (made.stored, made.asked) not in seen:
            seen.add((made.stored, made.asked))
            yield made


# --- equations ---------------------------------------------------------------------------------


def _equation(dice: Random) -> Neighbour:
    v = dice.choice("xyznkt")
    a, b, value = dice.randint(2, 12), dice.randint(1, 20), dice.randint(-9, 9)
    c = a * value + b
    stored = f"Solve {a}{v} + {b} = {c} for {v}."
    answer = f"{a}{v} + {b} = {c}\n\n{a}{v} = {c - b}\n\n{v} = {value}"
    kind, asked, demand = _other_equation(dice, v, a, b, c)
    return Neighbour(
        kind=f"equation: {kind}", stored=stored, answer=answer, asked=asked, demand=demand
    )


def _other_equation(dice: Random, v: str, a: int, b: int, c: int) -> tuple[str, str, Demand | None]:
    w = dice.choice([letter for letter in "xyznkt" if letter != v])
    left = f"{a}*{v} + {b}"
    match dice.randrange(12):
        case 0:
            other = c + dice.choice((-1, 1, 10, -10))
            return "one digit", f"Solve {a}{v} + {b} = {other} for {v}.", _solve(v, left, other)
        case 1:
            return "sign", f"Solve {a}{v} - {b} = {c} for {v}.", _solve(v, f"{a}*{v} - {b}", c)
        case 2:
            return "minus", f"Solve -{a}{v} + {b} = {c} for {v}.", _solve(v, f"-{a}*{v} + {b}", c)
        case 3:
            asked = f"Solve {a}{w} + {b} = {c} for {w}."
            return "unknown renamed", asked, _solve(w, f"{a}*{w} + {b}", c)
        case 4:
            return "relation", f"Solve {a}{v} + {b} > {c} for {v}.", None
        case 5:
            return "negation", f"Do not solve {a}{v} + {b} = {c} for {v}.", None
        case 6:
            asked = f"Solve {a}{v}^2 + {b} = {c} for {v}."
            return "power", asked, None
        case 7:
            asked = f"Solve {a}{v} + {b} = {c} for {w}."
            return "another unknown asked", asked, None
        case 8:
            asked = f"Solve {a}({v} + {b}) = {c} for {v}."
            return "brackets", asked, _solve(v, f"{a}*({v} + {b})", c)
        case 9:
            asked = f"Solve {a}{v} + {b} = {c} for {v} in French."
            return "language", asked, None
        case 10:
            other = b + dice.choice((-1, 1, 2))
            return (
                "one digit",
                f"Solve {a}{v} + {other} = {c} for {v}.",
                _solve(v, f"{a}*{v} + {other}", c),
            )
        case _:
            asked = f"Solve {a}.5{v} + {b} = {c} for {v}."
            return "decimal", asked, _solve(v, f"Rational({2 * a + 1}, 2)*{v} + {b}", c)


def _solve(v: str, left: str, right: int) -> EquationDemand:
    return EquationDemand(variable=v, left=left, right=str(right))


# --- objects -----------------------------------------------------------------------------------

_TOPICS = ("Paris", "Rome", "Berlin", "Madrid", "Vienna", "Tokyo", "Cairo", "Lima")
_FIELDS = ("name", "country", "population", "language", "river", "mayor", "area", "currency")


def _object(dice: Random) -> Neighbour:
    topic = dice.choice(_TOPICS)
    keys = ["name", *dice.sample(_FIELDS[1:], 2)]
    stored = f"Describe {topic} as a JSON object with keys {', '.join(keys)}."
    values = ", ".join(f'"{key}": "{topic if key == "name" else "some"}"' for key in keys)
    kind, asked, demand = _other_object(dice, topic, keys)
    return Neighbour(
        kind=f"json: {kind}", stored=stored, answer=f"{{{values}}}", asked=asked, demand=demand
    )


def _other_object(dice: Random, topic: str, keys: list[str]) -> tuple[str, str, Demand | None]:
    told = ", ".join(keys)
    new = dice.choice([key for key in _FIELDS if key not in keys])
    place = dice.choice([other for other in _TOPICS if other != topic])
    match dice.randrange(11):
        case 0:
            asked = f"Describe {topic} as a JSON object with keys {told}, {new}."
            return "a key more", asked, _demanded(topic, [*keys, new], [])
        case 1:
            fewer = ", ".join(keys[:-1])
            asked = f"Describe {topic} as a JSON object with keys {fewer}."
            return "a key less", asked, _demanded(topic, keys[:-1], keys[-1:])
        case 2:
            other = [*keys[:-1], new]
            asked = f"Describe {topic} as a JSON object with keys {', '.join(other)}."
            return "another key", asked, _demanded(topic, other, keys[-1:])
        case 3:
            return "another subject", f"Describe {place} as a JSON object with keys {told}.", None
        case 4:
            asked = f"Do not describe {topic} as a JSON object with keys {told}."
            return "negation", asked, None
        case 5:
            return "format", f"Describe {topic} as a YAML object with keys {told}.", None
        case 6:
            asked = f"Describe {topic} in 1900 as a JSON object with keys {told}."
            return "a year", asked, None
        case 7:
            asked = f"Describe {topic} as a JSON object with keys {told.title()}."
            return (
                "keys in capitals",
                asked,
                _demanded(topic, [key.title() for key in keys], keys, named="Name"),
            )
        case 8:
            asked = f"Describe {topic} as a JSON object with keys {told} in French."
            return "language", asked, None
        case 9:
            asked = f"Describe {topic}, Texas as a JSON object with keys {told}."
            return "another place of that name", asked, None
        case _:
            asked = f"Describe {topic} as a JSON object with keys {told}, all in capitals."
            return "a rule", asked, None


def _demanded(
    topic: str, keys: list[str], forbidden: list[str], named: str = "name"
) -> ObjectDemand:
    return ObjectDemand(
        required=tuple(keys),
        forbidden=tuple(key for key in forbidden if key not in keys),
        topic_key=named,
        topic=topic,
    )


# --- questions ---------------------------------------------------------------------------------

_QUESTIONS = (
    "How do I transfer {n} euros to {a}?",
    "What is the capital of {a} in {y}?",
    "Can I take {n} mg of aspirin with {a}?",
    "Write a note to {a} about the meeting on {y}-03-0{d}.",
    "How many people lived in {a} in {y}?",
    "Is it safe to mix {a} and bleach for {n} minutes?",
    "Convert {n} km to miles for {a}.",
    "Who won the match between {a} and {b}?",
)
_NAMES = ("Ann", "Bob", "Austria", "Australia", "Niger", "Nigeria", "Carol", "Iran", "Iraq", "Mali")


def _question(dice: Random) -> Neighbour:
    form = dice.choice(_QUESTIONS)
    a, b = dice.sample(_NAMES, 2)
    told = {
        "a": a,
        "b": b,
        "n": dice.randint(2, 98),
        "y": dice.randint(1950, 2020),
        "d": dice.randint(1, 8),
    }
    stored = form.format(**told)
    kind, asked = _other_question(dice, form, stored, told)
    return Neighbour(
        kind=f"text: {kind}", stored=stored, answer="So it is.", asked=asked, demand=None
    )


def _other_question(dice: Random, form: str, stored: str, told: dict[str, Any]) -> tuple[str, str]:
    match dice.randrange(6):
        case 0:
            other = dice.choice([name for name in _NAMES if name not in (told["a"], told["b"])])
            return "another name", form.format(**{**told, "a": other})
        case 1:
            return "digits", form.format(
                **{**told, "n": told["n"] + 1, "y": told["y"] + 1, "d": told["d"] + 1}
            )
        case 2:
            turned = re.sub(
                r"\b(do|is|can|take|lived|write|convert|won)\b",
                r"\1 not",
                stored,
                count=1,
                flags=re.I,
            )
            return "negation", turned if turned != stored else f"{stored} Not."
        case 3:
            return "names swapped", form.format(**{**told, "a": told["b"], "b": told["a"]})
        case 4:
            at = dice.randrange(len(stored) - 1)
            letter = dice.choice([c for c in "aeioubcdf" if c != stored[at].lower()])
            return "one character", stored[:at] + letter + stored[at + 1 :]
        case _:
            return "an addition", stored[:-1] + dice.choice(
                (" twice?", " in French.", " by night?", " again?")
            )


# --- asking ------------------------------------------------------------------------------------


def collide(
    name: str,
    embedder: Any,
    *,
    count: int,
    seed: int,
    progress: Callable[[str], None] = lambda told: None,
) -> Collisions:
    """Look every neighbour up beside its stored one, under an embedder."""
    tally = Collisions(embedder=name)
    began = time.perf_counter()
    total = 0.0
    for made in neighbours(seed, count):
        # Nothing is too far away: the embedder alone must not be what refuses.
        engine = StepCacheEngine(embedder=embedder, policy=Policy(min_similarity=0.0))
        if engine.admit(_request(made.stored), Reply(text=made.answer)) is None:
            raise RuntimeError(f"the right answer to {made.stored!r} is not kept")
        cosine = _cosine(embedder, made)
        total += cosine
        tally.asked += 1
        tally.near += cosine >= Policy().min_similarity
        tally.kinds[made.kind] = tally.kinds.get(made.kind, 0) + 1
        outcome = engine.lookup(_request(made.asked))
        if outcome.served:
            tally.served += 1
            _judge(tally, made, outcome.text, outcome.route)
        if tally.asked % 500 == 0:
            progress(f"{name}: {tally.asked} asked, {tally.served} served, {tally.wrong} wrong")
    tally.nearest = total / max(1, tally.asked)
    tally.seconds = time.perf_counter() - began
    return tally


def _judge(tally: Collisions, made: Neighbour, text: str, route: str) -> None:
    why = "only another answer can be right"
    if made.demand is not None:
        judgement = judge(text, made.demand)
        if judgement.correct and not judgement.stale:
            return
        why = judgement.why or judgement.stale
    tally.wrong += 1
    if len(tally.found) < _SHOWN:
        tally.found.append(f"{made.kind}: {made.asked!r} got {text!r} by {route}: {why}")


def _request(text: str) -> Request:
    return Request(messages=(Message(role="user", text=text),))


def _cosine(embedder: Any, made: Neighbour) -> float:
    import numpy as np

    first, second = np.asarray(embedder.embed([made.stored, made.asked]))
    return float(first @ second)
