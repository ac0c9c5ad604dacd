"""The trace log: every request a line, readable after a crash, without texts unless asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache import ConfigurationError, StepCacheEngine, UsageError
from stepcache.telemetry import PriceTable, TraceLog, TraceRecord, read_trace_log
from stepcache.telemetry._trace_parse import parse_record
from stepcache.testing import FaultyStore, ScriptedBackend

PRICES = PriceTable({"small-*": {"input": 1.0, "output": 10.0}})


def test_every_request_is_a_record(story: Any, face: Any, tmp_path: Path) -> None:
    """What the outcome told is read back, step by step and candidate by candidate."""
    log = TraceLog(tmp_path / "trace.jsonl", texts=True, price=PRICES)
    outcomes = story.play(face, log)
    records = list(read_trace_log(log.path))
    assert tuple(record.route for record in records) == story.routes
    for text, outcome, record in zip(story.texts, outcomes, records):
        assert (record.code, record.reason) == (outcome.code, outcome.reason)
        assert (record.task, record.entry) == (outcome.task, outcome.entry_id)
        assert (record.spent, record.avoided) == (outcome.spent, outcome.avoided)
        assert (record.prompt, record.answer) == (text, outcome.text)
        assert record.trace == tuple(outcome.trace.render().splitlines())
        assert [step.text for step in record.steps] == [step.text for step in outcome.steps]
        assert [step.origin for step in record.steps] == list(outcome.origins)
        assert [c.entry for c in record.candidates] == [c.entry.id for c in outcome.candidates]
        assert record.face == face.name
        assert record.served
        assert (record.timing.first is not None) == ("stream" in face.name)
        assert 0 < record.timing.proof < record.seconds
    patched = records[story.routes.index("patch")]
    assert patched.candidates[0].prompt == story.texts[5]
    assert patched.candidates[0].answer == outcomes[5].text
    assert patched.candidates[0].differences[0].new == "quokka"
    assert records[0].money == {"spent": pytest.approx(0.0002), "avoided": 0.0}
    assert records[1].money == {"spent": 0.0, "avoided": pytest.approx(0.0002)}


def test_without_texts_nothing_is_quoted(story: Any, face: Any, tmp_path: Path) -> None:
    """No word of a request, answer, difference, error or namespace is in the file."""
    log = TraceLog(tmp_path / "trace.jsonl")
    outcomes = story.play(face, log)
    story.fail(face, log)
    told = log.path.read_text("utf-8")
    assert story.secrets_in(told) == []
    assert story.secrets_in(told, ["2x", "country", "Solve"]) == []
    records = list(read_trace_log(log.path))
    assert tuple(record.route for record in records) == (*story.routes, None)
    skip = records[story.routes.index("skip")]
    assert any(not d.explained for c in skip.candidates for d in c.differences)
    assert sum(step.chars for step in records[0].steps) == len(outcomes[0].text)
    assert all(step.text is None for record in records for step in record.steps)
    assert (records[-1].error, records[-1].served) == ("Broken", False)
    assert len({record.namespace for record in records}) == 1
    assert len(records[0].namespace) == 12


def test_faults_are_told_by_port(story: Any, tmp_path: Path) -> None:
    """A store that fails makes a miss, and the record says which port it was."""
    from stepcache.stores import MemoryStore

    log = TraceLog(tmp_path / "trace.jsonl")
    engine = StepCacheEngine(
        store=FaultyStore(MemoryStore()), backend=ScriptedBackend(story.answer), listeners=[log]
    )
    engine.resolve(story.ask(story.texts[0]))
    (record,) = read_trace_log(log.path)
    assert {fault["port"] for fault in record.faults} == {"store"}


def test_a_torn_line_costs_only_itself(story: Any, tmp_path: Path) -> None:
    """A crash in mid-line: the next process ends the line, the reader passes it over."""
    path = tmp_path / "trace.jsonl"
    first = TraceLog(path)
    story.sync(first)
    first.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    story.sync(TraceLog(path))
    broken: list[tuple[Path, int, str]] = []
    records = list(read_trace_log(path, on_broken=lambda *told: broken.append(told)))
    assert len(records) == 2 * len(story.texts) - 1
    assert broken == [(path, len(story.texts), "no JSON")]


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{}",
        b'{"v": 2}',
        b'{"v": true}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"v": 1, "time": 1e999}',
        b'{"v": 1, "time": NaN}',
        b"1" * 5_000,
    ],
)
def test_what_is_no_record_is_passed_over(story: Any, tmp_path: Path, line: bytes) -> None:
    """Anybody may have written the file."""
    log = TraceLog(tmp_path / "trace.jsonl")
    story.sync(log)
    with open(log.path, "ab") as file:
        file.write(line + b"\n\n   \n")
    broken: list[int] = []
    records = read_trace_log(log.path, on_broken=lambda path, number, why: broken.append(number))
    assert len(list(records)) == len(story.texts)
    assert broken == [len(story.texts) + 1]


@pytest.fixture(scope="module")
def line(story: Any) -> bytes:
    """The record of a patched answer, with all its texts."""
    records: list[TraceRecord] = []

    class Keeping(TraceLog):
        def write(self, record: TraceRecord) -> None:
            records.append(record)

    story.sync(Keeping(os.devnull, texts=True, price=PRICES))
    return records[story.routes.index("patch")].line()


_ODD: tuple[Any, ...] = (
    *(None, True, -1, 10**400, 1.5, "", "miss", "\ud800"),
    *([], [None], [[]], [{}], {}, {"calls": None}, {"port": "store"}),
)


def test_a_changed_record_is_refused_or_read(line: bytes) -> None:
    """Any field replaced or gone: a ``ValueError``, or a record that can be written again."""
    refused = 0
    for place in ("", "timing", "spent", "money", "steps", "candidates", "faults"):
        names = json.loads(line)
        names = names[place] if place else names
        for name in list(names[0] if isinstance(names, list) and names else names):
            for odd in (*_ODD, ...):
                told = json.loads(line)
                spot = told[place] if place else told
                spot = spot[0] if isinstance(spot, list) else spot
                if odd is ...:
                    del spot[name]
                else:
                    spot[name] = odd
                try:
                    record = parse_record(json.dumps(told).encode())
                except ValueError:
                    refused += 1
                else:
                    assert parse_record(record.line()) == record
    assert refused > 300


@settings(deadline=None)
@given(text=st.text(st.characters()))
def test_any_text_survives(text: str) -> None:
    """Lone surrogates, line ends and control characters too."""
    record = TraceRecord(
        time=1.0, face="resolve", route="miss", seconds=0.5, prompt=text, answer=text[::-1]
    )
    line = record.line()
    assert line.count(b"\n") == 1
    assert parse_record(line) == record


def test_files_are_put_aside_by_size(story: Any, tmp_path: Path) -> None:
    """No file grows beyond its size, so many are kept, and the reader takes them in order."""
    path = tmp_path / "trace.jsonl"
    log = TraceLog(path, max_bytes=3_000, keep=3)
    for _ in range(6):
        story.sync(log)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["trace.jsonl", "trace.jsonl.1", "trace.jsonl.2", "trace.jsonl.3"]
    assert all(file.stat().st_size <= 3_000 for file in tmp_path.iterdir())
    times = [record.time for record in read_trace_log(path)]
    assert times == sorted(times)
    assert 0 < len(times) < 6 * len(story.texts)


def test_nothing_is_lost_while_files_are_put_aside(tmp_path: Path) -> None:
    """Eight threads, and a second log of the same path as another process would have it."""
    path = tmp_path / "trace.jsonl"
    logs = [TraceLog(path, max_bytes=4_000, keep=900) for _ in range(2)]

    def write(number: int) -> None:
        for step in range(50):
            logs[number % 2].write(
                TraceRecord(time=float(number), face="resolve", route="miss", seconds=float(step))
            )

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    found = [(record.time, record.seconds) for record in read_trace_log(path)]
    assert sorted(found) == [(float(n), float(s)) for n in range(8) for s in range(50)]
    assert len(list(tmp_path.iterdir())) > 5


_WRITER = """
import sys
from stepcache.telemetry import TraceLog, TraceRecord
log = TraceLog(sys.argv[1], max_bytes=5_000, keep=900)
for step in range(200):
    log.write(TraceRecord(time=float(sys.argv[2]), face='resolve', route='miss', seconds=float(step)))
