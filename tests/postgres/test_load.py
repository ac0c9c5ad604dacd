"""Four processes on one PostgreSQL: ``STEPCACHE_LOAD_SECONDS``, 2 by default; a full run takes 60."""

from __future__ import annotations

import os
from typing import Any

from stepcache.testing.load import check_load, faults_of

SECONDS = float(os.environ.get("STEPCACHE_LOAD_SECONDS", "2"))


def test_four_processes_share_a_server(own_server: Any) -> None:
    """No error, nothing lost, nothing of another namespace, one model call for each thing asked."""
    figures = check_load(own_server.url, seconds=SECONDS)
    assert faults_of(figures) == []
    assert figures["keys"] > 10
    assert figures["requests"] > figures["model_calls"]
    assert min(figures[name] for name in ("puts", "gets", "searches")) > 0
