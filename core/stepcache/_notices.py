"""What a port has to say of its work beside its answer: that it refused a stored record, say.

A driver listens while it calls a port, and hands what was said to the flow, for the trace. Whoever
calls a port without listening loses nothing but these words. A notice names kinds and numbers,
never the text of a request or an answer.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

__all__ = ["hear", "hear_no_more", "tell"]

_sink: ContextVar[list[str] | None] = ContextVar("stepcache_notices", default=None)


def tell(notice: str) -> None:
    """Say something to whoever listens to this call, in this thread, task or worker."""
    sink = _sink.get()
    if sink is not None:
        sink.append(notice)


def hear(sink: list[str] | None) -> Token[list[str] | None]:
    """Collect what is told from here on, also in worker threads that copy the context, until
    :func:`hear_no_more` is given what this returns.

    Args:
        sink: Where to put it; None listens to nothing.
    """
    return _sink.set(sink)


def hear_no_more(token: Token[list[str] | None]) -> None:
    """Listen as before."""
    _sink.reset(token)
