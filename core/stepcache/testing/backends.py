"""Models that answer from a script, and ports that count or fail on demand.

    >>> backend = ScriptedBackend(["x = 5"])
    >>> backend.generate(ModelCall(purpose="answer", messages=())).text
    'x = 5'

Tokens are counted by one rule, so that usage in tests can be worked out by hand: every run of
characters without white space is a token. A prompt is all its messages' texts and the prefix.
"""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, TypeAlias

from stepcache._errors import ConfigurationError
from stepcache._types import Entry, ModelCall, Reply, Usage
from stepcache.protocols import Delta, Embedder, Match, Maybe, Store, Vector

__all__ = [
    "AsyncScriptedBackend",
    "CountingEmbedder",
    "FaultyEmbedder",
    "FaultyStore",
    "Interrupted",
    "ScriptedBackend",
]

_PIECE = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A scripted reply that breaks off: a stream gives the text, then this happens."""

    text: str
    error: Exception | None = None
    """Raised after the text; None ends the stream without a reply. Asked for at once, the reply
    raises the error, or comes without a finish reason."""


Answer: TypeAlias = str | Reply | Exception | Interrupted
"""What a script may hold: a text, a whole reply, or something to go wrong."""


class _Script:
    """Takes calls down and hands out answers; safe to share between threads."""

    def __init__(self, replies: Sequence[Answer] | Callable[[ModelCall], Any]) -> None:
        if isinstance(replies, str):
            raise ConfigurationError("replies is a single text: wrap it in a list")
        self._replies = replies if callable(replies) else tuple(replies)
        self._lock = threading.Lock()
        self.calls: list[ModelCall] = []

    @property
    def purposes(self) -> list[str]:
        """Why the model was asked, call by call."""
        return [call.purpose for call in self.calls]

    def _answer(self, call: ModelCall) -> Any:
        with self._lock:
            at = len(self.calls)
            self.calls.append(call)
        if callable(self._replies):
            return self._replies(call)
        if at >= len(self._replies):
            raise AssertionError(
                f"the script has {len(self._replies)} replies, but the model was asked once more "
                f"({call.purpose})"
            )
        return self._replies[at]


class ScriptedBackend(_Script):
    """A model that answers from a script, at once or piece by piece.

    Args:
        replies: The answers, in order, or a function from the call to its answer. A text becomes a
            whole reply with counted tokens; an exception is raised.

    Attributes:
        calls: Every call made, in order.

    Raises:
        AssertionError: While answering: the list of replies has run out.
    """

    def __init__(self, replies: Sequence[Answer] | Callable[[ModelCall], Answer] = ()) -> None:
        super().__init__(replies)

    def generate(self, call: ModelCall, /) -> Reply:
        """The next answer."""
        return _whole(self._answer(call), call)

    def stream(self, call: ModelCall, /) -> Iterator[Delta | Reply]:
        """The next answer word by word, then whole."""
        yield from _pieces(self._answer(call), call)


class AsyncScriptedBackend(_Script):
    """As :class:`ScriptedBackend`, asynchronously; a function may be a coroutine function.

    Args:
        replies: The answers, in order, or a function from the call to its answer.

    Attributes:
        calls: Every call made, in order.
    """

    def __init__(
        self,
        replies: Sequence[Answer] | Callable[[ModelCall], Answer | Awaitable[Answer]] = (),
    ) -> None:
        super().__init__(replies)

    async def generate(self, call: ModelCall, /) -> Reply:
        """The next answer."""
        return _whole(await self._awaited(call), call)

    async def stream(self, call: ModelCall, /) -> AsyncIterator[Delta | Reply]:
        """The next answer word by word, then whole."""
        for piece in _pieces(await self._awaited(call), call):
            yield piece

    async def _awaited(self, call: ModelCall) -> Any:
        answer = self._answer(call)
        return await answer if isawaitable(answer) else answer


class CountingEmbedder:
    """Passes on to another embedder and notes what it was asked.

    Attributes:
        calls: How often :meth:`embed` was called.
        texts: Every text embedded, in order.
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.calls = 0
        self.texts: list[str] = []
        self.blocking = bool(getattr(inner, "blocking", False))

    @property
    def fingerprint(self) -> str:
        """The inner embedder's."""
        return self._inner.fingerprint

    @property
    def dimension(self) -> int:
        """The inner embedder's."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str], /) -> Maybe[Vector]:
        """The inner embedder's vectors."""
        self.calls += 1
        self.texts.extend(texts)
        return self._inner.embed(texts)


