"""A real local model server, fetched once and started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stepcache.demo._server import LocalModelServer
from stepcache.demo._weights import MODELS, fetch


@pytest.fixture(scope="session")
def small_model_server() -> Iterator[LocalModelServer]:
    """SmolLM2 behind HTTP on loopback; its weights are fetched if they are not there yet."""
    path = fetch(MODELS["smollm2"])
    with LocalModelServer(path, name="smollm2", ctx=2048) as server:
        yield server
