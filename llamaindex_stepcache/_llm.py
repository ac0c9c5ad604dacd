"""``StepCacheLLM``: any LlamaIndex LLM, with its answers kept and reused step by step."""

from __future__ import annotations

import copy
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

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
from llama_index.core.llms.llm import LLM
from pydantic import Field, PrivateAttr

from llamaindex_stepcache._chunks import Chunks
from llamaindex_stepcache._control import KEY, merged
from llamaindex_stepcache._events import dispatch_answer
from llamaindex_stepcache._forms import HostForms
from llamaindex_stepcache._ledger import Ledger
from llamaindex_stepcache._ports import AsyncInnerLLM, InnerLLM, R
from llamaindex_stepcache._responses import chat_response, completion_response
from llamaindex_stepcache._translate import HostCall, to_request
from llamaindex_stepcache._view import quiet
from stepcache import ConfigurationError, Control, Message, Outcome, Policy, Request, Usage
from stepcache.engine import StepCacheEngine
from stepcache.protocols import Embedder, Listener, Store, Task

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


class StepCacheLLM(HostForms):
    """Wraps an LLM; proven answers are reused, the model makes only what is missing.

    Every response tells how it came about in ``additional_kwargs["stepcache"]``: route, reason,
    reused and patched steps, tokens spent and avoided, trace. In a stream it is on the last chunk.
    The token counts beside it are what was spent now; the host's ``TokenCountingHandler`` takes a
    0 for unknown and counts the text of a hit itself. Read costs from here, from :attr:`spent` and
    :attr:`avoided`, or with :class:`~llamaindex_stepcache.StepCacheTokenCounter` in its place.

    A copy shares the engine. A pickle opens the same ``store`` again where that was a path, and
    starts with an empty memory otherwise.

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
        listeners: Told of every answer; see :mod:`stepcache.telemetry`. Not part of a pickle.
        prefill: Whether the LLM's endpoint goes on from a closing assistant message.
        engine: An engine to share between wrappers, instead of the arguments from ``store`` to
            ``listeners`` (``namespace`` excepted).
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

    namespace: str = Field(default="", description="The wall around this LLM's answers.")
    prefill: bool = Field(
        default=False, description="Whether the endpoint continues a closing assistant message."
    )

    _engine: StepCacheEngine = PrivateAttr()
    _ledger: Ledger = PrivateAttr(default_factory=Ledger)
    _plain_given: dict[str, Any] = PrivateAttr(default_factory=dict)
    _parts_given: dict[str, Any] = PrivateAttr(default_factory=dict)

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
        listeners: Sequence[Listener] = (),
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
        kwargs.update(llm=llm, namespace=namespace, prefill=prefill)
        super().__init__(**kwargs)
        given: dict[str, Any] = {
            "store": store,
            "embedder": embedder,
            "tasks": tasks,
            "policy": policy,
            "ttl": ttl,
            "listeners": listeners or None,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if engine is None:
            engine = StepCacheEngine(**given)
        elif given:
            raise ConfigurationError(
                f"engine and {', '.join(given)} are both given: the engine already has its own"
            )
        self._engine = engine
        path = store if isinstance(store, (str, os.PathLike)) else None
        self._plain_given = {"store": path, "policy": policy, "ttl": ttl}
        self._parts_given = {"embedder": embedder, "tasks": tasks}

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: the settings, not the engine. The LLM has to be picklable."""
        private = dict(self.__pydantic_private__ or {})
        bare = copy.copy(self)
        for name in ("_engine", "_ledger"):
            private.pop(name, None)
        object.__setattr__(bare, "__pydantic_private__", private)
        state: dict[str, Any] = super(StepCacheLLM, bare).__getstate__()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        private = state.get("__pydantic_private__") or {}
        given = {**private.get("_plain_given", {}), **private.get("_parts_given", {})}
        self.__init__(**state["__dict__"], **given)  # type: ignore[misc]
        self._standing = private.get("_standing", self._standing)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> StepCacheLLM:
        """A copy that shares the engine, as two applications of one cache do."""
        shared = {id(part): part for part in (self._engine, self._ledger)}
        return super().__deepcopy__({**(memo or {}), **shared})

    @classmethod
    def class_name(cls) -> str:
        """The name this class goes by in events and serialised settings."""
        return "stepcache_llm"

    @property
    def engine(self) -> StepCacheEngine:
        """The engine behind this LLM: ``routes``, ``count``, ``forget``, ``clear``, ``close``."""
        return self._engine

    def forget(
        self,
        entry_id: str | None = None,
        *,
        tag: str | None = None,
        namespace: str | None = None,
        older_than: float | None = None,
        where: Callable[[Any], bool] | None = None,
    ) -> int:
        """Remove answers: one entry, or all that have everything named in common: a tag, a
        namespace, an age in seconds, a predicate of the entry. Returns how many.

        Calls that hand out no response (engines, agents, structured output) can be given a tag to
        forget their answers by, with ``stepcache={"tags": ...}`` or :meth:`controlled`.
        """
        return self._engine.forget(
            entry_id, tag=tag, namespace=namespace, older_than=older_than, where=where
        )

    def report_bad(self, entry_id: str) -> bool:
        """Remove an entry whose answer was bad, and keep that answer from coming back.

        Args:
            entry_id: ``additional_kwargs["stepcache"]["entry_id"]`` of the bad response.
        """
        return self._engine.report_bad(entry_id)

    @property
    def spent(self) -> Usage:
        """Model calls and tokens paid for by all answers so far, as the model told them."""
        return self._ledger.spent

    @property
    def avoided(self) -> Usage:
        """Model calls and tokens that all answers so far did not need."""
        return self._ledger.avoided

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
        return self._answer(self._chat(messages, kwargs), chat_response)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation, asynchronously down to the wrapped LLM."""
        return await self._aanswer(self._chat(messages, kwargs), chat_response)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Answer a conversation in pieces; closing early keeps nothing."""
        return self._stream(self._chat(messages, kwargs), ChatResponse, chat_response)

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        """As :meth:`stream_chat`, asynchronously."""
        return self._astream(self._chat(messages, kwargs), ChatResponse, chat_response)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer a prompt."""
        return self._answer(self._complete(prompt, formatted, kwargs), completion_response)

    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        """Answer a prompt, asynchronously down to the wrapped LLM."""
        return await self._aanswer(self._complete(prompt, formatted, kwargs), completion_response)

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """Answer a prompt in pieces; closing early keeps nothing."""
        call = self._complete(prompt, formatted, kwargs)
        return self._stream(call, CompletionResponse, completion_response)

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        """As :meth:`stream_complete`, asynchronously."""
        call = self._complete(prompt, formatted, kwargs)
        return self._astream(call, CompletionResponse, completion_response)

    # --- through the engine --------------------------------------------------------------------

    def _answer(self, call: _Call, build: Build[R]) -> R:
        request, control = self._request(call), call.control
        backend: InnerLLM[R] = InnerLLM(self._inner(), call.host, request, self.prefill)
        outcome = self._engine.resolve(request, backend=backend, control=control)
        self._told(outcome)
        return build(outcome, backend.original, tool=call.host.answer_tool)

    async def _aanswer(self, call: _Call, build: Build[R]) -> R:
        request, control = self._request(call), call.control
        backend: AsyncInnerLLM[R] = AsyncInnerLLM(self._inner(), call.host, request, self.prefill)
        outcome = await self._engine.aresolve(request, backend=backend, control=control)
        self._told(outcome)
        return build(outcome, backend.original, tool=call.host.answer_tool)

    def _stream(self, call: _Call, kind: type[R], build: Build[R]) -> Generator[R, None, None]:
        request, control = self._request(call), call.control
        backend: InnerLLM[R] = InnerLLM(self._inner(), call.host, request, self.prefill)
        chunks = Chunks(kind, partial(build, tool=call.host.answer_tool))
        pieces: Iterator[Any] = self._engine.stream(request, backend=backend, control=control)
        with closing(cast("Generator[Any, None, None]", pieces)):
            try:
                for piece in pieces:
                    if isinstance(piece, Outcome):
                        self._told(piece)
                    yield from chunks.feed(piece, backend.original)
            except Exception:
                if chunks.held is not None:
                    yield chunks.held
                raise

    async def _astream(
        self, call: _Call, kind: type[R], build: Build[R]
    ) -> AsyncGenerator[R, None]:
        request, control = self._request(call), call.control
        backend: AsyncInnerLLM[R] = AsyncInnerLLM(self._inner(), call.host, request, self.prefill)
        chunks = Chunks(kind, partial(build, tool=call.host.answer_tool))
        pieces: AsyncIterator[Any] = self._engine.astream(request, backend=backend, control=control)
        async with aclosing(backend), aclosing(cast("AsyncGenerator[Any, None]", pieces)):
            try:
                async for piece in pieces:
                    if isinstance(piece, Outcome):
                        self._told(piece)
                    for chunk in chunks.feed(piece, backend.original):
                        yield chunk
            except Exception:
                if chunks.held is not None:
                    yield chunks.held
                raise

    def _told(self, outcome: Outcome) -> None:
        self._ledger.note(outcome)
        dispatch_answer(outcome)

    def _chat(self, messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> _Call:
        rest, control = self._wishes(kwargs)
        host = HostCall(kind="chat", messages=messages, kwargs=rest, structured=self._structured)
        return _Call(host=host, control=control)

    def _complete(self, prompt: str, formatted: bool, kwargs: dict[str, Any]) -> _Call:
        rest, control = self._wishes(kwargs)
        messages = [ChatMessage(role="user", content=prompt)]
        host = HostCall(
            kind="complete",
            messages=messages,
            kwargs=rest,
            prompt=prompt,
            formatted=formatted,
            structured=self._structured,
        )
        return _Call(host=host, control=control)

    def _wishes(self, kwargs: dict[str, Any]) -> tuple[dict[str, Any], Control]:
        """The arguments that are the LLM's, and what the caller asks of the cache."""
        rest = {name: value for name, value in kwargs.items() if name != KEY}
        return rest, merged(self._standing, kwargs.get(KEY))

    def _request(self, call: _Call) -> Request:
        wall = call.control.namespace
        try:
            return to_request(call.host, self.llm, self.namespace if wall is None else wall)
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
        return quiet(self.llm, manager)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call: what goes to the LLM, and what is asked of the cache."""

    host: HostCall
    control: Control


class Build(Protocol[R]):
    """Makes a response out of an outcome and, where there is one, the LLM's own response."""

    def __call__(self, outcome: Outcome, original: R | None, *, tool: str | None) -> R: ...
