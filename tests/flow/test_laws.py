"""The laws, each as a property over the whole engine."""

from __future__ import annotations

import asyncio
import string
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache import (
    Message,
    ModelCall,
    Outcome,
    Policy,
    Reply,
    Request,
    Step,
    StepCacheEngine,
    Usage,
    Verdict,
)
from stepcache.testing import AsyncScriptedBackend, ScriptedBackend

SERVED = {"exact", "reuse", "adapt"}
NAMES = st.sampled_from("xyzabn")
SMALL = st.integers(-12, 12)
FACTOR = SMALL.filter(bool)
FEW = settings(max_examples=60, deadline=None)


class Everywhere:
    """An embedder to which all texts are one: everything is found, so only proof can refuse."""

    fingerprint = "everywhere"
    dimension = 4

    def embed(self, texts: Sequence[str]) -> Any:
        """The same unit vector for every text."""
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


def ask(text: str, **fields: Any) -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),), **fields)


def equation(a: int, v: str, b: int, c: int) -> str:
    """``a v + b = c`` as people write it."""
    return f"{a}{v} {'+' if b >= 0 else '-'} {abs(b)} = {c}"


def worked(a: int, v: str, b: int, c: int) -> str:
    """A correct answer in steps, made without the library's own solver."""
    value = Fraction(c - b, a)
    return f"{equation(a, v, b, c)}\n\n{a}{v} = {c - b}\n\n{v} = {value}"


def scripted(answers: dict[str, str]) -> ScriptedBackend:
    """A model that knows these prompts, and says so when it does not."""
    return ScriptedBackend(lambda call: answers.get(call.messages[-1].text, "I was not told."))


def final_value(text: str) -> Fraction:
    """The value an answer ends with, read without the library."""
    return Fraction(text.strip().rsplit("=", 1)[1].strip().strip("$.\\)] "))


@FEW
@given(FACTOR, SMALL, SMALL, FACTOR, SMALL, SMALL, NAMES)
def test_law_1_similarity_finds_only_proof_serves(
    a: int, b: int, c: int, a2: int, b2: int, c2: int, v: str
) -> None:
    """When every text looks like every other, an answer is still only served where it is right."""
    first, second = (f"Solve {equation(*e)} for {v}." for e in ((a, v, b, c), (a2, v, b2, c2)))
    backend = scripted({first: worked(a, v, b, c), second: worked(a2, v, b2, c2)})
    engine = StepCacheEngine(embedder=Everywhere(), backend=backend)
    engine.resolve(ask(first))
    outcome = engine.resolve(ask(second))
    assert final_value(outcome.text) == Fraction(c2 - b2, a2)


@FEW
@given(st.text(max_size=60), st.text(max_size=60))
def test_law_1_holds_for_open_text(one: str, other: str) -> None:
    """Two texts that differ in more than white space never share an answer, however near."""
    engine = StepCacheEngine(
        embedder=Everywhere(), backend=ScriptedBackend(lambda call: "Certainly.")
    )
    engine.resolve(ask(one))
    outcome = engine.resolve(ask(other))
    if "".join(one.split()) != "".join(other.split()) and one.isascii() and other.isascii():
        assert outcome.route == "miss"


WORD = st.text(string.ascii_lowercase, min_size=4, max_size=9).map(lambda w: "q" + w)
SAYING = st.one_of(
    WORD,
    st.sampled_from(["not", "never", "twice", "in French", "as a decimal", "Anna", "'ok'"]),
    st.integers(100, 999).map(str),
)


@FEW
@given(SAYING, st.integers(0, 4))
def test_law_2_one_unexplained_word_is_a_skip(saying: str, at: int) -> None:
    """A word, number, name, negation, quotation or demand that no verifier owns refuses reuse."""
    words = ["Describe", "the river Elbe as a JSON object", "with keys", "name, length", ""]
    plain = " ".join(words).strip()
    changed = " ".join([*words[:at], saying, *words[at:]]).strip()
    backend = ScriptedBackend(lambda call: '{"name": "Elbe", "length": "1094 km"}')
    engine = StepCacheEngine(embedder=Everywhere(), backend=backend)
    engine.resolve(ask(plain))
    outcome = engine.resolve(ask(changed))
    # Inside the key list the saying may be a key: then it has to be asked for, not assumed.
    assert outcome.route not in SERVED
    assert len(backend.calls) >= 2


