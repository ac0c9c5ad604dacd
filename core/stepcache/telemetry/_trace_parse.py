"""A trace log's line read back. Anybody may have written it: what is not such a record is refused,
never half believed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from stepcache._types import Route, Usage
from stepcache.telemetry._trace_record import (
    VERSION,
    CandidateRecord,
    DifferenceRecord,
    StepRecord,
    TimingRecord,
    TraceRecord,
)

__all__ = ["parse_record"]

T = TypeVar("T")


def parse_record(line: bytes) -> TraceRecord:
    """The record of one line.

    Raises:
        ValueError: It is none; the message names what is wrong, and quotes nothing.
    """
    try:
        told = json.loads(line, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise ValueError("no JSON") from error
    if not isinstance(told, dict):
        raise ValueError("no JSON object")
    take = _Fields(told)
    if take.of("v", int) != VERSION:
        raise ValueError("of another version")
    route = take.maybe("route", str)
    if route is not None and route not in get_args(Route):
        raise ValueError("route is unknown")
    money = take.maybe("money", dict)
    return TraceRecord(
        time=take.number("time"),
        namespace=take.of("namespace", str),
        face=take.of("face", str),
        route=route,
        code=take.of("code", str),
        reason=take.maybe("reason", str),
        task=take.maybe("task", str),
        model=take.maybe("model", str),
        entry=take.maybe("entry", str),
        served=take.of("served", bool),
        spent=_usage(take.of("spent", dict)),
        avoided=_usage(take.of("avoided", dict)),
        money=_numbers(money, ("spent", "avoided")) if money is not None else None,
        seconds=take.number("seconds"),
        timing=_timing(take.of("timing", dict)),
        steps=take.each("steps", _step),
        candidates=take.each("candidates", _candidate),
        faults=take.each("faults", lambda f: {n: f.of(n, str) for n in ("port", "error")}),
        trace=tuple(take.texts("trace")),
        prompt=take.maybe("prompt", str),
        answer=take.maybe("answer", str),
        error=take.maybe("error", str),
    )


class _Fields:
    """The fields of one JSON object, asked for by the type they must have."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told

    def of(self, name: str, kind: type[T]) -> T:
        value = self._told.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"{name} is missing or no {kind.__name__}")
        return value

    def maybe(self, name: str, kind: type[T]) -> T | None:
        return None if self._told.get(name) is None else self.of(name, kind)

    def number(self, name: str) -> float:
        value = self._told.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ValueError(f"{name} is missing or no number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"{name} is not finite")
        return number

    def maybe_number(self, name: str) -> float | None:
        return None if self._told.get(name) is None else self.number(name)

    def texts(self, name: str) -> Sequence[str]:
        values = self.of(name, list)
        if not all(isinstance(value, str) for value in values):
            raise ValueError(f"{name} holds more than texts")
        return values

    def each(self, name: str, read: Callable[[_Fields], T]) -> tuple[T, ...]:
        values = self.of(name, list)
        if not all(isinstance(value, dict) for value in values):
            raise ValueError(f"{name} holds more than objects")
        return tuple(read(_Fields(value)) for value in values)


def _usage(told: Mapping[str, Any]) -> Usage:
    take = _Fields(told)
    return Usage(
        calls=take.of("calls", int),
        prompt_tokens=take.of("prompt_tokens", int),
        completion_tokens=take.of("completion_tokens", int),
    )


def _numbers(told: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    take = _Fields(told)
    return {name: take.number(name) for name in names}


def _timing(told: Mapping[str, Any]) -> TimingRecord:
    first = _Fields(told).maybe_number("first")
    return TimingRecord(
        **_numbers(told, ("proof", "store", "embedder", "model", "wait")), first=first
    )


def _step(take: _Fields) -> StepRecord:
    return StepRecord(
        kind=take.of("kind", str),
        origin=take.maybe("origin", str),
        status=take.maybe("status", str),
        code=take.maybe("code", str),
        reason=take.maybe("reason", str),
        chars=take.of("chars", int),
        text=take.maybe("text", str),
    )


def _difference(take: _Fields) -> DifferenceRecord:
    return DifferenceRecord(
        kind=take.of("kind", str),
        explained=take.of("explained", bool),
        path=take.maybe("path", str),
        old=take.maybe("old", str),
        new=take.maybe("new", str),
    )


def _candidate(take: _Fields) -> CandidateRecord:
    return CandidateRecord(
        entry=take.of("entry", str),
        similarity=take.maybe_number("similarity"),
        action=take.of("action", str),
        code=take.of("code", str),
        reason=take.maybe("reason", str),
        differences=take.each("differences", _difference),
        prompt=take.maybe("prompt", str),
        answer=take.maybe("answer", str),
    )


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")
