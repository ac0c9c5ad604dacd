"""The command line: ``stepcache demo``, ``stepcache version``. Needs ``stepcache[cli]``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``stepcache`` command."""
    try:
        from stepcache.cli._app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
            raise
        sys.exit(
            f"The stepcache command needs {error.name}, which is not installed: "
            'run pip install "stepcache[cli]"'
        )
    app(prog_name="stepcache")
