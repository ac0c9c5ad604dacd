"""What an installation brings is written down, and is not known to be vulnerable."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from trust.dependencies import audit, bill, direct

ROOT = Path(__file__).resolve().parents[2]


def test_the_bill_names_every_extra_and_what_it_asks_for() -> None:
    """``python -m trust.dependencies`` has been run since the extras were last changed."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for extra in extras:
        section = page.partition(f"## `[{extra}]`")[2].partition("\n## ")[0]
        for requirement in direct(extra):
            assert f"`{requirement.name}`" in section, f"{requirement.name} of [{extra}]"
    for requirement in direct():
        assert f"| {requirement.name} |" in page


def test_the_core_brings_no_framework_and_no_model() -> None:
    """What the core needs stays small, whatever the extras bring."""
    names = set(bill())
    assert {"numpy", "jsonschema", "httpx"} <= names
    assert not {"torch", "transformers", "langchain-core", "llama-index-core"} & names
    assert len(names) < 40


def test_the_core_is_not_known_to_be_vulnerable() -> None:
    """Asked of the OSV database; skipped, with a clear line, where that cannot be reached."""
    found = audit()
    if not found.reached:
        pytest.skip(found.told)
    assert not found.vulnerable, found.told
