"""One story for every listener: each route once, told by the synchronous or asynchronous face."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from stepcache import Message, ModelCall, Outcome, Reply, Request, StepCacheEngine, Usage
from stepcache.protocols import Listener
from stepcache.testing import ScriptedBackend

SECRETS = ("Wolfram", "Zanzibar", "quokka", "Ouagadougou", "tenant-of-mine", "x = 4", "Tiber")
"""Words of requests, answers, differences, errors and namespaces: none may be told unasked."""

STORY = (
    "Solve 2x + 3 = 13 for x.",
    "Solve 2x + 3 = 13 for x.",
    "Please find x if 13 = 3 + 2x.",
    "Solve 2x + 3 = 15 for x.",
    "Solve 7x = 21 for x.",
    "Describe Wolfram as a JSON object with keys name, country.",
    "Describe Wolfram as a JSON object with keys name, country, quokka.",
    "Describe Zanzibar as a JSON object with keys name, country.",
    "Write about Ouagadougou.",
)
ROUTES = ("miss", "exact", "reuse", "adapt", "fallback", "miss", "patch", "skip", "miss")

ANSWERS = {
    STORY[0]: "2x + 3 = 13\n\n2x = 10\n\nx = 5",
    STORY[4]: "7x = 21\n\nx = 4",
    STORY[5]: '{"name": "Wolfram", "country": "Tiber"}',
    STORY[7]: '{"name": "Zanzibar", "country": "Tiber"}',
    STORY[8]: "Ouagadougou is on the Tiber.",
}


def answer(call: ModelCall) -> Reply:
    """The script of the story's model, 100 tokens in and 10 out a call."""
    text = ANSWERS.get(call.messages[-1].text, "x = 4")
    if call.purpose == "patch":
        text = '{"quokka": "Tiber"}'
    usage = Usage(calls=1, prompt_tokens=100, completion_tokens=10)
    return Reply(text=text, usage=usage, model="small-1")


def ask(text: str, **fields: Any) -> Request:
    """A request of one user message, in a namespace that names somebody."""
    fields = {"namespace": "tenant-of-mine", "model": "small", **fields}
    return Request(messages=(Message(role="user", text=text),), **fields)


@dataclass(frozen=True)
class Face:
    """One way of asking the engine."""

    name: str
    ask: Callable[[StepCacheEngine, Request], Outcome]


async def _last(pieces: Any) -> Any:
    return [piece async for piece in pieces][-1]


FACES = (
    Face("resolve", lambda engine, request: engine.resolve(request)),
    Face("aresolve", lambda engine, request: asyncio.run(engine.aresolve(request))),
    Face("stream", lambda engine, request: list(engine.stream(request))[-1]),  # type: ignore[arg-type,return-value]
    Face("astream", lambda engine, request: asyncio.run(_last(engine.astream(request)))),
)


def play(face: Face, *listeners: Listener, **options: Any) -> list[Outcome]:
    """The whole story, told to listeners."""
    engine = StepCacheEngine(backend=ScriptedBackend(answer), listeners=list(listeners), **options)
    outcomes = [face.ask(engine, ask(text)) for text in STORY]
    assert tuple(outcome.route for outcome in outcomes) == ROUTES
    return outcomes


class Broken(Exception):
    """The model's own error, whose text quotes the request."""


def fail(face: Face, *listeners: Listener) -> None:
    """One request whose model raises."""

    def down(call: ModelCall) -> str:
        raise Broken(f"cannot answer {call.messages[-1].text}")

    engine = StepCacheEngine(backend=ScriptedBackend(down), listeners=list(listeners))
    with pytest.raises(Broken):
        face.ask(engine, ask("Write about Ouagadougou."))


def secrets_in(text: str, secrets: Sequence[str] = SECRETS) -> list[str]:
    """Which of the secrets a text tells."""
    return [secret for secret in secrets if secret in text]


class Story:
    """What tests are given of all this."""

    texts, routes, secrets, faces = STORY, ROUTES, SECRETS, FACES
    answer = staticmethod(answer)
    ask = staticmethod(ask)
    play = staticmethod(play)
    fail = staticmethod(fail)
    secrets_in = staticmethod(secrets_in)

    def sync(self, *listeners: Listener) -> list[Outcome]:
        """The whole story by the synchronous face."""
        return play(FACES[0], *listeners)


@pytest.fixture(scope="session")
def story() -> Story:
    """The story and its players."""
    return Story()


@pytest.fixture(params=FACES, ids=lambda face: face.name)
def face(request: pytest.FixtureRequest) -> Face:
    """Each face in turn."""
    return request.param  # type: ignore[no-any-return]
