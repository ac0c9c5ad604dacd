"""``OpenTelemetryListener``: a span for each request, after the conventions for generative AI.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/ - attributes that these do not
know begin with ``stepcache.``. Spans are made when a request has ended, with the times it had, so
nothing is held open over a stream; their parent is the span that is current in the caller then.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from stepcache._errors import ConfigurationError
from stepcache._types import Candidate, Message, Outcome, Request
from stepcache.protocols import Timing
from stepcache.telemetry._prices import Price, priced
from stepcache.telemetry._trace_record import namespace_digest

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["OpenTelemetryListener"]

_SETTINGS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
    "n": "gen_ai.request.choice.count",
}


class OpenTelemetryListener:
    """A listener that records each request as a span.

    A child span stands for each exchange with the store, the embedder and the model; an event for
    each candidate with what was found of it, and for each line of the trace. Tokens are those
    spent; the avoided ones have attributes of their own.

    Args:
        tracer_provider: Where spans go; None takes the global one.
        texts: Whether messages, the answer, the trace's lines and the reason are recorded too.
        provider: ``gen_ai.provider.name``: who answers, or whom the model belongs to.
        count_tokens: False where the model's own client is instrumented, whose spans count the
            tokens already.
        price: What tokens cost, to record money beside them.

    Raises:
        ConfigurationError: The library is not installed.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        texts: bool = False,
        provider: str = "stepcache",
        count_tokens: bool = True,
        price: Price | None = None,
    ) -> None:
        try:
            from opentelemetry import trace
        except ImportError as error:
            raise ConfigurationError(
                "OpenTelemetry spans need opentelemetry-api "
                f"({error}): pip install 'stepcache[metrics]'"
            ) from error
        self._trace = trace
        self._tracer = trace.get_tracer("stepcache", version("stepcache"), tracer_provider)
        self._texts = texts
        self._provider = provider
        self._count_tokens = count_tokens
        self._price = price

    def __call__(self, request: Request, outcome: Outcome, timing: Timing, /) -> None:
        start, end = _bounds(timing)
        span = self._begun(request, timing, outcome.model, start)
        if span.is_recording():
            span.set_attributes(self._answered(request, outcome, timing))
            for candidate in outcome.candidates:
                span.add_event("stepcache.candidate", _candidate(candidate, self._texts), end)
            for event in outcome.trace.events:
                detail = {"stepcache.detail": event.detail} if self._texts else {}
                span.add_event(f"stepcache.{event.name.replace(' ', '_')}", detail, end)
            self._parts(span, timing, start, waited=outcome.code == "in-flight")
        span.end(end)

    def failed(self, request: Request, error: Exception, timing: Timing, /) -> None:
        start, end = _bounds(timing)
        span = self._begun(request, timing, None, start)
        if span.is_recording():
            span.set_attribute("error.type", type(error).__qualname__)
            said = str(error) if self._texts else None
            span.set_status(self._trace.StatusCode.ERROR, said)
            if self._texts:
                span.record_exception(error, timestamp=end)
                span.set_attribute("gen_ai.input.messages", _messages(request.messages))
            self._parts(span, timing, start, waited=False)
        span.end(end)

    def _begun(self, request: Request, timing: Timing, model: str | None, start: int) -> Span:
        operation = "cache_lookup" if "lookup" in timing.face else "chat"
        asked = request.params.get("model")
        name = asked if isinstance(asked, str) else model
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": self._provider,
            "stepcache.face": timing.face,
        }
        if name:
            attributes["gen_ai.request.model"] = name
        if "stream" in timing.face:
            attributes["gen_ai.request.stream"] = True
        if request.contract.schema is not None:
            attributes["gen_ai.output.type"] = "json"
        for key, attribute in _SETTINGS.items():
            value = request.params.get(key)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                attributes[attribute] = value
        if request.namespace:
            attributes["stepcache.namespace"] = namespace_digest(request.namespace)
        return self._tracer.start_span(
            f"{operation} {name}" if name else operation,
            kind=self._trace.SpanKind.INTERNAL,
            attributes=attributes,
            start_time=start,
        )

    def _answered(self, request: Request, outcome: Outcome, timing: Timing) -> Mapping[str, Any]:
        told: dict[str, Any] = {
            "stepcache.route": outcome.route,
            "stepcache.code": outcome.code,
            "stepcache.served": outcome.served,
            "stepcache.steps": len(outcome.steps),
            "stepcache.steps.origins": list(outcome.origins),
            "stepcache.calls.spent": outcome.spent.calls,
            "stepcache.calls.avoided": outcome.avoided.calls,
            "stepcache.avoided.input_tokens": outcome.avoided.prompt_tokens,
            "stepcache.avoided.output_tokens": outcome.avoided.completion_tokens,
            "stepcache.proof.seconds": timing.proof,
        }
        if outcome.served and self._count_tokens:
            told["gen_ai.usage.input_tokens"] = outcome.spent.prompt_tokens
            told["gen_ai.usage.output_tokens"] = outcome.spent.completion_tokens
        optional = {
            "gen_ai.response.model": outcome.model,
            "gen_ai.response.time_to_first_chunk": timing.first,
            "stepcache.task": outcome.task,
            "stepcache.entry": outcome.entry_id,
        }
        told |= {name: value for name, value in optional.items() if value is not None}
        if outcome.served and outcome.finish_reason is not None:
            told["gen_ai.response.finish_reasons"] = [outcome.finish_reason]
        if outcome.verdicts:
            told["stepcache.steps.verdicts"] = [v.code for v in outcome.verdicts]
        money = priced(outcome, self._price)
        if money is not None:
            told |= {"stepcache.money.spent": money.spent, "stepcache.money.avoided": money.avoided}
        if self._texts:
            told["stepcache.reason"] = outcome.reason
            told["gen_ai.input.messages"] = _messages(request.messages)
            if outcome.served:
                answer = Message(role="assistant", text=outcome.text)
                told["gen_ai.output.messages"] = _messages([answer], outcome.finish_reason)
        return told

    def _parts(self, span: Span, timing: Timing, start: int, *, waited: bool) -> None:
        context = self._trace.set_span_in_context(span)
        for part in timing.parts:
            if part.port == "wait" and not (waited and part.what == "join"):
                continue
            begun = start + _nanoseconds(part.at)
            child = self._tracer.start_span(
                f"stepcache {part.port} {part.what}",
                context,
                kind=self._trace.SpanKind.INTERNAL,
                attributes={"stepcache.port": part.port, "stepcache.what": part.what},
                start_time=begun,
            )
            if part.error is not None:
                child.set_attribute("error.type", part.error)
                child.set_status(self._trace.StatusCode.ERROR)
            child.end(begun + _nanoseconds(part.seconds))


def _bounds(timing: Timing) -> tuple[int, int]:
    """When the request began and ended, in nanoseconds since the epoch."""
    end = time.time_ns()
    return end - _nanoseconds(timing.seconds), end


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def _candidate(candidate: Candidate, texts: bool) -> dict[str, Any]:
    told: dict[str, Any] = {
        "stepcache.entry": candidate.entry.id,
        "stepcache.action": candidate.action,
        "stepcache.code": candidate.code,
        "stepcache.differences": [each.kind for each in candidate.differences],
        "stepcache.unexplained": sum(not each.explained for each in candidate.differences),
    }
    if candidate.similarity is not None:
        told["stepcache.similarity"] = float(candidate.similarity)
    if texts:
        told["stepcache.reason"] = candidate.reason
    return told


def _messages(messages: Any, finish_reason: str | None = None) -> str:
    """Messages in the form the conventions give them, as JSON."""
    told = []
    for message in messages:
        item: dict[str, Any] = {
            "role": message.role,
            "parts": [{"type": "text", "content": message.text}],
        }
        if finish_reason is not None:
            item["finish_reason"] = finish_reason
        told.append(item)
    return json.dumps(told)
