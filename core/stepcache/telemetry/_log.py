"""``LogListener``: one line per request through :mod:`logging`, which reads as the decision."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from stepcache._errors import ConfigurationError
from stepcache._types import Outcome, Request
from stepcache.protocols import Timing
from stepcache.telemetry._prices import Price, priced
from stepcache.telemetry._trace_record import namespace_digest

__all__ = ["LogListener"]

_BARE = re.compile(r"[A-Za-z0-9_.:/+@-]+")


class LogListener:
    """A listener that logs each request as ``key=value`` pairs in one line.

    The same pairs stand in the record's ``stepcache`` attribute, for formatters that write JSON.
    Faults that were survived make the line a warning, and so does an error that went through.

    Args:
        logger: Where to; None takes ``stepcache.requests``.
        level: Of a line without faults.
        texts: Whether the reason's sentence, the prompt and the answer are logged too.
        price: What tokens cost, to log money beside them.

    Raises:
        ConfigurationError: The logger is none.

    Example:
        A patched answer reads
        ``route=patch code=missing-keys task=json face=resolve steps=2 reused=1 patched=1 ...``
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        level: int = logging.INFO,
        texts: bool = False,
        price: Price | None = None,
    ) -> None:
        logger = logger if logger is not None else logging.getLogger("stepcache.requests")
        if not isinstance(logger, (logging.Logger, logging.LoggerAdapter)):
            raise ConfigurationError(f"logger is {logger!r}: pass a logging.Logger, or None")
        self._logger = logger
        self._level = level
        self._texts = texts
        self._price = price

    def __call__(self, request: Request, outcome: Outcome, timing: Timing, /) -> None:
        faults = _faults(timing)
        level = max(self._level, logging.WARNING) if faults else self._level
        if not self._logger.isEnabledFor(level):
            return
        pairs: dict[str, Any] = {"route": outcome.route, "code": outcome.code}
        if outcome.task is not None:
            pairs["task"] = outcome.task
        pairs["face"] = timing.face
        if not outcome.served:
            pairs["served"] = "no"
        if outcome.steps:
            pairs["steps"] = len(outcome.steps)
            pairs.update(sorted(Counter(outcome.origins).items()))
        if outcome.candidates:
            pairs["candidates"] = len(outcome.candidates)
        pairs |= {
            "calls": outcome.spent.calls,
            "spent_tokens": outcome.spent.tokens,
            "avoided_tokens": outcome.avoided.tokens,
        }
        money = priced(outcome, self._price)
        if money is not None:
            pairs |= {"spent_money": money.spent, "avoided_money": money.avoided}
        pairs |= _seconds(timing)
        if outcome.model is not None:
            pairs["model"] = outcome.model
        if outcome.entry_id is not None:
            pairs["entry"] = outcome.entry_id
        if request.namespace:
            pairs["namespace"] = namespace_digest(request.namespace)
        if faults:
            pairs["faults"] = faults
        if self._texts:
            pairs |= {"reason": outcome.reason, "prompt": request.text, "answer": outcome.text}
        self._write(level, pairs)

    def failed(self, request: Request, error: Exception, timing: Timing, /) -> None:
        pairs: dict[str, Any] = {"error": type(error).__name__, "face": timing.face}
        pairs |= _seconds(timing)
        if faults := _faults(timing):
            pairs["faults"] = faults
        if self._texts:
            pairs |= {"reason": str(error), "prompt": request.text}
        self._write(max(self._level, logging.WARNING), pairs)

    def _write(self, level: int, pairs: Mapping[str, Any]) -> None:
        line = " ".join(f"{name}={_shown(value)}" for name, value in pairs.items())
        self._logger.log(level, "%s", line, extra={"stepcache": dict(pairs)})


def _seconds(timing: Timing) -> dict[str, float]:
    told = {"seconds": timing.seconds, "proof_seconds": timing.proof}
    if timing.of("model"):
        told["model_seconds"] = timing.of("model")
    if timing.first is not None:
        told["first_seconds"] = timing.first
    return told


def _faults(timing: Timing) -> str:
    return ",".join(f"{part.port}:{part.error}" for part in timing.parts if part.error)


def _shown(value: Any) -> str:
    """A value that ends where it seems to: a text cannot begin a pair or a line of its own."""
    if isinstance(value, float):
        return f"{value:.6f}"
    text = str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text)
