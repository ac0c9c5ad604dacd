"""Spans of the real SDK, against the names of the published conventions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import StatusCode

from stepcache import StepCacheEngine
from stepcache.stores import MemoryStore
from stepcache.telemetry import OpenTelemetryListener, PriceTable
from stepcache.testing import FaultyStore, ScriptedBackend

PRICES = PriceTable({"small-*": {"input": 1.0, "output": 10.0}})


class Spans:
    """A tracer provider and what it was given."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    @property
    def requests(self) -> list[ReadableSpan]:
        """The spans of whole requests, in order."""
        return [span for span in self.all if "stepcache.face" in (span.attributes or {})]

    def below(self, parent: ReadableSpan) -> list[ReadableSpan]:
        """The children of a span, by their beginning."""
        children = [s for s in self.all if s.parent and s.parent.span_id == parent.context.span_id]
        return sorted(children, key=lambda span: span.start_time or 0)

    def told(self) -> str:
        return "".join(span.to_json() for span in self.all)


@pytest.fixture
def spans() -> Spans:
    return Spans()


def test_a_request_is_a_span_in_the_conventions_words(story: Any, face: Any, spans: Spans) -> None:
    """Operation, provider, model, tokens spent; what only we know stands beside."""
    outcomes = story.play(face, OpenTelemetryListener(spans.provider, price=PRICES))
    assert len(spans.requests) == len(outcomes)
    known = {v for v in vars(conventions).values() if isinstance(v, str)}
    for outcome, span in zip(outcomes, spans.requests):
        told = dict(span.attributes or {})
        assert {n for n in told if n.startswith("gen_ai.")} <= known
        assert span.name == "chat small-1"
        assert told[conventions.GEN_AI_OPERATION_NAME] == "chat"
        assert told[conventions.GEN_AI_PROVIDER_NAME] == "stepcache"
        assert told[conventions.GEN_AI_RESPONSE_MODEL] == "small-1"
        assert told[conventions.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)
        assert told[conventions.GEN_AI_USAGE_INPUT_TOKENS] == outcome.spent.prompt_tokens
        assert told[conventions.GEN_AI_USAGE_OUTPUT_TOKENS] == outcome.spent.completion_tokens
        assert told["stepcache.avoided.input_tokens"] == outcome.avoided.prompt_tokens
        assert told["stepcache.money.avoided"] == PRICES("small-1", outcome.avoided)
        assert told["stepcache.route"] == outcome.route
        assert told["stepcache.code"] == outcome.code
        assert told["stepcache.steps.origins"] == outcome.origins
        streamed = "stream" in face.name
        assert told.get(conventions.GEN_AI_REQUEST_STREAM, False) == streamed
        assert (conventions.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK in told) == streamed
        candidates = [e for e in span.events if e.name == "stepcache.candidate"]
        assert [(e.attributes or {})["stepcache.entry"] for e in candidates] == [
            c.entry.id for c in outcome.candidates
        ]
        others = [e.name for e in span.events if e.name != "stepcache.candidate"]
        assert others == [f"stepcache.{n.replace(' ', '_')}" for n in outcome.trace.names()]


def test_each_exchange_is_a_child_within_its_request(story: Any, face: Any, spans: Spans) -> None:
    """A miss looks up, embeds, searches, asks and keeps, in that order and in that time."""
    story.play(face, OpenTelemetryListener(spans.provider))
    miss, repeat = spans.requests[:2]
    names = [span.name for span in spans.below(miss)]
    assert [name for name in names if name != "stepcache store get"] == [
        "stepcache embedder embed",
        "stepcache store search",
        "stepcache model answer",
        "stepcache store put",
    ]
    for child in spans.below(miss):
        assert miss.start_time is not None
        assert miss.end_time is not None
        assert child.start_time is not None
        assert child.end_time is not None
        assert miss.start_time <= child.start_time <= child.end_time <= miss.end_time
    assert [span.name for span in spans.below(repeat)] == ["stepcache store get"]


def test_the_parent_is_the_callers_span(story: Any, face: Any, spans: Spans) -> None:
    """All spans of a request lie in the trace that the caller is in."""
    with spans.provider.get_tracer("app").start_as_current_span("handler") as mine:
        story.play(face, OpenTelemetryListener(spans.provider))
    identity = mine.get_span_context()
    for span in spans.requests:
        assert span.parent is not None
        assert span.parent.span_id == identity.span_id
    assert {span.context.trace_id for span in spans.all} == {identity.trace_id}


