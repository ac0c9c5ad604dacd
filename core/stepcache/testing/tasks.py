"""What every task has to do, as a test class to inherit.

Whoever writes a task subclasses :class:`TaskContract` in a test module::

    class TestMyTask(TaskContract):
        accepted = ["Solve 2x + 3 = 13 for x.", "Solve y - 4 = 1 for y."]
        declined = ["Write a poem."]
        answers = [("Solve 2x + 3 = 13 for x.", "2x = 10\\n\\nx = 5")]

        @pytest.fixture
        def task(self):
            return MyTask()
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from itertools import product
from typing import ClassVar

from stepcache._identity import canonical_json
from stepcache._types import (
    Block,
    Constraints,
    Contract,
    Declined,
    Difference,
    JsonObject,
    Message,
    ModelCall,
    Request,
    Status,
    Step,
    Verdict,
    join,
)
from stepcache.protocols import Task

__all__ = ["ODD_TEXTS", "TaskContract"]

_KEBAB = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_PATIENCE = 3.0
"""Seconds of computing that one call may take on a hostile text; far above what it should."""

ODD_TEXTS: tuple[str, ...] = (
    *("", " ", "\n\r\n\t", "\x00", "\ud800", "a\udc00b", "\u200b\u202e", "\U0001f680", "e\u0301"),
    *("0", "-", "=", "x", "x = ", "= 3", "{", "}", "[]", "null", '"', '{"a": ', '{"a": 1}', "```"),
    *("1 = 2", "x = x", "2x + 3 = 13", "x^2 = 4", "x = 1/0", "x = 9" + "9" * 5_000, "٣ = x"),
    *("\\frac{", "$$", "\\[ x", "((((((x))))))", "Step 1: a\n\nStep 2: b", "1. a\n2. b\n", "| a |"),
    *("{" * 20_000, "[" * 20_000, "(" * 20_000, '{"a":' * 5_000, "x+" * 10_000 + "x = 1"),
    *("\\frac{1}{" * 2_000, "-" * 20_000, "9" * 20_000, "a " * 10_000, '"' * 20_000, "\\" * 20_000),
    *(
        "keys: " + "a, " * 5_000,
        "Let x be y. " * 2_000,
        "\n" * 20_000,
        "```\n" * 5_000,
        "水" * 9_000,
    ),
)
"""Texts that break parsers: empty, malformed, endless, deeply nested."""


class TaskContract:
    """Tests a task; needs the fixture ``task`` and the texts below."""

    accepted: ClassVar[Sequence[str]] = ()
    """Request texts the task takes; at least two, with different demands."""
    declined: ClassVar[Sequence[str]] = ()
    """Request texts it has to leave to others."""
    answers: ClassVar[Sequence[tuple[str, str]]] = ()
    """Request texts, each with an answer that is right and complete; at least one."""

    def test_the_suite_has_something_to_test(self) -> None:
        """Requests and answers are given."""
        assert len(self.accepted) >= 2
        assert self.answers

    def test_it_fits_the_protocol(self, task: Task) -> None:
        """It has the members of the Task protocol, of the right types."""
        assert isinstance(task, Task)
        assert _KEBAB.fullmatch(task.name)
        assert isinstance(task.version, str)
        assert task.version
        assert isinstance(task.retrieves, bool)
        assert isinstance(task.neutral, frozenset)
        assert all(word == word.casefold() for word in task.neutral)

    def test_it_takes_what_it_should(self, task: Task) -> None:
        """Requests of its family are accepted, others declined with a reason."""
        for text in self.accepted:
            assert isinstance(task.parse(_request(text)), Constraints), text
        for text in self.declined:
            declined = task.parse(_request(text))
            assert isinstance(declined, Declined), text
            assert declined.reason

    def test_law_10_parse_never_raises_and_is_bounded(self, task: Task) -> None:
        """Whatever the text, parsing ends in time with constraints or a reason."""
        for text in ODD_TEXTS:
            begin = time.process_time()
            parsed = task.parse(_request(text))
            assert time.process_time() - begin < _PATIENCE, text[:40]
            assert isinstance(parsed, (Constraints, Declined))

    def test_parse_of_no_message_declines_or_accepts(self, task: Task) -> None:
        """Requests without messages, or ending with the model's turn, do not raise."""
        for messages in ((), (Message(role="assistant", text="x = 3"),)):
            assert isinstance(task.parse(Request(messages=messages)), (Constraints, Declined))

    def test_constraints_are_well_formed(self, task: Task) -> None:
        """Constraints carry the task's name and version, JSON values, and ordered spans."""
        for text, constraints in self._parsed(task):
            assert (constraints.task, constraints.version) == (task.name, task.version)
            canonical_json(constraints.values)
            at = 0
            for span in constraints.spans:
                assert at <= span.start < span.stop <= len(text)
                assert span.name
                at = span.stop

    def test_law_4_a_schema_is_a_demand(self, task: Task) -> None:
        """A request with another output schema has other constraints, or is declined.

        The schema is the one part of a contract that is left out of a request's scope.
        """
        schemas: list[JsonObject | None] = [
            None,
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
            {"type": "array", "items": {"type": "integer"}},
        ]
        for text in self.accepted:
            seen: list[str] = []
            for schema in schemas:
                parsed = task.parse(_request(text, schema))
                if isinstance(parsed, Constraints):
                    seen.append(canonical_json(parsed.values))
            assert len(seen) == len(set(seen)), text

    def test_parse_is_pure(self, task: Task) -> None:
        """The same request has the same constraints, each time."""
        for text, constraints in self._parsed(task):
            assert task.parse(_request(text)) == constraints

    def test_law_3_segmentation_is_lossless(self, task: Task) -> None:
        """The steps of any answer join to it, in order, none of them empty."""
        for text in (*ODD_TEXTS, *(answer for _, answer in self.answers)):
            begin = time.process_time()
            steps = task.segment(text)
            assert time.process_time() - begin < _PATIENCE, text[:40]
            assert join(steps) == text
            assert [step.index for step in steps] == list(range(len(steps)))
            assert all(step.text for step in steps)

    def test_equal_demands_have_no_difference(self, task: Task) -> None:
        """Constraints do not differ from themselves, nor from what a store gives back of them."""
        for _, constraints in self._parsed(task):
            assert task.differences(constraints, constraints) == ()
            stored = _stored(constraints)
            assert task.differences(stored, constraints) == ()
            assert task.differences(constraints, stored) == ()

    def test_law_2_other_demands_have_a_difference(self, task: Task) -> None:
        """Constraints with other values differ, both ways; only the task itself may explain it."""
        for (_, old), (_, new) in product(self._parsed(task), repeat=2):
            if canonical_json(old.values) == canonical_json(new.values):
                continue
            differences = task.differences(old, new)
            assert differences
            assert all(isinstance(difference, Difference) for difference in differences)
            assert all(_KEBAB.fullmatch(difference.kind) for difference in differences)
            assert {difference.owner for difference in differences} <= {None, task.name}

    def test_verdicts_on_anything(self, task: Task) -> None:
        """Any text gets a verdict with a code, and with a reason unless it passed."""
        _, constraints = self._parsed(task)[0]
        for text in ODD_TEXTS:
            begin = time.process_time()
            verdicts = [task.verify(step, constraints) for step in task.segment(text)[:50]]
            verdicts.append(task.check(task.segment(text), constraints))
            assert time.process_time() - begin < 2 * _PATIENCE, text[:40]
            for verdict in verdicts:
                assert isinstance(verdict, Verdict)
                assert _KEBAB.fullmatch(verdict.code), verdict
                assert verdict.reason or verdict.status is Status.PASS

    def test_law_5_an_empty_answer_never_passes(self, task: Task) -> None:
        """No steps, or white space alone, are no complete answer."""
        for _, constraints in self._parsed(task):
            for steps in ((), task.segment(" \n")):
                assert task.check(steps, constraints).status is not Status.PASS

    def test_right_answers_pass(self, task: Task) -> None:
        """Each step of a right answer holds, and so does the whole."""
        for constraints, steps in self._answered(task):
            assert [task.verify(step, constraints).status for step in steps] == [
                Status.PASS for _ in steps
            ]
            assert task.check(steps, constraints).status is Status.PASS

    def test_a_block_is_made_of_what_failed(self, task: Task) -> None:
        """Nothing is made anew when all passed; else a block that fits, if any, has the failure."""
        passed = Verdict.passed("fine")
        assert task.block(()) is None
        assert task.block((passed, passed)) is None
        for at in range(3):
            verdicts = [passed] * 3
            verdicts[at] = Verdict.failed("wrong", "it is wrong")
            block = task.block(verdicts)
            assert block is None or block.start <= at < block.stop <= 3

    def test_a_solution_passes_its_own_checks(self, task: Task) -> None:
        """The deterministic answer, where there is one, is a right answer."""
        for text, constraints in self._parsed(task):
            solution = task.solve(constraints)
            if solution is None:
                continue
            steps = task.segment(solution)
            assert all(task.verify(s, constraints).status is Status.PASS for s in steps), text
            assert task.check(steps, constraints).status is Status.PASS, text

    def test_adapted_steps_are_steps(self, task: Task) -> None:
        """Adapting gives nothing, or steps numbered in order, none empty."""
        for (old, steps), (_, new) in product(self._answered(task), self._parsed(task)):
            adapted = task.adapt(steps, old, new)
            if adapted is not None:
                assert [step.index for step in adapted] == list(range(len(adapted)))
                assert all(isinstance(step, Step) and step.text for step in adapted)

    def test_patching_anything_does_not_raise(self, task: Task) -> None:
        """A block of a right answer can be asked for or not; no reply to that makes an error."""
        failed = Verdict.failed("wrong", "it is wrong")
        for (text, _), (constraints, steps) in zip(self.answers, self._answered(task)):
            for start in range(len(steps)):
                block = Block(start=start, stop=len(steps))
                verdicts = [Verdict.passed("fine")] * start + [failed] * (len(steps) - start)
                call = task.patch(_request(text), steps, block, verdicts, constraints)
                assert call is None or isinstance(call, ModelCall)
                for reply in ODD_TEXTS:
                    spliced = task.splice(reply, steps, block, verdicts, constraints)
                    assert spliced is None or isinstance(spliced, str)

    def test_mending_anything_does_not_raise(self, task: Task) -> None:
        """Of any text, mending makes a text or nothing, in time."""
        _, constraints = self._parsed(task)[0]
        for text in ODD_TEXTS:
            begin = time.process_time()
            mended = task.mend(text, constraints)
            assert time.process_time() - begin < _PATIENCE, text[:40]
            assert mended is None or isinstance(mended, str)

    def _parsed(self, task: Task) -> list[tuple[str, Constraints]]:
        return [(text, _constraints(task, text)) for text in self.accepted]

    def _answered(self, task: Task) -> Iterator[tuple[Constraints, tuple[Step, ...]]]:
        for text, answer in self.answers:
            yield _constraints(task, text), task.segment(answer)


def _request(text: str, schema: JsonObject | None = None) -> Request:
    return Request(messages=(Message(role="user", text=text),), contract=Contract(schema=schema))


def _constraints(task: Task, text: str) -> Constraints:
    parsed = task.parse(_request(text))
    assert isinstance(parsed, Constraints), text
    return parsed


def _stored(constraints: Constraints) -> Constraints:
    """What comes back of constraints that were kept as JSON."""
    return Constraints(
        task=constraints.task,
        version=constraints.version,
        values=json.loads(canonical_json(constraints.values)),
        spans=constraints.spans,
        whole=constraints.whole,
    )
