"""The benchmark's backend as a LangChain chat model, so that LangChain's own cache stands before
the very client that every other mode uses."""

from __future__ import annotations

from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from stepcache._types import Message, ModelCall
from stepcache.bench._recorder import Recorder

__all__ = ["chat_model"]


class _RecorderChatModel(BaseChatModel):
    backend: Any

    @property
    def _llm_type(self) -> str:
        return "stepcache-bench"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": "bench"}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = tuple(Message(role="user", text=str(message.text)) for message in messages)
        reply = self.backend.generate(ModelCall(purpose="answer", messages=asked))
        message = AIMessage(content=reply.text)
        return ChatResult(generations=[ChatGeneration(message=message)])


def chat_model(backend: Recorder, cache: BaseCache) -> BaseChatModel:
    """A chat model over the backend, with a cache of LangChain's own in front."""
    return _RecorderChatModel(backend=backend, cache=cache)
