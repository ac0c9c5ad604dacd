"""Counters and histograms in a real registry, read back as a scraper would."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from stepcache import ConfigurationError, StepCacheEngine
from stepcache.stores import MemoryStore
from stepcache.telemetry import (
    LogListener,
    PriceTable,
    PrometheusListener,
    Savings,
    exposition,
    metrics_app,
)
from stepcache.testing import FaultyStore, ScriptedBackend

PRICES = PriceTable({"small-*": {"input": 1.0, "output": 10.0}})


def read(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """The sum of one metric over all label values that are not named."""
    body, _ = exposition(registry)
    return sum(
        sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_every_answer_is_counted(story: Any, face: Any) -> None:
    """Routes, faces, tasks, tokens, calls, money, steps: as the outcomes tell them."""
    registry = CollectorRegistry()
    outcomes = story.play(face, PrometheusListener(registry, price=PRICES))
    for route, count in Counter(story.routes).items():
        assert read(registry, "stepcache_requests_total", route=route, face=face.name) == count
        assert read(registry, "stepcache_request_seconds_count", route=route) == count
        assert read(registry, "stepcache_reasons_total", route=route) == count
    assert read(registry, "stepcache_requests_total", task="linear-equation") == 5
    assert read(registry, "stepcache_reasons_total", code="missing-keys") == 1
    for kind in ("spent", "avoided"):
        usages = [getattr(outcome, kind) for outcome in outcomes]
        assert read(registry, "stepcache_calls_total", kind=kind) == sum(u.calls for u in usages)
        for side in ("prompt", "completion"):
            counted = read(registry, "stepcache_tokens_total", kind=kind, side=side)
            assert counted == sum(getattr(u, f"{side}_tokens") for u in usages)
        money = sum(PRICES("small-1", usage) or 0 for usage in usages)
        assert read(registry, "stepcache_money_total", kind=kind) == pytest.approx(money)
        assert money > 0
    origins = Counter(origin for outcome in outcomes for origin in outcome.origins)
    for origin, count in origins.items():
        assert read(registry, "stepcache_steps_total", origin=origin) == count
    rejected = [c for o in outcomes for c in o.candidates if c.action == "rejected"]
    assert read(registry, "stepcache_candidates_total", action="rejected") == len(rejected) > 0
    calls = sum(outcome.spent.calls for outcome in outcomes)
    assert read(registry, "stepcache_port_seconds_count", port="model") == calls
    assert read(registry, "stepcache_proof_seconds_count") == len(outcomes)
    streamed = len(outcomes) if "stream" in face.name else 0
    assert read(registry, "stepcache_first_piece_seconds_count") == streamed


def test_no_text_is_a_label(story: Any, face: Any) -> None:
    """Neither words of a request nor a namespace nor an entry's id."""
    registry = CollectorRegistry()
    listener = PrometheusListener(registry)
    outcomes = story.play(face, listener)
    story.fail(face, listener)
    told = exposition(registry)[0].decode()
    assert story.secrets_in(told) == []
    assert not any(outcome.entry_id in told for outcome in outcomes if outcome.entry_id)


def test_errors_and_faults_are_told_apart(story: Any, face: Any) -> None:
    """An error that went through is one; a fault that was survived is the port's only."""
    registry = CollectorRegistry()
    listener = PrometheusListener(registry)
    story.fail(face, listener)
    assert read(registry, "stepcache_errors_total", face=face.name, error="Broken") == 1
    assert read(registry, "stepcache_faults_total", port="model", error="Broken") == 1
    assert read(registry, "stepcache_requests_total") == 0
    engine = StepCacheEngine(
        store=FaultyStore(MemoryStore()),
        backend=ScriptedBackend(story.answer),
        listeners=[listener],
    )
    face.ask(engine, story.ask(story.texts[0]))
    assert read(registry, "stepcache_faults_total", port="store") > 0
    assert read(registry, "stepcache_errors_total") == 1
    assert read(registry, "stepcache_requests_total", route="miss") == 1


def test_names_are_bounded(story: Any) -> None:
    """A backend that makes up a model's name for each call fills no database."""
    from stepcache import Reply

    numbers = iter(range(1_000))
    registry = CollectorRegistry()
    engine = StepCacheEngine(
        backend=ScriptedBackend(lambda call: Reply(text="Noted.", model=f"model-{next(numbers)}")),
        listeners=[PrometheusListener(registry, max_names=3)],
    )
    for number in range(20):
        engine.resolve(story.ask(f"Name river {number}."))
    body = exposition(registry)[0].decode()
    models = {
        sample.labels["model"]
        for family in text_string_to_metric_families(body)
        for sample in family.samples
        if "model" in sample.labels
    }
    assert models == {"model-0", "model-1", "model-2", "other"}
    assert read(registry, "stepcache_calls_total", model="other") == 17


def test_several_listen_at_once(story: Any, face: Any) -> None:
    """Metrics, log and sums of one engine agree; none of them minds one that raises."""
    registry, savings = CollectorRegistry(), Savings(PRICES)

    def broken(*told: Any) -> None:
        raise OSError("down")

    outcomes = story.play(face, PrometheusListener(registry), broken, LogListener(), savings)
    total = savings.total
    assert total.requests == len(outcomes) == read(registry, "stepcache_requests_total")
    assert total.spent.tokens == read(registry, "stepcache_tokens_total", kind="spent")
    assert total.avoided.tokens == read(registry, "stepcache_tokens_total", kind="avoided")


def test_two_in_one_registry_need_two_names() -> None:
    """The second is refused, with what to do; another prefix or registry is taken."""
    registry = CollectorRegistry()
    PrometheusListener(registry)
    with pytest.raises(ConfigurationError, match="another prefix"):
        PrometheusListener(registry)
    PrometheusListener(registry, prefix="second")
    with pytest.raises(ConfigurationError, match="max_names is 0"):
        PrometheusListener(CollectorRegistry(), max_names=0)


async def test_the_application_is_scraped(story: Any) -> None:
    """Over ASGI, in the plain form and in OpenMetrics, as the scraper asks."""
    registry = CollectorRegistry()
    StepCacheEngine(
        backend=ScriptedBackend(story.answer), listeners=[PrometheusListener(registry)]
    ).resolve(story.ask(story.texts[0]))
    transport = httpx.ASGITransport(app=metrics_app(registry))
    async with httpx.AsyncClient(transport=transport, base_url="http://metrics") as client:
        plain = await client.get("/metrics")
        asked = {"accept": "application/openmetrics-text; version=1.0.0"}
        openmetrics = await client.get("/metrics", headers=asked)
    assert plain.status_code == 200
    assert 'stepcache_requests_total{face="resolve",route="miss"' in plain.text
    assert plain.text == exposition(registry)[0].decode()
    assert plain.headers["content-type"] == exposition(registry)[1]
    assert openmetrics.text.endswith("# EOF\n")
    assert exposition(registry, asked["accept"])[1] == openmetrics.headers["content-type"]