class FaultyEmbedder:
    """An embedder that raises while it is told to.

    Args:
        inner: Answers while nothing fails.
        fail_on: Methods that raise: ``embed``. May be changed later, by ``fail_on.add`` and so on.
        error: What is raised; a RuntimeError by default.
    """

    def __init__(
        self, inner: Embedder, fail_on: set[str] | None = None, error: Exception | None = None
    ) -> None:
        self._inner = inner
        self.fail_on = _known({"embed"} if fail_on is None else fail_on, {"embed"})
        self.error = error

    @property
    def fingerprint(self) -> str:
        """The inner embedder's."""
        return self._inner.fingerprint

    @property
    def dimension(self) -> int:
        """The inner embedder's."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str], /) -> Maybe[Vector]:
        """The inner embedder's vectors, or the error."""
        _fail("embed", self.fail_on, self.error)
        return self._inner.embed(texts)


class FaultyStore:
    """A store that raises in the methods it is told to.

    Args:
        inner: Answers in all other methods.
        fail_on: Names of methods that raise; all by default. May be changed later.
        error: What is raised; a RuntimeError by default.
    """

    _METHODS = frozenset(("get", "search", "put", "remove", "clear", "count", "close"))

    def __init__(
        self, inner: Store, fail_on: set[str] | None = None, error: Exception | None = None
    ) -> None:
        self._inner = inner
        self.fail_on = _known(set(self._METHODS) if fail_on is None else fail_on, self._METHODS)
        self.error = error

    def get(self, scope: str, key: str, /) -> Maybe[Entry | None]:
        """The inner store's entry, or the error."""
        _fail("get", self.fail_on, self.error)
        return self._inner.get(scope, key)

    def search(
        self, scope: str, vector: Vector, fingerprint: str, /, *, limit: int
    ) -> Maybe[tuple[Match, ...]]:
        """The inner store's matches, or the error."""
        _fail("search", self.fail_on, self.error)
        return self._inner.search(scope, vector, fingerprint, limit=limit)

    def put(
        self, entry: Entry, vector: Vector | None, fingerprint: str, /, *, ttl: float | None = None
    ) -> Maybe[None]:
        """Keep in the inner store, or raise the error."""
        _fail("put", self.fail_on, self.error)
        return self._inner.put(entry, vector, fingerprint, ttl=ttl)

    def remove(self, entry_id: str, /) -> Maybe[bool]:
        """Remove from the inner store, or raise the error."""
        _fail("remove", self.fail_on, self.error)
        return self._inner.remove(entry_id)

    def clear(self, scope: str | None = None, /) -> Maybe[int]:
        """Clear the inner store, or raise the error."""
        _fail("clear", self.fail_on, self.error)
        return self._inner.clear(scope)

    def count(self, scope: str | None = None, /) -> Maybe[int]:
        """The inner store's count, or the error."""
        _fail("count", self.fail_on, self.error)
        return self._inner.count(scope)

    def close(self) -> Maybe[None]:
        """Close the inner store, or raise the error."""
        _fail("close", self.fail_on, self.error)
        return self._inner.close()


def _known(names: set[str], methods: set[str] | frozenset[str]) -> set[str]:
    if unknown := set(names) - methods:
        raise ConfigurationError(
            f"fail_on holds {sorted(unknown)}: use names out of {sorted(methods)}"
        )
    return set(names)


def _fail(method: str, fail_on: set[str], error: Exception | None) -> None:
    if method in fail_on:
        raise error or RuntimeError(f"{method} is broken on purpose")


def _whole(answer: Answer, call: ModelCall) -> Reply:
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, Interrupted):
        if answer.error is not None:
            raise answer.error
        return Reply(text=answer.text, finish_reason=None, usage=_usage(answer.text, call))
    if isinstance(answer, str):
        return Reply(text=answer, usage=_usage(answer, call))
    return answer


def _pieces(answer: Answer, call: ModelCall) -> Iterator[Delta | Reply]:
    if isinstance(answer, Interrupted):
        yield from map(Delta, _PIECE.findall(answer.text))
        if answer.error is not None:
            raise answer.error
        return
    reply = _whole(answer, call)
    yield from map(Delta, _PIECE.findall(reply.text))
    yield reply


def _usage(text: str, call: ModelCall) -> Usage:
    prompt = sum(len(message.text.split()) for message in call.messages)
    prompt += len((call.prefix or "").split())
    return Usage(calls=1, prompt_tokens=prompt, completion_tokens=len(text.split()))
