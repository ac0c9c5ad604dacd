"""What every source is turned into: one row for each request, or for each stored answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from stepcache._counts import count
from stepcache._types import Usage

__all__ = ["Before", "Kind", "Report", "Row", "Shown", "group_of", "without_texts"]

Kind = Literal["store", "trace log", "benchmark"]

_LONGEST = 20_000
"""Characters of one text on the page."""
_NOTHING = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One step of an answer as the page shows it."""

    text: str | None
    """None where the source, or the reader of it, leaves texts out."""
    chars: int
    origin: str = "stored"
    """``reused``, ``adapted``, ``patched``, ``generated``, ``solved`` or ``stored``."""
    status: str | None = None
    """``pass``, ``fail``, ``unknown``, or None where it was not verified by itself."""
    code: str | None = None
    reason: str | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The earlier request and answer that this one was made from."""

    entry: str = ""
    row: int | None = None
    """The number of its own row, where it is on the page."""
    prompt: str | None = None
    answer: str | None = None
    similarity: float | None = None
    action: str = ""
    code: str = ""
    differences: tuple[tuple[str, bool, str | None, str | None], ...] = ()
    """Kind, whether it is explained, the old and the new text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request and how it was answered, or one stored answer."""

    number: int
    time: float | None = None
    """Seconds since the epoch."""
    lane: str = ""
    """What is shown apart: a benchmark's mode."""
    pool: str = ""
    """Rows of one pool may be compared: the same model, the same conversation, the same task."""
    route: str | None = None
    reason: str | None = None
    group: str = ""
    """The reason without this request's own words, to count by."""
    task: str | None = None
    model: str | None = None
    prompt: str | None = None
    prompt_chars: int | None = None
    steps: tuple[Shown, ...] = ()
    seconds: float | None = None
    """The whole request."""
    proof: float | None = None
    """Seconds of parsing, finding differences, verifying and planning."""
    model_seconds: float | None = None
    spent: Usage = _NOTHING
    avoided: Usage | None = _NOTHING
    """None where nobody knows."""
    entry: str | None = None
    fault: str = ""
    """What is known to be wrong with the answer, or the model's own error."""
    trace: tuple[str, ...] = ()
    before: tuple[Before, ...] = ()
    """Candidates in the order they were looked at; the one that was taken comes first."""
    notes: tuple[tuple[str, str], ...] = ()
    """Whatever else the source tells, as names and values."""

    @property
    def answer(self) -> str | None:
        """The whole answer; None where texts are left out."""
        if any(step.text is None for step in self.steps):
            return None
        return "".join(step.text or "" for step in self.steps)

    def as_dict(self) -> dict[str, Any]:
        """The row for the page: short names, nothing that is empty."""
        data = {
            "n": self.number,
            "t": self.time,
            "lane": self.lane,
            "pool": self.pool,
            "route": self.route,
            "reason": _cut(self.reason),
            "group": self.group,
            "task": self.task,
            "model": self.model,
            "q": _cut(self.prompt),
            "qn": self.prompt_chars,
            "steps": [_step(step) for step in self.steps],
            "s": _rounded(self.seconds),
            "proof": _rounded(self.proof),
            "ms": _rounded(self.model_seconds),
            "in": self.spent.prompt_tokens,
            "out": self.spent.completion_tokens,
            "calls": self.spent.calls,
            "saved": None if self.avoided is None else self.avoided.tokens,
            "savedOut": None if self.avoided is None else self.avoided.completion_tokens,
            "entry": self.entry,
            "fault": self.fault,
            "trace": [_cut(line) for line in self.trace],
            "before": [_before(before) for before in self.before],
            "notes": [[name, _cut(value)] for name, value in self.notes],
        }
        return {name: value for name, value in data.items() if value not in (None, "", [])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything a page is made from."""

    kind: Kind
    source: str
    """Where it came from, without a password."""
    rows: tuple[Row, ...]
    left_out: int = 0
    """Older rows that the page does not hold."""
    remarks: tuple[str, ...] = ()
    """Sentences for the reader: what the source cannot tell, what could not be read."""
    facts: tuple[tuple[str, str], ...] = ()
    """About the source as a whole, as names and values."""
    texts: bool = True


def without_texts(row: Row) -> Row:
    """The row with lengths in place of every text, and of everything that may quote one."""
    return replace(
        row,
        prompt=None,
        prompt_chars=row.prompt_chars if row.prompt is None else len(row.prompt),
        reason=None,
        steps=tuple(replace(step, text=None, reason=None) for step in row.steps),
        trace=tuple(line.partition(":")[0] for line in row.trace),
        before=tuple(
            replace(
                before,
                prompt=None,
                answer=None,
                differences=tuple(
                    (kind, known, None, None) for kind, known, _, _ in before.differences
                ),
            )
            for before in row.before
        ),
        notes=(),
    )


_DIFFERENCE = re.compile(r"([a-z][a-z-]*) (?='|\")")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_NUMBER = re.compile(r"\d[\d.,]*")


def group_of(reason: str) -> str:
    """A reason without this request's own words, to count by: ``different word``.

    Of several differences the first names the group. What follows the last colon of a verdict's
    reason (the names of missing keys) is left away.
    """
    difference = _DIFFERENCE.match(reason)
    if difference and " -> " in reason:
        return f"different {difference[1].replace('-', ' ')}"
    text = _QUOTED.sub("…", reason)
    if text.count(": ") > 1:
        text = text.rpartition(": ")[0]
    return _NUMBER.sub("…", text).strip() or "no reason told"


def _step(step: Shown) -> list[Any]:
    return [
        step.origin,
        _cut(step.text),
        step.chars,
        step.status,
        _cut(step.reason) or step.code,
        step.kind,
    ]


def _before(before: Before) -> dict[str, Any]:
    data = {
        "entry": before.entry,
        "row": before.row,
        "q": _cut(before.prompt),
        "a": _cut(before.answer),
        "sim": _rounded(before.similarity),
        "action": before.action,
        "code": before.code,
        "diff": [
            [kind, known, _cut(old), _cut(new)] for kind, known, old, new in before.differences
        ],
    }
    return {name: value for name, value in data.items() if value not in (None, "", [])}


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n[{count(len(text) - _LONGEST, 'more character')}]"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
