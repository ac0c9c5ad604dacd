"""What the text task makes of an engine: one answer for all spellings of a request."""

import pytest

from stepcache import Contract, Message, Request, StepCacheEngine
from stepcache.tasks.text import TextTask
from stepcache.testing import ScriptedBackend


def request(text: str, **fields: object) -> Request:
    return Request(messages=(Message(role="user", text=text),), **fields)  # type: ignore[arg-type]


@pytest.fixture
def engine() -> StepCacheEngine:
    return StepCacheEngine(tasks=[TextTask()])


def test_another_spelling_is_served_without_the_model(engine: StepCacheEngine) -> None:
    """A second spelling costs no call and says why; the answer is the first one's."""
    backend = ScriptedBackend(["The moon pulls at the sea.\n\nTwice a day."])
    first = engine.resolve(request("Explain tides"), backend=backend)
    second = engine.resolve(request("Please explain  tides\n"), backend=backend)
    assert (first.route, second.route) == ("miss", "reuse")
    assert second.text == first.text
    assert [verdict.code for verdict in second.verdicts] == ["same-request"] * 2
    assert len(backend.calls) == 1
    assert second.spent.calls == 0
    assert second.avoided == first.spent


@pytest.mark.parametrize(
    "other",
    [
        request("Explain Tides"),
        request("Explain tides?"),
        request("Explain tide"),
        request("Explain tides", contract=Contract(schema={"type": "object"})),
        request("Explain tides", model="another"),
        request("Explain tides", params={"temperature": 1}),
        request("Explain tides", namespace="another"),
    ],
)
def test_any_other_request_asks_the_model(engine: StepCacheEngine, other: Request) -> None:
    """Whatever differs, in words or around them, is answered anew."""
    backend = ScriptedBackend(["The moon pulls.", "Something else."])
    engine.resolve(request("Explain tides"), backend=backend)
    assert engine.resolve(other, backend=backend).text == "Something else."
    assert len(backend.calls) == 2
