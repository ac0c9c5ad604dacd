"""Every task we ship keeps the task contract."""

import pytest

from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.tasks.text import TextTask
from stepcache.testing.tasks import TaskContract


class TestTextTask(TaskContract):
    """Any text, exactly."""

    accepted = ("Explain tides", "Explain  tides, briefly.", "\u6c34\u306f\u4f55\u3067\u3059\u304b")
    declined = ("", " \n")
    answers = (("Explain tides", "The moon pulls.\n\n- twice a day\n- everywhere\n"),)

    @pytest.fixture
    def task(self) -> TextTask:
        return TextTask()


class TestJsonAnswerTask(TaskContract):
    """One JSON object with the keys asked for."""

    accepted = (
        'Return a JSON object with the keys "name" and "age" for: Ann is 30.',
        'Return a JSON object with the keys "name", "age" and "city" for: Ann is 30.',
        'Return a JSON object with the keys "name" and "age" for: Bob is 25.',
    )
    declined = ("Write a poem about rivers.", "Solve 2x + 3 = 13 for x.", "")
    answers = (
        (
            'Return a JSON object with the keys "name" and "age" for: Ann is 30.',
            '{"name": "Ann", "age": 30}',
        ),
        (
            'Return a JSON object with the keys "name", "age" and "city" for: Ann is 30.',
            '```json\n{"name": "Ann", "age": 30, "city": null}\n```\n',
        ),
    )

    @pytest.fixture
    def task(self) -> JsonAnswerTask:
        return JsonAnswerTask()


class TestLinearEquationTask(TaskContract):
    """One linear equation, solved step by step."""

    accepted = (
        "Solve 2x + 3 = 13 for x.",
        "Solve 7y - 4 = 31 for y.",
        "Find x: x/2 = 3/4",
        "Solve for x: 2(x + 1) = 2x + 2",
        "Solve for x: x + 1 = x + 2",
        "Let u be 2 + 3. Solve u = 4*p - 7 for p.",
    )
    declined = ("Write a poem about rivers.", "Solve x^2 = 4 for x.", "")
    answers = (
        (
            "Solve 2x + 3 = 13 for x.",
            "Subtract 3 from both sides: 2x = 10.\n\nDivide by 2: x = 5.\n\nThe solution is x = 5.",
        ),
        ("Solve 7y - 4 = 31 for y.", "1. 7y = 35\n2. y = 5\n"),
        ("Find x: x/2 = 3/4", "$$x = \\frac{3}{2}$$"),
    )

    @pytest.fixture
    def task(self) -> LinearEquationTask:
        return LinearEquationTask()
