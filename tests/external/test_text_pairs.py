"""The text task on pairs of requests that people judged to want the same or another answer."""

from collections.abc import Callable
from typing import Any

from stepcache.tasks.text._canonical import canonical_text

External = Callable[[str], list[dict[str, Any]]]


def test_law_2_no_pair_with_another_answer_meets(external: External) -> None:
    """No two requests that want different answers have one canonical form."""
    pairs = [pair for pair in external("pairs") if pair["label"] == "different_answer"]
    assert pairs
    met = [p["id"] for p in pairs if canonical_text(p["a"]) == canonical_text(p["b"])]
    assert met == []


def test_law_2_canonical_forms_are_stable(external: External) -> None:
    """Bringing a canonical form into canonical form changes nothing."""
    for pair in external("pairs"):
        for text in (pair["a"], pair["b"]):
            canonical = canonical_text(text)
            assert canonical_text(canonical) == canonical
