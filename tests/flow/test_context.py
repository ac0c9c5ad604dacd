"""Law 11 where an earlier turn asks for a form that no task reads."""

from __future__ import annotations

import pytest

from stepcache import Message, Request, StepCacheEngine
from stepcache.testing import ScriptedBackend

VERSE = "Twice a number, three more makes thirteen; so five it has always been."
ASK = Message(role="user", text="Solve 2x + 3 = 13 for x.")


def after(*earlier: Message) -> Request:
    """The equation after some earlier turns."""
    return Request(messages=(*earlier, ASK))


def system(text: str) -> Message:
    """A system prompt."""
    return Message(role="system", text=text)


@pytest.mark.parametrize(
    "earlier",
    [
        (system("Answer in rhymes."),),
        (system("Du antwortest auf Deutsch."),),
        (
            Message(role="user", text="Rhyme from now on."),
            Message(role="assistant", text="I will."),
        ),
    ],
)
def test_what_cannot_be_read_is_not_replaced(earlier: tuple[Message, ...]) -> None:
    """The model's own answer is handed over, and not kept."""
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: VERSE))
    outcome = engine.resolve(after(*earlier))
    assert (outcome.text, outcome.route) == (VERSE, "miss")
    assert engine.count() == 0


@pytest.mark.parametrize(
    "earlier",
    [(), (system("You are a helpful assistant."),), (system("Answer questions briefly."),)],
)
def test_without_such_a_demand_it_is(earlier: tuple[Message, ...]) -> None:
    """Nobody asked for verse: the deterministic answer stands in."""
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: VERSE))
    outcome = engine.resolve(after(*earlier))
    assert outcome.route == "fallback"
    assert outcome.text.strip().endswith("x = 5")


def test_what_is_provably_wrong_is_replaced_all_the_same() -> None:
    """A wrong value is wrong in any form."""
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: "x = 4"))
    outcome = engine.resolve(after(system("Answer in rhymes.")))
    assert outcome.route == "fallback"
