"""The flows that are recorded: what is stored before, what is asked then, and what is right."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from stepcache import Message, ModelCall, Reply, Request
from stepcache.demo._check import stated_value

__all__ = ["SCENES", "Scene", "answer_to"]

_ROME = "Describe Rome as JSON with keys name, country."
_RIVER = "Describe Rome as JSON with keys name, country, river."
_MATH = "Solve 2x + 3 = 13 for x."
_OTHER = "Solve 7x + 2 = 37 for x."
_WRONG = "Solve 7x = 21 for x."
_BROKEN = "Describe Bonn as JSON with keys name, country."
_UNFINISHED = "Describe Oslo as JSON with keys name, country."
_TEXT = "Write a line about the river Elbe."

_ANSWERS: Mapping[str, str] = {
    _ROME: '{"name": "Rome", "country": "Italy"}',
    _RIVER: '{"name": "Rome", "country": "Italy", "river": "Tiber"}',
    _MATH: "2x + 3 = 13\n\n2x = 10\n\nx = 5",
    "Please find x if 13 = 3 + 2x.": "13 = 3 + 2x\n\n10 = 2x\n\nx = 5",
    _OTHER: "7x + 2 = 37\n\n7x = 35\n\nx = 5",
    _WRONG: "7x = 21\n\nx = 4",
    _BROKEN: "{'name': 'Bonn', 'country': 'Germany',}",
    _UNFINISHED: '{"name": "Oslo"}',
    _TEXT: "The Elbe flows from the Giant Mountains to the North Sea.",
}


def _equation(value: int) -> Callable[[str], bool]:
    return lambda text: stated_value(text, "x") == Fraction(value)


def _object(**wanted: str) -> Callable[[str], bool]:
    def right(text: str) -> bool:
        try:
            return bool(json.loads(text) == wanted)
        except ValueError:
            return False

    return right


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One request and its history."""

    name: str
    asked: str
    right: Callable[[str], bool]
    before: tuple[str, ...] = ()
    route: str = ""
    """The way it goes when nothing fails; checked, so that a scene stays what its name says."""
    patch: str = '{"river": "Tiber"}'
    repair: str = "I do not know."
    params: Mapping[str, object] = field(default_factory=dict)
    bypass: bool = False

    def request(self, text: str, namespace: str) -> Request:
        """A request of the scene."""
        messages = (Message(role="user", text=text),)
        return Request(messages=messages, namespace=namespace, params=self.params)

    def acceptable(self, text: str) -> bool:
        """Whether a text is the right answer or the bare model's."""
        return text == _ANSWERS[self.asked] or self.right(text)


def answer_to(scene: Scene) -> Callable[[ModelCall], Reply]:
    """What the scene's model says."""

    def answer(call: ModelCall) -> Reply:
        if call.purpose == "patch":
            text = scene.patch
        elif call.purpose == "repair":
            text = scene.repair
        else:
            text = _ANSWERS[call.messages[-1].text]
        return Reply(text=text)

    return answer


_IS_FIVE = _equation(5)
_IS_ROME = _object(name="Rome", country="Italy")
_IS_RIVER = _object(name="Rome", country="Italy", river="Tiber")
_IS_TEXT: Callable[[str], bool] = _ANSWERS[_TEXT].__eq__

SCENES: tuple[Scene, ...] = (
    Scene(name="miss-text", asked=_TEXT, right=_IS_TEXT, route="miss"),
    Scene(name="miss-equation", asked=_MATH, right=_IS_FIVE, route="miss"),
    Scene(name="miss-json", asked=_ROME, right=_IS_ROME, route="miss"),
    Scene(name="exact-text", asked=_TEXT, before=(_TEXT,), right=_IS_TEXT, route="exact"),
    Scene(name="exact-equation", asked=_MATH, before=(_MATH,), right=_IS_FIVE, route="exact"),
    Scene(
        name="reworded",
        asked="Please find x if 13 = 3 + 2x.",
        before=(_MATH,),
        right=_IS_FIVE,
        route="reuse",
    ),
    Scene(name="adapted", asked=_OTHER, before=(_MATH,), right=_IS_FIVE, route="adapt"),
    Scene(name="key-dropped", asked=_ROME, before=(_RIVER,), right=_IS_ROME, route="adapt"),
    Scene(name="patched", asked=_RIVER, before=(_ROME,), right=_IS_RIVER, route="patch"),
    Scene(
        name="patch-refused",
        asked=_RIVER,
        before=(_ROME,),
        patch="No idea.",
        right=_IS_RIVER,
        route="skip",
    ),
    Scene(name="skipped", asked=_ROME, before=(_BROKEN,), right=_IS_ROME, route="skip"),
    Scene(name="solved", asked=_WRONG, right=_equation(3), route="fallback"),
    Scene(
        name="mended",
        asked=_BROKEN,
        right=_object(name="Bonn", country="Germany"),
        route="miss",
    ),
    Scene(
        name="repaired",
        asked=_UNFINISHED,
        repair='{"name": "Oslo", "country": "Norway"}',
        right=_object(name="Oslo", country="Norway"),
        route="miss",
    ),
    Scene(name="rejected", asked=_UNFINISHED, right=lambda text: False, route="miss"),
    Scene(name="several-answers", asked=_TEXT, params={"n": 2}, right=_IS_TEXT, route="miss"),
    Scene(
        name="no-identity",
        asked=_TEXT,
        params={"logprobs": True},
        right=_IS_TEXT,
        route="bypass",
    ),
    Scene(
        name="bypassed", asked=_MATH, before=(_MATH,), bypass=True, right=_IS_FIVE, route="bypass"
    ),
)
