"""``stepcache doctor``: is everything there that is needed, and does it work?"""

from __future__ import annotations

import platform
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

import typer

from stepcache._counts import count
from stepcache.cli._common import (
    UNREADABLE,
    AsJson,
    EngineName,
    StoreName,
    busy,
    console,
    named_engine,
    open_named,
    print_json,
    safe,
)

if TYPE_CHECKING:
    from stepcache import StepCacheEngine

__all__ = ["add_doctor_command"]

_OLDEST = (3, 11)
_FOR_DEVELOPERS = frozenset(("all", "bench", "docs", "notebooks", "test", "trust"))
_MARKS = {"ok": "ok", "absent": "--", "broken": "!!"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check says."""

    name: str
    state: Literal["ok", "absent", "broken"]
    """Absent is no fault: an extra nobody asked for."""
    detail: str
    fix: str = ""


def add_doctor_command(app: typer.Typer) -> None:
    """Give the application this one."""
    app.command("doctor")(_doctor)


def _doctor(
    store: StoreName = None,
    engine: EngineName = None,
    as_json: AsJson = False,
) -> None:
    """Check versions, extras, the embedder and the store; ends with status 1 if one is broken.

    The store is written to: one entry in a namespace of its own, which is removed again.
    """
    with busy("checking"):
        findings = list(_findings(store, engine))
    broken = [finding for finding in findings if finding.state == "broken"]
    if as_json:
        print_json({"healthy": not broken, "findings": [asdict(f) for f in findings]})
    else:
        _print(findings, len(broken))
    raise typer.Exit(1 if broken else 0)


def _print(findings: list[Finding], broken: int) -> None:
    from rich.table import Table
    from rich.text import Text

    screen = console()
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        style = {"ok": "green", "absent": "dim", "broken": "bold red"}[finding.state]
        detail = finding.detail + (f"\n{finding.fix}" if finding.fix else "")
        table.add_row(
            Text(_MARKS[finding.state], style=style), Text(finding.name), Text(safe(detail))
        )
    screen.print(table)
    screen.print("Nothing is broken." if not broken else f"{broken} broken.")


def _findings(store: str | None, engine: str | None) -> Iterator[Finding]:
    yield _checked("python", _python)
    yield Finding("system", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield _checked("stepcache", lambda: metadata.version("stepcache"))
    yield from _extras()
    decides: StepCacheEngine | None = None
    if engine is not None:
        try:
            decides = named_engine(engine)
        except Exception as error:  # noqa: BLE001 - a finding, whatever it is
            yield Finding("engine", "broken", _said(error))
            return
        yield Finding("engine", "ok", engine)
    yield _checked("index", _index)
    yield _checked("embedder", lambda: _embedder(decides))
    if store is None:
        detail = "none is named: --store or STEPCACHE_STORE; checked in memory instead"
        yield Finding("store", "absent", detail)
        yield _checked("write test", lambda: _written(decides, None))
        return
    yield from _store(store, decides)


def _store(store: str, decides: StepCacheEngine | None) -> Iterator[Finding]:
    try:
        opened: Any = open_named(store)
    except Exception as error:  # noqa: BLE001 - a finding, whatever it is
        fix = "an application makes a SQLite file with its first answer"
        yield Finding("store", "broken", _said(error), fix if "no file" in str(error) else "")
        return
    try:
        yield _checked("store", lambda: _counted(opened))
        yield _checked("write test", lambda: _written(decides, opened))
        yield _checked("records", lambda: _read(opened))
    finally:
        opened.close()


def _counted(store: Any) -> str:
    return f"{type(store).__name__}, {count(store.count(), 'entry', 'entries')}"


def _read(store: Any) -> str:
    """Read every record once."""
    from stepcache.explain import entries_of

    count = sum(1 for _ in entries_of(store))
    if unreadable := int(getattr(store, "unreadable", 0)):
        raise RuntimeError(f"{unreadable:,} cannot be read, so each is a miss: {UNREADABLE}")
    return f"{count:,} read"


def _checked(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", check())
    except Exception as error:  # noqa: BLE001 - a finding, whatever it is
        return Finding(name, "broken", _said(error))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _python() -> str:
    if sys.version_info < _OLDEST:
        raise RuntimeError(f"{platform.python_version()} is too old: 3.11 is the oldest")
    return f"{platform.python_implementation()} {platform.python_version()}"


def _extras() -> Iterator[Finding]:
    """Each extra a user may want, by what the installed distribution says it needs."""
    needs: dict[str, list[str]] = {}
    for line in metadata.requires("stepcache") or ():
        requirement, _, marker = line.partition(";")
        name = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
        for extra in re.findall(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker):
            if name is not None and name[0].lower() != "stepcache":
                needs.setdefault(extra, []).append(requirement.strip())
    for extra in sorted(needs.keys() - _FOR_DEVELOPERS):
        yield _extra(extra, needs[extra])


def _extra(extra: str, requirements: list[str]) -> Finding:
    there, missing, wrong = [], [], []
    for requirement in requirements:
        name = re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0]
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        there.append(f"{name} {version}")
        if not _satisfies(version, requirement):
            wrong.append(f"{name} {version}, needed is {requirement}")
    fix = f'pip install "stepcache[{extra}]"'
    if wrong:
        return Finding(f"[{extra}]", "broken", "; ".join(wrong), fix)
    if missing:
        return Finding(f"[{extra}]", "absent", f"missing: {', '.join(missing)}", fix)
    return Finding(f"[{extra}]", "ok", ", ".join(there))


def _satisfies(version: str, requirement: str) -> bool:
    """Whether a version is what is required; True where nobody here can compare versions."""
    try:
        from packaging.requirements import Requirement
    except ModuleNotFoundError:
        return True
    return Requirement(requirement).specifier.contains(version, prereleases=True)


def _index() -> str:
    import numpy as np

    from stepcache.index import VectorIndex

    index = VectorIndex(4)
    index.add(7, np.asarray([1, 0, 0, 0], dtype=np.float32))
    if [number for number, _ in index.search(np.asarray([1, 0, 0, 0], np.float32), 1)] != [7]:
        raise RuntimeError("the index does not find what was put into it")
    return f"faiss-cpu {metadata.version('faiss-cpu')}, numpy {np.__version__}"


def _embedder(decides: StepCacheEngine | None) -> str:
    import numpy as np

    from stepcache.embedders import LexicalEmbedder

    embedder: Any = decides.embedder if decides is not None else LexicalEmbedder()
    vectors = np.asarray(embedder.embed(["a river", "a sea"]))
    if vectors.shape != (2, embedder.dimension) or not np.isfinite(vectors).all():
        raise RuntimeError(f"it gives shape {vectors.shape} for 2 texts")
    return f"{type(embedder).__name__}, {embedder.dimension} dimensions"


def _written(decides: StepCacheEngine | None, store: Any) -> str:
    """Keep, find, re-find in other words, and remove one entry in a namespace of its own."""
    from stepcache import Message, Reply, Request
    from stepcache.explain import beside
    from stepcache.stores import MemoryStore

    engine = beside(decides, store if store is not None else MemoryStore())
    namespace = f"doctor-{uuid.uuid4().hex}"
    message = Message(role="user", text="Is the store well?")
    request = Request(messages=(message,), namespace=namespace)
    try:
        entry_id = engine.admit(request, Reply(text="It is well."))
        found = engine.lookup(request)
        if entry_id is None or found.route != "exact":
            raise RuntimeError("an entry that was put is not found again")
    finally:
        gone = engine.forget(namespace=namespace)
    if not gone or engine.inspect(request).served:
        raise RuntimeError("an entry that was removed is still served")
    return "one entry kept, found and removed"
