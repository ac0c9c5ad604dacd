"""Generated equations of ``mathematics_dataset``: 2,000 of each linear kind, solved or declined.

The package lives in an environment of its own, made once and kept in pytest's cache together with
the prompts; without it (no network, an interpreter it does not run on) the test is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepcache._types import Declined, Message, Request
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.tasks.linear_equation._problem import decode

KINDS = ("linear_1d", "linear_1d_composed", "linear_2d", "linear_2d_composed")
COUNT = 2_000
SEED = 20_260
PACKAGES = ("mathematics-dataset==1.0.1", "sympy==1.5.1", "numpy==1.26.4", "setuptools<70")
SCRIPT = Path(__file__).with_name("generate_mathematics_dataset.py")


def run(command: list[str], seconds: int) -> None:
    """Run a command, or skip with what it said last."""
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, env=environment
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        pytest.skip(f"mathematics_dataset cannot be had here: {' '.join(last)}")


def interpreter(folder: Path) -> Path:
    """The Python of the environment, which is made where there is none."""
    python = folder / "environment" / ("Scripts" if os.name == "nt" else "bin") / "python"
    ready = folder / "ready"
    if not ready.is_file() or not python.is_file():
        ready.unlink(missing_ok=True)
        venv.create(folder / "environment", with_pip=True, clear=True)
        run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], 600)
        ready.write_text(sys.version, encoding="utf-8")
    return python


@pytest.fixture(scope="module")
def records(pytestconfig: pytest.Config) -> list[dict[str, Any]]:
    """The generated records, from the cache where they are."""
    cache = pytestconfig.cache
    if cache is None:
        pytest.skip("pytest's cache is switched off")
    folder = cache.mkdir("mathematics_dataset")
    path = folder / f"linear-{COUNT}-{SEED}.jsonl"
    if not path.is_file():
        partial = path.with_suffix(".partial")
        run([str(interpreter(folder)), str(SCRIPT), str(partial), str(COUNT), str(SEED)], 900)
        partial.replace(path)
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def outcome(record: dict[str, Any]) -> str:
    """``right``, ``wrong`` or ``declined``."""
    request = Request(messages=(Message(role="user", text=record["prompt"]),))
    parsed = LinearEquationTask().parse(request)
    if isinstance(parsed, Declined):
        return "declined"
    return "right" if str(decode(parsed).value) == record["answer"] else "wrong"


@pytest.mark.parametrize("kind", KINDS)
def test_generated_equations_are_solved(records, kind):
    """At least 99.5 % of each kind is solved, the rest declined, and nothing solved wrongly."""
    found = Counter(outcome(record) for record in records if record["kind"] == kind)
    print(f"{kind}: n={found.total()} {dict(found)}")
    assert found.total() == COUNT
    assert found["wrong"] == 0
    assert found["right"] >= 0.995 * COUNT
