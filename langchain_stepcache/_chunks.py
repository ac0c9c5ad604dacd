"""The engine's pieces as LangChain's chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from langchain_stepcache._answers import message_from, record_of, uncallable
from stepcache import Outcome, Request, Step
from stepcache.protocols import Delta

__all__ = ["Chunks"]


class Chunks:
    """Turns the engine's pieces into LangChain's chunks, the metadata on the last one only.

    Strings and token counts of chunks are concatenated and added by whoever joins them, so each
    may be said once. One chunk is held back, to be the last.
    """

    def __init__(self, request: Request, parsed: bool) -> None:
        self.done = False
        """Whether the last chunk was given; if not, the stored answer could not be served and the
        request has to be answered anew."""
        self._tools = request.contract.tools
        self._parsed = parsed
        self._held: ChatGenerationChunk | None = None
        self._steps: list[Step] = []

    def take(self, piece: Delta | Step | Outcome) -> Iterator[ChatGenerationChunk]:
        """The chunks that can be given now that one more piece has come."""
        if isinstance(piece, Outcome):
            yield from self._last(piece)
            return
        if isinstance(piece, Step) and self._tools:
            # A stored answer to a request with tools waits for its calls to be looked at.
            self._steps.append(piece)
            return
        if isinstance(piece, Delta):
            if self._held is not None:
                yield self._held
            self._held = cast("ChatGenerationChunk", piece.payload)
            return
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece.text))

    def _last(self, outcome: Outcome) -> Iterator[ChatGenerationChunk]:
        if self._held is not None:
            last = self._held.message
            last.response_metadata = {**last.response_metadata, "stepcache": outcome.summary()}
            yield self._held
            self.done = True
            return
        steps, self._steps = self._steps, []
        record = record_of(outcome)
        if outcome.route == "exact" and uncallable(record, self._tools):
            return
        for step in steps:
            yield ChatGenerationChunk(message=AIMessageChunk(content=step.text))
        self.done = True
        message, info = message_from(outcome, parsed=self._parsed, record=record)
        more = message.tool_calls or message.content != outcome.text
        pieces = [
            {
                "name": call["name"],
                "args": _json(call["args"]),
                "id": call["id"],
                "index": index,
                "type": "tool_call_chunk",
            }
            for index, call in enumerate(message.tool_calls)
        ]
        whole = message.content if more and not outcome.steps else ""
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content=whole,
                tool_call_chunks=cast("Any", pieces),
                additional_kwargs=message.additional_kwargs,
                response_metadata=message.response_metadata,
                usage_metadata=message.usage_metadata,
                chunk_position="last",
            ),
            generation_info=info,
        )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
