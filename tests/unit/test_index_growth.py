"""A large index: equal vectors kept once, and a coarse block made in the background."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache.index import VectorIndex, _blocks
from stepcache.index._blocks import CoarseBlock


def clustered(count: int, dimension: int = 48, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(max(1, count // 20), dimension))
    rows = centres[random.integers(len(centres), size=count)]
    rows = rows + 0.35 * random.normal(size=rows.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def grown(rows: np.ndarray, exact_up_to: int = 500) -> VectorIndex:
    index = VectorIndex(rows.shape[1], exact_up_to=exact_up_to)
    index.extend(range(len(rows)), rows)
    assert index.settle(60)
    assert not index.exact
    return index


OPERATION = st.tuples(
    st.sampled_from(["add", "add", "remove"]), st.integers(0, 9), st.integers(0, 3)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(OPERATION, max_size=60), st.integers(0, 12))
def test_equal_vectors_are_kept_once_and_found_under_every_id(operations, limit):
    """Whatever shares a vector, and whoever leaves first, ids and cosines are those of a scan."""
    pool = clustered(4, 6)
    index, model = VectorIndex(6), {}
    for kind, number, which in operations:
        if kind == "add":
            model.pop(number, None)
            model[number] = which
            index.add(number, pool[which])
        else:
            assert index.remove(number) is (model.pop(number, None) is not None)
    assert len(index) == len(model)
    assert len(index.block) == len(set(model.values()))
    assert sorted(index.numbers()) == sorted(model)
    assert all((number in index) is (number in model) for number in range(10))
    found = index.search(pool[0], limit)
    assert len(found) == len({n for n, _ in found}) == min(limit, len(model))
    cosines = sorted((float(pool[w] @ pool[0]) for w in model.values()), reverse=True)
    np.testing.assert_allclose([c for _, c in found], cosines[: len(found)], atol=1e-6)
    for number, cosine in found:
        assert abs(float(pool[model[number]] @ pool[0]) - cosine) < 1e-6


def test_of_equal_vectors_the_newest_comes_first():
    """A limit that cannot take all ids of one vector takes the latest of them."""
    index, row = VectorIndex(6), clustered(1, 6)[0]
    for number in range(1000):
        index.add(number, row)
    assert [n for n, _ in index.search(row, 3)] == [999, 998, 997]
    assert len(index.block) == 1


def test_a_vector_with_many_ids_leaves_room_in_a_coarse_index():
    """Whose cosines are too rough to say which of two near vectors is the nearest."""
    rows = clustered(3000)
    index = grown(rows)
    for number in range(5000, 5100):
        index.add(number, rows[17])
    found = index.search(rows[17], 4)
    assert found[0][0] == 5099
    assert len({rows[n if n < 5000 else 17].tobytes() for n, _ in found}) == 4
    everything = index.search(rows[17], 3100)
    assert len(everything) == len({n for n, _ in everything}) > 200
    assert {*range(5000, 5100), 17} <= {n for n, _ in everything}
    cosines = [c for _, c in everything]
    assert cosines == sorted(cosines, reverse=True)
    few = VectorIndex(48, exact_up_to=1)
    few.extend(range(3), rows[:3])
    assert few.settle(60)
    for number in range(10, 20):
        few.add(number, rows[0])
    assert [n for n, _ in few.search(rows[0], 8)][:6] == [19, 18, 17, 16, 15, 14]
    assert len(few.search(rows[0], 8)) == 8


def test_a_large_index_goes_coarse_and_finds_nearly_everything():
    """Above its limit an index is made over by itself and still finds the near ones."""
    rows = clustered(4000)
    index = grown(rows)
    noise = np.random.default_rng(1).normal(size=(300, 48)).astype(np.float32) * 0.03
    queries = rows[:300] + noise
    right = 0
    for query in queries / np.linalg.norm(queries, axis=1, keepdims=True):
        scores = rows @ query
        best = max(float(scores[number]) for number, _ in index.search(query, 4))
        right += best >= float(scores.max()) - 1e-5
        for number, cosine in index.search(query, 4):
            assert abs(float(scores[number]) - cosine) < 0.02
    assert right >= 297


def test_what_comes_and_goes_while_a_block_is_made_is_in_it():
    """Additions, replacements and removals during the change-over are none of them lost."""
    rows, other = clustered(6000), clustered(6000, seed=5)
    index = VectorIndex(48, exact_up_to=2000)
    model = {}

    def change(first: int) -> None:
        for number in range(first, first + 1500):
            index.add(number, rows[number])
            model[number] = rows[number]
            if number % 3 == 0:
                index.add(number, other[number])
                model[number] = other[number]
            if number % 5 == 0:
                assert index.remove(number)
                del model[number]

    threads = [threading.Thread(target=change, args=(n,)) for n in (0, 1500, 3000, 4500)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert index.settle(60)
    assert not index.exact
    assert sorted(index.numbers()) == sorted(model)
    assert len(index.block) == len(model)
    missed = sum(number not in dict(index.search(row, 4)) for number, row in model.items())
    assert missed <= len(model) // 200


def test_a_coarse_index_forgets_and_replaces():
    """After the change-over a removed id is not found, and a replaced one by its new vector."""
    rows, other = clustered(3000), clustered(3000, seed=9)
    index = grown(rows)
    for number in range(0, 3000, 2):
        assert index.remove(number)
        assert not index.remove(number)
    for number in range(1, 3000, 2):
        index.add(number, other[number])
    assert len(index) == len(index.block) == 1500
    for number in range(1, 600, 2):
        assert index.search(other[number], 1)[0][0] == number
        assert number - 1 not in dict(index.search(rows[number - 1], 9))


def test_an_outgrown_block_is_made_over():
    """An index that grew to many times its size gets as many cells as a new one would."""
    rows = clustered(6000)
    index = VectorIndex(48, exact_up_to=300)
    for start in range(0, 6000, 500):
        index.extend(range(start, start + 500), rows[start : start + 500])
        assert index.settle(60)
    assert index.block._file.nlist > CoarseBlock.cells(1000)
    assert len(index.block) == len(index) == 6000
    assert [n for n, _ in index.search(rows[17], 1)] == [17]


def test_an_emptied_coarse_index_starts_over():
    """Nothing is found in it, and new vectors are."""
    rows = clustered(800)
    index = grown(rows)
    for number in range(800):
        index.remove(number)
    assert index.search(rows[0], 4) == []
    index.add(7, rows[3])
    assert [n for n, _ in index.search(rows[3], 4)] == [7]


def test_an_index_that_nobody_holds_is_not_kept_by_its_growth():
    """Dropping an index in the middle of its change-over ends the thread and frees it."""
    index = VectorIndex(48, exact_up_to=500)
    index.extend(range(20_000), clustered(20_000))
    growth, gone = index.growth, weakref.ref(index)
    assert growth is not None
    del index
    assert growth.wait(60)
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_blocks_of_few_vectors_can_be_made(size):
    """The cells suit the vectors there are, however few."""
    rows = clustered(size, 8)
    index = grown(rows, exact_up_to=0)
    assert sorted(n for n, _ in index.search(rows[0], size)) == list(range(size))


@pytest.mark.parametrize("dimension", [3, 20, 384, 600, 1025])
def test_vectors_of_any_length_are_found_and_given_back(dimension):
    """Rotated in parts, brought up to a width that sketches have; what is read back is what came,
    but for the rounding."""
    rows = clustered(900, dimension)
    index = grown(rows)
    numbers = list(range(0, 900, 7))
    near = np.einsum("ij,ij->i", index.block.rows(numbers), rows[numbers])
    assert np.abs(near - 1).max() < 0.02
    right = sum(index.search(rows[n], 4)[0][1] > 0.98 for n in numbers)
    assert right == len(numbers)


def test_a_vector_that_is_like_no_other_is_found_in_whatever_cell():
    """Among many groups: alone, far from every centroid, and asked for with some noise."""
    random = np.random.default_rng(3)
    loners = random.normal(size=(100, 48))
    rows = np.concatenate([clustered(6000), loners]).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = grown(rows)
    assert index.block._cells > 3 * _blocks._PROBES
    queries = rows[6000:] + 0.07 * random.normal(size=loners.shape).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    for query in queries:
        scores = rows @ query
        if scores.max() >= 0.8:
            assert index.search(query, 1)[0][0] == scores.argmax()


def test_sketches_of_what_is_gone_are_swept_out():
    """Coming and going for ever does not fill the memory, and nothing gone is found."""
    rows = clustered(3000)
    index = grown(rows[:1000])
    crowd = rows[0] + 0.02 * np.random.default_rng(4).normal(size=(1000, 48)).astype(np.float32)
    crowd /= np.linalg.norm(crowd, axis=1, keepdims=True)
    index.extend(range(20_000, 21_000), crowd)
    for number in range(20_000, 21_000):
        index.remove(number)
    assert index.block._like(index.block.rotation.apply(rows[:1])[0], 256)
    for turn in range(3000):
        index.add(10_000 + turn, rows[turn])
        if turn >= 200:
            assert index.remove(10_000 + turn - 200)
        if turn < 900:
            index.remove(turn)
    there = set(index.numbers())
    assert len(there) == 300
    assert len(index.block._sketches) <= 2 * len(there) + 512
    for number in range(2900, 3000):
        assert index.search(rows[number], 1)[0][0] == 10_000 + number
    strange = np.random.default_rng(8).normal(size=48).astype(np.float32)
    found = index.search(strange, 300)
    assert {n for n, _ in found} <= there
    assert len(found) >= 64
