"""Several requests at once: one call of the embedder for all of them, and each thing asked once.

Before anything is answered each request is followed up to where it would need a vector; what all of
them need is embedded together, and handed out when they get there. Requests that ask the same, in
these or other words, are answered one after another, as they would be without a batch: the first
may ask the model, the others find its answer. All others go side by side.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any

import numpy as np

from stepcache._drive import Ports, adrive, drive
from stepcache._effects import Effect, Embed, Flow, Get, do
from stepcache._flow import Resolution, Setup, resolve, shared
from stepcache._types import Control, Outcome, Request
from stepcache.protocols import Embedder, Vector

__all__ = ["Ahead", "Batch", "aembedded", "embedded", "look_ahead"]

_AT_ONCE = 512
"""Requests whose texts are embedded in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What can be told of a request before it is answered."""

    exact: str
    """Equal for equal requests; empty for one that has no identity."""
    key: str | None
    """Equal for requests that ask the same in these or other words."""
    views: tuple[str, ...] | None
    """What will be embedded, if anything."""


def look_ahead(request: Request, setup: Setup, control: Control) -> Flow[Ahead]:
    """Follow a request up to where it would need a vector, or change or ask anything."""
    resolution = Resolution(request, setup, control, may_ask=False, may_patch=False)
    views: tuple[str, ...] | None = None
    flow = resolution.run()
    try:
        effect: Effect = next(flow)
        while isinstance(effect, Get):
            try:
                result: Any = yield from do(effect)
            except Exception as error:  # noqa: BLE001 - the flow decides about any of them
                effect = flow.throw(error)
            else:
                effect = flow.send(result)
        if isinstance(effect, Embed):
            views = effect.views
    except StopIteration:
        pass
    finally:
        flow.close()
    judge = resolution.judge
    exact = resolution.identity.exact_key
    key = judge.canonical if judge is not None else exact
    return Ahead(exact=exact, key=key or None, views=views)


class Batch:
    """What becomes of each request.

    Args:
        taken: Requests with what is wished for them.
        ahead: What is known of them, in the same order.
    """

    def __init__(
        self, taken: Sequence[tuple[Request, Control]], ahead: Sequence[Ahead], setup: Setup
    ) -> None:
        self._taken = taken
        self._ahead = ahead
        self._setup = setup
        self._outcomes: dict[int, Outcome] = {}
        self._errors: dict[int, Exception] = {}
        found: dict[object, list[int]] = {}
        for number, each in enumerate(ahead):
            found.setdefault(each.key if each.key is not None else number, []).append(number)
        self.groups = list(found.values())
        """Numbers of requests that have to be answered one after another."""
        self._equals: dict[str, int] = {}

    def flow(self, number: int) -> Flow[Outcome]:
        """How to answer a request; the equal ones before it have been answered."""
        request, control = self._taken[number]
        exact = self._ahead[number].exact
        first = self._outcomes.get(self._equals.get(exact, number))
        # What was not kept is shared all the same: they were asked at the same time.
        if exact and first is not None and (control.refresh or first.entry_id is None):
            return shared(first)
        return resolve(request, self._setup, control)

    @contextmanager
    def outcome_of(self, number: int) -> Iterator[list[Outcome]]:
        """Take down the outcome that is put into the list, or the error."""
        told: list[Outcome] = []
        try:
            yield told
        except Exception as error:  # noqa: BLE001 - raised once all have ended
            self._errors[number] = error
        else:
            self._outcomes[number] = told[0]
            self._equals.setdefault(self._ahead[number].exact, number)

    def outcomes(self) -> list[Outcome]:
        """All of them, in order.

        Raises:
            Exception: The first error.
        """
        for _, error in sorted(self._errors.items(), key=lambda item: item[0]):
            raise error
        return [self._outcomes[number] for number in range(len(self._taken))]


class Known:
    """An embedder that knows some vectors already.

    Args:
        embedder: Asked for all others.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[tuple[str, ...], Vector] = {}
        self.blocking = getattr(embedder, "blocking", None)

    @property
    def fingerprint(self) -> str:
        """That of the embedder."""
        return self._embedder.fingerprint

    @property
    def dimension(self) -> int:
        """That of the embedder."""
        return self._embedder.dimension

    def embed(self, texts: Sequence[str], /) -> Any:
        """What is known, or what the embedder says."""
        vectors = self._vectors.get(tuple(texts))
        return self._embedder.embed(texts) if vectors is None else vectors

    def learn(self, views: Sequence[tuple[str, ...]], rows: Any) -> None:
        """Take down what was embedded for several at once, one after another."""
        at = 0
        for texts in views:
            self._vectors[texts] = rows[at : at + len(texts)]
            at += len(texts)


class _Rows:
    """An embedder whose last answer is kept as it came."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.blocking = getattr(embedder, "blocking", None)
        self.fingerprint, self.dimension = embedder.fingerprint, embedder.dimension
        self.rows: Any = None

    def embed(self, texts: Sequence[str], /) -> Any:
        result = self._embedder.embed(texts)
        if isawaitable(result):
            return self._awaited(result)
        self.rows = result
        return result

    async def _awaited(self, result: Awaitable[Any]) -> Any:
        self.rows = await result
        return self.rows


def embedded(ahead: Sequence[Ahead], ports: Ports) -> Ports:
    """The same ports with an embedder that has embedded what these requests need.

    Where it fails, or has nothing to gain, every request meets the embedder by itself.
    """
    for some in _wanted(ahead):
        rows = _Rows(ports.embedder)
        try:
            drive(_embedding(some), replace(ports, embedder=rows, vectors=None))
        except Exception:  # noqa: BLE001 - law 6: machinery fails open
            return ports
        ports = _with(ports, some, rows.rows)
    return ports


async def aembedded(ahead: Sequence[Ahead], ports: Ports) -> Ports:
    """As :func:`embedded`; the embedder may be asynchronous."""
    for some in _wanted(ahead):
        rows = _Rows(ports.embedder)
        try:
            await adrive(_embedding(some), replace(ports, embedder=rows, vectors=None))
        except Exception:  # noqa: BLE001 - law 6: machinery fails open
            return ports
        ports = _with(ports, some, rows.rows)
    return ports


def _wanted(ahead: Sequence[Ahead]) -> Iterator[list[tuple[str, ...]]]:
    # Whoever asks the same later finds the first one's answer.
    first = {each.key: each for each in reversed(ahead)}
    views = list(
        dict.fromkeys(
            each.views for each in ahead if each.views is not None and first[each.key] is each
        )
    )
    if len(views) > 1:
        for start in range(0, len(views), _AT_ONCE):
            yield views[start : start + _AT_ONCE]


def _embedding(views: Sequence[tuple[str, ...]]) -> Flow[Vector]:
    return (yield from do(Embed(tuple(text for texts in views for text in texts))))


def _with(ports: Ports, views: Sequence[tuple[str, ...]], rows: Any) -> Ports:
    embedder = ports.embedder
    if not isinstance(embedder, Known):
        embedder = Known(embedder)
    embedder.learn(views, np.asarray(rows, dtype=np.float32))
    return replace(ports, embedder=embedder)
