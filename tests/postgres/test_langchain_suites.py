"""LangChain's own conformance suites for caches, over PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.caches import BaseCache
from langchain_tests.integration_tests import AsyncCacheTestSuite, SyncCacheTestSuite

from langchain_stepcache import StepCache


class TestSyncPostgres(SyncCacheTestSuite):
    """The synchronous suite."""

    @pytest.fixture
    def cache(self, opened: Callable[..., Any]) -> BaseCache:
        """A cache in a schema of its own."""
        return StepCache(store=opened())


class TestAsyncPostgres(AsyncCacheTestSuite):
    """The asynchronous suite."""

    @pytest.fixture
    async def cache(self, opened: Callable[..., Any]) -> BaseCache:
        """A cache in a schema of its own."""
        return StepCache(store=opened())
