"""The schema that the host writes into a prompt, for an LLM that can be told of it no other way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.output_parsers.pydantic import PYDANTIC_FORMAT_TMPL

from stepcache import Message

__all__ = ["lift_schema"]

_BEFORE, _, _AFTER = PYDANTIC_FORMAT_TMPL.partition("{schema}")
_MAX_CHARS = 200_000


def lift_schema(
    messages: Sequence[Message],
) -> tuple[tuple[Message, ...], Mapping[str, Any]] | None:
    """The messages without the schema the host wrote into one of them, and that schema.

    Only for calls of which we know that the host wrote it: in any other prompt, the same words are
    the user's own.
    """
    for at, message in enumerate(messages):
        start = message.text.rfind(_BEFORE)
        stop = message.text.find(_AFTER, start + len(_BEFORE))
        if start < 0 or stop < 0:
            continue
        schema = _read(message.text[start + len(_BEFORE) : stop])
        if schema is None:
            return None
        text = message.text[:start] + message.text[stop + len(_AFTER) :]
        return (*messages[:at], replace(message, text=text.rstrip()), *messages[at + 1 :]), schema
    return None


def _read(text: str) -> Mapping[str, Any] | None:
    if len(text) > _MAX_CHARS:
        return None
    if text.startswith("{{"):
        # The host doubles braces for a formatting that does not always come.
        text = text.replace("{{", "{").replace("}}", "}")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return schema if isinstance(schema, dict) else None
