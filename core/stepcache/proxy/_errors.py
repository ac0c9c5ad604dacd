"""What may go wrong between a client and its upstream, and how it is told in OpenAI's shape."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from stepcache.proxy._headers import RawHeaders

__all__ = ["Answered", "StreamBroken", "UpstreamAnswered", "UpstreamFailed", "error_body"]


@dataclass(frozen=True, slots=True)
class Answered:
    """An upstream's response, as it came."""

    status: int
    headers: RawHeaders
    """End to end fields only."""
    body: bytes = b""


class UpstreamAnswered(Exception):
    """The upstream's response is no chat completion: an error, or something else to hand on."""

    def __init__(self, answered: Answered) -> None:
        super().__init__(f"the upstream answered {answered.status}")
        self.answered = answered


class UpstreamFailed(Exception):
    """The upstream gave no response, or broke off in the middle of one.

    Attributes:
        status: 504 when it took too long, else 502.
    """

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class StreamBroken(UpstreamFailed):
    """A stream began and reports an error itself.

    Attributes:
        events: The raw events to hand on.
    """

    def __init__(self, message: str, events: Sequence[bytes]) -> None:
        super().__init__(message)
        self.events = tuple(events)


def error_body(
    message: str, *, kind: str, code: str | None = None, param: str | None = None
) -> bytes:
    """An error as OpenAI's API says it."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return json.dumps({"error": error}).encode("ascii")
