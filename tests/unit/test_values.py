"""Values that are made the quick way are the same values."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from stepcache import Outcome, Step
from stepcache._types import Control, Event, Trace, join, quick

MADE = {"text": "Noted.", "route": "exact", "reason": "asked before", "trace": Trace()}


@pytest.fixture(scope="module")
def made():
    return quick(Outcome)(**MADE)


def test_a_quickly_made_value_is_of_its_class(made):
    """It has the class, the defaults and the equality of one made in the ordinary way."""
    plain = Outcome(**MADE)
    assert type(made) is Outcome
    assert made == plain
    assert hash(made) == hash(plain)
    assert repr(made) == repr(plain)
    assert [getattr(made, f.name) for f in fields(Outcome)] == [
        getattr(plain, f.name) for f in fields(Outcome)
    ]


def test_a_quickly_made_value_is_frozen(made):
    """It cannot be changed, and can be copied with a change."""
    with pytest.raises(FrozenInstanceError):
        made.text = "Changed."
    assert replace(made, text="Changed.").text == "Changed."
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
    event = quick(Event)(name="exact", detail="entry 1")
    with pytest.raises(FrozenInstanceError):
        event.detail = "entry 2"


def test_what_a_value_needs_is_asked_for():
    """Nothing that has no default may be left out, and nothing unknown may be given."""
    with pytest.raises(TypeError):
        quick(Event)(name="exact")
    with pytest.raises(TypeError):
        quick(Event)(name="exact", detail="", more="")


@pytest.mark.parametrize("texts", [(), ("a",), ("a", "b\n", "")])
def test_steps_joined_are_the_answer(texts):
    """Whatever their number."""
    assert join([Step(index=n, text=text) for n, text in enumerate(texts)]) == "".join(texts)


def test_a_call_that_says_nothing_has_the_default_wishes():
    """And they cannot be changed for the next one."""
    assert Control.of(None) == Control()
    with pytest.raises(FrozenInstanceError):
        Control.of(None).bypass = True
