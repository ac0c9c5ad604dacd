"""The wrapped LLM as the engine's backend, for one call of the host.

The request itself goes to the LLM as the host made it. What the engine asks beside it (a missing
part, a second try) goes as a chat of plain messages, behind the host's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Any, Generic, TypeAlias, TypeVar, cast

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
)
from llama_index.core.llms.llm import LLM

from llamaindex_stepcache._responses import finish_reason_of, text_of, to_reply, usage_of
from llamaindex_stepcache._translate import HostCall, is_schema
from stepcache import ModelCall, Reply, Request, Usage
from stepcache.protocols import Delta

__all__ = ["AsyncInnerLLM", "InnerLLM", "R", "Response"]

Response: TypeAlias = ChatResponse | CompletionResponse
R = TypeVar("R", ChatResponse, CompletionResponse)

# Demands on a whole answer, not on a part of one.
_WHOLE_ANSWER_ONLY = (
    *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
    *("response_format", "format", "tool_config", "n"),
)


class _PerCall(Generic[R]):
    """What both backends know of the host's call."""

    def __init__(self, llm: LLM, call: HostCall, request: Request, prefill: bool) -> None:
        self._llm = llm
        self._call = call
        self._own = request.messages
        self._prefill = prefill
        self._tool = call.answer_tool
        self.original: R | None = None
        """The LLM's own response to the whole request, once it has been asked."""

    def _messages(self, call: ModelCall) -> list[ChatMessage]:
        """The host's own messages as far as they are asked unchanged, ours after them."""
        pairs = zip(self._own, call.messages)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        messages = list(self._call.messages[:same])
        messages += [_host_message(m.role, m.text) for m in call.messages[same:]]
        if self._prefix(call):
            messages.append(_host_message("assistant", call.prefix or ""))
        return messages

    def _prefix(self, call: ModelCall) -> str:
        return (call.prefix or "") if self._prefill else ""

    def _asked_tool(self, call: ModelCall) -> str | None:
        """The tool to answer with; a part is asked for in words."""
        return None if call.purpose == "patch" else self._tool

    def _kwargs(self, call: ModelCall) -> dict[str, Any]:
        kwargs = dict(self._call.kwargs)
        if call.purpose != "patch":
            return kwargs
        demand, as_format = kwargs.get("response_format"), is_schema(kwargs.get("format"))
        for name in _WHOLE_ANSWER_ONLY:
            kwargs.pop(name, None)
        # Only where the host showed that this LLM takes one, and never about the rest of a reply.
        if call.schema is None or self._prefix(call):
            return kwargs
        if as_format:
            kwargs["format"] = _thawed(call.schema)
        elif demand is not None:
            kwargs["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "part", "schema": _thawed(call.schema)},
            }
        return kwargs

    def _heard(self, heard: _Heard, call: ModelCall) -> Iterator[Reply]:
        """The whole reply of a stream; nothing when it said nothing at all."""
        reply = heard.reply()
        if reply is None:
            return
        if call.purpose == "answer":
            self.original = cast("R", heard.last)
            yield reply
        else:
            yield self._without_prefix(reply, call)

    def _part(self, response: ChatResponse, call: ModelCall) -> Reply:
        return self._without_prefix(to_reply(response, tool=self._asked_tool(call)), call)

    def _without_prefix(self, reply: Reply, call: ModelCall) -> Reply:
        prefix = self._prefix(call)
        if not prefix or not reply.text.startswith(prefix):
            return reply
        # Some endpoints repeat what they were to go on from.
        return replace(reply, text=reply.text.removeprefix(prefix))


