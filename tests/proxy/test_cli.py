"""``stepcache serve`` as a person starts it: a process of its own, ended by a signal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepcache.testing.endpoint import ScriptedEndpoint

from .conftest import http

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Name a river."}]}
COMMAND = [sys.executable, "-m", "stepcache.cli", "serve"]


class Served:
    """The command, running."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"answers at (http://\S+/v1)", line)
        assert found, line
        self.url = found[1]

    def end(self, how: int = signal.SIGTERM) -> str:
        """Ask it to end; what it said."""
        self.process.send_signal(how)
        assert self.process.stderr is not None
        with self.process.stderr as stderr:
            said = stderr.read()
        assert self.process.wait(60) in (0, -how, 128 + how), said
        return said


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """An endpoint that waits to be let go, when it is told to."""
    with ScriptedEndpoint(lambda request: "The Elbe.") as running:
        yield running


def test_it_serves_keeps_and_ends(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """Answers outlive the process; an answer under way at the end is given to its end."""
    store = tmp_path / "answers.db"
    named = ("--upstream", endpoint.url, "--port", "0", "--store", f"sqlite:///{store}")
    arguments = (*named, "--metrics")
    first = Served(*arguments)
    answer = http.post(f"{first.url}/chat/completions", json=CHAT)
    assert answer.headers["x-stepcache-route"] == "miss"

    asked, go_on = threading.Event(), threading.Event()

    def slow(request: Any) -> str:
        asked.set()
        go_on.wait(60)
        return "The Rhine."

    endpoint.answer = slow
    answers: list[httpx.Response] = []
    other = {**CHAT, "messages": [{"role": "user", "content": "Name another river."}]}
    client = threading.Thread(
        target=lambda: answers.append(
            http.post(f"{first.url}/chat/completions", json=other, timeout=120)
        )
    )
    client.start()
    assert asked.wait(60)
    first.process.send_signal(signal.SIGTERM)
    go_on.set()
    client.join(60)
    assert answers[0].json()["choices"][0]["message"]["content"] == "The Rhine."
    assert "Traceback" not in first.end()

    second = Served(*arguments)
    for body in (CHAT, other):
        answer = http.post(f"{second.url}/chat/completions", json=body)
        assert answer.headers["x-stepcache-route"] == "exact"
    stats = http.get(second.url.removesuffix("v1") + "stepcache/stats").json()
    assert "river" not in json.dumps(stats)
    assert stats["entries"] == 2
    told = http.get(second.url.removesuffix("v1") + "stepcache/metrics").text
    assert "stepcache_requests_total{" in told
    assert 'route="exact"' in told
    second.end(signal.SIGINT)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--upstream", "localhost:8000"), "http://127.0.0.1:8000/v1"),
        (("--upstream", "http://user:secret@h/v1"), "Authorization"),
        (("--upstream", "http://h/v1", "--store", "redis://h"), "sqlite:///path"),
        (("--upstream", "http://h/v1", "--embedder", "magic"), "lexical, onnx"),
        (("--upstream", "http://h/v1", "--ttl", "-1"), "ttl"),
        (("--upstream", "http://h/v1", "--host", "203.0.113.7"), "nobody can listen"),
        ((), "--upstream"),
    ],
)
def test_what_cannot_work_is_said_in_a_line(arguments: tuple[str, ...], said: str) -> None:
    """Status 2, the value and the fix, no traceback, no secret."""
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_it_says_what_to_install() -> None:
    """Without the packages, one line names the extra."""
    program = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = "
        "['stepcache', 'serve', '--upstream', 'http://h/v1']; "
        "from stepcache.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert 'pip install "stepcache[serve]"' in done.stderr
