"""The README's lines on metrics run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

README = Path(__file__).parents[2] / "README.md"


def test_the_lines_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They build a cache that four listeners hear, and print two sums."""
    section = README.read_text("utf-8").partition("## Metrics and traces")[2]
    (code,) = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    try:
        exec(compile(code, "README.md", "exec"), names)
    finally:
        for collector in set(REGISTRY._names_to_collectors.values()):
            if any(n.startswith("stepcache_") for n in REGISTRY._get_names(collector)):
                REGISTRY.unregister(collector)
    assert names["cache"].engine.listeners == tuple(names["listeners"])  # type: ignore[attr-defined,call-overload]
    assert capsys.readouterr().out.count("Usage(calls=0") == 2
    assert (tmp_path / "trace.jsonl").exists()
