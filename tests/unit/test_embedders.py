"""What is particular to each embedder, beyond the contract they share."""

import builtins
import hashlib
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache._errors import ConfigurationError, EmbedderError, UsageError
from stepcache.embedders import LexicalEmbedder, SentenceTransformerEmbedder
from stepcache.embedders._lexical import _of_pair, _of_word

EMBEDDER = LexicalEmbedder()
SAMPLE = ["Solve 2x + 3 = 13 for x.", "caf\u00e9 \u6c34", ""]


def checksum() -> str:
    return hashlib.sha256(LexicalEmbedder().embed(SAMPLE).tobytes()).hexdigest()


def cosine(one: str, other: str) -> float:
    first, second = EMBEDDER.embed([one, other])
    return float(first @ second)


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_vectors_are_the_same_in_every_process(seed: str) -> None:
    """Another process with another hash seed computes the very same bytes."""
    program = (
        "import hashlib; from stepcache.embedders import LexicalEmbedder; "
        f"print(hashlib.sha256(LexicalEmbedder().embed({SAMPLE!a}).tobytes()).hexdigest())"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == checksum()


def test_vectors_are_the_same_in_every_release() -> None:
    """Whoever changes the vectors has to change the version in the fingerprint, and this."""
    assert EMBEDDER.fingerprint == "lexical/1/512/20000"
    (vector,) = EMBEDDER.embed(["tide"])
    assert {int(at): round(float(vector[at]), 4) for at in np.flatnonzero(vector)} == GOLDEN


GOLDEN = {
    75: -0.2568,
    76: 0.2568,
    229: -0.2568,
    247: -0.7337,
    367: 0.2568,
    402: -0.2568,
    413: -0.2568,
    476: -0.2568,
}


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=60), max_size=4))
def test_every_text_has_a_unit_vector(texts: list[str]) -> None:
    """Rows are finite and of unit length whatever the texts."""
    vectors = EMBEDDER.embed(texts)
    assert vectors.shape == (len(texts), 512)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_numbers_do_not_matter() -> None:
    """Requests that differ in their numbers only have one vector."""
    assert cosine("Solve 2x + 3 = 13", "Solve 48x + 5 = 999") == pytest.approx(1)


def test_masked_parts_bring_requests_of_one_kind_together() -> None:
    """A placeholder says more about a request than the words around it."""
    masked = cosine("Solve  <equation>  for  <unknown> .", "Find  <unknown>  if  <equation> ")
    assert masked > 0.7
    assert cosine("Solve  <equation>  now", "Solve  <keys>  now") < masked


def test_case_and_compatibility_forms_do_not_matter() -> None:
    """Full-width and upper-case letters look like plain ones."""
    assert cosine("Solve it", "SOLVE ｉｔ") == pytest.approx(1)


def test_word_order_matters_a_little() -> None:
    """Shuffled words are near, but not the same."""
    assert 0.6 < cosine("dogs chase small cats", "small cats chase dogs") < 0.999


def test_inflections_are_nearer_than_other_words() -> None:
    """Shared n-grams bring word forms together."""
    assert cosine("calculating areas", "calculate area") > cosine("calculating areas", "sea") + 0.3


def test_texts_in_unspaced_scripts_are_compared_by_their_signs() -> None:
    """Scripts without spaces between words still have near and far texts."""
    near = cosine("次の方程式を解いてください", "この方程式を解いて")
    assert near > cosine("次の方程式を解いてください", "鳥の名前は何ですか") + 0.2


def test_empty_texts_are_alike_and_near_to_nothing() -> None:
    """All texts without a token share a reserved direction."""
    assert cosine("", " \n") == pytest.approx(1)
    assert abs(cosine("", "Solve the equation for the unknown")) < 0.2


def test_of_a_long_text_both_ends_are_read() -> None:
    """A changed end is noticed however long the text is, in bounded time."""
    long = "word " * 100_000
    begin = time.process_time()
    assert cosine(long + "apples and pears", long) < 0.999
    assert time.process_time() - begin < 20


def test_the_memo_is_bounded() -> None:
    """A flood of new words does not grow the memory without end."""
    EMBEDDER.embed(
        [f"w{chr(97 + i % 26) * (i % 20)}{chr(0x4E00 + i % 5000)}" for i in range(20_000)]
    )
    for memo in (_of_word, _of_pair):
        info = memo.cache_info()
        assert info.maxsize is not None
        assert info.currsize <= info.maxsize


@pytest.mark.parametrize("dimension", [0, 8, True, 1.5, "512", 10**9])
def test_a_dimension_out_of_range_is_refused(dimension: Any) -> None:
    """The constructor says which value cannot work."""
    with pytest.raises(ConfigurationError, match="dimension is"):
        LexicalEmbedder(dimension)


@pytest.mark.parametrize("limit", [0, 1, True, 2.5])
def test_a_limit_out_of_range_is_refused(limit: Any) -> None:
    """The constructor says which value cannot work."""
    with pytest.raises(ConfigurationError, match="max_chars is"):
        LexicalEmbedder(max_chars=limit)


def test_other_settings_have_another_fingerprint() -> None:
    """Vectors that cannot be compared are told apart."""
    made = [LexicalEmbedder(), LexicalEmbedder(256), LexicalEmbedder(max_chars=9)]
    assert len({embedder.fingerprint for embedder in made}) == 3


def test_a_single_string_is_refused() -> None:
    """A string is a sequence of strings too, which is never what was meant."""
    with pytest.raises(UsageError, match="wrap"):
        EMBEDDER.embed("Solve")


def test_importing_the_package_loads_nothing_heavy() -> None:
    """Neither numpy nor a model library is imported before an embedder is used."""
    program = (
        "import sys, stepcache, stepcache.embedders, stepcache.testing; "
        "heavy = {'numpy', 'torch', 'sentence_transformers', 'pytest'} & set(sys.modules); "
        "print(sorted(heavy))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sentence-transformers the error says what to install."""
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("sentence_transformers"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigurationError, match=r"stepcache\[sentence-transformers\]"):
        SentenceTransformerEmbedder("anything")


@pytest.mark.parametrize("model", [None, 3, object()])
def test_what_is_no_model_is_refused(model: Any) -> None:
    """The constructor takes a name, a path or a model."""
    with pytest.raises(ConfigurationError, match="SentenceTransformer"):
        SentenceTransformerEmbedder(model)


class BrokenModel:
    """A model whose output is chosen."""

    def __init__(self, output: Any) -> None:
        self.output = output

    def get_embedding_dimension(self) -> int:
        return 2

    def state_dict(self) -> dict[str, Any]:
        return {}

    def encode(self, texts: list[str], **options: Any) -> Any:
        return self.output


@pytest.mark.parametrize("output", [[[np.nan, 1.0]], [[1.0]], [[0.0, 0.0]], [[1.0, 0.0]] * 2])
def test_what_is_no_vector_is_an_embedder_error(output: Any) -> None:
    """NaN, wrong shapes and zero vectors do not get out."""
    with pytest.raises(EmbedderError):
        SentenceTransformerEmbedder(BrokenModel(output)).embed(["text"])
