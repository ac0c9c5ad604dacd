"""Canonical JSON, scopes and keys: what makes two requests the same, or strangers.

Everything that can change an answer and is not a typed constraint is identity. Keys are SHA-256
over canonical JSON (sorted keys, no white space, ASCII), whose quoting makes every length explicit:
no two different values share a text. Nothing that has no JSON form gets in: a ``repr`` may hold an
address, and the order of a set is chance.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import math
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from stepcache._types import Constraints, Message, Request

__all__ = ["Identity", "canonical_json", "canonical_key", "digest", "identify"]

_FORMAT = "stepcache/1"
_MAX_DEPTH = 64

_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, check_circular=False
)
_SCOPES_KNOWN = 1024
_WORTH_A_HASH = 1024
_scopes: dict[str | bytes, str] = {}
"""Scopes by all that is in them: of a host's calls, most differ by the last text only."""


class Identity(NamedTuple):
    """Where a request belongs and what it is."""

    scope: str
    """Requests of one scope may share work."""
    exact_key: str
    """Requests of one exact key are the same request."""


def canonical_json(value: Any) -> str:
    """One text per JSON value, whatever the order of its keys.

    Args:
        value: None, bool, int, finite float, str, list, tuple or mapping with string keys. A whole
            float equals its int, as in JSON itself (``0.0`` and ``0`` are one value).

    Raises:
        ValueError: A value without a JSON form (an object, NaN, a set), with its path.
    """
    return _ENCODER.encode(_plain(value, "$", 0))


def digest(*values: Any) -> str:
    """SHA-256, as hex, over canonical JSON of all the values and this format's version."""
    return hashlib.sha256(canonical_json([_FORMAT, *values]).encode("ascii")).hexdigest()


def identify(request: Request, scope: str | None = None) -> Identity:
    """The scope and exact key of a request.

    Args:
        scope: Where to take the request for being; None finds out.

    Raises:
        ValueError: The request holds something without a JSON form, so it has no safe identity.
    """
    if scope is None:
        scope = _known_scope(request)
    if request.contract.schema is None:
        # What canonical_json says of such a list, without walking it.
        text = f'["{_FORMAT}","exact","{scope}",{encode_basestring_ascii(request.text)},null]'
        return Identity(scope, hashlib.sha256(text.encode("ascii")).hexdigest())
    return Identity(scope, digest("exact", scope, request.text, request.contract.schema))


def _known_scope(request: Request) -> str:
    known = _likeness(request)
    scope = _scopes.get(known) if known is not None else None
    if scope is None:
        scope = _scope(request)
        if known is not None:
            if len(_scopes) >= _SCOPES_KNOWN:
                _scopes.clear()
            _scopes[known] = scope
    return scope


def _scope(request: Request) -> str:
    earlier, closing = request.messages[:-1], request.messages[-1:]
    readable = bool(closing) and closing[0].role == "user"
    return digest(
        "scope",
        request.namespace,
        request.model,
        request.params,
        [_turn(message) for message in earlier],
        # The closing user text is what tasks read; of any other closing message all is identity.
        [[m.role, m.extra] if readable else _turn(m) for m in closing],
        list(request.contract.tools),
        request.contract.tool_choice,
        request.contract.response_format,
        request.task,
    )


def _likeness(request: Request) -> str | bytes | None:
    """Exactly what the scope is of, types told apart, or a hash of it where it is long; None where
    it is of no plain values. Equal scopes may have several (key order, 0 and 0.0), different ones
    never share one."""
    turns: Any = [(m.role, m.text, dict(m.extra) if m.extra else None) for m in request.messages]
    if turns and turns[-1][0] == "user":
        turns[-1] = (turns[-1][0], None, turns[-1][2])
    contract, params = request.contract, request.params
    parts: Any = (
        request.namespace,
        request.model,
        dict(params) if params else None,
        turns,
        contract.tools,
        contract.tool_choice,
        contract.response_format,
        request.task,
    )
    try:
        whole = marshal.dumps(parts, 2)
    except ValueError:  # something marshal does not take, a mapping of another kind for one
        return None
    return whole if len(whole) <= _WORTH_A_HASH else hashlib.sha256(whole).hexdigest()


def canonical_key(scope: str, constraints: Constraints, residue: tuple[str, ...]) -> str:
    """Key of what a request demands, however it is worded."""
    return digest(
        "canonical",
        scope,
        constraints.task,
        constraints.version,
        constraints.values,
        list(residue),
    )


def _turn(message: Message) -> list[Any]:
    return [message.role, message.text, message.extra]


def _plain(value: Any, path: str, depth: int) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if depth > _MAX_DEPTH:
        raise ValueError(f"{path} is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{path} is {value!r}, which JSON cannot hold")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Mapping):
        plain: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{path} has the key {key!r}: JSON keys are strings")
            plain[key] = _plain(item, f"{path}.{key}", depth + 1)
        return plain
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise ValueError(f"{path} is a {type(value).__name__}, which has no JSON form")
