"""A report as one HTML file that asks the network for nothing.

What the page shows was written by users and models. It travels as JSON in a block that no browser
runs, with every sign escaped that could end the block; the script puts it into the page as text
and never as markup; and the page's own policy lets nothing run or load that is not in the file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from stepcache._render._outcome import css
from stepcache._render._words import ORIGINS, ROUTES, STATUSES
from stepcache.report._rows import Report

__all__ = ["page", "write_page"]

_SCRIPTS = ("data.js", "diff.js", "overview.js", "table.js", "detail.js", "main.js")


def page(report: Report, *, made: float | None = None) -> str:
    """The page as text.

    Args:
        made: When it is made, seconds since the epoch; None takes now.
    """
    style, script = _style(), _script()
    return Template(_asset("page.html")).substitute(
        title=escape(f"StepCache report: {report.source}"),
        policy=(
            f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
            f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
        ),
        style=style,
        script=script,
        data=_data(report, time.time() if made is None else made),
    )


def write_page(report: Report, path: Path) -> int:
    """Write the page, readable by its owner only, as it may hold prompts; returns its bytes."""
    data = page(report).encode("utf-8", "replace")
    # A page that was there keeps its mode, so it is taken away first.
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    return len(data)


def _data(report: Report, made: float) -> str:
    content: dict[str, Any] = {
        "kind": report.kind,
        "source": report.source,
        "made": made,
        "texts": report.texts,
        "leftOut": report.left_out,
        "remarks": report.remarks,
        "facts": report.facts,
        "words": {"routes": ROUTES, "origins": ORIGINS, "statuses": STATUSES},
        "rows": [row.as_dict() for row in report.rows],
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    # Inside strings only, where JSON reads the escapes back: no tag, comment or entity can begin.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _style() -> str:
    return css() + _asset("page.css")


@cache
def _script() -> str:
    return "(() => {\n'use strict';\n" + "".join(map(_asset, _SCRIPTS)) + "})();\n"


@cache
def _asset(name: str) -> str:
    return files("stepcache.report").joinpath("_assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The text's digest as a content security policy writes it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
