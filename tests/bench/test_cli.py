"""The commands, run as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stepcache.testing.endpoint import ScriptedEndpoint

pytest.importorskip("fastjsonschema")
pytest.importorskip("matplotlib")


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``stepcache bench`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "stepcache.cli", "bench", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "paper",
            ("--out", "--seeds", "--splits", "--modes", "--quick", "--wordings", "--base-url"),
        ),
        ("ablate", ("--without", "no-adapt", "--quick", "--seeds")),
        ("load", ("--users", "--zipf", "--shape", "--drain", "--parallel")),
        ("report", ("--out", "FILE")),
    ],
)
def test_help_names_every_option(command: str, words: tuple[str, ...]) -> None:
    """Every command says what it does and lists its options."""
    done = bench(command, "--help")
    assert done.returncode == 0
    assert all(word in done.stdout for word in words)


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (("paper", "--base-url", "http://127.0.0.1:9/v1"), 2, "go together"),
        (("paper", "--prefill"), 2, "--base-url"),
        (("paper", "--seeds", "x"), 2, "whole numbers"),
        (("paper", "--model", "other"), 2, "smollm2"),
        (("paper", "--modes", "stepcach"), 1, "stepcache-paper"),
        (("paper", "--splits", "papre"), 1, "extended"),
        (("paper", "--wordings", "/nonexistent.json"), 1, "cannot be read"),
        (("ablate", "--without", "everything"), 1, "stepcache-no-adapt"),
        (("load", "--modes", "gptcache"), 2, "bare, stepcache"),
        (("report", "/nonexistent.json"), 1, "cannot be read"),
    ],
)
def test_mistakes_end_in_one_line(
    arguments: tuple[str, ...], status: int, word: str, tmp_path: Path
) -> None:
    """A wrong argument is a sentence that says what would be right, and never a traceback."""
    out = () if arguments[0] == "report" else ("--out", str(tmp_path))
    done = bench(*arguments, *out)
    assert done.returncode == status
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_quick_run_from_the_command_line(
    scripted: Callable[..., ScriptedEndpoint], tmp_path: Path
) -> None:
    """Paper and report by command, over HTTP: status 0, every file written, the same tables."""
    endpoint = scripted(("paper",))
    out = str(tmp_path / "out")
    line = (
        *("paper", "--quick", "--splits", "paper", "--modes", "bare,stepcache", "--out", out),
        *("--base-url", endpoint.url, "--model-name", "scripted", "--prefill"),
    )
    done = bench(*line)
    assert done.returncode == 0, done.stderr
    assert "wrong serves 0" in done.stdout
    told = bench(*line, "--json")
    assert {"bare", "stepcache"} <= json.loads(told.stdout)["paper"].keys(), told.stderr
    assert "wrong serves 0" in told.stderr
    record = tmp_path / "out" / "results.json"
    assert json.loads(record.read_text())["run"]["splits"] == ["paper"]
    again = bench("report", str(record), "--out", str(tmp_path / "again"), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == json.loads(told.stdout)
    for name in ("report.md", "paper-latency.png"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
