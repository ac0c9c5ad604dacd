"""What an engine remembers of an embedder's answers."""

import numpy as np
import pytest

from stepcache._vectors import VectorMemo


def vector(number: int) -> np.ndarray:
    return np.full(2, number, dtype=np.float32)


def test_those_not_used_for_longest_go():
    """It never holds more than it may."""
    memo = VectorMemo(maxsize=2)
    memo.put("e", ("a",), vector(1))
    memo.put("e", ("b",), vector(2))
    assert memo.get("e", ("a",)) is not None
    memo.put("e", ("c",), vector(3))
    assert memo.get("e", ("b",)) is None
    assert [float(memo.get("e", (view,))[0]) for view in "ac"] == [1.0, 3.0]


@pytest.mark.parametrize(
    ("fingerprint", "views"),
    [
        ("f", ("ab", "c")),
        ("e", ("a", "bc")),
        ("e", ("abc",)),
        ("e", ("ab", "c", "")),
        ("ea", ("b", "c")),
    ],
)
def test_only_the_very_same_texts_of_the_same_embedder_are_known(fingerprint, views):
    """Wherever one text ends and the next begins."""
    memo = VectorMemo()
    memo.put("e", ("ab", "c"), vector(1))
    assert memo.get(fingerprint, views) is None
    assert memo.get("e", ("ab", "c")) is not None


def test_copies_are_taken_and_given():
    """Neither who brought a vector nor who got it can change what is remembered."""
    memo, given = VectorMemo(), vector(1)
    memo.put("e", ("a",), given)
    given[:] = 5
    got = memo.get("e", ("a",))
    got[:] = 6
    assert memo.get("e", ("a",)).tolist() == [1, 1]
