"""``stepcache eval``: what it prints, writes and ends with."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from stepcache.cli._app import app

RUNNER = CliRunner()
PAIRS = [
    {
        "id": "p1",
        "a": "What's a fjord?",
        "b": "what is a fjord",
        "label": "same_answer",
        "category": "wording",
    },
    {
        "id": "p2",
        "a": "Name 3 bays.",
        "b": "Name 4 bays.",
        "label": "different_answer",
        "category": "number",
    },
]
MISLABELLED = {"id": "p3", "a": "What's a moor?", "b": "what is a moor", "same_answer": False}
CARELESS = """
from langchain_core.caches import InMemoryCache

class Careless(InMemoryCache):
    '''Takes the first letters for the whole request.'''

    def lookup(self, prompt, llm_string):
        return super().lookup(prompt[:4], llm_string)

    def update(self, prompt, llm_string, return_val):
        super().update(prompt[:4], llm_string, return_val)

number = 7
"""


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(p) + "\n" for p in PAIRS), encoding="utf-8")
    return path


@pytest.fixture
def mislabelled(tmp_path: Path) -> Path:
    path = tmp_path / "mislabelled.jsonl"
    path.write_text(json.dumps(MISLABELLED) + "\n", encoding="utf-8")
    return path


def test_a_clean_run_ends_with_0(pairs: Path) -> None:
    """The table tells served and wrong by category, and no wrong serve is success."""
    result = RUNNER.invoke(app, ["eval", str(pairs)])
    assert result.exit_code == 0, result.output
    told = result.stdout.splitlines()
    assert any(line.split()[:4] == ["wording", "2", "2", "100.0%"] for line in told)
    assert any(line.split()[:4] == ["number", "2", "0", "0.0%"] for line in told)
    assert "wrong serves: 0" in result.stdout


def test_wrong_serves_end_with_1(mislabelled: Path) -> None:
    """More wrong serves than accepted is failure, and the pair is named."""
    result = RUNNER.invoke(app, ["eval", str(mislabelled)])
    assert result.exit_code == 1
    assert "p3 a->b" in result.stdout
    assert RUNNER.invoke(app, ["eval", str(mislabelled), "--max-wrong", "1"]).exit_code == 1
    assert RUNNER.invoke(app, ["eval", str(mislabelled), "--max-wrong", "2"]).exit_code == 0


def test_a_disputed_pair_is_left_out_and_named(pairs: Path, mislabelled: Path) -> None:
    """Several sources are read, and what is left out of them is said."""
    result = RUNNER.invoke(app, ["eval", str(pairs), str(mislabelled), "--skip", "p3"])
    assert result.exit_code == 0, result.output
    assert "left out: p3" in result.stdout
    assert str(pairs) in result.stdout
    assert str(mislabelled) in result.stdout


def test_the_record_is_written(pairs: Path, mislabelled: Path, tmp_path: Path) -> None:
    """--json keeps the figures, the wrong serves and the limit, whatever the verdict."""
    file = tmp_path / "record.json"
    result = RUNNER.invoke(app, ["eval", str(pairs), str(mislabelled), "--json", str(file)])
    assert result.exit_code == 1
    record = json.loads(file.read_text(encoding="utf-8"))
    assert (record["wrong"], record["max_wrong"], record["left_out"]) == (2, 0, [])
    good, bad = record["sources"]
    assert good["totals"][0] == {
        "category": "all",
        "label": "same_answer",
        "pairs": 1,
        "look_ups": 2,
        "served": 2,
        "derived": 0,
        "not_kept": 0,
        "share": 1.0,
        "interval": [pytest.approx(0.206549), 1.0],
    }
    assert [w["id"] for w in bad["wrong_serves"]] == ["p3", "p3"]


def test_another_cache_is_evaluated(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A LangChain cache beside the caller is found by name, and its wrong serves fail the run."""
    pytest.importorskip("langchain_core")
    (tmp_path / "careless_cache.py").write_text(CARELESS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for extra in ([], ["--plain"]):
        result = RUNNER.invoke(
            app, ["eval", str(pairs), "--cache", "careless_cache:Careless", *extra]
        )
        assert result.exit_code == 1, result.output
        assert "Careless: 4 look-ups" in result.stdout
        assert "p2 b->a (number)" in result.stdout
    result = RUNNER.invoke(app, ["eval", str(pairs), "--cache", "careless_cache:number"])
    assert result.exit_code == 2
    assert "careless_cache:number" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.jsonl"],
        ["fow:answers"],
        ["{pairs}", "--cache", "nowhere"],
        ["{pairs}", "--cache", "nowhere:cache"],
        ["{pairs}", "--max-wrong", "-1"],
        [],
    ],
)
def test_what_cannot_be_read_ends_with_2(pairs: Path, arguments: list[str]) -> None:
    """A fault of the set-up is no verdict on the cache."""
    result = RUNNER.invoke(app, ["eval", *(a.format(pairs=pairs) for a in arguments)])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
