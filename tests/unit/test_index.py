"""The vector index: exact, whatever was added, replaced and removed."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache import _errors
from stepcache.index import VectorIndex, unit_vector


def unit(*values: float) -> np.ndarray:
    vector = np.array(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def random_units(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


OPERATION = st.tuples(
    st.sampled_from(["add", "add", "remove", "extend"]), st.integers(0, 12), st.integers(0, 999)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(OPERATION, max_size=60), st.integers(0, 15))
def test_agrees_with_a_dictionary_and_a_linear_scan(operations, limit):
    """After any history the index finds what a scan of a plain dictionary finds."""
    index, model = VectorIndex(5), {}
    for kind, number, seed in operations:
        if kind == "add":
            model[number] = random_units(1, 5, seed)[0]
            index.add(number, model[number])
        elif kind == "remove":
            assert index.remove(number) is (model.pop(number, None) is not None)
        else:
            fresh = [n for n in range(number, number + 3) if n not in model]
            rows = random_units(len(fresh), 5, seed)
            index.extend(fresh, rows)
            model.update(zip(fresh, rows))
    query = random_units(1, 5, 12345)[0]
    found = index.search(query, limit)
    assert len(index) == len(model)
    assert len(found) == min(limit, len(model))
    cosines = sorted((float(v @ query) for v in model.values()), reverse=True)
    np.testing.assert_allclose([c for _, c in found], cosines[: len(found)], atol=1e-6)
    for number, cosine in found:
        assert abs(float(model[number] @ query) - cosine) < 1e-6


def test_an_emptied_index_starts_over():
    """Removing the last vector leaves an index that finds nothing and takes new ones."""
    index = VectorIndex(2)
    index.add(7, unit(1, 0))
    assert index.remove(7)
    assert index.search(unit(1, 0), 3) == []
    index.add(8, unit(0, 1))
    assert [n for n, _ in index.search(unit(1, 0), 3)] == [8]
    assert 8 in index
    assert 7 not in index


def test_freed_slots_are_used_again():
    """Adding and removing in turn does not make the storage grow."""
    index = VectorIndex(4)
    for number, row in enumerate(random_units(500, 4)):
        index.add(number, row)
        if number >= 10:
            assert index.remove(number - 10)
    assert len(index) == 10
    assert len(index.block) == 10
    assert index.block._flat.codes.size() <= 11 * 4 * 4


def test_vectors_are_brought_to_unit_length():
    """Similarities are cosines even of vectors that are not of unit length, huge ones included."""
    index = VectorIndex(2)
    index.add(1, np.array([3e30, 4e30], dtype=np.float32))
    index.add(2, np.array([1e-30, 0], dtype=np.float32))
    found = dict(index.search(np.array([10, 0], dtype=np.float64), 2))
    assert found[1] == pytest.approx(0.6, abs=1e-6)
    assert found[2] == pytest.approx(1.0, abs=1e-6)


def test_similarities_stay_within_a_cosine_s_range():
    """Rounding does not lift the similarity of equal or opposite vectors beyond one."""
    # A little too long, as rounding makes them, on whatever processor.
    index, rows = VectorIndex(384), random_units(200, 384) * np.float32(1.00004)
    index.extend(range(200), rows)
    assert all(cosine > 1 for row in rows for _, cosine in index.block.search(row, 1))
    for row in rows:
        assert index.search(row, 1)[0][1] <= 1.0
        assert index.search(-row, 200)[-1][1] >= -1.0


def test_a_zero_vector_is_near_to_nothing():
    """A text without content has cosine zero with everything."""
    index = VectorIndex(2)
    index.add(1, np.zeros(2, dtype=np.float32))
    assert index.search(unit(1, 0), 1) == [(1, 0.0)]


def test_the_argument_is_copied():
    """Changing an array after it was added does not change the index."""
    index, vector = VectorIndex(2), unit(1, 0)
    index.add(1, vector)
    vector[:] = unit(0, 1)
    assert index.search(unit(1, 0), 1)[0][1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("vector", "words"),
    [
        (np.array([1, np.nan], np.float32), "nan.*finite"),
        (np.array([np.inf, 0], np.float32), "inf.*finite"),
        (np.array([1e300, 0.0]), "inf.*finite"),
        (np.ones((1, 2), np.float32), r"shape \(1, 2\).*one float32 array"),
        (np.ones(3, np.float32), "length 3.*dimension 2.*fingerprint"),
        (np.array([1, 0]), "int64.*float32"),
        (["a", "b"], "dtype.*float32"),
        (None, "dtype object.*float32"),
    ],
)
def test_what_is_no_vector_is_named(vector, words):
    """The error of a bad vector says what it is, why it is refused and what to do."""
    index = VectorIndex(2)
    for call in (lambda: index.add(1, vector), lambda: index.search(vector, 1)):
        with pytest.raises(_errors.StoreError, match=f"(?s){words}"):
            call()
    assert len(index) == 0


def test_extend_refuses_what_does_not_fit():
    """Rows of another length, too few rows and ids that are taken are errors; nothing changes."""
    index = VectorIndex(2)
    index.add(1, unit(1, 0))
    for numbers, rows in (([2], np.ones((1, 3))), ([2, 3], np.ones((1, 2)))):
        with pytest.raises(_errors.StoreError, match="does not hold"):
            index.extend(numbers, rows)
    for numbers in ([1, 2], [2, 2]):
        with pytest.raises(_errors.StoreError, match="twice"):
            index.extend(numbers, np.ones((2, 2)))
    assert len(index) == 1


def test_unit_vector_returns_a_good_vector_as_it_is():
    """The hot path does not copy."""
    vector = unit(3, 4)
    assert unit_vector(vector) is vector


def test_threads_share_an_index():
    """Searches during additions and removals find only ids that exist, with their own cosine."""
    index, rows = VectorIndex(16), random_units(400, 16)
    index.extend(range(100), rows[:100])
    failures = []

    def search():
        for row in rows[:100]:
            for number, cosine in index.search(row, 3):
                if abs(float(rows[number] @ row) - cosine) > 1e-5:
                    failures.append(number)

    def change(first):
        for number in range(first, first + 100):
            index.add(number, rows[number])
        for number in range(first, first + 100):
            index.remove(number)

    threads = [threading.Thread(target=search) for _ in range(5)]
    threads += [threading.Thread(target=change, args=(n,)) for n in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(index) == 100
