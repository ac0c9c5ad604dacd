"""``StepCache``: a LangChain ``BaseCache`` that reuses verified steps.

LangChain shows a cache two strings and asks yes or no. So this face serves byte-equal requests,
re-worded ones whose every step is verified, and deterministic changes; with a model bound to it, it
also has the missing part of an answer made. What it cannot prove is a miss, and LangChain asks the
model as ever. Nothing that goes wrong in here reaches the user's call.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGeneration, Generation

from langchain_stepcache._answers import (
    generations_record,
    message_from,
    record_of,
    reply_from,
    restored_generations,
    uncallable,
)
from langchain_stepcache._control import configured
from langchain_stepcache._llm_string import ModelKey, parse_llm_string, parse_prompt
from langchain_stepcache._ports import AsyncChatModelBackend, ChatModelBackend
from langchain_stepcache._requests import contract_of, from_neutral
from langchain_stepcache._upkeep import Upkeep
from stepcache import (
    ConfigurationError,
    Contract,
    Control,
    Message,
    NamespaceRequired,
    Outcome,
    Policy,
    Reply,
    Request,
    StepCacheEngine,
    Usage,
)
from stepcache.protocols import Listener

__all__ = ["StepCache"]

_LOOKED_INTO = ("n", "logprobs", "top_logprobs")
"""Parameters the engine reads; all others only tell requests apart."""
_MAX_REMEMBERED = 20_000
_REQUESTS = 256
_log = logging.getLogger("stepcache")


@dataclass(frozen=True, slots=True)
class _Bound:
    """A model that may be asked for missing parts, and what its ``llm_string`` begins with."""

    llm: BaseChatModel
    key: ModelKey


class StepCache(Upkeep, BaseCache):
    """Step-level reuse for ``set_llm_cache``, or for one model's ``cache=``.

    Args:
        store: Where answers are kept: None (memory), a path, a URL or a ``Store``.
        embedder: What finds similar requests; None takes the lexical one.
        namespace: The wall around these entries. LangChain does not tell a cache whose API key a
            call uses: give each tenant its own.
        tasks: Families of answers; None takes JSON, linear equations and text.
        policy: Every knob of the engine.
        ttl: Seconds an answer may be served.
        listeners: Told of every answer; see :mod:`stepcache.telemetry`.
        model: A chat model that may be asked for the missing part of its own answers; see
            :meth:`register`.
        completions: Serve text-completion models (``BaseLLM``) too. Off by default, because
            LangChain leaves their per-call arguments out of the key.
        engine: A ready engine, to share one; the arguments above it are then not used.

    Example:
        ```python
        from langchain_core.globals import set_llm_cache

        set_llm_cache(StepCache())
        ```
    """

    def __init__(
        self,
        *,
        store: Any = None,
        embedder: Any = None,
        namespace: str = "",
        tasks: Sequence[Any] | None = None,
        policy: Policy | None = None,
        ttl: float | None = None,
        listeners: Sequence[Listener] = (),
        model: BaseChatModel | None = None,
        completions: bool = False,
        engine: StepCacheEngine | None = None,
    ) -> None:
        self.engine = engine or StepCacheEngine(
            store=store,
            embedder=embedder,
            namespace=namespace,
            tasks=tasks,
            policy=policy,
            ttl=ttl,
            listeners=listeners,
        )
        self.completions = completions
        self._bound: list[_Bound] = []
        # Not where tenants are apart: one could tell by the time what another has asked.
        apart = self.engine.policy.require_namespace
        self._remembered = lru_cache(maxsize=0 if apart else _REQUESTS)(_read_request)
        if model is not None:
            self.register(model)

    def register(self, model: BaseChatModel) -> BaseChatModel:
        """Let ``model`` be asked for missing parts of answers to its own requests.

        Args:
            model: The very model the application uses; it is recognised by its serialised form,
                whatever arguments are bound to it later.

        Returns:
            The model, so that the call can wrap its construction.

        Raises:
            ConfigurationError: It is not a chat model.
        """
        if not isinstance(model, BaseChatModel):
            raise ConfigurationError(
                f"model is a {type(model).__name__}: register the chat model itself"
            )
        key = parse_llm_string(model._get_llm_string(stop=None))
        self._bound.append(_Bound(model, key))
        return model

    # --- LangChain's interface -----------------------------------------------------------------

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        try:
            asked = self._asked(prompt, llm_string)
            if asked is None:
                return None
            request, key = asked
            backend = self._backend(ChatModelBackend, request, key)
            control = Control.of(configured())
            outcome = self.engine.lookup(request, backend=backend, control=control)
            return _generations(outcome, key)
        except NamespaceRequired:
            raise
        except Exception:  # noqa: BLE001 - law 11: a cache fault is never the user's
            _log.warning("look-up failed; the model is asked instead", exc_info=True)
            return None

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        try:
            asked = self._asked(prompt, llm_string)
            if asked is None:
                return None
            request, key = asked
            backend = self._backend(AsyncChatModelBackend, request, key)
            control = Control.of(configured())
            outcome = await self.engine.alookup(request, backend=backend, control=control)
            return _generations(outcome, key)
        except NamespaceRequired:
            raise
        except Exception:  # noqa: BLE001 - law 11: a cache fault is never the user's
            _log.warning("look-up failed; the model is asked instead", exc_info=True)
            return None

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        try:
            asked = self._asked(prompt, llm_string)
            if asked is not None:
                request, key = asked
                control = Control.of(configured())
                self.engine.admit(request, _reply(return_val, key), control=control)
        except NamespaceRequired:
            raise
        except Exception:  # noqa: BLE001 - law 11: a cache fault is never the user's
            _log.warning("keeping an answer failed; the answer itself is unharmed", exc_info=True)

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        try:
            asked = self._asked(prompt, llm_string)
            if asked is not None:
                request, key = asked
                control = Control.of(configured())
                await self.engine.aadmit(request, _reply(return_val, key), control=control)
        except NamespaceRequired:
            raise
        except Exception:  # noqa: BLE001 - law 11: a cache fault is never the user's
            _log.warning("keeping an answer failed; the answer itself is unharmed", exc_info=True)

    def clear(self, **kwargs: Any) -> None:
        """Remove every entry of the store."""
        self.engine.clear()

    async def aclear(self, **kwargs: Any) -> None:
        """As :meth:`clear`."""
        await self.engine.aclear()

    # --- inside --------------------------------------------------------------------------------

    def _asked(self, prompt: str, llm_string: str) -> tuple[Request, ModelKey] | None:
        """The request behind the two strings; None when it is not ours to answer."""
        short = len(prompt) + len(llm_string) <= _MAX_REMEMBERED
        read = self._remembered if short else _read_request
        return read(prompt, llm_string, self.completions)

    def _backend(self, kind: type[Any], request: Request, key: ModelKey) -> Any:
        for bound in self._bound:
            if _same_model(bound.key, key):
                kwargs = {k: v for k, v in key.arguments.items() if k not in bound.key.arguments}
                return kind(
                    bound.llm,
                    from_neutral(request.messages, ()),
                    stop=key.arguments.get("stop"),
                    kwargs=kwargs,
                )
        return None


def _read_request(
    prompt: str, llm_string: str, completions: bool
) -> tuple[Request, ModelKey] | None:
    side = _model_side(llm_string)
    key = side.key
    messages = parse_prompt(prompt)
    if messages is None:
        if key.completion and not completions:
            return None
        # Not a conversation: the strings themselves are the request, byte for byte.
        raw = Message(role="prompt", text=prompt)
        return Request(messages=(raw,), model=_sha(llm_string)), key
    request = Request(
        messages=messages, model=side.model, params=side.params, contract=side.contract
    )
    return request, key


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelSide:
    """All of a request that an ``llm_string`` tells."""

    key: ModelKey
    model: str
    """Digest of everything that is identity and that no tier looks into."""
    params: Mapping[str, Any]
    contract: Contract


def _model_side(llm_string: str) -> _ModelSide:
    # An application has few models and asks them often; monstrous strings are not worth keeping.
    if len(llm_string) > _MAX_REMEMBERED:
        return _read_model_side(llm_string)
    return _remembered_model_side(llm_string)


def _read_model_side(llm_string: str) -> _ModelSide:
    key = parse_llm_string(llm_string)
    if not key.exact:
        contract = Contract(opaque=True)
        return _ModelSide(key=key, model=_sha(llm_string), params={}, contract=contract)
    contract, params = contract_of(key.arguments)
    looked_into = {name: params.pop(name) for name in _LOOKED_INTO if name in params}
    try:
        told = json.dumps([key.model, params], sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):  # no JSON form, so no identity: the engine says so
        return _ModelSide(
            key=key, model=key.model, params={**params, **looked_into}, contract=contract
        )
    return _ModelSide(key=key, model=_sha(told), params=looked_into, contract=contract)


_remembered_model_side = lru_cache(maxsize=256)(_read_model_side)


def _same_model(registered: ModelKey, asked: ModelKey) -> bool:
    if registered.model or asked.model:
        return registered.model == asked.model
    own = {k: v for k, v in registered.arguments.items() if k != "stop"}
    return bool(own) and all(asked.arguments.get(k) == v for k, v in own.items())


def _reply(generations: Sequence[Generation], key: ModelKey) -> Reply:
    if len(generations) == 1 and isinstance(generations[0], ChatGeneration):
        return reply_from(generations[0], tools=_tools(key))
    # Plain generations, and several samples of one prompt: kept and handed back as they came.
    record = generations_record(generations)
    finish = [str((g.generation_info or {}).get("finish_reason") or "stop") for g in generations]
    return Reply(
        text="",
        usage=Usage(calls=1),
        message=record,
        finish_reason=finish[0] if record and len(set(finish)) == 1 else "unreadable",
        reusable=False,
    )


def _tools(key: ModelKey) -> Sequence[Any]:
    tools = key.arguments.get("tools")
    return tools if isinstance(tools, (list, tuple)) else ()


def _generations(outcome: Outcome, key: ModelKey) -> list[Generation] | None:
    if not outcome.served:
        return None
    record = record_of(outcome)
    if uncallable(record, _tools(key)):
        return None
    several = restored_generations(record, outcome)
    if several is not None:
        return several or None
    # A class shows as its repr: its caller's parser looks for an object beside the text.
    wanted = key.arguments.get("response_format")
    parsed = isinstance(wanted, str) and wanted.startswith("< class")
    message, info = message_from(outcome, parsed=parsed, record=record)
    return [ChatGeneration(message=message, generation_info=info)]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
