"""The engine's pieces, taken by a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from stepcache._types import Outcome, Step
from stepcache.protocols import Delta

__all__ = ["Piece", "Pieces"]

Piece = Delta | Step | Outcome

_AHEAD = 64
"""Pieces taken before their reader takes them: a slow reader slows the upstream down."""


class Pieces:
    """A stream one may wait for while waiting for something else. Use as a context manager.

    Args:
        stream: The engine's.
        asked: Set once the model is asked.
    """

    def __init__(self, stream: AsyncIterator[Piece], asked: asyncio.Event) -> None:
        self._stream = stream
        self._asked = asked
        self._queue: asyncio.Queue[Piece | Exception | None] = asyncio.Queue(_AHEAD)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Pieces:
        self._task = asyncio.create_task(self._take())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def first(self) -> list[Piece]:
        """All there are up to the outcome, where no model is asked; else the first ones, at least
        one where there is any."""
        got: list[Piece] = []
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            while not (got and isinstance(got[-1], Outcome)):
                following = asyncio.ensure_future(self._queue.get())
                waited = {following} if asked.done() and not got else {following, asked}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    if got:
                        return got
                    continue
                piece = following.result()
                if isinstance(piece, Exception):
                    raise piece
                if piece is None:
                    return got
                got.append(piece)
        finally:
            asked.cancel()
        return got

    async def __aiter__(self) -> AsyncIterator[Piece]:
        while (piece := await self._queue.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def _take(self) -> None:
        try:
            async with aclosing(cast("Any", self._stream)) as pieces:
                async for piece in pieces:
                    await self._queue.put(piece)
        except Exception as error:  # noqa: BLE001 - the reader's to decide about
            await self._queue.put(error)
        else:
            await self._queue.put(None)
