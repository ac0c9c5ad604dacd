"""The summary and its verdict, on exchanges written by hand."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from stepcache.demo._report import header, row, summarise, summary_table
from stepcache.demo._run import Answer, Exchange
from stepcache.demo._script import SCRIPT


def exchange(number: int, bare: dict[str, Any], cached: dict[str, Any]) -> Exchange:
    """One exchange; the figures not named are ordinary."""
    usual = {"text": "x", "seconds": 1.0, "prompt_tokens": 10, "completion_tokens": 90}
    told = {
        "route": "patch",
        "reason": "the key [b] is missing",
        "reused_steps": 3,
        "patched_steps": 1,
        "avoided": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 60},
    }
    return Exchange(
        number=number,
        item=SCRIPT[0],
        bare=Answer(**{**usual, "correct": True, **bare}),
        cached=Answer(**{**usual, "correct": True, "stepcache": told, **cached}),
    )


def test_figures_are_those_of_the_answers() -> None:
    """Mean, median, p95, tokens and routes are worked out over all requests."""
    seconds = [1.0, 2.0, 3.0, 4.0, 10.0]
    summary = summarise(
        [
            exchange(i, {"seconds": s}, {"seconds": s / 10, "completion_tokens": 30})
            for i, s in enumerate(seconds, start=1)
        ]
    )
    assert summary.bare.mean_seconds == pytest.approx(4.0)
    assert summary.bare.median_seconds == pytest.approx(3.0)
    assert summary.bare.p95_seconds == pytest.approx(8.8)
    assert (summary.bare.tokens, summary.cached.tokens) == (500, 200)
    assert summary.routes == {"patch": 5}
    assert summary.avoided_tokens == 300
    assert summary.passed
    assert "10.0 times faster" in summary.verdict
    assert "60% fewer tokens" in summary.verdict


@pytest.mark.parametrize(
    ("cached", "word"),
    [
        (
            {"correct": False, "seconds": 0.1, "completion_tokens": 1},
            "answers to 1 (patch) are not correct",
        ),
        ({"seconds": 1.0, "completion_tokens": 1}, "latency is not below"),
        ({"seconds": 0.1, "completion_tokens": 90}, "tokens are not below"),
    ],
)
def test_each_fault_fails_with_its_sentence(cached: dict[str, Any], word: str) -> None:
    """A wrong answer, no gain in time and no gain in tokens are each enough to fail."""
    summary = summarise([exchange(1, {}, cached)])
    assert not summary.passed
    assert word in summary.verdict


def test_a_wrong_bare_answer_is_not_held_against_the_cache() -> None:
    """The verdict is about the answers that StepCache served."""
    summary = summarise([exchange(1, {"correct": False}, {"seconds": 0.1, "completion_tokens": 1})])
    assert summary.passed
    assert (summary.bare.correct, summary.cached.correct) == (0, 1)


def test_nothing_asked_is_no_success() -> None:
    """An empty play fails."""
    assert not summarise([]).passed


def test_a_request_is_one_line_with_route_and_reason() -> None:
    """The line tells route, steps, seconds, tokens, correctness and why; brackets stay as they are."""
    console = Console(file=io.StringIO(), width=160)
    one = exchange(7, {}, {"seconds": 0.25, "completion_tokens": 30})
    console.print(header())
    console.print(row(one))
    console.print(summary_table(summarise([one])))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    (line,) = [line for line in text.splitlines() if line.startswith("7 ")]
    for part in (
        "patch",
        "3 +1 new",
        "1.00 -> 0.25 s",
        "40, 60",
        "yes",
        "the key [b] is missing",
    ):
        assert part in line
    assert "1 patch" in text


def test_a_narrow_terminal_has_the_reason_below() -> None:
    """Number, route, seconds, tokens and correctness stay on the line, nothing of them cut off."""
    console = Console(file=io.StringIO(), width=80)
    one = exchange(7, {}, {"seconds": 0.25, "completion_tokens": 30})
    console.print(header())
    console.print(row(one))
    heads, line, why = (
        text.rstrip()
        for text in console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    )
    assert heads.endswith("tokens, saved correct")
    assert line.startswith("7 ")
    assert all(part in line for part in ("patch", "1.00 -> 0.25 s", "40, 60", "yes"))
    assert why == "   the key [b] is missing"
