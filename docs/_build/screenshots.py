"""Makes the pictures in docs/images from a real run: ``make screenshots``.

A local model answers; nothing is drawn by hand. Needs ``stepcache[test]`` and Chromium.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from stepcache import Message, Outcome, Request, StepCacheEngine
from stepcache.backends import OpenAICompatibleBackend
from stepcache.bench._workload import workload
from stepcache.demo import MODELS, LocalModelServer, fetch
from stepcache.report import Report, read_source, write_page
from stepcache.telemetry import TraceLog

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
RECORD = ROOT / "benchmarks" / "results" / "paper" / "results.json"
"""The benchmark's published record: what the report page is shown for, once it is there."""
WORKLOAD = 120
"""Requests of the benchmark's paper split that are played for the report page."""
NOTEBOOK = ROOT / "notebooks" / "01_quickstart.ipynb"


def main() -> None:
    """Make every picture, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), default="qwen2.5-coder-0.5b")
    parser.add_argument("--demo", type=Path, help="a record of stepcache demo --json")
    parser.add_argument("--source", type=Path, help="what to report, in place of a new run")
    parser.add_argument("--only", choices=["report", "notebook", "demo"], action="append")
    options = parser.parse_args()
    wanted = options.only or ["report", "notebook", "demo"]
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        scratch = Path(folder)
        if "report" in wanted:
            source = options.source or (RECORD if RECORD.is_file() else None)
            source = source or played(options.model, scratch / "trace.jsonl")
            report_pictures(chromium, read_source(str(source)), scratch)
        if "notebook" in wanted:
            notebook_picture(chromium, scratch)
        if "demo" in wanted:
            demo_picture(chromium, options.demo or demonstrated(options.model, scratch), scratch)


# --- real runs -----------------------------------------------------------------------------------


@contextmanager
def engine(model: str, **options: Any) -> Iterator[StepCacheEngine]:
    """An engine in front of a local model."""
    weights = MODELS[model]
    with LocalModelServer(fetch(weights), name=weights.name) as server:
        params = {"temperature": 0, "seed": 0, "max_tokens": 200}
        backend = OpenAICompatibleBackend(
            server.base_url, weights.name, params=params, prefill=True
        )
        with closing(StepCacheEngine(backend=backend, **options)) as running:
            yield running


def ask(running: StepCacheEngine, text: str) -> Outcome:
    """Ask one request."""
    return running.resolve(Request(messages=(Message(role="user", text=text),)))


def played(model: str, log: Path) -> Path:
    """A trace log of the benchmark's first requests."""
    with engine(model, listeners=[TraceLog(log, texts=True)]) as running:
        for item in workload(42, ("paper",))[:WORKLOAD]:
            ask(running, item.prompt)
    return log


def demonstrated(model: str, scratch: Path) -> Path:
    """The record of the demonstration, played now."""
    from rich.console import Console

    from stepcache.demo._main import Options, run

    record = scratch / "demo.json"
    run(Options(model=model, json_file=record), Console())
    return record


# --- pictures ------------------------------------------------------------------------------------


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium that reaches no network."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    flags = ["--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path, chromium_sandbox=False, args=flags
        )
        yield running
        running.close()


@contextmanager
def tab(chromium: Any, page: Path, height: int = 900, **options: Any) -> Iterator[Any]:
    """A page in a tab of its own, with nothing but files in reach."""
    context = chromium.new_context(viewport={"width": 1280, "height": height}, **options)
    context.route(
        "**/*",
        lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort(),
    )
    opened = context.new_page()
    opened.goto(page.as_uri())
    yield opened
    context.close()


def report_pictures(chromium: Any, report: Report, scratch: Path) -> None:
    """The report page, light and dark, and a request that is open in it."""
    page = scratch / "report.html"
    write_page(report, page)
    row = next(
        row.number
        for row in report.rows
        if row.route == "patch" and row.lane in ("", "stepcache") and row.before
    )
    for scheme in ("light", "dark"):
        # Tall enough for the first requests of the table below the figures.
        with tab(chromium, page, height=1240, color_scheme=scheme) as shown:
            shown.screenshot(path=IMAGES / f"report-{scheme}.png")
            if scheme == "light":
                shown.goto(f"{page.as_uri()}#request-{row}")
                shown.reload()
                shown.locator("#detail").screenshot(path=IMAGES / "report-request.png")


def notebook_picture(chromium: Any, scratch: Path) -> None:
    """Two cells of the first notebook, as it was executed: an answer patched, and one adapted."""
    import nbformat
    from nbconvert import HTMLExporter

    def shows(cell: Any, route: str) -> bool:
        outputs = cell.get("outputs", ())
        return any(
            output.get("data", {}).get("text/markdown", "").startswith(f"**{route}**")
            for output in outputs
        )

    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    chosen = [next(c for c in cells if shows(c, route)) for route in ("patch", "adapt")]
    html, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=chosen))
    page = scratch / "notebook.html"
    page.write_text(html, encoding="utf-8")
    with tab(chromium, page) as shown:
        # The cells alone: a page is never lower than the window.
        shown.locator("main").screenshot(path=IMAGES / "notebook.png")


def demo_picture(chromium: Any, record: Path, scratch: Path) -> None:
    """The demonstration as a terminal shows it."""
    from rich.console import Console

    from stepcache.demo._report import header, row, summarise, summary_table

    exchanges = [exchange_from(each) for each in json.loads(record.read_text())["requests"]]
    console = Console(record=True, width=160, file=(scratch / "demo.txt").open("w"))
    console.print("$ make demo\n", style="bold")
    console.print(header())
    for exchange in exchanges:
        console.print(row(exchange))
    summary = summarise(exchanges)
    console.print(summary_table(summary))
    console.print(summary.verdict, style="green" if summary.passed else "bold red")
    console.file.close()
    drawing = console.export_svg(title="StepCache", font_aspect_ratio=0.602)
    page = scratch / "demo.html"
    page.write_text(f"<body style='margin: 0; width: 1280px'>{drawing}</body>", encoding="utf-8")
    with tab(chromium, page) as shown:
        shown.locator("svg").first.screenshot(path=IMAGES / "demo.png")


def exchange_from(data: dict[str, Any]) -> Any:
    """An exchange of the demonstration, read back from its record."""
    from stepcache.demo._run import Answer, Exchange
    from stepcache.demo._script import SCRIPT

    item = next(
        item for item in SCRIPT if item.prompt == data["prompt"] and item.kind == data["kind"]
    )
    return Exchange(
        number=data["number"],
        item=item,
        bare=Answer(**data["bare"]),
        cached=Answer(**data["cached"]),
    )


if __name__ == "__main__":
    main()
