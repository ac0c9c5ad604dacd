"""Streams show a verified line as soon as nothing can take it back, and end as other calls do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache import (
    Constraints,
    Control,
    Message,
    ModelCall,
    Outcome,
    Policy,
    Reply,
    Request,
    Step,
    StepCacheEngine,
    Verdict,
)
from stepcache._plan import to_the_end
from stepcache._stitch import segment
from stepcache._types import Block, Declined, Difference, Span, join
from stepcache.protocols import Delta
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.testing import AsyncScriptedBackend, ScriptedBackend
from stepcache.testing.backends import Interrupted

MATH = "Solve 2x + 3 = 13 for x."


class RunningSums:
    """``Add up: 3 4 5`` is answered by the running sums, a line each, and has one right answer."""

    name, version, retrieves = "running-sums", "1", True
    neutral: frozenset[str] = frozenset()

    def parse(self, request: Request, /) -> Constraints | Declined:
        text = request.text
        if not text.startswith("Add up: "):
            return Declined(reason="not a sum")
        numbers = [int(word) for word in text[8:].split()]
        span = Span(start=8, stop=len(text), name="numbers")
        values = {"numbers": numbers}
        return Constraints(task=self.name, version="1", values=values, spans=(span,), whole=True)

    def segment(self, text: str, /) -> tuple[Step, ...]:
        return segment(text)

    def differences(self, old: Constraints, new: Constraints, /) -> tuple[Difference, ...]:
        if old.values == new.values:
            return ()
        a, b = (str(c.values["numbers"]) for c in (old, new))
        return (Difference(kind="constant", path="numbers", old=a, new=b, owner=self.name),)

    def verify(self, step: Step, constraints: Constraints, /) -> Verdict:
        sums = _sums(constraints)
        if step.index < len(sums) and step.text.strip() == sums[step.index]:
            return Verdict.passed("sum")
        return Verdict.failed("wrong-sum", f"{step.text.strip()!r} is no running sum")

    def check(self, steps: Sequence[Step], constraints: Constraints, /) -> Verdict:
        if [step.text.strip() for step in steps] == _sums(constraints):
            return Verdict.passed("summed")
        return Verdict.failed("not-summed", "the running sums are others")

    def adapt(self, steps: Any, old: Any, new: Any, /) -> None:
        return None

    def block(self, verdicts: Sequence[Verdict], /) -> Block | None:
        return to_the_end(verdicts)

    def patch(
        self, request: Request, steps: Any, block: Block, verdicts: Any, constraints: Any, /
    ) -> ModelCall | None:
        if not block.start:
            return None
        message = Message(role="user", text=f"{request.text}\nGo on.")
        return ModelCall(purpose="patch", messages=(message,), prefix=join(steps[: block.start]))

    def splice(
        self, reply: str, steps: Any, block: Block, verdicts: Any, constraints: Any, /
    ) -> str | None:
        beginning = join(steps[: block.start])
        return f"{beginning.rstrip()}\n\n{reply.lstrip()}" if reply.strip() else None

    def mend(self, text: str, constraints: Constraints, /) -> None:
        return None

    def solve(self, constraints: Constraints, /) -> str | None:
        return "\n\n".join(_sums(constraints))


def _sums(constraints: Constraints) -> list[str]:
    numbers = constraints.values["numbers"]
    return [str(sum(numbers[: i + 1])) for i in range(len(numbers))]


def ask(text: str) -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),))


def streamed(pieces: Iterator[Any]) -> tuple[list[str], Outcome]:
    """The texts a stream showed, and its outcome."""
    *shown, outcome = pieces
    assert isinstance(outcome, Outcome)
    return [piece.text for piece in shown], outcome


class Watched:
    """A model that writes line by line, and how far it has come."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        self.written = 0

    def generate(self, call: ModelCall) -> Reply:
        return Reply(text="".join(self.lines))

    def stream(self, call: ModelCall) -> Iterator[Delta | Reply]:
        for line in self.lines:
            self.written += 1
            yield Delta(line)
        yield Reply(text="".join(self.lines))


def test_a_miss_is_shown_line_by_line_once_verified() -> None:
    """The first line is read while the model writes the third, and all of it once."""
    backend = Watched("2x + 3 = 13\n\n", "2x = 10\n\n", "x = 5")
    engine = StepCacheEngine(backend=backend)
    pieces = engine.stream(ask(MATH))
    assert next(pieces).text == "2x + 3 = 13\n\n"  # type: ignore[union-attr]
    assert backend.written == 2
    rest, outcome = streamed(pieces)
    assert rest == ["2x = 10\n\n", "x = 5"]
    assert (outcome.route, engine.count()) == ("miss", 1)


