"""The reference of commands, from what the commands say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["commands", "commands_as_markdown"]

NAME = "stepcache"


def commands(command: Any = None, path: str = NAME) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, groups before what is in them; hidden ones left out."""
    if command is None:
        from typer.main import get_command

        from stepcache.cli._app import app

        command = get_command(app)
    yield path, command
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        if not inner.hidden:
            yield from commands(inner, f"{path} {name}")


def commands_as_markdown() -> str:
    """One section a command: what it does, how it is called, its arguments and options."""
    return "\n\n".join(_section(path, command) for path, command in commands() if path != NAME)


def _section(path: str, command: Any) -> str:
    context = command.context_class(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = ["#" * (path.count(" ") + 1) + f" {path}", "", _plain(command.help or "")]
    lines += ["", "```text", usage, "```"]
    told = [record for p in command.params if (record := p.get_help_record(context)) is not None]
    if told:
        lines += ["", "| | |", "|---|---|"]
        lines += [f"| `{_cell(name)}` | {_cell(_plain(text))} |" for name, text in told]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Help text as Markdown that shows it as it is."""
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").strip()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
