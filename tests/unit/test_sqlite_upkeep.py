"""What a SQLite file keeps when it is full, and how it is looked after."""

import io
import sqlite3

import numpy as np
import pytest
from typer.testing import CliRunner

from stepcache import ConfigurationError, StoreError
from stepcache.cli._app import app
from stepcache.stores import SQLiteStore, _sqlite_file
from stepcache.stores._transfer import read_lines, write_lines
from stepcache.testing.stores import Clock, direction, make_entry

FINGERPRINT = "upkeep/1"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.db"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_store(path, clock):
    stores = []

    def opened(**options):
        stores.append(SQLiteStore(path, clock=clock, **options))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def put(store, name, size=10, **options):
    store.put(make_entry(name, message="x" * size), direction(1), FINGERPRINT, **options)


def names(store):
    return "".join(sorted(entry.exact_key.removeprefix("exact-") for entry in store.entries()))


def totals(path):
    with sqlite3.connect(path) as connection:
        kept = connection.execute("SELECT entries, bytes FROM totals").fetchone()
        true = connection.execute(
            "SELECT count(*), coalesce(sum(length(record) + coalesce(length(vector), 0)), 0) FROM entries"
        ).fetchone()
    connection.close()
    return kept, true


# --- eviction ----------------------------------------------------------------------------------


def test_the_least_recently_used_goes_first(open_store, clock):
    """What was got or found since stays, what was only put goes."""
    store = open_store(max_entries=3, evict="lru")
    for name in "abc":
        put(store, name)
        clock.advance(1)
    assert store.get("scope", "exact-a") is not None
    put(store, "d")
    assert names(store) == "acd"
    clock.advance(1)
    store.put(make_entry("e"), direction(0, 1), FINGERPRINT)
    assert names(store) == "ade"
    clock.advance(1)
    assert [m.entry.exact_key for m in store.search("scope", direction(0, 1), FINGERPRINT, limit=1)]
    store.get("scope", "exact-d")
    put(store, "f")
    assert names(store) == "def"


def test_what_is_used_least_for_its_size_goes_first(open_store, clock):
    """A large entry goes before small ones, unless it is used more for its size."""
    store = open_store(max_entries=3, evict="lfu-size")
    put(store, "l", size=20_000)
    put(store, "s")
    put(store, "t")
    for _ in range(50):
        store.get("scope", "exact-l")
        store.get("scope", "exact-s")
    put(store, "u")
    assert names(store) == "lsu"
    put(store, "v", size=50_000)
    put(store, "w")
    assert "v" not in names(store)


def test_old_fame_fades(open_store):
    """An entry used much long ago goes in the end, when others come and go."""
    store = open_store(max_entries=3, evict="lfu-size")
    put(store, "a")
    for _ in range(10):
        store.get("scope", "exact-a")
    for turn in range(60):
        put(store, f"{turn}")
    assert store.get("scope", "exact-a") is None


@pytest.mark.parametrize("evict", ["oldest", "lru", "lfu-size"])
def test_bytes_are_bounded(open_store, path, evict):
    """The bytes of records and vectors stay within the limit, and are counted right."""
    store = open_store(max_bytes=20_000, evict=evict)
    for turn in range(60):
        put(store, str(turn), size=100 * (turn % 17))
        kept, true = totals(path)
        assert kept == true
        assert true[1] <= 20_000
        assert store.get("scope", f"exact-{turn}") is not None
    assert store.count() > 5
    with pytest.raises(StoreError, match="larger than max_bytes=20000"):
        put(store, "huge", size=30_000)
    assert store.count() > 5


def test_totals_follow_every_kind_of_change(open_store, path, clock):
    """Replacing, removing, expiring and clearing keep the count and the bytes true."""
    store = open_store()
    for name in "aabbcd":
        put(store, name, size=ord(name), ttl=5 if name == "d" else None)
    store.remove("id-scope-b")
    assert totals(path)[0] == totals(path)[1]
    clock.advance(6)
    put(store, "e")
    assert totals(path)[0] == totals(path)[1]
    assert totals(path)[0][0] == 3
    store.clear()
    assert totals(path) == ((0, 0), (0, 0))


def test_a_writer_without_ranks_does_not_stop_eviction(open_store, path):
    """Rows of a process that ranks nothing are evicted too."""
    plain, ranking = open_store(), open_store(max_entries=5, evict="lru")
    for turn in range(20):
        put(plain, f"p{turn}")
    put(ranking, "r")
    assert ranking.count() == 5
    assert ranking.get("scope", "exact-r") is not None


@pytest.mark.parametrize(
    "options", [{"max_bytes": 0}, {"max_bytes": True}, {"evict": "fifo"}, {"max_entries": -1}]
)
def test_limits_that_cannot_work_are_named(path, options):
    """The error names the argument and what to use."""
    with pytest.raises(ConfigurationError, match=rf"{next(iter(options))}.*use"):
        SQLiteStore(path, **options)


# --- time and epochs ---------------------------------------------------------------------------


def test_a_sliding_store_prolongs_what_is_used(open_store, clock):
    """Each use gives the whole life back, by key and by search; without uses the entry expires."""
    store = open_store(sliding=True)
    put(store, "a", ttl=10)
    put(store, "b", ttl=10)
    for _ in range(4):
        clock.advance(8)
        assert store.get("scope", "exact-a") is not None
    assert store.get("scope", "exact-b") is None
    clock.advance(9)
    (match,) = store.search("scope", direction(1), FINGERPRINT, limit=1)
    assert match.entry.expires == clock.now + 10
    clock.advance(9)
    assert open_store().get("scope", "exact-a").expires == clock.now + 1
    clock.advance(2)
    assert store.get("scope", "exact-a") is None
    assert store.unreadable == 0