async def test_concurrent_requests_keep_their_parents(story: Any, spans: Spans) -> None:
    """Two tasks of one loop, each with a span of its own."""
    import asyncio

    engine = StepCacheEngine(
        backend=ScriptedBackend(story.answer), listeners=[OpenTelemetryListener(spans.provider)]
    )
    tracer = spans.provider.get_tracer("app")

    async def handle(text: str) -> tuple[str, int]:
        with tracer.start_as_current_span(text) as span:
            outcome = await engine.aresolve(story.ask(text))
            return str(outcome.entry_id), span.get_span_context().span_id

    pairs = await asyncio.gather(handle(story.texts[0]), handle(story.texts[5]))
    found = {
        (str((span.attributes or {})["stepcache.entry"]), span.parent.span_id)
        for span in spans.requests
        if span.parent is not None
    }
    assert found == set(pairs)


def test_no_text_unless_asked_for(story: Any, face: Any, spans: Spans) -> None:
    """No attribute, event or status holds a word of a request, an answer or an error."""
    listener = OpenTelemetryListener(spans.provider)
    story.play(face, listener)
    story.fail(face, listener)
    assert story.secrets_in(spans.told()) == []


def test_texts_in_the_conventions_form(story: Any, face: Any, spans: Spans) -> None:
    """Messages in and out as the conventions' JSON, and the trace's own lines."""
    outcomes = story.play(face, OpenTelemetryListener(spans.provider, texts=True))
    for text, outcome, span in zip(story.texts, outcomes, spans.requests):
        told = dict(span.attributes or {})
        assert json.loads(str(told[conventions.GEN_AI_INPUT_MESSAGES])) == [
            {"role": "user", "parts": [{"type": "text", "content": text}]}
        ]
        assert json.loads(str(told[conventions.GEN_AI_OUTPUT_MESSAGES])) == [
            {
                "role": "assistant",
                "parts": [{"type": "text", "content": outcome.text}],
                "finish_reason": "stop",
            }
        ]
        details = [
            (event.attributes or {})["stepcache.detail"]
            for event in span.events
            if event.name != "stepcache.candidate"
        ]
        assert details == [event.detail for event in outcome.trace.events]


def test_an_error_is_a_failed_span(story: Any, face: Any, spans: Spans) -> None:
    """Its class is told; its message and its stack only where texts are."""
    story.fail(face, OpenTelemetryListener(spans.provider))
    story.fail(face, OpenTelemetryListener(spans.provider, texts=True))
    quiet, loud = spans.requests
    for span in (quiet, loud):
        assert span.status.status_code is StatusCode.ERROR
        assert (span.attributes or {})[error_attributes.ERROR_TYPE] == "Broken"
        failed = [s for s in spans.below(span) if s.status.status_code is StatusCode.ERROR]
        assert [s.name for s in failed] == ["stepcache model answer"]
    assert (quiet.status.description, quiet.events) == (None, ())
    assert "Ouagadougou" in str(loud.status.description)


def test_a_fault_that_was_survived_fails_its_child_only(story: Any, spans: Spans) -> None:
    """The answer is well; the store's span says what the store did."""
    StepCacheEngine(
        store=FaultyStore(MemoryStore()),
        backend=ScriptedBackend(story.answer),
        listeners=[OpenTelemetryListener(spans.provider)],
    ).resolve(story.ask(story.texts[0]))
    (request,) = spans.requests
    assert request.status.status_code is StatusCode.UNSET
    failed = {s.name for s in spans.below(request) if s.status.status_code is StatusCode.ERROR}
    assert "stepcache store get" in failed


def test_settings_and_look_ups_are_told(story: Any, spans: Spans) -> None:
    """Sampling settings by the conventions' names; a look-up is no chat and counts no tokens."""
    listener = OpenTelemetryListener(spans.provider, provider="acme", count_tokens=False)
    engine = StepCacheEngine(backend=ScriptedBackend(story.answer), listeners=[listener])
    params = {"temperature": 0.5, "max_tokens": 64, "model": "small", "stream": True}
    engine.resolve(story.ask(story.texts[0], params=params))
    engine.lookup(story.ask("Name a river."))
    asked, looked_up = (dict(span.attributes or {}) for span in spans.requests)
    assert asked[conventions.GEN_AI_REQUEST_TEMPERATURE] == 0.5
    assert asked[conventions.GEN_AI_REQUEST_MAX_TOKENS] == 64
    assert asked[conventions.GEN_AI_REQUEST_MODEL] == "small"
    assert asked[conventions.GEN_AI_PROVIDER_NAME] == "acme"
    assert looked_up[conventions.GEN_AI_OPERATION_NAME] == "cache_lookup"
    assert looked_up["stepcache.served"] is False
    for told in (asked, looked_up):
        assert conventions.GEN_AI_USAGE_INPUT_TOKENS not in told


def test_a_sampler_that_says_no_costs_no_children(story: Any) -> None:
    """What is not recorded is not put together."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ALWAYS_OFF)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    story.sync(OpenTelemetryListener(provider))
    assert exporter.get_finished_spans() == ()
