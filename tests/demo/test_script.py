"""The script holds what the demonstration promises to show."""

from __future__ import annotations

import re
from collections import Counter

from stepcache.demo._script import SCRIPT, EquationDemand, KeysDemand


def test_it_has_about_two_dozen_requests_of_three_families() -> None:
    """Both structured families lead; plain text is there too."""
    assert 22 <= len(SCRIPT) <= 26
    families = Counter(item.family for item in SCRIPT)
    assert families["equation"] >= 8
    assert families["json"] >= 7
    assert families["text"] >= 2


def test_every_promised_kind_occurs() -> None:
    """Each way of asking nearly the same again is played at least once."""
    kinds = " | ".join(item.kind for item in SCRIPT)
    for kind in (
        "base",
        "again",
        "paraphrase",
        "sides swapped",
        "LaTeX",
        "variable renamed",
        "constant changed",
        "key added",
        "key removed",
        "key renamed",
        "topic changed",
        "plain text",
    ):
        assert kind in kinds
    assert sum(item.stream for item in SCRIPT) >= 2


def test_again_means_again() -> None:
    """A request called the same was asked before, to the letter; any other was not."""
    seen: set[str] = set()
    for item in SCRIPT:
        assert (item.prompt in seen) is ("again" in item.kind)
        seen.add(item.prompt)


def test_demands_fit_the_prompts() -> None:
    """What the judge looks for is what the prompt asks for."""
    for item in SCRIPT:
        if isinstance(item.demand, KeysDemand):
            assert f"keys {', '.join(item.demand.keys)}." in item.prompt
        if isinstance(item.demand, EquationDemand):
            plain = item.prompt.replace("$", "")
            written = f"{item.demand.left} = {item.demand.right}".replace("*", "")
            assert written in plain
            assert re.search(rf"\b{item.demand.variable}\b", plain)