def test_invalidating_ends_everything_at_once(open_store, path):
    """Nothing from before is served, counted or listed, by any store of the file; new ones are."""
    store, other = open_store(), open_store()
    for turn in range(600):
        put(store, str(turn))
    assert len(other.search("scope", direction(1), FINGERPRINT, limit=4)) == 4
    store.invalidate()
    for each in (store, other):
        assert each.get("scope", "exact-7") is None
        assert each.search("scope", direction(1), FINGERPRINT, limit=4) == ()
        assert each.find("id-scope-7") is None
        assert (each.count(), each.count("scope"), list(each.entries())) == (0, 0, [])
    put(other, "new")
    assert [
        m.entry.exact_key for m in store.search("scope", direction(1), FINGERPRINT, limit=4)
    ] == ["exact-new"]
    assert store.count() == 1
    for turn in range(3):
        put(store, f"more-{turn}")
    assert totals(path)[1][0] == 4
    assert store.clear() == 4


def test_a_file_of_the_first_version_is_brought_up(path, open_store, clock, monkeypatch):
    """Entries written before the schema changed are served, counted and evicted."""
    new = SQLiteStore(path.with_name("new.db"), clock=clock)
    for name in "abc":
        put(new, name)
    new.close()
    monkeypatch.setattr(_sqlite_file, "_VERSIONS", _sqlite_file._VERSIONS[:1])
    monkeypatch.setattr(_sqlite_file, "_COLUMNS", "SELECT 1")
    _sqlite_file.Database(path).close()
    monkeypatch.undo()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("ATTACH ? AS new", (str(path.with_name("new.db")),))
    columns = ", ".join(row[1] for row in raw.execute("PRAGMA main.table_info(entries)"))
    raw.execute(f"INSERT INTO entries SELECT {columns} FROM new.entries")
    assert raw.execute("PRAGMA user_version").fetchone() == (1,)
    raw.close()
    store = open_store(max_entries=3, integrity_key=path.with_name("new.db.key"))
    assert names(store) == "abc"
    assert totals(path)[0] == totals(path)[1]
    put(store, "d")
    assert names(store) == "bcd"
    assert len(store.search("scope", direction(1), FINGERPRINT, limit=9)) == 3


# --- upkeep ------------------------------------------------------------------------------------


def test_compacting_gives_space_back(open_store, path):
    """The file shrinks to what is live, which is still served."""
    store = open_store()
    for turn in range(400):
        put(store, str(turn), size=4000)
    store.invalidate()
    put(store, "kept")
    assert store.compact() > 500_000
    assert [entry.exact_key for entry in store.entries()] == ["exact-kept"]
    assert path.stat().st_size < 200_000
    assert totals(path)[0] == totals(path)[1]
    assert len(store.search("scope", direction(1), FINGERPRINT, limit=4)) == 1


def test_what_is_exported_comes_back_the_same(open_store, tmp_path, clock):
    """Records, vectors and fingerprints survive a round trip; odd characters too."""
    store = open_store()
    odd = make_entry("odd", prompt="\ud800 \x00 \u2028", tags=("t",))
    store.put(odd, None, FINGERPRINT, ttl=50)
    store.put(make_entry("v"), direction(1, 2), "other/2")
    lines = io.BytesIO()
    assert write_lines(store.rows(), lines) == 2
    lines.seek(0)
    back = list(read_lines(lines))
    assert [row[0] for row in back] == list(store.entries())
    assert back[0][1:] == (None, "")
    np.testing.assert_allclose(back[1][1], direction(1, 2))
    assert back[1][2] == "other/2"


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[1]",
        b"nonsense",
        b'{"record": "////"}',
        b'{"record": 5}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"record": "!"}',
    ],
)
def test_lines_that_hold_no_entry_are_skipped(line):
    """Reading goes on behind a bad line, whatever is in it."""
    assert list(read_lines(io.BytesIO(line + b"\n\n"))) == [None]


def test_a_forged_vector_is_no_entry(open_store):
    """A vector that is not finite, or of no whole number of floats, spoils its line."""
    store = open_store()
    put(store, "a")
    lines = io.BytesIO()
    write_lines(store.rows(), lines)
    good = lines.getvalue()
    start = good.index(b'"vector":"') + 10
    for forged in (b"AADAfw==", b"AAA=", b""):
        bad = good[:start] + forged + good[good.index(b'"', start) :]
        assert list(read_lines(io.BytesIO(bad))) == [None]


def test_the_commands(path, tmp_path):
    """compact, export and import do their work and say what they did; a bad line does not stop."""
    store = SQLiteStore(path)
    for name in "abc":
        put(store, name)
    store.close()
    run, lines, copy = CliRunner().invoke, tmp_path / "all.jsonl", tmp_path / "copy.db"
    assert run(app, ["export", str(path), str(lines)]).exit_code == 0
    assert lines.stat().st_mode & 0o777 == 0o600
    lines.write_bytes(lines.read_bytes() + b"junk\n")
    done = run(app, ["import", str(copy), str(lines)])
    assert done.exit_code == 0, done.output
    assert "3 entries kept, 1 line skipped" in done.output
    copied = SQLiteStore(copy)
    assert names(copied) == "abc"
    assert len(copied.search("scope", direction(1), FINGERPRINT, limit=9)) == 3
    copied.close()
    assert "3 entries kept" in run(app, ["compact", str(copy)]).output
    assert run(app, ["compact", str(tmp_path / "none.db")]).exit_code == 2
    assert run(app, ["compact", str(lines)]).exit_code == 2
