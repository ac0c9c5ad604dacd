"""What is read from a store and a benchmark, and what is left out where texts are."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from stepcache._types import Entry
from stepcache.report import Report, Row, Shown, SourceError, page, read_source
from stepcache.report._rows import group_of
from stepcache.stores import SQLiteStore


def test_a_store_is_read_entry_by_entry(store: Path) -> None:
    """Oldest first, with the steps as they were kept, by path and by URL."""
    for source in (str(store), f"sqlite:///{store}"):
        report = read_source(source, texts=True)
        assert report.kind == "store"
        assert report.rows[0].prompt == "Solve 2x + 3 = 13 for x."
        assert len(report.rows) == 6  # the repeat is no entry of its own
        assert report.rows[0].answer == "2x + 3 = 13\n\n2x = 10\n\nx = 5"
        assert [row.task for row in report.rows][:3] == ["linear-equation"] * 2 + ["json"]
        assert all(row.time and row.avoided for row in report.rows)


def test_a_store_is_shown_without_texts_unless_they_are_asked_for(store: Path) -> None:
    """No word of a prompt or an answer is in the page; their lengths are."""
    report = read_source(str(store))
    assert not report.texts
    shown = page(report)
    for word in ("Rome", "Italy", "2x + 3", "Norway", "hacked"):
        assert word not in shown
    assert report.rows[0].prompt_chars == len("Solve 2x + 3 = 13 for x.")
    assert report.rows[0].steps[0].chars > 5
    assert "Italy" in page(read_source(str(store), texts=True))


def test_reports_of_bad_answers_are_counted_and_not_shown(tmp_path: Path) -> None:
    """The engine's own notes are no answers."""
    from stepcache import Message, Reply, Request, StepCacheEngine

    path = tmp_path / "answers.db"
    engine = StepCacheEngine(store=path)
    engine.admit(Request(messages=(Message(role="user", text="Name a bay."),)), Reply(text="Fundy"))
    kept = read_source(str(path)).rows
    engine.report_bad(str(kept[0].entry))
    engine.close()
    report = read_source(str(path))
    assert report.rows == ()
    assert ("answers reported as bad", "1") in report.facts


def test_a_benchmark_tells_routes_faults_and_what_an_answer_was_made_from(record: Path) -> None:
    """The journal beside the record gives the traces, and by them the earlier answer."""
    for source in (record, record.parent):
        report = read_source(str(source))
        assert report.kind == "benchmark"
        rows = [row for row in report.rows if row.lane == "stepcache"]
        assert [row.route for row in rows] == ["miss", "exact", "adapt", "miss", "patch", "skip"]
        adapted, patched = rows[2], rows[4]
        assert adapted.before[0].answer == rows[0].answer
        assert {step.origin for step in adapted.steps} == {"adapted", "reused"}
        assert [step.origin for step in patched.steps] == ["reused", "patched"]
        assert patched.trace
        assert adapted.avoided is not None
        assert (adapted.avoided.prompt_tokens, adapted.avoided.completion_tokens) == (9, 8)
        assert ("requests", "6 paper") in report.facts


def test_a_record_without_its_journal_is_read_all_the_same(record: Path, tmp_path: Path) -> None:
    """Then served answers have no trace, and nobody says which answer they came from."""
    alone = tmp_path / "results.json"
    alone.write_bytes(record.read_bytes())
    rows = [row for row in read_source(str(alone)).rows if row.lane == "stepcache"]
    assert rows[2].trace == ()
    assert rows[2].before == ()
    assert rows[4].trace


def test_the_newest_rows_are_kept(store: Path) -> None:
    """The page says how many it left out."""
    report = read_source(str(store), limit=2)
    assert [row.number for row in report.rows] == [5, 6]
    assert report.left_out == 4


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"hello", "none of"),
        (b'{"format": 9, "items": []}', "is no record"),
        (b'{"format": 1, "items": [{}], "exchanges": []}', "damaged"),
        (b'{"run": {}}\n', "results.json"),
        (b"\xff\xfe\x00", "none of"),
        (b"SQLite format 3\x00 and no more", "SQLite|database|store"),
    ],
)
def test_what_is_no_source_is_refused_with_the_reason(
    content: bytes, why: str, tmp_path: Path
) -> None:
    """The message says what can be named instead."""
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=why):
        read_source(str(path))


@pytest.mark.parametrize("source", ["no-such-file", "sqlite:///no-such.db"])
def test_a_missing_source_is_not_made(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a store that is not there makes no empty one."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match="there is no file"):
        read_source(source)
    assert list(tmp_path.iterdir()) == []


def test_reading_a_store_changes_nothing_in_it(store: Path) -> None:
    """The same entries, in the same order, with the same times."""

    def entries() -> list[Entry]:
        with closing(SQLiteStore(store)) as opened:
            return list(opened.entries())

    before = entries()
    read_source(str(store), texts=True)
    assert entries() == before


@pytest.mark.parametrize(
    ("reason", "group"),
    [
        ("word 'fruit plum' -> 'sport of curling'", "different word"),
        ("key-added '' -> 'a, b', name 'x' -> 'y'", "different key added"),
        ("nothing stored answers it", "nothing stored answers it"),
        (
            "step 2 of 2: required keys are missing: language",
            "step … of …: required keys are missing",
        ),
        ("", "no reason told"),
    ],
)
def test_reasons_are_grouped_without_the_words_of_a_request(reason: str, group: str) -> None:
    """Otherwise each would be a group of its own."""
    assert group_of(reason) == group


def test_data_cannot_end_the_block_it_stands_in(store: Path, hostile: str) -> None:
    """No tag, comment or entity begins inside the data, and JSON reads every sign back."""
    shown = page(read_source(str(store), texts=True))
    block = shown.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert not set("<>&") & set(block)
    assert block.isascii()
    assert hostile in [row.get("q") for row in json.loads(block)["rows"]]


def test_lone_surrogates_and_nuls_make_a_page() -> None:
    """What a prompt can hold, a page can."""
    row = Row(number=1, prompt="\ud800 \x00", steps=(Shown(text="\udfff", chars=1),))
    report = Report(kind="store", source="x", rows=(row,))
    assert json.loads(json.dumps(row.as_dict()))["q"] == "\ud800 \x00"
    assert "\\ud800 \\u0000" in page(report)
