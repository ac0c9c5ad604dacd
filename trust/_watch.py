"""CPU time of one call, and an end for calls that would not end by themselves."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["LIMIT", "StuckError", "seconds_of", "watched"]

T = TypeVar("T")

LIMIT = 0.1
"""CPU seconds an input may take."""
_GIVEN_UP = 5.0
_RERUNS = 3


class StuckError(BaseException):
    """Raised into a call that has used far more CPU time than any input may. No ``Exception``, so
    that nothing on its way takes it for a fault of the input's."""


def _stuck(number: int, frame: object) -> None:
    raise StuckError


@contextmanager
def watched() -> Iterator[None]:
    """Give up what runs inside after some CPU seconds, by :class:`StuckError`; main thread only."""
    before = signal.signal(signal.SIGVTALRM, _stuck)
    signal.setitimer(signal.ITIMER_VIRTUAL, _GIVEN_UP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds_of(call: Callable[[], T]) -> float:
    """CPU seconds of a call that was slow once: the least of several runs, so that a collection
    of garbage or a cold cache is not taken for the input's doing."""
    least = float("inf")
    for _ in range(_RERUNS):
        started = time.process_time()
        try:
            with watched():
                call()
        except StuckError:
            return _GIVEN_UP
        except Exception:
            pass
        least = min(least, time.process_time() - started)
    return least
