"""The README's code runs, and prints what the README says."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def python(blocks: Callable[[str], list[Any]]) -> list[Any]:
    """The README's blocks of Python, in order."""
    return [block for block in blocks("README.md") if block.kind == "python"]


@pytest.mark.model
def test_the_first_screen_prints_what_it_says(python: list[Any]) -> None:
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
        exec(compile(python[0].text, "README.md", "exec"), {})
    printed, said = out.getvalue().splitlines(), python[0].says.splitlines()
    assert printed[:2] == said[:2]
    assert [line for line in printed[2:] if "population" not in line] == [
        line for line in said[2:] if "population" not in line
    ]


def test_the_langchain_lines_run(
    python: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``set_llm_cache(StepCache())`` needs no argument, and a path makes a file."""
    from langchain_core.globals import get_llm_cache, set_llm_cache

    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(python[1].text, "README.md", "exec"), {})
        assert (tmp_path / "answers.db").exists()
        get_llm_cache().engine.close()
    finally:
        set_llm_cache(None)


def test_the_llamaindex_lines_run(
    python: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``Settings.llm`` takes the wrapper."""
    from llama_index.core import Settings
    from llama_index.core.llms.mock import MockLLM

    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(python[2].text, "README.md", "exec"), {"my_llm": MockLLM()})
        assert Settings.llm.complete("Name a river.").text == "Name a river."
    finally:
        Settings._llm = None


def test_the_lines_for_one_call_run(python: list[Any]) -> None:
    """Each wish a call can have is one the model understands."""
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_openai import ChatOpenAI

    from langchain_stepcache import StepCacheChatModel
    from stepcache.testing.endpoint import ScriptedEndpoint

    with ScriptedEndpoint(lambda request: "The Elbe.") as endpoint:
        llm = ChatOpenAI(base_url=endpoint.url, model="scripted", api_key="none")
        model = StepCacheChatModel(llm=llm)
        entry_id = model.invoke("Name a lake.").response_metadata["stepcache"]["entry_id"]
        chain = ChatPromptTemplate.from_messages([("user", "Name a river.")]) | model
        names = {"model": model, "chain": chain, "entry_id": entry_id}
        exec(compile(python[3].text, "README.md", "exec"), names)
        assert endpoint.calls == 5
        assert model.engine.count() == 1


def test_the_lines_about_trust_run(
    python: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They make an encrypted store with its key beside it, and a policy that an engine takes."""
    from stepcache import NamespaceRequired, StepCacheEngine

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STEPCACHE_KEY", raising=False)
    names: dict[str, Any] = {}
    (block,) = (block for block in python if "encrypt=True" in block.text)
    exec(compile(block.text, "README.md", "exec"), names)
    assert (tmp_path / "answers.db.key").exists()
    engine = StepCacheEngine(store=names["store"], policy=names["policy"])
    with pytest.raises(NamespaceRequired):
        engine.count()
    engine.close()


def test_every_route_is_explained() -> None:
    """The table names each route there is, and no other."""
    from typing import get_args

    from stepcache._types import Route

    table = README.partition("## Routes")[2].partition("```")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == set(get_args(Route))
