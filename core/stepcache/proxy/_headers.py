"""HTTP headers: what passes, who is asking, and what a request wishes of the cache. Pure.

Sources: RFC 9110, 7.6.1 (connection-specific fields); RFC 9111, 5.2.1 (request directives).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stepcache._errors import UsageError
from stepcache._types import Control, Outcome

__all__ = [
    "RawHeaders",
    "Wishes",
    "credentials_of",
    "end_to_end",
    "forwarded",
    "identity_of",
    "told",
    "value_of",
    "wishes_of",
]

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Header fields in their order, names as they came; one name may stand several times."""

_OURS = b"x-stepcache"
_MAX_NAMESPACE = 256

_CONNECTION = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
_CREDENTIALS = frozenset(
    (
        *(b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key", b"cookie"),
        *(b"openai-organization", b"openai-project"),
    )
)
# Fields that vary from call to call or from client to client and change no answer. What is not
# named here is part of a request's identity.
_NOISE = frozenset(
    (
        *(b"accept", b"accept-charset", b"accept-encoding", b"content-encoding", b"content-length"),
        *(b"content-type", b"cache-control", b"pragma", b"date", b"dnt", b"expect", b"host"),
        *(b"max-forwards", b"priority", b"user-agent", b"referer", b"http-referer", b"x-title"),
        *(b"idempotency-key", b"x-request-id", b"request-id", b"x-client-request-id"),
        *(b"x-correlation-id", b"correlation-id", b"traceparent", b"tracestate", b"baggage", b"b3"),
        *(b"sentry-trace", b"uber-trace-id", b"x-cloud-trace-context", b"via", b"forwarded"),
        *(b"x-real-ip", b"x-session-id", b"langsmith-trace", b"x-amzn-trace-id"),
    )
)
_NOISE_BEGINNINGS = (
    *(b"sec-", b"x-stainless-", b"x-forwarded-", b"x-b3-", b"x-datadog-", b"x-envoy-", b"cf-"),
    *(b"x-ot-", b"ot-", b"true-client-"),
)
_WORDS = ("bypass", "refresh", "only-if-cached")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What one request asks of the cache."""

    control: Control
    only_if_cached: bool


def value_of(headers: RawHeaders, name: str) -> str | None:
    """The values of a field, joined with commas as HTTP allows; None without one."""
    wanted = name.lower().encode("latin-1")
    found = [value for key, value in headers if key.lower() == wanted]
    return b", ".join(found).decode("latin-1") if found else None


def end_to_end(headers: RawHeaders, without: Collection[bytes] = ()) -> list[tuple[bytes, bytes]]:
    """The fields that go on to the next hop.

    Args:
        without: More names to leave out, in lower case.
    """
    named = {
        token.strip().lower()
        for key, value in headers
        if key.lower() == b"connection"
        for token in value.split(b",")
    }
    dropped = _CONNECTION | named | set(without)
    return [(key, value) for key, value in headers if key.lower() not in dropped]


def forwarded(headers: RawHeaders) -> list[tuple[bytes, bytes]]:
    """A client's fields as the upstream gets them."""
    # Host is the upstream's own, and its server has already answered an Expect.
    passing = end_to_end(headers, (b"host", b"expect"))
    return [(key, value) for key, value in passing if not key.lower().startswith(_OURS)]


def credentials_of(headers: RawHeaders) -> str:
    """A digest of who is asking, the empty string for nobody. Keys themselves are kept nowhere.

    Args:
        headers: As they are forwarded: what the upstream does not see is no credential.
    """
    given = sorted((key.lower(), value) for key, value in headers if key.lower() in _CREDENTIALS)
    if not given:
        return ""
    state = hashlib.sha256(b"stepcache/proxy/credentials/1")
    for key, value in given:
        for part in (key, value):
            state.update(len(part).to_bytes(8, "big") + part)
    return state.hexdigest()[:32]


def identity_of(headers: RawHeaders, ignored: Collection[bytes] = ()) -> list[list[str]]:
    """The fields that may change an answer: all but credentials and well-known noise.

    Args:
        ignored: Names, in lower case, that this installation knows to change nothing.
    """
    return sorted(
        [key.lower().decode("latin-1"), value.decode("latin-1")]
        for key, value in headers
        if not (
            key.lower() in _CREDENTIALS
            or key.lower() in _NOISE
            or key.lower() in ignored
            or key.lower().startswith(_NOISE_BEGINNINGS)
        )
    )


def wishes_of(headers: RawHeaders) -> Wishes:
    """What the fields ask of the cache.

    ``X-StepCache: bypass | refresh | only-if-cached``, else ``Cache-Control`` with ``no-store``
    (bypass), ``no-cache`` (refresh) or ``only-if-cached``; ``X-StepCache-Namespace``,
    ``X-StepCache-TTL`` in seconds, ``X-StepCache-Tags`` with commas.

    Raises:
        UsageError: A field of ours says something that does not exist.
    """
    word = (value_of(headers, "x-stepcache") or "").strip().lower()
    if word and word not in _WORDS:
        raise UsageError(f"X-StepCache is {word!r}: use one of {', '.join(_WORDS)}")
    if not word:
        asked = {
            part.strip().lower() for part in (value_of(headers, "cache-control") or "").split(",")
        }
        by_directive = (
            ("no-store", "bypass"),
            ("only-if-cached", "only-if-cached"),
            ("no-cache", "refresh"),
        )
        word = next((word for name, word in by_directive if name in asked), "")
    if len(value_of(headers, "x-stepcache-namespace") or "") > _MAX_NAMESPACE:
        raise UsageError(f"X-StepCache-Namespace is longer than {_MAX_NAMESPACE} characters")
    tags = (value_of(headers, "x-stepcache-tags") or "").split(",")
    return Wishes(
        control=Control(
            bypass=word == "bypass",
            refresh=word == "refresh",
            ttl=_seconds(value_of(headers, "x-stepcache-ttl")),
            tags=tuple(tag.strip() for tag in tags if tag.strip()),
        ),
        only_if_cached=word == "only-if-cached",
    )


def told(outcome: Outcome) -> list[tuple[bytes, bytes]]:
    """What response headers say of an answer. Quotes nothing of it."""
    said = {
        "X-StepCache-Route": outcome.route,
        "X-StepCache-Tokens-Spent": str(outcome.spent.tokens),
        "X-StepCache-Tokens-Avoided": str(outcome.avoided.tokens),
    }
    if outcome.code:
        said["X-StepCache-Reason"] = outcome.code
    if outcome.entry_id is not None:
        said["X-StepCache-Entry"] = outcome.entry_id
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in said.items()]


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"X-StepCache-TTL is {text!r}: use seconds above 0")
    return seconds
