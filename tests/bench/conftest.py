"""A scripted endpoint that knows the workload, and options for a run over it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stepcache.bench._items import EquationDemand, Item, ObjectDemand
from stepcache.bench._judge import solutions
from stepcache.bench._main import BenchOptions, Elsewhere
from stepcache.bench._workload import workload
from stepcache.testing.endpoint import ScriptedEndpoint


def right_answer(item: Item) -> str:
    """What a model that is always right would say."""
    if isinstance(item.demand, EquationDemand):
        return _worked(item.demand)
    return json.dumps(_filled(item.demand))


def _worked(demand: EquationDemand) -> str:
    relation, value = solutions(demand)
    if demand.form == "number":
        return str(value)
    if demand.form == "boxed":
        return f"\\boxed{{{value}}}"
    if demand.form == "object":
        return json.dumps({demand.variable: str(value)})
    found = re.fullmatch(r"(-?\d+)\*\w \+ \((-?\d+)\)", demand.left)
    assert found is not None
    a, b, c = int(found[1]), int(found[2]), int(demand.right)
    if demand.relation != "=":
        return f"{demand.variable} {relation} {value}"
    sign = "+" if b > 0 else "-"
    return (
        f"{a}{demand.variable} {sign} {abs(b)} = {c}\n"
        f"{a}{demand.variable} = {c - b}\n{demand.variable} = {value}"
    )


def _filled(demand: ObjectDemand) -> dict[str, Any]:
    properties = (demand.schema or {}).get("properties", {})
    return {key: _value(key, properties.get(key, {}), demand) for key in demand.required}


def _value(key: str, schema: Mapping[str, Any], demand: ObjectDemand) -> Any:
    if key in demand.values:
        return demand.values[key]
    if key == demand.topic_key:
        return demand.topic.upper() if demand.rule == "upper" else demand.topic
    if "enum" in schema:
        return schema["enum"][0]
    kinds = {"integer": 3, "number": 2.5, "array": ["one"]}
    kind = schema.get("type", "string")
    return kinds.get(kind, "ONE") if isinstance(kind, str) else "ONE"


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedEndpoint]]:
    """Opens an endpoint that answers every request of the quick workload rightly."""
    opened: list[ScriptedEndpoint] = []

    def open_endpoint(splits: tuple[str, ...] = ("paper", "extended")) -> ScriptedEndpoint:
        items = {item.prompt: item for item in workload(42, splits, quick=True)}

        def answer(request: Mapping[str, Any]) -> str:
            asked = request["messages"]
            prompt = next(m["content"] for m in reversed(asked) if m["role"] == "user")
            item = items.get(prompt)
            if item is not None:
                return right_answer(item)
            item = next(one for text, one in items.items() if prompt.startswith(text))
            assert isinstance(item.demand, ObjectDemand)
            return right_answer(item)

        endpoint = ScriptedEndpoint(answer)
        endpoint.__enter__()
        opened.append(endpoint)
        return endpoint

    yield open_endpoint
    for endpoint in opened:
        endpoint.__exit__(None, None, None)


@pytest.fixture
def options(tmp_path: Path) -> Callable[..., BenchOptions]:
    """Options of a quick run over an endpoint."""

    def made(endpoint: ScriptedEndpoint, **rest: Any) -> BenchOptions:
        where = Elsewhere(base_url=endpoint.url, model_name="scripted", prefill=True)
        fields = {"out": tmp_path / "out", "quick": True, "seeds": (42,), "elsewhere": where}
        return BenchOptions(**{**fields, **rest})

    return made


@pytest.fixture
def answers() -> Callable[[str], str]:
    """From a prompt of the paper split to a right answer; anything else is answered with OK."""
    items = {item.prompt: item for item in workload(42, ("paper",))}

    def answer(prompt: str) -> str:
        known = [item for text, item in items.items() if prompt.startswith(text)]
        return right_answer(known[0]) if known else "OK"

    return answer
