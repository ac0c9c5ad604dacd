"""The support table: what each of the host's calls gets from the cache, cell by cell."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.llms import LLM
from llama_index.core.program import LLMTextCompletionProgram

from llamaindex_stepcache import StepCacheLLM

Make = Callable[..., LLM]

TABLE = """
| LlamaIndex call | looked up | patched | streamed |
|---|---|---|---|
| `chat`, `achat`, `complete`, `acomplete`, `predict`, `apredict` | yes | yes | - |
| `stream_chat`, `astream_chat`, `stream_complete`, `astream_complete`, `stream`, `astream` | yes | yes | yes |
| `structured_predict`, `astructured_predict`, `as_structured_llm().chat`, `as_structured_llm().achat` | yes | yes | - |
| `stream_structured_predict`, `astream_structured_predict`, `as_structured_llm().stream_chat`, `as_structured_llm().astream_chat` | yes | yes | once checked |
| `chat_with_tools`, `achat_with_tools`, `predict_and_call`, `apredict_and_call` | yes | whole only | - |
| `stream_chat_with_tools`, `astream_chat_with_tools` | yes | whole only | yes |
| `FunctionAgent`, `AgentWorkflow` | yes | whole only | yes |
| `FunctionAgent(streaming=False)` | yes | whole only | - |
| `as_query_engine()`, `simple engine.chat`, `context engine.chat`, `condense_plus_context engine.chat` | yes | yes | - |
| `as_query_engine(streaming=True)`, `simple engine.stream_chat`, `context engine.stream_chat`, `condense_plus_context engine.stream_chat` | yes | yes | yes |
"""


MODES = ("by-schema", "by-tool", "by-prompt")
"""How an LLM is told of a class: by the schema of its answer, as a tool, or in words."""


no_stream = pytest.mark.skipif(
    "stream_call" not in vars(LLMTextCompletionProgram),
    reason="this host cannot stream what it asks for in words",
)


def _settings(mode: str) -> dict[str, Any]:
    return {
        "should_use_structured_outputs": mode == "by-schema",
        "is_function_calling_model": mode != "by-prompt",
    }


def _cells(column: int) -> list[Any]:
    """One case per call and cell; structured ones in each of an LLM's modes."""
    cases = []
    for row in TABLE.strip().splitlines()[2:]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        for name in re.findall(r"`([^`]+)`", cells[0]):
            modes = MODES if "structured" in name else ("",)
            for mode in modes:
                suffix = f"-{mode}" if mode else ""
                marks = [no_stream] if mode == "by-prompt" and "stream" in name else []
                case = pytest.param(name, cells[column], mode, id=name + suffix, marks=marks)
                cases.append(case)
    return cases


def test_the_table_is_complete(faces: dict[str, Any]) -> None:
    """Every way of asking that we know has exactly one row."""
    named = [name for row in TABLE.splitlines()[3:] for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(named) == sorted(faces)


@pytest.mark.parametrize(("name", "cell", "mode"), _cells(1))
async def test_looked_up(
    name: str, cell: str, mode: str, faces: dict[str, Any], endpoint: Any, inner: Make
) -> None:
    """The second of two equal calls makes no model call, and its answer is the first one's."""
    assert cell == "yes"
    llm = StepCacheLLM(llm=inner(**_settings(mode)))
    first = await faces[name].ask(llm, "small")
    asked = endpoint.calls
    assert asked > 0
    second = await faces[name].ask(llm, "small")
    assert endpoint.calls == asked
    assert _said(second) == _said(first)


@pytest.mark.parametrize(("name", "cell", "mode"), _cells(2))
async def test_patched(
    name: str, cell: str, mode: str, faces: dict[str, Any], endpoint: Any, inner: Make
) -> None:
    """A demand for one thing more asks for that thing only; offered tools that changed ask anew."""
    llm = StepCacheLLM(llm=inner(**_settings(mode)))
    await faces[name].ask(llm, "small")
    asked = endpoint.calls
    larger = await faces[name].ask(llm, "large")
    sent = [body["messages"][-1].get("content") or "" for body in endpoint.asked[asked:]]
    routes = llm.engine.routes
    if cell == "whole only":
        assert len(sent) == asked
        assert set(routes) == {"miss"}
        return
    assert cell == "yes"
    assert len(sent) == 1
    added = "wind" if "structured" in name else "population"
    assert f'holding only the keys: "{added}"' in sent[0]
    assert routes == {"miss": 1, "patch": 1}
    assert added in str(_said(larger))


@pytest.mark.parametrize(("name", "cell", "mode"), _cells(3))
async def test_streamed(
    name: str, cell: str, mode: str, faces: dict[str, Any], inner: Make
) -> None:
    """Live pieces pass through where nothing is to be verified; a hit comes step by step."""
    llm = StepCacheLLM(llm=inner(**_settings(mode)))
    live = await faces[name].ask(llm, "talk")
    served = await faces[name].ask(llm, "steps")
    served = await faces[name].ask(llm, "steps")
    if cell == "yes":
        assert len(live) >= 3
        # An answer that is a tool call has no steps.
        assert len(served) >= (1 if "tools" in name or "Agent" in name else 2)
    elif cell == "once checked":
        assert all(_said([piece]) == _said(live) for piece in (*live, *served))
    else:
        assert cell == "-"
        assert (len(live), len(served)) == (1, 1)


def _said(pieces: list[Any]) -> Any:
    """What an answer says, however it came."""
    last = pieces[-1]
    if isinstance(last, str):
        return "".join(pieces).strip()
    message = getattr(last, "message", None)
    if message is None:
        return str(last)
    calls = [(b.tool_name, b.tool_kwargs) for b in message.blocks if b.block_type == "tool_call"]
    return (message.content or "", calls)
