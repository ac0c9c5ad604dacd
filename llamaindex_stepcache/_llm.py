"""``StepCacheLLM``: any LlamaIndex LLM, with its answers kept and reused step by step."""

from __future__ import annotations

import copy
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing
from typing import Any, cast

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM, ToolSelection
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import BaseTool
from pydantic import Field, PrivateAttr, SerializeAsAny

from llamaindex_stepcache._chunks import Chunks
from llamaindex_stepcache._ports import AsyncInnerLLM, InnerLLM, R
from llamaindex_stepcache._responses import chat_response, completion_response
from llamaindex_stepcache._translate import HostCall, to_request
from stepcache import ConfigurationError, Message, Outcome, Policy, Request
from stepcache.engine import StepCacheEngine
from stepcache.protocols import Embedder, Store, Task

__all__ = ["StepCacheLLM"]

# What the host applies on the object it was given, before or after chat() and complete().
_COPIED = (
    "system_prompt",
    "messages_to_prompt",
    "completion_to_prompt",
    "output_parser",
    "pydantic_program_mode",
    "query_wrapper_prompt",
    "callback_manager",
)
_ROUTED = (
    *("chat", "complete", "stream_chat", "stream_complete"),
    *("achat", "acomplete", "astream_chat", "astream_complete"),
)


