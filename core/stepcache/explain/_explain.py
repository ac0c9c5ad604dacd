"""Would one request be served from the answer to another?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepcache._inspection import Inspection
from stepcache._types import Constraints, Declined, Message, ModelCall, Outcome, Reply, Request
from stepcache.engine import StepCacheEngine
from stepcache.explain._words import facts, headline, why
from stepcache.protocols import Task
from stepcache.stores import MemoryStore

__all__ = ["Explanation", "as_request", "beside", "explain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What becomes of a second request when a first one has been answered."""

    first: Outcome
    """The first request's: what of its answer was kept."""
    inspection: Inspection
    """The second request's."""
    stand_in: bool
    """True when no answer was given and one that fits stood in."""

    @property
    def kept(self) -> bool:
        """Whether the answer to the first request was kept at all."""
        return self.first.entry_id is not None

    @property
    def served(self) -> bool:
        """Whether the second request is answered in full without the model."""
        return self.inspection.served

    @property
    def not_kept(self) -> str:
        """Why the answer to the first request is not kept; empty where it is."""
        if self.kept:
            return ""
        told = [e.detail for e in self.first.trace.events if e.name in ("not admitted", "check")]
        return told[-1] if told else self.first.reason

    def render(self) -> str:
        """The explanation in plain words."""
        lines = []
        if not self.kept:
            lines.append(f"The answer to the first request is not kept: {self.not_kept}.")
        lines += [headline(self.inspection), *why(self.inspection, show_text=True)]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The explanation as plain JSON-able data, texts included: they are the caller's own."""
        kept: dict[str, Any] = {"entry_id": self.first.entry_id, "stand_in": self.stand_in}
        if not self.kept:
            kept["reason"] = self.not_kept
        return {"first": kept, **facts(self.inspection, show_text=True)}


def explain(
    engine: StepCacheEngine | Sequence[Task] | None,
    request_a: Request | str,
    answer_a: str | None,
    request_b: Request | str,
) -> Explanation:
    """Say whether, and by which route, ``request_b`` would be served from the answer to
    ``request_a``; no model is asked.

    Args:
        engine: Whose tasks, embedder, policy and verifiers decide, or the tasks alone; None takes
            the defaults. Its store is not touched.
        request_a: The request that was answered.
        answer_a: Its answer; None takes one that fits. An answer that fails its check is mended or
            replaced as the engine does it.
        request_b: The request that comes next.

    Raises:
        ConfigurationError: Tasks that are none.
        UsageError: An asynchronous embedder.
    """
    fresh = beside(engine, MemoryStore())
    first, second = as_request(request_a), as_request(request_b)
    answer = answer_a if answer_a is not None else _fitting(fresh, first)
    told = fresh.resolve(first, backend=_Says(answer))
    return Explanation(first=told, inspection=fresh.inspect(second), stand_in=answer_a is None)


def beside(engine: StepCacheEngine | Sequence[Task] | None, store: Any) -> StepCacheEngine:
    """An engine that decides as another does, on a store of its own."""
    if not isinstance(engine, StepCacheEngine):
        return StepCacheEngine(store=store, tasks=engine)
    return StepCacheEngine(
        store=store,
        embedder=engine.embedder,
        namespace=engine.namespace,
        tasks=engine.tasks,
        verifiers=engine.verifiers,
        policy=engine.policy,
    )


def as_request(request: Request | str) -> Request:
    """A request of one user message, where a text is given."""
    if isinstance(request, Request):
        return request
    return Request(messages=(Message(role="user", text=request),))


def _fitting(engine: StepCacheEngine, request: Request) -> str:
    """An answer that passes the check of the family that takes the request, if we know one."""
    from stepcache.testing.obliging import filled

    if request.contract.schema is not None:
        return json.dumps(filled(request.contract.schema, request.text))
    for task in engine.tasks:
        parsed = task.parse(request)
        if not isinstance(parsed, Declined):
            return task.solve(parsed) or _skeleton(parsed)
    return "An answer."


def _skeleton(constraints: Constraints) -> str:
    """JSON of the shape and with the keys that are demanded, if any are."""
    values: Mapping[str, Any] = constraints.values
    schema, keys = values.get("schema"), values.get("keys")
    if isinstance(schema, Mapping):
        from stepcache.testing.obliging import filled

        return json.dumps(filled(schema, ""))
    if isinstance(keys, list):
        item = {str(key): "sample" for key in keys} or {"answer": "sample"}
        return json.dumps([item] if values.get("shape") == "array" else item)
    return "An answer."


@dataclass(frozen=True, slots=True)
class _Says:
    """A model that answers the same whatever it is asked."""

    answer: str

    def generate(self, call: ModelCall, /) -> Reply:
        return Reply(text=self.answer)
