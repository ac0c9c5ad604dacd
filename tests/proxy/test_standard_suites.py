"""LangChain's own conformance suite for chat models, over ``ChatOpenAI`` through the proxy.

It runs three times: cold (each test behind a proxy of its own), and twice behind one proxy, so that
in the last run nearly every call is a hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from stepcache import StepCacheEngine
from stepcache.proxy import ProxyServer, create_app
from stepcache.testing.endpoint import ScriptedEndpoint
from stepcache.testing.obliging import obliging

# Of an old pydantic class under ``json_schema``, and of what it parsed itself, ChatOpenAI warns.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Received a Pydantic BaseModel V1:UserWarning"),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

# Asynchronous tests have a loop each; a connection kept alive would outlive its own.
_CLIENT = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0))
_served: dict[str, Any] = {}


@pytest.fixture(autouse=True, scope="module")
def _servers() -> Iterator[None]:
    cold, warm = StepCacheEngine(), StepCacheEngine()
    with (
        ScriptedEndpoint(obliging) as endpoint,
        ProxyServer(create_app(endpoint.url, engine=cold)) as one,
        ProxyServer(create_app(endpoint.url, engine=warm)) as other,
    ):
        _served.update(cold=one.url, warm=other.url, engine=cold, warm_engine=warm)
        yield


class _Proxied:
    way = "warm"

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        """LangChain's own, which knows nothing of us."""
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """What it needs to reach the proxy."""
        return {
            "model": "scripted",
            "base_url": _served.get(self.way),
            "api_key": "none",
            "stream_usage": True,
            "http_async_client": _CLIENT,
        }

    @property
    def supports_json_mode(self) -> bool:
        """The endpoint answers ``json_object``."""
        return True

    @property
    def model_override_value(self) -> str:
        """Another name, which the endpoint says back."""
        return "scripted-2"


class TestCold(_Proxied, ChatModelIntegrationTests):
    """Nothing is stored when a test begins."""

    way = "cold"

    @pytest.fixture(autouse=True)
    def _cold(self) -> None:
        _served["engine"].clear()


class TestFilling(_Proxied, ChatModelIntegrationTests):
    """One store for all: hits wherever two tests ask the same."""


class TestWarm(_Proxied, ChatModelIntegrationTests):
    """The same store again: nearly every call is a hit."""


def test_the_warm_run_was_warm() -> None:
    """More requests were answered from the cache than by the model, so the run above says much."""
    routes = _served["warm_engine"].routes
    if not routes:
        pytest.skip("the suites were not selected")
    assert routes.get("exact", 0) > routes.get("miss", 0)
