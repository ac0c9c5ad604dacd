"""The reference pages name all there is: knobs, commands, public names."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from stepcache import Policy

ROOT = Path(__file__).parents[2]


def test_every_knob_is_on_the_tuning_page() -> None:
    """Each field of the policy has a section that states its true default, and no other has one."""
    page = (ROOT / "docs/tuning.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### `(\w+)`\n\n(.+)$", page, flags=re.MULTILINE))
    assert set(sections) == {field.name for field in fields(Policy)}
    for field in fields(Policy):
        assert field.default is not MISSING
        stated = re.match(r"Default: `([^`]+)`", sections[field.name])
        assert stated is not None, field.name
        assert stated[1].replace("_", "").replace('"', "'") == repr(field.default), field.name


def test_every_command_is_on_the_page_of_commands(site: Path) -> None:
    """Each command, subcommands included, has a section with its options."""
    from typer.main import get_command

    from stepcache.cli._app import app

    page = (site / "cli.html").read_text(encoding="utf-8")

    def look(command: Any, path: str) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            if inner.hidden:
                continue
            assert f'id="{path}-{name}"' in page, name
            for parameter in inner.params:
                if parameter.param_type_name == "option" and not parameter.hidden:
                    assert all(option in page for option in parameter.opts), parameter.opts
            look(inner, f"{path}-{name}")

    look(get_command(app), "stepcache")


@pytest.mark.parametrize(
    "package",
    [
        "stepcache",
        "stepcache.protocols",
        "stepcache.stores",
        "stepcache.embedders",
        "stepcache.backends",
        "stepcache.bench",
        "stepcache.testing",
        "stepcache.evaluation",
        "stepcache.explain",
        "stepcache.proxy",
        "stepcache.report",
        "stepcache.tasks",
        "stepcache.telemetry",
        "langchain_stepcache",
        "llamaindex_stepcache",
    ],
)
def test_every_public_name_is_in_the_reference(package: str, site: Path) -> None:
    """Whatever a package offers to import is described."""
    described = "".join(p.read_text(encoding="utf-8") for p in (site / "api").glob("*.html"))
    for name in import_module(package).__all__:
        assert f'id="{package}.{name}"' in described, name
