"""What the commands share: the store they look at, errors, and how things are shown."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from stepcache import StepCacheEngine
    from stepcache._types import Entry
    from stepcache.explain import Selection
    from stepcache.protocols import Store

__all__ = [
    "UNREADABLE",
    "VARIABLE",
    "AsJson",
    "EngineName",
    "ModelOption",
    "NamespaceOption",
    "OlderThan",
    "ShowText",
    "StoreName",
    "TagOption",
    "TaskOption",
    "ago",
    "busy",
    "console",
    "fail",
    "guarded",
    "is_id",
    "looked_into",
    "named_engine",
    "open_named",
    "print_json",
    "progress_bar",
    "resolved",
    "safe",
    "seconds_of",
    "selected",
    "size_of",
    "tracked",
    "usage",
]

T = TypeVar("T")

_WIDTH_WITHOUT_TERMINAL = 160
UNREADABLE = "damaged, of another version, or sealed with another key"
VARIABLE = "STEPCACHE_STORE"

StoreName = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        envvar=VARIABLE,
        help="A SQLite file, sqlite:///path (four slashes begin an absolute path), or "
        "postgresql://user@host/database.",
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="MODULE:ATTRIBUTE",
        help="An engine, or an object that has one, whose tasks, embedder and policy decide. "
        "Left out: the defaults.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
ShowText = Annotated[
    bool, typer.Option("--show-text", help="Show stored prompts and answers; hidden otherwise.")
]
TagOption = Annotated[
    str | None, typer.Option("--tag", metavar="TAG", help="Entries that carry this tag.")
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NAME", help='Entries kept under this namespace; "" is the default.'
    ),
]
TaskOption = Annotated[
    str | None,
    typer.Option("--task", metavar="NAME", help="Entries of this family: json, text, ..."),
]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Entries this model answered.")
]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="AGE", help="Entries kept longer ago: 45s, 30m, 12h, 7d."),
]


# --- errors ------------------------------------------------------------------------------------


def usage(message: str, command: str = "") -> NoReturn:
    """End with status 2: the call is wrong."""
    typer.echo(f"Error: {message}. Try stepcache {command}{' ' * bool(command)}--help.", err=True)
    raise typer.Exit(2)


def fail(message: str) -> NoReturn:
    """End with status 1: the call is right, and something else is not."""
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(1)


@contextlib.contextmanager
def guarded(command: str) -> Iterator[None]:
    """Errors that a person can act on end a command in one line."""
    from stepcache import ConfigurationError, StepCacheError, UsageError

    try:
        yield
    except (ConfigurationError, UsageError) as error:
        usage(str(error).rstrip("."), command)
    except StepCacheError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


# --- the store ---------------------------------------------------------------------------------


def open_named(store: str | None) -> Store:
    """The store a command line names, which has to be there: looking makes none.

    Raises:
        ConfigurationError: None is named, it is not there, or it cannot be used.
    """
    from stepcache import ConfigurationError
    from stepcache.stores import open_store

    if store is None:
        raise ConfigurationError(
            f"no store is named: pass --store sqlite:///path or postgresql://..., or set {VARIABLE}"
        )
    if store.partition(":")[0] == "memory":
        raise ConfigurationError(
            f"store={store!r} is another process's memory: name a file or a server"
        )
    path = _sqlite_path(store)
    if path is not None and not path.is_file():
        relative = store.startswith("sqlite:") and not path.is_absolute()
        hint = "; after sqlite:/// a path is relative, a fourth slash makes it absolute"
        raise ConfigurationError(
            f"store={store!r}: there is no file {path}{hint if relative else ''}"
        )
    return open_store(store)


def _sqlite_path(store: str) -> Path | None:
    scheme, separator, rest = store.partition("://")
    if not separator:
        return Path(store)
    return Path(rest[1:]) if scheme.lower() == "sqlite" else None


@contextlib.contextmanager
def looked_into(
    command: str, store: str | None, engine: str | None = None
) -> Iterator[StepCacheEngine]:
    """An engine over a named store, closed in the end; errors end the command."""
    with guarded(command):
        from stepcache.explain import beside

        decides = named_engine(engine)
        opened = open_named(store)
        try:
            yield beside(decides, opened)
        finally:
            opened.close()


def named_engine(target: str | None) -> StepCacheEngine | None:
    """The engine that ``module:attribute`` names; None for the default one.

    Raises:
        ConfigurationError: It cannot be imported, or is none.
    """
    if target is None:
        return None
    from stepcache.evaluation import load_engine

    sys.path.insert(0, "")  # as python -m does, so that a module beside the caller is found
    return load_engine(target)


def is_id(name: str) -> bool:
    """Whether it looks like an entry's id or the beginning of one."""
    return re.fullmatch(r"[0-9a-f]{6,64}", name) is not None


