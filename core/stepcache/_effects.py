"""Effects: what the engine wishes for. Drivers fulfil them.

The engine is written once, as generators that yield an effect and are sent its result; only a
driver does I/O. ``do`` types the exchange: ``entry = yield from do(Get(...))`` is an
``Entry | None`` to a type checker. An effect lives for one exchange and belongs to two, so it is
not frozen: that would cost three times as much to make.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar, cast

from stepcache._types import Entry, ModelCall, Outcome, Reply
from stepcache.protocols import Match, Vector

__all__ = [
    "Ask",
    "Effect",
    "Embed",
    "Flow",
    "Generate",
    "Get",
    "Join",
    "Put",
    "Search",
    "Settle",
    "do",
]

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


class Ask(Generic[R_co]):
    """Base of all effects; ``R_co`` is what fulfilling it yields."""

    __slots__ = ()


@dataclass(slots=True)
class Embed(Ask[Vector]):
    """One vector, shape (dimension,), for several views of one request."""

    views: tuple[str, ...]


@dataclass(slots=True)
class Search(Ask[tuple[Match, ...]]):
    """The nearest entries of a scope."""

    scope: str
    vector: Vector
    limit: int
    notices: list[str] | None = field(default=None, compare=False, repr=False)
    """Where the driver puts down what the store says beside its answer."""


@dataclass(slots=True)
class Get(Ask[Entry | None]):
    """One entry by exact or canonical key."""

    scope: str
    key: str
    notices: list[str] | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class Put(Ask[bool]):
    """Keep an entry; True once it is kept."""

    entry: Entry
    vector: Vector | None
    ttl: float | None


@dataclass(slots=True)
class Generate(Ask[Reply]):
    """Ask the model."""

    call: ModelCall
    watch: Callable[[str], str] | None = None
    """Given the reply so far, what a stream may show now in addition to what it has shown: text
    that is never taken back. None shows nothing before the end."""


@dataclass(slots=True)
class Join(Ask[Outcome | None]):
    """Wait for an equal request in flight and take its outcome; None: there is none, you lead."""

    key: str


@dataclass(slots=True)
class Settle(Ask[None]):
    """Hand the leader's outcome to whoever joined."""

    key: str
    outcome: Outcome


Effect: TypeAlias = Embed | Search | Get | Put | Generate | Join | Settle
Flow: TypeAlias = Generator[Effect, Any, T]


def do(ask: Ask[T]) -> Flow[T]:
    """Wish for one effect and return its result, typed."""
    result: T = yield cast("Effect", ask)
    return result
