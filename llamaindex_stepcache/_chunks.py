"""Pieces of the engine's stream as the host's chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, cast

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    MessageRole,
    TextBlock,
)

from llamaindex_stepcache._ports import R
from stepcache import Outcome, Step
from stepcache.protocols import Delta

__all__ = ["Chunks"]


class Chunks(Generic[R]):
    """Turns pieces into chunks: the LLM's own as they are, steps with all that came before them.

    Of the LLM's own, one is held back until the next comes, for the last one carries the summary.
    A step is handed out at once, and what follows the last step carries the summary.

    Args:
        kind: Class of the chunks.
        build: Makes the last chunk of an outcome and, where there is one, the LLM's own last chunk.
    """

    def __init__(self, kind: type[R], build: Callable[[Outcome, R | None], R]) -> None:
        self._kind: type[R] = kind
        self._build: Callable[[Outcome, R | None], R] = build
        self._text = ""
        self._own: R | None = None
        self.held: R | None = None
        """What came last and has not been handed out."""

    def feed(self, piece: Delta | Step | Outcome, original: R | None) -> Iterator[R]:
        """The chunks that are now known to be due.

        Args:
            piece: The next of the stream; an outcome is the last.
            original: The LLM's own whole response, where the answer was not streamed from it.
        """
        if isinstance(piece, Outcome):
            self.held = None
            last = self._build(piece, original if self._own is None else self._own)
            if self._own is None:
                last.delta = piece.text.removeprefix(self._text)
            yield last
            return
        if self.held is not None:
            yield self.held
            self.held = None
        if isinstance(piece, Delta) and piece.payload is not None:
            self.held = self._own = cast("R", piece.payload)
        elif piece.text:
            self._text += piece.text
            yield self._partial(piece.text)

    def _partial(self, delta: str) -> R:
        fields: dict[str, Any] = {"text": self._text, "delta": delta}
        if self._kind is ChatResponse:
            blocks = [TextBlock(text=fields.pop("text"))]
            fields["message"] = ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks)
        return self._kind(**fields)
