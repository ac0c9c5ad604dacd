"""Vectors from the letters and words of a text: no model, no download, a fraction of a millisecond.

Feature hashing (Weinberger et al., 2009, arXiv 0902.2206): every word, pair of neighbouring words
and character n-gram is hashed to one coordinate and a sign. Words that share a stem or a typo share
n-grams. Numbers are masked, for which number stands in a request is the verifiers' business, not
similarity's.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from stepcache._errors import ConfigurationError, UsageError
from stepcache._memo import memo
from stepcache.protocols import Vector

__all__ = ["LexicalEmbedder"]

_VERSION = 1
_DIMENSIONS = range(16, 65_537)
_LONGEST_WORD = 32
_MEMO = 16_384

# Runs of digits, runs of letters and placeholders of bounded length, single signs: linear.
_TOKEN = re.compile(rf"\d+|[^\W\d_]{{1,{_LONGEST_WORD}}}|<[a-z][a-z-]{{0,30}}>|[^\w\s]|_")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")

_WORD, _PAIR, _GRAM, _SIGN = 1.0, 0.6, 0.35, 0.3
_PLACEHOLDER = 4.0
"""Weight of ``<name>``, which stands for a whole typed part of a request once that is masked."""
_SHORT = 0.5
"""Weight of words of up to three letters, most of which are grammar."""

_Features: TypeAlias = tuple[tuple[int, ...], tuple[float, ...]]
"""Coordinates, and the signed weight to add at each."""


class LexicalEmbedder:
    """The default embedder: the same text gives the same vector on every machine.

    Near means alike in wording, not in meaning: enough to find the earlier request a changed one
    was made from; use a model-based embedder to find paraphrases.

    A text without any token (empty, white space) has the vector of a reserved feature: of unit
    length like all others, equal for all such texts, near to nothing else. Of a text longer than
    ``max_chars`` only the beginning and the end, half of it each, are read.

    Args:
        dimension: Length of the vectors, 16 to 65536. Less than some hundreds makes unrelated texts
            look alike by chance.
        max_chars: Characters of a text that are read, at least 2; bounds the time one may take.

    Attributes:
        blocking: False: it waits for nothing, and nobody has to wait for it in another thread.

    Raises:
        ConfigurationError: An argument is out of range.
    """

    blocking = False

    def __init__(self, dimension: int = 512, *, max_chars: int = 20_000) -> None:
        if isinstance(dimension, bool) or dimension not in _DIMENSIONS:
            raise ConfigurationError(
                f"LexicalEmbedder dimension is {dimension!r}: use a whole number from "
                f"{_DIMENSIONS.start} to {_DIMENSIONS.stop - 1}"
            )
        if isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 2:
            raise ConfigurationError(f"max_chars is {max_chars!r}: use a whole number from 2 on")
        self._dimension = dimension
        self._max_chars = max_chars

    @property
    def fingerprint(self) -> str:
        """Names the algorithm's version and everything that shapes the vectors."""
        return f"lexical/{_VERSION}/{self._dimension}/{self._max_chars}"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    def embed(self, texts: Sequence[str], /) -> Vector:
        """float32 array of shape (len(texts), dimension), rows of unit length.

        Raises:
            UsageError: A single string was given in place of a sequence of them.
        """
        if isinstance(texts, str):
            raise UsageError("embed takes a sequence of texts: wrap the single one in a list")
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in zip(vectors, texts):
            row[:] = self._vector(text)
        return vectors

    def _vector(self, text: str) -> Vector:
        coordinates, weights = self._features(text)
        sums = np.bincount(coordinates, weights, minlength=self._dimension)
        # fsum rounds once, whatever the order, so the last bit is the same on every processor.
        length = math.sqrt(math.fsum((sums * sums).tolist()))
        if length < 1e-9:  # nothing in the text, or hashes that cancelled each other
            return self._vector_of_nothing()
        unit: Vector = (sums / length).astype(np.float32)
        return unit

    def _vector_of_nothing(self) -> Vector:
        vector = np.zeros(self._dimension, dtype=np.float32)
        vector[_slot("nothing", "", self._dimension)[0]] = 1.0
        return vector

    def _features(self, text: str) -> tuple[list[int], list[float]]:
        words = _words(text, self._max_chars)
        coordinates: list[int] = []
        weights: list[float] = []
        counts: Counter[str | tuple[str, str]] = Counter(words)
        counts.update(pairwise(words))
        for feature, count in counts.items():
            if isinstance(feature, str):
                at, signed = _of_word(feature, self._dimension)
            else:
                at, signed = _of_pair(*feature, self._dimension)
            coordinates.extend(at)
            if count == 1:
                weights.extend(signed)
            else:
                often = _damped(count)
                weights.extend([weight * often for weight in signed])
        return coordinates, weights


def _words(text: str, max_chars: int) -> list[str]:
    if len(text) > max_chars:
        half = max_chars // 2
        text = f"{text[:half]} {text[-half:]}"
    # One composed sign may decompose into many; the cut is repeated to keep the bound.
    text = unicodedata.normalize("NFKC", text)[: 4 * max_chars].casefold()
    return ["0" if token[0].isdigit() else token for token in _TOKEN.findall(text)]


@lru_cache(maxsize=1024)
def _damped(count: int) -> float:
    """Sublinear term frequency, rounded: logarithms differ in their last bit between systems."""
    return round(1 + math.log(count), 6)


@memo(maxsize=_MEMO)
def _of_word(word: str, dimension: int) -> _Features:
    """A word, and its character n-grams with its edges marked."""
    if not word[0].isalpha():
        weight = _PLACEHOLDER if len(word) > 1 else _SIGN
        return _signed([("word", word, weight)], dimension)
    unspaced = _UNSPACED.search(word) is not None
    weight = _WORD if unspaced or len(word) > 3 else _SHORT
    features = [("word", word, weight)]
    body, sizes = (word, (1, 2)) if unspaced else (f"<{word}>", (3, 4))
    for size in sizes:
        grams = [body[i : i + size] for i in range(len(body) - size + 1)]
        features += [("gram", gram, _GRAM * weight) for gram in grams]
    return _signed(features, dimension)


@memo(maxsize=_MEMO)
def _of_pair(first: str, second: str, dimension: int) -> _Features:
    weight = _PAIR if first[0].isalpha() and second[0].isalpha() else _SIGN * _PAIR
    return _signed([("pair", f"{first} {second}", weight)], dimension)


def _signed(features: Sequence[tuple[str, str, float]], dimension: int) -> _Features:
    slots = [_slot(kind, text, dimension) for kind, text, _ in features]
    return (
        tuple(at for at, _ in slots),
        tuple(sign * feature[2] for (_, sign), feature in zip(slots, features)),
    )


def _slot(kind: str, text: str, dimension: int) -> tuple[int, float]:
    """The coordinate and sign of one feature."""
    key = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(blake2b(key, digest_size=8).digest(), "little")
    return (number >> 1) % dimension, 1.0 if number & 1 else -1.0