def test_closing_after_a_shown_line_keeps_nothing() -> None:
    """A part that was read is no answer."""
    engine = StepCacheEngine(backend=Watched("2x + 3 = 13\n\n", "2x = 10\n\n", "x = 5"))
    pieces = engine.stream(ask(MATH))
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert engine.count() == 0
    assert len(engine._flights) == 0


def test_a_line_that_is_wrong_is_never_shown() -> None:
    """What follows it is made anew from what was shown."""
    engine = StepCacheEngine(
        backend=Watched("2x + 3 = 13\n\n", "2x = 11\n\n", "x = 5.5"), policy=Policy(max_repairs=0)
    )
    shown, outcome = streamed(engine.stream(ask(MATH)))
    assert outcome.route == "fallback"
    assert "".join(shown) == outcome.text
    assert outcome.text.startswith("2x + 3 = 13\n\n")
    assert "11" not in outcome.text
    assert outcome.text.count("2x + 3 = 13") == 1
    assert outcome.text.endswith("x = 5")


def test_json_is_held_until_it_is_whole() -> None:
    """No deterministic answer could stand in, so nothing is shown before the final check."""
    backend = Watched('{"name": "Rome",\n', '"country": "Italy"}')
    engine = StepCacheEngine(backend=backend)
    pieces = engine.stream(ask("Describe Rome as a JSON object with keys name, country."))
    next(pieces)
    assert backend.written == 2


class Counting(LinearEquationTask):
    """The task, counting what it is made to verify."""

    verified = 0

    def verify(self, step: Step, constraints: Constraints, /) -> Verdict:
        type(self).verified += 1
        return super().verify(step, constraints)


def test_long_answers_cost_bounded_work() -> None:
    """After so many lines the rest is written unseen, and still checked."""
    lines = ["2x + 3 = 13\n\n"] + ["2x = 10\n\n"] * 500 + ["x = 5"]
    engine = StepCacheEngine(backend=Watched(*lines), tasks=[Counting()])
    shown, outcome = streamed(engine.stream(ask(MATH)))
    assert "".join(shown) == outcome.text == "".join(lines)
    assert Counting.verified < 64 * 64 * 4


SUMS = ["Add up: 3 4 5", "Add up: 3 4 6 7", "Add up: 3 4 5 1", "Add up: 9"]


def test_a_patch_shows_the_verified_beginning_at_once() -> None:
    """Before the model has said a word; then each new line when it is known to hold."""
    backend = Watched("13\n\n", "20\n\n", "21")
    engine = StepCacheEngine(tasks=[RunningSums()])
    engine.admit(ask(SUMS[0]), Reply(text="3\n\n7\n\n12"))
    pieces = engine.stream(ask("Add up: 3 4 6 7 1"), backend=backend)
    assert next(pieces).text == "3\n\n7\n\n"  # type: ignore[union-attr]
    assert backend.written == 0
    assert next(pieces).text == "13\n\n"  # type: ignore[union-attr]
    assert backend.written == 2
    rest, outcome = streamed(pieces)
    assert (rest, outcome.route) == (["20\n\n", "21"], "patch")


def test_a_patch_that_breaks_off_ends_deterministically() -> None:
    """What was shown stands, also when the connection does not."""
    engine = StepCacheEngine(tasks=[RunningSums()])
    engine.admit(ask(SUMS[0]), Reply(text="3\n\n7\n\n12"))
    broken = ScriptedBackend([Interrupted("13\n\n2", ConnectionResetError())])
    shown, outcome = streamed(engine.stream(ask(SUMS[1]), backend=broken))
    assert "".join(shown) == outcome.text == "3\n\n7\n\n13\n\n20"
    assert outcome.route == "fallback"


def test_endless_lines_are_no_work() -> None:
    """An answer of very many lines is written and refused in no time to speak of."""
    lines = ["no\n"] * 20_000
    engine = StepCacheEngine(tasks=[RunningSums()], policy=Policy(max_repairs=0, fallback=False))
    started = time.process_time()
    shown, _ = streamed(engine.stream(ask(SUMS[0]), backend=Watched(*lines)))
    assert "".join(shown) == "".join(lines)
    assert time.process_time() - started < 10