@FEW
@given(
    st.sampled_from(["namespace", "model", "temperature", "stop", "seed", "system", "unknown"]),
    st.text(max_size=8),
    st.text(max_size=8),
)
def test_law_4_nothing_crosses_a_namespace(part: str, one: str, other: str) -> None:
    """Whatever is identity parts two requests: the second is asked as if the first never was."""

    def request(value: str) -> Request:
        if part in ("namespace", "model"):
            return ask("Solve 2x + 3 = 13 for x.", **{part: value})
        if part == "system":
            text = Message(role="user", text="Solve 2x + 3 = 13 for x.")
            return Request(messages=(Message(role="system", text=value), text))
        return ask("Solve 2x + 3 = 13 for x.", params={part: value})

    backend = ScriptedBackend(lambda call: worked(2, "x", 3, 13))
    engine = StepCacheEngine(embedder=Everywhere(), backend=backend)
    engine.resolve(request(one))
    outcome = engine.resolve(request(other))
    assert outcome.route == ("exact" if one == other else "miss")
    assert len(backend.calls) == (1 if one == other else 2)


BAD_REPLIES = st.one_of(
    st.sampled_from(["length", "content_filter", "error", "interrupted", "max_tokens"]).map(
        lambda reason: Reply(text="The capital is Rome.", finish_reason=reason)
    ),
    st.sampled_from(["", "   \n", "...", "N/A", "null", "TODO"]).map(lambda text: Reply(text=text)),
    st.sampled_from(
        ["I'm sorry, but I can't help with that.", "As an AI language model, I cannot say."]
    ).map(lambda text: Reply(text=text)),
    st.just(Reply(text="Here you are.", refusal=True)),
)


@FEW
@given(BAD_REPLIES)
def test_law_5_only_good_answers_are_admitted(reply: Reply) -> None:
    """Truncated, empty, refused and placeholder answers reach the user once and nobody again."""
    backend = ScriptedBackend(lambda call: reply)
    engine = StepCacheEngine(backend=backend)
    for _ in range(2):
        outcome = engine.resolve(ask("What is the capital of Italy?"))
        assert outcome.text == reply.text
        assert outcome.route == "miss"
    assert engine.count() == 0
    assert len(backend.calls) == 2


@FEW
@given(FACTOR, SMALL, SMALL, st.integers(1, 9))
def test_law_5_a_wrong_answer_is_never_kept(a: int, b: int, c: int, off: int) -> None:
    """What fails the final check is corrected before it is kept, or not kept."""
    value = Fraction(c - b, a) + off
    backend = ScriptedBackend(lambda call: f"{equation(a, 'x', b, c)}\n\nx = {value}")
    engine = StepCacheEngine(backend=backend)
    request = ask(f"Solve {equation(a, 'x', b, c)} for x.")
    first = engine.resolve(request)
    assert first.route == "fallback"
    assert final_value(first.text) == Fraction(c - b, a)
    assert engine.resolve(request).text == first.text


def _broken_store() -> Any:
    def fail(*args: object, **kwargs: object) -> Any:
        raise OSError("the store is broken")

    names = ("get", "search", "put", "remove", "clear", "count", "close")
    return type("BrokenStore", (), dict.fromkeys(names, fail))()


def _broken_embedder() -> Any:
    def fail(*args: object, **kwargs: object) -> Any:
        raise OSError("the embedder is broken")

    fields = {"fingerprint": "broken", "dimension": 4, "embed": fail}
    return type("BrokenEmbedder", (), fields)()


