"""The values every other module speaks in: frozen, keyword-only, valid from birth.

Nothing here does anything. A value that exists may be trusted; the words are those of the
project's glossary (Request, Namespace, Constraints, Difference, Entry, Step, Block, Verdict,
Plan, Route, Outcome).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, cast

__all__ = [
    "Action",
    "Block",
    "Candidate",
    "Constraints",
    "Contract",
    "Control",
    "Declined",
    "Difference",
    "Entry",
    "Event",
    "Fix",
    "JsonObject",
    "Message",
    "ModelCall",
    "Origin",
    "Outcome",
    "Plan",
    "Policy",
    "Purpose",
    "Reply",
    "Request",
    "Route",
    "Span",
    "Status",
    "Step",
    "Trace",
    "Usage",
    "Verdict",
]

T = TypeVar("T")

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object: string keys, values that the ``json`` module can write."""

Route: TypeAlias = Literal["exact", "reuse", "adapt", "patch", "skip", "miss", "fallback", "bypass"]
"""The way a request went. See :class:`Outcome`."""

Action: TypeAlias = Literal["reuse", "adapt", "patch", "skip"]

Origin: TypeAlias = Literal["reused", "adapted", "patched", "generated", "solved"]
"""Where a step of an answer comes from: as it was stored, re-derived without the model, made anew
by the model in a stored answer, part of a whole answer of the model's, or the task's deterministic
answer."""

Purpose: TypeAlias = Literal["answer", "patch", "repair"]
"""Why the model is asked: the request itself, a missing part, or a second try."""

_EMPTY: JsonObject = MappingProxyType({})

RESERVED_TAG = "stepcache:"
"""What tags the engine itself puts on entries begin with."""


