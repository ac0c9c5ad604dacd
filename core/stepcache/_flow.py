"""The engine: every operation written once, as a generator that wishes for effects.

    bypass? -> exact tier -> join an equal request in flight -> parse -> canonical tier
    -> candidates -> differences -> verify -> plan -> reuse | adapt | patch | ask
    -> final check -> mend, one repair, deterministic answer -> admit

Nothing here touches a store, a model, a clock or a thread; drivers do (``_drive``). Ports that fail
make a miss and a trace event. The user's model errors are not caught while the whole answer is
asked for, so they pass through as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar, cast

from stepcache._admission import complete, redacted, why_not_admitted
from stepcache._context import asks_for_form
from stepcache._counts import count
from stepcache._difference import masked
from stepcache._effects import (
    Ask,
    Effect,
    Embed,
    Flow,
    Generate,
    Get,
    Join,
    Put,
    Search,
    Settle,
    do,
)
from stepcache._errors import AnswerRejected
from stepcache._identity import Identity, digest, identify
from stepcache._judge import OVER_BUDGET, Judge, Option, find_judge, said
from stepcache._origins import all_of, of_adapted, of_beginning, of_patched
from stepcache._patience import Budget
from stepcache._progress import Progress
from stepcache._proofs import Proofs
from stepcache._reports import REPORTS, namespace_tags, report_key
from stepcache._types import (
    Candidate,
    Control,
    Entry,
    Event,
    Message,
    ModelCall,
    Origin,
    Outcome,
    Policy,
    Reply,
    Request,
    Route,
    Status,
    Step,
    Trace,
    Usage,
    Verdict,
    join,
    quick,
)
from stepcache.protocols import Match, Task, Vector, Verifier

__all__ = ["Resolution", "Setup", "admit", "lookup", "resolve", "shared"]

T = TypeVar("T")

_UNKNOWN = Entry(
    id="", scope="", exact_key="", canonical_key=None, prompt="", constraints=None, steps=()
)
"""Stands for what a failing store might have held."""


_WHY_NOT = {"patch": "patch-failed", "reported": "reported", "store failed": "store-failed"}
"""Codes of what may come after the last candidate was considered."""


class _Why(NamedTuple):
    """A reason: its stable code, and the sentence that may quote a text."""

    code: str
    said: str


_NOTHING = Usage()
_NOBODY = Identity(scope="", exact_key="")
_SAME_REQUEST = _Why("same-request", "the same request was answered before")
_made_outcome, _made_event = quick(Outcome), quick(Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What an engine was built with, as far as flows need to know."""

    tasks: tuple[Task, ...]
    policy: Policy
    verifiers: tuple[Verifier, ...] = ()
    clock: Callable[[], float] | None = None
    """Seconds that only go forward, to bound proofs by; None leaves them unbounded."""
    proofs: Proofs = field(default_factory=Proofs)
    """What this engine has proven so far."""


def resolve(
    request: Request, setup: Setup, control: Control, *, streaming: bool = False
) -> Flow[Outcome]:
    """Answer a request, asking the model for what cannot be proven.

    Args:
        streaming: Whether somebody reads along; matters only to readers who want every miss passed
            through unverified.
    """
    resolution = Resolution(
        request, setup, control, may_ask=True, may_patch=True, streaming=streaming
    )
    return resolution.run()


def lookup(request: Request, setup: Setup, control: Control, *, may_patch: bool) -> Flow[Outcome]:
    """Answer a request from the cache, asking the model for a missing part at most.

    The outcome has ``served=False`` when the caller has to ask the model for the whole answer.
    """
    resolution = Resolution(request, setup, control, may_ask=False, may_patch=may_patch)
    return resolution.run()


def admit(request: Request, reply: Reply, setup: Setup, control: Control) -> Flow[str | None]:
    """Keep an answer that was made elsewhere, if law 5 lets it in; returns the entry's id."""
    resolution = Resolution(request, setup, control, may_ask=False, may_patch=False)
    return (yield from resolution.admit_reply(reply))


