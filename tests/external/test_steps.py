"""Segmentation measured on answers of people and models, in their original formatting."""

from collections.abc import Callable
from typing import Any

from stepcache._stitch import segment

External = Callable[[str], list[dict[str, Any]]]


def visible(text: str, at: int) -> int:
    """The position of the first visible character from ``at`` on."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def starts(text: str) -> list[int]:
    """Where the steps of a text visibly start."""
    found, at = [], 0
    for step in segment(text):
        found.append(visible(text, at))
        at += len(step.text)
    return found


def end_of_marks(record: dict[str, Any], wanted: list[int]) -> int:
    """Where the marked steps end and the conclusion, which has no marks, begins."""
    text: str = record["text"]
    conclusion = record.get("conclusion_start")
    if conclusion is None and record["step_marker"] == "one_step_a_line":
        conclusion = text.rstrip().rfind("\n") + 1
        if conclusion in wanted:
            conclusion = None
    return len(text) if conclusion is None else conclusion


def test_law_3_every_external_answer_is_cut_without_loss(external: External) -> None:
    """Every record's steps join to its text."""
    for record in external("steps"):
        text = record["text"]
        assert "".join(step.text for step in segment(text)) == text, record["id"]


def test_marked_steps_are_found_and_few_others(external: External) -> None:
    """At least 95 % of the marked starts are found, with at most 5 % others among them."""
    marks = found = cut = spurious = 0
    for record in external("steps"):
        if not record.get("step_starts"):
            continue
        text = record["text"]
        wanted = [visible(text, at) for at in record["step_starts"]]
        end = end_of_marks(record, wanted)
        ours = [at for at in starts(text) if wanted[0] <= at < end]
        marks += len(wanted)
        found += len(set(wanted) & set(ours))
        cut += len(ours)
        spurious += len(set(ours) - set(wanted))
    assert marks > 0
    print(f"{found}/{marks} marked starts found, {spurious}/{cut} spurious")
    assert found / marks >= 0.95
    assert spurious / cut <= 0.05
