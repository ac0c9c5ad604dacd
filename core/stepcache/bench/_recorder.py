"""A model that remembers: every call counted and kept, and given again when a run is resumed."""

from __future__ import annotations

import json
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
    """Answers to the warm-up's calls, shared by all modes, so that all are warmed alike."""

    def __init__(self) -> None:
        self._replies: dict[str, Reply] = {}

    def get(self, digest: str) -> Reply | None:
        return self._replies.get(digest)

    def put(self, digest: str, reply: Reply) -> None:
        self._replies[digest] = reply


class Recorder:
    """A backend in front of another one, one for each mode.

    Counts what the endpoint reports, not what a cache says of itself. Calls given to
    :meth:`replay` are answered from the record and reach no model.

    Args:
        generate: Asks the model.
        salt: Part of every digest: what else decides an answer (model, sampling).
        shelf: Answers shared between modes while :attr:`warming` is true.
    """

    def __init__(
        self, generate: Callable[[ModelCall], Reply], *, salt: str = "", shelf: Shelf | None = None
    ) -> None:
        self._generate = generate
        self._salt = salt
        self._shelf = shelf if shelf is not None else Shelf()
        self._recorded: deque[Call] = deque()
        self._replaying = False
        self.warming = False
        self.diverged = False
        self.calls: list[Call] = []

    def begin(self) -> None:
        """Forget the last exchange's calls."""
        self.calls = []
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
        known = self._shelf.get(digest) if self.warming else None
        reply = known if known is not None else self._generate(call)
        if self.warming:
            self._shelf.put(digest, reply)
        return reply