LINES = st.lists(
    st.sampled_from(["3\n\n", "7\n\n", "12\n\n", "13\n\n", "20", "3", "7\n", "\n", "12", "no"]),
    max_size=5,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(
    asks=st.lists(st.sampled_from(SUMS), min_size=1, max_size=3),
    replies=st.lists(LINES, min_size=6, max_size=6),
    fallback=st.booleans(),
)
def test_law_9_streams_end_as_other_calls_do(
    asks: list[str], replies: list[str], fallback: bool
) -> None:
    """Whatever the model says, first, patching and repairing: same text, route and trace, and the
    pieces shown join to it."""

    def engine(make: Callable[..., Any]) -> StepCacheEngine:
        policy = Policy(fallback=fallback)
        return StepCacheEngine(tasks=[RunningSums()], policy=policy, backend=make(list(replies)))

    waiting, reading = engine(ScriptedBackend), engine(ScriptedBackend)
    for text in asks:
        outcome = waiting.resolve(ask(text))
        shown, last = streamed(reading.stream(ask(text)))
        assert "".join(shown) == last.text
        assert (last.text, last.route, last.trace) == (outcome.text, outcome.route, outcome.trace)
        assert last.entry_id == outcome.entry_id


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from(
            [
                "2x + 3 = 13\n\n",
                "2x = 10\n\n",
                "2x = 11\n",
                "x = 5",
                "x = 5\n\n",
                "So:\n",
                "x = 6",
                "- x\n",
                "Subtract 3 from both sides.\n",
                "$$\n",
                "1. 2x = 10\n",
                "2. x = 5\n",
                "```\n",
                "I cannot.\n",
            ]
        ),
        max_size=6,
    )
)
def test_law_9_holds_for_equations(lines: list[str]) -> None:
    """The same for the family that ships, over right, wrong and odd lines."""
    text = "".join(lines)
    script = [text, "x = 5", "x = 5"]
    outcome = StepCacheEngine(backend=ScriptedBackend(script)).resolve(ask(MATH))
    shown, last = streamed(StepCacheEngine(backend=ScriptedBackend(script)).stream(ask(MATH)))
    assert "".join(shown) == last.text
    assert (last.text, last.route, last.trace) == (outcome.text, outcome.route, outcome.trace)


async def test_the_asynchronous_stream_does_the_same() -> None:
    """Piece by piece as the synchronous one."""
    text = "2x + 3 = 13\n\n2x = 10\n\nx = 5"
    expected, _ = streamed(StepCacheEngine(backend=ScriptedBackend([text])).stream(ask(MATH)))
    engine = StepCacheEngine(backend=AsyncScriptedBackend([text]))
    *pieces, outcome = [piece async for piece in engine.astream(ask(MATH))]
    assert [piece.text for piece in pieces] == expected  # type: ignore[union-attr]
    assert isinstance(outcome, Outcome)
    assert outcome.route == "miss"


@pytest.mark.parametrize("how", ["policy", "control"])
def test_readers_may_ask_for_the_unverified(how: str) -> None:
    """The model's own pieces come as they are; what fails the check is not kept."""
    backend = Watched("2x = 11\n\n", "x = 5.5")
    engine = StepCacheEngine(backend=backend, policy=Policy(stream_unverified=how == "policy"))
    control = Control(stream_unverified=True) if how == "control" else None
    pieces = engine.stream(ask(MATH), control=control)
    assert next(pieces) == Delta("2x = 11\n\n")
    assert backend.written == 1
    _, outcome = streamed(pieces)
    assert (outcome.text, outcome.route) == ("2x = 11\n\nx = 5.5", "miss")
    assert engine.count() == 0
    assert engine.resolve(ask(MATH)).text.endswith("x = 5")


def test_the_unverified_is_not_shared() -> None:
    """Who waits for an equal request in flight does not get what its reader took unproven."""
    go = threading.Event()

    class Wrong:
        def generate(self, call: ModelCall) -> Reply:
            return Reply(text="x = 5")

        def stream(self, call: ModelCall) -> Iterator[Delta | Reply]:
            yield Delta("x = 6")
            assert go.wait(10)
            yield Reply(text="x = 6")

    engine = StepCacheEngine(backend=Wrong())
    taken: list[str] = []

    def read() -> None:
        control = Control(stream_unverified=True)
        taken.extend(streamed(iter(engine.stream(ask(MATH), control=control)))[0])

    def wait() -> None:
        taken.append(engine.resolve(ask(MATH)).text)

    reader, waiter = threading.Thread(target=read), threading.Thread(target=wait)
    reader.start()
    while not len(engine._flights):
        time.sleep(0.001)
    waiter.start()
    time.sleep(0.05)
    go.set()
    reader.join()
    waiter.join()
    assert taken == ["x = 6", "x = 5"]
