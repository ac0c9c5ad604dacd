"""Law 8 beyond one process: who leads an equal request among all that share a store.

A store that offers ``acquire``, ``release`` and ``put_leased`` (see
:class:`stepcache.protocols.LeasingStore`) lets one of its processes lead at a time. The others ask
again until the lease is free or their patience is over, and then look into the store before they
ask the model. A lease lasts a little less than others wait for it, so whoever has waited in vain
takes it over; a leader that died is waited for no longer than one that is slow. One that slept
through its lease cannot overwrite what its successor kept: its token has been overtaken. A store
that fails costs the sharing, not the answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from inspect import isawaitable
from typing import Any, Self

from stepcache._errors import StoreError
from stepcache._patience import in_thread, is_cancelled
from stepcache.protocols import Store

__all__ = ["Leases"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.2


class Leases:
    """What one driver holds of its store's leases.

    Args:
        store: Offers leases or not.
        patience: Seconds to wait for another's lease.
    """

    __slots__ = ("_patience", "_store", "held")

    def __init__(self, store: Store, patience: float) -> None:
        self._store: Any = store
        self._patience = patience
        self.held: tuple[str, int] | None = None
        """Key and token."""

    @property
    def _lasting(self) -> float:
        return max(0.5, 0.8 * self._patience)

    def take(self, key: str) -> None:
        """Become the one leader, or give up waiting."""
        if self.held is not None:
            return
        try:
            if not hasattr(self._store, "put_leased"):
                return
            for pause in self._pauses():
                token = self._store.acquire(key, self._lasting)
                if token is not None:
                    self.held = (key, token)
                    return
                time.sleep(pause)
        except Exception:  # noqa: BLE001 - law 11: a lease is a saving, never a condition
            return
        except asyncio.CancelledError:
            if is_cancelled():
                raise

    async def atake(self, key: str) -> None:
        """As :meth:`take`, without blocking the event loop."""
        if self.held is not None:
            return
        try:
            if not hasattr(self._store, "put_leased"):
                return
            for pause in self._pauses():
                token = await self._call("acquire", key, self._lasting)
                if token is not None:
                    self.held = (key, token)
                    return
                await asyncio.sleep(pause)
        except Exception:  # noqa: BLE001 - law 11: a lease is a saving, never a condition
            return
        except asyncio.CancelledError:
            if is_cancelled():
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.arelease()

    def release(self) -> None:
        """Let the next one lead."""
        if self.held is not None:
            held, self.held = self.held, None
            try:
                self._store.release(*held)
            except Exception:  # noqa: BLE001 - law 11: a lease is a saving, never a condition
                return  # it ends by itself
            except asyncio.CancelledError:
                if is_cancelled():
                    raise

    async def arelease(self) -> None:
        """As :meth:`release`."""
        if self.held is not None:
            held, self.held = self.held, None
            try:
                await self._call("release", *held)
            except Exception:  # noqa: BLE001 - law 11: a lease is a saving, never a condition
                return
            except asyncio.CancelledError:
                if is_cancelled():
                    raise

    def _pauses(self) -> Iterator[float]:
        deadline, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            yield pause
            if time.monotonic() >= deadline:
                return
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _call(self, name: str, *args: Any) -> Any:
        method = getattr(self._store, name)
        if getattr(self._store, "blocking", False):
            return await in_thread(method, *args)
        result = method(*args)
        return await result if isawaitable(result) else result


def kept(result: object) -> bool:
    """What ``put_leased`` answered, as a put does.

    Raises:
        StoreError: Somebody else has led since.
    """
    if result is False:
        raise StoreError("another process has taken over this request: its answer stays")
    return True
