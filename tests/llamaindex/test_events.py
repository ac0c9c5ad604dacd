"""What instrumentation sees of an answer: an event in the span of the call."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.base import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatStartEvent
from llama_index.core.llms import ChatMessage

from llamaindex_stepcache import StepCacheAnswerEvent, StepCacheLLM
from stepcache import ConfigurationError, StepCacheEngine
from stepcache.telemetry import Savings

ROME = "Describe Rome as a JSON object with keys name, country."


class Keeping(BaseEventHandler):
    """Keeps every event."""

    events: list[Any] = []  # noqa: RUF012 - a pydantic field

    @classmethod
    def class_name(cls) -> str:
        return "Keeping"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self.events.append(event)


@pytest.fixture
def handler() -> Iterator[Keeping]:
    keeping = Keeping()
    root = get_dispatcher()
    root.add_event_handler(keeping)
    yield keeping
    root.event_handlers.remove(keeping)


WAYS = ("chat", "achat", "stream_chat", "astream_chat")


async def _ask(llm: Any, way: str) -> None:
    result = getattr(llm, way)([ChatMessage(role="user", content=ROME)])
    if way.startswith("a"):
        result = await result
    if way == "stream_chat":
        list(result)
    elif way == "astream_chat":
        async for _ in result:
            pass


@pytest.mark.parametrize("way", WAYS)
async def test_an_event_says_how_an_answer_came(way: str, handler: Keeping, inner: Any) -> None:
    """Between start and end of the call, with route, code, entry and tokens, and no text."""
    savings = Savings()
    llm = StepCacheLLM(llm=inner(), listeners=[savings])
    for _ in range(2):
        await _ask(llm, way)
    told = [event for event in handler.events if isinstance(event, StepCacheAnswerEvent)]
    assert [(event.route, event.code, event.task) for event in told] == [
        ("miss", "nothing-near", "json"),
        ("exact", "same-request", "json"),
    ]
    miss, hit = told
    assert miss.entry_id == hit.entry_id
    assert (hit.spent_calls, hit.spent_tokens) == (0, 0)
    assert (hit.avoided_calls, hit.avoided_tokens) == (1, miss.spent_tokens)
    # The host asks for no usage in streams.
    assert (miss.spent_tokens > 0) == ("stream" not in way)
    assert "Rome" not in "".join(event.model_dump_json() for event in told)
    kinds = [
        type(event)
        for event in handler.events
        if isinstance(event, (LLMChatStartEvent, StepCacheAnswerEvent, LLMChatEndEvent))
    ]
    order = [LLMChatStartEvent, StepCacheAnswerEvent, LLMChatEndEvent]
    assert kinds[-3:] == order
    ends = [event for event in handler.events if isinstance(event, LLMChatEndEvent)]
    summary = ends[-1].response.additional_kwargs["stepcache"]
    assert (summary["route"], summary["code"], summary["task"]) == ("exact", hit.code, "json")
    assert savings.total.routes == {"miss": 1, "exact": 1}


def test_a_handler_that_fails_hurts_nobody(inner: Any) -> None:
    """Its error stays with the host."""

    class Failing(Keeping):
        def handle(self, event: BaseEvent, **kwargs: Any) -> None:
            raise RuntimeError("down")

    failing, root = Failing(), get_dispatcher()
    root.add_event_handler(failing)
    try:
        answer = StepCacheLLM(llm=inner()).chat([ChatMessage(role="user", content=ROME)])
    finally:
        root.event_handlers.remove(failing)
    assert answer.message.content


def test_listeners_are_the_engines(inner: Any) -> None:
    """Beside a ready engine they are one too many; a pickle comes without them."""
    savings = Savings()
    with pytest.raises(ConfigurationError, match="engine and listeners are both given"):
        StepCacheLLM(llm=inner(), engine=StepCacheEngine(), listeners=[savings])
    llm = StepCacheLLM(llm=inner(), listeners=[savings])
    assert llm.engine.listeners == (savings,)
    assert pickle.loads(pickle.dumps(llm)).engine.listeners == ()
