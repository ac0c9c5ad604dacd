"""What every embedder has to do, as a test class to inherit.

Whoever writes an embedder subclasses :class:`EmbedderContract` in a test module and says how to
make one::

    class TestMyEmbedder(EmbedderContract):
        @pytest.fixture
        def embedder(self):
            return MyEmbedder()

The suite is synchronous; an embedder that answers with awaitables is wrapped by its author.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from stepcache.protocols import Embedder, Vector

__all__ = ["EmbedderContract"]

_TOLERANCE = 1e-4
_ODD_TEXTS = (
    *("", " \n\t", "\x00", "\ud800", "a\ud83d", "\U0001f680" * 50, "7", "...", "\u200b"),
    *("x" * 5_000, "word " * 3_000, "\u6c34" * 400, "e\u0301", "\u202eabc", "<|endoftext|>"),
)
_RELATED = (
    "Solve the equation 2x + 3 = 13 for x and explain each step.",
    "Please solve the equation 7y - 4 = 31 for y and explain every step.",
    "Which birds spend the winter in the south of Africa?",
)


class EmbedderContract:
    """Tests an embedder; needs the fixture ``embedder``."""

    def test_it_fits_the_protocol(self, embedder: Embedder) -> None:
        """It has the members of the Embedder protocol, of the right types."""
        assert isinstance(embedder, Embedder)
        assert isinstance(embedder.fingerprint, str)
        assert embedder.fingerprint
        assert isinstance(embedder.dimension, int)
        assert embedder.dimension > 0

    def test_one_unit_row_a_text(self, embedder: Embedder) -> None:
        """The result is a float32 array of one row of unit length per text."""
        vectors = _embed(embedder, list(_RELATED))
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(_RELATED), embedder.dimension)
        assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < _TOLERANCE

    def test_no_texts_make_no_rows(self, embedder: Embedder) -> None:
        """An empty sequence gives an array of shape (0, dimension)."""
        assert _embed(embedder, []).shape == (0, embedder.dimension)

    def test_any_text_has_a_finite_unit_vector(self, embedder: Embedder) -> None:
        """Empty, endless and malformed texts give unit vectors too, never NaN."""
        vectors = _embed(embedder, list(_ODD_TEXTS))
        assert np.isfinite(vectors).all()
        assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < _TOLERANCE

    def test_the_same_text_has_the_same_vector(self, embedder: Embedder) -> None:
        """A second call gives the first one's vectors."""
        first, second = _embed(embedder, list(_RELATED)), _embed(embedder, list(_RELATED))
        assert np.abs(first - second).max() < _TOLERANCE

    def test_neighbours_in_a_batch_do_not_matter(self, embedder: Embedder) -> None:
        """A text has the same vector alone and among others, in any order."""
        together = _embed(embedder, [*_RELATED, "", "word " * 200])
        for row, text in zip(together, _RELATED):
            assert np.abs(row - _embed(embedder, [text])[0]).max() < _TOLERANCE

    def test_any_sequence_of_texts_will_do(self, embedder: Embedder) -> None:
        """A tuple gives what a list gives."""
        assert np.allclose(
            _embed(embedder, tuple(_RELATED)), _embed(embedder, list(_RELATED)), atol=_TOLERANCE
        )

    def test_results_belong_to_the_caller(self, embedder: Embedder) -> None:
        """Writing into a result does not change the next one."""
        before = _embed(embedder, [_RELATED[0]]).copy()
        np.array(_embed(embedder, [_RELATED[0]]), copy=False)[:] = 0
        assert np.abs(_embed(embedder, [_RELATED[0]]) - before).max() < _TOLERANCE

    def test_alike_is_nearer_than_unrelated(self, embedder: Embedder) -> None:
        """A request with other numbers is nearer than one about something else."""
        base, changed, unrelated = _embed(embedder, list(_RELATED))
        assert float(base @ changed) > float(base @ unrelated) + 0.1

    def test_threads_do_not_disturb_each_other(self, embedder: Embedder) -> None:
        """Calls from several threads give what single calls give."""
        texts = [f"{text} {'long ' * i}" for i, text in enumerate(_RELATED * 4)]
        wanted = [_embed(embedder, [text])[0] for text in texts]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda text: _embed(embedder, [text])[0], texts))
        for got, want in zip(found, wanted):
            assert np.abs(got - want).max() < _TOLERANCE


def _embed(embedder: Embedder, texts: Any) -> Vector:
    result = embedder.embed(texts)
    assert isinstance(result, np.ndarray)
    return result
