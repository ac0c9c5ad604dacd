"""How long a port is waited for. What is stuck is left behind, and does not take others with it.

A call that may hang runs in a daemon thread of its own, or as a task, and is given up on when its
time is over. It cannot be stopped, so it stays behind; while too many stay behind, further calls
fail at once instead of adding to them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from inspect import isawaitable
from typing import Any

from stepcache._errors import PortError
from stepcache._forking import call_in_child, fork_safe_lock

__all__ = ["Budget", "Patience", "in_thread", "is_cancelled"]

_MOST_LEFT_BEHIND = 4


def is_cancelled() -> bool:
    """Whether the running task has been asked to stop. If not, a ``CancelledError`` comes from
    something that was waited for, and is its failure."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs here, so nobody can have asked
        return False
    return task is not None and task.cancelling() > 0


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """What a function returns or raises in a worker thread.

    ``asyncio.to_thread`` alone waits for ever for one that raises ``StopIteration``, which no
    future takes.
    """

    def run() -> tuple[Any, BaseException | None]:
        try:
            return function(*args), None
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            return None, error

    result, error = await asyncio.to_thread(run)
    if isinstance(error, StopIteration):
        raise RuntimeError("a port raised StopIteration") from error
    if error is not None:
        raise error
    return result


class Patience:
    """Waits for one port's calls. Thread-safe.

    Args:
        port: What it is called in messages, e.g. ``the embedder``.
        seconds: How long one call may take.
        error: What is raised when it takes longer.
    """

    def __init__(self, port: str, seconds: float, error: type[PortError]) -> None:
        self._port = port
        self._seconds = seconds
        self._error = error
        self._lock = fork_safe_lock()
        self._left_behind = 0
        call_in_child(self)

    @property
    def left_behind(self) -> int:
        """Calls that were given up on and have not ended since."""
        return self._left_behind

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What a function returns or raises, if it does so in time.

        Raises:
            PortError: It did not, or too many before it have not.
        """
        self._refuse_more()
        call = _Call(self, function, args)
        try:
            call.ended.wait(self._seconds)
        finally:
            late = call.give_up()
        if late:
            raise self._gave_up()
        return call.result()

    async def acall(self, function: Callable[..., Any], *args: Any, threaded: bool) -> Any:
        """As :meth:`call`; what the function returns may be awaitable.

        Args:
            threaded: Whether the function itself may take its time, so that it must not run in the
                event loop.
        """
        self._refuse_more()
        deadline = time.monotonic() + self._seconds
        result = await self._threaded(function, args) if threaded else function(*args)
        if not isawaitable(result):
            return result
        task = asyncio.ensure_future(result)
        try:
            await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        finally:
            late = not task.done()
            if late:
                # Not awaited: what does not heed its cancellation would be waited for after all.
                self.leave(1)
                task.add_done_callback(self._ended_late)
                task.cancel()
        if late:
            raise self._gave_up()
        return task.result()

    def after_fork(self) -> None:
        """No call of the parent's ends in a forked child."""
        self._left_behind = 0

    def leave(self, calls: int) -> None:
        """Calls were left behind, or, below zero, have ended since."""
        with self._lock:
            self._left_behind += calls

    async def _threaded(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def wake() -> None:
            if not ended.done():
                ended.set_result(None)

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has closed: nobody waits any more
                loop.call_soon_threadsafe(wake)

        call = _Call(self, function, args, tell)
        try:
            await asyncio.wait({ended}, timeout=self._seconds)
        finally:
            late = call.give_up()
        if late:
            raise self._gave_up()
        return call.result()

    def _refuse_more(self) -> None:
        if self._left_behind >= _MOST_LEFT_BEHIND:
            raise self._error(f"{self._port} has not answered its last {_MOST_LEFT_BEHIND} calls")

    def _gave_up(self) -> PortError:
        return self._error(f"{self._port} has not answered within {self._seconds:g} s")

    def _ended_late(self, task: asyncio.Future[Any]) -> None:
        self.leave(-1)
        if not task.cancelled():
            task.exception()  # looked at, so that nobody complains about it


class _Call:
    """One call in a daemon thread, which the end of the process does not wait for."""

    def __init__(
        self,
        patience: Patience,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        tell: Callable[[], None] | None = None,
    ) -> None:
        self.ended = threading.Event()
        self._patience = patience
        self._lock = threading.Lock()
        self._late = False
        self._result: Any = None
        self._error: BaseException | None = None
        context = copy_context()

        def run() -> None:
            try:
                self._result = context.run(function, *args)
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                self._error = error
            with self._lock:
                self.ended.set()
                if self._late:
                    patience.leave(-1)
            if tell is not None:
                tell()

        threading.Thread(target=run, name="stepcache-port", daemon=True).start()

    def give_up(self) -> bool:
        """Wait no longer; False where it has ended."""
        with self._lock:
            if self.ended.is_set():
                return False
            self._late = True
            self._patience.leave(1)
            return True

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class Budget:
    """The seconds that the proofs of one request may take together; a context around each of them.

    Args:
        seconds: How many; None counts nothing.
        clock: Seconds that only go forward.
    """

    __slots__ = ("_clock", "_depth", "_since", "_spent", "seconds")

    def __init__(self, seconds: float | None, clock: Callable[[], float] | None) -> None:
        self.seconds = seconds if clock is not None else None
        self._clock = clock
        self._depth = 0
        self._since = 0.0
        self._spent = 0.0

    def __enter__(self) -> None:
        if self.seconds is None or self._clock is None:
            return
        if not self._depth:
            self._since = self._clock()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        if self.seconds is None or self._clock is None:
            return
        self._depth -= 1
        if not self._depth:
            self._spent += self._clock() - self._since

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        if self.seconds is None or self._clock is None:
            return False
        running = self._clock() - self._since if self._depth else 0.0
        return self._spent + running > self.seconds
