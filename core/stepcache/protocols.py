"""What a port or a task looks like. Signatures only; write your own against these.

Ports may answer synchronously or return an awaitable under the same method name. The synchronous
engine calls refuse awaitables with a ``UsageError``; the asynchronous ones take both. A port with a
truthy ``blocking`` attribute is moved to a worker thread by the asynchronous calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from stepcache._types import (
    Block,
    Constraints,
    Declined,
    Difference,
    Entry,
    ModelCall,
    Outcome,
    Reply,
    Request,
    Step,
    Verdict,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]
    """A float32 array: of shape (dimension,), or with a row for each of several texts."""
else:
    Vector: TypeAlias = Any

__all__ = [
    "Backend",
    "BrowsableStore",
    "Delta",
    "Embedder",
    "Face",
    "FailureListener",
    "LeasingStore",
    "Listener",
    "Match",
    "Maybe",
    "Part",
    "PortName",
    "Store",
    "StreamingBackend",
    "Task",
    "Timing",
    "Vector",
    "Verifier",
]

T = TypeVar("T")
Maybe: TypeAlias = T | Awaitable[T]
"""A value, or something to await for it."""


@dataclass(frozen=True, slots=True)
class Match:
    """One entry found by similarity."""

    entry: Entry
    similarity: float
    """Cosine, -1 to 1."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed reply."""

    text: str
    payload: object = None
    """The host's own chunk, passed through untouched."""


Face: TypeAlias = Literal["resolve", "aresolve", "stream", "astream", "lookup", "alookup"]
"""The engine's method by which a request came."""


PortName: TypeAlias = Literal["store", "embedder", "model", "wait"]
"""Whom the engine waits for; ``wait`` is an equal request in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One exchange with a port while a request was answered."""

    port: PortName
    what: str
    """``get``, ``search``, ``put``, ``embed``, ``join``, ``settle``, or why the model was asked:
    ``answer``, ``patch``, ``repair``."""
    at: float
    """Seconds from the beginning of the request."""
    seconds: float
    """In a stream the model's includes the time its reader takes between pieces."""
    error: str | None = None
    """Class name of what the port raised; the request may have been answered all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How one request came and what it took, in seconds."""

    face: Face
    seconds: float
    """From the call to the answer."""
    proof: float = 0.0
    """Parsing, comparing, verifying, planning: all that the engine itself does."""
    first: float | None = None
    """To the first piece of a stream."""
    parts: tuple[Part, ...] = ()
    """What was asked of the ports, in order."""

    def of(self, port: PortName) -> float:
        """Seconds spent at one port."""
        return sum(part.seconds for part in self.parts if part.port == port)


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors that are near when the texts are alike. Finds, never decides."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever vectors stop being comparable (model, weights, version)."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    def embed(self, texts: Sequence[str], /) -> Maybe[Vector]:
        """float32 array of shape (len(texts), dimension), rows of unit length."""


@runtime_checkable
class Store(Protocol):
    """Keeps entries and finds them again, by key and by vector. Nothing crosses a scope.

    Every method may raise; while answering, the engine takes that for a miss.
    """

    def get(self, scope: str, key: str, /) -> Maybe[Entry | None]:
        """The live entry whose exact or canonical key is ``key``, or None."""

    def search(
        self, scope: str, vector: Vector, fingerprint: str, /, *, limit: int
    ) -> Maybe[tuple[Match, ...]]:
        """The nearest live entries of a scope embedded by ``fingerprint``, best first."""

    def put(
        self, entry: Entry, vector: Vector | None, fingerprint: str, /, *, ttl: float | None = None
    ) -> Maybe[None]:
        """Keep an entry; one with the same scope and exact key is replaced. A canonical key
        that several entries share leads to the newest of them.

        Args:
            ttl: Seconds from now the entry may be served; None keeps ``entry.expires`` as it is, so
                that an answer served again under another wording does not grow younger.
        """

    def remove(self, entry_id: str, /) -> Maybe[bool]:
        """Forget one entry; False when there was none."""

    def clear(self, scope: str | None = None, /) -> Maybe[int]:
        """Forget a scope, or everything; returns how many entries went."""

    def count(self, scope: str | None = None, /) -> Maybe[int]:
        """Live entries in a scope, or in all."""

    def close(self) -> Maybe[None]:
        """Let go of files and connections. Further calls raise."""


@runtime_checkable
class BrowsableStore(Protocol):
    """What a store may offer beside :class:`Store`, so that entries can be forgotten by tag or
    namespace and bad answers be reported."""

    def find(self, entry_id: str, /) -> Maybe[Entry | None]:
        """The live entry of an id, or None."""

    def entries(self) -> Maybe[Iterable[Entry]]:
        """Every live entry once, in no order; one put or removed meanwhile may show or not."""


