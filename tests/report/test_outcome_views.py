"""An outcome as a notebook, a Markdown cell and a console show it."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser

import pytest
from rich.console import Console

from stepcache import Message, ModelCall, Outcome, Request, Step, StepCacheEngine, Verdict
from stepcache._render._diff import changes
from stepcache._render._words import ORIGINS, ROUTES
from stepcache.testing import ScriptedBackend

MATH = ("Solve 2x + 3 = 13 for x.", "Solve 4x + 3 = 23 for x.")
ROME = (
    "Describe Rome as JSON with keys name, country.",
    "Describe Rome as JSON with keys name, country, river.",
)
ANSWERS = {
    MATH[0]: "2x + 3 = 13\n\n2x = 10\n\nx = 5",
    ROME[0]: 'Here it is:\n\n{"name": "Rome", "country": "Italy"}',
}


def _answer(call: ModelCall) -> str:
    return '{"river": "Tiber"}' if call.purpose == "patch" else ANSWERS[call.messages[-1].text]


def outcomes(*script: str) -> list[Outcome]:
    """What a real engine says of a script of requests."""
    engine = StepCacheEngine(backend=ScriptedBackend(_answer))
    return [engine.resolve(Request(messages=(Message(role="user", text=t),))) for t in script]


class _Read(HTMLParser):
    """Texts by the class of the element they stand in, and every element and attribute."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.classes: list[str] = []
        self.text = ""
        self.marks: dict[str, list[str]] = {"del": [], "ins": []}
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside.append(tag)
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.classes += (dict(attrs).get("class") or "").split()

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag, f"{tag} is not balanced"

    def handle_data(self, data: str) -> None:
        if "style" not in self._inside:
            self.text += data
        if self._inside and self._inside[-1] in self.marks:
            self.marks[self._inside[-1]].append(data)


def test_steps_stand_in_the_colours_of_their_origin() -> None:
    """Each step's origin, verdict and text are told, and what it cost."""
    miss, adapted = outcomes(*MATH)
    first, second = _Read(miss._repr_html_()), _Read(adapted._repr_html_())
    assert first.classes.count("sc-step") == 3
    assert "sc-generated" in first.classes
    assert "sc-adapted" in second.classes
    assert "✓ verified" in second.text
    for word in ("adapt", "x = 5", "0 tokens spent in 0 calls", "avoided"):
        assert word in second.text


def test_what_changed_in_a_step_is_marked() -> None:
    """An adapted step shows the earlier step's words struck out and its own marked."""
    read = _Read(outcomes(*MATH)[1]._repr_html_())
    assert "13" in read.marks["del"]
    assert "23" in read.marks["ins"]


def test_a_patched_step_is_told_from_a_reused_one() -> None:
    """The sentence before the object is reused; the object is patched."""
    _, patched = outcomes(*ROME)
    assert patched.route == "patch"
    classes = _Read(patched._repr_html_()).classes
    steps = [c for c in classes if c in ("sc-reused", "sc-patched")]
    assert steps == ["sc-patched", "sc-reused", "sc-patched"]  # the route's badge, then the steps


@pytest.mark.parametrize("route", sorted({"exact", "reuse", "adapt", "patch", "skip", "miss"}))
def test_an_outcome_that_tells_no_origins_is_shown_by_its_route(route: str) -> None:
    """Hosts and tests build outcomes by hand; they are shown all the same."""
    outcome = Outcome(text="a", route=route, reason="why", steps=(Step(index=0, text="a"),))  # type: ignore[arg-type]
    assert f"sc-{ROUTES[route][0]}" in _Read(outcome._repr_html_()).classes
    assert ROUTES[route][0] in ORIGINS


HOSTILE = "<img src=x onerror=alert(1)></pre></div><script>alert(2)</script>&lt;\"'`| **b** [a](b)"


def test_texts_are_escaped_in_html() -> None:
    """Nothing that a prompt or a model wrote becomes an element or an attribute."""
    step = Step(index=0, text=HOSTILE)
    outcome = Outcome(
        text=HOSTILE,
        route="miss",
        reason=HOSTILE,
        steps=(step,),
        verdicts=(Verdict.failed("code", HOSTILE),),
        origins=("generated",),
        entry_id=HOSTILE,
    )
    read = _Read(outcome._repr_html_())
    assert "script" not in read.names
    assert "img" not in read.names
    assert read.attributes <= {"class", "title"}
    assert read.text.count(HOSTILE) == 4


def test_texts_are_fenced_in_markdown() -> None:
    """A fence longer than any in the text holds it, and a reason is no Markdown."""
    text = "````\n<b>no</b>\n```"
    outcome = Outcome(text=text, route="miss", reason=HOSTILE, steps=(Step(index=0, text=text),))
    told = outcome._repr_markdown_()
    assert f"`````\n{text}\n`````" in told
    assert "<script" not in told.replace("\\<", "")


def test_a_console_shows_texts_as_they_are() -> None:
    """Square brackets are no markup of the console's."""
    step = Step(index=0, text="[bold]x[/bold] = [1]")
    outcome = Outcome(text=step.text, route="miss", reason="[red]why", steps=(step,))
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(outcome)
        told = console.export_text()
    for text in (step.text, "[red]why", "generated", "miss"):
        assert text in told


def test_the_pieces_of_a_difference_join_to_the_new_text() -> None:
    """Nothing of the new text is lost, whatever the old one was."""
    pairs = [("", "a b"), ("a b", ""), ("x = 5\n", "y = 5"), ("a" * 9000, "b " * 9000)]
    for old, new in pairs:
        assert "".join(text for kind, text in changes(old, new) if kind != "old") == new
    assert list(changes("x = 2 a.", "x = 3 b.")) == [
        ("same", "x = "),
        ("old", "2 a"),
        ("new", "3 b"),
        ("same", "."),
    ]


def test_looking_loads_nothing_until_somebody_looks() -> None:
    """``import stepcache`` loads neither the views nor a console."""
    program = (
        "import sys, stepcache; print([m for m in sys.modules if '_render' in m or m == 'rich'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
