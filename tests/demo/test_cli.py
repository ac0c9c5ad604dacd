"""The command line, run as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def stepcache(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "stepcache.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1", **environment},
        check=False,
    )


def test_help_names_every_option() -> None:
    """``stepcache demo --help`` succeeds, says what it does and lists the options."""
    done = stepcache("demo", "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ("--model", "--base-url", "--model-name", "--api-key-env", "--json", "--seed"):
        assert word in done.stdout
    assert "qwen2.5-coder-0.5b" in done.stdout


def test_version_is_the_installed_one() -> None:
    """``stepcache version`` prints what is installed."""
    from importlib.metadata import version

    assert stepcache("version").stdout.strip() == version("stepcache")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--base-url", "http://127.0.0.1:9/v1"), "go together"),
        (("--model-name", "m"), "go together"),
        (("--prefill",), "--base-url"),
        (
            (
                "--base-url",
                "http://127.0.0.1:9/v1",
                "--model-name",
                "m",
                "--api-key-env",
                "NO_SUCH",
            ),
            "NO_SUCH",
        ),
        (("--model", "other"), "smollm2"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: tuple[str, ...], word: str) -> None:
    """A wrong command line ends with status 2 and a sentence, before anything is fetched."""
    done = stepcache("demo", *arguments)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_an_endpoint_that_is_not_there_ends_with_a_sentence() -> None:
    """Nobody listening: status 1, the error in a line, no traceback."""
    done = stepcache("demo", "--base-url", "http://127.0.0.1:9/v1", "--model-name", "m")
    assert done.returncode == 1
    assert "Error: http://127.0.0.1:9/v1: " in done.stderr
    assert "Traceback" not in done.stderr


def test_weights_that_cannot_be_had_end_with_the_way_out(tmp_path: Path) -> None:
    """Offline and with an empty cache: status 1 and the name of the option that helps."""
    done = stepcache(
        "demo",
        STEPCACHE_MODELS=str(tmp_path),
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS="",
        PIP_CONFIG_FILE=os.devnull,
    )
    assert done.returncode == 1
    assert "--base-url" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_extra_is_named() -> None:
    """Without typer the command says what to install."""
    code = "import sys; sys.modules['typer'] = None; from stepcache.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "stepcache[cli]" in done.stderr
    assert "Traceback" not in done.stderr


def test_importing_the_command_line_is_light() -> None:
    """Neither the entry point nor the application loads a framework or a model library."""
    code = (
        "import sys, stepcache.cli, stepcache.cli._app; "
        "print([m for m in ('torch', 'langchain_core', 'xllamacpp', 'sympy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
