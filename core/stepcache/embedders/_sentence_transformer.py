"""Vectors from a sentence-transformers model: near means alike in meaning."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from stepcache._errors import ConfigurationError, EmbedderError, UsageError
from stepcache._forking import fork_safe_lock
from stepcache.protocols import Vector

if TYPE_CHECKING:
    import os

__all__ = ["SentenceTransformerEmbedder"]

_SAMPLE = 1024
"""Values of each weight tensor's beginning and end that enter the fingerprint."""


class SentenceTransformerEmbedder:
    """Embeds with any sentence-transformers model, on the machine the program runs on.

    The model is loaded by the constructor. Calls take milliseconds of computing, so the
    asynchronous engine moves them to a worker thread (``blocking``).

    Args:
        model: A model's name on the Hugging Face hub, the path of a folder it was saved in, or a
            ``SentenceTransformer`` already loaded.
        device: ``cpu``, ``cuda``, ``mps``; None lets the library choose. Only for a model that is
            loaded here.
        batch_size: Texts the model takes at once.

    Raises:
        ConfigurationError: The library is not installed, or the model cannot be loaded.
    """

    blocking = True

    def __init__(
        self,
        model: str | os.PathLike[str] | Any = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        device: str | None = None,
        batch_size: int = 32,
    ) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ConfigurationError(f"batch_size is {batch_size!r}: use a whole number from 1 on")
        loads = isinstance(model, str) or hasattr(model, "__fspath__")
        if not loads and not callable(getattr(model, "encode", None)):
            raise ConfigurationError(
                f"model is a {type(model).__name__}: give a name, a path or a SentenceTransformer"
            )
        self._model: Any = _load(model, device) if loads else model
        self._batch_size = batch_size
        # Tokenizers change their own settings while they work; two threads at once would clash.
        self._lock = fork_safe_lock()
        self._dimension = _dimension(self._model)
        self._fingerprint = _fingerprint(self._model, self._dimension)

    @property
    def fingerprint(self) -> str:
        """Follows from the model's architecture and weights, not from where it was loaded from."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    def embed(self, texts: Sequence[str], /) -> Vector:
        """float32 array of shape (len(texts), dimension), rows of unit length.

        Raises:
            UsageError: A single string was given in place of a sequence of them.
            EmbedderError: The model returned something that is no vector.
        """
        if isinstance(texts, str):
            raise UsageError("embed takes a sequence of texts: wrap the single one in a list")
        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        # Half a surrogate pair is no character, and tokenizers refuse it.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        with self._lock:
            raw = self._model.encode(
                clean,
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=False,
            )
        return _rows(raw, len(clean), self._dimension)


def _load(model: str | os.PathLike[str], device: str | None) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ConfigurationError(
            "SentenceTransformerEmbedder needs the package sentence-transformers: "
            "pip install 'stepcache[sentence-transformers]'"
        ) from error
    name = model if isinstance(model, str) else model.__fspath__()
    try:
        return SentenceTransformer(name, device=device)
    except Exception as error:
        raise ConfigurationError(
            f"the model {name!r} cannot be loaded ({type(error).__name__}): give the name of a "
            "model that can be reached, or the folder of one saved before"
        ) from error


def _dimension(model: Any) -> int:
    # The library renamed this method; the old name warns where the new one exists.
    for name in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
        ask = getattr(model, name, None)
        if callable(ask):
            dimension = ask()
            if isinstance(dimension, int) and dimension > 0:
                return dimension
    raise ConfigurationError("the model does not say its embedding dimension")


def _rows(raw: Any, count: int, dimension: int) -> Vector:
    vectors = np.asarray(raw, dtype=np.float32)
    if vectors.shape != (count, dimension) or not np.isfinite(vectors).all():
        raise EmbedderError(
            f"the model returned shape {vectors.shape} or values that are not finite; "
            f"expected {(count, dimension)}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        raise EmbedderError("the model returned a vector of length zero")
    unit: Vector = np.ascontiguousarray(vectors / lengths, dtype=np.float32)
    return unit


def _fingerprint(model: Any, dimension: int) -> str:
    """A hash of what shapes the vectors, from samples, so that large models stay quick to open."""
    state = blake2b(digest_size=16)
    parts = [type(part).__name__ for part in getattr(model, "children", lambda: ())()]
    state.update(f"{parts} {getattr(model, 'max_seq_length', None)}".encode())
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.detach().flatten()
        state.update(f"\0{name} {tuple(tensor.shape)}\0".encode())
        for sample in (flat[:_SAMPLE], flat[-_SAMPLE:]):
            state.update(sample.double().cpu().numpy().astype("<f8").tobytes())
    return f"sentence-transformer/1/{dimension}/{state.hexdigest()}"
