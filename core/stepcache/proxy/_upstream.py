"""The way to the upstream: one client for all, no cookies, no redirects, no retries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpx

from stepcache._errors import ConfigurationError
from stepcache.proxy._errors import Answered, UpstreamFailed
from stepcache.proxy._headers import RawHeaders, end_to_end

__all__ = ["Upstream", "decoded"]

_CONNECT_SECONDS = 10.0
# Below the five seconds after which many servers close an idle connection: one that both ends use
# at once fails.
_IDLE_SECONDS = 3.0
_IDLE_CONNECTIONS = 100


class Upstream:
    """An HTTP server that requests are handed on to.

    Args:
        url: Its address. A path stands before the client's own; a ``/v1`` at its end is left out,
            for clients name it themselves.
        timeout: Seconds without a byte after which a call fails; None waits as long as the client
            does.

    Raises:
        ConfigurationError: The address or the timeout cannot work.
    """

    def __init__(self, url: str, *, timeout: float | None = None) -> None:
        self.root = _root(url)
        if timeout is not None and not timeout > 0:
            raise ConfigurationError(f"timeout is {timeout!r}: use seconds above 0, or None")
        self._url = httpx.URL(self.root)
        self._prefix = self._url.raw_path.rstrip(b"/")
        # A jar that takes nothing: one client's cookies are not another's.
        jar = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._client = httpx.AsyncClient(
            cookies=jar,
            follow_redirects=False,
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=_IDLE_CONNECTIONS,
                keepalive_expiry=_IDLE_SECONDS,
            ),
        )

    def address(self, path: bytes) -> str:
        """Where a client's path leads, without the query."""
        return str(self._url.copy_with(raw_path=self._prefix + path))

    async def send(
        self,
        method: str,
        path: bytes,
        query: bytes,
        headers: RawHeaders,
        content: bytes | AsyncIterator[bytes] | None,
    ) -> httpx.Response:
        """The response, its body still to be read; close it.

        Args:
            path: As the client wrote it, beginning with a slash.

        Raises:
            UpstreamFailed: There is none.
        """
        raw = self._prefix + path + (b"?" + query if query else b"")
        # Not by the client's own builder, which would add fields of its own.
        request = httpx.Request(
            method, self._url.copy_with(raw_path=raw), headers=list(headers), content=content
        )
        try:
            return await self._client.send(request, stream=True, auth=None)
        except httpx.TransportError as error:
            raise self.failed(error) from error

    def failed(self, error: httpx.TransportError) -> UpstreamFailed:
        """What a failure of the transport is to the client."""
        if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
            return UpstreamFailed(f"the upstream {self.root} took too long to answer", 504)
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return UpstreamFailed(
                f"the upstream {self.root} cannot be reached ({type(error).__name__}): "
                "is it running, and is --upstream its address?"
            )
        return UpstreamFailed(f"the upstream {self.root} broke off ({type(error).__name__})")

    async def whole(self, response: httpx.Response) -> Answered:
        """A response with its body, byte for byte.

        Raises:
            UpstreamFailed: It breaks off.
        """
        try:
            body = b"".join([chunk async for chunk in response.aiter_raw()])
        except httpx.TransportError as error:
            raise self.failed(error) from error
        return Answered(response.status_code, end_to_end(response.headers.raw), body)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()


def decoded(answered: Answered) -> bytes:
    """A body without its content encoding.

    Raises:
        httpx.DecodingError: It is not encoded as it says.
    """
    headers: Any = list(answered.headers)
    return httpx.Response(answered.status, headers=headers, content=answered.body).content


def _root(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"upstream is {url!r}: use an address such as http://127.0.0.1:8000/v1"
        )
    if parts.username or parts.password:
        raise ConfigurationError(
            "upstream holds a user name or password: clients send their own Authorization"
        )
    if parts.query or parts.fragment:
        raise ConfigurationError(f"upstream is {url!r}: leave out the query and the fragment")
    return url.rstrip("/").removesuffix("/v1").rstrip("/")
