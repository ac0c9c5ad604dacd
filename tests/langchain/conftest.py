"""A scripted chat model and a scripted endpoint for the LangChain tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from stepcache.testing.endpoint import ScriptedEndpoint

FACTS = {
    "Rome": {"name": "Rome", "country": "Italy", "river": "Tiber", "population": 2800000},
    "Oslo": {"name": "Oslo", "country": "Norway", "river": "Akerselva", "population": 700000},
}


def answer(request: Mapping[str, Any]) -> str:
    """A small model: solves ``a v + b = c`` in steps, knows two cities, and a river."""
    text = str(request["messages"][-1]["content"])
    found = re.search(r"(-?\d+)([a-z]) ([+-]) (\d+) = (-?\d+)", text)
    if found:
        a, v, sign, b, c = found.groups()
        rest = int(c) - int(sign + b)
        return f"{found[0]}\n\n{a}{v} = {rest}\n\n{v} = {Fraction(rest, int(a))}"
    city = next((FACTS[name] for name in FACTS if name in text), None)
    if city is None:
        return "The Elbe."
    only = re.search(r"only the keys?:? ([\w, \"`]+)", text)
    keys = [key for key in city if key in (only[1] if only else text)]
    return json.dumps({key: city[key] for key in keys})


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """The small model behind real HTTP."""
    with ScriptedEndpoint(answer) as running:
        yield running


@pytest.fixture
def chat(endpoint: ScriptedEndpoint) -> Callable[..., ChatOpenAI]:
    """Makes chat models that talk to the endpoint."""

    def make(**fields: Any) -> ChatOpenAI:
        given = {"model": "scripted", "base_url": endpoint.url, "api_key": "secret-key", **fields}
        return ChatOpenAI(**given)

    return make
