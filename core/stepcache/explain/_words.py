"""Decisions in plain words and as plain data.

What comes from the store (prompts, answers, and the reasons that quote them) is hidden unless asked
for: whoever may see that a store has an entry need not be who may read it. What the caller asked is
the caller's own and is shown.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from stepcache._inspection import Inspection
from stepcache._types import Candidate, Difference, Entry, Verdict
from stepcache.explain._figures import namespace_of, own_tags

__all__ = ["HIDDEN", "candidate_facts", "change_facts", "entry_facts", "facts", "headline", "why"]

HIDDEN = "(hidden)"
"""Stands for a text of the store's."""

_HEADLINES = {
    "exact": "Hit (exact): this very request is stored, and its answer is served. "
    "The model is not asked.",
    "reuse": "Hit (reuse): the same demands are stored in other words, and every step of the "
    "answer was verified. The model is not asked.",
    "adapt": "Hit (adapt): the stored steps are re-derived for the new demands, and every one is "
    "verified. The model is not asked.",
    "patch": "In part (patch): the model is asked for the part of a stored answer that does not "
    "hold, and for nothing else.",
    "skip": "Miss (skip): something near is stored, but nothing proves that its answer fits. "
    "The model is asked for the whole answer.",
    "miss": "Miss: nothing stored answers it. The model is asked for the whole answer.",
    "bypass": "Bypass: the cache stands aside. The model is asked for the whole answer.",
}
_NOTHING = {
    "nothing-near": "No stored request of this scope is near enough, by this engine's embedder, "
    "to be looked at.",
    "nothing-equal": "Open text is served to equal requests and to closed sets of set phrases "
    "only, and none such is stored in this scope.",
    "exact-only": "Only a byte-equal request would be served, and none is stored in this scope.",
}
_NOT_TOLD = frozenset(("exact", "canonical", "candidates", "explained", "differs", "plan", "task"))


def headline(inspection: Inspection) -> str:
    """The decision in one sentence or two."""
    return _HEADLINES.get(inspection.route, f"{inspection.route}: {inspection.outcome.reason}")


def why(inspection: Inspection, *, show_text: bool = False) -> list[str]:
    """The reasons for a decision, a sentence each.

    Args:
        show_text: Quote what is stored.
    """
    outcome = inspection.outcome
    lines = [_family(inspection)]
    if outcome.route == "bypass":
        lines.append(f"{_sentence(outcome.reason)}")
    if not outcome.candidates and not outcome.served and outcome.code in _NOTHING:
        lines.append(_NOTHING[outcome.code])
    lines += [_of_candidate(c, show_text=show_text) for c in outcome.candidates]
    for event in outcome.trace.events:
        if event.name not in _NOT_TOLD and event.name != "bypass":
            lines.append(_sentence(f"{event.name}: {event.detail if show_text else HIDDEN}"))
    if inspection.call is not None and show_text:
        lines.append(f"The model would be asked: {inspection.call.messages[-1].text}")
    return [line for line in lines if line]


def facts(inspection: Inspection, *, show_text: bool = False) -> dict[str, Any]:
    """An inspection as plain JSON-able data.

    Args:
        show_text: Include what is stored.
    """
    outcome = inspection.outcome
    told: dict[str, Any] = {
        "route": outcome.route,
        "served": outcome.served,
        "asks": inspection.asks,
        "code": outcome.code,
        "headline": headline(inspection),
        "why": why(inspection, show_text=show_text),
        "task": outcome.task,
        "scope": inspection.scope,
        "source": inspection.source.id if inspection.source is not None else None,
        "candidates": [candidate_facts(c, show_text=show_text) for c in outcome.candidates],
    }
    if show_text:
        told["reason"] = outcome.reason
        told["text"] = outcome.text if outcome.served else None
        told["trace"] = [str(event) for event in outcome.trace.events]
    return told


