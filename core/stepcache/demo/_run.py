"""Plays the script through a bare chain and through the same chain with StepCache.

Request by request the bare chain is asked first and the cached one right after, on the same
server, so that both are measured under the same conditions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from stepcache.demo._check import is_correct
from stepcache.demo._script import SCRIPT, Item

if TYPE_CHECKING:
    import httpx
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    Chain: TypeAlias = Runnable[dict[str, str], BaseMessage]
else:
    Chain: TypeAlias = Any

__all__ = ["Answer", "Endpoint", "Exchange", "open_chains", "play", "warm_up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the model is and how it is asked."""

    base_url: str
    model: str
    api_key: str = field(default="none", repr=False)
    seed: int = 0
    max_tokens: int = 400
    prefill: bool = False
    """Whether the endpoint goes on from a closing assistant message."""
    loopback: bool = False
    """Whether to leave out any proxy that the environment names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one chain made of one request."""

    text: str
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    correct: bool
    error: str | None = None
    stepcache: dict[str, Any] | None = None
    """What StepCache says of the answer; None for the bare chain."""

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens spent now."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and both answers."""

    number: int
    item: Item
    bare: Answer
    cached: Answer

    def as_dict(self) -> dict[str, Any]:
        """The raw record, as plain JSON-able data."""
        return {
            "number": self.number,
            "family": self.item.family,
            "kind": self.item.kind,
            "prompt": self.item.prompt,
            "stream": self.item.stream,
            "demand": asdict(self.item.demand),
            "documented_route": self.item.expected,
            "bare": asdict(self.bare),
            "cached": asdict(self.cached),
        }


@contextmanager
def open_chains(endpoint: Endpoint) -> Iterator[tuple[Chain, Chain]]:
    """The bare chain and the cached one: the same prompt, the same model, two connections."""
    import httpx
    from langchain_core.prompts import ChatPromptTemplate

    from langchain_stepcache import StepCacheChatModel

    prompt = ChatPromptTemplate.from_messages([("human", "{question}")])
    proxies = not endpoint.loopback
    with httpx.Client(trust_env=proxies) as one, httpx.Client(trust_env=proxies) as other:
        bare = prompt | _model(endpoint, one)
        llm = _model(endpoint, other)
        yield bare, prompt | StepCacheChatModel(llm=llm, prefill=endpoint.prefill)


def _model(endpoint: Endpoint, client: httpx.Client) -> Any:
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    return ChatOpenAI(
        base_url=endpoint.base_url,
        model=endpoint.model,
        api_key=SecretStr(endpoint.api_key),
        temperature=0,
        seed=endpoint.seed,
        max_completion_tokens=endpoint.max_tokens,
        timeout=600,
        max_retries=0,
        stream_usage=True,
        http_client=client,
    )


def warm_up(chain: Chain) -> None:
    """Ask once, off the record: imports and first allocations are nobody's latency.

    Raises:
        Exception: Whatever the model raises; a demonstration of a model that cannot be reached
            should not begin.
    """
    chain.invoke({"question": "Say OK."})


def play(
    bare: Chain,
    cached: Chain,
    items: Sequence[Item] = SCRIPT,
    *,
    before: Callable[[int, Item, str], object] | None = None,
    after: Callable[[Exchange], object] | None = None,
) -> list[Exchange]:
    """Ask every request of both chains.

    Args:
        before: Told of the request and of the chain that is about to be asked.
        after: Told of each exchange when it is done.
    """
    exchanges = []
    for number, item in enumerate(items, start=1):
        answers = {}
        for name, chain in (("bare", bare), ("cached", cached)):
            if before is not None:
                before(number, item, name)
            answers[name] = ask(chain, item)
        exchange = Exchange(
            number=number, item=item, bare=answers["bare"], cached=answers["cached"]
        )
        exchanges.append(exchange)
        if after is not None:
            after(exchange)
    return exchanges


def ask(chain: Chain, item: Item) -> Answer:
    """Ask one request and judge the answer; an error of the model counts as not correct."""
    start = time.perf_counter()
    try:
        message = _message(chain, item)
    except Exception as error:  # noqa: BLE001 - goes into the record, and the play goes on
        return Answer(
            text="",
            seconds=time.perf_counter() - start,
            prompt_tokens=0,
            completion_tokens=0,
            correct=False,
            error=f"{type(error).__name__}: {error}"[:500],
        )
    seconds = time.perf_counter() - start
    text = str(message.text)
    told = message.response_metadata.get("stepcache")
    spent = told["spent"] if told else _usage(message)
    return Answer(
        text=text,
        seconds=seconds,
        prompt_tokens=spent["prompt_tokens"],
        completion_tokens=spent["completion_tokens"],
        correct=is_correct(text, item.demand),
        stepcache=told,
    )


def _message(chain: Chain, item: Item) -> BaseMessage:
    question = {"question": item.prompt}
    if not item.stream:
        return chain.invoke(question)
    whole: Any = None
    for piece in chain.stream(question):
        whole = piece if whole is None else whole + piece
    if whole is None:
        raise RuntimeError("the stream held nothing")
    message: BaseMessage = whole
    return message


def _usage(message: BaseMessage) -> dict[str, int]:
    usage = getattr(message, "usage_metadata", None) or {}
    return {
        "prompt_tokens": int(usage.get("input_tokens", 0)),
        "completion_tokens": int(usage.get("output_tokens", 0)),
    }
