"""A look at a decision: the engine's own flow, with every wish to change or to ask held back.

The flow decides; this only listens. So what an inspection says cannot differ from what the engine
would do, and it can neither write to a store nor cost a model call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stepcache._effects import Effect, Flow, Generate, Get, Put, Search, do
from stepcache._flow import Resolution, Setup
from stepcache._types import (
    Candidate,
    Control,
    Entry,
    Event,
    ModelCall,
    Outcome,
    Purpose,
    Request,
    Route,
    Trace,
)

__all__ = ["Inspection", "inspect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What the engine would do with a request now, and why."""

    outcome: Outcome
    """As a look-up would give it. Where a part would be asked of the model, its route is ``patch``,
    ``served`` is False and it has no text: what the model answers decides the rest."""
    call: ModelCall | None = None
    """What the model would be asked for a part; None where it would be asked for nothing less than
    the whole."""
    source: Entry | None = None
    """The entry that the answer, or most of it, comes from."""
    scope: str
    """Where was looked; empty for a request that has no identity."""

    @property
    def route(self) -> Route:
        return self.outcome.route

    @property
    def served(self) -> bool:
        """Whether the whole answer is there, without the model."""
        return self.outcome.served

    @property
    def asks(self) -> Purpose | None:
        """What the model would be asked for: nothing, a ``patch``, or the whole ``answer``."""
        if self.outcome.served:
            return None
        return "answer" if self.call is None else "patch"

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The stored entries that were considered, in order."""
        return self.outcome.candidates


def inspect(
    request: Request,
    setup: Setup,
    control: Control,
    *,
    scope: str | None = None,
    without: str | None = None,
) -> Flow[Inspection]:
    """Follow a request through the engine up to the point where it would change or ask anything.

    Args:
        scope: Where to take the request for being; None finds out.
        without: Id of an entry to take for absent, to see what was decided before it was kept.
            Others of the same demands are then found by similarity only.
    """
    resolution = Resolution(request, setup, control, may_ask=False, may_patch=True, scope=scope)
    seen: dict[str, Entry] = {}
    flow = resolution.run()
    try:
        effect: Effect = next(flow)
        while True:
            if isinstance(effect, Generate):
                flow.close()
                return _stopped(resolution, effect.call)
            if isinstance(effect, Put):
                effect = flow.send(True)
                continue
            try:
                result: Any = yield from do(_widened(effect, without))
            except Exception as error:  # noqa: BLE001 - the flow decides about any of them
                effect = flow.throw(error)
            else:
                result = _without(effect, result, without)
                if isinstance(effect, Get) and isinstance(result, Entry):
                    seen[result.id] = result
                effect = flow.send(result)
    except StopIteration as stop:
        return _ended(resolution, stop.value, seen)


def _widened(effect: Effect, without: str | None) -> Effect:
    """As many candidates as there would be, one more being left out."""
    if isinstance(effect, Search) and without is not None:
        return replace(effect, limit=effect.limit + 1)
    return effect


def _without(effect: Effect, result: Any, without: str | None) -> Any:
    if without is None:
        return result
    if isinstance(effect, Get) and isinstance(result, Entry) and result.id == without:
        return None
    if isinstance(effect, Search) and isinstance(result, tuple):
        return tuple(m for m in result if m.entry.id != without)[: effect.limit]
    return result


def _stopped(resolution: Resolution, call: ModelCall) -> Inspection:
    """The inspection of a request for whose answer the model would be asked for a part."""
    option = resolution.taken
    reason = option.plan.reason if option is not None else ""
    outcome = Outcome(
        text="",
        route="patch",
        reason=reason,
        code=option.plan.code if option is not None else "",
        verdicts=option.verdicts if option is not None else (),
        task=resolution.judge.task.name if resolution.judge is not None else None,
        candidates=resolution.considered(),
        served=False,
        trace=_trace(resolution.events),
    )
    source = option.entry if option is not None else None
    return Inspection(outcome=outcome, call=call, source=source, scope=resolution.identity.scope)


def _ended(resolution: Resolution, outcome: Outcome, seen: dict[str, Entry]) -> Inspection:
    outcome = replace(outcome, trace=_trace(outcome.trace.events))
    source = None
    if outcome.served:
        source = seen.get(outcome.entry_id or "")
        if source is None and resolution.taken is not None:
            source = resolution.taken.entry
    return Inspection(outcome=outcome, source=source, scope=resolution.identity.scope)


def _trace(events: tuple[Event, ...] | list[Event]) -> Trace:
    """The story without what was held back."""
    return Trace(events=tuple(e for e in events if e.name != "admitted"))
