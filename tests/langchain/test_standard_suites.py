"""LangChain's own conformance suites for chat models, over ``ChatOpenAI`` at a local endpoint.

They run three times: cold (each model its own engine), and twice with one engine shared by all
models, so that in the last run nearly every call is a hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests
from pydantic import model_validator

from langchain_stepcache import StepCacheChatModel
from stepcache import StepCacheEngine
from stepcache.testing.endpoint import ScriptedEndpoint
from stepcache.testing.obliging import obliging

# One test hands the method ``json_schema`` an old pydantic class, of which ChatOpenAI warns.
pytestmark = pytest.mark.filterwarnings("ignore:Received a Pydantic BaseModel V1:UserWarning")

# Asynchronous tests have a loop each; a connection kept alive would outlive its own.
_CLIENT = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0))

_OWN = frozenset(StepCacheChatModel.model_fields) - frozenset(BaseChatModel.model_fields)
_served: dict[str, str] = {}


@pytest.fixture(autouse=True, scope="module")
def _endpoint() -> Iterator[None]:
    with ScriptedEndpoint(obliging) as endpoint:
        _served["url"] = endpoint.url
        yield


class Flat(StepCacheChatModel):
    """The suites build a model from flat arguments; these go to the wrapped one."""

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, values: Any) -> Any:
        if "llm" in values:
            return values
        inner = {name: value for name, value in values.items() if name not in _OWN}
        own = {name: value for name, value in values.items() if name in _OWN}
        return {**own, "llm": ChatOpenAI(**inner)}

    @property
    def openai_api_key(self) -> Any:
        """The wrapped model's, which the suite looks for after a set-up from the environment."""
        return self.llm.openai_api_key  # type: ignore[attr-defined]


class _Wrapped:
    engine: StepCacheEngine | None = None

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        """The wrapper, built flat."""
        return Flat

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """What the wrapped model needs to reach the endpoint."""
        return {
            "model": "scripted",
            "base_url": _served.get("url"),
            "api_key": "none",
            "stream_usage": True,
            "http_async_client": _CLIENT,
            "engine": self.engine,
        }

    @property
    def supports_json_mode(self) -> bool:
        """The endpoint answers ``json_object``."""
        return True

    @property
    def model_override_value(self) -> str:
        """Another name, which the endpoint says back."""
        return "scripted-2"


class TestUnit(_Wrapped, ChatModelUnitTests):
    """Construction, binding, structured output, tracing parameters."""

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        """Environment, arguments, and the attributes these should lead to."""
        return (
            {"OPENAI_API_KEY": "from-env"},
            {"model": "scripted", "base_url": _served["url"]},
            {"openai_api_key": "from-env"},
        )


class TestCold(_Wrapped, ChatModelIntegrationTests):
    """Every call a miss."""


class TestFilling(_Wrapped, ChatModelIntegrationTests):
    """One engine for all: hits wherever two tests ask the same."""

    engine = StepCacheEngine()


class TestWarm(_Wrapped, ChatModelIntegrationTests):
    """The same engine again: nearly every call is a hit."""

    engine = TestFilling.engine


def test_the_warm_run_was_warm() -> None:
    """More requests were answered from the cache than by the model, so the run above says much."""
    assert TestWarm.engine is not None
    routes = TestWarm.engine.routes
    if not routes:
        pytest.skip("the suites were not selected")
    assert routes.get("exact", 0) > routes.get("miss", 0)
