"""The JSON task against the shared contract, and a whole story through the engine."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from stepcache._types import Contract, Message, ModelCall, Reply, Request, Usage
from stepcache.engine import StepCacheEngine
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.testing.backends import ScriptedBackend
from stepcache.testing.tasks import TaskContract

RIVER = "Describe the river Po as a JSON object with keys length, source"


class TestJsonAnswerTask(TaskContract):
    """The laws every task keeps."""

    accepted: ClassVar = [
        RIVER,
        RIVER + ", mouth",
        "Extract name and age as JSON from: Ann is 30",
        "Extract name and age as JSON from: Bob is 25",
        "Answer in JSON: who wrote Faust?",
    ]
    declined: ClassVar = [
        "What is JSON?",
        "Write a Python function that returns JSON.",
        "Solve 2x + 3 = 13 for x.",
    ]
    answers: ClassVar = [
        (RIVER, '{"length": "652 km", "source": "Monviso"}'),
        (RIVER, 'Here you go:\n\n```json\n{"length": "652 km", "source": "Monviso"}\n```'),
        ("Extract name and age as JSON from: Ann is 30", '{"name": "Ann", "age": 30}'),
    ]

    @pytest.fixture
    def task(self) -> JsonAnswerTask:
        return JsonAnswerTask()


FACTS = {"length": "652 km", "source": "Monviso", "mouth": "Adriatic Sea", "country": "Italy"}


def model(call: ModelCall) -> Reply:
    """A model that knows one river and, asked for a part, gives that part only."""
    text = call.messages[-1].text
    if call.purpose == "patch":
        assert call.schema is not None
        keys = list(call.schema["properties"])
    else:
        keys = [key for key in FACTS if key in text]
    answer = json.dumps({key: FACTS[key] for key in keys}, indent=2)
    return Reply(
        text=answer, usage=Usage(calls=1, prompt_tokens=20, completion_tokens=5 * len(keys))
    )


def ask(text: str) -> Request:
    return Request(messages=(Message(role="user", text=text),), contract=Contract())


def test_a_story_of_keys() -> None:
    """Asked once; then re-worded, one key more, one key less, another river."""
    backend = ScriptedBackend(model)
    engine = StepCacheEngine(tasks=[JsonAnswerTask()], backend=backend)

    def route(text: str) -> tuple[str, dict[str, str]]:
        outcome = engine.resolve(ask(text))
        return outcome.route, json.loads(outcome.text)

    three = {key: FACTS[key] for key in ("length", "source", "mouth")}
    assert route(RIVER + ", mouth") == ("miss", three)
    assert route(
        "Please give me a JSON object about the river Po with the fields length, source and mouth."
    ) == ("reuse", three)
    assert route(RIVER + ", mouth, country") == ("patch", FACTS)
    assert route(RIVER) == ("adapt", {k: FACTS[k] for k in ("length", "source")})
    assert backend.purposes == ["answer", "patch"]
    assert route(RIVER.replace("river Po", "river Rhine"))[0] in ("skip", "miss")
    assert backend.purposes == ["answer", "patch", "answer"]
