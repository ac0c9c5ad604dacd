"""The wrapped LLM seen through the wrapper: its own ways, but every question goes elsewhere."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from llama_index.core.llms.llm import LLM

__all__ = ["quiet", "routed"]

_ROUTED = (
    *("chat", "complete", "stream_chat", "stream_complete"),
    *("achat", "acomplete", "astream_chat", "astream_complete"),
)
_OUTER = "_stepcache_outer"


def routed(llm: LLM, outer: LLM) -> LLM:
    """A copy of ``llm`` whose eight ways of asking lead to ``outer``.

    Its own way of asking for structure stays: inheriting the host's general way would lose a
    provider's JSON-schema mode, and calling the LLM's own would go past the cache.
    """
    view = copy.copy(llm)
    private = {**(llm.__pydantic_private__ or {}), _OUTER: outer}
    object.__setattr__(view, "__pydantic_private__", private)
    object.__setattr__(view, "__class__", _routed_class(type(llm)))
    return view


def quiet(llm: LLM, manager: Any) -> LLM:
    """``llm`` with other handlers; clients and other private state stay shared, lazy ones too."""
    view = copy.copy(llm)
    object.__setattr__(view, "__pydantic_private__", llm.__pydantic_private__)
    view.__dict__["callback_manager"] = manager
    return view


@lru_cache(maxsize=64)
def _routed_class(base: type[LLM]) -> type[LLM]:
    view: Any = type(f"Routed{base.__name__}", (base,), {"__module__": __name__})
    for name in _ROUTED:
        # Set afterwards, past the host's hook that wraps a class's methods in spans of their own.
        setattr(view, name, _to_outer(name))
    return cast("type[LLM]", view)


def _to_outer(name: str) -> Callable[..., Any]:
    def ask(view: LLM, *args: Any, **kwargs: Any) -> Any:
        outer = (view.__pydantic_private__ or {})[_OUTER]
        return getattr(outer, name)(*args, **kwargs)

    return ask
