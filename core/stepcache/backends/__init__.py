"""Models behind a wire protocol, as backends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepcache.backends._openai import AsyncOpenAICompatibleBackend, OpenAICompatibleBackend

__all__ = ["AsyncOpenAICompatibleBackend", "OpenAICompatibleBackend"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from stepcache.backends import _openai

        return getattr(_openai, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