def resolved(entries: Iterable[Entry], name: str) -> Entry | None:
    """The entry of an id or of the beginning of one; None for none.

    Raises:
        UsageError: Several begin like that.
    """
    from stepcache import UsageError

    found: dict[str, Entry] = {}
    if is_id(name):
        found = {entry.id: entry for entry in entries if entry.id.startswith(name)}
    if len(found) > 1:
        raise UsageError(f"{name!r} begins {len(found)} ids: give more characters of the one")
    return next(iter(found.values()), None)


def selected(
    *,
    tag: str | None,
    namespace: str | None,
    task: str | None,
    model: str | None,
    older_than: str | None,
) -> Selection:
    """What the options of a command name."""
    from stepcache.explain import Selection

    def where(entry: Entry) -> bool:
        kept = entry.constraints.task if entry.constraints is not None else ""
        return task in (None, kept) and model in (None, entry.model)

    return Selection(
        tag=tag,
        namespace=namespace,
        older_than=seconds_of(older_than, "--older-than"),
        where=where if task is not None or model is not None else None,
    )


# --- showing -----------------------------------------------------------------------------------


def console() -> Console:
    """For people; wide where no terminal limits it."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def print_json(value: Any) -> None:
    """One JSON document, or line, on standard output."""
    typer.echo(json.dumps(value, indent=2))


def safe(text: str, longest: int | None = None) -> str:
    """A stored text for a terminal: nothing in it steers one.

    Args:
        longest: Characters shown, on one line; None shows all.
    """
    if longest is not None:
        text = " ".join(text.split())
        text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return "".join(
        char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text
    )


def tracked(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Show a bar on standard error while items come, where that is a terminal."""
    from rich.console import Console
    from rich.progress import track

    err = Console(stderr=True)
    if not err.is_terminal:
        yield from items
        return
    yield from track(items, description=what, total=total, console=err, transient=True)


@contextlib.contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """As :func:`tracked`, for work that tells how far it is."""
    from rich.console import Console
    from rich.progress import Progress

    err = Console(stderr=True)
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


@contextlib.contextmanager
def busy(what: str) -> Iterator[None]:
    """Show that something is under way, on standard error where that is a terminal."""
    from rich.console import Console

    err = Console(stderr=True)
    with err.status(what) if err.is_terminal else contextlib.nullcontext():
        yield


def ago(then: float | None, now: float | None = None) -> str:
    """How long ago, or how long until, in one unit."""
    if then is None:
        return "never"
    gap = (time.time() if now is None else now) - then
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if abs(gap) >= length:
            return f"{abs(gap) / length:.0f}{unit}"
    return f"{abs(gap):.0f}s"


def size_of(count: int | None) -> str:
    """Bytes in a readable unit."""
    if count is None:
        return "not told by this store"
    number, units = float(count), ("bytes", "KiB", "MiB", "GiB")
    place = min(int(math.log(number, 1024)) if number >= 1 else 0, len(units) - 1)
    return f"{number / 1024**place:,.{0 if place == 0 else 1}f} {units[place]}"


def seconds_of(age: str | None, option: str) -> float | None:
    """Seconds of ``45s``, ``30m``, ``12h``, ``7d`` or a plain number of seconds.

    Raises:
        UsageError: Anything else.
    """
    from stepcache import UsageError

    if age is None:
        return None
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw]?)", age.strip())
    if found is None:
        raise UsageError(f"{option} is {age!r}: use a number and s, m, h, d or w, such as 12h")
    unit = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}[found[2]]
    return float(found[1]) * unit
