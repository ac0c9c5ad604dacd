"""A quick run from end to end: real HTTP, real caches, a scripted model."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from rich.console import Console

from stepcache.bench._figures import summary
from stepcache.bench._log import Log, LogError
from stepcache.bench._main import BenchOptions, available, report, run
from stepcache.bench._modes import ABLATIONS, DEFAULT_MODES, MODES
from stepcache.bench._record import RecordError, load_record, rows_of
from stepcache.bench._run import order_of_modes
from stepcache.bench._workload import QUICK
from stepcache.testing.endpoint import ScriptedEndpoint

pytest.importorskip("fastjsonschema")
pytest.importorskip("matplotlib")
pytest.importorskip("langchain_core")

Open = Callable[..., ScriptedEndpoint]
Options = Callable[..., BenchOptions]
PICTURES = ("latency", "routes", "tokens", "correctness")
FAST = ("bare", "langchain", "stepcache-paper", "stepcache")


def quiet() -> Console:
    return Console(file=io.StringIO(), width=120)


def test_a_quick_run_of_every_mode(scripted: Open, options: Options, tmp_path: Path) -> None:
    """24 requests to every mode that is installed: all recorded, judged, tabled and drawn."""
    endpoint = scripted()
    rows = run(options(endpoint), quiet())
    modes, _ = available(DEFAULT_MODES)
    told = summary(rows)
    for split in ("paper", "extended"):
        assert set(told[split]) == set(modes)
    for mode in modes:
        asked = [r for r in rows if r.exchange.mode == mode and r.item.split != "warm-up"]
        assert len(asked) == QUICK
    own = [r for r in rows if r.exchange.mode == "stepcache" and r.item.split != "warm-up"]
    assert [r.item.id for r in own if r.fault] == []
    assert {"reuse", "adapt"} <= {r.exchange.route for r in own}
    bare = [r for r in rows if r.exchange.mode == "bare"]
    assert all(len(r.exchange.calls) == 1 and not r.fault for r in bare)
    out = tmp_path / "out"
    for split in told:
        for picture in PICTURES:
            assert (out / f"{split}-{picture}.png").read_bytes().startswith(b"\x89PNG")
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "Against the paper's table" in text
    assert "| wrong serves |" in text


def test_warm_up_is_shared_and_nothing_else(scripted: Open, options: Options) -> None:
    """Asked every time, the model answers base prompts once for all modes, later ones for each."""
    endpoint = scripted(("paper",))
    chosen = options(endpoint, modes=("bare", "langchain"), splits=("paper",), share_calls=False)
    rows = run(chosen, quiet())
    bases = {r.item.id for r in rows if r.item.split == "warm-up"}
    assert endpoint.calls == len(bases) + 2 * QUICK
    for row in rows:
        assert row.exchange.calls[0].prompt_tokens > 0


def test_one_call_is_made_once_and_counted_for_each_mode(
    scripted: Open, options: Options, tmp_path: Path
) -> None:
    """The same call for one request reaches the model once; its time and tokens count twice."""
    endpoint = scripted(("paper",))
    rows = run(options(endpoint, modes=("bare", "langchain"), splits=("paper",)), quiet())
    bases = {r.item.id for r in rows if r.item.split == "warm-up"}
    assert endpoint.calls == len(bases) + QUICK
    seconds: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.item.split != "warm-up":
            assert len(row.exchange.calls) == 1
            seconds.setdefault(row.item.id, {})[row.exchange.mode] = row.exchange.seconds
    for one in seconds.values():
        # What LangChain adds of its own may be anything, but the model's time is in it.
        assert one["langchain"] > 0.5 * one["bare"] > 0
    assert "makes it and the time it took is counted" in (tmp_path / "out/report.md").read_text()


def test_seeds_side_by_side_answer_as_one_after_another(
    scripted: Open, options: Options, tmp_path: Path
) -> None:
    """Seeds played at the same time give the same answers in the same order, and the log holds."""
    endpoint = ScriptedEndpoint(lambda request: "x = 5")
    with endpoint:
        chosen = {"modes": ("bare", "stepcache"), "splits": ("paper",), "quick": False}
        one = options(endpoint, seeds=(42, 43), out=tmp_path / "one", **chosen)
        two = options(endpoint, seeds=(42, 43), out=tmp_path / "two", side_by_side=2, **chosen)
        told = [
            [
                (r.item.id, r.exchange.mode, r.exchange.route, r.exchange.text)
                for r in run(o, quiet())
            ]
            for o in (one, two)
        ]
        assert told[0] == told[1]
        calls = endpoint.calls
        run(two, quiet())
        assert endpoint.calls == calls


def test_a_run_goes_on_where_it_stopped(scripted: Open, options: Options, tmp_path: Path) -> None:
    """With half a log, a line cut short, and everything deleted but the log, the rest is asked."""
    endpoint = scripted()
    whole = options(endpoint, modes=FAST)
    first = run(whole, quiet())
    calls = endpoint.calls
    log = whole.out / "exchanges.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    half = len(lines) // 2
    resumed = options(endpoint, modes=FAST, out=tmp_path / "again")
    resumed.out.mkdir()
    kept = "".join(lines[:half]) + lines[half][:20]
    (resumed.out / "exchanges.jsonl").write_text(kept, encoding="utf-8")
    second = run(resumed, quiet())
    assert 0 < endpoint.calls - calls < calls
    assert [(r.item.id, r.exchange.mode) for r in first] == [
        (r.item.id, r.exchange.mode) for r in second
    ]
    for a, b in zip(first, second):
        assert (a.exchange.route, a.exchange.text) == (b.exchange.route, b.exchange.text)
    calls = endpoint.calls
    run(resumed, quiet())
    assert endpoint.calls == calls


def test_a_log_of_another_run_is_refused(scripted: Open, options: Options) -> None:
    """Other seeds, modes or wordings in the same folder are an error, not a mixture."""
    endpoint = scripted(("paper",))
    run(options(endpoint, modes=("bare",), splits=("paper",)), quiet())
    with pytest.raises(LogError, match="another modes"):
        run(options(endpoint, modes=("bare", "langchain"), splits=("paper",)), quiet())


def test_a_log_that_the_code_no_longer_repeats_is_refused(scripted: Open, options: Options) -> None:
    """A recorded answer that the cache would not give today stops the run with the reason."""
    endpoint = scripted(("paper",))
    chosen = options(endpoint, modes=("stepcache",), splits=("paper",))
    run(chosen, quiet())
    log = chosen.out / "exchanges.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if '"route": "adapt"' in line)
    changed = json.loads(lines[at])
    changed["text"] = "x = 77"
    lines[at] = json.dumps(changed)
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(LogError, match="otherwise than the log says"):
        run(chosen, quiet())


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    """A line that is no exchange is an error with its number."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"run": {}}\n{"mode": 1}\n', encoding="utf-8")
    with pytest.raises(LogError, match="line 2"), Log(path, {}):
        pass


