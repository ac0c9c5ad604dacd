"""Listeners for ``StepCacheEngine(listeners=[...])``: metrics, spans, log lines, a log of traces.

    >>> from stepcache import StepCacheEngine
    >>> from stepcache.telemetry import LogListener, Savings
    >>> savings = Savings()
    >>> engine = StepCacheEngine(listeners=[LogListener(), savings])

Several may listen at once, and none can hurt an answer. None writes a text of a request or an
answer anywhere unless it is told to. Nothing is loaded before it is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepcache.telemetry._log import LogListener
    from stepcache.telemetry._opentelemetry import OpenTelemetryListener
    from stepcache.telemetry._prices import Price, PriceTable, published_prices
    from stepcache.telemetry._prometheus import PrometheusListener, exposition, metrics_app
    from stepcache.telemetry._savings import Saved, Savings
    from stepcache.telemetry._trace_log import TraceLog, read_trace_log
    from stepcache.telemetry._trace_record import TraceRecord

__all__ = [
    "LogListener",
    "OpenTelemetryListener",
    "Price",
    "PriceTable",
    "PrometheusListener",
    "Saved",
    "Savings",
    "TraceLog",
    "TraceRecord",
    "exposition",
    "metrics_app",
    "published_prices",
    "read_trace_log",
]

_HOMES = {
    "LogListener": "stepcache.telemetry._log",
    "OpenTelemetryListener": "stepcache.telemetry._opentelemetry",
    "Price": "stepcache.telemetry._prices",
    "PriceTable": "stepcache.telemetry._prices",
    "PrometheusListener": "stepcache.telemetry._prometheus",
    "Saved": "stepcache.telemetry._savings",
    "Savings": "stepcache.telemetry._savings",
    "TraceLog": "stepcache.telemetry._trace_log",
    "TraceRecord": "stepcache.telemetry._trace_record",
    "exposition": "stepcache.telemetry._prometheus",
    "metrics_app": "stepcache.telemetry._prometheus",
    "published_prices": "stepcache.telemetry._prices",
    "read_trace_log": "stepcache.telemetry._trace_log",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
