"""The report page of a PostgreSQL store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from stepcache import Message, Request, StepCacheEngine
from stepcache.report import SourceError, page, read_source
from stepcache.stores import open_store
from stepcache.testing import ScriptedBackend


@pytest.fixture
def url(server: Any) -> Iterator[str]:
    """The server's address, with the default schema as new."""
    server.execute("DROP SCHEMA IF EXISTS stepcache CASCADE")
    yield server.url
    server.execute("DROP SCHEMA IF EXISTS stepcache CASCADE")


def test_entries_are_read_by_the_stores_url(url: str) -> None:
    """Texts only when asked for, and no user or password on the page."""
    store: Any = open_store(url)
    with closing(store):
        engine = StepCacheEngine(store=store, backend=ScriptedBackend(["2x = 10\n\nx = 5"]))
        engine.resolve(Request(messages=(Message(role="user", text="Solve 2x + 3 = 13 for x."),)))
    report = read_source(url, texts=True)
    assert [row.prompt for row in report.rows] == ["Solve 2x + 3 = 13 for x."]
    assert report.rows[0].answer == "2x = 10\n\nx = 5"
    assert url.partition("@")[0] not in report.source
    assert "2x + 3" not in page(read_source(url))


def test_a_server_that_is_not_there_is_told(tmp_path: Any) -> None:
    """As a source that cannot be read, without the password."""
    with pytest.raises(SourceError) as caught:
        read_source(f"postgresql://me:secret@/nothing?host={tmp_path}")
    assert "secret" not in str(caught.value)
