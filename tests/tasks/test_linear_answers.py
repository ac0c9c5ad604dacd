"""Answers to linear equations: what holds passes, what does not never does."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stepcache._types import Block, Constraints, Message, Request, Status, Step
from stepcache.tasks.linear_equation import LinearEquationTask

TASK = LinearEquationTask()


def read(text: str) -> Constraints:
    parsed = TASK.parse(Request(messages=(Message(role="user", text=text),)))
    assert isinstance(parsed, Constraints), (text, parsed)
    return parsed


def verify(text: str, request: str, index: int = 1):
    return TASK.verify(Step(index=index, text=text), read(request))


def check(answer: str, request: str) -> Status:
    return TASK.check(TASK.segment(answer), read(request)).status


LATEX = r"""We want the number \(x\) with \(2x + 3 = 13\).

1. **Move the constant**: subtract 3 from both sides.
   \[
   2x + 3 - 3 = 13 - 3
   \]
   This gives
   \[
   2x = 10
   \]

2. **Divide**: divide both sides by 2.
   \[
   \frac{2x}{2} = \frac{10}{2}
   \]

Therefore the solution is \(\boxed{5}\).
"""


@pytest.mark.parametrize(
    "answer",
    [
        LATEX,
        LATEX.replace("\n", "\r\n"),
        LATEX.replace("\n\n", "\n"),
        "x = 5",
        "x=5.0",
        "5",
        "5.",
        "**x = 5**",
        "$x = 5$",
        r"\[ \boxed{x = 5} \]",
        "x = 10/2 = 5",
        "5 = x",
        "x is 5",
        "The solution is 5.",
        "Answer: 5",
        "The value of x is 5.",
        "The solution of 2x + 3 = 13 is 5.",
        "2x + 3 = 13\n2x = 10\nx = 5",
        "2x = 13 - 3 = 10\n\nx = 10/2 = 5",
        "- 2x + 3 = 13\n- 2x = 10\n- x = 5",
        "| step | result |\n|---|---|\n| subtract 3 | 2x = 10 |\n| divide by 2 | x = 5 |\n",
        "Subtract 3 from both sides: 2x = 10. Divide both sides by 2: x = 5. Check: 2(5) + 3 = 13.",
        "1) 2x = 10\n2) x = 5",
        "Step 1: 2x = 10\n\nStep 2: x = 5",
        "2x = 10 → x = 5",
        "Subtract three from both sides: 2x = 10. Divide both sides by two: x = 5.",
        "Subtract 3 from both sides. The result is 10 on the right side: 2x = 10. x = 5",
        "两边同时减去三：2x = 10。两边除以二：x = 5",
        "x = 5, since 2·5 + 3 = 13",
        "Restamos 3 de ambos lados: 2x = 10. Dividimos entre 2: x = 5.",
        "3 auf beiden Seiten subtrahieren: 2x = 10. Also x = 5.",
        "两边减去3：2x = 10。所以 x = 5。",
        "Working: (13 - 3)/2 = 5, so x = 5.",
        "2x + 3 - 13 = 0, so 2x - 10 = 0 and x = 5",
    ],
)
def test_right_answers_pass(answer):
    """Right answers pass in every layout and language people answer in."""
    verdict = TASK.check(TASK.segment(answer), read("Solve 2x + 3 = 13 for x."))
    assert verdict.status is Status.PASS, verdict


@pytest.mark.parametrize(
    "answer",
    [
        "x = 4",
        "4",
        "x = 5\nx = 4",
        "y = 5",
        "The solution is 4.",
        "Answer: 10",
        "The answer is -5",
        "x is 4",
        "x = -5",
        "2x = 11, so x = 5",
        "2x = 10, so x = 10 - 2 = 8",
        "2x + 3 = 14, so x = 5",
        "Check: 2(5) + 3 = 14, so x = 5",
        "There is no solution.",
        "Every number is a solution: infinitely many, for example x = 5.",
        r"\[ \boxed{4} \]",
        r"\(x = \frac{13}{2}\)",
        LATEX.replace("5", "6"),
        LATEX.replace("13 - 3", "13 - 4"),
        "The equation is 2x + 1 = 11. So x = 5.",
        "To solve the equation 3x = 15, divide. x = 5",
    ],
)
def test_wrong_answers_fail(answer):
    """A wrong value, equation, letter or claim fails."""
    assert check(answer, "Solve 2x + 3 = 13 for x.") is Status.FAIL


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I cannot help with that.",
        "2x + 3 = 13",
        "2x = 10",
        "2x + 3 = 13\n2x = 10\nx = 10 / 2",
        "x = 10/2",
        "x = 5/1",
        "x is 20/4",
        r"\[ \boxed{\frac{10}{2}} \]",
        "Subtract 4 from both sides: 2x = 10. x = 5",
        "Add 3 to both sides: 2x = 10. x = 5",
        "Divide both sides by 7: x = 5",
        "Divide both sides by 1: x = 5",
        "Subtract thirteen from both sides: 2x = 10. x = 5",
        "Divide both sides by three: x = 5",
        "Subtrahiere zwei auf beiden Seiten: 2x = 10. x = 5",
        "两边同时减去二：2x = 10。x = 5",
        "Multiply both sides by 5: x = 5",
        "Move 2 to the other side: 2x = 10, x = 5",
        "2x + 3 = 13. x = 5 is not the solution.",
        "2x + 3 = 13. Divide both sides by 10: x = 5",
        "2x + 3 = 13. Subtract 13 from both sides: 2x = 10. Divide both sides by 2: x = 5",
        "3x auf 11 addieren. 2x + 3 = 13, x = 5",
        "Subtract four from both sides. x = 5",
        "Restamos cuatro. x = 5",
        "2x + 1 = 11\n2x = 10\nx = 5",
        "x = 5, or about 1/2x",
        "x ≈ 5",
        "x > 4",
        "There are 7 ways. x = 5",
        "x = 3 1/2",
        "x = 5 apples, not oranges: 7",
    ],
)
def test_what_is_not_proven_never_passes(answer):
    """An answer that is incomplete, stale or unread is not taken for a right one."""
    assert check(answer, "Solve 2x + 3 = 13 for x.") is not Status.PASS


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("5x = 5x + 1", "Subtracting 5x gives 0 = 1, so there is no solution."),
        ("2(x + 1) = 2x + 2", "Both sides are equal: all real numbers are solutions."),
        ("2x + 3 = 10", r"\(x = \frac{7}{2}\)"),
        ("2x + 3 = 10", "x = 3.5"),
        ("2x + 3 = 10", "x = 7/2"),
        ("x + y = 10, x - y = 4, x = ?", "Adding both: 2x = 14, so x = 7."),
        ("0.5t + 1 = 4", "Subtract 1: 0.5t = 3. Divide both sides by 0.5: t = 6."),
        ("x/3 + 2 = 6", "Subtract 2: x/3 = 4. Multiply both sides by 3: x = 12."),
    ],
)
def test_other_kinds_of_questions(request_text, answer):
    """No solution, all numbers, fractions, decimals and two unknowns."""
    assert check(answer, f"Solve {request_text}") is Status.PASS


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("Let us look at this.", Status.PASS, "no-claim"),
        ("2x = 10", Status.PASS, "holds"),
        ("2x = 12", Status.FAIL, "other-solution"),
        ("x = 6", Status.FAIL, "wrong-value"),
        ("y = 5", Status.FAIL, "other-variable"),
        ("3 + 4 = 8", Status.FAIL, "wrong-arithmetic"),
        ("The given equation is 4x + 6 = 26.", Status.FAIL, "other-equation"),
        ("There is no solution.", Status.FAIL, "wrong-claim"),
        ("Subtract 9 from both sides.", Status.UNKNOWN, "unexplained-operation"),
        ("x^2 = 25", Status.UNKNOWN, "not-linear"),
        ("2x + = 3", Status.UNKNOWN, "unreadable"),
        ("The answer is a prime.", Status.UNKNOWN, "unread-words"),
    ],
)
def test_verdicts_have_codes(text, status, code):
    """Each kind of fault has its own stable code."""
    verdict = verify(text, "Solve 2x + 3 = 13 for x.")
    assert (verdict.status, verdict.code) == (status, code)
    assert verdict.reason


@pytest.mark.parametrize(
    "text",
    [
        "[" * 19_000,
        "1, " * 6_000,
        "x = 5, " * 2_700,
        "divide by 9. 2x = 10. " * 900,
        "two " * 4_900,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_steps_cost_little(text):
    """The time to judge a step grows with its length, whatever it holds."""
    constraints = read("Solve 2x + 3 = 13 for x.")
    began = time.process_time()
    TASK.verify(Step(index=0, text=text), constraints)
    assert time.process_time() - began < 10  # stuck; how fast it is, benchmarks say


integers = st.integers(-40, 40)
nonzero = integers.filter(bool)


def equation(a: int, b: int, c: int, d: int, x: str) -> str:
    return f"Solve {a}*{x} + ({b}) = {c}*{x} + ({d}) for {x}."


@settings(max_examples=150, deadline=None)
@given(a=nonzero, b=integers, c=integers, d=integers, x=st.sampled_from("xynt"))
def test_the_worked_solution_passes_its_own_check(a, b, c, d, x):
    """Whatever the equation, the deterministic answer holds under the verifier."""
    constraints = read(equation(a, b, c, d, x))
    answer = TASK.solve(constraints)
    assert answer is not None
    verdict = TASK.check(TASK.segment(answer), constraints)
    assert verdict.status is Status.PASS, (answer, verdict)


@settings(max_examples=300, deadline=None)
@given(a=nonzero, b=nonzero, d=integers, data=st.data(), by=st.integers(1, 9), style=st.booleans())
def test_a_changed_number_never_passes(a, b, d, data, by, style):
    """An answer with one number changed is never taken for right."""
    assume(b != d)  # of 2x = 0 and 3x = 0 nobody can say which was meant
    ending = " Only the answer." if style else ""
    constraints = read(f"Solve {a}x + ({b}) = {d} for x.{ending}")
    answer = TASK.solve(constraints) or ""
    places = [i for i, c in enumerate(answer) if c.isdigit()]
    at = data.draw(st.sampled_from(places))
    changed = answer[:at] + str((int(answer[at]) + by) % 10) + answer[at + 1 :]
    before = TASK.check(TASK.segment(answer), constraints)
    after = TASK.check(TASK.segment(changed), constraints)
    assert before.status is Status.PASS
    assert after.status is not Status.PASS, (answer, changed)


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet="xy 0123456789+-*/=()$\\{}[].,:;\nabox", max_size=80))
def test_any_step_is_judged(text):
    """The verifier answers for any text and never raises."""
    verdict = verify(text, "Solve 2x + 3 = 13 for x.", index=0)
    assert verdict.status in Status


# --- adapting ----------------------------------------------------------------------------------


def adapt(answer: str, old: str, new: str) -> str | None:
    made = TASK.adapt(TASK.segment(answer), read(old), read(new))
    return None if made is None else "".join(step.text for step in made)


def test_new_constants_and_letter_are_derived_in_the_same_words():
    """The cached derivation with the new numbers, notation and words kept."""
    adapted = adapt(LATEX, "Solve 2x + 3 = 13 for x.", "Solve 4n - 9 = 19 for n.")
    assert adapted is not None
    expected = LATEX.replace(r"\(x\)", r"\(n\)").replace(
        "2x + 3 - 3 = 13 - 3", "4n - 9 + 9 = 19 + 9"
    )
    expected = expected.replace("2x + 3 = 13", "4n - 9 = 19").replace("2x = 10", "4n = 28")
    expected = expected.replace(r"\frac{2x}{2} = \frac{10}{2}", r"\frac{4n}{4} = \frac{28}{4}")
    expected = expected.replace("subtract 3 from", "add 9 to").replace("sides by 2", "sides by 4")
    assert adapted == expected.replace("{5}", "{7}")


def test_numbers_that_coincide_are_told_apart():
    """Where old numbers share a value, the new ones still follow from the derivation."""
    answer = "2x + 2 = 6\n\nSubtract 2 from both sides:\n2x = 4\n\nDivide both sides by 2:\nx = 2"
    adapted = adapt(answer, "Solve 2x + 2 = 6", "Solve 3x + 5 = 26")
    assert adapted == (
        "3x + 5 = 26\n\nSubtract 5 from both sides:\n3x = 21\n\nDivide both sides by 3:\nx = 7"
    )


@pytest.mark.parametrize(
    ("answer", "new"),
    [
        ("Since 2x + 3 = 13 and 4 is even, x = 5.", "Solve 3x + 4 = 19"),
        ("The two and the 2 agree. x = 5", "Solve 3x + 4 = 19"),
        ("2x + 3 = 13, so x = 5", "Solve 3x = 15"),
        ("2x + 3 = 13, so x = 5", "Solve x + 3 = 8"),
        ("2x + 3 = 13, so x = 5", "Solve 2x + 3 = 2x + 5"),
        ("2x + 3 = 13, so x = 5", "Solve x + y = 3, x - y = 1 for x"),
        ("Subtract three: 2x = 10, so x = 5", "Solve 2x + 4 = 14"),
        ("Wrong: x = 7", "Solve 3x + 4 = 19"),
    ],
)
def test_what_is_not_explained_is_not_adapted(answer, new):
    """A number without a role, another form or an unread word stops adapting."""
    assert adapt(answer, "Solve 2x + 3 = 13 for x.", new) is None


@settings(max_examples=150, deadline=None)
@given(
    old=st.tuples(nonzero, nonzero, integers),
    new=st.tuples(nonzero, nonzero, integers),
    letters=st.tuples(st.sampled_from("xynt"), st.sampled_from("xynt")),
)
def test_what_is_adapted_passes_the_check(old, new, letters):
    """Whatever is adapted is right, and the usual change is adapted."""
    one, two = (read(f"Solve {a}{x} + ({b}) = {d}") for (a, b, d), x in zip((old, new), letters))
    steps = TASK.segment(TASK.solve(one) or "")
    made = TASK.adapt(steps, one, two)
    if made is not None:
        assert TASK.check(made, two).status is Status.PASS
        assert [s.index for s in made] == [s.index for s in steps]
    plain = all(abs(v) > 1 for v in (old[0], new[0])) and old[2] and new[2] and old[2] != old[1]
    if plain and new[2] != new[1]:
        whole = all((d - b) % a == 0 for a, b, d in (old, new))
        assert made is not None or not whole


# --- differences, patching ---------------------------------------------------------------------


def kinds(old: str, new: str) -> list[tuple[str, bool]]:
    return [(d.kind, d.explained) for d in TASK.differences(read(old), read(new))]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("2x + 3 = 13", "13 = 3 + 2x", []),
        ("2x + 3 = 13", "2x + 4 = 13", [("constant", True)]),
        ("2x + 3 = 13", "2y + 3 = 13", [("variable", True)]),
        ("2x + 3 = 13", "2y + 4 = 13", [("variable", True), ("constant", True)]),
        ("2x + 3 = 13", "2x + 3 = x + 13", [("form", True)]),
        ("2x + 3 = 13 step by step", "2x + 3 = 13", [("style", True)]),
        ("2x + 3 = 13", "2x + 3 = 13 step by step", [("style", False)]),
        ("2x + 3 = 13, only the answer", "2x + 3 = 13", [("style", False)]),
    ],
)
def test_differences_are_typed_and_owned(old, new, expected):
    """Each change has a kind; only a style that someone might miss is unexplained."""
    assert kinds(old, new) == expected


def test_the_model_is_asked_to_go_on_from_what_is_verified():
    """A patch quotes the verified beginning as data and offers it as the start of the answer."""
    request = Request(messages=(Message(role="user", text="Solve 2x + 3 = 13 for x."),))
    constraints = read(request.text)
    steps = TASK.segment("2x + 3 = 13\n\n2x = 10\n\nx = 4\n")
    verdicts = [TASK.verify(step, constraints) for step in steps]
    block = TASK.block(verdicts)
    assert block == Block(start=2, stop=3)
    call = TASK.patch(request, steps, block, verdicts, constraints)
    assert call is not None
    assert call.purpose == "patch"
    assert call.prefix == "2x + 3 = 13\n\n2x = 10\n\n"
    assert call.messages[-1].text.startswith(request.text)
    assert "2x = 10" in call.messages[-1].text
    for reply in ("x = 5", "\nx = 5", "2x + 3 = 13\n\n2x = 10\n\nx = 5"):
        spliced = TASK.splice(reply, steps, block, verdicts, constraints)
        assert spliced == "2x + 3 = 13\n\n2x = 10\n\nx = 5"
    assert TASK.splice("  ", steps, block, verdicts, constraints) is None


def test_nothing_verified_is_nothing_to_go_on_from():
    """When the first step fails, the answer is asked for whole."""
    request = Request(messages=(Message(role="user", text="Solve 2x + 3 = 13 for x."),))
    constraints = read(request.text)
    steps = TASK.segment("x = 4\n")
    verdicts = [TASK.verify(step, constraints) for step in steps]
    assert TASK.patch(request, steps, Block(start=0, stop=1), verdicts, constraints) is None


def test_the_bare_answer_is_bare():
    """Whoever asks for the answer only gets one line."""
    assert TASK.solve(read("Solve 2x + 3 = 10. Only the answer.")) == "x = 7/2"


@pytest.mark.parametrize(
    ("demand", "right", "wrong"),
    [
        ("Answer with the number only.", "7/2", ["x = 7/2", "The solution is 7/2.", "4", "7"]),
        ("Answer with the number only.", "3.5", ["x = 3.5", "3"]),
        (
            r"Put your final answer in \boxed{} on the last line.",
            "x = 7/2\n\\boxed{7/2}",
            [
                "x = 7/2",
                "\\boxed{7/2}\nSo x = 7/2.",
                "x = 7/2\n\\boxed{7}",
                "x = 7/2\nSo x is \\(\\boxed{",
                "x = 7/2\nSo x is \\(\\boxed{7/2",
                "x = 7/2\n\\boxed{}",
            ],
        ),
    ],
)
def test_a_form_that_is_demanded_is_checked(demand, right, wrong):
    """A right value in another form than the one demanded is no right answer."""
    request = f"Solve 2x + 3 = 10. {demand}"
    assert check(right, request) is Status.PASS
    assert all(check(answer, request) is not Status.PASS for answer in wrong)
    made = TASK.solve(read(request))
    assert made is not None
    assert check(made, request) is Status.PASS


@pytest.mark.parametrize(
    ("equation", "result", "status"),
    [
        ("7x + 4 = 63", "x = 59 / 7", Status.PASS),
        ("7x + 4 = 63", r"x = \frac{59}{7}", Status.PASS),
        ("7x + 4 = -63", "x = -67/7", Status.PASS),
        ("9x + 4 = 19", "x = 5/3", Status.PASS),
        ("9x + 4 = 19", "x = 15/9", Status.UNKNOWN),
        ("9x + 4 = 19", r"x = \frac{15}{9}", Status.UNKNOWN),
        ("9x + 4 = 19", "x = 15/9 = 5/3", Status.PASS),
        ("8x + 4 = -60", "x = -64 / 8", Status.UNKNOWN),
    ],
)
def test_a_fraction_is_a_result_in_lowest_terms_only(equation, result, status):
    """What is still to be worked out states no result: an answer adapted from it would lack one."""
    assert check(result, f"Solve {equation} for x.") is status
