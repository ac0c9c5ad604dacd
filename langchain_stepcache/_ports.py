"""A LangChain chat model as a StepCache backend, for one call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_stepcache._answers import reply_from
from langchain_stepcache._requests import from_neutral
from stepcache import ModelCall, Reply
from stepcache.protocols import Delta

__all__ = ["AsyncChatModelBackend", "ChatModelBackend"]


class _Shared:
    """What both backends know of the call: the host's own messages and arguments.

    Attributes:
        result: The model's own result of the whole-answer call, for handing it on untouched.
    """

    def __init__(
        self,
        llm: BaseChatModel,
        messages: Sequence[BaseMessage],
        *,
        stop: list[str] | None = None,
        run_manager: Any = None,
        kwargs: Mapping[str, Any] | None = None,
        prefill: bool = False,
        constrain: bool = False,
    ) -> None:
        self.llm = _uncached(llm)
        self.messages = list(messages)
        self.stop = stop
        self.run_manager = run_manager
        self.kwargs = dict(kwargs or {})
        self.prefill = prefill
        self.constrain = constrain
        self.result: ChatResult | None = None

    @property
    def streams(self) -> bool:
        kind = type(self.llm)
        implemented = (
            kind._stream is not BaseChatModel._stream or kind._astream is not BaseChatModel._astream
        )
        return implemented and self.llm.disable_streaming is not True

    def arguments(self, call: ModelCall) -> tuple[list[BaseMessage], Any, dict[str, Any]]:
        """Messages, run manager and keyword arguments for one call.

        Only the whole answer is the user's own call; what we ask beside it must not reach their
        callbacks as tokens of the answer.
        """
        if call.purpose == "answer":
            return self.messages, self.run_manager, self.kwargs
        messages = from_neutral(call.messages, self.messages)
        if call.prefix is not None and self.prefill:
            messages.append(AIMessage(call.prefix))
        kwargs = dict(self.kwargs)
        if call.purpose == "patch":
            kwargs.pop("response_format", None)
            if call.schema is not None and self.constrain:
                schema = {"name": "missing_part", "schema": dict(call.schema), "strict": False}
                kwargs["response_format"] = {"type": "json_schema", "json_schema": schema}
        return messages, None, kwargs

    def replied(self, call: ModelCall, result: ChatResult) -> Reply:
        if call.purpose == "answer":
            self.result = result
        return _reply(result, self.kwargs.get("tools") or ())


class ChatModelBackend(_Shared):
    """Asks a chat model synchronously, through the same path its own ``invoke`` takes."""

    def generate(self, call: ModelCall, /) -> Reply:
        messages, run_manager, kwargs = self.arguments(call)
        result = self.llm._generate_with_cache(
            messages, stop=self.stop, run_manager=run_manager, **kwargs
        )
        return self.replied(call, result)

    def stream(self, call: ModelCall, /) -> Iterator[Delta | Reply]:
        messages, _, kwargs = self.arguments(call)
        if not self.streams or type(self.llm)._stream is BaseChatModel._stream:
            yield from _whole(self.generate(call), self.result)
            return
        if self.llm.rate_limiter:
            self.llm.rate_limiter.acquire(blocking=True)
        total: ChatGenerationChunk | None = None
        for chunk in self.llm._stream(messages, stop=self.stop, **kwargs):
            total = chunk if total is None else total + chunk
            yield Delta(text=_shown(chunk), payload=chunk)
        if total is not None:
            yield self.replied(call, _result(total))


class AsyncChatModelBackend(_Shared):
    """Asks a chat model asynchronously."""

    async def generate(self, call: ModelCall, /) -> Reply:
        messages, run_manager, kwargs = self.arguments(call)
        result = await self.llm._agenerate_with_cache(
            messages, stop=self.stop, run_manager=run_manager, **kwargs
        )
        return self.replied(call, result)

    async def stream(self, call: ModelCall, /) -> AsyncIterator[Delta | Reply]:
        messages, _, kwargs = self.arguments(call)
        if not self.streams:
            for item in _whole(await self.generate(call), self.result):
                yield item
            return
        if self.llm.rate_limiter:
            await self.llm.rate_limiter.aacquire(blocking=True)
        total: ChatGenerationChunk | None = None
        async for chunk in self.llm._astream(messages, stop=self.stop, **kwargs):
            total = chunk if total is None else total + chunk
            yield Delta(text=_shown(chunk), payload=chunk)
        if total is not None:
            yield self.replied(call, _result(total))


def _shown(chunk: ChatGenerationChunk) -> str:
    """The text of a chunk that is nothing else. Of content in blocks nothing is shown before the
    end: what its text alone would be is only known then."""
    content = chunk.message.content
    return content if isinstance(content, str) else ""


def _uncached(llm: BaseChatModel) -> BaseChatModel:
    """The model with LangChain's own cache off, so that nothing is looked up or kept twice."""
    caching = llm.cache is not False and (llm.cache is not None or get_llm_cache() is not None)
    return llm.model_copy(update={"cache": False}) if caching else llm


def _reply(result: ChatResult, tools: Sequence[Any]) -> Reply:
    first = result.generations[0]
    reply = reply_from(first, result.llm_output, tools)
    if len(result.generations) == 1:
        return reply
    # Several samples are one answer only to the very same request, and only in the caller's hands.
    return Reply(
        text="", usage=reply.usage, message=None, finish_reason="several answers", reusable=False
    )


def _result(total: ChatGenerationChunk) -> ChatResult:
    from langchain_core.messages import AIMessageChunk, message_chunk_to_message

    message: Any = total.message
    if isinstance(message, AIMessageChunk):
        message = message_chunk_to_message(message)
    generation = ChatGeneration(message=message, generation_info=total.generation_info)
    return ChatResult(generations=[generation])


def _whole(reply: Reply, result: ChatResult | None) -> Iterator[Delta | Reply]:
    """A reply that came whole, as a stream of one piece."""
    from langchain_core.messages import AIMessageChunk

    if result is not None and result.generations:
        message = result.generations[0].message
        chunk = AIMessageChunk(**message.model_dump(exclude={"type"}))
        whole = ChatGenerationChunk(message=chunk)
        yield Delta(text=_shown(whole), payload=whole)
    yield reply
