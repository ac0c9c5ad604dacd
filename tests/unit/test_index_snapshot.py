"""A coarse index in a file: the same index comes back, and whatever else is in the file is none."""

import os
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache.index import VectorIndex, digest_of
from stepcache.index import _snapshot as snapshot

ABOUT = "scope and embedder"
COUNT, DIMENSION = 1500, 24


def rows_of(count=COUNT, seed=0):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


ROWS = rows_of()


def grown(numbers=range(COUNT)):
    index = VectorIndex(DIMENSION, exact_up_to=100)
    index.extend(list(numbers), ROWS[list(numbers)])
    assert index.settle(60)
    return index


def back(path, there, about=ABOUT, check=lambda some: True):
    there = np.array(sorted(there), dtype=np.int64)
    return snapshot.load_index(str(path), about, DIMENSION, there, check)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.db-index"


def test_the_same_index_comes_back(path):
    """Ids, neighbours and cosines are those of the index that was written, shared vectors too."""
    index = grown()
    for number in range(100):
        index.add(5000 + number, ROWS[number % 7])
    assert index.remove(3)  # its place is kept by those that share it
    index.add(3, ROWS[900])
    assert snapshot.save_index(index, str(path), ABOUT, 5099)
    loaded, seen = back(path, index.numbers())
    assert seen == 5099
    assert not loaded.exact
    assert len(loaded) == len(index)
    assert sorted(loaded.numbers()) == sorted(index.numbers())
    for row in ROWS[::50]:
        assert loaded.search(row, 8) == index.search(row, 8)
    assert (path.stat().st_mode & 0o777, os.listdir(path.parent)) == (0o600, [path.name])
    for number in index.numbers():
        assert loaded.remove(number)
    assert (len(loaded), len(loaded.block)) == (0, 0)


def test_what_is_gone_or_too_new_is_left_out(path):
    """Ids that exist no more, or came after the last one that was complete, are not in it."""
    index = grown()
    for number in range(40):
        index.add(2000 + number, ROWS[number])
    assert snapshot.save_index(index, str(path), ABOUT, 2019)
    there = {*range(20, 1300), *range(2000, 2040), 7777}
    loaded, _ = back(path, there)
    assert sorted(loaded.numbers()) == [*range(20, 1300), *range(2000, 2020)]
    assert len(loaded) == len(loaded.numbers())
    assert loaded.search(ROWS[5], 1)[0][0] == 2005
    assert 1400 not in dict(loaded.search(ROWS[1400], 9))
    loaded.add(5, ROWS[5])
    assert loaded.search(ROWS[5], 1)[0][0] == 5
    assert loaded.remove(5)
    assert loaded.search(ROWS[5], 1)[0][0] == 2005


def test_its_vectors_are_compared_with_the_truth(path):
    """The digests that the reader is asked about are of the vectors under these ids; it may refuse."""
    assert snapshot.save_index(grown(), str(path), ABOUT, COUNT)
    asked = {}
    assert back(path, range(COUNT), check=lambda some: asked.update(some) or True)
    assert len(asked) > 20
    assert all(digest_of(ROWS[number]) == mark for number, mark in asked.items())
    assert back(path, range(COUNT), check=lambda some: False) is None


def test_an_exact_index_needs_none(path):
    """It is made anew faster than it could be read."""
    index = VectorIndex(DIMENSION)
    index.add(1, ROWS[0])
    assert not snapshot.save_index(index, str(path), ABOUT, 1)
    assert os.listdir(path.parent) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "index"
    assert snapshot.save_index(grown(), str(path), ABOUT, COUNT)
    return path.read_bytes()


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_no_snapshot(written, data, tmp_path_factory):
    """Whatever byte is changed, wherever it ends, and whatever follows: None, and no error."""
    at = data.draw(st.integers(0, len(written) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "more", "zeros"]))
    bad = {
        "flip": written[:at] + bytes([written[at] ^ 1 << at % 8]) + written[at + 1 :],
        "cut": written[:at],
        "more": written + written[at:],
        "zeros": written[:at] + bytes(len(written) - at) if any(written[at:]) else b"",
    }[kind]
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(bad)
    assert back(path, range(COUNT)) is None


@pytest.mark.parametrize("about", ["", "another embedder"])
def test_one_about_other_vectors_is_none(written, path, about):
    """Another scope, embedder or dimension is not answered by it."""
    path.write_bytes(written)
    assert back(path, range(COUNT), about) is None
    assert snapshot.load_index(str(path), ABOUT, 25, np.arange(COUNT), lambda some: True) is None
    assert back(path.with_name("none"), range(COUNT)) is None


def test_one_is_written_while_the_index_changes(path):
    """Every id that was there before and after is in it, and searches go on meanwhile."""
    index, stop = grown(range(1000)), threading.Event()

    def change():
        turn = 0
        while not stop.is_set():
            number = 1000 + turn % 500
            index.add(5000 + turn, ROWS[number])
            index.remove(5000 + turn - 20)
            turn += 1

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(20):
            assert snapshot.save_index(index, str(path), ABOUT, 999)
            loaded, _ = back(path, range(1000))
            assert sorted(loaded.numbers()) == list(range(1000))
            assert snapshot.save_index(index, str(path), ABOUT, 10**9)
            assert back(path, [*range(1000), *range(5000, 10**6)]) is not None
    finally:
        stop.set()
        changer.join()


def test_a_file_that_cannot_be_written_leaves_the_last_one(path, monkeypatch):
    """The error goes to the caller, and nothing half is left behind."""
    assert snapshot.save_index(grown(), str(path), ABOUT, COUNT)
    before = path.read_bytes()

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshot._Hashed, "write", full)
    with pytest.raises(OSError, match="No space"):
        snapshot.save_index(grown(range(700)), str(path), ABOUT, COUNT)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_what_killed_processes_left_half_written_goes(path):
    """Not what another may be writing right now."""
    old, new = path.with_name(f"{path.name}.1-1.part"), path.with_name(f"{path.name}.2-2.part")
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (1, 1))
    assert snapshot.save_index(grown(), str(path), ABOUT, COUNT)
    assert sorted(os.listdir(path.parent)) == sorted([path.name, new.name])
