"""Golden traces: each reads like the decision told aloud."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepcache import Message, ModelCall, Request, StepCacheEngine
from stepcache.testing import ScriptedBackend

ANSWERS = {
    "Solve 2x + 3 = 13 for x.": "2x + 3 = 13\n\n2x = 10\n\nx = 5",
    "Solve 7x = 21 for x.": "7x = 21\n\nx = 4",
    "Describe Rome as JSON with keys name, country.": '{"name": "Rome", "country": "Italy"}',
    "Describe Oslo as JSON with keys name, country.": '{"name": "Oslo", "country": "Norway"}',
    "Describe Bonn as JSON with keys name, country.": "{'name': 'Bonn', 'country': 'Germany',}",
}


def _answer(call: ModelCall) -> str:
    if call.purpose == "patch":
        return '{"river": "Tiber"}'
    return ANSWERS.get(call.messages[-1].text, "x = 4")


def told(script: Sequence[str]) -> str:
    """The trace of the last request of a script, entries numbered in order of appearance."""
    engine = StepCacheEngine(backend=ScriptedBackend(_answer))
    for text in script:
        request = Request(messages=(Message(role="user", text=text),))
        outcome = engine.resolve(request)
    numbers: dict[str, str] = {}
    return re.sub(
        r"\b[0-9a-f]{24}\b",
        lambda found: numbers.setdefault(found[0], f"#{len(numbers) + 1}"),
        f"{outcome.route}, because {outcome.reason}\n{outcome.trace.render()}",
    )


MATH = "Solve 2x + 3 = 13 for x."
ROME = "Describe Rome as JSON with keys name, country."


def test_a_miss() -> None:
    """Nothing is stored: the model is asked, its answer checked and kept."""
    assert told([MATH]) == (
        "miss, because nothing stored answers it\n"
        "exact: no entry\n"
        "task: not json: the text does not demand JSON\n"
        "task: linear-equation\n"
        "canonical: no entry\n"
        "candidates: 0 near enough of 0 found\n"
        "asked: the model, for the whole answer (miss)\n"
        "admitted: entry #1"
    )


def test_the_same_again() -> None:
    """A byte-equal request is not even parsed."""
    assert told([MATH, MATH]) == (
        "exact, because the same request was answered before\nexact: entry #1"
    )


def test_other_words() -> None:
    """A re-worded request meets its demands' entry without an embedding, and is verified."""
    assert told([MATH, "Please find x if 13 = 3 + 2x."]) == (
        "reuse, because the same demands in other words\n"
        "exact: no entry\n"
        "task: not json: the text does not demand JSON\n"
        "task: linear-equation\n"
        "canonical: entry #1\n"
        "plan: reuse #1: all 3 steps verified\n"
        "admitted: entry #2"
    )


def test_an_added_key() -> None:
    """Only the missing key is asked for."""
    assert told([ROME, "Describe Rome as JSON with keys name, country, river."]) == (
        "patch, because step 1 of 1: required keys are missing: river\n"
        "exact: no entry\n"
        "task: json\n"
        "canonical: no entry\n"
        "candidates: 1 near enough of 1 found\n"
        "explained: key-added '' -> 'river'\n"
        "plan: patch #1: step 1 of 1: required keys are missing: river\n"
        "patch: 1 of 1 step made anew and verified\n"
        "admitted: entry #2"
    )


def test_another_topic() -> None:
    """A word nobody can answer for refuses the candidate, and is named."""
    assert told([ROME, "Describe Oslo as JSON with keys name, country."]) == (
        "skip, because name 'Rome' -> 'Oslo'\n"
        "exact: no entry\n"
        "task: json\n"
        "canonical: no entry\n"
        "candidates: 1 near enough of 1 found\n"
        "differs: name 'Rome' -> 'Oslo'\n"
        "asked: the model, for the whole answer (skip)\n"
        "admitted: entry #1"
    )


def test_a_wrong_answer() -> None:
    """The model is wrong twice: the deterministic answer stands in, and is kept."""
    story = told(["Solve 7x = 21 for x."])
    assert story.startswith("fallback, because ")
    assert story.splitlines()[-3:] == [
        "repair: asked to go on from what stands: 9 characters",
        "fallback: the deterministic answer",
        "admitted: entry #1",
    ]


def test_a_damaged_answer() -> None:
    """Broken JSON is mended without the model, and strictly checked."""
    story = told(["Describe Bonn as JSON with keys name, country."])
    assert story.splitlines()[-2:] == ["mended: without the model", "admitted: entry #1"]
