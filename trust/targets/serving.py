"""The whole engine: a stored answer, and a prompt made from the stored one by a few changes.

Every text looks like every other to the embedder, so only proof can refuse. What is served is held
against the changed prompt by readers of their own: an equation is put into the value stated, and any
word that came or went must be one that cannot matter.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from stepcache import Message, Reply, Request, StepCacheEngine
from stepcache.demo._check import stated_value
from trust._fuzz import Target
from trust._mutate import mutated
from trust.targets._equation_texts import WORDS, holds, prompt_and_value
from trust.targets.texts import _DEMANDS, _KEYWORDS, _REQUESTS, _TURNS

__all__ = ["SERVING"]

_LONGEST = 1_500
_IDLE = frozenset(
    [
        "please",
        "kindly",
        "could",
        "you",
        "can",
        "would",
        "will",
        "tell",
        "me",
        "show",
        "your",
        "the",
        "a",
        "an",
        "of",
        "for",
        "to",
        "in",
        "is",
        "are",
        "it",
        "its",
        "with",
        "by",
        "and",
        "so",
        "thanks",
        "thank",
        "hello",
        "hi",
        "hey",
        "now",
        "just",
        "also",
        "i",
        "want",
        "need",
        "like",
        "help",
        "us",
        "let",
        "solve",
        "find",
        "what",
        "calculate",
        "compute",
        "determine",
        "value",
        "equation",
        "following",
        "linear",
        "step",
        "steps",
        "work",
        "working",
        "given",
        "that",
        "if",
        "when",
        "where",
        "answer",
        "give",
        "get",
        "work",
        "out",
        "here",
        "exact",
        "exactly",
        "be",
        "as",
        "such",
        "which",
        "this",
        "question",
        "problem",
    ]
)
"""English words that ask for nothing of their own in a request to solve an equation."""


class Everywhere:
    """An embedder to which all texts are one."""

    fingerprint = "everywhere"
    dimension = 4

    def embed(self, texts: Sequence[str], /) -> Any:
        """The same unit vector for every text."""
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


_OBJECT = {"name": "Paris", "country": "France", "population": 2100000}


def _case(dice: Random) -> tuple[str, str, str]:
    """Stored prompt, its answer, changed prompt."""
    match dice.randrange(3):
        case 0:
            text, v, value = prompt_and_value(dice)
            other, _, _ = prompt_and_value(dice)
            return text, f"{v} = {value}", mutated(text, dice, WORDS, other, _LONGEST)
        case 1:
            text = dice.choice(_DEMANDS)
            answer = json.dumps(_OBJECT if "Paris" in text else {"name": "Ann", "age": 30})
            return text, answer, mutated(text, dice, _KEYWORDS, dice.choice(_DEMANDS), _LONGEST)
        case _:
            text = dice.choice(_REQUESTS)
            other = dice.choice(_REQUESTS)
            return text, "Certainly: 7.", mutated(text, dice, _TURNS, other, _LONGEST)


def _served(case: tuple[str, str, str]) -> str | None:
    stored, answer, asked = case
    engine = StepCacheEngine(embedder=Everywhere())
    engine.admit(_request(stored), Reply(text=answer))
    outcome = engine.lookup(_request(asked))
    if not outcome.served or asked == stored:
        return None
    statement = re.fullmatch(r"([a-z]) = (-?\d+(?:/\d+)?)", answer)
    if statement is None:
        return _changed(stored, asked, outcome.text)
    unknown = statement[1]
    for name in "xyzabnkpqrtuvw":
        value = stated_value(outcome.text, name)
        if value is not None:
            unknown = name
            if holds(asked, name, value) is False:
                return f"{outcome.route}: served {outcome.text!r}"
    strange = _strange(stored, asked, unknown)
    return f"{outcome.route}, though {strange} differ" if strange else None


def _request(text: str) -> Request:
    return Request(messages=(Message(role="user", text=text),))


def _words(text: str) -> Counter[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return Counter(re.findall(r"[^\W\d_]{2,}", plain))


def _strange(stored: str, asked: str, unknown: str) -> list[str]:
    """English words that came or went and are not idle."""
    old, new = _words(stored), _words(asked)
    moved = (old - new) + (new - old)
    # Of other languages this reader knows too little.
    return [w for w in moved if w.isascii() and w not in _IDLE] if asked.isascii() else []


def _changed(stored: str, asked: str, served: str) -> str | None:
    """For answers that only equal demands may have: what an equal demand could not differ in."""
    old, new = (
        unicodedata.normalize("NFC", text).translate({0x2019: "'"}) for text in (stored, asked)
    )
    if [c for c in old if c.isdecimal()] != [c for c in new if c.isdecimal()]:
        return f"served {served!r}, though the digits differ"
    moved = (_words(old) - _words(new)) + (_words(new) - _words(old))
    for word in moved:
        if word in (
            "not",
            "never",
            "no",
            "without",
            "twice",
            "rome",
            "paris",
            "french",
            "yaml",
            "ann",
        ):
            return f"served {served!r}, though {word!r} came or went"
    return None


SERVING = Target(
    name="serving",
    what="look-ups of changed prompts beside one stored answer; judged by readers of their own",
    inputs=12_000,
    make=_case,
    check=_served,
)
