"""LangChain's own conformance suites for caches, over both local stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.caches import BaseCache
from langchain_tests.integration_tests import AsyncCacheTestSuite, SyncCacheTestSuite

from langchain_stepcache import StepCache


class TestSyncMemory(SyncCacheTestSuite):
    """The synchronous suite on the memory store."""

    @pytest.fixture
    def cache(self) -> BaseCache:
        """A fresh, empty cache."""
        return StepCache()


class TestAsyncMemory(AsyncCacheTestSuite):
    """The asynchronous suite on the memory store."""

    @pytest.fixture
    async def cache(self) -> BaseCache:
        """A fresh, empty cache."""
        return StepCache()


class TestSyncSQLite(SyncCacheTestSuite):
    """The synchronous suite on the SQLite store."""

    @pytest.fixture
    def cache(self, tmp_path: Path) -> Iterator[BaseCache]:
        """A cache on a fresh file."""
        cache = StepCache(store=tmp_path / "cache.sqlite3")
        yield cache
        cache.engine.close()


class TestAsyncSQLite(AsyncCacheTestSuite):
    """The asynchronous suite on the SQLite store."""

    @pytest.fixture
    async def cache(self, tmp_path: Path) -> Iterator[BaseCache]:
        """A cache on a fresh file."""
        cache = StepCache(store=tmp_path / "cache.sqlite3")
        yield cache
        cache.engine.close()
