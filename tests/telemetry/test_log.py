"""The log line: the decision as ``key=value``, one line whatever the texts hold."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest

from stepcache import ConfigurationError, StepCacheEngine
from stepcache.stores import MemoryStore
from stepcache.telemetry import LogListener, PriceTable
from stepcache.testing import FaultyStore, ScriptedBackend

_PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)(?: |$)')


def pairs(line: str) -> dict[str, str]:
    """A line read back; every sign of it belongs to a pair."""
    assert "".join(found[0] for found in _PAIR.finditer(line)) == line
    return {
        name: json.loads(value) if value.startswith('"') else value
        for name, value in _PAIR.findall(line)
    }


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="stepcache.requests")
    return caplog


def test_one_line_a_request(story: Any, face: Any, lines: pytest.LogCaptureFixture) -> None:
    """Route, reason code, steps by origin, tokens: as the outcome has them."""
    outcomes = story.play(
        face, LogListener(price=PriceTable({}, default={"input": 1, "output": 2}))
    )
    assert len(lines.messages) == len(outcomes)
    for outcome, line, record in zip(outcomes, lines.messages, lines.records):
        told = pairs(line)
        assert (told["route"], told["code"], told["face"]) == (
            outcome.route,
            outcome.code,
            face.name,
        )
        assert int(told["spent_tokens"]) == outcome.spent.tokens
        assert int(told["avoided_tokens"]) == outcome.avoided.tokens
        assert float(told["avoided_money"]) >= 0
        assert sum(int(told.get(o, 0)) for o in set(outcome.origins)) == int(told["steps"])
        assert told["entry"] == outcome.entry_id
        assert record.levelno == logging.INFO
        assert record.stepcache["route"] == outcome.route  # type: ignore[attr-defined]


def test_a_patch_reads_as_the_decision(story: Any, lines: pytest.LogCaptureFixture) -> None:
    """The line of a patched answer, its times and names left out."""
    story.sync(LogListener())
    line = lines.messages[story.routes.index("patch")]
    assert line.startswith(
        "route=patch code=missing-keys task=json face=resolve steps=1 patched=1 candidates="
    )
    assert " calls=1 spent_tokens=110 avoided_tokens=0 seconds=" in line


def test_nothing_is_quoted(story: Any, face: Any, lines: pytest.LogCaptureFixture) -> None:
    """No word of a request, an answer, an error or a namespace, in the line or beside it."""
    listener = LogListener()
    story.play(face, listener)
    story.fail(face, listener)
    told = "".join(f"{r.getMessage()} {r.stepcache}" for r in lines.records)  # type: ignore[attr-defined]
    assert story.secrets_in(told) == []


def test_texts_cannot_begin_a_line_or_a_pair(story: Any, lines: pytest.LogCaptureFixture) -> None:
    """Asked for, they are quoted: whatever a prompt holds, a line stays one line."""
    evil = 'Name a river.\nroute=exact code="mine" \u2028 \\" x=1'
    engine = StepCacheEngine(
        backend=ScriptedBackend(lambda call: evil), listeners=[LogListener(texts=True)]
    )
    engine.resolve(story.ask(evil))
    (line,) = lines.messages
    assert len(line.splitlines()) == 1
    told = pairs(line)
    assert (told["prompt"], told["answer"], told["route"]) == (evil, evil, "miss")
    assert told["reason"] == "nothing stored answers it"


def test_faults_and_errors_are_warnings(
    story: Any, face: Any, lines: pytest.LogCaptureFixture
) -> None:
    """One that was survived says which port; one that went through says what it was."""
    engine = StepCacheEngine(
        store=FaultyStore(MemoryStore()),
        backend=ScriptedBackend(story.answer),
        listeners=[LogListener(level=logging.DEBUG)],
    )
    face.ask(engine, story.ask(story.texts[0]))
    story.fail(face, LogListener())
    survived, failed = lines.records
    assert survived.levelno == failed.levelno == logging.WARNING
    assert "store:" in pairs(survived.getMessage())["faults"]
    assert failed.getMessage().startswith(f"error=Broken face={face.name} seconds=")


def test_a_logger_of_ones_own(story: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Any logger and level; below the logger's own nothing is put together."""
    mine = logging.getLogger("mine.cache")
    with caplog.at_level(logging.WARNING, logger="mine.cache"):
        story.sync(LogListener(mine))
        assert caplog.messages == []
        story.sync(LogListener(mine, level=logging.ERROR))
    assert {record.name for record in caplog.records} == {"mine.cache"}
    with pytest.raises(ConfigurationError, match=r"pass a logging\.Logger"):
        LogListener("mine")  # type: ignore[arg-type]
