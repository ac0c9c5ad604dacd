"""One outcome for a notebook, a Markdown cell and a rich console."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from stepcache._counts import count
from stepcache._render._diff import changes
from stepcache._render._words import ORIGINS, ROUTES, STATUSES, origins_of
from stepcache._types import Outcome, Step, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["css", "outcome_html", "outcome_markdown", "outcome_rich"]

_LONGEST = 20_000
"""Characters of one step that are shown; a notebook keeps every output it shows."""

_RICH = {
    "reused": "green",
    "adapted": "blue",
    "patched": "dark_orange3",
    "generated": "medium_purple3",
    "solved": "dark_cyan",
}


@cache
def css() -> str:
    """The style sheet that all views share."""
    return files("stepcache._render").joinpath("steps.css").read_text(encoding="utf-8")


def outcome_html(outcome: Outcome) -> str:
    """The outcome as HTML: no script, no address, every text escaped."""
    family, meaning = ROUTES.get(outcome.route, ("stored", ""))
    earlier = _earlier(outcome)
    parts = [
        f'<div class="stepcache"><style>{css()}</style>',
        f'<div class="sc-head"><span class="sc-{family}"><span class="sc-tag" '
        f'title="{escape(meaning)}">{escape(outcome.route)}</span></span>',
        f'<span class="sc-reason">{escape(outcome.reason)}</span></div>',
        f'<p class="sc-facts">{escape(_facts(outcome))}</p>',
        '<ol class="sc-steps">',
        *(_step_html(*each, earlier) for each in _shown(outcome)),
        "</ol>",
    ]
    if outcome.trace.events:
        parts.append(
            "<details><summary>How it was decided</summary>"
            f'<pre class="sc-text">{escape(outcome.trace.render())}</pre></details>'
        )
    return "".join([*parts, "</div>"])


def outcome_markdown(outcome: Outcome) -> str:
    """The outcome as Markdown, for viewers without HTML."""
    lines = [f"**{outcome.route}**: {_plain(outcome.reason)}", "", f"*{_facts(outcome)}*"]
    for step, origin, verdict in _shown(outcome):
        # A fence longer than any run of backticks in the text cannot be closed by it.
        fence = "`" * max(3, 1 + _longest_run(step.text))
        told = _verdict_text(verdict)
        lines += ["", f"{origin}{f', {_plain(told)}' if told else ''}", ""]
        lines += [fence, _cut(step.text).strip("\n"), fence]
    return "\n".join(lines)


def outcome_rich(outcome: Outcome) -> RenderableType:
    """The outcome for ``rich.print``."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    family, _ = ROUTES.get(outcome.route, ("stored", ""))
    head = Text.assemble((outcome.route, f"bold {_RICH.get(family, '')}".strip()), " ")
    head.append(outcome.reason)
    table = Table.grid(padding=(0, 1))
    for step, origin, verdict in _shown(outcome):
        text = _cut(step.text).strip("\n")
        table.add_row(
            Text(f"▌{origin}", style=_RICH.get(origin, "")),
            Text(text),
            Text(_verdict_text(verdict), style="dim"),
        )
    return Group(head, Text(_facts(outcome), style="dim"), table)


def _shown(outcome: Outcome) -> Iterator[tuple[Step, str, Verdict | None]]:
    steps = outcome.steps or ((Step(index=0, text=outcome.text),) if outcome.text else ())
    told: Sequence[str] = outcome.origins
    if len(told) != len(steps):
        told = origins_of(outcome.route, [step.text for step in steps])
    verdicts: Sequence[Verdict | None] = outcome.verdicts
    if len(verdicts) != len(steps):
        verdicts = (None,) * len(steps)
    for step, origin, verdict in zip(steps, told, verdicts):
        if step.text.strip():  # blank steps are how texts are joined, nothing to look at
            yield step, origin, verdict


def _earlier(outcome: Outcome) -> Sequence[Step]:
    """The steps this answer was made from, where the outcome knows them."""
    for candidate in outcome.candidates:
        if candidate.action == outcome.route:
            return candidate.entry.steps
    return ()


def _step_html(step: Step, origin: str, verdict: Verdict | None, earlier: Sequence[Step]) -> str:
    told = _verdict_text(verdict)
    failed = " sc-fail" if verdict is not None and verdict.status.value == "fail" else ""
    return (
        f'<li class="sc-step sc-{origin}"><div class="sc-line">'
        f'<span class="sc-tag" title="{escape(ORIGINS.get(origin, ""))}">{escape(origin)}</span>'
        f'<span class="sc-verdict{failed}">{escape(told)}</span></div>'
        f'<pre class="sc-text">{_marked(step, origin, earlier)}</pre></li>'
    )


def _marked(step: Step, origin: str, earlier: Sequence[Step]) -> str:
    """The step's text, with what changed against the earlier step of the same place."""
    text = _cut(step.text).strip("\n")
    if origin not in ("adapted", "patched") or step.index >= len(earlier):
        return escape(text)
    tags = {"old": "<del>{}</del>", "new": "<ins>{}</ins>", "same": "{}"}
    old = _cut(earlier[step.index].text).strip("\n")
    return "".join(tags[kind].format(escape(piece)) for kind, piece in changes(old, text))


def _facts(outcome: Outcome) -> str:
    told = [
        *([f"{count(outcome.reused_steps, 'step')} reused"] if outcome.reused_steps else []),
        *([f"{count(outcome.patched_steps, 'step')} made anew"] if outcome.patched_steps else []),
        f"{count(outcome.spent.tokens, 'token')} spent in {count(outcome.spent.calls, 'call')}",
        f"{count(outcome.avoided.tokens, 'token')} avoided",
    ]
    if outcome.entry_id is not None:
        told.append(f"entry {outcome.entry_id}")
    return " · ".join(told)


def _verdict_text(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    sign, word = STATUSES[verdict.status.value]
    return f"{sign} {word}{f': {verdict.reason}' if verdict.reason else f' ({verdict.code})'}"


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n[{count(len(text) - _LONGEST, 'more character')}]"


def _plain(text: str) -> str:
    """Text in which Markdown and HTML mean nothing."""
    for sign in "\\`*_{}[]<>#|~$":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _longest_run(text: str) -> int:
    longest = run = 0
    for sign in text:
        run = run + 1 if sign == "`" else 0
        longest = max(longest, run)
    return longest
