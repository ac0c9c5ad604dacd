"""What changed between two requests, typed, each change owned by this task where it verifies it."""

from __future__ import annotations

from stepcache._types import Difference
from stepcache.tasks.linear_equation._algebra import symbol
from stepcache.tasks.linear_equation._problem import Equation, Problem, encode

__all__ = ["changes"]


def changes(old: Problem, new: Problem, task: str) -> tuple[Difference, ...]:
    """Every change, empty when both demand the same."""
    if old is new:
        return ()
    found: list[Difference] = []
    if old.unknown != new.unknown:
        found.append(
            Difference(
                kind="variable", path="unknown", old=old.unknown, new=new.unknown, owner=task
            )
        )
    if _equations(old, new.unknown) != _equations(new, new.unknown):
        found.append(
            Difference(
                kind="constant" if _shape(old) == _shape(new) else "form",
                path="equations",
                old=_written(old),
                new=_written(new),
                owner=task,
            )
        )
    elif not found and encode(old) | {"style": ""} != encode(new) | {"style": ""}:
        found.append(Difference(kind="form", path="nonzero", old="", new="", owner=None))
    if old.style != new.style:
        # Worked steps do no harm to whoever did not ask for any; every other change might.
        harmless = new.style == "" and old.style in ("steps", "brief")
        found.append(
            Difference(
                kind="style",
                path="style",
                old=old.style,
                new=new.style,
                owner=task if harmless else None,
            )
        )
    return tuple(found)


def _equations(problem: Problem, unknown: str) -> list[list[str]]:
    """The equations as canonical texts, the asked letter under another name."""
    if problem.unknown == unknown or unknown in problem.symbols:
        pairs: list[Equation] = list(problem.equations)
    else:
        renamed = {problem.unknown: symbol(unknown)}
        pairs = [(a.put(renamed), b.put(renamed)) for a, b in problem.equations]
    return sorted(sorted(side.text() for side in pair) for pair in pairs)


def _shape(problem: Problem) -> list[list[tuple[bool, bool]]]:
    """Which sides have the unknown and which a constant."""
    return sorted(
        sorted((bool(s.symbols), bool(s.top.coefficient())) for s in pair)
        for pair in problem.equations
    )


def _written(problem: Problem) -> str:
    return ", ".join(" = ".join(s.text() for s in pair) for pair in problem.equations)
