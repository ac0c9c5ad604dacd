"""Many ways to ask for a solution, and as many to say the same words and ask for something else."""

from __future__ import annotations

import pytest

from stepcache._types import Constraints, Message, Request
from stepcache.explain import explain
from stepcache.tasks.linear_equation import LinearEquationTask

BASE = "Solve 2x + 3 = 13 for x."
BRIEFLY = f"{BASE} Show the steps briefly."
ANSWER = "2x + 3 = 13\n2x = 13 - 3\n2x = 10\nx = 5"
CHANGED = "4x + 1 = 13"

ASKING = [
    "My teacher put {eq} on the board. Could you help me find x?",
    "Hi, sorry to bother you: I got stuck on {eq}. What is x?",
    "There's one unknown, x, in {eq}. Find it, please.",
    "{eq} - find x",
    "Good evening! I'm studying for a test and came across {eq}. Please work out x.",
    "I have been trying to do my homework and I need help with solving {eq}.",
    "Thanks in advance! The equation is {eq}, and x has to be found.",
    "While revising a chapter I found this exercise: {eq}. I wonder what x must be.",
    "hey, could u solve {eq} pls? and i need it today",
    "Would you mind solving {eq} for x?",
    "Suppose that x is a number for which {eq} holds. Find that number.",
    "I need {eq} solved, thank you.",
]
BRIEF = [
    "Solve {eq}, show brief steps.",
    "Work out x: {eq}. Keep the steps brief.",
    "{eq}. What is x? Short steps.",
    "Isolate x in {eq}; show your work briefly.",
    "Short solution with steps: {eq}",
    "I need to solve {eq}. Show me the steps, but keep them short.",
    "Find x in {eq}, showing concise working.",
    "Briefly showing each step, work out the solution of {eq}.",
    "Can you find x? {eq}. Please lay out the steps succinctly.",
]
ASKING_ELSE = [
    "Give me a question like {eq} and its answer.",
    "Write an exercise on solving {eq}.",
    "Make a math problem to solve using {eq}.",
    "Give me a problem like {eq} with its solution.",
    "Solve an equation like {eq}.",
    "Find an equation like {eq}.",
    "Find the equation: {eq}",
    "What is the equation? {eq}, x",
    "State the linear equation to be solved: {eq}",
    "What side is x on in {eq}?",
    "Find the value of both sides of {eq}",
    "Give the sides of {eq} when solved.",
    "Is it possible to solve {eq}?",
    "Should I solve {eq}?",
    "Can I solve {eq} by hand?",
    "Who can solve {eq}?",
    "When will you solve {eq}?",
    "Solve {eq} as a teacher would.",
    "Solve {eq} as if you were my teacher.",
    "Find the chapter on solving {eq}",
    "What course has {eq} and its solution?",
    "I solved {eq}.",
    "I solved {eq}, thanks for the help",
    "My teacher solved {eq}.",
    "Ask someone to solve {eq}",
    "Tell my teacher to solve {eq}",
    "Remember {eq} so we can solve it tomorrow.",
]


def served(base: str, text: str) -> bool:
    return explain(None, base, ANSWER, text).inspection.served


@pytest.mark.parametrize("equation", ["2x + 3 = 13", CHANGED])
@pytest.mark.parametrize("wording", ASKING)
def test_the_story_around_an_equation_is_neutral(wording, equation):
    """However it is told, the solution is what is asked."""
    assert served(BASE, wording.format(eq=equation))


@pytest.mark.parametrize("equation", ["2x + 3 = 13", CHANGED])
@pytest.mark.parametrize("wording", BRIEF)
def test_brief_steps_are_one_style(wording, equation):
    """Brief, short and concise steps are the same demand, and not that of all the steps."""
    text = wording.format(eq=equation)
    assert served(BRIEFLY, text)
    assert not served(f"{BASE} Show the steps.", text)
    assert not served(text, f"{BASE} Show the steps.")


def test_who_asks_for_no_steps_takes_brief_ones():
    """Worked steps do no harm to whoever did not ask for any."""
    assert served(BRIEFLY, BASE)


@pytest.mark.parametrize("wording", ASKING_ELSE)
def test_the_same_words_may_ask_for_something_else(wording):
    """Words that are neutral one by one may make another request: it is not served."""
    assert not served(BASE, wording.format(eq="2x + 3 = 13"))
    assert not served(BASE, wording.format(eq=CHANGED))


def test_a_dash_before_words_is_no_minus():
    """The equation before it is read without it; numbers in words are still a part of one."""
    task = LinearEquationTask()

    def parse(text: str) -> object:
        return task.parse(Request(messages=(Message(role="user", text=text),)))

    read = parse("2x + 3 = 13 - find x")
    assert isinstance(read, Constraints)
    assert read.values == parse("Find x: 2x + 3 = 13").values
    assert not isinstance(parse("Find x: 2x + 3 = 13 - three"), Constraints)
