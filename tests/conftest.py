"""What every test can rely on."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_store_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key and no store comes from the environment in which the tests happen to run."""
    for name in ("STEPCACHE_KEY", "STEPCACHE_KEY_FILE", "STEPCACHE_STORE"):
        monkeypatch.delenv(name, raising=False)
