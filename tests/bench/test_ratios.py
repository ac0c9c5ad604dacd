"""The cache's own cost beside the least it could be, with bounds that a busy machine can keep."""

import json

import pytest
from typer.testing import CliRunner

from stepcache.bench import _scale
from stepcache.bench._hotpath import hotpath
from stepcache.bench._scale import Prompts, scale, scale_table
from stepcache.bench._timing import Pair, compare, table
from stepcache.cli._app import app

# Several times what is measured on a quiet machine: these catch a path that embeds, parses, copies
# or scans where it did not, and no noise.
GENEROUS = {
    "exact-20": 40,
    "exact-400": 20,
    "langchain": 8,
    "canonical": 40,
    "exact-sqlite": 60,
    "put-sqlite": 30,
    "namespaces": 10,
}


@pytest.mark.parametrize("name", sorted(GENEROUS))
def test_a_path_keeps_within_a_multiple_of_its_floor(name):
    """The ratio of the quiet tenths in one process stays below a generous bound."""
    ((result, _),) = hotpath((name,), entries=100)
    assert result.path_p10 / result.floor_p10 < GENEROUS[name], table([result])


def test_what_embeds_stays_within_milliseconds():
    """Reuse by similarity and misses cost milliseconds, not seconds."""
    for result, _ in hotpath(("reuse", "miss"), entries=500):
        assert result.path_p10 < 100_000, table([result])


def test_floor_and_path_take_turns():
    """Each round does both, the warm-up is not counted, and the figures follow from the times."""
    turns = []
    pair = Pair(
        name="path",
        floor_name="floor",
        floor=lambda turn: turns.append(("floor", turn)),
        path=lambda turn: turns.append(("path", turn)) or sum(range(20_000)),
        unit="ratio",
        limit=0.0001,
        rounds=20,
    )
    result = compare(pair)
    assert turns == [(who, turn) for turn in range(22) for who in ("floor", "path")]
    assert result.rounds == 20
    assert result.path_p50 > 10 * result.floor_p50
    assert result.ratio == pytest.approx(result.path_p50 / result.floor_p50, rel=0.5)
    assert not result.met
    assert "| no |" in table([result])


def test_prompts_are_varied_and_repeatable(tmp_path):
    """The same folder and seed give the same prompts, of which few are alike."""
    lines = [{"prompt": "Compare seven green apples with 12 pears"}, {"a": "Name rivers", "b": "x"}]
    (tmp_path / "some.jsonl").write_text("\n".join(map(json.dumps, lines)))
    first, second = Prompts(tmp_path), Prompts(tmp_path)
    texts = [first.next() for _ in range(200)]
    assert texts == [second.next() for _ in range(200)]
    assert len(set(texts)) > 100
    with pytest.raises(ValueError, match="no prompts"):
        Prompts(tmp_path / "none")


def test_scale_measures_an_index_and_a_file(monkeypatch):
    """A row holds recall, memory and the spread of every operation."""
    monkeypatch.setattr(_scale, "_WINDOWS", 4)
    monkeypatch.setattr(_scale, "_WINDOW_SECONDS", 0.2)
    (row,) = scale([400], None)
    assert row["entries"] == 400
    assert row["exact"] is True
    assert row["recall_on_hits"] == 1.0
    assert row["search_hit_p50_us"] <= row["search_hit_p99_us"]
    assert row["sqlite_put_us"] > 0
    assert row["sqlite_recall_on_hits"] == 1.0
    for name in ("put_and_evict", "hit_alone", "hit_beside_puts"):
        assert row[f"sqlite_{name}_p50_us"] > 0
    assert "| recall on hits | 1.0 |" in scale_table([row])


def test_the_commands_write_what_they_measured(tmp_path):
    """Figures go to the files named, with the machine they were measured on."""
    figures, text = tmp_path / "deep" / "hotpath.json", tmp_path / "hotpath.md"
    line = ["bench", "hotpath", "--paths", "exact-20", "--entries", "50"]
    line += ["--json", str(figures), "--markdown", str(text)]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    record = json.loads(figures.read_text())
    assert record["machine"]["cores"]
    assert [row["name"] for row in record["rows"]] == ["exact hit, engine, memory, 20 tokens"]
    assert "exact hit, engine" in text.read_text()
    assert CliRunner().invoke(app, ["bench", "hotpath", "--paths", "warp"]).exit_code == 2
    assert CliRunner().invoke(app, ["bench", "scale", "--sizes", "few"]).exit_code == 2
