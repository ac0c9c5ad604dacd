"""A model that remembers: every call counted and kept, and given again when a run is resumed."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from stepcache._types import ModelCall, Reply, Usage

__all__ = ["Call", "Diverged", "Recorder", "Shelf"]


class Diverged(RuntimeError):
    """A resumed run asks something else than the recorded one did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One model call as it happened."""

    digest: str
    """Of what was asked."""
    purpose: str
    text: str
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    model: str | None = None

    def reply(self) -> Reply:
        """The reply again."""
        usage = Usage(
            calls=1, prompt_tokens=self.prompt_tokens, completion_tokens=self.completion_tokens
        )
        return Reply(
            text=self.text, finish_reason=self.finish_reason, usage=usage, model=self.model
        )


class Shelf:
    """Replies that all modes of a seed share, each with the seconds it took.

    The warm-up's stay, so that all modes are warmed alike; others last for one item.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Reply, float]] = {}
        self._passing: dict[str, tuple[Reply, float]] = {}

    def get(self, digest: str, *, warming: bool) -> tuple[Reply, float] | None:
        return (self._kept if warming else self._passing).get(digest)

    def put(self, digest: str, reply: Reply, seconds: float = 0.0, *, warming: bool) -> None:
        (self._kept if warming else self._passing)[digest] = (reply, seconds)

    def next_item(self) -> None:
        """Forget what was asked for the last item."""
        self._passing.clear()


class Recorder:
    """A backend in front of another one, one for each mode.

    Counts what the endpoint reports, not what a cache says of itself. Calls given to
    :meth:`replay` are answered from the record and reach no model.

    Args:
        generate: Asks the model.
        salt: Part of every digest: what else decides an answer (model, sampling).
        shelf: Replies shared between modes: the warm-up's and, with ``share``, one item's.
        share: Whether a call that another mode made for the same item is taken from the shelf; its
            seconds are then added to :attr:`charged`.
    """

    def __init__(
        self,
        generate: Callable[[ModelCall], Reply],
        *,
        salt: str = "",
        shelf: Shelf | None = None,
        share: bool = False,
    ) -> None:
        self._generate = generate
        self._salt = salt
        self._shelf = shelf if shelf is not None else Shelf()
        self._share = share
        self._recorded: deque[Call] = deque()
        self._replaying = False
        self.warming = False
        self.diverged = False
        self.calls: list[Call] = []
        self.charged = 0.0
        """Seconds of this exchange's calls that another mode waited for."""

    def begin(self) -> None:
        """Forget the last exchange's calls."""
        self.calls = []
        self.charged = 0.0
        self._recorded.clear()
        self._replaying = False
        self.diverged = False

    def replay(self, calls: Sequence[Call]) -> None:
        """Answer the next exchange from these calls, in order, and never by the model."""
        self.begin()
        self._recorded.extend(calls)
        self._replaying = True

    @property
    def finished(self) -> bool:
        """Whether a replay asked exactly what was recorded."""
        return not self._recorded and not self.diverged

    def generate(self, call: ModelCall, /) -> Reply:
        """Answer one call: from the record, from the shelf, or by the model."""
        digest = self.digest(call)
        reply = self._from_record(digest) if self._replaying else self._ask(call, digest)
        self.calls.append(
            Call(
                digest=digest,
                purpose=call.purpose,
                text=reply.text,
                finish_reason=reply.finish_reason,
                prompt_tokens=reply.usage.prompt_tokens,
                completion_tokens=reply.usage.completion_tokens,
                model=reply.model,
            )
        )
        return reply

    def digest(self, call: ModelCall) -> str:
        """A digest of everything that is sent."""
        asked: Mapping[str, Any] = {
            "salt": self._salt,
            "messages": [[m.role, m.text] for m in call.messages],
            "prefix": call.prefix,
            "schema": call.schema if call.purpose != "answer" else None,
        }
        return sha256(json.dumps(asked, sort_keys=True, default=dict).encode()).hexdigest()[:32]

    def _from_record(self, digest: str) -> Reply:
        if not self._recorded or self._recorded[0].digest != digest:
            self.diverged = True
            raise Diverged("the resumed run asks what the recorded one did not")
        return self._recorded.popleft().reply()

    def _ask(self, call: ModelCall, digest: str) -> Reply:
        shared = self.warming or self._share
        known = self._shelf.get(digest, warming=self.warming) if shared else None
        if known is not None:
            self.charged += known[1]
            return known[0]
        start = time.perf_counter()
        reply = self._generate(call)
        if shared:
            seconds = time.perf_counter() - start
            self._shelf.put(digest, reply, seconds, warming=self.warming)
        return reply