# --- what is asked -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation, reduced to what any chat API knows."""

    role: str
    """``system``, ``user``, ``assistant``, ``tool`` or whatever the host calls it."""
    text: str
    extra: JsonObject = field(default_factory=lambda: _EMPTY)
    """Everything that is not text: tool calls, images, a speaker's name. Identity, never parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What the host promised the caller about the shape of the answer."""

    tools: tuple[JsonObject, ...] = ()
    tool_choice: Any = None
    schema: JsonObject | None = None
    """JSON Schema the answer must satisfy; a typed constraint, so it may differ between entries."""
    response_format: Any = None
    """The rest of the output demand (its type, name, strictness); identity."""
    opaque: bool = False
    """True when the demand cannot be read (a class without its schema): exact reuse only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked, once, immutable."""

    messages: tuple[Message, ...]
    model: str = ""
    """Identity of the model and of its endpoint."""
    params: JsonObject = field(default_factory=lambda: _EMPTY)
    """Every sampling or unknown parameter that can change an answer."""
    contract: Contract = Contract()
    namespace: str = ""
    """The tenant's wall; nothing crosses it."""
    task: str | None = None
    """Name of the only task that may take this request, or None to let the first that accepts."""

    @property
    def text(self) -> str:
        """The text of the closing user message, the part tasks may read; else the empty string."""
        if not self.messages or self.messages[-1].role != "user":
            return ""
        return self.messages[-1].text


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What one call asks of the cache, beside its request."""

    bypass: bool = False
    """Neither look up nor keep."""
    refresh: bool = False
    """Ask the model whatever is stored, and keep the new answer."""
    namespace: str | None = None
    """The wall around this call; None leaves it to the request and the engine."""
    ttl: float | None = None
    """Seconds this answer may be served; None leaves it to the policy."""
    tags: tuple[str, ...] = ()
    """Labels kept with the entry, to forget it by."""
    stream_unverified: bool | None = None
    """As ``Policy.stream_unverified``, for this call; None leaves it to the policy."""

    def __post_init__(self) -> None:
        for name, kinds in (
            ("bypass", (bool,)),
            ("refresh", (bool,)),
            ("namespace", (str, type(None))),
            ("stream_unverified", (bool, type(None))),
        ):
            if not isinstance(getattr(self, name), kinds):
                raise _misused(f"{name} is {getattr(self, name)!r}: use {_kinds(kinds)}")
        number = isinstance(self.ttl, (int, float)) and not isinstance(self.ttl, bool)
        if self.ttl is not None and not (number and self.ttl > 0):
            raise _misused(f"ttl is {self.ttl!r}: use seconds above 0, or None")
        tags: object = self.tags
        if not isinstance(tags, (list, tuple)) or not all(isinstance(t, str) for t in tags):
            raise _misused(f"tags is {tags!r}: use a tuple of strings")
        if any(tag.startswith(RESERVED_TAG) for tag in self.tags):
            raise _misused(f"tags that begin with {RESERVED_TAG!r} are the engine's own")
        object.__setattr__(self, "tags", tuple(self.tags))

    @classmethod
    def of(cls, value: object) -> Control:
        """Read what a host's caller wrote.

        Args:
            value: None, a :class:`Control`, ``"bypass"`` or ``"refresh"``, or a mapping of its
                fields; a single tag may stand without its tuple.

        Raises:
            UsageError: Anything else; names the fields there are.
        """
        if value is None:
            return _NO_WISHES
        if isinstance(value, Control):
            return value
        if isinstance(value, str) and value in ("bypass", "refresh"):
            return cls(bypass=value == "bypass", refresh=value == "refresh")
        names = cls.__dataclass_fields__
        if not isinstance(value, Mapping) or not set(value) <= set(names):
            raise _misused(
                f"got {value!r}: pass 'bypass', 'refresh', or a mapping of {', '.join(names)}"
            )
        fields = dict(value)
        if isinstance(fields.get("tags"), str):
            fields["tags"] = (fields["tags"],)
        return cls(**fields)


_NO_WISHES = Control()
"""Of a call that says nothing; making one checks every field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A half-open range of the request's text that one constraint was read from."""

    start: int
    stop: int
    name: str
    """What it holds, e.g. ``equation`` or ``keys``; stands in for the text when that is masked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The typed demands a task read out of a request."""

    task: str
    version: str
    values: JsonObject
    """Canonical, JSON-able; equal values mean equal demands."""
    spans: tuple[Span, ...] = ()
    """Where they came from, in order, not overlapping; what is left is the residue."""
    whole: bool = False
    """True when the task understood all of the request, so that it may judge and replace a whole
    answer (repair, deterministic answer). False: it may only refuse to reuse or to admit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """A task's answer to a request that is not of its family."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One typed change between a stored request and a new one."""

    kind: str
    """Kebab-case: ``constant``, ``variable``, ``key-added``, ``word``, ``number``, ..."""
    path: str
    old: str
    new: str
    owner: str | None = None
    """The task whose verifier accounts for it; None means unexplained, and that is a skip."""

    @property
    def explained(self) -> bool:
        return self.owner is not None

    def __str__(self) -> str:
        return f"{self.kind} {self.old!r} -> {self.new!r}"