def shared(outcome: Outcome) -> Flow[Outcome]:
    """Answer a request with the outcome of an equal one."""
    yield from ()
    return _joined(outcome)


class Resolution:
    """One request on its way. Holds what the stages learn; lives for one flow.

    Args:
        scope: Where to take the request for being; None finds out.
    """

    def __init__(
        self,
        request: Request,
        setup: Setup,
        control: Control,
        *,
        may_ask: bool,
        may_patch: bool,
        streaming: bool = False,
        scope: str | None = None,
    ) -> None:
        self.request = request
        self.policy = setup.policy
        self.setup = setup
        self.control = control
        self.may_ask = may_ask
        self.may_patch = may_patch
        self.streaming = streaming
        self.scope = scope
        self.events: list[Event] = []
        self.notices: list[str] = []
        self.spent = _NOTHING
        self.identity = _NOBODY
        self.judge: Judge | None = None
        """None while only exact reuse is possible."""
        self.vector: Vector | None = None
        self.taken: Option | None = None
        """What is served, or what the model is being asked for a part of."""

    # --- the order of things -------------------------------------------------------------------

    def run(self) -> Flow[Outcome]:
        why = self.why_bypass()
        if why is not None:
            self.note("bypass", why.said)
            return (yield from self.pass_through(why))
        found = yield from self.exact_tier()
        if found is not None:
            return found
        if not self.may_ask:
            return (yield from self.work())
        shared = yield from do(Join(self.identity.exact_key))
        if shared is not None:
            return _joined(shared)
        # The leader we just missed may have stored its answer between our look-up and our joining.
        found = yield from self.exact_tier(again=True)
        outcome = found if found is not None else (yield from self.work())
        # What one reader took unverified, and could not be kept, is nothing to share: whoever
        # waits for it asks for themselves.
        if outcome.entry_id is not None or not self.unverified:
            yield from do(Settle(self.identity.exact_key, outcome))
        return outcome

    def work(self) -> Flow[Outcome]:
        self.parse()
        met = False
        if not self.control.refresh:
            outcome = yield from self.canonical_tier()
            if outcome is not None:
                return outcome
            outcome, met = yield from self.candidates()
            if outcome is not None:
                return outcome
        route: Route = "skip" if met else "miss"
        why = self.why_not_served(met)
        if not self.may_ask:
            return self.outcome("", route, why, served=False)
        return (yield from self.ask(route, why))

    # --- tiers ---------------------------------------------------------------------------------

    def why_bypass(self) -> _Why | None:
        if self.control.bypass:
            return _Why("bypass-asked", "asked to bypass the cache")
        if not self.request.messages:
            return _Why("no-message", "there is no message")
        params = self.request.params
        if params and (params.get("logprobs") or params.get("top_logprobs")):
            return _Why("log-probabilities", "log probabilities belong to one generation")
        try:
            self.identity = identify(self.request, self.scope)
        except ValueError as error:
            return _Why("no-identity", f"the request has no safe identity: {error}")
        return None

    def why_not_served(self, met: bool) -> _Why:
        """Why the model has to be asked for the whole answer.

        Args:
            met: Whether stored entries were considered.
        """
        if self.control.refresh:
            return _Why("refresh", "asked to refresh")
        judge = self.judge
        if met and judge is not None:
            last = self.events[-1]
            code = _WHY_NOT.get(last.name) or (judge.met[-1].code if judge.met else "differs")
            return _Why(code, last.detail)
        if judge is None:
            code = "exact-only"
        else:
            code = "nothing-near" if judge.task.retrieves else "nothing-equal"
        return _Why(code, "nothing stored answers it")

    def exact_tier(self, *, again: bool = False) -> Flow[Outcome | None]:
        if self.control.refresh or not self.policy.exact:
            return None
        # As attempt() would: the one wish of most requests is spared a generator.
        try:
            entry: Entry | None = yield Get(*self.identity, self.notices)
        except Exception as error:  # noqa: BLE001 - law 6: machinery fails open
            self.failed("store", error)
            entry = None
        self.hear()
        if entry is None:
            if not again:
                self.note("exact", "no entry")
            return None
        self.note("exact", f"entry {entry.id}")
        return _made_outcome(
            text=entry.text,
            route="exact",
            reason=_SAME_REQUEST.said,
            code=_SAME_REQUEST.code,
            task=entry.constraints.task if entry.constraints is not None else None,
            steps=entry.steps,
            origins=all_of("reused", entry.steps),
            reused_steps=len(entry.steps),
            entry_id=entry.id,
            avoided=entry.usage,
            message=entry.message,
            model=entry.model,
            trace=self.trace(),
        )

    def parse(self) -> None:
        """Find the task that takes the request; none when only exact reuse is possible."""
        why = self.why_exact_only()
        if why is not None:
            self.note("task", f"none: {why}")
            return
        self.judge = find_judge(
            self.request,
            self.identity.scope,
            self.setup.tasks,
            self.policy,
            self.setup.verifiers,
            self.note,
            self.setup.proofs,
            Budget(self.policy.max_verify_seconds, self.setup.clock),
        )

    def why_exact_only(self) -> str | None:
        text, contract = self.request.text, self.request.contract
        if not text.strip():
            return "there is no closing user text"
        if self.request.messages[-1].extra:
            return "the closing message holds more than text"
        if len(text) > self.policy.max_prompt_chars:
            return f"longer than max_prompt_chars={self.policy.max_prompt_chars}"
        if contract.tools:
            return "tools are offered"
        if contract.opaque:
            return "the output contract cannot be read"
        if self.request.params.get("n") not in (None, 1):
            return "more than one answer is asked for"
        return None

    def canonical_tier(self) -> Flow[Outcome | None]:
        if self.judge is None or not self.policy.canonical:
            return None
        get = Get(self.identity.scope, self.judge.canonical, self.notices)
        entry = yield from self.attempt(get, "store", None)
        if entry is None:
            self.note("canonical", "no entry")
            return None
        self.note("canonical", f"entry {entry.id}")
        option = self.judge.consider(entry)
        if option is None or option.plan.action != "reuse":
            return None
        why = _Why("same-demands", "the same demands in other words")
        return (yield from self.serve(option, why))

    def candidates(self) -> Flow[tuple[Outcome | None, bool]]:
        """The cheapest candidate's outcome, and whether any candidate was met."""
        judge = self.judge
        if judge is None or not judge.task.retrieves or not self.policy.candidates:
            return None, False
        matches = yield from self.search()
        if not matches:
            return None, False
        patches: list[Option] = []
        for match in matches:
            option = judge.consider(match.entry, match.similarity)
            if option is None:
                continue
            # Neither asks a model, so no further candidate could cost less.
            if option.plan.action in ("reuse", "adapt"):
                outcome = yield from self.serve(option, _planned(option))
                if outcome is not None:
                    return outcome, True
            elif option.plan.action == "patch":
                patches.append(option)
        if patches and self.may_patch:
            cheapest = min(patches, key=lambda option: option.plan.share)
            outcome = yield from self.patch(judge, cheapest)
            if outcome is not None:
                return outcome, True
        return None, True

    def search(self) -> Flow[tuple[Match, ...]]:
        vector = yield from self.embed()
        if vector is None:
            return ()
        wish = Search(self.identity.scope, vector, self.policy.candidates, self.notices)
        matches: tuple[Match, ...] = yield from self.attempt(wish, "store", ())
        near = tuple(m for m in matches if m.similarity >= self.policy.min_similarity)
        self.note("candidates", f"{len(near)} near enough of {len(matches)} found")
        return near

    def embed(self) -> Flow[Vector | None]:
        if self.vector is None and self.judge is not None:
            text = self.request.text
            views = (text, masked(text, self.judge.constraints.spans))
            self.vector = yield from self.attempt(Embed(views), "embedder", None)
        return self.vector

    # --- serving and patching ------------------------------------------------------------------

    def serve(self, option: Option, why: _Why) -> Flow[Outcome | None]:
        adapted = option.plan.action == "adapt"
        if adapted and (yield from self.reported(join(option.steps), self.judge)):
            return None
        self.taken = option
        entry = yield from self.keep_as(option.steps, option.entry)
        origins = of_adapted(option.steps, option.entry.steps)
        return self.outcome(
            join(option.steps),
            "adapt" if adapted else "reuse",
            why,
            steps=option.steps,
            verdicts=option.verdicts,
            origins=origins,
            reused=origins.count("reused"),
            avoided=option.entry.usage,
            entry=entry,
        )

    def patch(self, judge: Judge, option: Option) -> Flow[Outcome | None]:
        """Ask for the failing block only; None when that leads to no verified whole."""
        gap = option.gap
        call = judge.patch_call(self.request, gap)
        if call is None:
            return None
        self.taken = option
        progress = Progress(judge, lambda text: judge.spliced(text, gap), gap.beginning)
        # Without a deterministic answer to fall back on, a failed patch means asking for the whole.
        watch = progress.watch if self.policy.fallback else None
        reply = yield from self.second_ask(call, "patch", watch)
        text: str | None = None
        patched: Option | None = None
        if reply is None or not complete(reply.finish_reason):
            self.note("patch", "no complete reply")
        else:
            text = judge.spliced(reply.text, gap)
            patched = judge.patched(text, option)
        if patched is not None and not progress.fits(join(patched.steps)):
            self.note("patch", "the reply takes back what was verified")
            patched = None
        if patched is not None and (yield from self.reported(join(patched.steps), judge)):
            patched = None
        if patched is None:
            return (yield from self.end_patch(judge, option, progress.standing(text)))
        anew, of = len(gap.block), len(option.steps)
        self.note("patch", f"{anew} of {count(of, 'step')} made anew and verified")
        origins = of_patched(patched.steps, option.steps)
        return (yield from self.stitched("patch", option, patched.steps, origins, of - anew, anew))

    def end_patch(self, judge: Judge, option: Option, beginning: str) -> Flow[Outcome | None]:
        """What stands of a patch that failed, with the deterministic ending; None without one."""
        text = judge.ended(beginning) if beginning and self.policy.fallback else None
        if text is None:
            return None
        self.note("fallback", "the deterministic ending")
        steps = judge.cut(text)
        kept = len(judge.cut(beginning))
        origins = of_beginning(steps, beginning, option.steps, "patched")
        anew = len(steps) - kept
        return (yield from self.stitched("fallback", option, steps, origins, kept, anew))

    def stitched(
        self,
        route: Route,
        option: Option,
        steps: tuple[Step, ...],
        origins: tuple[Origin, ...],
        reused: int,
        patched: int,
    ) -> Flow[Outcome]:
        """The outcome of an answer made in part."""
        judge, source = self.judge, option.entry
        entry = yield from self.keep_as(steps, source, _larger(source.usage, self.spent))
        return self.outcome(
            join(steps),
            route,
            _planned(option),
            steps=steps,
            verdicts=judge.verify(steps) if judge is not None else (),
            origins=origins,
            reused=reused,
            patched=patched,
            avoided=source.usage.minus(self.spent),
            entry=entry,
        )

    def second_ask(
        self, call: ModelCall, name: str, watch: Callable[[str], str] | None = None
    ) -> Flow[Reply | None]:
        """Ask the model for something the user did not ask for as such; its failure is ours."""
        reply = yield from self.attempt(Generate(call, watch), name, None)
        if reply is not None:
            self.spent += reply.usage
        return reply

    # --- asking --------------------------------------------------------------------------------

    def pass_through(self, why: _Why) -> Flow[Outcome]:
        if not self.may_ask:
            return self.outcome("", "bypass", why, served=False)
        call = ModelCall(purpose="answer", messages=self.request.messages, live=True)
        reply = yield from do(Generate(call))
        self.spent += reply.usage
        return self.from_reply(reply, "bypass", why)

    def ask(self, route: Route, why: _Why) -> Flow[Outcome]:
        """Ask the model for the whole answer, and see that it is right where that can be seen."""
        judge = self.judge if self.judge is not None and self.judge.constraints.whole else None
        if self.unverified:
            judge = None
        progress = Progress(judge) if judge is not None else None
        call = ModelCall(purpose="answer", messages=self.request.messages, live=progress is None)
        watch = progress.watch if progress is not None else None
        reply = yield from do(Generate(call, watch))
        self.spent += reply.usage
        self.note("asked", f"the model, for the whole answer ({route})")
        if judge is None or progress is None or reply.refusal or not reply.reusable:
            return (yield from self.accept(reply, route, why))
        return (yield from self.checked(judge, progress, reply, route, why))

    @property
    def unverified(self) -> bool:
        """Whether this is a stream whose reader wants the model's words before their proof."""
        asked = self.control.stream_unverified
        return self.streaming and (self.policy.stream_unverified if asked is None else asked)

    def checked(
        self, judge: Judge, progress: Progress, reply: Reply, route: Route, why: _Why
    ) -> Flow[Outcome]:
        """The reply if it passes, else what can be made of it: mended, asked again, solved.

        What of it is verified and can be ended stands, whether or not a stream has shown it: it is
        gone on from, not begun anew.
        """
        verdict = judge.reply(reply)
        if verdict.status is Status.PASS:
            return (yield from self.accept(reply, route, why))
        self.note("check", verdict.reason)
        if verdict.code == OVER_BUDGET:  # nobody knows that it is wrong: no reason to ask again
            return self.from_reply(reply, route, why)
        standing = progress.standing(reply.text, cut_off=not complete(reply.finish_reason))
        mended = judge.mended(reply)
        if mended is not None and mended.text.startswith(standing):
            self.note("mended", "without the model")
            return (yield from self.accept(mended, route, why))
        if complete(reply.finish_reason):
            for _ in range(self.policy.max_repairs):
                better = yield from self.repair(judge, standing, reply, verdict)
                if better is not None and better.text.startswith(standing):
                    self.note("repaired", "the second answer passed")
                    return (yield from self.accept(better, route, why))
        # An answer that is not proven wrong may be right in a form that an earlier turn asked for.
        replaceable = verdict.status is Status.FAIL or not asks_for_form(self.request.messages)
        solved = judge.solved(reply, standing) if self.policy.fallback and replaceable else None
        if solved is not None:
            self.note("fallback", "the deterministic answer")
            why = _Why(verdict.code, verdict.reason)
            return (yield from self.accept(solved, "fallback", why, standing))
        self.note("rejected", "nothing passed the final check; the model's own answer is returned")
        outcome = self.from_reply(reply, route, why)
        if self.policy.on_reject == "raise":
            raise AnswerRejected(f"no answer passed the final check: {verdict.reason}", outcome)
        return outcome

    def repair(
        self, judge: Judge, standing: str, reply: Reply, verdict: Verdict
    ) -> Flow[Reply | None]:
        """A second answer that passes, gone on from what stands of the first; None without one."""
        gap = judge.broken_off(standing, reply, verdict) if standing else None
        call = judge.patch_call(self.request, gap) if gap is not None else None
        if call is None:
            self.note("repair", "asked once more, with the reason")
            call = self.whole_repair(reply, verdict)
        else:
            stands = count(len(standing), "character")
            self.note("repair", f"asked to go on from what stands: {stands}")
            call = replace(call, purpose="repair")
        second = yield from self.second_ask(call, "repair")
        if second is None or not second.reusable:
            return None
        if gap is not None:
            text = judge.spliced(second.text, gap)
            second = replace(second, text=text) if text is not None else second
        if judge.reply(second).status is Status.PASS:
            return second
        return judge.mended(second)

    def whole_repair(self, reply: Reply, verdict: Verdict) -> ModelCall:
        messages = (
            *self.request.messages,
            Message(role="assistant", text=reply.text[: self.policy.max_quoted_chars]),
            Message(
                role="user",
                text=(
                    f"That answer does not satisfy the request: {verdict.reason}. "
                    "Answer the request again, correctly and in full, in the form it asks for."
                ),
            ),
        )
        return ModelCall(purpose="repair", messages=messages)

    def accept(
        self, reply: Reply, route: Route, why: _Why, standing: str | None = None
    ) -> Flow[Outcome]:
        """Keep an answer and hand it over.

        Args:
            standing: What the model said of it, where the end is the task's own.
        """
        entry_id = yield from self.admit_reply(reply, parsed=True)
        return self.from_reply(reply, route, why, entry_id, standing)

    # --- keeping -------------------------------------------------------------------------------

    def admit_reply(self, reply: Reply, *, parsed: bool = False) -> Flow[str | None]:
        """Keep a reply if law 5 lets it in; returns the entry's id."""
        if not parsed:
            if self.why_bypass() is not None:
                return None
            self.parse()
        why = why_not_admitted(reply, self.policy, self.request)
        if why is not None:
            self.note("not admitted", why)
            return None
        judge = self.judge if reply.reusable else None
        steps: tuple[Step, ...] = (Step(index=0, text=reply.text),) if reply.text else ()
        if judge is not None:
            verdict = judge.reply(reply)
            unsure = verdict.status is Status.UNKNOWN
            if verdict.status is Status.FAIL or (unsure and judge.constraints.whole):
                self.note("not admitted", verdict.reason)
                return None
            steps = judge.cut(reply.text)
            if unsure:  # what nobody can judge is kept for byte-equal requests
                judge = None
        if (yield from self.reported(reply.text or reply.message, judge)):
            return None
        vector = None
        if judge is not None and judge.task.retrieves:
            vector = yield from self.embed()
        return (yield from self.put(self.entry(steps, judge, reply), vector))

    def reported(self, answer: str | None, judge: Judge | None) -> Flow[bool]:
        """Whether this very answer to these demands was reported as bad."""
        demands = judge.canonical if judge is not None else self.identity.exact_key
        wish = Get(REPORTS, report_key(self.identity.scope, demands, answer), self.notices)
        # Not knowing is not permission: a store that fails here keeps nothing.
        found = yield from self.attempt(wish, "store", _UNKNOWN)
        if found is not None and found is not _UNKNOWN:
            self.note("reported", "this answer was reported as bad")
        return found is not None

    def entry(
        self,
        steps: tuple[Step, ...],
        judge: Judge | None,
        reply: Reply,
    ) -> Entry:
        text = join(steps)
        return Entry(
            id=self.entry_id(text, reply.message),
            scope=self.identity.scope,
            exact_key=self.identity.exact_key,
            canonical_key=judge.canonical if judge is not None else None,
            prompt=self.request.text,
            constraints=judge.constraints if judge is not None else None,
            steps=steps,
            message=reply.message,
            usage=self.spent if self.spent.calls else reply.usage,
            model=reply.model,
            tags=(*self.control.tags, *namespace_tags(self.request.namespace)),
        )

    def entry_id(self, text: str, message: str | None) -> str:
        """Of an answer with text the host's record tells nothing more, and how it came (streamed,
        whole) may vary in it; of one without, the record is all there is."""
        return digest("entry", self.identity.exact_key, text or message)[:24]

    def keep_as(
        self, steps: tuple[Step, ...], source: Entry, usage: Usage | None = None
    ) -> Flow[Entry]:
        """Keep proven steps under the new request too, no younger than the entry they came from."""
        canonical = self.judge.canonical if self.judge is not None else None
        entry = replace(
            source,
            id=self.entry_id(join(steps), source.message),
            exact_key=self.identity.exact_key,
            canonical_key=canonical,
            prompt=self.request.text,
            constraints=self.judge.constraints if self.judge is not None else None,
            steps=steps,
            usage=usage or source.usage,
            tags=tuple(dict.fromkeys((*source.tags, *self.control.tags))),
        )
        same_demands = source.canonical_key == canonical
        # A re-worded request is found by its canonical key; another vector would only crowd the
        # index. Changed constraints are new ground.
        vector = None if same_demands else (yield from self.embed())
        yield from self.put(entry, vector, inherit=True)
        return entry

    def put(
        self, entry: Entry, vector: Vector | None, *, inherit: bool = False
    ) -> Flow[str | None]:
        ttl = self.control.ttl if self.control.ttl is not None else self.policy.ttl
        if inherit and entry.expires is not None:
            ttl = None
        stored = redacted(entry, self.policy)
        if isinstance(stored, str):
            self.note("not admitted", stored)
            return None
        if stored is not entry and stored.constraints is None:
            vector = None  # it would tell what was taken out
        kept = yield from self.attempt(Put(stored, vector, ttl), "store", False)
        if not kept:
            return None
        self.note("admitted", f"entry {entry.id}")
        return entry.id

    # --- telling -------------------------------------------------------------------------------

    def note(self, name: str, detail: str) -> None:
        self.events.append(_made_event(name=name, detail=detail))

    def attempt(self, wish: Ask[T], port: str, default: T) -> Flow[T]:
        """Fulfil a wish whose failure is no reason to fail the user."""
        try:
            result: T = yield cast("Effect", wish)
        except Exception as error:  # noqa: BLE001 - law 6: machinery fails open
            self.failed(port, error)
            result = default
        self.hear()
        return result

    def failed(self, port: str, error: Exception) -> None:
        self.note(f"{port} failed", said(error))

    def hear(self) -> None:
        """Note what the store had to say beside its answer."""
        if self.notices:
            for notice in self.notices:
                self.note("integrity", notice)
            self.notices.clear()

    def from_reply(
        self,
        reply: Reply,
        route: Route,
        why: _Why,
        entry_id: str | None = None,
        standing: str | None = None,
    ) -> Outcome:
        steps: tuple[Step, ...] = ()
        if reply.text:
            steps = (Step(index=0, text=reply.text),)
            if self.judge is not None and reply.reusable:
                steps = self.judge.cut(reply.text)
        origins = all_of("generated", steps)
        if standing is not None:
            origins = of_beginning(steps, standing, (), "generated")
        return Outcome(
            text=reply.text,
            route=route,
            reason=why.said,
            code=why.code,
            task=self.judge.task.name if self.judge is not None else None,
            steps=steps,
            origins=origins,
            candidates=self.considered(),
            entry_id=entry_id,
            spent=self.spent,
            message=reply.message,
            finish_reason=reply.finish_reason,
            model=reply.model,
            trace=self.trace(),
        )

    def outcome(
        self,
        text: str,
        route: Route,
        why: _Why,
        *,
        steps: tuple[Step, ...] = (),
        verdicts: tuple[Verdict, ...] = (),
        origins: tuple[Origin, ...] | None = None,
        reused: int = 0,
        patched: int = 0,
        avoided: Usage | None = None,
        entry: Entry | None = None,
        served: bool = True,
    ) -> Outcome:
        kept = entry.constraints if entry is not None else None
        task = self.judge.task.name if self.judge is not None else kept.task if kept else None
        return _made_outcome(
            text=text,
            route=route,
            reason=why.said,
            code=why.code,
            task=task,
            steps=steps,
            verdicts=verdicts,
            origins=origins if origins is not None else all_of("reused", steps),
            candidates=self.considered(),
            reused_steps=reused,
            patched_steps=patched,
            entry_id=entry.id if entry else None,
            spent=self.spent,
            avoided=avoided or _NOTHING,
            message=entry.message if entry else None,
            model=entry.model if entry else None,
            served=served,
            trace=self.trace(),
        )

    def considered(self) -> tuple[Candidate, ...]:
        return tuple(self.judge.met) if self.judge is not None else ()

    def trace(self) -> Trace:
        return Trace(events=tuple(self.events))


def _joined(outcome: Outcome) -> Outcome:
    reason = "an equal request was in flight and its answer is shared"
    return replace(
        outcome,
        route="exact",
        reason=reason,
        code="in-flight",
        origins=all_of("reused", outcome.steps),
        reused_steps=len(outcome.steps),
        patched_steps=0,
        spent=Usage(),
        avoided=outcome.spent + outcome.avoided,
        trace=Trace(events=(*outcome.trace.events, Event(name="joined", detail=reason))),
    )


def _planned(option: Option) -> _Why:
    return _Why(option.plan.code, option.plan.reason)


def _larger(one: Usage, other: Usage) -> Usage:
    return one if one.tokens >= other.tokens else other
