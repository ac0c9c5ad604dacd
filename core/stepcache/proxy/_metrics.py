"""Prometheus metrics of a proxy, where its upstream's own path for them is not in the way."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stepcache.telemetry import exposition

__all__ = ["metrics_route"]


def metrics_route() -> Route:
    """``/stepcache/metrics``: ``/metrics`` itself is the upstream's, as vLLM and llama.cpp have it.

    Goes with a :class:`~stepcache.telemetry.PrometheusListener` on the engine.
    """

    async def metrics(request: Request) -> Response:
        body, kind = exposition(accept=request.headers.get("accept", ""))
        return Response(body, headers={"content-type": kind})

    return Route("/stepcache/metrics", metrics)
