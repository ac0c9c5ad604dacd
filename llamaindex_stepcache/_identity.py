"""What of an LLM can change an answer, as plain data that is safe to keep.

Secrets are never kept in clear: a key, a token or a header becomes its SHA-256, so that two
accounts stay two strangers. What has no JSON form is left as it is: the engine then finds no safe
identity for the request, asks the model and keeps nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from inspect import isfunction, ismethod
from types import CodeType
from typing import Any
from urllib.parse import urlsplit

from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.llms.llm import LLM
from pydantic import BaseModel, SecretStr

__all__ = ["model_identity", "plain", "prompt_functions", "settings_of"]

_MAX_DEPTH = 64
_ENDPOINT = ("api_base", "base_url", "azure_endpoint", "endpoint", "endpoint_url", "host")
_SECRET_WORDS = frozenset(
    (
        *("key", "secret", "password", "token", "authorization", "auth", "cookie", "cookies"),
        *("credential", "credentials", "header", "headers", "bearer"),
    )
)
# Fields that reach no model, or only through what the host hands to chat() and complete().
_MACHINERY = frozenset(
    (
        *("callback_manager", "rate_limiter", "messages_to_prompt", "completion_to_prompt"),
        *("output_parser", "pydantic_program_mode", "query_wrapper_prompt", "timeout"),
        *("request_timeout", "max_retries", "reuse_client", "http_client", "async_http_client"),
        *("keep_alive", "verbose", *_ENDPOINT),
    )
)


def model_identity(llm: LLM, metadata: LLMMetadata) -> str:
    """Class, model and endpoint as one text. Credentials inside an address are hashed."""
    kind = f"{type(llm).__module__}.{type(llm).__qualname__}"
    addresses = (getattr(llm, name, None) for name in _ENDPOINT)
    endpoint = [_address(str(address)) for address in addresses if address]
    return " ".join((kind, metadata.model_name, *endpoint))


def settings_of(llm: LLM) -> dict[str, Any]:
    """The LLM's own sampling fields and whatever else of it may change an answer."""
    settings: dict[str, Any] = {
        name: plain({name: getattr(llm, name, None)}, seal=True)[name]
        for name in type(llm).model_fields
        if name not in _MACHINERY
    }
    wrapper = getattr(llm, "query_wrapper_prompt", None)
    if wrapper is not None:
        settings["query_wrapper_prompt"] = _template(wrapper)
    for name, value in (llm.__pydantic_private__ or {}).items():
        # An adapter may hide its model in a private attribute; clients and locks are no settings.
        if isinstance(value, (str, bool, int, float)):
            settings[f"private {name}"] = _sealed(value)
        elif isinstance(value, BaseModel):
            settings[f"private {name}"] = _sealed(_dumped(value, lenient=True))
    return settings


def prompt_functions(llm: LLM, metadata: LLMMetadata, kind: str, formatted: bool) -> dict[str, Any]:
    """Identity of the functions that the LLM itself applies to a prompt of this kind."""
    if kind == "complete":
        return {} if formatted else {"prompt": _function(llm.completion_to_prompt, llm)}
    if metadata.is_chat_model and not isinstance(llm, CustomLLM):
        return {}
    return {"prompt": _function(llm.messages_to_prompt, llm)}


def plain(value: Any, *, seal: bool = False) -> Any:
    """JSON-able data where there is such a form, the value itself where there is none.

    Args:
        value: Anything a call or an LLM may hold; deeper than 64 levels it is left as it is.
        seal: Whether what stands under the name of a secret is replaced by its hash: for settings,
            never for content, where a field called ``token`` is just a field.
    """
    return _plain(value, "", seal, 0)


def _plain(value: Any, name: str, seal: bool, depth: int) -> Any:
    if isinstance(value, SecretStr):
        return _sealed(value.get_secret_value())
    if isinstance(value, Enum):
        return _plain(value.value, name, seal, depth + 1)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, BaseModel):
        dumped = _dumped(value)
        return value if dumped is value else _plain(dumped, name, seal, depth + 1)
    if seal and _is_secret(name):
        return _sealed(value)
    if isinstance(value, Mapping):
        return {key: _plain(item, str(key), seal, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, "", seal, depth + 1) for item in value]
    return value


def _is_secret(name: str) -> bool:
    return not _SECRET_WORDS.isdisjoint(name.casefold().replace("-", "_").split("_"))


def _sealed(value: Any) -> Any:
    try:
        text = json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return value
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def _dumped(value: BaseModel, *, lenient: bool = False) -> Any:
    """The object's fields as JSON-able data; the object itself when they cannot be had."""
    try:
        if lenient:
            return value.model_dump(
                mode="json", warnings=False, fallback=lambda item: type(item).__qualname__
            )
        return value.model_dump(mode="json", warnings=False)
    except Exception:  # noqa: BLE001 - a serialiser of somebody else's may raise anything
        return value


def _function(function: Any, llm: LLM) -> Any:
    """A function as its name and the hash of its code; one that closes over values, or a callable
    object, has no such identity and is left as it is."""
    if ismethod(function) and function.__self__ is llm:  # whose settings are identity already
        return _function(function.__func__, llm)
    if not isfunction(function) or function.__closure__ or function.__kwdefaults__:
        return function
    code = _sealed([_code(function.__code__), plain(function.__defaults__)])
    return {f"{function.__module__}.{function.__qualname__}": code}


def _code(code: CodeType) -> list[Any]:
    """What a function does. Not its place in a file, so that it may move."""
    constants = [
        _code(item)
        if isinstance(item, CodeType)
        else sorted(map(repr, item))
        if isinstance(item, frozenset)
        else repr(item)
        for item in code.co_consts
    ]
    return [code.co_code.hex(), code.co_names, code.co_varnames, constants]


def _template(prompt: Any) -> Any:
    try:
        return plain(prompt.get_template())
    except Exception:  # noqa: BLE001 - a prompt class of somebody else's may raise anything
        return prompt


def _address(address: str) -> str:
    try:
        parts = urlsplit(address)
        login, at, place = parts.netloc.rpartition("@")
    except ValueError:
        return str(_sealed(address))
    if not at and not parts.query:
        return address.rstrip("/")
    host = f"{_sealed(login)}@{place}" if at else place
    return parts._replace(netloc=host, query=_sealed(parts.query)).geturl()
