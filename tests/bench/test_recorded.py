"""A small run that was really made, kept as JSON: figures, tables and pictures come out of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from stepcache.bench._figures import summary
from stepcache.bench._main import report
from stepcache.bench._record import load_record, rows_of
from stepcache.bench._report import TARGETS, markdown, targets

pytest.importorskip("fastjsonschema")
pytest.importorskip("matplotlib")

RECORDED = Path(__file__).with_name("data") / "recorded.json"


def test_figures_come_out_of_the_record() -> None:
    """Judging the recorded answers again gives the figures that were written down then."""
    record = load_record(RECORDED)
    again = summary(rows_of(record))
    assert again == record["summary"]
    assert set(again) == {"paper", "extended"}
    for modes in again.values():
        assert set(modes) == {"bare", "gptcache", "stepcache"}
        assert sum(one["overall"]["requests"] for one in modes.values()) % 3 == 0
        for one in modes.values():
            whole = one["overall"]
            for part in ("by_seed", "by_family", "by_group"):
                for name in ("requests", "tokens", "calls", "wrong_serves"):
                    assert sum(f[name] for f in one[part].values()) == whole[name]


def test_wrong_serves_are_those_of_the_semantic_cache() -> None:
    """In that run GPTCache served wrong answers and StepCache none."""
    record = load_record(RECORDED)
    wrong = {
        mode: sum(modes[mode]["overall"]["wrong_serves"] for modes in record["summary"].values())
        for mode in ("bare", "gptcache", "stepcache")
    }
    assert wrong["bare"] == wrong["stepcache"] == 0
    assert wrong["gptcache"] > 0


def test_the_report_is_written_from_the_record(tmp_path: Path) -> None:
    """Every table and every picture, without a model; the targets name what was reached."""
    report(RECORDED, tmp_path, Console(file=io.StringIO()))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    for heading in (
        *("Split: paper", "Split: extended", "Against the paper's table", "What it must show"),
        *("Routes", "By seed", "By family", "Correct by perturbation"),
        *("Wrong serves by perturbation", "Faults of StepCache as shipped"),
    ):
        assert heading in text
    assert len(list(tmp_path.glob("*.png"))) == 8
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_targets_are_read_off_the_figures() -> None:
    """A target is reached when its figure is on the right side of what is wanted."""
    modes = load_record(RECORDED)["summary"]["paper"]
    told = {one["name"]: one for one in targets(modes)}
    assert set(told) == {name for name, *_ in TARGETS}
    own = modes["stepcache"]["overall"]
    assert told["wrong serves"]["reached"] is (own["wrong_serves"] == 0)
    assert told["correctness"]["got"] == own["correct"]
    mean = told["mean latency, times lower"]
    assert mean["got"] == modes["bare"]["overall"]["mean_seconds"] / own["mean_seconds"]
    assert mean["reached"] is (mean["got"] >= 20)
    assert targets({"bare": modes["bare"]}) == []


def test_ablations_stand_beside_what_is_shipped() -> None:
    """With one part off in the run, the report says how many times more that costs."""
    record = load_record(RECORDED)
    assert "What each part is worth" not in markdown(record, rows_of(record))
    other = [
        {**exchange, "mode": "stepcache-no-adapt", "seconds": 2 * exchange["seconds"]}
        for exchange in record["exchanges"]
        if exchange["mode"] == "stepcache"
    ]
    record["exchanges"] += other
    text = markdown(record, rows_of(record))
    assert "What each part is worth" in text
    assert any(
        line.startswith("| without adapting |") and "| 2.0x |" in line for line in text.splitlines()
    )