"""


def test_processes_share_a_file(tmp_path: Path) -> None:
    """Three processes append and put aside at once; every record of each is read."""
    path = tmp_path / "trace.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), str(number)])
        for number in range(3)
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    found = [(record.time, record.seconds) for record in read_trace_log(path)]
    assert sorted(found) == [(float(n), float(s)) for n in range(3) for s in range(200)]


def test_a_file_removed_from_outside_is_begun_anew(story: Any, tmp_path: Path) -> None:
    """Whoever rotates logs with a tool of their own may."""
    path = tmp_path / "trace.jsonl"
    log = TraceLog(path)
    story.sync(log)
    path.rename(tmp_path / "mine")
    story.sync(log)
    assert len(list(read_trace_log(path))) == len(story.texts)
    assert len(list(read_trace_log(tmp_path / "mine"))) == len(story.texts)


def test_a_log_that_cannot_be_written_hurts_nobody(
    story: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its folder is gone: answers are as ever, and the trouble is said once."""
    folder = tmp_path / "logs"
    folder.mkdir()
    log = TraceLog(folder / "trace.jsonl")
    log.path.unlink()
    folder.rmdir()
    story.sync(log)
    assert caplog.messages == ["listener TraceLog raised FileNotFoundError; this is said once"]


def test_what_cannot_work_is_refused(tmp_path: Path) -> None:
    """No folder, no size, no file to read."""
    with pytest.raises(ConfigurationError, match="cannot be written"):
        TraceLog(tmp_path / "none" / "trace.jsonl")
    with pytest.raises(ConfigurationError, match="max_bytes is 0"):
        TraceLog(tmp_path / "trace.jsonl", max_bytes=0)
    with pytest.raises(ConfigurationError, match="keep is -1"):
        TraceLog(tmp_path / "trace.jsonl", keep=-1)
    with pytest.raises(UsageError, match="there is no trace log"):
        read_trace_log(tmp_path / "other.jsonl")


@pytest.mark.skipif(os.name == "nt", reason="no such modes")
def test_the_file_is_its_owners(tmp_path: Path) -> None:
    """It may hold texts."""
    log = TraceLog(tmp_path / "trace.jsonl")
    assert log.path.stat().st_mode & 0o777 == 0o600
