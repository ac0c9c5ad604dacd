"""The code of every page runs as it stands there, and prints what the page says.

The blocks of a page share their names, as if pasted into one session. A block with a title is a
file: it is written beside the others, and run by pytest where its name says so.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_ID = re.compile(r"\b(?=\w*\d)[0-9a-f]{8,64}\b")
ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "docs").rglob("*.md")
    if "```python" in page.read_text(encoding="utf-8")
)


def test_there_are_pages_with_code() -> None:
    """The list is not empty by a slip."""
    assert {"docs/getting-started.md", "docs/engine.md", "docs/langchain.md"} <= set(PAGES)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=pytest.mark.model if "local_model(" in (ROOT / page).read_text() else (),
        )
        for page in PAGES
    ],
)
# The clients of the examples live as long as their process, as an application's do.
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:.*unclosed:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.usefixtures("endpoint", "clean_hosts", "database")
def test_the_code_of_a_page(
    page: str,
    blocks: Callable[[str], list[Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every block runs, and prints exactly the text below it, or nothing.

    So do the commands that have a text below them.
    """
    found = blocks(page)
    if any("local_model(" in block.text for block in found):
        _needs_the_local_model()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    known = set(sys.modules)
    try:
        for block in found:
            if block.title is not None:
                _write(tmp_path, block)
            elif block.kind == "python":
                _run(page, block, vars(module))
            elif block.kind == "console" and block.says is not None:
                _type(page, block)
    finally:
        vars(module).clear()
        for name in set(sys.modules) - known:
            if _lies_in(sys.modules[name], tmp_path):
                del sys.modules[name]


def _run(page: str, block: Any, names: dict[str, Any]) -> None:
    out = io.StringIO()
    source = "\n" * (block.line - 1) + block.text
    with contextlib.redirect_stdout(out):
        exec(compile(source, str(ROOT / page), "exec"), names)
    assert out.getvalue().strip() == (block.says or "").strip(), f"{page}:{block.line}"


def _type(page: str, block: Any) -> None:
    """Run the page's commands of ours; ids are theirs alone, and a line of dots is any lines."""
    command, *rest = shlex.split(block.text)
    assert command == "stepcache", f"{page}:{block.line} shows what another program prints"
    done = subprocess.run(
        [sys.executable, "-m", "stepcache.cli", *rest], capture_output=True, text=True
    )
    at, printed = 0, _comparable(done.stdout + done.stderr)
    parts = _comparable(block.says).split("\n...\n")
    assert printed.startswith(parts[0]), f"{page}:{block.line}"
    assert len(parts) > 1 or printed == parts[0], f"{page}:{block.line}"
    for part in parts:
        at = printed.find(part, at)
        assert at >= 0, f"{page}:{block.line}: {part}"
        at += len(part)


def _comparable(text: str) -> str:
    lines = [line.rstrip() for line in _ID.sub("<id>", text).splitlines()]
    return "\n".join(lines) + "\n"


def _write(folder: Path, block: Any) -> None:
    (folder / block.title).write_text(block.text, encoding="utf-8")
    if not block.title.startswith("test_"):
        return
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", block.title],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def _lies_in(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).parent == folder


def _needs_the_local_model() -> None:
    from stepcache.demo import MODELS
    from stepcache.demo._weights import models_folder

    weights = MODELS["qwen2.5-coder-0.5b"]
    if not (models_folder() / weights.file).exists() and not os.environ.get("STEPCACHE_TEST_QWEN"):
        pytest.skip(
            "the 491 MB model is not in the cache folder; set STEPCACHE_TEST_QWEN=1 to fetch"
        )
