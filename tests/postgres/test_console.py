"""The command over a PostgreSQL store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from stepcache import Control, Message, Request, StepCacheEngine
from stepcache.cli._app import app
from stepcache.stores import open_store
from stepcache.testing import ScriptedBackend

MATH = "Solve 2x + 3 = 13 for x."


@pytest.fixture
def url(server: Any) -> Iterator[str]:
    """The server's address, with the default schema as new."""
    server.execute("DROP SCHEMA IF EXISTS stepcache CASCADE")
    yield server.url
    server.execute("DROP SCHEMA IF EXISTS stepcache CASCADE")


def run(*arguments: str) -> Any:
    """Run a command that has to succeed, and read its JSON."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_store_that_hosts_share(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures, a look, the doctor's write test, and forgetting, by the store's URL."""
    engine = StepCacheEngine(
        store=open_store(url), backend=ScriptedBackend(lambda call: "2x = 10\n\nx = 5")
    )
    request = Request(messages=(Message(role="user", text=MATH),))
    entry_id = engine.resolve(request, control=Control(tags=("maths",))).entry_id
    monkeypatch.setenv("STEPCACHE_STORE", url)
    figures = run("stats")
    assert (figures["entries"], figures["tags"]) == (1, {"maths": 1})
    assert figures["bytes"] > 0
    assert [e["entry_id"] for e in run("list")["entries"]] == [entry_id]
    (found,) = run("inspect", "Solve 2x + 3 = 15 for x.")["scopes"]
    assert (found["now"]["route"], found["now"]["source"]) == ("adapt", entry_id)
    assert run("doctor")["healthy"]
    assert run("forget", "--tag", "maths", "--yes")["removed"] == 1
    assert engine.count() == 0
    refused = CliRunner().invoke(app, ["compact", url])
    assert refused.exit_code == 2
    assert "compact is for SQLite files" in refused.stderr
    engine.close()
