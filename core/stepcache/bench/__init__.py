"""The benchmark: a perturbed workload, several caches over one model, and an independent judge.

Run it with ``stepcache bench paper``; it needs the extra ``stepcache[bench]``. The workload follows
the perturbation-heavy micro-benchmark of "StepCache" (arXiv 2603.28795): ten base prompts in each
of two families, three variants of each under every perturbation, three seeds.
"""

from __future__ import annotations

from stepcache.bench._figures import PAPER_TABLE, Row, summary
from stepcache.bench._items import Item
from stepcache.bench._judge import Judgement, judge
from stepcache.bench._record import RecordError, load_record, rows_of
from stepcache.bench._workload import workload

__all__ = [
    "PAPER_TABLE",
    "Item",
    "Judgement",
    "RecordError",
    "Row",
    "judge",
    "load_record",
    "rows_of",
    "summary",
    "workload",
]
