"""Large indexes saved beside a SQLite file: a start reads little anew, and is never wrong."""

import os
import shutil
import sqlite3
import threading

import numpy as np
import pytest

from stepcache.stores import SQLiteStore, _sqlite_index
from stepcache.testing.stores import make_entry

FINGERPRINT = "snapshot/1"
COUNT = 6000


def rows_of(count, seed):
    rows = np.random.default_rng(seed).normal(size=(count, 16)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


ROWS = rows_of(COUNT, 0)
MORE = rows_of(500, 1)


def put(store, name, row, scope="scope"):
    store.put(make_entry(str(name), scope), row, FINGERPRINT)


def found(store, row, limit=1):
    matches = store.search("scope", row, FINGERPRINT, limit=limit)
    return [match.entry.exact_key.removeprefix("exact-") for match in matches]


def saved(path):
    return [name for name in os.listdir(path.parent) if "-index-" in name]


def settle():
    for thread in threading.enumerate():
        if thread.name.startswith("stepcache-index"):
            thread.join()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with a large scope, closed as it should be."""
    path = tmp_path_factory.mktemp("made") / "cache.db"
    store = SQLiteStore(path)
    for number, row in enumerate(ROWS):
        put(store, number, row)
    put(store, "elsewhere", ROWS[0], "other")
    found(store, ROWS[0])
    settle()
    store.close()
    return path


@pytest.fixture
def path(made, tmp_path):
    for name in os.listdir(made.parent):
        shutil.copy2(made.parent / name, tmp_path)
    return tmp_path / "cache.db"


@pytest.fixture
def read(monkeypatch):
    """How many vectors were read from rows to make an index."""
    counts, extend = [], _sqlite_index.Indexes._extend

    def counted(self, block, rows):
        counts.append(len(rows))
        extend(self, block, rows)

    monkeypatch.setattr(_sqlite_index.Indexes, "_extend", counted)
    return lambda: sum(counts)


def test_a_start_reads_no_vector_anew(path, read):
    """The index is there at once, whole, and private to the owner."""
    (name,) = saved(path)
    assert (path.parent / name).stat().st_mode & 0o777 == 0o600
    store = SQLiteStore(path)
    for number in range(0, COUNT, 97):
        assert found(store, ROWS[number]) == [str(number)]
    assert read() == 0
    assert len(store._indexes.known("scope", FINGERPRINT).index) == COUNT
    store.close()


def test_what_changed_since_is_caught_up(path, read):
    """Entries that came, went or were replaced without the index are found, or not, by now."""
    name = saved(path)[0]
    before = (path.parent / name).read_bytes()
    store = SQLiteStore(path)
    for number, row in enumerate(MORE[:50]):
        put(store, f"new-{number}", row)
    put(store, 7, MORE[100])
    for number in range(100, 200):
        store.remove(f"id-scope-{number}")
    store.close()
    (path.parent / name).write_bytes(before)
    store = SQLiteStore(path)
    assert found(store, MORE[3]) == ["new-3"]
    assert read() == 51
    assert found(store, MORE[100]) == ["7"]
    assert "7" not in found(store, ROWS[7], 4)
    for number in range(100, 200, 9):
        hits = found(store, ROWS[number], 4)
        assert len(hits) == 4
        assert str(number) not in hits
    assert len(store._indexes.known("scope", FINGERPRINT).index) == COUNT - 100 + 50
    assert store.unreadable == 0
    store.close()


def test_rows_that_a_snapshot_lacks_are_read(path, read):
    """However it came to lack them."""
    raw = sqlite3.connect(path)
    raw.execute("UPDATE entries SET number = number + 100000 WHERE number > 5900")
    raw.execute("UPDATE entries SET number = number - 100000 WHERE number > 5900")
    raw.execute("DELETE FROM entries WHERE exact_key = 'none'")
    raw.commit()
    raw.close()
    store = SQLiteStore(path)
    block = store._indexes
    assert found(store, ROWS[5950]) == ["5950"]
    index = block.known("scope", FINGERPRINT).index
    (name,) = saved(path)
    for number in range(1, 301):
        index.remove(number)
    _sqlite_index.Snapshots.remove_all(store._indexes._snapshots)
    store._indexes._snapshots.save(index, "scope", FINGERPRINT, 6000)
    assert saved(path) == [name]
    store.close()
    again = SQLiteStore(path)
    assert found(again, ROWS[17]) == ["17"]
    assert read() == 300
    again.close()


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "text"])
def test_a_damaged_one_is_made_anew(path, read, harm):
    """It is no error, nothing is missed, and a good one takes its place."""
    file = path.parent / saved(path)[0]
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes(
        {
            "flip": whole[:middle] + bytes([whole[middle] ^ 64]) + whole[middle + 1 :],
            "cut": whole[:middle],
            "empty": b"",
            "text": b"stepcache index 2\n{}\n",
        }[harm]
    )
    store = SQLiteStore(path)
    assert found(store, ROWS[4321]) == ["4321"]
    assert read() == COUNT
    settle()
    store.close()
    again = SQLiteStore(path)
    assert found(again, ROWS[4321]) == ["4321"]
    assert read() == COUNT
    again.close()


def test_one_of_another_file_is_not_believed(path, tmp_path, read):
    """A file put in the place of the one that the snapshot is of, with rows of the same numbers."""
    other = tmp_path / "other"
    other.mkdir()
    store = SQLiteStore(other / "cache.db")
    for number, row in enumerate(rows_of(COUNT, 5)):
        put(store, number, row)
    store.close()
    (name,) = saved(path)
    assert saved(other / "cache.db") == []
    shutil.copy(path.parent / name, other / name)
    store = SQLiteStore(other / "cache.db")
    assert found(store, rows_of(COUNT, 5)[77]) == ["77"]
    assert read() == COUNT
    settle()
    store.close()


def test_removing_data_for_good_removes_it(path):
    """After clearing or compacting no file holds vectors of what was in it; nor with encryption."""
    assert saved(path)
    store = SQLiteStore(path)
    store.compact()
    assert saved(path) == []
    assert found(store, ROWS[1]) == ["1"]
    settle()
    store.close()
    assert len(saved(path)) == 1
    store = SQLiteStore(path)
    assert store.clear("scope") == COUNT
    assert saved(path) == []
    store.close()
    assert saved(path) == []


def test_an_encrypted_store_has_none(path):
    """Vectors tell of texts: where these are not to be read, those are not beside them."""
    pytest.importorskip("cryptography")
    store = SQLiteStore(path, encrypt=True)
    assert saved(path) == []
    store.rotate()
    assert found(store, ROWS[40]) == ["40"]
    settle()
    store.close()
    assert saved(path) == []


def test_a_full_disk_costs_the_saving_only(path, monkeypatch):
    """Searching goes on without a file."""
    os.unlink(path.parent / saved(path)[0])

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stepcache.stores._sqlite_snapshots.save_index", full)
    store = SQLiteStore(path)
    assert found(store, ROWS[9]) == ["9"]
    settle()
    store.close()
    assert saved(path) == []
