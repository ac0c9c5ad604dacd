"""What is read from a trace log."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepcache.report import page, read_source

ROUTES = ["miss", "exact", "adapt", "miss", "patch", "skip", "miss", "error"]


def test_a_row_for_each_request(log: Path) -> None:
    """Routes, origins, times and tokens are there with texts and without."""
    rows = read_source(str(log)).rows
    assert [row.route for row in rows] == ROUTES
    adapted, patched, skipped = rows[2], rows[4], rows[5]
    assert {step.origin for step in adapted.steps} == {"adapted", "reused"}
    assert {step.status for step in adapted.steps} == {"pass"}
    assert [step.origin for step in patched.steps] == ["reused", "patched"]
    assert adapted.avoided is not None
    assert adapted.avoided.tokens > 0
    assert skipped.group == "different name"
    assert rows[7].fault == "KeyError"
    assert all(row.proof is not None and row.seconds for row in rows[:7])


def test_the_earlier_answer_is_the_candidate_that_was_taken(log: Path) -> None:
    """It comes first, with the number of the row that shows it."""
    rows = read_source(str(log)).rows
    assert rows[2].before[0].row == 1
    assert rows[2].before[0].action == "adapt"
    assert rows[4].before[0].row == 4


def test_texts_are_shown_where_they_were_kept(log: Path) -> None:
    """A log without texts makes a page without; --hide-text takes them out of one that has them."""
    report = read_source(str(log))
    kept = report.rows[0].prompt is not None
    assert report.texts is kept
    for shown, there in ((report, kept), (read_source(str(log), texts=False), False)):
        html = page(shown)
        assert ("Italy" in html) is there
        assert ("2x + 3" in html) is there
        assert ("hacked" in html) is there


def test_damaged_lines_are_told(log: Path, tmp_path: Path) -> None:
    """A torn line costs itself only."""
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(log.read_bytes() + b'{"v": 1, "ro\n')
    report = read_source(str(torn))
    assert len(report.rows) == len(ROUTES)
    assert any("1 damaged line" in remark for remark in report.remarks)


@pytest.mark.parametrize("limit", [1, 3])
def test_the_newest_are_kept(log: Path, limit: int) -> None:
    """Numbers stay those of the whole log."""
    report = read_source(str(log), limit=limit)
    assert [row.number for row in report.rows] == list(range(9 - limit, 9))
    assert report.left_out == 8 - limit
