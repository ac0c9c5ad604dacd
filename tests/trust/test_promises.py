"""Every promise of SECURITY.md has a test, and the tests it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| (.+) \| (.+) \|$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")


def promised() -> list[tuple[str, str]]:
    """Each promise with what its row names as its tests."""
    page = (ROOT / "SECURITY.md").read_text()
    section = page.partition("## What is promised")[2].partition("\n## ")[0]
    return [row for row in _ROW.findall(section) if row[0] != "promise"]


def named(held_by: str) -> list[tuple[str, str]]:
    """Files and names of tests; a name alone is in the file before it, a class in the suites."""
    found, file = [], ""
    for code in _CODE.findall(held_by):
        path, _, name = code.partition("::")
        if path.startswith("benchmarks/"):
            assert (ROOT / path).is_file(), path
            continue
        if path.endswith(".py"):
            file = path
        found.append((file if path.endswith(".py") or not path else "", name or path))
    return found


@pytest.mark.parametrize("promise", promised(), ids=lambda row: row[0][:40])
def test_each_promise_is_held_by_tests_that_exist(promise: tuple[str, str]) -> None:
    """A promise without a test is none, and a test that was renamed holds nothing."""
    tests = named(promise[1])
    assert tests
    for file, name in tests:
        if not file:
            suites = "".join(p.read_text() for p in (ROOT / "core/stepcache/testing").glob("*.py"))
            used = "".join(p.read_text() for p in (ROOT / "tests").rglob("test_*.py"))
            assert f"class {name}" in suites, name
            assert re.search(rf"class \w+\(.*\b{name}\b", used), f"{name} is run on no store"
            continue
        text = (ROOT / "tests" / file).read_text()
        if name != file:
            assert re.search(rf"^\s*(?:async )?def {name}\(", text, re.MULTILINE), f"{file}: {name}"
        else:
            assert "def test_" in text


def test_the_promises_cover_who_may_do_harm() -> None:
    """The table is whole: who writes the store, who sends prompts, other tenants, costs."""
    told = " ".join(promise for promise, _ in promised())
    for word in ("seal", "vector", "key", "ncrypt", "near prompt", "data", "Refusals", "reported",
                 "redact", "Secrets", "require_namespace", "namespace", "bounds"):  # fmt: skip
        assert word in told, word
    assert len(promised()) >= 15
