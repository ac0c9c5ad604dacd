"""``stepcache report``: what it writes, says and ends with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from stepcache.cli._app import app

RUNNER = CliRunner()


def test_it_writes_the_page_and_says_so(store: Path, tmp_path: Path) -> None:
    """One line a person reads; texts of a store only when asked for."""
    out = tmp_path / "page.html"
    done = RUNNER.invoke(app, ["report", str(store), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "6 answers of a store" in done.output
    assert "plain text" not in done.output
    assert "Italy" not in out.read_text(encoding="utf-8")
    done = RUNNER.invoke(app, ["report", str(store), "--out", str(out), "--show-text"])
    assert "plain text" in done.output
    assert "Italy" in out.read_text(encoding="utf-8")


def test_the_store_may_come_from_the_environment(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for the commands that look into a store."""
    monkeypatch.setenv("STEPCACHE_STORE", str(store))
    done = RUNNER.invoke(app, ["report", "--out", str(tmp_path / "page.html")])
    assert "6 answers of a store" in done.output


def test_it_tells_programs_what_it_wrote(told: Path, tmp_path: Path) -> None:
    """As one JSON object."""
    out = tmp_path / "page.html"
    done = RUNNER.invoke(app, ["report", str(told), "-o", str(out), "--json", "--limit", "5"])
    assert json.loads(done.output) == {
        "page": str(out),
        "bytes": out.stat().st_size,
        "source": "trace log",
        "rows": 5,
        "left_out": 3,
        "texts": True,
    }


def test_a_source_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    """Status 2 and one line that says what can be named."""
    done = RUNNER.invoke(app, ["report", str(tmp_path / "nothing.db")])
    assert done.exit_code == 2
    assert "there is no file" in done.output
    assert "Traceback" not in done.output


def test_a_page_that_cannot_be_written_is_told(store: Path, tmp_path: Path) -> None:
    """Status 1, and the reason."""
    done = RUNNER.invoke(app, ["report", str(store), "--out", str(tmp_path / "no" / "page.html")])
    assert done.exit_code == 1
    assert "cannot be written" in done.output
