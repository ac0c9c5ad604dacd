"""A local model for trying things out: fetched, checked and served in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stepcache.demo._server import LocalModelServer
from stepcache.demo._weights import MODELS, fetch

__all__ = ["local_model"]


@contextmanager
def local_model(model: str = "qwen2.5-coder-0.5b") -> Iterator[str]:
    """Serve a small instruct model on loopback while the context is open.

    Args:
        model: ``qwen2.5-coder-0.5b`` (491 MB, right on most simple tasks) or ``smollm2`` (98 MB,
            quick and mostly wrong). Weights are fetched once and accepted by their SHA-256 only.

    Yields:
        The base URL for OpenAI clients, e.g. ``http://127.0.0.1:40123/v1``.

    Raises:
        ValueError: No model of that name.
        WeightsError: The weights cannot be had.
        LocalServerError: The server does not come up.
    """
    weights = MODELS.get(model)
    if weights is None:
        raise ValueError(f"model is {model!r}: use one of {', '.join(sorted(MODELS))}")
    with LocalModelServer(fetch(weights), name=weights.name) as server:
        yield server.base_url
