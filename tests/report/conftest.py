"""Sources as real engines, stores and benchmarks write them, and a real browser to look with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepcache import Message, ModelCall, Outcome, Request, StepCacheEngine
from stepcache.testing import ScriptedBackend

HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    "<!-- <script> ]]> \u2028 &lt;b&gt; {{7*7}} ${window.hacked = 3} javascript:window.hacked=4"
)
ROME = "Describe Rome as JSON with keys name, country."
SCRIPT = (
    "Solve 2x + 3 = 13 for x.",
    "Solve 2x + 3 = 13 for x.",
    "Solve 4x + 3 = 23 for x.",
    ROME,
    "Describe Rome as JSON with keys name, country, river.",
    "Describe Oslo as JSON with keys name, country.",
    HOSTILE,
)
_ANSWERS = {
    SCRIPT[0]: "2x + 3 = 13\n\n2x = 10\n\nx = 5",
    ROME: 'Here it is:\n\n{"name": "Rome", "country": "Italy"}',
    SCRIPT[5]: '{"name": "Oslo", "country": "Norway"}',
    HOSTILE: f"You wrote: {HOSTILE}",
}


def _answer(call: ModelCall) -> str:
    return '{"river": "Tiber"}' if call.purpose == "patch" else _ANSWERS[call.messages[-1].text]


def ask(engine: StepCacheEngine, text: str) -> Outcome:
    """Ask one request."""
    return engine.resolve(Request(messages=(Message(role="user", text=text),)))


def played(**options: Any) -> StepCacheEngine:
    """An engine that has answered the script."""
    engine = StepCacheEngine(backend=ScriptedBackend(_answer), **options)
    for text in SCRIPT:
        ask(engine, text)
    return engine


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store that a real engine has filled."""
    path = tmp_path_factory.mktemp("store") / "answers.db"
    engine = played(store=path)
    engine.close()
    return path


@pytest.fixture(scope="module", params=[True, False], ids=["texts", "no-texts"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace log that a real engine has written, with texts and without."""
    return write_log(tmp_path_factory.mktemp("log") / "trace.jsonl", texts=request.param)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one with texts."""
    return write_log(tmp_path_factory.mktemp("told") / "trace.jsonl", texts=True)


def write_log(path: Path, *, texts: bool) -> Path:
    """Play the script before a trace log; the last request ends in the model's own error."""
    from stepcache.telemetry import TraceLog

    listener = TraceLog(path, texts=texts)
    engine = played(listeners=[listener])
    with pytest.raises(KeyError):
        ask(engine, "A request the script has no answer for.")
    engine.close()
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; gone with its module, for its event loop would be in the way of others."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    system = next(filter(None, map(shutil.which, names)), None)
    with sync_api.sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
        if system is None and not own.is_file():
            pytest.skip("there is no Chromium: apt-get install chromium, or playwright install")
        flags = ["--disable-gpu", "--disable-background-networking", "--no-first-run"]
        running = playwright.chromium.launch(
            executable_path=system, chromium_sandbox=False, args=flags
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def hostile() -> str:
    """A text that would run, load or break something in a careless page."""
    return HOSTILE


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark's record with its journal: two modes, one of them a real engine."""
    return _record(tmp_path_factory.mktemp("bench"))


def _record(folder: Path) -> Path:
    from stepcache.bench._items import EquationDemand, Item, ObjectDemand
    from stepcache.bench._log import Exchange, Log
    from stepcache.bench._record import record_of, write_record

    engine = StepCacheEngine(backend=ScriptedBackend(_answer))
    items, exchanges = [], []
    for number, text in enumerate(SCRIPT[:6]):
        demand: EquationDemand | ObjectDemand
        if text.startswith("Solve"):
            left, right = text.split()[1:4:2], text.split()[5]
            demand = EquationDemand(variable="x", left=f"{left[0][0]}*x + 3", right=right)
        else:
            keys = tuple(text.rstrip(".").rpartition("keys ")[2].split(", "))
            demand = ObjectDemand(required=keys, topic_key="name", topic=text.split()[1])
        item = Item(
            id=f"1/paper/{number}",
            seed=1,
            split="paper",
            family="math" if text.startswith("Solve") else "json",
            group="wording",
            base="b",
            prompt=text,
            demand=demand,
        )
        items.append(item)
        told = ask(engine, text)
        for mode in ("bare", "stepcache"):
            bare = mode == "bare"
            tokens = (9, 8) if bare else (told.spent.prompt_tokens, told.spent.completion_tokens)
            called = bare or told.spent.calls
            call = _call(told.text, *tokens) if called else None
            exchanges.append(
                Exchange(
                    mode=mode,
                    item=item.id,
                    text=told.text,
                    route="miss" if bare else told.route,
                    seconds=1.0 if bare else 0.001 * (number + 1),
                    reason="" if bare else told.reason,
                    trace=() if bare else tuple(map(str, told.trace.events)),
                    calls=() if call is None else (call,),
                )
            )
    head = {"model": "scripted", "modes": ["bare", "stepcache"], "machine": {}}
    with Log(folder / "exchanges.jsonl", head) as log:
        for exchange in exchanges:
            log.add(exchange)
    write_record(folder / "results.json", record_of(head, items, exchanges))
    return folder / "results.json"


def _call(text: str, prompt: int, completion: int) -> Any:
    from stepcache.bench._recorder import Call

    return Call(
        digest="",
        purpose="answer",
        text=text,
        finish_reason="stop",
        prompt_tokens=prompt,
        completion_tokens=completion,
    )