# --- what is kept ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One piece of an answer. Joining the texts of all steps gives the answer back."""

    index: int
    text: str
    kind: str = "prose"
    """``prose``, ``heading``, ``item``, ``code``, ``math``, ``table``, ``json`` or ``blank``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of neighbouring steps, ``steps[start:stop]``."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ValueError(f"a block needs 0 <= start < stop, got {self.start}, {self.stop}")

    def __len__(self) -> int:
        return self.stop - self.start


class Status(Enum):
    """What a verifier can say."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What is missing from a step that failed, so that only that is asked for."""

    ask: tuple[str, ...] = ()
    """Names of the missing parts, e.g. JSON keys."""
    share: float = 1.0
    """Portion of the step, 0 to 1, that has to be made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a verifier says of one step: with a stable code and a reason a person can read.

    It has no truth value on purpose: ``if verdict`` would read *unknown* as either, and unknown
    is never reused.
    """

    status: Status
    code: str
    reason: str
    fix: Fix | None = None

    def __bool__(self) -> NoReturn:
        raise TypeError("a verdict is pass, fail or unknown: compare verdict.status")

    @classmethod
    def passed(cls, code: str, reason: str = "") -> Verdict:
        return cls(status=Status.PASS, code=code, reason=reason)

    @classmethod
    def failed(cls, code: str, reason: str, fix: Fix | None = None) -> Verdict:
        return cls(status=Status.FAIL, code=code, reason=reason, fix=fix)

    @classmethod
    def unknown(cls, code: str, reason: str) -> Verdict:
        return cls(status=Status.UNKNOWN, code=code, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What model calls cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )

    def minus(self, other: Usage) -> Usage:
        """What is left after ``other``, never below zero in any field."""
        return Usage(
            calls=max(0, self.calls - other.calls),
            prompt_tokens=max(0, self.prompt_tokens - other.prompt_tokens),
            completion_tokens=max(0, self.completion_tokens - other.completion_tokens),
        )

    def as_dict(self) -> dict[str, int]:
        return {
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An admitted answer."""

    id: str
    scope: str
    """SHA-256 of everything that is identity (see ``_identity``); entries of one scope may meet."""
    exact_key: str
    canonical_key: str | None
    """Key of the typed constraints and residue, or None where the task keeps exact answers only."""
    prompt: str
    """The request's text, for finding the differences to a new one."""
    constraints: Constraints | None
    """None for entries that are served to byte-equal requests only."""
    steps: tuple[Step, ...]
    message: str | None = None
    """The host's own record of the answer, as JSON text; opaque to the engine."""
    usage: Usage = Usage()
    """What making the answer cost: what serving it avoids."""
    model: str | None = None
    """The model that answered, where the backend said so."""
    tags: tuple[str, ...] = ()
    created: float = 0.0
    """Seconds since the epoch, stamped by the store that keeps it."""
    expires: float | None = None

    @property
    def text(self) -> str:
        return join(self.steps)


# --- asking a model ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One question to the model."""

    purpose: Purpose
    messages: tuple[Message, ...]
    """For ``answer`` these are the request's own, and a backend sends the host's originals."""
    prefix: str | None = None
    """Text the answer must go on from. A backend that can continue an assistant turn sends it as
    one; any other ignores it, for ``messages`` already say it in words."""
    schema: JsonObject | None = None
    """JSON Schema of the part asked for, for backends that can constrain decoding."""
    live: bool = False
    """True when nothing stands between the model and the user: a stream may pass through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered."""

    text: str
    finish_reason: str | None = "stop"
    """As the provider says it; None when it does not say."""
    usage: Usage = Usage(calls=1)
    message: str | None = None
    """The host's own record of the reply as JSON text, kept with the entry."""
    model: str | None = None
    refusal: bool = False
    reusable: bool = True
    """False when the reply holds more than text (tool calls): kept for byte-equal requests only."""


# --- what is decided ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do with one candidate."""

    action: Action
    blocks: tuple[Block, ...] = ()
    reason: str = ""
    code: str = ""
    """The reason as a stable kebab-case code, which quotes nothing."""
    share: float = 0.0
    """Portion of the answer, 0 to 1, that has to be made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A stored entry that was considered for a request, and what was found of it."""

    entry: Entry
    action: Literal["reuse", "adapt", "patch", "skip", "rejected"]
    """What could be done with it; rejected where a difference is not explained."""
    code: str
    """Why, as a stable kebab-case code."""
    reason: str
    similarity: float | None = None
    """Cosine, -1 to 1; None where it was found by its demands."""
    differences: tuple[Difference, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    """One for each step, under the new request's demands; none where it was rejected before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a trace."""

    name: str
    detail: str

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The decision, told in order. Holds no times and no addresses, so two runs compare equal."""

    events: tuple[Event, ...] = ()

    def render(self) -> str:
        """The trace as text, one event a line."""
        return "\n".join(str(event) for event in self.events)

    def names(self) -> tuple[str, ...]:
        return tuple(event.name for event in self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer to one request and how it came about."""

    text: str
    route: Route
    reason: str
    """One sentence saying why this route."""
    code: str = ""
    """The reason as a stable kebab-case code: unlike the sentence it quotes nothing of a text."""
    task: str | None = None
    """The family of answers, where one accepts the request or the entry was kept under one."""
    steps: tuple[Step, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    origins: tuple[Origin, ...] = ()
    """Where each step comes from."""
    candidates: tuple[Candidate, ...] = field(default=(), compare=False, repr=False)
    """The stored entries that were considered, in order. They carry times, so outcomes that differ
    in nothing else are equal."""
    reused_steps: int = 0
    patched_steps: int = 0
    entry_id: str | None = None
    """The entry this answer came from or was kept as; None when nothing was kept."""
    spent: Usage = Usage()
    """What this request cost now."""
    avoided: Usage = Usage()
    """What it would have cost beyond that without the cache."""
    message: str | None = None
    """The host's record to rebuild the answer from; None when only the text is known."""
    finish_reason: str | None = "stop"
    model: str | None = None
    served: bool = True
    """False when a look-up that may not ask the model found nothing to serve."""
    trace: Trace = Trace()

    def summary(self) -> dict[str, Any]:
        """The outcome as plain JSON-able data: what hosts attach to an answer."""
        return {
            "route": self.route,
            "code": self.code,
            "reason": self.reason,
            "task": self.task,
            "reused_steps": self.reused_steps,
            "patched_steps": self.patched_steps,
            "entry_id": self.entry_id,
            "spent": self.spent.as_dict(),
            "avoided": self.avoided.as_dict(),
            "trace": [str(event) for event in self.trace.events],
        }

    def _repr_html_(self) -> str:
        """What a notebook shows: each step coloured by where it comes from, with its verdict."""
        from stepcache._render._outcome import outcome_html

        return outcome_html(self)

    def _repr_markdown_(self) -> str:
        """The same for viewers that show no HTML."""
        from stepcache._render._outcome import outcome_markdown

        return outcome_markdown(self)

    def __rich__(self) -> Any:
        """The same for ``rich.print``."""
        from stepcache._render._outcome import outcome_rich

        return outcome_rich(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Every knob, in one place. The defaults are the safe ones."""

    candidates: int = 4
    """Entries looked at by similarity. More finds cheaper plans and costs verification time; the
    paper takes one."""
    min_similarity: float = 0.25
    """Entries further away (cosine) are not looked at. It never authorises anything: too low
    wastes time on hopeless candidates, too high turns reuse into misses."""
    max_patched_share: float = 0.6
    """Above this portion of the answer made anew, reuse is skipped and the model is asked whole."""
    max_repairs: int = 1
    """Second tries after a failed final check. 0 saves calls and lowers correctness."""
    adapt: bool = True
    """Re-derive cached steps without the model where every one can be verified."""
    patch: bool = True
    """Ask the model for the failing part only. Off: verify-and-reuse, else ask whole."""
    fallback: bool = True
    """Give the task's deterministic answer when the model's cannot be mended."""
    canonical: bool = True
    """Find re-worded requests by their parsed demands, without an embedding."""
    exact: bool = True
    """Serve byte-equal requests. Off re-runs every request through verification."""
    on_reject: Literal["return", "raise"] = "return"
    """What to do when nothing passed the final check: hand over the model's own answer (never
    admitted to the cache), or raise ``AnswerRejected``, which carries it."""
    ttl: float | None = None
    """Seconds an entry may be served, counted from its admission; None keeps it."""
    max_prompt_chars: int = 100_000
    """Longer requests are matched byte for byte only: no parsing, no embedding."""
    max_answer_chars: int = 200_000
    """Longer answers are not admitted."""
    max_quoted_chars: int = 8_000
    """Cached text a patch prompt may quote; above it the answer is asked for whole."""
    max_entry_chars: int = 1_000_000
    """Prompt, answer and the host's record of it together; what is longer is not admitted."""
    max_verify_seconds: float | None = 10.0
    """Seconds that the proofs of one request may take together. What is not proven by then counts
    as unknown: nothing stored is served, and the model is asked. A verifier with a truthy
    ``blocking`` attribute is not waited for any longer, either. None sets no bound."""
    max_embed_seconds: float | None = 30.0
    """Seconds to wait for the embedder, which runs in a thread of its own unless it is asynchronous
    or says ``blocking = False``. Then nothing similar is found. None waits for ever."""
    max_store_seconds: float | None = None
    """Seconds to wait for one answer of the store, in a thread of its own. Then it is a miss. None
    leaves it to the store: those that come with this package have bounds of their own."""
    require_namespace: bool = False
    """Refuse requests that name no namespace, and keep what the engine's own methods see and change
    within one: for applications that serve several tenants."""
    redact: Callable[[str], str] | None = None
    """What is taken out of texts before they are stored. A request of which something is taken out
    is served again to the very same request only; an answer of which something would be taken out
    is not stored, for what is left of it is not the answer."""
    stream_unverified: bool = False
    """Streams pass every miss through as it comes. Time to the first token is then the model's,
    and an answer that fails its check has been read before anybody could mend it: it is handed
    over as it is, and not kept."""
    max_wait: float = 60.0
    """Seconds to wait for an equal request in flight before asking the model alone."""

    def __post_init__(self) -> None:
        for name, low in (
            ("candidates", 0),
            ("max_repairs", 0),
            ("max_prompt_chars", 0),
            ("max_answer_chars", 1),
            ("max_quoted_chars", 0),
            ("max_entry_chars", 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise _bad(name, value, f"use a whole number of at least {low}")
        for name in ("min_similarity", "max_patched_share"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not 0 <= value <= 1:
                raise _bad(name, value, "use a number from 0 to 1")
        if self.ttl is not None and not self.ttl > 0:
            raise _bad("ttl", self.ttl, "use seconds above 0, or None to keep entries")
        if not self.max_wait >= 0:
            raise _bad("max_wait", self.max_wait, "use seconds of at least 0")
        for name in ("max_verify_seconds", "max_embed_seconds", "max_store_seconds"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not (number and value > 0):
                raise _bad(name, value, "use seconds above 0, or None for no bound")
        if self.on_reject not in ("return", "raise"):
            raise _bad("on_reject", self.on_reject, "use 'return' or 'raise'")
        if not isinstance(self.require_namespace, bool):
            raise _bad("require_namespace", self.require_namespace, "use True or False")
        if self.redact is not None and not callable(self.redact):
            raise _bad("redact", self.redact, "use a function from text to text, or None")


def _misused(what: str) -> Exception:
    from stepcache._errors import UsageError

    return UsageError(f"the call's cache control: {what}")


def _kinds(kinds: tuple[type, ...]) -> str:
    return " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)


def _bad(name: str, value: object, fix: str) -> Exception:
    from stepcache._errors import ConfigurationError

    return ConfigurationError(f"Policy.{name} is {value!r}: {fix}")


def join(steps: Sequence[Step]) -> str:
    """The text of all steps."""
    return steps[0].text if len(steps) == 1 else "".join(step.text for step in steps)


def quick(kind: type[T]) -> type[T]:
    """What makes values of a frozen dataclass at the price of a mutable one: a third of its own.

    Args:
        kind: A frozen dataclass with slots, keyword-only fields, and no default made by a factory.
    """
    names = [(f.name, Any, field(default=f.default)) for f in fields(cast("Any", kind))]

    def freeze(self: Any) -> None:
        self.__class__ = kind

    twin = make_dataclass(
        f"_{kind.__name__}",
        names,
        slots=True,
        kw_only=True,
        eq=False,
        repr=False,
        namespace={"__post_init__": freeze},
    )
    return cast("type[T]", twin)
