"""Parsers at the largest inputs the policy lets in: time, how it grows, and memory."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stepcache import Message, Policy, Request
from stepcache._difference import content, residue_differences
from stepcache._stitch import segment
from stepcache._types import Constraints
from stepcache.engine import default_tasks
from stepcache.tasks.json_answer._extract import extract
from stepcache.tasks.json_answer._repair import repaired

__all__ = ["Limits", "press"]

_UNITS: tuple[str, ...] = (
    *(
        "a",
        "(",
        "x = 1 ",
        "2x + 3 = 13. ",
        "{",
        "[",
        '"',
        "'",
        "\\",
        "json ",
        "a, ",
        "- a\n",
        "1",
        "1,",
    ),
    *(
        "1/",
        "x^",
        "$",
        "\\frac{",
        "```\n",
        "\n",
        "  \n",
        "# a\n",
        "|a|b|\n",
        "\u0301",
        "é",
        "字",
        "\ud800",
    ),
    *(
        "Let u be 3. ",
        "and ",
        "please ",
        "keys name, ",
        '{"a": ',
        '"a": 1, ',
        ": ",
        "...",
        "?",
        "not ",
    ),
    *(
        "**",
        "1. a\n",
        "$$\n",
        "x=y=",
        "twenty-",
        "Ann's ",
        "\t",
        "“",
        "«",
        "x+",
        "+x",
        "0.",
        "key1 and ",
    ),
    *(
        "as JSON with keys a, b. ",
        "with keys: ",
        "JSON {",
        "I. a\n",
        "(a) ",
        "\\begin{x}\n",
        "\r",
        "\u2028",
    ),
)
_BEGINNINGS = ("", "Solve 2x + 3 = 13 for x. ", "Return JSON with keys a, b. ")
_MOST_SECONDS = 1.0
"""Of CPU time, for a prompt or an answer as long as the policy lets in."""
_MOST_GROWTH = 3.0
"""Twice the text may take this many times as long, where it takes long at all."""
_COUNTS_FROM = 0.1
_AGAIN = 4
_MOST_BYTES_A_CHAR = 2_000


@dataclass(slots=True, kw_only=True)
class Limits:
    """What the largest inputs came to."""

    inputs: int = 0
    chars: int = 0
    """Length of the longest."""
    crashes: int = 0
    slowest: float = 0.0
    """CPU seconds of the slowest call."""
    slowest_call: str = ""
    worst_growth: float = 0.0
    peak_bytes: int = 0
    """The most memory any call held at once."""
    violations: int = 0
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)


def press(*, quick: bool = False, progress: Callable[[str], None] = lambda told: None) -> Limits:
    """Run every parser at the policy's limits."""
    tally = Limits()
    began = time.perf_counter()
    for number, unit in enumerate(_UNITS[:: 8 if quick else 1]):
        for name, size, call in _calls(unit):
            _press_one(tally, f"{name} of {unit!r}", size, call)
        if number % 10 == 9:
            progress(f"{number + 1} shapes, slowest {tally.slowest:.2f} s")
    tally.seconds = time.perf_counter() - began
    return tally


def _calls(unit: str) -> Iterator[tuple[str, int, Callable[[int], Any]]]:
    policy = Policy()
    for beginning in _BEGINNINGS:
        for task in default_tasks():

            def parse(size: int, task: Any = task, beginning: str = beginning) -> Any:
                text = beginning + _filled(unit, size - len(beginning))
                parsed = task.parse(Request(messages=(Message(role="user", text=text),)))
                if isinstance(parsed, Constraints):
                    content(text, parsed.spans, task.neutral)
                return parsed

            yield f"{task.name} prompt {beginning[:8]!r}", policy.max_prompt_chars, parse
    for task in default_tasks():

        def cut(size: int, task: Any = task) -> Any:
            return task.segment(_filled(unit, size))

        yield f"{task.name} answer", policy.max_answer_chars, cut
    yield "segment", policy.max_answer_chars, lambda size: segment(_filled(unit, size))
    yield "extract", policy.max_answer_chars, lambda size: extract(_filled(unit, size))
    for name, before, after in (("object", '{"a": ["x", ', "]}"), ("text", '["', '"]')):

        def repair(size: int, before: str = before, after: str = after) -> Any:
            # As long as what a parser that guesses is given at all.
            return repaired(before + _filled(unit, min(size, 9_900)) + after)

        yield f"repair of an {name}", policy.max_answer_chars, repair
    yield (
        "differences",
        policy.max_prompt_chars,
        lambda size: residue_differences(
            content(_filled(unit, size), (), frozenset()),
            content("b " + _filled(unit, size)[::-1], (), frozenset()),
        ),
    )


def _filled(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def _press_one(tally: Limits, told: str, size: int, call: Callable[[int], Any]) -> None:
    tally.inputs += 1
    tally.chars = max(tally.chars, size)
    took = _seconds(tally, told, call, size)
    if took < _COUNTS_FROM:
        return
    growth = took / max(1e-3, _seconds(tally, told, call, size // 2))
    if took > _MOST_SECONDS or growth > _MOST_GROWTH:
        # The least of several, before a busy machine is taken for the input's doing.
        took = min(took, *(_seconds(tally, told, call, size) for _ in range(_AGAIN)))
        half = min(_seconds(tally, told, call, size // 2) for _ in range(_AGAIN))
        growth = took / max(1e-3, half)
    tally.worst_growth = max(tally.worst_growth, growth)
    if took > tally.slowest:
        tally.slowest, tally.slowest_call = took, told
    if took > _MOST_SECONDS or growth > _MOST_GROWTH:
        tally.violations += 1
        tally.found.append(f"{told}: {took:.2f} s, {growth:.1f} times that of half")
    peak = _peak(call, size)
    tally.peak_bytes = max(tally.peak_bytes, peak)
    if peak > _MOST_BYTES_A_CHAR * size:
        tally.violations += 1
        tally.found.append(f"{told}: {peak:,} bytes")


def _seconds(tally: Limits, told: str, call: Callable[[int], Any], size: int) -> float:
    gc.freeze()  # collecting what other parts left behind is no cost of this input
    started = time.process_time()
    try:
        call(size)
    except Exception as error:
        tally.crashes += 1
        tally.violations += 1
        tally.found.append(f"{told}: {type(error).__name__}: {str(error)[:200]}")
    finally:
        took = time.process_time() - started
        gc.unfreeze()
    return took


def _peak(call: Callable[[int], Any], size: int) -> int:
    tracemalloc.start()
    try:
        call(size)
        return tracemalloc.get_traced_memory()[1]
    except Exception:
        return 0
    finally:
        tracemalloc.stop()