class StepCacheLLM(FunctionCallingLLM):
    """Wraps an LLM; proven answers are reused, the model makes only what is missing.

    Every response tells how it came about in ``additional_kwargs["stepcache"]``: route, reason,
    reused and patched steps, tokens spent and avoided, trace. In a stream it is on the last chunk.
    The token counts beside it are what was spent now; the host's ``TokenCountingHandler`` takes a
    0 for unknown and counts the text of a hit itself, so read costs from here or from ``engine``.

    A setting without a JSON form (a tokenizer object, a dtype, a closure for a prompt) gives a call
    no safe identity: it passes through to the LLM, and the reason says which one it was.

    Args:
        llm: The LLM to ask. It keeps its own rate limiter, so hits are not throttled.
        store: Where answers live: None (memory), a path or ``sqlite:///`` URL, or any store.
        embedder: What finds similar requests; None takes the built-in lexical one.
        namespace: The wall around this LLM's answers, e.g. a tenant.
        tasks: Families of answers; None takes the built-in ones.
        policy: Every knob; None takes the safe defaults.
        ttl: Seconds an answer may be served; None keeps it.
        prefill: Whether the LLM's endpoint goes on from a closing assistant message.
        engine: An engine to share between wrappers, instead of the arguments from ``store`` to
            ``ttl`` (``namespace`` excepted).
        **kwargs: Fields of a LlamaIndex LLM; those not given are taken over from ``llm``.

    Raises:
        ConfigurationError: An argument cannot work; the message says which and the fix.

    Examples:
        `pip install 'stepcache[llamaindex]' llama-index-llms-openai-like`

        ```python
        from llama_index.core import Settings
        from llama_index.llms.openai_like import OpenAILike
        from llamaindex_stepcache import StepCacheLLM

        inner = OpenAILike(model="m", api_base="http://127.0.0.1:8080/v1", is_chat_model=True)
        Settings.llm = StepCacheLLM(llm=inner, store="answers.db")
        print(Settings.llm.complete("Solve 2x + 3 = 13 for x.").additional_kwargs["stepcache"])
        ```
    """

    # Neither dumped nor shown: its fields may hold a key.
    llm: SerializeAsAny[LLM] = Field(exclude=True, repr=False, description="The LLM to ask.")
    namespace: str = Field(default="", description="The wall around this LLM's answers.")
    prefill: bool = Field(
        default=False, description="Whether the endpoint continues a closing assistant message."
    )

    _engine: StepCacheEngine = PrivateAttr()
    _view_class: Any = PrivateAttr(default=None)

    def __init__(
        self,
        llm: LLM,
        *,
        store: str | os.PathLike[str] | Store | None = None,
        embedder: Embedder | None = None,
        namespace: str = "",
        tasks: Sequence[Task] | None = None,
        policy: Policy | None = None,
        ttl: float | None = None,
        prefill: bool = False,
        engine: StepCacheEngine | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(llm, LLM):
            raise ConfigurationError(f"llm is {llm!r}: pass a LlamaIndex LLM")
        for name in _COPIED:
            value = getattr(llm, name, None)
            if value is not None:
                kwargs.setdefault(name, value)
        super().__init__(llm=llm, namespace=namespace, prefill=prefill, **kwargs)
        given = {"store": store, "embedder": embedder, "tasks": tasks, "policy": policy, "ttl": ttl}
        surplus = [name for name, value in given.items() if value is not None]
        if engine is None:
            engine = StepCacheEngine(**cast("dict[str, Any]", given))
        elif surplus:
            raise ConfigurationError(
                f"engine and {', '.join(surplus)} are both given: the engine already has its own"
            )
        self._engine = engine

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> StepCacheLLM:
        """A copy that shares the engine, as two applications of one cache do."""
        return super().__deepcopy__({**(memo or {}), id(self._engine): self._engine})

    @classmethod
    def class_name(cls) -> str:
        """The name this class goes by in events and serialised settings."""
        return "stepcache_llm"

    @property
    def engine(self) -> StepCacheEngine:
        """The engine behind this LLM: ``routes``, ``count``, ``forget``, ``clear``, ``close``."""
        return self._engine

    @property
    def metadata(self) -> LLMMetadata:
        """What the wrapped LLM says of itself."""
        return self.llm.metadata

    @property
    def model(self) -> str:
        """Name of the model that is asked."""
        return self.metadata.model_name

    def to_payload(self) -> dict[str, Any]:
        """A description without credentials, for events."""
        described = getattr(self.llm, "to_payload", self.metadata.model_dump)()
        return {
            **described,
            "class_name": self.class_name(),
            "inner_class_name": self.llm.class_name(),
        }

    # --- answering -----------------------------------------------------------------------------

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation."""
        return self._answer(_chat(messages, kwargs), chat_response)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation, asynchronously down to the wrapped LLM."""
        return await self._aanswer(_chat(messages, kwargs), chat_response)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Answer a conversation in pieces; closing early keeps nothing."""
        return self._stream(_chat(messages, kwargs), ChatResponse, chat_response)

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        """As :meth:`stream_chat`, asynchronously."""
        return self._astream(_chat(messages, kwargs), ChatResponse, chat_response)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer a prompt."""
        return self._answer(_complete(prompt, formatted, kwargs), completion_response)

    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        """Answer a prompt, asynchronously down to the wrapped LLM."""
        return await self._aanswer(_complete(prompt, formatted, kwargs), completion_response)

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """Answer a prompt in pieces; closing early keeps nothing."""
        call = _complete(prompt, formatted, kwargs)
        return self._stream(call, CompletionResponse, completion_response)

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        """As :meth:`stream_complete`, asynchronously."""
        call = _complete(prompt, formatted, kwargs)
        return self._astream(call, CompletionResponse, completion_response)

    # --- through the engine --------------------------------------------------------------------

    def _answer(self, call: HostCall, build: Callable[[Outcome, R | None], R]) -> R:
        request = self._request(call)
        backend: InnerLLM[R] = InnerLLM(self._inner(), call, request, self.prefill)
        return build(self._engine.resolve(request, backend=backend), backend.original)

    async def _aanswer(self, call: HostCall, build: Callable[[Outcome, R | None], R]) -> R:
        request = self._request(call)
        backend: AsyncInnerLLM[R] = AsyncInnerLLM(self._inner(), call, request, self.prefill)
        return build(await self._engine.aresolve(request, backend=backend), backend.original)

    def _stream(
        self, call: HostCall, kind: type[R], build: Callable[[Outcome, R | None], R]
    ) -> Generator[R, None, None]:
        request = self._request(call)
        backend: InnerLLM[R] = InnerLLM(self._inner(), call, request, self.prefill)
        chunks = Chunks(kind, build)
        pieces: Iterator[Any] = self._engine.stream(request, backend=backend)
        with closing(cast("Generator[Any, None, None]", pieces)):
            try:
                for piece in pieces:
                    chunk = chunks.feed(piece, backend.original)
                    if chunk is not None:
                        yield chunk
            except Exception:
                if chunks.held is not None:
                    yield chunks.held
                raise

    async def _astream(
        self, call: HostCall, kind: type[R], build: Callable[[Outcome, R | None], R]
    ) -> AsyncGenerator[R, None]:
        request = self._request(call)
        backend: AsyncInnerLLM[R] = AsyncInnerLLM(self._inner(), call, request, self.prefill)
        chunks = Chunks(kind, build)
        pieces: AsyncIterator[Any] = self._engine.astream(request, backend=backend)
        async with aclosing(backend), aclosing(cast("AsyncGenerator[Any, None]", pieces)):
            try:
                async for piece in pieces:
                    chunk = chunks.feed(piece, backend.original)
                    if chunk is not None:
                        yield chunk
            except Exception:
                if chunks.held is not None:
                    yield chunks.held
                raise

    def _request(self, call: HostCall) -> Request:
        try:
            return to_request(call, self.llm, self.namespace)
        except Exception as error:  # noqa: BLE001 - whatever we cannot read, the LLM may
            # Something without a JSON form has no identity: the engine passes it through.
            return Request(messages=(Message(role="user", text=""),), params={"unread": error})

    def _inner(self) -> LLM:
        """The wrapped LLM, not telling handlers again what this object tells them already.

        Token counters would count a miss twice. The copy shares clients and other private state
        with the original.
        """
        ours = self.callback_manager.handlers
        others = [h for h in self.llm.callback_manager.handlers if h not in ours]
        if len(others) == len(self.llm.callback_manager.handlers):
            return self.llm
        manager = CallbackManager([])
        manager.set_handlers(others)
        quiet = copy.copy(self.llm)
        object.__setattr__(quiet, "__pydantic_private__", self.llm.__pydantic_private__)
        quiet.__dict__["callback_manager"] = manager
        return quiet

    # --- tools ---------------------------------------------------------------------------------

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        prepared: dict[str, Any] = self._function_calling()._prepare_chat_with_tools_compat(
            tools,
            user_msg=user_msg,
            # Some LLMs append to the list they are given, and that one is the caller's.
            chat_history=list(chat_history or []),
            verbose=verbose,
            allow_parallel_tool_calls=allow_parallel_tool_calls,
            tool_required=tool_required,
            **kwargs,
        )
        return prepared

    def _validate_chat_with_tools_response(
        self,
        response: ChatResponse,
        tools: Sequence[BaseTool],
        allow_parallel_tool_calls: bool = False,
        **kwargs: Any,
    ) -> ChatResponse:
        return self._function_calling()._validate_chat_with_tools_response(
            response, tools, allow_parallel_tool_calls=allow_parallel_tool_calls, **kwargs
        )

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """The tool calls in a response, read the way the wrapped LLM reads them."""
        return self._function_calling().get_tool_calls_from_response(
            response, error_on_no_tool_call=error_on_no_tool_call, **kwargs
        )

    def _function_calling(self) -> FunctionCallingLLM:
        if not isinstance(self.llm, FunctionCallingLLM):
            raise NotImplementedError(f"{self.llm.class_name()} does not call tools")
        return self.llm

    # --- structured output ---------------------------------------------------------------------

    def structured_predict(
        self,
        output_cls: type[Any],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Any:
        """An instance of ``output_cls``, made the way the wrapped LLM makes one."""
        view = self._routed()
        return view.structured_predict(
            output_cls, prompt, llm_kwargs=dict(llm_kwargs or {}), **prompt_args
        )

    async def astructured_predict(
        self,
        output_cls: type[Any],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Any:
        """As :meth:`structured_predict`, asynchronously."""
        view = self._routed()
        return await view.astructured_predict(
            output_cls, prompt, llm_kwargs=dict(llm_kwargs or {}), **prompt_args
        )

    def stream_structured_predict(
        self,
        output_cls: type[Any],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Generator[Any, None, None]:
        """Growing instances of ``output_cls``."""
        yield from self._routed().stream_structured_predict(
            output_cls, prompt, llm_kwargs=dict(llm_kwargs or {}), **prompt_args
        )

    async def astream_structured_predict(
        self,
        output_cls: type[Any],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> AsyncGenerator[Any, None]:
        """As :meth:`stream_structured_predict`, asynchronously."""
        return await self._routed().astream_structured_predict(
            output_cls, prompt, llm_kwargs=dict(llm_kwargs or {}), **prompt_args
        )

    def _routed(self) -> LLM:
        """The wrapped LLM seen through this one: its own way of asking for structure, but every
        question goes through the cache.

        Inheriting the host's general way would lose a provider's JSON-schema mode; calling the
        wrapped LLM's would go past the cache.
        """
        base, known = type(self.llm), self._view_class
        # A copy of this object brings along the class that leads to the original.
        if known is None or known.__bases__ != (base,) or known.stepcache_outer is not self:
            self._view_class = _routed_class(base, self)
        view = copy.copy(self.llm)
        object.__setattr__(view, "__class__", self._view_class)
        return view


def _chat(messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> HostCall:
    return HostCall(kind="chat", messages=messages, kwargs=kwargs)


def _complete(prompt: str, formatted: bool, kwargs: dict[str, Any]) -> HostCall:
    messages = [ChatMessage(role="user", content=prompt)]
    return HostCall(
        kind="complete", messages=messages, kwargs=kwargs, prompt=prompt, formatted=formatted
    )


def _routed_class(base: type[LLM], outer: StepCacheLLM) -> type[LLM]:
    """A subclass whose eight ways of asking lead to ``outer``."""
    view: Any = type(f"Routed{base.__name__}", (base,), {"__module__": __name__})
    view.stepcache_outer = outer
    for name in _ROUTED:
        # Set afterwards, past the host's hook that wraps a class's methods in spans of their own.
        setattr(view, name, _to_outer(outer, name))
    return cast("type[LLM]", view)


def _to_outer(outer: StepCacheLLM, name: str) -> Callable[..., Any]:
    def routed(_view: LLM, *args: Any, **kwargs: Any) -> Any:
        return getattr(outer, name)(*args, **kwargs)

    return routed
