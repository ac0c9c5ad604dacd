"""Every task we ship keeps the task contract."""

import pytest

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
