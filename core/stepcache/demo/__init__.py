"""The demonstration: a real local model, a chain over it, and the same chain with StepCache.

Run it with ``stepcache demo``; it needs the extra ``stepcache[demo]``.
"""

from __future__ import annotations

from stepcache.demo._local import local_model
from stepcache.demo._server import LocalModelServer, LocalServerError
from stepcache.demo._weights import MODELS, WeightsError, fetch

__all__ = ["MODELS", "LocalModelServer", "LocalServerError", "WeightsError", "fetch", "local_model"]
