"""What no cache is for: handed on byte for byte, in both directions, as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx

from stepcache.proxy._asgi import Body, Responder, Scope, raw_path
from stepcache.proxy._errors import Answered, UpstreamFailed
from stepcache.proxy._headers import end_to_end, forwarded, value_of
from stepcache.proxy._tally import Tally
from stepcache.proxy._upstream import Upstream

__all__ = ["hand_on", "hand_over", "report_failure"]


async def hand_on(
    upstream: Upstream, scope: Scope, body: Body, responder: Responder, tally: Tally
) -> None:
    """Ask the upstream as the client asked, and answer as the upstream answers."""
    headers = scope["headers"]
    try:
        response = await upstream.send(
            scope["method"],
            raw_path(scope),
            scope.get("query_string", b""),
            forwarded(headers),
            await _content(headers, body),
        )
    except UpstreamFailed as error:
        await report_failure(responder, error, tally)
        return
    if response.is_error:
        tally.upstream_errors += 1
    async with aclosing(response):
        await responder.start(response.status_code, end_to_end(response.headers.raw))
        try:
            async for chunk in response.aiter_raw():
                await responder.more(chunk)
        except httpx.TransportError:
            # What the upstream broke off is broken off here too, or a part would pass for the
            # whole.
            tally.upstream_errors += 1
            return
        await responder.more(b"", last=True)


async def hand_over(
    responder: Responder,
    answered: Answered,
    more: list[tuple[bytes, bytes]] | None = None,
) -> None:
    """An upstream's response, unchanged but for fields of ours."""
    await responder.whole(answered.status, [*answered.headers, *(more or ())], answered.body)


async def report_failure(responder: Responder, error: UpstreamFailed, tally: Tally) -> None:
    """Say that there is no response from the upstream."""
    tally.upstream_errors += 1
    code = "upstream_timeout" if error.status == 504 else "upstream_unreachable"
    await responder.error(error.status, str(error), kind="upstream_error", code=code)


async def _content(
    headers: list[tuple[bytes, bytes]], body: Body
) -> AsyncIterator[bytes] | bytes | None:
    """The body to send; None where the client sends none, for not to send one is a statement."""
    length = value_of(headers, "content-length")
    if length is None and value_of(headers, "transfer-encoding") is None:
        await body.gather(0)
        return body.head or None
    if body.complete.is_set():
        return body.head
    return aiter(body)
