"""One request as a trace log keeps it: a line of JSON.

Texts of requests, answers, differences and errors are there only where the log was told to keep
them; all else is numbers, codes, and names that the setup gave.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stepcache._identity import digest
from stepcache._types import Candidate, Outcome, Request, Usage
from stepcache.protocols import Timing
from stepcache.telemetry._prices import Price, priced

__all__ = [
    "CandidateRecord",
    "DifferenceRecord",
    "StepRecord",
    "TimingRecord",
    "TraceRecord",
    "failure_record",
    "namespace_digest",
    "outcome_record",
]

VERSION = 1
"""Of the form of a line."""
_NOTHING = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingRecord:
    """Seconds by who took them."""

    proof: float = 0.0
    """Parsing, comparing, verifying, planning."""
    store: float = 0.0
    embedder: float = 0.0
    model: float = 0.0
    wait: float = 0.0
    """For an equal request in flight."""
    first: float | None = None
    """To the first piece of a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of the answer."""

    kind: str
    origin: str | None
    """As :data:`stepcache._types.Origin`."""
    status: str | None = None
    """``pass``, ``fail`` or ``unknown``; None where nobody verified it."""
    code: str | None = None
    """The verdict's."""
    reason: str | None = None
    chars: int = 0
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRecord:
    """One change between the stored request and this one."""

    kind: str
    explained: bool
    path: str | None = None
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRecord:
    """A stored entry that was considered."""

    entry: str
    similarity: float | None
    action: str
    code: str
    reason: str | None = None
    differences: tuple[DifferenceRecord, ...] = ()
    prompt: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRecord:
    """One request. Fields named as texts are None in a log that keeps none."""

    v: int = VERSION
    time: float
    """When it ended, seconds since the epoch."""
    namespace: str = ""
    """A digest; empty for the default one."""
    face: str
    route: str | None
    """None where an error went through to the caller."""
    code: str = ""
    reason: str | None = None
    """Text."""
    task: str | None = None
    model: str | None = None
    entry: str | None = None
    served: bool = True
    spent: Usage = _NOTHING
    avoided: Usage = _NOTHING
    money: Mapping[str, float] | None = None
    """``spent`` and ``avoided``; None without prices."""
    seconds: float
    timing: TimingRecord = TimingRecord()
    steps: tuple[StepRecord, ...] = ()
    candidates: tuple[CandidateRecord, ...] = ()
    """In the order they were considered."""
    faults: tuple[Mapping[str, str], ...] = ()
    """``port`` and ``error``, a class name, of what failed on the way."""
    trace: tuple[str, ...] = ()
    """The trace's lines; in a log without texts, the names of its events."""
    prompt: str | None = None
    """Text."""
    answer: str | None = None
    """Text."""
    error: str | None = None
    """Class name of the error that went through to the caller."""

    def line(self) -> bytes:
        """The record as one line of JSON, in ASCII: any text can be written so."""
        told = json.dumps(self, default=_fields, separators=(",", ":"), allow_nan=False)
        return told.encode("ascii") + b"\n"


def namespace_digest(namespace: str) -> str:
    """A namespace as 12 hexadecimal digits, for it may name a person; empty for the default."""
    return digest("namespace", namespace)[:12] if namespace else ""


def outcome_record(
    request: Request,
    outcome: Outcome,
    timing: Timing,
    *,
    time: float,
    texts: bool = False,
    price: Price | None = None,
) -> TraceRecord:
    """The record of an answered request.

    Args:
        time: Seconds since the epoch.
        texts: Whether prompts, answers, reasons and differences are kept in clear.
        price: What tokens cost; None leaves money out.
    """
    money = priced(outcome, price)
    record = _begun(request, timing, time)
    return replace(
        record,
        route=outcome.route,
        code=outcome.code,
        reason=outcome.reason if texts else None,
        task=outcome.task,
        model=outcome.model,
        entry=outcome.entry_id,
        served=outcome.served,
        spent=outcome.spent,
        avoided=outcome.avoided,
        money={"spent": money.spent, "avoided": money.avoided} if money is not None else None,
        steps=_steps(outcome, texts),
        candidates=tuple(_candidate(each, texts) for each in outcome.candidates),
        trace=tuple(map(str, outcome.trace.events)) if texts else outcome.trace.names(),
        prompt=request.text if texts else None,
        answer=outcome.text if texts else None,
    )


def failure_record(
    request: Request, error: Exception, timing: Timing, *, time: float, texts: bool = False
) -> TraceRecord:
    """The record of a request that ended in an error."""
    record = _begun(request, timing, time)
    prompt = request.text if texts else None
    return replace(record, code="error", served=False, prompt=prompt, error=type(error).__name__)


def _begun(request: Request, timing: Timing, time: float) -> TraceRecord:
    return TraceRecord(
        time=time,
        namespace=namespace_digest(request.namespace),
        face=timing.face,
        route=None,
        seconds=timing.seconds,
        timing=TimingRecord(
            proof=timing.proof,
            store=timing.of("store"),
            embedder=timing.of("embedder"),
            model=timing.of("model"),
            wait=timing.of("wait"),
            first=timing.first,
        ),
        faults=tuple(
            {"port": part.port, "error": part.error} for part in timing.parts if part.error
        ),
    )


def _steps(outcome: Outcome, texts: bool) -> tuple[StepRecord, ...]:
    verdicts, origins = outcome.verdicts, outcome.origins
    records = []
    for index, step in enumerate(outcome.steps):
        verdict = verdicts[index] if index < len(verdicts) else None
        records.append(
            StepRecord(
                kind=step.kind,
                origin=origins[index] if index < len(origins) else None,
                status=verdict.status.value if verdict is not None else None,
                code=verdict.code if verdict is not None else None,
                reason=verdict.reason if verdict is not None and texts else None,
                chars=len(step.text),
                text=step.text if texts else None,
            )
        )
    return tuple(records)


def _candidate(candidate: Candidate, texts: bool) -> CandidateRecord:
    return CandidateRecord(
        entry=candidate.entry.id,
        similarity=candidate.similarity,
        action=candidate.action,
        code=candidate.code,
        reason=candidate.reason if texts else None,
        differences=tuple(
            DifferenceRecord(
                kind=each.kind,
                explained=each.explained,
                path=each.path if texts else None,
                old=each.old if texts else None,
                new=each.new if texts else None,
            )
            for each in candidate.differences
        ),
        prompt=candidate.entry.prompt if texts else None,
        answer=candidate.entry.text if texts else None,
    )


def _fields(value: Any) -> Any:
    """A record of ours as its fields; numbers of other libraries as Python's."""
    names = getattr(value, "__dataclass_fields__", None)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    return float(value)