@runtime_checkable
class LeasingStore(Protocol):
    """What a store may offer beside :class:`Store`, so that equal requests of several processes
    share one model call."""

    def acquire(self, key: str, seconds: float, /) -> Maybe[int | None]:
        """A token, higher than any before, when nobody holds the key's lease; else None."""

    def renew(self, key: str, token: int, seconds: float, /) -> Maybe[bool]:
        """Prolong a lease, counted from now; False when it is somebody else's by now."""

    def release(self, key: str, token: int, /) -> Maybe[bool]:
        """Let go of a lease; False when it was somebody else's by now."""

    def put_leased(
        self,
        entry: Entry,
        vector: Vector | None,
        fingerprint: str,
        /,
        *,
        key: str,
        token: int,
        ttl: float | None = None,
    ) -> Maybe[bool]:
        """As ``put``; False, and nothing kept, when another token has been given for the key."""


@runtime_checkable
class Backend(Protocol):
    """A model. Its own errors pass through to the user as they are."""

    def generate(self, call: ModelCall, /) -> Maybe[Reply]:
        """Ask once."""


@runtime_checkable
class StreamingBackend(Protocol):
    """A model that can also answer piece by piece."""

    def generate(self, call: ModelCall, /) -> Maybe[Reply]:
        """Ask once."""

    def stream(self, call: ModelCall, /) -> Iterator[Delta | Reply] | AsyncIterator[Delta | Reply]:
        """Pieces as they come; the last item is the whole :class:`Reply`. Ending without one
        means the stream broke, and nothing of it is kept."""


@runtime_checkable
class Task(Protocol):
    """How one family of answers is recognised, cut, verified, adapted, patched, checked, solved.

    Methods are pure: no I/O, no clock, no randomness, bounded in time. One that raises is treated
    as *unknown*, and unknown is not reused.
    """

    @property
    def name(self) -> str:
        """Kebab-case, e.g. ``linear-equation``."""

    @property
    def version(self) -> str:
        """Part of every entry: change it when parsing or verifying changes, and they retire."""

    @property
    def retrieves(self) -> bool:
        """Whether entries of other constraints are worth looking for by similarity."""

    @property
    def neutral(self) -> frozenset[str]:
        """Casefolded words and punctuation of a request's residue that cannot change an answer."""

    def parse(self, request: Request, /) -> Constraints | Declined:
        """Read the request's demands, or say why it is not of this family."""

    def segment(self, text: str, /) -> tuple[Step, ...]:
        """Cut an answer into steps whose texts join to it exactly."""

    def differences(self, old: Constraints, new: Constraints, /) -> tuple[Difference, ...]:
        """What changed between two requests' constraints, and which of it this task verifies."""

    def verify(self, step: Step, constraints: Constraints, /) -> Verdict:
        """Does one step hold under the constraints?"""

    def check(self, steps: Sequence[Step], constraints: Constraints, /) -> Verdict:
        """Does the whole answer satisfy the constraints (completeness, integrity)?"""

    def adapt(
        self, steps: Sequence[Step], old: Constraints, new: Constraints, /
    ) -> tuple[Step, ...] | None:
        """The steps re-derived for new constraints without a model, or None. They are verified
        like any other."""

    def block(self, verdicts: Sequence[Verdict], /) -> Block | None:
        """The contiguous block to make anew: to the end where steps depend on each other, only the
        failing part where they do not; None when nothing failed."""

    def patch(
        self,
        request: Request,
        steps: Sequence[Step],
        block: Block,
        verdicts: Sequence[Verdict],
        constraints: Constraints,
        /,
    ) -> ModelCall | None:
        """How to ask the model for the block only, or None when it cannot be asked for alone."""

    def splice(
        self,
        reply: str,
        steps: Sequence[Step],
        block: Block,
        verdicts: Sequence[Verdict],
        constraints: Constraints,
        /,
    ) -> str | None:
        """The whole answer with the reply to :meth:`patch` in place of the block, or None when the
        reply cannot be used."""

    def mend(self, text: str, constraints: Constraints, /) -> str | None:
        """A deterministic repair of a damaged answer, without a model; None when there is none.
        What it returns is checked like any other answer."""

    def solve(self, constraints: Constraints, /) -> str | None:
        """The deterministic answer, where the family has one."""


@runtime_checkable
class Verifier(Protocol):
    """One more check on every step, beside the task's own. A plain function will do."""

    def __call__(self, step: Step, constraints: Constraints, /) -> Verdict | None:
        """A verdict, or None when it has nothing to say of this step."""


@runtime_checkable
class Listener(Protocol):
    """Told of every answer before it is handed over; what it raises is logged, once.

    It may be asynchronous, for asynchronous calls only. These move one with a truthy ``blocking``
    attribute to a worker thread, so that it holds up no other call.
    """

    def __call__(self, request: Request, outcome: Outcome, timing: Timing, /) -> object:
        """One request was answered."""


@runtime_checkable
class FailureListener(Listener, Protocol):
    """A listener that is told of errors too: the model's own, and rejections by policy."""

    def failed(self, request: Request, error: Exception, timing: Timing, /) -> object:
        """One request ended in an error, which goes on to the caller."""