def test_the_report_is_made_again_from_the_record(
    scripted: Open, options: Options, tmp_path: Path
) -> None:
    """Tables come out letter by letter from the JSON alone, in another folder, without a model."""
    chosen = options(scripted(), modes=FAST)
    rows = run(chosen, quiet())
    record = tmp_path / "elsewhere" / "results.json"
    record.parent.mkdir()
    shutil.copy(chosen.out / "results.json", record)
    again = report(record, record.parent, quiet())
    assert [r.fault for r in again] == [r.fault for r in rows]
    name = "report.md"
    assert (record.parent / name).read_text() == (chosen.out / name).read_text()
    data = load_record(record)
    assert summary(rows_of(data)) == data["summary"]


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    """Other JSON, broken JSON and damaged records are one sentence each."""
    path = tmp_path / "results.json"
    for text, why in (("{}", "no record"), ("{", "cannot be read"), ("[]", "no record")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(RecordError, match=why):
            load_record(path)
    with pytest.raises(RecordError, match="damaged"):
        rows_of({"items": [{"id": "a"}], "exchanges": []})


def test_an_endpoint_that_fails_is_recorded(options: Options) -> None:
    """Errors of the model are counted for the mode that met them, and the run goes on."""
    with ScriptedEndpoint(lambda request: 500) as endpoint:
        rows = run(options(endpoint, modes=("bare", "stepcache"), splits=("paper",)), quiet())
    assert {row.fault for row in rows} == {"error"}
    assert all("500" in row.exchange.error for row in rows)


@pytest.mark.parametrize("name", [n for n in ABLATIONS if n != "stepcache-neural"])
def test_every_ablation_runs(name: str, scripted: Open, options: Options) -> None:
    """Each ablation plays the paper split without a wrong serve."""
    rows = run(options(scripted(("paper",)), modes=(name,), splits=("paper",)), quiet())
    asked = [row for row in rows if row.item.split == "paper"]
    assert len(asked) == QUICK
    assert [row.item.id for row in asked if row.fault] == []
    routes = {row.exchange.route for row in asked}
    assert ("adapt" in routes) is (name != "stepcache-no-adapt")


def test_the_semantic_cache_is_a_real_one(scripted: Open, options: Options) -> None:
    """GPTCache serves a paraphrase, and wrongly serves other constants: that is what is shown."""
    if find_spec("gptcache") is None:
        pytest.skip("gptcache is not installed")
    rows = run(options(scripted(), modes=("gptcache",)), quiet())
    hits = [row for row in rows if row.exchange.route == "hit"]
    assert hits
    assert all(not row.exchange.calls for row in hits)
    assert {"", "wrong serve"} <= {row.fault for row in hits}


def test_modes_go_first_in_turn() -> None:
    """The order of modes is rotated from seed to seed."""
    names = ("a", "b", "c")
    assert [order_of_modes(names, n)[0] for n in range(4)] == ["a", "b", "c", "a"]
    assert sorted(order_of_modes(names, 2)) == list(names)


def test_unknown_modes_are_named() -> None:
    """A misspelt mode is an error that lists the modes there are."""
    with pytest.raises(ValueError, match="stepcache-paper"):
        available(("bare", "stepcach"))
    assert set(DEFAULT_MODES) <= set(MODES)
