"""What pure functions remember, apart for each tenant where tenants are to be kept apart.

A remembered result comes sooner, and by that one tenant could tell what another has asked about.
Under ``Policy(require_namespace=True)`` nothing that was remembered for one namespace makes
anything faster for another; otherwise all remember together.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast

__all__ = ["Memo", "apart", "memo", "wall"]

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)

_wall: ContextVar[str] = ContextVar("stepcache_wall", default="")


class Memo(Protocol[P, T_co]):
    """A function that remembers, with what :func:`functools.lru_cache` offers."""

    cache_clear: Callable[[], None]
    cache_info: Callable[[], Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...


def memo(maxsize: int) -> Callable[[Callable[P, T_co]], Memo[P, T_co]]:
    """As ``lru_cache``, for functions of positional, hashable arguments.

    Args:
        maxsize: Results to remember, of all namespaces together.
    """

    def remembering(function: Callable[P, T_co]) -> Memo[P, T_co]:
        @lru_cache(maxsize=maxsize)
        def remembered(wall: str, *args: Any) -> T_co:
            return cast("Any", function)(*args)  # type: ignore[no-any-return]

        @wraps(function)
        def call(*args: Any) -> T_co:
            return remembered(_wall.get(), *args)

        walled = cast("Memo[P, T_co]", call)
        walled.cache_clear = remembered.cache_clear
        walled.cache_info = remembered.cache_info
        return walled

    return remembering


def apart(namespace: str) -> None:
    """From here on, in this thread or task, remember for one namespace only."""
    _wall.set(namespace)


def wall() -> str:
    """The namespace that is remembered for in this thread or task; empty for all together."""
    return _wall.get()
