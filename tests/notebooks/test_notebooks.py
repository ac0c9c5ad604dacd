"""Every notebook runs to its end, and what is committed as its output is its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="it needs stepcache[notebooks]")
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"


def _load_run() -> Any:
    spec = spec_from_file_location("notebooks_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN = _load_run()
NAMES = (
    "01_quickstart",
    "02_langchain",
    "03_llamaindex",
    "04_write_your_own_task",
    "05_reproduce_the_paper",
)
ALWAYS: dict[str, tuple[str, ...]] = {
    "01_quickstart": ("the model would be asked for: answer", "candidates: ", "exact: ", "miss: "),
    "02_langchain": ("the model was asked", "miss: ", "City(name=", "river=", "bypass: "),
    "03_llamaindex": ("miss: ", "weeks", "City(name=", "river=", "bypass: "),
    "04_write_your_own_task": ("19 passed", "26.2 mi = 42.16 km", "13.1 mi = 21.08 km"),
    "05_reproduce_the_paper": (
        "questions made now are those of the record: True",
        "figures made now are the published ones: True",
        "tokens spent",
    ),
}
"""What a notebook shows whatever the model answers."""

COMMITTED: dict[str, tuple[str, ...]] = {
    "01_quickstart": (
        "exact: the same request was answered before\n0 tokens spent",
        "**patch**",
        "**adapt**",
        "reuse: ",
    ),
    "02_langchain": ("the model was asked\nexact: ", "reuse: ", "adapt: ", "patch: ", "'exact': 2"),
    "03_llamaindex": ("reuse: ", "adapt: ", "exact: ", "1 entry forgotten", "'patch': 1"),
    "04_write_your_own_task": ("**reuse**", "**adapt**"),
    "05_reproduce_the_paper": ("adapt", "patch"),
}
"""What it is about: shown by the model that its text tells of."""


def _needs(name: str) -> None:
    for read in RUN.reads(RUN.load(name)):
        if not (FOLDER / read).is_file():
            pytest.skip(f"{Path(read).name} is not there")


def _shown(notebook: Any) -> str:
    """Every text output, one below the other."""
    return "\n".join(
        text
        for cell in RUN.code_cells(notebook)
        for output in cell.outputs
        for text in RUN.texts(output)
    )


def test_none_is_left_out() -> None:
    """What is tested here is what lies there."""
    assert NAMES == RUN.NOTEBOOKS


@pytest.mark.model
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    """Over the small model: no error, nothing on standard error, and it shows what it is about."""
    pytest.importorskip("xllamacpp", reason="the local server needs stepcache[demo]")
    _needs(name)
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), "--out", str(tmp_path), name],
        env={**os.environ, "STEPCACHE_NOTEBOOK_MODEL": "smollm2"},
        capture_output=True,
        text=True,
    )
    if "WeightsError" in done.stdout:
        pytest.skip("the model cannot be had")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    shown = _shown(nbformat.read(tmp_path / f"{name}.ipynb", as_version=4))
    assert [text for text in ALWAYS[name] if text not in shown] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_outputs_are_those_of_the_code(name: str) -> None:
    """Executed in order and without a fault, and neither code nor data has changed since."""
    _needs(name)
    notebook = RUN.load(name)
    assert RUN.faults(notebook) == []
    executed = notebook.metadata["stepcache"]["executed"]
    assert executed == RUN.digest(notebook), "run: make notebooks NOTEBOOKS_ARGS=--write"
    shown = _shown(notebook)
    wanted = (*ALWAYS[name], *COMMITTED[name])
    assert [text for text in wanted if text not in shown] == []


def test_changed_code_is_found_out() -> None:
    """A digest is of every code cell, and of no text beside."""
    notebook = RUN.load("01_quickstart")
    before = RUN.digest(notebook)
    notebook.cells[0].source += "."
    assert notebook.cells[0].cell_type == "markdown"
    assert RUN.digest(notebook) == before
    RUN.code_cells(notebook)[-1].source += "\n"
    assert RUN.digest(notebook) != before


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        (nbformat.v4.new_output("error", ename="KeyError", evalue="'a'"), "ended in KeyError: 'a'"),
        (nbformat.v4.new_output("stream", name="stderr", text="W\n"), "standard error: W"),
        (nbformat.v4.new_output("stream", text=f"{ROOT}/a.db"), f"this machine: {ROOT}/"),
        (
            nbformat.v4.new_output("display_data", data={"text/html": f"<p>{Path.home()}/x"}),
            f"this machine: {Path.home()}/",
        ),
    ],
)
def test_faults_are_found(output: Any, fault: str) -> None:
    """An error, a warning and a path each are one."""
    cell = nbformat.v4.new_code_cell("1", execution_count=1, outputs=[output])
    found = RUN.faults(nbformat.v4.new_notebook(cells=[cell]))
    assert any(fault in one for one in found), found


def test_a_cell_that_was_not_executed_is_found() -> None:
    """Neither is one executed out of order accepted."""
    cells = [nbformat.v4.new_code_cell("1"), nbformat.v4.new_code_cell("2", execution_count=1)]
    assert len(RUN.faults(nbformat.v4.new_notebook(cells=cells))) == 2


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    """Notebooks named in a notebook are there."""
    text = json.dumps(RUN.load(name))
    for other in NAMES:
        if f"{other}.ipynb" in text:
            assert (FOLDER / f"{other}.ipynb").is_file()
