"""The targets once more, with inputs that a fuzzer finds by the code they reach (atheris)."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from trust._fuzz import input_of
from trust.targets import ALL

__all__ = ["Guided", "available", "guide"]

_LONGEST = 4_000
_FIRST = 60
_STUCK = 5
"""Seconds (instrumented) after which an input counts as stuck."""


@dataclass(slots=True, kw_only=True)
class Guided:
    """What one target's guided inputs came to."""

    name: str
    inputs: int = 0
    edges: int = 0
    """Places of the product's code that were reached."""
    faults: int = 0
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)


def available() -> bool:
    """Whether the fuzzer is installed."""
    return find_spec("atheris") is not None


def guide(
    *,
    seconds: int,
    seed: int,
    first: int | None = None,
    progress: Callable[[str], None] = lambda told: None,
) -> list[Guided]:
    """Run each target that reads bytes for some seconds, in a process of its own.

    Args:
        first: Only so many of them; None takes all.
    """
    names = [target.name for target in ALL if target.read is not None]
    return [_run(name, seconds, seed, progress) for name in names[:first]]


def _corpus(folder: Path, name: str, seed: int) -> str:
    """What the fuzzer begins with: inputs of the target's grammar, where they are text or bytes."""
    folder.mkdir()
    (target,) = [each for each in ALL if each.name == name]
    for number in range(_FIRST):
        value = input_of(target, seed, number)
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogatepass")
        if isinstance(value, bytes):
            (folder / str(number)).write_bytes(value)
    return str(folder)


def _run(name: str, seconds: int, seed: int, progress: Callable[[str], None]) -> Guided:
    flags = (f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={_LONGEST}")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, "-m", "trust._guided", name, *flags, f"-timeout={_STUCK}"]
        line += [f"-artifact_prefix={folder}/", _corpus(Path(folder) / "corpus", name, seed)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    guided = Guided(name=name, seconds=time.perf_counter() - began)
    runs = re.findall(r"^(?:#|Done )(\d+)\s", done.stderr, re.MULTILINE)
    guided.inputs = max(map(int, runs), default=0)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    guided.edges = int(covered[-1]) if covered else 0
    if done.returncode:
        guided.faults = 1
        guided.found.append(f"{name}: {done.stderr[-1500:]}")
    progress(f"{name}: {guided.inputs} inputs, {guided.edges} places, {guided.faults} faults")
    return guided
