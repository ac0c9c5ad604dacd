"""Pieces of the engine's stream as the host's chunks."""

from __future__ import annotations

from collections.abc import Callable
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

    One chunk is held back until the next piece comes, for the last one carries the summary.

    Args:
        kind: Class of the chunks.
        build: Makes the last chunk of an outcome and, where there is one, the LLM's own last chunk.
    """

    def __init__(self, kind: type[R], build: Callable[[Outcome, R | None], R]) -> None:
        self._kind: type[R] = kind
        self._build: Callable[[Outcome, R | None], R] = build
        self._text = ""
        self._due = ""
        """The part of the text that the held chunk brings."""
        self._own: R | None = None
        self.held: R | None = None
        """What came last and has not been handed out."""

    def feed(self, piece: Delta | Step | Outcome, original: R | None) -> R | None:
        """The chunk that is now known to be due; None when it has to wait.

        Args:
            piece: The next of the stream; an outcome is the last.
            original: The LLM's own whole response, where the answer was not streamed from it.
        """
        if isinstance(piece, Outcome):
            self.held = None
            last = self._build(piece, original if self._own is None else self._own)
            if self._own is None:
                shown = self._text.removesuffix(self._due)
                last.delta = piece.text.removeprefix(shown)
            return last
        ready = self.held
        if isinstance(piece, Delta) and piece.payload is not None:
            self.held = self._own = cast("R", piece.payload)
        else:
            self._text, self._due = self._text + piece.text, piece.text
            self.held = self._partial()
        return ready

    def _partial(self) -> R:
        fields: dict[str, Any] = {"text": self._text, "delta": self._due}
        if self._kind is ChatResponse:
            blocks = [TextBlock(text=fields.pop("text"))]
            fields["message"] = ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks)
        return self._kind(**fields)
