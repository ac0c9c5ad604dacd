"""Embedders: texts to vectors. Import one by name; nothing is loaded before that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepcache.embedders._lexical import LexicalEmbedder
    from stepcache.embedders._onnx import OnnxEmbedder
    from stepcache.embedders._sentence_transformer import SentenceTransformerEmbedder

__all__ = ["LexicalEmbedder", "OnnxEmbedder", "SentenceTransformerEmbedder"]

_HOMES = {
    "LexicalEmbedder": "stepcache.embedders._lexical",
    "OnnxEmbedder": "stepcache.embedders._onnx",
    "SentenceTransformerEmbedder": "stepcache.embedders._sentence_transformer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
