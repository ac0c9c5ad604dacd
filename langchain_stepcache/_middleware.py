"""``StepCacheMiddleware``: the cache for ``create_agent``, around every model call of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
except ImportError as error:
    raise ImportError(
        "StepCacheMiddleware needs langchain beside langchain-core: pip install 'langchain>=1.5,<2'"
    ) from error
from langchain_core.language_models import BaseChatModel

from langchain_stepcache._chat_model import StepCacheChatModel
from langchain_stepcache._upkeep import Upkeep
from stepcache import Policy, StepCacheEngine
from stepcache.protocols import Listener

__all__ = ["StepCacheMiddleware"]


class StepCacheMiddleware(Upkeep, AgentMiddleware):
    """Answers an agent's model calls from verified steps, and asks its model for the rest.

    Each call goes on to the agent with its model wrapped, by ``request.override``: tools are bound,
    structured answers parsed and tokens streamed by LangChain's own code, retries and other
    middleware keep working, and what has to be patched is asked of that same model. A model that
    is a ``StepCacheChatModel`` already is left alone.

    Put it last in the list of middleware: what stands before it may look at the model itself, and
    what it caches is then what the model is really asked.

    Args:
        store: Where answers are kept: None (memory), a path, a URL or a ``Store``.
        embedder: What finds similar requests; None takes the lexical one.
        namespace: The wall around these answers, e.g. a tenant's name.
        tasks: Families of answers; None takes JSON, linear equations and text.
        policy: Every knob of the engine.
        ttl: Seconds an answer may be served.
        listeners: Told of every answer; see :mod:`stepcache.telemetry`.
        prefill: As for ``StepCacheChatModel``.
        constrain: As for ``StepCacheChatModel``.
        engine: A ready engine, to share one; the engine's arguments above are then not used.

    Example:
        ```python
        agent = create_agent(model, tools, middleware=[StepCacheMiddleware()])
        agent.invoke({"messages": [...]}, {"configurable": {"stepcache": {"tags": "daily"}}})
        ```
    """

    def __init__(
        self,
        *,
        store: Any = None,
        embedder: Any = None,
        namespace: str = "",
        tasks: Sequence[Any] | None = None,
        policy: Policy | None = None,
        ttl: float | None = None,
        listeners: Sequence[Listener] = (),
        prefill: bool = False,
        constrain: bool = False,
        engine: StepCacheEngine | None = None,
    ) -> None:
        super().__init__()
        self.engine = engine or StepCacheEngine(
            store=store,
            embedder=embedder,
            namespace=namespace,
            tasks=tasks,
            policy=policy,
            ttl=ttl,
            listeners=listeners,
        )
        self.prefill = prefill
        self.constrain = constrain
        # Agents ask with the same model again and again; wrapping one costs about a millisecond.
        self._last: tuple[BaseChatModel, StepCacheChatModel] | None = None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._wrapped(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(self._wrapped(request))

    def _wrapped(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        model: Any = request.model
        if isinstance(model, StepCacheChatModel) or not isinstance(model, BaseChatModel):
            return request
        last = self._last
        if last is None or last[0] is not model:
            wrapped = StepCacheChatModel(
                llm=model, engine=self.engine, prefill=self.prefill, constrain=self.constrain
            )
            last = self._last = (model, wrapped)
        return request.override(model=last[1])
