"""A benchmark's record as rows: one for each request to each mode, warm-up included."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepcache._counts import count
from stepcache._render._words import origins_of
from stepcache._types import Usage
from stepcache.bench._figures import Row as Judged
from stepcache.bench._log import Exchange
from stepcache.bench._record import RecordError, load_record, rows_of
from stepcache.protocols import Task
from stepcache.report._rows import Before, Report, Row, Shown, group_of
from stepcache.report._sources import SourceError, newest
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.linear_equation import LinearEquationTask

__all__ = ["read_record"]

_TASKS: Mapping[str, Task] = {"math": LinearEquationTask(), "json": JsonAnswerTask()}
_BARE = "bare"
"""The mode without a cache: what every other one is held against."""
_PLAN = re.compile(r"plan: (\w+) ([0-9a-f]{24})\b")
_ADMITTED = re.compile(r"admitted: entry ([0-9a-f]{24})\b")
_FOUND = re.compile(r"(?:exact|canonical): entry ([0-9a-f]{24})\b")


def read_record(path: Path, limit: int) -> Report:
    """Read the record of ``stepcache bench paper``.

    Where the run's journal lies beside it, traces of served answers come from there: the record
    itself keeps only those of requests that asked the model.

    Raises:
        SourceError: The record is damaged.
    """
    try:
        record = load_record(path)
        judged = rows_of(record)
    except RecordError as error:
        raise SourceError(str(error)) from error
    traces = _journal(path.with_name("exchanges.jsonl"))
    rows, left_out = newest(_rows(judged, traces), limit)
    run = record["run"]
    return Report(
        kind="benchmark",
        source=f"{path.parent.name}/{path.name}",
        rows=rows,
        left_out=left_out,
        facts=tuple(
            (name, value)
            for name, value in (
                ("model", str(run.get("model", ""))),
                ("run", str(run.get("started", ""))),
                ("machine", _machine(run.get("machine", {}))),
                ("requests", _splits(judged)),
            )
            if value
        ),
    )


def _splits(judged: Sequence[Judged]) -> str:
    """How many requests each mode was sent, by part of the workload."""
    parts = Counter({row.exchange.item: row.item.split for row in judged}.values())
    return ", ".join(f"{number:,} {part}" for part, number in parts.items())


def _machine(told: Mapping[str, Any]) -> str:
    cores = count(int(told["cores"]), "core") if told.get("cores") else ""
    return ", ".join(filter(None, (str(told.get("processor") or ""), cores)))


def _journal(path: Path) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Exchanges of the run's journal by mode and item; empty where there is none."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                data = json.loads(line)
                if "mode" in data:
                    found[data["mode"], data["item"]] = data
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return found


def _rows(
    judged: list[Judged], journal: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Iterator[Row]:
    bare = {
        row.item.id: (row.exchange.prompt_tokens, row.exchange.completion_tokens)
        for row in judged
        if row.exchange.mode == _BARE
    }
    entries: dict[tuple[str, int, str], Row] = {}
    """Rows by mode, seed and the entry their answer was kept as."""
    for number, one in enumerate(judged, start=1):
        exchange, item = one.exchange, one.item
        trace = _trace(exchange, journal)
        lane, seed = exchange.mode, item.seed
        ids = _sources(trace, exchange.route)
        source = next((entries[lane, seed, i] for i in ids if (lane, seed, i) in entries), None)
        row = _row(number, one, trace, source, bare)
        for line in trace:
            for entry in _ADMITTED.findall(line):
                entries[lane, seed, entry] = row
        yield row


def _trace(
    exchange: Exchange, journal: Mapping[tuple[str, str], Mapping[str, Any]]
) -> tuple[str, ...]:
    written = journal.get((exchange.mode, exchange.item))
    if exchange.trace or written is None or written.get("text") != exchange.text:
        return exchange.trace
    return tuple(written.get("trace", ()))


def _sources(trace: tuple[str, ...], route: str) -> list[str]:
    """The entries an answer may have been made from, the one that was taken first: of equal plans
    the engine takes the first."""
    plans = [found for line in trace for found in _PLAN.findall(line)]
    exact = [entry for line in trace for entry in _FOUND.findall(line)]
    return [entry for action, entry in plans if action == route] + exact


def _row(
    number: int,
    one: Judged,
    trace: tuple[str, ...],
    source: Row | None,
    bare: Mapping[str, tuple[int, int]],
) -> Row:
    exchange, item = one.exchange, one.item
    route = "error" if exchange.error else exchange.route
    texts = [step.text for step in _TASKS[item.family].segment(exchange.text)]
    earlier = None if source is None else [step.text or "" for step in source.steps]
    steps = tuple(
        Shown(text=text, chars=len(text), origin=origin)
        for text, origin in zip(texts, origins_of(route, texts, earlier))
    )
    spent = Usage(
        calls=len(exchange.calls),
        prompt_tokens=exchange.prompt_tokens,
        completion_tokens=exchange.completion_tokens,
    )
    avoided = None
    if item.id in bare and not exchange.error:
        # Below zero where a patch's prompt cost more than asking anew: both were measured.
        prompt, completion = bare[item.id]
        avoided = Usage(
            prompt_tokens=prompt - spent.prompt_tokens,
            completion_tokens=completion - spent.completion_tokens,
        )
    before = []
    if source is not None:
        before.append(
            Before(row=source.number, prompt=source.prompt, answer=source.answer, action=route)
        )
    entry = next((found for line in trace for found in _ADMITTED.findall(line)), None)
    return Row(
        number=number,
        lane=exchange.mode,
        pool=f"{exchange.mode} {item.seed} {item.base}",
        route=route,
        reason=exchange.reason or exchange.error or None,
        group=group_of(exchange.reason or exchange.error),
        task=item.family,
        prompt=item.prompt,
        steps=steps,
        seconds=exchange.seconds,
        spent=spent,
        avoided=avoided,
        entry=entry,
        fault=one.fault,
        trace=trace,
        before=tuple(before),
        notes=(
            ("change", item.group),
            ("seed", str(item.seed)),
            ("part", item.split),
            *((("judge", one.judgement.why or one.judgement.stale),) if one.fault else ()),
        ),
    )
