"""Two hundred streams at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import openai

from .conftest import Upstream, http, until

Make = Callable[..., tuple[Upstream, str]]
STREAMS = 200
REPEATS = 50


async def test_two_hundred_streams_at_once(behind: Make) -> None:
    """All are open at the same time, each gets its own answer, whole; equal ones share theirs."""
    everybody = asyncio.Event()
    open_now = 0

    async def script(seen: Any, receive: Any, send: Any) -> None:
        nonlocal open_now
        number = json.loads(seen.body)["messages"][0]["content"].split()[-1]
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": event("Number"), "more_body": True})
        open_now += 1
        if open_now == STREAMS:
            everybody.set()
        # Nobody is answered before everybody has begun.
        await everybody.wait()
        for piece in (" ", "is ", number, "."):
            await send({"type": "http.response.body", "body": event(piece), "more_body": True})
        last = event("", "stop") + b"data: [DONE]\n\n"
        await send({"type": "http.response.body", "body": last})

    def event(text: str, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
        return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"

    upstream, url = behind(script)

    async def ask(client: openai.AsyncOpenAI, number: int) -> str:
        stream = await client.chat.completions.create(
            model="m",
            stream=True,
            messages=[{"role": "user", "content": f"Say the number {number}"}],
        )
        return "".join([c.choices[0].delta.content or "" async for c in stream])

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=300) as shared:
        client = openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0, http_client=shared)
        numbers = range(STREAMS)
        texts = await asyncio.gather(*(ask(client, number) for number in numbers))
        assert texts == [f"Number is {number}." for number in numbers]
        assert len(upstream.seen) == STREAMS
        again = await asyncio.gather(*(ask(client, number) for number in range(REPEATS)))
        assert again == texts[:REPEATS]
        same = await asyncio.gather(*(ask(client, STREAMS) for _ in range(REPEATS)))
        assert set(same) == {f"Number is {STREAMS}."}
        assert len(upstream.seen) == STREAMS + 1
    stats = url.removesuffix("v1") + "stepcache/stats"
    until(lambda: http.get(stats).json()["in_flight"] == 0)
    told = http.get(stats).json()
    assert told["routes"] == {"miss": STREAMS + 1, "exact": 2 * REPEATS - 1}
    assert (told["faults"], told["upstream_errors"]) == (0, 0)
