"""StepCache for LangChain: a ``BaseCache`` and a chat model that wraps any other.

>>> from langchain_core.globals import set_llm_cache
>>> from langchain_stepcache import StepCache
>>> set_llm_cache(StepCache())
"""

from __future__ import annotations

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise ImportError(
        "langchain_stepcache needs langchain-core: pip install 'stepcache[langchain]'"
    ) from error

from langchain_stepcache._cache import StepCache
from langchain_stepcache._chat_model import StepCacheChatModel

__all__ = ["StepCache", "StepCacheChatModel"]
