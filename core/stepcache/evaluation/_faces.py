"""The caches that can be evaluated: an engine, or anything that LangChain takes for a cache."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from stepcache._errors import ConfigurationError
from stepcache._types import Message, ModelCall, Outcome, Reply, Request
from stepcache.engine import StepCacheEngine

__all__ = ["EngineFace", "Face", "LangChainFace", "Served", "load_engine", "load_face"]

# What LangChain hands to a cache beside the prompt: the model, serialised, and its arguments.
_LLM_STRING = (
    '{"id": ["stepcache", "evaluation", "Model"], "kwargs": {"model_name": "stand-in"}, '
    '"lc": 1, "type": "constructor"}---[(\'stop\', None)]'
)


@dataclass(frozen=True, slots=True)
class Served:
    """A hit."""

    text: str
    route: str = "hit"
    reason: str = "the cache answered"


class Face(Protocol):
    """A cache as an evaluation sees it."""

    @property
    def name(self) -> str:
        """For the report."""

    def reset(self) -> None:
        """Remove every entry."""

    def admit(self, messages: tuple[Message, ...], answer: str, /) -> str | None:
        """Have the answer to a conversation kept; returns what is kept, None if nothing is."""

    def ask(self, messages: tuple[Message, ...], /) -> Served | None:
        """What the cache serves for a conversation, without a model; None for a miss."""


class EngineFace:
    """A :class:`~stepcache.StepCacheEngine`; the default one has the default policy.

    The answer is what a model gives when the engine asks it, so that the engine's own checks apply:
    where a family of requests has a deterministic answer, that is what is kept in the end.
    """

    def __init__(self, engine: StepCacheEngine | None = None) -> None:
        self.engine = engine if engine is not None else StepCacheEngine()
        self.name = type(self.engine).__name__

    def reset(self) -> None:
        self.engine.clear()

    def admit(self, messages: tuple[Message, ...], answer: str, /) -> str | None:
        outcome = self.engine.resolve(Request(messages=messages), backend=_Says(answer))
        return outcome.text if outcome.entry_id is not None else None

    def ask(self, messages: tuple[Message, ...], /) -> Served | None:
        outcome: Outcome = self.engine.lookup(Request(messages=messages))
        if not outcome.served:
            return None
        return Served(outcome.text, outcome.route, outcome.reason)


class LangChainFace:
    """Any LangChain ``BaseCache``, as a chat model calls it. Its entries are removed.

    Args:
        plain: Hand over the closing message's text alone, as text-completion models do, instead of
            the serialised conversation.
    """

    def __init__(self, cache: Any, *, plain: bool = False) -> None:
        self.cache = cache
        self.plain = plain
        self.name = type(cache).__name__

    def reset(self) -> None:
        self.cache.clear()

    def admit(self, messages: tuple[Message, ...], answer: str, /) -> str | None:
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, Generation

        kept: Generation = Generation(text=answer)
        if not self.plain:
            message = AIMessage(answer, response_metadata={"finish_reason": "stop"})
            kept = ChatGeneration(message=message, generation_info={"finish_reason": "stop"})
        prompt = self._prompt(messages)
        self.cache.update(prompt, _LLM_STRING, [kept])
        # LangChain's caches do not say whether they kept it; asking for the very same does.
        found = self.cache.lookup(prompt, _LLM_STRING)
        return str(found[0].text) if found else None

    def ask(self, messages: tuple[Message, ...], /) -> Served | None:
        found = self.cache.lookup(self._prompt(messages), _LLM_STRING)
        return Served(str(found[0].text)) if found else None

    def _prompt(self, messages: tuple[Message, ...]) -> str:
        if self.plain:
            return messages[-1].text
        from langchain_core.load import dumps
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

        kinds: dict[str, Callable[[str], Any]] = {"system": SystemMessage, "assistant": AIMessage}
        return dumps([kinds.get(m.role, HumanMessage)(m.text) for m in messages])


def load_face(target: str | None, *, plain: bool = False) -> Face:
    """The face of what ``module:attribute`` names; the default engine for None.

    The attribute is an engine, a LangChain cache, or a class or function without arguments that
    gives one.

    Raises:
        ConfigurationError: It cannot be imported, or is neither.
    """
    if target is None:
        return EngineFace()
    found = _imported(target)
    if isinstance(found, StepCacheEngine):
        return EngineFace(found)
    if _is_cache(found):
        return LangChainFace(found, plain=plain)
    raise ConfigurationError(
        f"{target!r} is a {type(found).__name__}: name a StepCacheEngine or a LangChain BaseCache"
    )


def load_engine(target: str) -> StepCacheEngine:
    """The engine that ``module:attribute`` names, or that what it names has.

    Raises:
        ConfigurationError: It cannot be imported, or there is none.
    """
    found = _imported(target)
    engine = found if isinstance(found, StepCacheEngine) else getattr(found, "engine", None)
    if not isinstance(engine, StepCacheEngine):
        raise ConfigurationError(
            f"{target!r} is a {type(found).__name__}: name a StepCacheEngine, or what has one"
        )
    return engine


def _imported(target: str) -> Any:
    """What ``module:attribute`` names; classes and functions are called first."""
    module, _, attribute = target.partition(":")
    if not module or not attribute:
        raise ConfigurationError(f"{target!r} names no cache: write module:attribute")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"{target!r} cannot be imported: {error}") from error
    if isinstance(found, type) or (callable(found) and not _is_cache(found)):
        found = found()
    return found


def _is_cache(found: Any) -> bool:
    return all(callable(getattr(found, name, None)) for name in ("lookup", "update", "clear"))


@dataclass(frozen=True, slots=True)
class _Says:
    """A model that answers the same whatever it is asked."""

    answer: str

    def generate(self, call: ModelCall, /) -> Reply:
        return Reply(text=self.answer)
