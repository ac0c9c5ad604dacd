"""Run the parts, keep the figures, write the page, and end non-zero on any violation."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from stepcache._counts import count
from trust._page import write_page
from trust._parts import PARTS, Settings, together

_ROOT = Path(__file__).resolve().parent.parent
_FIGURES = _ROOT / "docs" / "reliability.json"
_PAGE = _ROOT / "docs" / "reliability.md"
_QUICK = 0.004


def main() -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m trust", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="a slice of everything; keeps nothing")
    parser.add_argument("--share", type=float, default=1.0, help="portion of a full run, 0 to 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that fuzz")
    parser.add_argument(
        "--targets", default="", help="of fuzz, only these, by comma; the others keep their figures"
    )
    asked = parser.parse_args()
    unknown = [name for name in asked.parts if name not in PARTS]
    if unknown or not 0 < asked.share <= 1:
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else "--share is 0 to 1")
    settings = Settings(
        seed=asked.seed,
        share=_QUICK if asked.quick else asked.share,
        jobs=max(1, asked.jobs),
        targets=tuple(filter(None, asked.targets.split(","))),
    )
    known: dict[str, Any] = json.loads(_FIGURES.read_text()) if _FIGURES.exists() else {}
    violations = 0
    for name in asked.parts or PARTS:
        print(f"{name} ...", flush=True)
        began = time.perf_counter()
        figures = PARTS[name](settings)
        took = time.perf_counter() - began
        violations += figures["faults"]
        for told in figures["found"]:
            print(f"  VIOLATION {told}", flush=True)
        if figures.get("not_run"):
            print(f"  not run: {figures['not_run']}", flush=True)
        print(f"{name}: {count(figures['faults'], 'violation')} in {took:.0f} s", flush=True)
        figures |= {"seed": settings.seed, "share": settings.share, "seconds": round(took, 1)}
        if settings.targets and name == "fuzz" and name in known:
            # Of the targets that are run again each row tells how many inputs it had.
            figures = {**known[name], **together(known[name], figures)}
        known[name] = figures
        if not asked.quick:
            # After each part: a run that is cut short keeps what it has shown.
            _FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
            write_page(_PAGE, known)
    print(count(violations, "violation"), flush=True)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
