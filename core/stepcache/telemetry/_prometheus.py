"""``PrometheusListener``: counters and histograms of what the cache does, and their exposition.

Labels are routes, faces, ports, reason codes, and the names of tasks and models, of which only so
many are told apart. None holds a text, a namespace or an entry: those are without number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stepcache._errors import ConfigurationError
from stepcache._forking import fork_safe_lock
from stepcache._types import Outcome, Request, Usage
from stepcache.protocols import Timing
from stepcache.telemetry._prices import Price, priced

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["PrometheusListener", "exposition", "metrics_app"]

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5)
_SECONDS = (*_BUCKETS, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""From a served repeat (below a millisecond) to a long answer of a slow model."""
_PROOF = (0.0001, 0.00025, *_BUCKETS, 1.0)
_OTHER = "other"


class PrometheusListener:
    """A listener that counts for Prometheus.

    | metric | labels | counts |
    |---|---|---|
    | ``stepcache_requests_total`` | route, task, face | answers |
    | ``stepcache_reasons_total`` | route, code | answers, by the reason for their route |
    | ``stepcache_request_seconds`` | route | from call to answer |
    | ``stepcache_first_piece_seconds`` | route | from call to a stream's first piece |
    | ``stepcache_proof_seconds`` | task | parsing, comparing, verifying, planning |
    | ``stepcache_port_seconds`` | port | one exchange with a store, embedder, model; one wait |
    | ``stepcache_calls_total`` | kind (spent, avoided), model | model calls |
    | ``stepcache_tokens_total`` | kind, side (prompt, completion), model | tokens |
    | ``stepcache_money_total`` | kind, model | in the currency of the prices |
    | ``stepcache_steps_total`` | origin, task | steps of answers |
    | ``stepcache_candidates_total`` | action, code | stored entries that were considered |
    | ``stepcache_faults_total`` | port, error | faults of ports, survived or not |
    | ``stepcache_errors_total`` | face, error | errors that went through to the caller |

    Args:
        registry: Where the metrics are registered; None takes the library's own. One listener may
            serve several engines; two in one registry need different prefixes.
        prefix: What the names begin with.
        price: What tokens cost; None leaves the money metric at nothing.
        max_names: How many names of a model, a task, a code or an error are told apart; further
            ones are counted as ``other``.

    Raises:
        ConfigurationError: The library is not installed, or the names are taken in the registry.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        prefix: str = "stepcache",
        price: Price | None = None,
        max_names: int = 50,
    ) -> None:
        library = _library()
        self.registry: CollectorRegistry = library.REGISTRY if registry is None else registry
        self._price = price
        self._names = _Names(max_names)

        def made(kind: Any, name: str, told: str, labels: Sequence[str], **more: Any) -> Any:
            return kind(f"{prefix}_{name}", told, labels, registry=self.registry, **more)

        count, histogram = library.Counter, library.Histogram
        try:
            self._requests = made(count, "requests", "Answers.", ("route", "task", "face"))
            self._reasons = made(count, "reasons", "Answers by reason.", ("route", "code"))
            self._seconds = made(
                histogram,
                "request_seconds",
                "From call to answer.",
                ("route",),
                buckets=_SECONDS,
            )
            self._first = made(
                histogram,
                "first_piece_seconds",
                "From call to the first piece of a stream.",
                ("route",),
                buckets=_SECONDS,
            )
            self._proof = made(
                histogram,
                "proof_seconds",
                "Parsing, comparing, verifying and planning.",
                ("task",),
                buckets=_PROOF,
            )
            self._port = made(
                histogram,
                "port_seconds",
                "One exchange with a port.",
                ("port",),
                buckets=_SECONDS,
            )
            self._calls = made(count, "calls", "Model calls.", ("kind", "model"))
            self._tokens = made(count, "tokens", "Tokens.", ("kind", "side", "model"))
            self._money = made(count, "money", "Money.", ("kind", "model"))
            self._steps = made(count, "steps", "Steps of answers.", ("origin", "task"))
            self._candidates = made(count, "candidates", "Entries considered.", ("action", "code"))
            self._faults = made(count, "faults", "Faults of ports.", ("port", "error"))
            self._errors = made(
                count, "errors", "Errors that went through to the caller.", ("face", "error")
            )
        except ValueError as error:
            raise ConfigurationError(
                f"the metrics cannot be registered: {error}; give the listener a registry of its "
                "own, or another prefix"
            ) from error

    def __call__(self, request: Request, outcome: Outcome, timing: Timing, /) -> None:
        name = self._names
        task = name("task", outcome.task or "none")
        route = outcome.route
        self._requests.labels(route, task, timing.face).inc()
        self._reasons.labels(route, name("code", outcome.code)).inc()
        self._seconds.labels(route).observe(timing.seconds)
        if timing.first is not None:
            self._first.labels(route).observe(timing.first)
        self._proof.labels(task).observe(timing.proof)
        self._took(timing)
        self._paid(outcome)
        for origin in outcome.origins:
            self._steps.labels(origin, task).inc()
        for candidate in outcome.candidates:
            self._candidates.labels(candidate.action, name("code", candidate.code)).inc()

    def failed(self, request: Request, error: Exception, timing: Timing, /) -> None:
        self._errors.labels(timing.face, self._names("error", type(error).__name__)).inc()
        self._took(timing)

    def _took(self, timing: Timing) -> None:
        for part in timing.parts:
            self._port.labels(part.port).observe(part.seconds)
            if part.error is not None:
                self._faults.labels(part.port, self._names("error", part.error)).inc()

    def _paid(self, outcome: Outcome) -> None:
        model = self._names("model", outcome.model or "unknown")
        money = priced(outcome, self._price)
        both: tuple[tuple[str, Usage, float], ...] = (
            ("spent", outcome.spent, money.spent if money else 0.0),
            ("avoided", outcome.avoided, money.avoided if money else 0.0),
        )
        for kind, usage, cost in both:
            if usage.calls:
                self._calls.labels(kind, model).inc(usage.calls)
            if usage.tokens:
                self._tokens.labels(kind, "prompt", model).inc(usage.prompt_tokens)
                self._tokens.labels(kind, "completion", model).inc(usage.completion_tokens)
            if cost:
                self._money.labels(kind, model).inc(cost)


class _Names:
    """Keeps the number of label values bounded: the first so many of each label are themselves."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ConfigurationError(f"max_names is {limit}: use at least 1")
        self._limit = limit
        self._known: dict[str, set[str]] = {}
        self._lock = fork_safe_lock()

    def __call__(self, label: str, value: str) -> str:
        known = self._known.get(label)
        if known is not None and value in known:
            return value
        with self._lock:
            known = self._known.setdefault(label, set())
            if len(known) >= self._limit and value not in known:
                return _OTHER
            known.add(value)
            return value


def exposition(registry: CollectorRegistry | None = None, accept: str = "") -> tuple[bytes, str]:
    """The metrics as text for a scraper.

    Args:
        registry: Whose metrics; None takes the library's own.
        accept: The scraper's ``Accept`` header: OpenMetrics is given to those that ask for it.

    Returns:
        The body and its content type.

    Raises:
        ConfigurationError: The library is not installed.
    """
    library = _library()
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    return encode(library.REGISTRY if registry is None else registry), content_type


def metrics_app(registry: CollectorRegistry | None = None) -> Callable[..., Any]:
    """An ASGI application that answers every request with the metrics; mount it at ``/metrics``.

    Raises:
        ConfigurationError: The library is not installed.
    """
    library = _library()
    made: Callable[..., Any] = library.make_asgi_app(
        registry=library.REGISTRY if registry is None else registry
    )
    return made


def _library() -> Any:
    try:
        import prometheus_client
    except ImportError as error:
        raise ConfigurationError(
            f"Prometheus metrics need prometheus-client ({error}): pip install 'stepcache[metrics]'"
        ) from error
    return prometheus_client
