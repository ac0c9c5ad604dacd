"""Every task we ship keeps the task contract."""

import pytest

from stepcache.tasks.json_answer import JsonAnswerTask
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