class InnerLLM(_PerCall[R]):
    """The wrapped LLM, asked synchronously."""

    def generate(self, call: ModelCall, /) -> Reply:
        """Ask once; the LLM's own errors pass through."""
        if call.purpose != "answer":
            return self._part(self._llm.chat(self._messages(call), **self._kwargs(call)), call)
        host = self._call
        response: Any
        if host.kind == "chat":
            response = self._llm.chat(host.messages, **host.kwargs)
        else:
            response = self._llm.complete(host.prompt, formatted=host.formatted, **host.kwargs)
        self.original = response
        return to_reply(response, tool=self._tool)

    def stream(self, call: ModelCall, /) -> Iterator[Delta | Reply]:
        """Ask once; every chunk of the LLM passes through untouched, the whole reply comes last."""
        host = self._call
        chunks: Any
        if call.purpose != "answer":
            chunks = self._llm.stream_chat(self._messages(call), **self._kwargs(call))
        elif host.kind == "chat":
            chunks = self._llm.stream_chat(host.messages, **host.kwargs)
        else:
            chunks = self._llm.stream_complete(host.prompt, formatted=host.formatted, **host.kwargs)
        heard = _Heard(self._asked_tool(call))
        try:
            for chunk in chunks:
                heard.note(chunk)
                yield Delta(chunk.delta or "", payload=chunk)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        yield from self._heard(heard, call)


class AsyncInnerLLM(_PerCall[R]):
    """The wrapped LLM, asked through its asynchronous methods."""

    _chunks: Any = None

    async def generate(self, call: ModelCall, /) -> Reply:
        """As :meth:`InnerLLM.generate`."""
        if call.purpose != "answer":
            part = await self._llm.achat(self._messages(call), **self._kwargs(call))
            return self._part(part, call)
        host = self._call
        response: Any
        if host.kind == "chat":
            response = await self._llm.achat(host.messages, **host.kwargs)
        else:
            response = await self._llm.acomplete(
                host.prompt, formatted=host.formatted, **host.kwargs
            )
        self.original = response
        return to_reply(response, tool=self._tool)

    async def stream(self, call: ModelCall, /) -> AsyncIterator[Delta | Reply]:
        """As :meth:`InnerLLM.stream`."""
        host = self._call
        if call.purpose != "answer":
            self._chunks = await self._llm.astream_chat(self._messages(call), **self._kwargs(call))
        elif host.kind == "chat":
            self._chunks = await self._llm.astream_chat(host.messages, **host.kwargs)
        else:
            self._chunks = await self._llm.astream_complete(
                host.prompt, formatted=host.formatted, **host.kwargs
            )
        heard = _Heard(self._asked_tool(call))
        async for chunk in self._chunks:
            heard.note(chunk)
            yield Delta(chunk.delta or "", payload=chunk)
        for reply in self._heard(heard, call):
            yield reply

    async def aclose(self) -> None:
        """Let go of a stream that was not read to its end."""
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


class _Heard:
    """What a stream has said so far."""

    def __init__(self, tool: str | None) -> None:
        self._tool = tool
        self.last: Response | None = None
        self._deltas: list[str] = []
        self._gaps = False
        self._finish: str | None = None
        self._usage = Usage(calls=1)
        self._says_finish = False

    def note(self, chunk: Response) -> None:
        self.last = chunk
        self._gaps = self._gaps or chunk.delta is None
        self._deltas.append(chunk.delta or "")
        self._finish = finish_reason_of(chunk) or self._finish
        raw = chunk.raw
        self._says_finish = self._says_finish or hasattr(raw, "choices")
        usage = usage_of(chunk)
        if usage.tokens:
            self._usage = usage

    def reply(self) -> Reply | None:
        """The whole reply; None when nothing was said at all."""
        if self.last is None:
            return None
        finish = self._finish
        if finish is None and self._says_finish:
            finish = "interrupted"
        if not self._gaps and text_of(self.last) != "".join(self._deltas):
            # The chunks and their deltas tell two stories; neither is safe to keep.
            finish = "inconsistent"
        return to_reply(self.last, finish_reason=finish, usage=self._usage, tool=self._tool)


def _host_message(role: str, text: str) -> ChatMessage:
    try:
        known = MessageRole(role)
    except ValueError:
        known = MessageRole.USER
    return ChatMessage(role=known, content=text)


def _thawed(value: Any) -> Any:
    """Plain dicts and lists: host clients serialise no mapping proxies."""
    if hasattr(value, "items"):
        return {key: _thawed(item) for key, item in value.items()}
    return [_thawed(item) for item in value] if isinstance(value, (list, tuple)) else value
