"""The host's many forms of asking, brought down to the eight that go through the cache."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, Self

from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM, ToolSelection
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.tools import BaseTool
from llama_index.core.types import TokenAsyncGen, TokenGen
from pydantic import Field, PrivateAttr, SerializeAsAny

from llamaindex_stepcache._control import KEY, merged
from llamaindex_stepcache._view import routed
from stepcache import Control

__all__ = ["HostForms"]


class HostForms(FunctionCallingLLM):
    """Prompts, tools and structured output over another LLM; a subclass answers chats and prompts.

    ``stepcache={...}`` is understood everywhere and reaches the wrapped LLM nowhere.
    """

    # Neither dumped nor shown: its fields may hold a key.
    llm: SerializeAsAny[LLM] = Field(exclude=True, repr=False, description="The LLM to ask.")

    _standing: Control = PrivateAttr(default_factory=Control)
    _structured: bool = PrivateAttr(default=False)

    # --- per-call control ----------------------------------------------------------------------

    def controlled(self, stepcache: object = None, **wishes: Any) -> Self:
        """This LLM, asking something of the cache at every call.

        For hosts that pass no arguments on, such as engines and agents; a call's own
        ``stepcache={...}`` goes before what stands here. Engine, counters and settings are shared.

        Args:
            stepcache: The wishes as a dict, a :class:`stepcache.Control`, ``"bypass"`` or
                ``"refresh"``.
            **wishes: Fields of :class:`stepcache.Control`.

        Raises:
            UsageError: There is no such wish.
        """
        other = copy.copy(self)
        other._standing = merged(merged(self._standing, stepcache), wishes or None)
        return other

    def _for(self, prompt: Any, prompt_args: dict[str, Any]) -> Self:
        """Take the wishes out of a prompt's arguments, unless the prompt has that variable."""
        if KEY not in prompt_args or KEY in getattr(prompt, "template_vars", ()):
            return self
        return self.controlled(prompt_args.pop(KEY))

    def predict(self, prompt: BasePromptTemplate, **prompt_args: Any) -> str:
        """The answer's text to a prompt template; takes ``stepcache={...}`` too."""
        llm = self._for(prompt, prompt_args)
        return LLM.predict(llm, prompt, **prompt_args)

    async def apredict(self, prompt: BasePromptTemplate, **prompt_args: Any) -> str:
        """As :meth:`predict`, asynchronously."""
        llm = self._for(prompt, prompt_args)
        return await LLM.apredict(llm, prompt, **prompt_args)

    def stream(self, prompt: BasePromptTemplate, **prompt_args: Any) -> TokenGen:
        """The answer's text in pieces; takes ``stepcache={...}`` too."""
        llm = self._for(prompt, prompt_args)
        return LLM.stream(llm, prompt, **prompt_args)

    async def astream(self, prompt: BasePromptTemplate, **prompt_args: Any) -> TokenAsyncGen:
        """As :meth:`stream`, asynchronously."""
        llm = self._for(prompt, prompt_args)
        return await LLM.astream(llm, prompt, **prompt_args)

    def predict_and_call(self, tools: Sequence[BaseTool], *args: Any, **kwargs: Any) -> Any:
        """Choose a tool and run it; takes ``stepcache={...}`` too."""
        llm = self.controlled(kwargs.pop(KEY, None))
        return FunctionCallingLLM.predict_and_call(llm, tools, *args, **kwargs)

    async def apredict_and_call(self, tools: Sequence[BaseTool], *args: Any, **kwargs: Any) -> Any:
        """As :meth:`predict_and_call`, asynchronously."""
        llm = self.controlled(kwargs.pop(KEY, None))
        return await FunctionCallingLLM.apredict_and_call(llm, tools, *args, **kwargs)

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
        wishes = kwargs.pop(KEY, None)
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
        return prepared if wishes is None else {**prepared, KEY: wishes}

    def _validate_chat_with_tools_response(
        self,
        response: ChatResponse,
        tools: Sequence[BaseTool],
        allow_parallel_tool_calls: bool = False,
        **kwargs: Any,
    ) -> ChatResponse:
        kwargs.pop(KEY, None)
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
        """An instance of ``output_cls``, made the way the wrapped LLM makes one.

        ``stepcache={...}`` is taken beside the prompt's arguments or in ``llm_kwargs``.
        """
        view, given = self._routed(prompt, llm_kwargs, prompt_args)
        return view.structured_predict(output_cls, prompt, llm_kwargs=given, **prompt_args)

    async def astructured_predict(
        self,
        output_cls: type[Any],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Any:
        """As :meth:`structured_predict`, asynchronously."""
        view, given = self._routed(prompt, llm_kwargs, prompt_args)
        return await view.astructured_predict(output_cls, prompt, llm_kwargs=given, **prompt_args)

    def stream_structured_predict(
        self,
        output_cls: type[Any],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Generator[Any, None, None]:
        """Growing instances of ``output_cls``."""
        view, given = self._routed(prompt, llm_kwargs, prompt_args)
        yield from view.stream_structured_predict(
            output_cls, prompt, llm_kwargs=given, **prompt_args
        )

    async def astream_structured_predict(
        self,
        output_cls: type[Any],
        prompt: PromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> AsyncGenerator[Any, None]:
        """As :meth:`stream_structured_predict`, asynchronously."""
        view, given = self._routed(prompt, llm_kwargs, prompt_args)
        return await view.astream_structured_predict(
            output_cls, prompt, llm_kwargs=given, **prompt_args
        )

    def _routed(
        self, prompt: Any, llm_kwargs: dict[str, Any] | None, prompt_args: dict[str, Any]
    ) -> tuple[LLM, dict[str, Any]]:
        """The wrapped LLM leading here, and its arguments: a copy, for providers write into it."""
        given = dict(llm_kwargs or {})
        outer = copy.copy(self._for(prompt, prompt_args).controlled(given.pop(KEY, None)))
        outer._structured = True
        return routed(self.llm, outer), given
