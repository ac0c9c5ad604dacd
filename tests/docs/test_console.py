"""Lines to type are ones that can be typed: the commands, options, targets and extras exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md"))]
_KNOWN = ("cd", "curl", "export", "git", "source")
_SHELLS = ("console", "bash", "sh", "shell")


def _lines(blocks: list[Any]) -> list[str]:
    texts = [b.text.replace("\\\n", " ") for b in blocks if b.kind in _SHELLS]
    return [line for text in texts for line in text.splitlines() if line.strip()]


def test_there_are_lines_to_type(blocks: Callable[[str], list[Any]]) -> None:
    """The README and the first page have some."""
    assert _lines(blocks("README.md"))
    assert _lines(blocks("docs/getting-started.md"))


@pytest.mark.parametrize("page", PAGES)
def test_the_lines_of_a_page(page: str, blocks: Callable[[str], list[Any]]) -> None:
    """Every line is a shell's, and every command of ours takes its arguments."""
    for line in _lines(blocks(page)):
        told = f"{page}: {line}"
        done = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True)
        assert done.returncode == 0, told + done.stderr
        for words in _commands(line):
            _check(words, told)


def _commands(line: str) -> list[list[str]]:
    """The simple commands of a line, without comments, assignments, prompts and redirections."""
    words = shlex.split(line, comments=True)
    commands: list[list[str]] = [[]]
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("|", "&&", ";", "&"):
            commands.append([])
        elif word in (">", "<", ">>"):
            skip = True
        elif commands[-1] or not re.match(r"\w+=", word):
            commands[-1].append(word)
    return [command for command in commands if command]


def _check(words: list[str], told: str) -> None:
    program, *rest = words
    checks: dict[str, Callable[[list[str], str], None]] = {
        "stepcache": _stepcache,
        "make": _make,
        "pip": _pip,
        "python": _python,
    }
    if program in checks:
        checks[program](rest, told)
    else:
        assert program in _KNOWN or shutil.which(program), told


def _stepcache(words: list[str], told: str) -> None:
    from typer.main import get_command

    from stepcache.cli._app import app

    command: Any = get_command(app)
    path = "stepcache"
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, told
        path, command = f"{path} {words[0]}", command.commands[words[0]]
        words = words[1:]
    if words == ["--help"]:
        return
    try:
        command.make_context(path, words)
    except Exception as error:
        pytest.fail(f"{told}: {error}")


def _python(words: list[str], told: str) -> None:
    if words[:1] == ["-m"]:
        assert find_spec(words[1]) is not None, told


def _make(words: list[str], told: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    asked = [word for word in words if "=" not in word]
    assert set(asked) <= set(targets), told


def _pip(words: list[str], told: str) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extras in re.findall(r"stepcache\[([\w,-]+)\]", " ".join(words)):
        assert set(extras.split(",")) <= set(known["optional-dependencies"]), told