@FEW
@given(st.sampled_from(["store", "embedder", "both"]), st.sampled_from(["math", "json", "text"]))
def test_law_6_machinery_fails_open(broken: str, family: str) -> None:
    """With a broken store or embedder the user gets what the bare model gives, and a trace."""
    prompt, answer = {
        "math": ("Solve 2x + 3 = 13 for x.", worked(2, "x", 3, 13)),
        "json": (
            "Describe Rome as JSON with keys name, country.",
            '{"name": "Rome", "country": "Italy"}',
        ),
        "text": ("Name a river.", "The Elbe."),
    }[family]
    parts: dict[str, Any] = {}
    if broken != "embedder":
        parts["store"] = _broken_store()
    if broken != "store":
        parts["embedder"] = _broken_embedder()
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: answer), **parts)
    for _ in range(2):
        outcome = engine.resolve(ask(prompt))
        assert outcome.text == answer
    if broken != "embedder":
        assert "store failed" in outcome.trace.names()


@FEW
@given(st.sampled_from(["raise", "unknown", "fail"]))
def test_law_6_a_verifier_that_cannot_tell_is_not_reused(how: str) -> None:
    """A verifier that raises, fails or does not know makes a skip, never a serve."""

    def verifier(step: Step, constraints: Any) -> Verdict:
        if how == "raise":
            raise ZeroDivisionError
        make = Verdict.unknown if how == "unknown" else Verdict.failed
        return make("not-sure", "cannot tell")

    backend = ScriptedBackend(lambda call: worked(2, "x", 3, 13))
    engine = StepCacheEngine(backend=backend, verifiers=[verifier], policy=Policy(adapt=False))
    engine.resolve(ask("Solve 2x + 3 = 13 for x."))
    outcome = engine.resolve(ask("Solve 13 = 3 + 2x for x."))
    assert outcome.route == "skip"
    assert len(backend.calls) == 2


@FEW
@given(FACTOR, SMALL, SMALL, st.integers(1, 500), st.integers(1, 500))
def test_law_7_a_hit_is_honest_and_fresh(a: int, b: int, c: int, sent: int, got: int) -> None:
    """A hit costs nothing, says what it saved and why, and is a value of its own."""
    usage = Usage(calls=1, prompt_tokens=sent, completion_tokens=got)
    reply = Reply(text=worked(a, "x", b, c), usage=usage)
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: reply))
    request = ask(f"Solve {equation(a, 'x', b, c)} for x.")
    first = engine.resolve(request)
    assert (first.route, first.spent, first.avoided) == ("miss", usage, Usage())
    reworded = ask(f"Please find x: {equation(a, 'x', b, c)}")
    for again, route in ((request, "exact"), (reworded, "reuse"), (reworded, "exact")):
        hit = engine.resolve(again)
        assert (hit.route, hit.spent, hit.avoided) == (route, Usage(), usage)
        assert hit is not first
        assert hit.reason
        assert hit.trace.render().count("\n") >= 0
        assert hit.reused_steps == len(hit.steps) > 0


# --- law 9 -------------------------------------------------------------------------------------

POOL = {
    "Solve 2x + 3 = 13 for x.": worked(2, "x", 3, 13),
    "Please solve for x: 13 = 3 + 2x": worked(2, "x", 3, 13),
    "Solve 5y - 4 = 11 for y.": "5y - 4 = 11\n\ny = 2",
    "Solve 2x + 3 > 13 for x.": "x > 5",
    "Describe Rome as a JSON object with keys name, country.": '{"name": "Rome", "country": "Italy"}',
    "Describe Rome as a JSON object with keys name, country, river.": '{"river": "Tiber"}',
    "Describe Rome as a JSON object with keys name.": '{"name": "Rome"}',
    "Describe Oslo as a JSON object with keys name, country.": '{"name": "Oslo", "country": "Norway"}',
    "Name a river.": "The Elbe.",
    "Name  a river.": "The Rhine.",
    "": "Hello.",
}