def candidate_facts(candidate: Candidate, *, show_text: bool = False) -> dict[str, Any]:
    """One stored entry that was considered, as plain JSON-able data."""
    told: dict[str, Any] = {
        "entry_id": candidate.entry.id,
        "created": candidate.entry.created,
        "similarity": candidate.similarity,
        "action": candidate.action,
        "code": candidate.code,
        "differences": [change_facts(d, show_text=show_text) for d in candidate.differences],
        "verdicts": [_verdict(v, show_text=show_text) for v in candidate.verdicts],
    }
    if show_text:
        told["reason"] = candidate.reason
        told["prompt"], told["answer"] = candidate.entry.prompt, candidate.entry.text
    return told


def change_facts(difference: Difference, *, show_text: bool = False) -> dict[str, Any]:
    """One difference as plain JSON-able data."""
    return {
        "kind": difference.kind,
        "path": difference.path,
        "stored": difference.old if show_text or not difference.old else HIDDEN,
        "asked": difference.new,
        "accounted_for_by": difference.owner,
    }


def entry_facts(entry: Entry, *, show_text: bool = False) -> dict[str, Any]:
    """An entry as plain JSON-able data."""
    constraints = entry.constraints
    told: dict[str, Any] = {
        "entry_id": entry.id,
        "scope": entry.scope,
        "namespace": namespace_of(entry),
        "task": constraints.task if constraints is not None else None,
        "task_version": constraints.version if constraints is not None else None,
        "model": entry.model,
        "created": entry.created,
        "expires": entry.expires,
        "tags": list(own_tags(entry)),
        "steps": len(entry.steps),
        "prompt_chars": len(entry.prompt),
        "answer_chars": len(entry.text),
        "cost": entry.usage.as_dict(),
    }
    if show_text:
        told["prompt"], told["answer"] = entry.prompt, entry.text
        told["demands"] = dict(constraints.values) if constraints is not None else None
    return told


def _verdict(verdict: Verdict, *, show_text: bool) -> dict[str, Any]:
    told = {"status": verdict.status.value, "code": verdict.code}
    return {**told, "reason": verdict.reason} if show_text else told


def _family(inspection: Inspection) -> str:
    """Which family took the request, or why none did: read from the caller's own text."""
    told = [e.detail for e in inspection.outcome.trace.events if e.name == "task"]
    task = inspection.outcome.task
    if task is None:
        reasons = "; ".join(reason.removeprefix("none: ") for reason in told)
        return _sentence(f"no family of answers takes it: {reasons}") if told else ""
    if task == "text" and len(told) > 1:
        return _sentence(f"it is taken for open text: {'; '.join(told[:-1])}")
    return f"It is taken for the family {task}." if told else ""


def _of_candidate(candidate: Candidate, *, show_text: bool) -> str:
    entry = f"Entry {candidate.entry.id[:8]}"
    if candidate.action == "rejected":
        if candidate.code != "differs":
            detail = f": {candidate.reason}" if show_text else ""
            return _sentence(f"{entry} cannot be used ({candidate.code}){detail}")
        unexplained = [d for d in candidate.differences if not d.explained]
        told = ", ".join(_change(d, show_text=show_text) for d in unexplained[:3])
        more = f" and {len(unexplained) - 3} more" if len(unexplained) > 3 else ""
        return f"{entry} differs in what no verifier accounts for: {told}{more}."
    changed = [_change(d, show_text=show_text) for d in candidate.differences[:3]]
    of = f" What differs is accounted for: {', '.join(changed)}." if changed else ""
    counts = Counter(v.status.value for v in candidate.verdicts)
    steps = ", ".join(
        f"{counts[name]} {name}" for name in ("pass", "fail", "unknown") if counts[name]
    )
    reason = f": {candidate.reason}" if show_text else f" ({candidate.code})"
    return f"{entry} -> {candidate.action}{reason}.{of} Steps: {steps or 'none'}."


def _change(difference: Difference, *, show_text: bool) -> str:
    old = difference.old if show_text or not difference.old else HIDDEN
    shown = [
        repr(text) if text not in ("", HIDDEN) else text or "nothing"
        for text in (old, difference.new)
    ]
    return f"{difference.kind} {shown[0]} -> {shown[1]}"


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
