"""A trace log's records as rows: everything the listener was told, in the order of the requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stepcache._counts import count
from stepcache.report._rows import Before, Report, Row, Shown
from stepcache.report._sources import newest

if TYPE_CHECKING:
    from stepcache.telemetry import TraceRecord

__all__ = ["read_log", "rows_of_log"]


def read_log(path: Path, limit: int) -> Report:
    """Read a trace log, its rotated files included."""
    from stepcache.telemetry import read_trace_log

    broken = 0

    def told(*_: object) -> None:
        nonlocal broken
        broken += 1

    rows, left_out = newest(rows_of_log(read_trace_log(path, on_broken=told)), limit)
    remarks = []
    if broken:
        remarks.append(f"Left out: {count(broken, 'damaged line')}.")
    if rows and not any(row.prompt is not None for row in rows):
        remarks.append(
            "The log was written without texts: lengths and codes are shown "
            "(TraceLog(..., texts=True) records texts)."
        )
    return Report(
        kind="trace log",
        source=path.name,
        rows=rows,
        left_out=left_out,
        remarks=tuple(remarks),
    )


def rows_of_log(records: Iterable[TraceRecord]) -> Iterator[Row]:
    """A row for each record."""
    known: dict[str, int] = {}
    for number, record in enumerate(records, start=1):
        route = record.route or "error"
        money = record.money
        notes = [("face", record.face)]
        if not record.served and not record.error:
            notes.append(("asked by", "the caller, who looked up only"))
        if record.namespace:
            notes.append(("namespace", record.namespace))
        if money:
            notes.append(("money spent", f"{money['spent']:.6f}"))
            notes.append(("money avoided", f"{money['avoided']:.6f}"))
        if record.timing.wait >= 0.001:
            notes.append(("waited for an equal request", f"{record.timing.wait:.3f} s"))
        if record.timing.first is not None:
            notes.append(("first piece of the stream", f"{record.timing.first:.3f} s"))
        notes += [(f"{fault['port']} failed", fault["error"]) for fault in record.faults]
        yield Row(
            number=number,
            time=record.time,
            pool=f"{record.namespace} {record.task}",
            route=route,
            reason=record.reason,
            group=_group(record),
            task=record.task or "exact only",
            model=record.model,
            prompt=record.prompt,
            steps=_steps(record),
            seconds=record.seconds,
            proof=record.timing.proof,
            model_seconds=record.timing.model,
            spent=record.spent,
            avoided=record.avoided,
            entry=record.entry,
            fault=record.error or "",
            trace=tuple(record.trace),
            before=_before(record, known),
            notes=tuple(notes),
        )
        if record.entry is not None:
            known.setdefault(record.entry, number)


def _group(record: TraceRecord) -> str:
    """The reason in words that quote nothing; of a difference nobody explains, its kind."""
    if record.error:
        return record.error
    if record.code == "differs":
        for candidate in record.candidates:
            for difference in candidate.differences:
                if not difference.explained:
                    return f"different {difference.kind.replace('-', ' ')}"
    return record.code.replace("-", " ")


def _steps(record: TraceRecord) -> tuple[Shown, ...]:
    return tuple(
        Shown(
            text=step.text,
            chars=step.chars,
            origin=step.origin or "generated",
            status=step.status,
            code=step.code,
            reason=step.reason,
            kind=step.kind,
        )
        for step in record.steps
    )


def _before(record: TraceRecord, known: dict[str, int]) -> tuple[Before, ...]:
    found = [
        Before(
            entry=candidate.entry,
            row=known.get(candidate.entry),
            prompt=candidate.prompt,
            answer=candidate.answer,
            similarity=candidate.similarity,
            action=candidate.action,
            code=candidate.code,
            differences=tuple(
                (each.kind, each.explained, each.old, each.new) for each in candidate.differences
            ),
        )
        for candidate in record.candidates
    ]
    return _taken_first(record.route, found)


def _taken_first(route: str | None, found: Sequence[Before]) -> tuple[Before, ...]:
    taken = next((b for b in found if b.action == route), None)
    if taken is None:
        return tuple(found)
    return (taken, *(b for b in found if b is not taken))
