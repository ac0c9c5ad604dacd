"""Every parser and translator that reads what others wrote."""

from __future__ import annotations

from trust._fuzz import Target
from trust.targets import equations, hosts, json_values, records, schemas, serving, texts, wire

__all__ = ["ALL"]

ALL: tuple[Target, ...] = (
    equations.REQUESTS,
    equations.ANSWERS,
    json_values.EXTRACTION,
    json_values.REPAIR,
    json_values.EDITS,
    json_values.ANSWERS,
    schemas.HOSTILE,
    schemas.UNEVALUATED,
    schemas.TAME,
    texts.JSON_PROMPTS,
    texts.OPEN_TEXT,
    texts.DIFFERENCES,
    texts.SEGMENTATION,
    texts.IDENTITY,
    records.RECORDS,
    records.LINES,
    hosts.LLM_STRINGS,
    hosts.RECORDS_BACK,
    hosts.LANGCHAIN_MESSAGES,
    hosts.LLAMAINDEX,
    wire.WIRE,
    serving.SERVING,
)
