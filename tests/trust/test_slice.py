"""A short slice of every part of ``make trust``; the long run writes ``docs/reliability.md``."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from random import Random

import pytest

from stepcache.embedders import LexicalEmbedder
from stepcache.stores import MemoryStore, SQLiteStore
from trust import forgery
from trust._fuzz import Target, attack, input_of
from trust._page import write_page
from trust._watch import LIMIT, seconds_of
from trust.collisions import collide, neighbours
from trust.faults import run_matrix
from trust.forgery import SQLiteRows, forge
from trust.limits import press
from trust.targets import ALL
from trust.tenants import cross

ROOT = Path(__file__).resolve().parents[2]
INPUTS = 150
HEAVY = {"schema-hostile": 30, "schema-tame": 60, "serving": 60, "equation-answers": 60}


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.name)
def test_hostile_input_neither_breaks_nor_convinces(target: Target) -> None:
    """No crash and nothing wrong; times are for the long run, on a machine of its own."""
    tally = attack(target, seed=2, count=HEAVY.get(target.name, INPUTS))
    assert (tally.crashes, tally.wrong) == (0, 0), "\n".join(tally.found)


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.name)
def test_inputs_follow_from_the_seed(target: Target) -> None:
    """The same input for the same number, so that a finding can be made again."""
    assert repr(input_of(target, 1, 7))[:200] == repr(input_of(target, 1, 7))[:200]


def test_the_watch_counts_and_gives_up() -> None:
    """A call that spins is given up on, and is longer than any input may be."""

    def spin() -> None:
        while True:
            pass

    assert seconds_of(spin) > LIMIT


def test_a_fuzzed_fault_is_counted() -> None:
    """The net has no hole: a target that raises, lies or dawdles is told of."""

    def check(number: int) -> str | None:
        if number == 0:
            raise ValueError("broken")
        if number == 1:
            return "a lie"
        return sum(range(20_000_000)) and None if number == 2 else None  # type: ignore[func-returns-value]

    target = Target(
        name="broken", what="", inputs=60, make=lambda dice: dice.randrange(4), check=check
    )
    tally = attack(target, seed=1, count=12)
    assert tally.crashes
    assert tally.wrong
    assert tally.hangs
    assert len(tally.found) == 5


def test_the_largest_inputs_are_bounded() -> None:
    """Every parser at the policy's limits, for a few shapes."""
    tally = press(quick=True)
    assert tally.crashes == 0, tally.found
    assert tally.peak_bytes < 400 * 2**20


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_faults_of_ports_change_no_answer(kind: str, tmp_path: Path) -> None:
    """A sample of the cells; the long run tries all of them."""
    store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "a.db")
    matrix = run_matrix(kind, store, share=0.01, seed=2)
    assert matrix.violations == 0, "\n".join(matrix.found)
    assert matrix.trials > 100
    assert matrix.exchanges > 900
    store.close()


def test_forged_rows_are_not_served(tmp_path: Path) -> None:
    """A sample of each kind of forgery."""
    rows = SQLiteRows(tmp_path / "a.db")
    tally = forge(rows, trials=120, seed=2)
    rows.close()
    assert (tally.served, tally.errors) == (0, 0), "\n".join(tally.found)
    assert tally.lost > 60
    assert tally.regions == 45  # of eight trials three, and no byte twice before all were changed
    assert set(tally.kinds) >= {"a bit of the record", "another row's record"}


def test_a_forgery_that_got_through_would_be_seen(tmp_path: Path) -> None:
    """A row re-made with the key itself is served, and told of as such."""
    rows = SQLiteRows(tmp_path / "a.db")
    entries, _ = forgery._filled(rows, Random(1))
    tally = forgery.Forgeries(store="sqlite")
    first, second = entries[0], entries[4]
    assert first.scope == second.scope
    rows.store.put(first, forgery._vector(0), forgery._FINGERPRINT)
    forgery._asked(tally, rows.store, [*entries[1:4], second], 3, "told")
    assert tally.served == 1
    rows.close()


def test_no_tenant_is_crossed() -> None:
    """A sample of the tries."""
    tally = cross(MemoryStore(), tries=600, seed=2)
    assert tally.crossed == 0, "\n".join(tally.found)
    assert tally.own > 50


def test_neighbours_are_not_confused() -> None:
    """A sample of the near-duplicates, under the lexical embedder."""
    tally = collide("lexical", LexicalEmbedder(), count=90, seed=2)
    assert tally.wrong == 0, "\n".join(tally.found)
    assert tally.served > 5
    assert len({made.kind for made in neighbours(2, 300)}) > 25


def test_the_page_says_what_the_figures_say(tmp_path: Path) -> None:
    """The page of the documentation is the one its figures make, violations included."""
    figures = ROOT / "docs" / "reliability.json"
    known = json.loads(figures.read_text())
    write_page(tmp_path / "page.md", known)
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs" / "reliability.md").read_text()
    found = [told for part in known.values() for told in part["found"]]
    assert sum(part["faults"] for part in known.values()) == len(found)


def test_raw_rows_are_what_the_store_reads(tmp_path: Path) -> None:
    """The forger's hand reaches the very file."""
    rows = SQLiteRows(tmp_path / "a.db")
    forgery._filled(rows, Random(1))
    with sqlite3.connect(tmp_path / "a.db") as raw:
        assert raw.execute("SELECT count(*) FROM entries").fetchone()[0] == len(rows.all())
    raw.close()
    rows.close()
