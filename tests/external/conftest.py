"""Finds the external test material, which is not part of this repository."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("STEPCACHE_EXTERNAL_DATA", Path(__file__).parents[2] / "../shared/data"))


@pytest.fixture(scope="session")
def external() -> Callable[[str], list[dict[str, Any]]]:
    """Reads the records of one open file, e.g. ``external("steps.jsonl")``; skips without it."""

    def read(name: str) -> list[dict[str, Any]]:
        path = ROOT / "open" / (name if name.endswith(".jsonl") else f"{name}.jsonl")
        if not path.is_file():
            pytest.skip(f"external data not found: {path} (set STEPCACHE_EXTERNAL_DATA)")
        with path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return read


@pytest.fixture(scope="session")
def external_path() -> Callable[[str], Path]:
    """Where one open file lies, e.g. ``external_path("pairs.jsonl")``; skips without it."""

    def find(name: str) -> Path:
        path = ROOT / "open" / name
        if not path.is_file():
            pytest.skip(f"external data not found: {path} (set STEPCACHE_EXTERNAL_DATA)")
        return path

    return find
