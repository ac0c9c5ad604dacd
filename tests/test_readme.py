"""The README's code runs, and prints what the README says."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^(`{3,})(\w+)\n(.*?)^\1$", README, flags=re.MULTILINE | re.DOTALL)
PYTHON = [text for _, kind, text in BLOCKS if kind == "python"]
TEXT = [text for _, kind, text in BLOCKS if kind == "text"]


@pytest.mark.model
def test_the_first_screen_prints_what_it_says() -> None:
    """A changed request reuses all but one step, over the real local model."""
    from stepcache.demo import MODELS
    from stepcache.demo._weights import models_folder

    weights = MODELS["qwen2.5-coder-0.5b"]
    if not (models_folder() / weights.file).exists() and not os.environ.get("STEPCACHE_TEST_QWEN"):
        pytest.skip(
            "the 491 MB model is not in the cache folder; set STEPCACHE_TEST_QWEN=1 to fetch"
        )
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(PYTHON[0], "README.md", "exec"), {})
    printed, said = out.getvalue().splitlines(), TEXT[0].splitlines()
    assert printed[:2] == said[:2]
    assert [line for line in printed[2:] if "population" not in line] == [
        line for line in said[2:] if "population" not in line
    ]


def test_the_langchain_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``set_llm_cache(StepCache())`` needs no argument, and a path makes a file."""
    from langchain_core.globals import get_llm_cache, set_llm_cache

    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(PYTHON[1], "README.md", "exec"), {})
        assert (tmp_path / "answers.db").exists()
        get_llm_cache().engine.close()
    finally:
        set_llm_cache(None)


def test_the_llamaindex_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``Settings.llm`` takes the wrapper."""
    from llama_index.core import Settings
    from llama_index.core.llms.mock import MockLLM

    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(PYTHON[2], "README.md", "exec"), {"my_llm": MockLLM()})
        assert Settings.llm.complete("Name a river.").text == "Name a river."
    finally:
        Settings._llm = None


def test_every_route_is_explained() -> None:
    """The table names each route there is, and no other."""
    from typing import get_args

    from stepcache._types import Route

    table = README.partition("## Routes")[2].partition("```")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == set(get_args(Route))
