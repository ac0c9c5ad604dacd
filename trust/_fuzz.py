"""Throwing inputs at one target, and counting what comes of it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from trust._watch import LIMIT, StuckError, seconds_of, watched

__all__ = ["Tally", "Target", "attack", "input_of"]

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One parser or translator, how its inputs are made, and what must be true of its results."""

    name: str
    what: str
    """One line for the table."""
    inputs: int
    """How many a full run makes."""
    make: Callable[[Random], Any]
    check: Callable[[Any], str | None]
    """Runs the product on an input. A text says what was taken that should not have been, or lost
    that should not have been; whatever it raises is a crash."""
    read: Callable[[bytes], Any] | None = None
    """An input out of a coverage-guided fuzzer's bytes; None leaves the target out there."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one target's inputs came to."""

    name: str
    what: str
    inputs: int = 0
    crashes: int = 0
    hangs: int = 0
    wrong: int = 0
    slowest: float = 0.0
    """CPU seconds of the slowest input, confirmed by reruns."""
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)
    """The first faults, each with what makes its input again."""

    @property
    def faults(self) -> int:
        """All of them."""
        return self.crashes + self.hangs + self.wrong

    def note(self, number: int, kind: str, told: str) -> None:
        """Keep the first few."""
        if len(self.found) < _SHOWN:
            self.found.append(f"{self.name} #{number}: {kind}: {told[-1500:]}")


def input_of(target: Target, seed: int, number: int) -> Any:
    """The input of a number: the same in every run with this seed."""
    return target.make(Random(f"{seed}/{target.name}/{number}"))


def attack(target: Target, seed: int, count: int) -> Tally:
    """Run ``count`` inputs."""
    tally = Tally(name=target.name, what=target.what)
    began = time.perf_counter()
    for number in range(count):
        value = input_of(target, seed, number)
        tally.inputs += 1
        started = time.process_time()
        try:
            with watched():
                wrong = target.check(value)
        except StuckError:
            wrong = None
            tally.note(number, "stuck", _told(value))
        except Exception:
            wrong = None
            tally.crashes += 1
            tally.note(
                number, "crash", f"{_told(value)}\n{traceback.format_exc(limit=-4, chain=False)}"
            )
        took = time.process_time() - started
        if wrong is not None:
            tally.wrong += 1
            tally.note(number, "wrong", f"{wrong}: {_told(value)}")
        if took > max(LIMIT / 4, tally.slowest):
            # Once more: the first to need a module pays for its import.
            took = seconds_of(lambda value=value: target.check(value))  # type: ignore[misc]
        if took > LIMIT:
            tally.hangs += 1
            tally.note(number, f"{took:.2f} s", _told(value))
        tally.slowest = max(tally.slowest, took)
    tally.seconds = time.perf_counter() - began
    return tally


def _told(value: Any) -> str:
    try:
        text = ascii(value)
    except RecursionError:
        return f"a {type(value).__name__} too deep to print"
    return text if len(text) <= 600 else f"{text[:400]}...{text[-200:]}"
