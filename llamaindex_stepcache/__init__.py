"""StepCache for LlamaIndex: an LLM that wraps any other and reuses its answers step by step.

>>> from llamaindex_stepcache import StepCacheLLM
>>> llm = StepCacheLLM(llm=inner)  # doctest: +SKIP
>>> Settings.llm = llm  # doctest: +SKIP
"""

from __future__ import annotations

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError(
        "llamaindex_stepcache needs llama-index-core: pip install 'stepcache[llamaindex]'"
    ) from error

from llamaindex_stepcache._counting import StepCacheTokenCounter
from llamaindex_stepcache._events import StepCacheAnswerEvent
from llamaindex_stepcache._llm import StepCacheLLM

__all__ = ["StepCacheAnswerEvent", "StepCacheLLM", "StepCacheTokenCounter"]
