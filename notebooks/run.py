"""Runs the notebooks from top to bottom: ``make notebooks``.

Each runs in a fresh kernel, in this folder, and must end without an error, without a word on
standard error, and without a path of this machine in what it shows. Executed copies go to the
folder of ``--out``; ``--write`` puts them in place of the sources, which is how outputs come to be
committed. What was executed is noted in a notebook's metadata, so that outputs of other code are
found out.

Needs ``stepcache[notebooks]``. The environment variable ``STEPCACHE_NOTEBOOK_MODEL`` names the
local model to ask: ``smollm2`` is quick and mostly wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

__all__ = ["NOTEBOOKS", "code_cells", "digest", "faults", "load", "main", "reads", "texts"]

FOLDER = Path(__file__).parent
NOTEBOOKS = tuple(sorted(path.stem for path in FOLDER.glob("*.ipynb")))
_CELL_SECONDS = 900
"""No cell computes that long: only one that hangs."""


def main() -> int:
    """Run what is named, or all; the status is 1 where one has a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NOTEBOOKS))
    parser.add_argument("--out", type=Path, help="a folder for the executed copies")
    parser.add_argument("--write", action="store_true", help="in place of the sources")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NOTEBOOKS))
    if unknown:
        parser.error(f"no notebook is called {', '.join(unknown)}: use {', '.join(NOTEBOOKS)}")
    bad = 0
    for name in options.names or NOTEBOOKS:
        missing = [read for read in reads(load(name)) if not (FOLDER / read).is_file()]
        if missing:
            print(f"{name}: left out, {', '.join(missing)} is not there", flush=True)
            continue
        begin = time.monotonic()
        notebook = executed(load(name))
        found = faults(notebook)
        print(f"{name}: {time.monotonic() - begin:.0f} s", *found, sep="\n  ", flush=True)
        bad += bool(found)
        for folder in (options.out, FOLDER if options.write and not found else None):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                nbformat.write(notebook, folder / f"{name}.ipynb")
    return min(bad, 1)


def load(name: str) -> Any:
    """A notebook as it is committed."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def executed(notebook: Any) -> Any:
    """The notebook with new outputs, up to its first error."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as settings:
        # A user's own start-up files of IPython have no say in what is shown.
        env = {**os.environ, "IPYTHONDIR": settings, "MPLCONFIGDIR": settings}
        NotebookClient(
            notebook,
            timeout=_CELL_SECONDS,
            kernel_name="python3",
            allow_errors=True,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(FOLDER)}},
        ).execute(env=env)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["stepcache"] = {"reads": reads(notebook), "executed": digest(notebook)}
    return notebook


def reads(notebook: Any) -> list[str]:
    """The files of the repository that a notebook shows, as paths from this folder."""
    return list(notebook.metadata.get("stepcache", {}).get("reads", ()))


def digest(notebook: Any) -> str:
    """Of the code and of the files it reads: other outputs are due where it changes."""
    hashed = hashlib.sha256()
    for cell in code_cells(notebook):
        hashed.update(hashlib.sha256(cell.source.encode()).digest())
    for name in reads(notebook):
        hashed.update(hashlib.sha256((FOLDER / name).read_bytes()).digest())
    return hashed.hexdigest()


def code_cells(notebook: Any) -> list[Any]:
    """The cells that are executed."""
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def faults(notebook: Any) -> list[str]:
    """What is wrong with an executed notebook, a line each; nothing where it is as it should be."""
    found = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        if cell.execution_count != number:
            found.append(f"cell {number} was not executed in order ({cell.execution_count})")
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"cell {number} ended in {output.ename}: {output.evalue}")
            if output.get("name") == "stderr":
                found.append(f"cell {number} wrote on standard error: {output.text.strip()}")
            paths = {place for text in texts(output) for place in _places() if place in text}
            found += [f"cell {number} shows a path of this machine: {path}" for path in paths]
    return found


def texts(output: Any) -> Iterator[str]:
    """What an output shows in words: printed, and in every form that a viewer may choose."""
    yield output.get("text", "")
    for kind, data in output.get("data", {}).items():
        if kind.startswith("text/"):
            yield data


def _places() -> set[str]:
    places = (FOLDER.parent, Path.home(), Path(sys.prefix), Path(tempfile.gettempdir()))
    return {f"{place}{os.sep}" for place in places if place != Path(place.anchor)}


if __name__ == "__main__":
    sys.exit(main())
