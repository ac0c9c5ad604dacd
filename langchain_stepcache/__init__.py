"""StepCache for LangChain: a ``BaseCache``, a chat model that wraps any other, agent middleware.

>>> from langchain_core.globals import set_llm_cache
>>> from langchain_stepcache import StepCache
>>> set_llm_cache(StepCache())

``StepCacheMiddleware`` is for ``create_agent`` and needs ``langchain`` itself; it is imported when
it is first asked for, everything else needs ``langchain-core`` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise ImportError(
        "langchain_stepcache needs langchain-core: pip install 'stepcache[langchain]'"
    ) from error

from langchain_stepcache._cache import StepCache
from langchain_stepcache._chat_model import StepCacheChatModel

if TYPE_CHECKING:
    from langchain_stepcache._middleware import StepCacheMiddleware

__all__ = ["StepCache", "StepCacheChatModel", "StepCacheMiddleware"]


def __getattr__(name: str) -> Any:
    if name == "StepCacheMiddleware":
        from langchain_stepcache._middleware import StepCacheMiddleware

        return StepCacheMiddleware
    raise AttributeError(f"module 'langchain_stepcache' has no attribute {name!r}")
