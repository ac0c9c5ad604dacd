"""``stepcache inspect`` and ``explain``: why a request is a hit or a miss."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepcache._counts import count
from stepcache.cli._common import (
    UNREADABLE,
    AsJson,
    EngineName,
    NamespaceOption,
    ShowText,
    StoreName,
    ago,
    console,
    guarded,
    is_id,
    looked_into,
    print_json,
    resolved,
    safe,
    tracked,
)

if TYPE_CHECKING:
    from rich.console import Console

    from stepcache import StepCacheEngine
    from stepcache._types import Difference, Entry
    from stepcache.explain import Found, Inspection

__all__ = ["add_why_commands"]

_SCOPE = (
    "A scope is one model, endpoint, set of parameters, tools, system prompt, earlier turns and "
    "namespace; an answer never crosses from one to another. A request that misses although its "
    "words are stored was of another scope."
)
_EMPTY = (
    "The store holds nothing {where}, so every request misses. What is not kept: answers that are "
    "cut off, empty, refusals or errors, that fail their family's check, and calls that bypass."
)


def add_why_commands(app: typer.Typer) -> None:
    """Give the application these two."""
    app.command("inspect")(_inspect)
    app.command("explain")(_explain)


def _inspect(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ENTRY|PROMPT", help="An entry's id or its beginning, a prompt, or -."
        ),
    ],
    store: StoreName = None,
    namespace: NamespaceOption = None,
    scope: Annotated[
        str | None, typer.Option(metavar="HASH", help="Only scopes whose hash begins like this.")
    ] = None,
    scopes: Annotated[int, typer.Option(min=1, max=100, help="Scopes to look into.")] = 3,
    engine: EngineName = None,
    show_text: ShowText = False,
    as_json: AsJson = False,
) -> None:
    """Tell why a request is a hit or a miss: candidates, differences, verdicts, the decision.

    A prompt is looked up in the scopes whose entries come nearest to it; nothing is asked of a
    model, kept or counted.
    """
    from stepcache.explain import entries_of, inspect_prompt

    if what == "-":
        what = sys.stdin.read()
    with looked_into("inspect", store, engine) as looking:
        entry = resolved(entries_of(looking.store), what)
        if entry is not None:
            _entry(looking, entry, show_text=show_text, as_json=as_json)
            return
        found = inspect_prompt(
            looking,
            what,
            entries=tracked(entries_of(looking.store), "reading"),
            namespace=namespace,
            scope=scope,
            limit=scopes,
        )
        if as_json:
            print_json({"scopes": [_found_facts(f, show_text=show_text) for f in found]})
            return
        screen = console()
        if is_id(what):
            _say(screen, f"No entry's id begins with {what}, so it is taken for a prompt.")
        if not found:
            narrowed = namespace is not None or scope is not None
            _say(screen, _EMPTY.format(where="of that kind" if narrowed else "yet"))
            if unreadable := getattr(looking.store, "unreadable", 0):
                _say(screen, f"{count(unreadable, 'record')} cannot be read here: {UNREADABLE}.")
        _print_scopes(screen, found, show_text=show_text)
        if found:
            _say(screen, f"\n{_SCOPE}")
            if engine is None:
                _say(screen, "The default tasks and embedder decide here; --engine names others.")
            if not show_text:
                _say(screen, "--show-text shows the stored prompts and answers.")


def _explain(
    prompt_a: Annotated[str, typer.Argument(metavar="PROMPT_A", help="Asked and answered first.")],
    prompt_b: Annotated[str, typer.Argument(metavar="PROMPT_B", help="Asked then.")],
    answer: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The answer to A; left out, one that fits stands in."),
    ] = None,
    engine: EngineName = None,
    as_json: AsJson = False,
) -> None:
    """Tell whether B would be served from the answer to A, by which route, and why.

    No model is asked, and no store is touched.
    """
    from stepcache.cli._common import named_engine
    from stepcache.explain import explain

    with guarded("explain"):
        told = explain(named_engine(engine), prompt_a, answer, prompt_b)
    if as_json:
        print_json(told.as_dict())
        return
    screen = console()
    if not told.kept:
        _say(screen, f"The answer to A is not kept: {safe(told.not_kept)}.")
    _print_inspection(screen, told.inspection, show_text=True)
    if told.stand_in:
        _say(screen, "No answer to A was given, so one that fits stood in: see --answer.")


def _entry(engine: StepCacheEngine, entry: Entry, *, show_text: bool, as_json: bool) -> None:
    from stepcache.explain import entry_facts, facts, inspect_entry

    before = inspect_entry(engine, entry)
    if as_json:
        told = {
            **entry_facts(entry, show_text=show_text),
            "before": facts(before, show_text=show_text),
        }
        print_json(told)
        return
    screen = console()
    told = entry_facts(entry, show_text=show_text)
    told["created"], told["expires"] = f"{ago(entry.created)} ago", ago(entry.expires)
    told["namespace"] = told["namespace"] or "default"
    told["task"] = told["task"] or "none: served to byte-equal requests only"
    for name, value in told.items():
        if name not in ("prompt", "answer", "cost"):
            _say(screen, f"{name.replace('_', ' '):13} {safe(_plain(value))}")
    if show_text:
        _say(screen, f"\nprompt\n{safe(entry.prompt)}\n\nanswer\n{safe(entry.text)}")
    _say(
        screen,
        "\nIts request before this answer was kept, were it asked of the store as it is now:",
    )
    _print_inspection(screen, before, show_text=show_text)
    if not show_text:
        _say(screen, "--show-text shows the stored prompts and answers.")


def _print_scopes(screen: Console, found: Sequence[Found], *, show_text: bool) -> None:
    """The first in full, and of the others those that say more than "nothing"."""
    mute = 0
    for number, one in enumerate(found):
        if number and one.now.route == "miss":
            mute += 1
            continue
        if number:
            _say(screen, "")
        _print_found(screen, one, show_text=show_text)
    if mute:
        _say(screen, f"\nMiss in {mute} more of the scopes that come nearest.")


def _print_found(screen: Console, found: Found, *, show_text: bool) -> None:
    namespace = f"namespace #{found.namespace[:8]}" if found.namespace else "default namespace"
    _say(
        screen,
        f"Scope {found.scope[:8]}: {count(found.entries, 'entry', 'entries')}, "
        f"model {found.model or 'not told'}, {namespace}",
        style="bold",
    )
    _print_inspection(screen, found.now, show_text=show_text)
    shown = found.now
    if found.before is not None and found.now.source is not None:
        kept = found.now.source
        _say(screen, f"It was kept {ago(kept.created)} ago as entry {kept.id}. Before that:")
        _print_inspection(screen, found.before, show_text=show_text)
        shown = found.before
    if not shown.served and not shown.candidates:
        if found.nearest is None:
            _say(screen, "The scope holds no other entry that has much in common with it.")
            return
        _say(screen, f"Nearest in wording is entry {found.nearest.id[:8]}; it differs in:")
        screen.print(_differences(found.differences, show_text=show_text))
        if show_text:
            _say(screen, f"stored prompt: {safe(found.nearest.prompt)}")


def _print_inspection(screen: Console, seen: Inspection, *, show_text: bool) -> None:
    from stepcache.explain import headline, why

    _say(screen, headline(seen))
    for line in why(seen, show_text=show_text):
        _say(screen, f"- {safe(line)}")
    for candidate in seen.candidates:
        similar = f", similarity {candidate.similarity:.2f}" if candidate.similarity else ""
        kept = ago(candidate.entry.created)
        if candidate.differences:
            _say(
                screen,
                f"Entry {candidate.entry.id[:8]}, kept {kept} ago{similar}:",
            )
            screen.print(_differences(candidate.differences, show_text=show_text))
        if show_text:
            _say(screen, f"stored prompt: {safe(candidate.entry.prompt)}")
        for number, verdict in enumerate(candidate.verdicts, start=1):
            reason = f": {verdict.reason}" if show_text and verdict.reason else ""
            _say(screen, f"step {number}: {verdict.status.value} ({verdict.code}){safe(reason)}")
    if seen.served and show_text:
        _say(screen, f"answer:\n{safe(seen.outcome.text)}")


def _differences(differences: Sequence[Difference], *, show_text: bool) -> Any:
    from rich.table import Table
    from rich.text import Text

    from stepcache.explain import HIDDEN

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("kind", "stored", "asked", "accounted for by"):
        table.add_column(name)
    for one in differences[:20]:
        stored = one.old if show_text or not one.old else HIDDEN
        cells = (one.kind, stored, one.new, one.owner or "nothing")
        table.add_row(*(Text(safe(cell)) for cell in cells))
    return table


def _found_facts(found: Found, *, show_text: bool) -> dict[str, Any]:
    from stepcache.explain import change_facts, facts

    nearest = None
    if found.nearest is not None:
        changes = [change_facts(d, show_text=show_text) for d in found.differences]
        nearest = {"entry_id": found.nearest.id, "differences": changes}
    return {
        "scope": found.scope,
        "entries": found.entries,
        "model": found.model,
        "namespace": found.namespace,
        "now": facts(found.now, show_text=show_text),
        "before": facts(found.before, show_text=show_text) if found.before is not None else None,
        "nearest": nearest,
    }


def _say(screen: Console, text: str, style: str | None = None) -> None:
    """One paragraph; the terminal wraps it, and a file has it on one line."""
    screen.print(text, style=style, soft_wrap=True)


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
