"""The run's memory on disk: one line for each finished exchange, appended and never changed."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from stepcache.bench._recorder import Call

__all__ = ["Exchange", "Log", "LogError", "exchange_from"]


class LogError(RuntimeError):
    """The log cannot be gone on with; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request to one mode."""

    mode: str
    item: str
    """The item's id."""
    text: str
    route: str
    seconds: float
    reason: str = ""
    trace: tuple[str, ...] = ()
    error: str = ""
    calls: tuple[Call, ...] = ()
    """Model calls, as the endpoint reported them."""

    @property
    def prompt_tokens(self) -> int:
        return sum(call.prompt_tokens for call in self.calls)

    @property
    def completion_tokens(self) -> int:
        return sum(call.completion_tokens for call in self.calls)

    def as_dict(self, *, brief: bool = False) -> dict[str, Any]:
        """JSON-able data; brief leaves out what only a resumed run needs."""
        data = asdict(self)
        if brief:
            data["calls"] = [self._brief(call) for call in self.calls]
            for name in ("reason", "trace", "error"):
                if not data[name]:
                    del data[name]
        return data

    def _brief(self, call: Call) -> list[Any]:
        """Purpose and tokens of a call; its text where the answer is not that text."""
        said = [] if call.text == self.text else [call.text]
        return [call.purpose, call.prompt_tokens, call.completion_tokens, *said]


def exchange_from(data: Mapping[str, Any]) -> Exchange:
    """Read an exchange back from either of its forms."""
    calls = tuple(_call(call, data["text"]) for call in data["calls"])
    fields = {**data, "trace": tuple(data.get("trace", ())), "calls": calls}
    return Exchange(**fields)


def _call(data: Mapping[str, Any] | Sequence[Any], whole: str) -> Call:
    if isinstance(data, Mapping):
        return Call(**data)
    purpose, prompt, completion, *said = data
    return Call(
        digest="",
        purpose=purpose,
        text=said[0] if said else whole,
        finish_reason=None,
        prompt_tokens=prompt,
        completion_tokens=completion,
    )


class Log:
    """Finished exchanges of one run; opening it again goes on where the run stopped.

    Args:
        path: A JSON Lines file; its first line says what run it belongs to.
        head: What this run is: seeds, splits, model, wordings and the rest that decides answers.

    Raises:
        LogError: The file belongs to another run, or is no such file.
    """

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        self.path = path
        self.head = dict(head)
        self.done: dict[tuple[str, str], Exchange] = {}
        self._file: IO[str] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Log:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = self._read() if self.path.exists() else 0
        self._file = self.path.open("r+" if whole else "w", encoding="utf-8")
        # A line cut short by a killed run is written over.
        self._file.seek(whole)
        self._file.truncate()
        if not whole:
            self._write({"run": self.head})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, exchange: Exchange) -> None:
        """Keep one exchange; it is on disk when this returns."""
        with self._lock:
            self._write(exchange.as_dict())
            self.done[exchange.mode, exchange.item] = exchange

    def _write(self, data: Mapping[str, Any]) -> None:
        if self._file is None:
            raise LogError("the log is not open")
        self._file.write(json.dumps(data) + "\n")
        self._file.flush()

    def _read(self) -> int:
        """Take in every whole line; returns the bytes they fill."""
        whole = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file):
                if not line.endswith(b"\n"):
                    break
                try:
                    self._take(number, json.loads(line))
                except (ValueError, TypeError, KeyError) as error:
                    raise LogError(f"{self.path}, line {number + 1}: {error}") from error
                whole += len(line)
        return whole

    def _take(self, number: int, data: Mapping[str, Any]) -> None:
        if number:
            exchange = exchange_from(data)
            self.done[exchange.mode, exchange.item] = exchange
            return
        head = data["run"]
        other = [name for name in self.head if head.get(name) != self.head[name]]
        if other:
            raise LogError(
                f"{self.path} is of a run with another {', '.join(other)}: "
                "name another folder with --out, or remove it"
            )