def _answer(call: ModelCall) -> str:
    if call.purpose == "patch":
        return '{"river": "Tiber"}'
    return POOL.get(call.messages[-1].text, "x = 2")


def _sync(script: Sequence[str]) -> list[Outcome]:
    engine = StepCacheEngine(backend=ScriptedBackend(_answer))
    return [engine.resolve(ask(text)) for text in script]


def _batch(script: Sequence[str]) -> list[Outcome]:
    engine = StepCacheEngine(backend=ScriptedBackend(_answer))
    return engine.resolve_many([ask(text) for text in script], max_concurrency=1)


def _stream(script: Sequence[str]) -> list[Outcome]:
    engine = StepCacheEngine(backend=ScriptedBackend(_answer))
    outcomes: list[Outcome] = []
    for text in script:
        *pieces, outcome = engine.stream(ask(text))
        assert isinstance(outcome, Outcome)
        assert "".join(piece.text for piece in pieces) == outcome.text
        outcomes.append(outcome)
    return outcomes


async def _async(script: Sequence[str]) -> list[Outcome]:
    engine = StepCacheEngine(backend=AsyncScriptedBackend(_answer))
    return [await engine.aresolve(ask(text)) for text in script]


async def _astream(script: Sequence[str]) -> list[Outcome]:
    engine = StepCacheEngine(backend=AsyncScriptedBackend(_answer))
    outcomes: list[Outcome] = []
    for text in script:
        pieces = [piece async for piece in engine.astream(ask(text))]
        assert "".join(piece.text for piece in pieces[:-1]) == pieces[-1].text
        outcomes.append(pieces[-1])
    return outcomes


def _seen(outcomes: Sequence[Outcome]) -> list[tuple[str, str, str]]:
    return [(o.text, o.route, o.trace.render()) for o in outcomes]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(sorted(POOL)), min_size=1, max_size=8))
def test_law_9_one_engine(script: list[str]) -> None:
    """The same script gives the same text, route and trace in every way of asking."""
    expected = _seen(_sync(script))
    assert _seen(_batch(script)) == expected
    assert _seen(_stream(script)) == expected
    assert _seen(asyncio.run(_async(script))) == expected
    assert _seen(asyncio.run(_astream(script))) == expected


# --- law 10 ------------------------------------------------------------------------------------

HOSTILE = {
    "nested parentheses": "Solve " + "(" * 20_000 + "x" + ")" * 20_000 + " = 3",
    "a million digits": "Solve 2x + 3 = " + "9" * 1_000_000 + " for x.",
    "many digits within the limit": "Solve 2x + 3 = " + "9" * 50_000 + " for x.",
    "nested powers": "Solve 2^" + "9^" * 5_000 + "9 = x",
    "nested brackets": "Return JSON with keys a: " + "[" * 50_000,
    "many keys": "Return a JSON object with keys " + ", ".join(f"k{i}" for i in range(12_000)),
    "many equals signs": "Solve " + "=" * 90_000,
    "one long word": "x" * 99_000,
    "a megabyte": "Please summarise: " + "lorem ipsum " * 90_000,
    "NUL bytes": "Solve 2x\0 + 3 = 13\0 for x.",
    "lone surrogates": "Solve 2x + 3 = 13 for \ud800 and return JSON \udfff",
    "combining marks": "Solve x" + "\u0301" * 50_000 + " = 3",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_law_10_bounded(name: str) -> None:
    """Hostile requests and answers end soon, and the user has the model's answer."""
    text = HOSTILE[name]
    engine = StepCacheEngine(backend=ScriptedBackend(lambda call: "It cannot be done."))
    outcome = engine.resolve(ask(text))
    assert outcome.route == "fallback" or outcome.text == "It cannot be done."
    hostile_model = StepCacheEngine(backend=ScriptedBackend(lambda call: text))
    assert hostile_model.resolve(ask("Solve 2x + 3 = 13 for x.")).text
    assert hostile_model.resolve(ask("Describe Rome as JSON with keys name.")).text == text
