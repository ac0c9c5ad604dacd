"""What tracers are told of an answer, in the metadata of its run.

LangSmith and other tracers of LangChain's own kind show and filter runs by flat metadata. Other
handlers read the same in the message: ``response_metadata["stepcache"]``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.utils.uuid import uuid7

__all__ = ["Traced", "traced"]

_log = logging.getLogger("stepcache")


@dataclass(frozen=True, slots=True)
class Traced:
    """One model run, and who hears of it."""

    handlers: Sequence[Any]
    run_id: UUID | None

    @classmethod
    def of(cls, run_manager: Any) -> Traced:
        """The run of a run manager; None where nobody traces."""
        if run_manager is None:
            return cls((), None)
        return cls(run_manager.handlers, run_manager.run_id)

    def tell(self, summary: Mapping[str, Any] | None) -> None:
        """Put an outcome's summary into the run's metadata, but for its texts."""
        if not summary:
            return
        for handler in self.handlers:
            runs = getattr(handler, "run_map", None)
            run: Any = runs.get(str(self.run_id)) if isinstance(runs, dict) else None
            try:
                if hasattr(run, "add_metadata"):
                    run.add_metadata(_flat(summary))
            except Exception as error:  # noqa: BLE001 - law 11: no tracer's fault is the user's
                _log.warning("a tracer was not told: %s", type(error).__name__)


def traced(
    config: RunnableConfig | None, own: Any, *, asynchronous: bool = False
) -> tuple[RunnableConfig | None, Traced]:
    """A stream's configuration, with its handlers and run known beforehand.

    LangChain gives the methods that stream no run manager. So the handlers are made ready here,
    once, and handed on; and the run gets its name here.

    Args:
        own: The model's own callbacks.
    """
    full = ensure_config(config)
    kind = AsyncCallbackManager if asynchronous else CallbackManager
    manager = kind.configure(full.get("callbacks"))
    local = own if isinstance(own, (list, tuple)) else getattr(own, "handlers", ())
    handlers = [each for each in (*manager.handlers, *local) if hasattr(each, "run_map")]
    if not handlers:
        return config, Traced((), None)
    run_id = full.get("run_id") or uuid7()
    told = {**full, "callbacks": manager, "run_id": run_id}
    return cast("RunnableConfig", told), Traced(handlers, run_id)


def _flat(summary: Mapping[str, Any]) -> dict[str, Any]:
    told = {
        name: summary[name]
        for name in ("route", "code", "task", "entry_id", "reused_steps", "patched_steps")
    }
    for kind in ("spent", "avoided"):
        usage = summary[kind]
        told[f"{kind}_calls"] = usage["calls"]
        told[f"{kind}_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    return {f"stepcache_{name}": value for name, value in told.items()}
