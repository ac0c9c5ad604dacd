"""``StepCacheChatModel``: any chat model, with the full engine in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from typing import Any, cast

from langchain_core.caches import BaseCache
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableParallel,
    RunnableSequence,
)
from pydantic import Field, SerializeAsAny, model_validator

from langchain_stepcache._answers import message_from, record_of, uncallable, usage_metadata
from langchain_stepcache._chunks import Chunks
from langchain_stepcache._control import noted, taken
from langchain_stepcache._ports import AsyncChatModelBackend, ChatModelBackend
from langchain_stepcache._requests import contract_of, identity_of, neutral_messages
from langchain_stepcache._tracing import Traced, traced
from langchain_stepcache._upkeep import Upkeep
from stepcache import Control, Outcome, Policy, Request, StepCacheEngine

__all__ = ["StepCacheChatModel"]

_INHERITED = ("output_version", "callbacks", "tags", "metadata", "disable_streaming")


class StepCacheChatModel(Upkeep, BaseChatModel):
    """A chat model that answers from verified steps and asks the wrapped model for the rest.

    Takes part in chains like any chat model: ``invoke``, ``batch``, ``stream`` and their
    asynchronous forms. Every answer carries ``response_metadata["stepcache"]``: route, reason,
    steps reused and patched, tokens spent and avoided, and the trace of the decision.

    Args:
        llm: The chat model to ask; a ``bind(...)`` of one is taken with its arguments.
        store: Where answers are kept: None (memory), a path, a URL or a ``Store``.
        embedder: What finds similar requests; None takes the lexical one.
        namespace: The wall around this model's entries, e.g. a tenant's name.
        tasks: Families of answers; None takes JSON, linear equations and text.
        policy: Every knob of the engine.
        ttl: Seconds an answer may be served.
        listeners: Told of every answer; see :mod:`stepcache.telemetry`.
        prefill: True when the endpoint continues a closing assistant message (llama.cpp does):
            a patch then goes on from the verified text itself.
        constrain: True when the endpoint takes ``response_format`` with a JSON schema: a missing
            key is then asked for under its own schema.
        stream_unverified: True to stream every miss as the model says it; by default a miss whose
            answer can be checked is streamed line by line, each once it is verified.
        group: A name under which models share answers on purpose: those of one group and one engine
            serve each other's. By default every model, endpoint and setting keeps its own.
        engine: A ready engine, to share one between models; the arguments above it are then not
            used.

    Example:
        ```python
        model = StepCacheChatModel(llm=ChatOpenAI(model="gpt-4.1-mini"))
        chain = prompt | model
        ```
    """

    llm: SerializeAsAny[BaseChatModel]
    llm_kwargs: dict[str, Any] = Field(default_factory=dict, repr=False)
    store: Any = Field(default=None, exclude=True, repr=False)
    embedder: Any = Field(default=None, exclude=True, repr=False)
    namespace: str = Field(default="", exclude=True)
    tasks: Any = Field(default=None, exclude=True, repr=False)
    policy: Policy | None = Field(default=None, exclude=True, repr=False)
    ttl: float | None = Field(default=None, exclude=True)
    listeners: Any = Field(default=(), exclude=True, repr=False)
    prefill: bool = False
    constrain: bool = False
    stream_unverified: bool = False
    group: str | None = None
    # A declared field: LangChain's configurable_fields rebuilds a model from its fields, and a
    # private attribute would come back empty.
    engine: Any = Field(default=None, exclude=True, repr=False)
    # Never LangChain's global cache in front of this one.
    cache: BaseCache | bool | None = Field(default=False, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _unwrap(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        llm = values.get("llm")
        if isinstance(llm, RunnableBinding) and isinstance(llm.bound, BaseChatModel):
            kwargs = {**llm.kwargs, **(values.get("llm_kwargs") or {})}
            values = {**values, "llm": llm.bound, "llm_kwargs": kwargs}
        elif llm is not None and not isinstance(llm, BaseChatModel):
            raise ValueError(
                f"llm is a {type(llm).__name__}: pass the chat model itself and add with_retry, "
                "with_fallbacks and the like to the StepCacheChatModel"
            )
        inner = values.get("llm")
        for name in _INHERITED:
            if inner is not None and name not in values:
                value = getattr(inner, name, None)
                if value is not None:
                    values = {**values, name: value}
        return values

    @model_validator(mode="after")
    def _with_engine(self) -> StepCacheChatModel:
        if self.engine is None:
            self.engine = StepCacheEngine(
                store=self.store,
                embedder=self.embedder,
                namespace=self.namespace,
                tasks=self.tasks,
                policy=self.policy,
                ttl=self.ttl,
                listeners=self.listeners,
            )
        return self

    # --- what the wrapped model says of itself -------------------------------------------------

    @property
    def model_name(self) -> str | None:
        """The wrapped model's name."""
        return getattr(self.llm, "model_name", None) or getattr(self.llm, "model", None)

    @property
    def _llm_type(self) -> str:
        return f"stepcache-{self.llm._llm_type}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"llm": self.llm._llm_type, **dict(self.llm._identifying_params)}

    def _get_invocation_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        _, kwargs = taken({**self.llm_kwargs, **kwargs})
        params = self.llm._get_invocation_params(stop=stop, **kwargs)
        return {**params, "_type": self._llm_type}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        _, kwargs = taken({**self.llm_kwargs, **kwargs})
        return self.llm._get_ls_params(stop=stop, **kwargs)

    def _resolve_model_profile(self) -> Any:
        return self.llm.profile

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None]) -> dict[str, Any]:
        return self.llm._combine_llm_outputs(llm_outputs)

    def get_token_ids(self, text: str) -> list[int]:
        return self.llm.get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        return self.llm.get_num_tokens(text)

    def get_num_tokens_from_messages(
        self, messages: list[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any
    ) -> int:
        return self.llm.get_num_tokens_from_messages(messages, tools, **kwargs)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | Any],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        bound = self.llm.bind_tools(tools, **kwargs)
        return cast("Runnable[LanguageModelInput, AIMessage]", _rebound(bound, self.llm, self))

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        structured = self.llm.with_structured_output(schema, include_raw=include_raw, **kwargs)
        return cast("Runnable[LanguageModelInput, Any]", _rebound(structured, self.llm, self))

    # --- what one call asks of the cache ---------------------------------------------------------
    # LangChain hands a call's configuration to none of the methods that answer, and takes away what
    # it knows of structured output; so both are noted where the call comes in.

    def invoke(
        self,
        input: LanguageModelInput,  # noqa: A002 - the host's name
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        return super().invoke(input, config, stop=stop, **noted(config, kwargs))

    async def ainvoke(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        return await super().ainvoke(input, config, stop=stop, **noted(config, kwargs))

    def stream(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessageChunk]:
        config, run = traced(config, self.callbacks)
        for chunk in super().stream(input, config, stop=stop, **noted(config, kwargs)):
            run.tell(chunk.response_metadata.get("stepcache"))
            yield chunk

    async def astream(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessageChunk]:
        config, run = traced(config, self.callbacks, asynchronous=True)
        chunks = super().astream(input, config, stop=stop, **noted(config, kwargs))
        try:
            async for chunk in chunks:
                run.tell(chunk.response_metadata.get("stepcache"))
                yield chunk
        finally:
            await cast("Any", chunks).aclose()

    def stream_events(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        # The older versions come by way of astream.
        if kwargs.get("version") == "v3":
            kwargs = noted(config, kwargs)
        return super().stream_events(input, config, **kwargs)

    def astream_events(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        if kwargs.get("version") == "v3":
            kwargs = noted(config, kwargs)
        return super().astream_events(input, config, **kwargs)

    # --- answering -----------------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request, control, kwargs = self._asked(messages, stop, kwargs)
        backend = self._backend(ChatModelBackend, messages, stop, run_manager, kwargs)
        outcome = self.engine.resolve(request, backend=backend, control=control)
        if backend.result is None and _uncallable(outcome, request):
            refresh = replace(control, refresh=True)
            outcome = self.engine.resolve(request, backend=backend, control=refresh)
        Traced.of(run_manager).tell(outcome.summary())
        return _answered(outcome, backend.result, _wants_parsed(kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request, control, kwargs = self._asked(messages, stop, kwargs)
        backend = self._backend(AsyncChatModelBackend, messages, stop, run_manager, kwargs)
        outcome = await self.engine.aresolve(request, backend=backend, control=control)
        if backend.result is None and _uncallable(outcome, request):
            refresh = replace(control, refresh=True)
            outcome = await self.engine.aresolve(request, backend=backend, control=refresh)
        Traced.of(run_manager).tell(outcome.summary())
        return _answered(outcome, backend.result, _wants_parsed(kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        request, control, kwargs = self._asked(messages, stop, kwargs)
        backend = self._backend(ChatModelBackend, messages, stop, None, kwargs)
        chunks = Chunks(request, _wants_parsed(kwargs))
        for at in (control, replace(control, refresh=True)):
            with closing(self.engine.stream(request, backend=backend, control=at)) as pieces:
                for piece in pieces:
                    yield from chunks.take(piece)
            if chunks.done:
                return

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        request, control, kwargs = self._asked(messages, stop, kwargs)
        backend = self._backend(AsyncChatModelBackend, messages, stop, None, kwargs)
        chunks = Chunks(request, _wants_parsed(kwargs))
        for at in (control, replace(control, refresh=True)):
            stream = self.engine.astream(request, backend=backend, control=at)
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    for chunk in chunks.take(piece):
                        yield chunk
            if chunks.done:
                return

    def _asked(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> tuple[Request, Control, dict[str, Any]]:
        """The request, what the call asks of the cache, and the arguments for the model."""
        asked, kwargs = taken({**self.llm_kwargs, **kwargs})
        control = asked.control
        if self.stream_unverified and control.stream_unverified is None:
            control = replace(control, stream_unverified=True)
        contract, rest = contract_of(kwargs, asked.schema)
        rest.pop("stream", None)
        request = Request(
            messages=neutral_messages(messages),
            params={"model": self._identity(), "stop": stop, **rest},
            contract=contract,
        )
        return request, control, kwargs

    def _identity(self) -> dict[str, Any]:
        return {"group": self.group} if self.group else identity_of(self.llm)

    def _backend(
        self,
        kind: type[Any],
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        return kind(
            self.llm,
            messages,
            stop=stop,
            run_manager=run_manager,
            kwargs=kwargs,
            prefill=self.prefill,
            constrain=self.constrain,
        )


def _answered(outcome: Outcome, result: ChatResult | None, parsed: bool) -> ChatResult:
    """The model's own result where its answer is what is served, else a fresh message."""
    if result is not None and _is_own(outcome, result):
        first = result.generations[0].message
        first.response_metadata = {**first.response_metadata, "stepcache": outcome.summary()}
        if outcome.spent.calls > 1 and isinstance(first, AIMessage):
            first.usage_metadata = usage_metadata(outcome.spent)
        return result
    message, info = message_from(outcome, parsed=parsed)
    return ChatResult(generations=[ChatGeneration(message=message, generation_info=info)])


def _wants_parsed(kwargs: dict[str, Any]) -> bool:
    """Whether the provider's parser looks for an object beside the text."""
    return isinstance(kwargs.get("response_format"), type)


def _uncallable(outcome: Outcome, request: Request) -> bool:
    """Whether a stored answer calls what this request does not offer."""
    return uncallable(record_of(outcome), request.contract.tools)


def _is_own(outcome: Outcome, result: ChatResult) -> bool:
    if outcome.route not in ("miss", "skip", "bypass") or not result.generations:
        return False
    if len(result.generations) > 1 or outcome.text == "":
        return True
    return str(result.generations[0].message.text) == outcome.text


def _rebound(runnable: Any, old: BaseChatModel, new: BaseChatModel) -> Any:
    """Swap the wrapped model for the wrapper in what its own ``bind_tools`` and
    ``with_structured_output`` return, so that the provider's parsers are kept."""
    if runnable is old:
        return new
    if isinstance(runnable, RunnableBinding):
        bound = _rebound(runnable.bound, old, new)
        return runnable.model_copy(update={"bound": bound})
    if isinstance(runnable, RunnableSequence):
        steps = [_rebound(step, old, new) for step in runnable.steps]
        return RunnableSequence(*steps, name=runnable.name)
    if isinstance(runnable, RunnableParallel):
        return RunnableParallel(
            {key: _rebound(step, old, new) for key, step in runnable.steps__.items()}
        )
    return runnable
