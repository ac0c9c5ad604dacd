"""The engine: every operation written once, as a generator that wishes for effects.

    bypass? -> exact tier -> join an equal request in flight -> parse -> canonical tier
    -> candidates -> differences -> verify -> plan -> reuse | adapt | patch | ask
    -> final check -> mend, one repair, deterministic answer -> admit

Nothing here touches a store, a model, a clock or a thread; drivers do (``_drive``). Ports that fail
make a miss and a trace event. The user's model errors are not caught while the whole answer is
asked for, so they pass through as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from stepcache._admission import complete, why_not_admitted
from stepcache._difference import content, masked, residue_differences
from stepcache._effects import (
    Ask,
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
from stepcache._identity import Identity, canonical_key, digest, identify
from stepcache._plan import make_plan, worst
from stepcache._types import (
    Constraints,
    Control,
    Declined,
    Difference,
    Entry,
    Event,
    Message,
    ModelCall,
    Outcome,
    Plan,
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
)
from stepcache.protocols import Match, Task, Vector, Verifier

__all__ = ["Setup", "admit", "lookup", "resolve"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What an engine was built with, as far as flows need to know."""

    tasks: tuple[Task, ...]
    policy: Policy
    verifiers: tuple[Verifier, ...] = ()


def resolve(request: Request, setup: Setup, control: Control) -> Flow[Outcome]:
    """Answer a request, asking the model for what cannot be proven."""
    return (yield from _Resolution(request, setup, control, may_ask=True, may_patch=True).run())


def lookup(request: Request, setup: Setup, control: Control, *, may_patch: bool) -> Flow[Outcome]:
    """Answer a request from the cache, asking the model for a missing part at most.

    The outcome has ``served=False`` when the caller has to ask the model for the whole answer.
    """
    resolution = _Resolution(request, setup, control, may_ask=False, may_patch=may_patch)
    return (yield from resolution.run())


def admit(request: Request, reply: Reply, setup: Setup, control: Control) -> Flow[str | None]:
    """Keep an answer that was made elsewhere, if law 5 lets it in; returns the entry's id."""
    resolution = _Resolution(request, setup, control, may_ask=False, may_patch=False)
    return (yield from resolution.admit_reply(reply))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A candidate and what to do with it."""

    entry: Entry
    plan: Plan
    steps: tuple[Step, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def cost(self) -> float:
        return {"reuse": 0.0, "adapt": 0.001, "patch": 0.01 + self.plan.share, "skip": 9.0}[
            self.plan.action
        ]


class _Resolution:
    """One request on its way. Holds what the stages learn; lives for one flow."""

    def __init__(
        self,
        request: Request,
        setup: Setup,
        control: Control,
        *,
        may_ask: bool,
        may_patch: bool,
    ) -> None:
        self.request = request
        self.policy = setup.policy
        self.setup = setup
        self.control = control
        self.may_ask = may_ask
        self.may_patch = may_patch
        self.events: list[Event] = []
        self.spent = Usage()
        self.identity = Identity(scope="", exact_key="")
        self.task: Task | None = None
        self.constraints: Constraints | None = None
        self.content: tuple[str, ...] = ()
        self.canonical: str | None = None
        self.vector: Vector | None = None

    # --- the order of things -------------------------------------------------------------------

    def run(self) -> Flow[Outcome]:
        why = self.why_bypass()
        if why is not None:
            self.note("bypass", why)
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
        why = "asked to refresh" if self.control.refresh else "nothing stored answers it"
        if met:
            why = self.events[-1].detail
        if not self.may_ask:
            return self.outcome("", route, why, served=False)
        return (yield from self.ask(route, why))

    # --- tiers ---------------------------------------------------------------------------------

    def why_bypass(self) -> str | None:
        if self.control.bypass:
            return "asked to bypass the cache"
        if not self.request.messages:
            return "there is no message"
        params = self.request.params
        if params.get("logprobs") or params.get("top_logprobs"):
            return "log probabilities belong to one generation"
        try:
            self.identity = identify(self.request)
        except ValueError as error:
            return f"the request has no safe identity: {error}"
        return None

    def exact_tier(self, *, again: bool = False) -> Flow[Outcome | None]:
        if self.control.refresh or not self.policy.exact:
            return None
        key = self.identity.exact_key
        entry = yield from self.attempt(Get(self.identity.scope, key), "store", None)
        if entry is None:
            if not again:
                self.note("exact", "no entry")
            return None
        self.note("exact", f"entry {entry.id}")
        return self.outcome(
            entry.text,
            "exact",
            "the same request was answered before",
            steps=entry.steps,
            reused=len(entry.steps),
            avoided=entry.usage,
            entry=entry,
        )

    def parse(self) -> None:
        """Find the task and the constraints; leave both None when only exact reuse is possible."""
        why = self.why_exact_only()
        if why is not None:
            self.note("task", f"none: {why}")
            return
        for task in self.setup.tasks:
            if self.request.task not in (None, task.name):
                continue
            try:
                parsed = task.parse(self.request)
                if isinstance(parsed, Declined):
                    self.note("task", f"not {task.name}: {parsed.reason}")
                    continue
                tokens = content(self.request.text, parsed.spans, task.neutral)
                key = canonical_key(self.identity.scope, parsed, tokens)
            except Exception as error:  # noqa: BLE001 - a broken task is no reason to fail a user
                self.note("task", f"not {task.name}: it raised {_said(error)}")
                continue
            self.task, self.constraints, self.content, self.canonical = task, parsed, tokens, key
            self.note("task", task.name)
            return
        self.note("task", "none accepts it")

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
        if self.canonical is None or not self.policy.canonical:
            return None
        get = Get(self.identity.scope, self.canonical)
        entry = yield from self.attempt(get, "store", None)
        if entry is None:
            self.note("canonical", "no entry")
            return None
        self.note("canonical", f"entry {entry.id}")
        option = self.consider(entry)
        if option is None or option.plan.action != "reuse":
            return None
        return (yield from self.serve(option, "the same demands in other words"))

    def candidates(self) -> Flow[tuple[Outcome | None, bool]]:
        """The cheapest candidate's outcome, and whether any candidate was met."""
        if self.task is None or not self.task.retrieves or not self.policy.candidates:
            return None, False
        matches = yield from self.search()
        if not matches:
            return None, False
        options: list[_Option] = []
        for match in matches:
            option = self.consider(match.entry)
            if option is not None:
                options.append(option)
                if option.plan.action == "reuse":
                    break
        options.sort(key=lambda option: option.cost)
        for option in options:
            if option.plan.action in ("reuse", "adapt"):
                return (yield from self.serve(option, option.plan.reason)), True
            if option.plan.action == "patch" and self.may_patch:
                outcome = yield from self.patch(option)
                if outcome is not None:
                    return outcome, True
                break
        return None, True

    def search(self) -> Flow[tuple[Match, ...]]:
        vector = yield from self.embed()
        if vector is None:
            return ()
        wish = Search(self.identity.scope, vector, self.policy.candidates)
        matches: tuple[Match, ...] = yield from self.attempt(wish, "store", ())
        near = tuple(m for m in matches if m.similarity >= self.policy.min_similarity)
        self.note("candidates", f"{len(near)} near enough of {len(matches)} found")
        return near

    def embed(self) -> Flow[Vector | None]:
        if self.vector is None and self.constraints is not None:
            text = self.request.text
            views = (text, masked(text, self.constraints.spans))
            self.vector = yield from self.attempt(Embed(views), "embedder", None)
        return self.vector

    # --- judging a candidate -------------------------------------------------------------------

    def consider(self, entry: Entry) -> _Option | None:
        """What could be done with an entry; None when a difference is not explained."""
        task, new, old = self.task, self.constraints, entry.constraints
        if task is None or new is None or old is None:
            return None
        if (old.task, old.version) != (new.task, new.version):
            self.note("retired", f"entry {entry.id} is of {old.task} {old.version}")
            return None
        try:
            differences = (
                *residue_differences(content(entry.prompt, old.spans, task.neutral), self.content),
                *task.differences(old, new),
            )
            unexplained = [d for d in differences if not d.explained]
            if unexplained:
                self.note("differs", _told(unexplained))
                return None
            if differences:
                self.note("explained", _told(differences))
            return self.assess(task, entry, old, new, changed=bool(differences))
        except Exception as error:  # noqa: BLE001 - law 6: a verifier that raises is unknown
            self.note("differs", f"{task.name} raised {_said(error)}")
            return None

    def assess(
        self, task: Task, entry: Entry, old: Constraints, new: Constraints, *, changed: bool
    ) -> _Option:
        verdicts = self.verify_all(task, entry.steps, new)
        plan = make_plan(entry.steps, verdicts, task.block(verdicts), self.policy)
        if plan.action == "reuse":
            verdict = self.final(task, entry.steps, new)
            if verdict.status is not Status.PASS:
                plan = Plan(action="skip", reason=f"the whole: {verdict.reason}", share=1.0)
        option = _Option(entry=entry, plan=plan, steps=entry.steps, verdicts=verdicts)
        # Steps that happen to hold under changed demands still speak of the old ones; where they
        # can be re-derived, they speak of the new.
        if self.policy.adapt and (changed or plan.action != "reuse"):
            option = self.adapted(task, option, old, new) or option
        self.note("plan", f"{option.plan.action} {entry.id}: {option.plan.reason}")
        return option

    def adapted(
        self, task: Task, option: _Option, old: Constraints, new: Constraints
    ) -> _Option | None:
        steps = task.adapt(option.steps, old, new)
        if steps is None:
            return None
        verdicts = self.verify_all(task, steps, new)
        if worst(verdicts) is not None or self.final(task, steps, new).status is not Status.PASS:
            return None
        plan = Plan(action="adapt", reason=f"{len(steps)} steps re-derived and verified")
        return replace(option, plan=plan, steps=steps, verdicts=verdicts)

    def verify_all(
        self, task: Task, steps: Sequence[Step], constraints: Constraints
    ) -> tuple[Verdict, ...]:
        return tuple(self.verify(task, step, constraints) for step in steps)

    def verify(self, task: Task, step: Step, constraints: Constraints) -> Verdict:
        try:
            verdict = task.verify(step, constraints)
            for verifier in self.setup.verifiers:
                if verdict.status is Status.PASS:
                    verdict = verifier(step, constraints) or verdict
            return verdict
        except Exception as error:  # noqa: BLE001 - law 6: a verifier that raises is unknown
            return Verdict.unknown("verifier-raised", f"the verifier raised {_said(error)}")

    def final(self, task: Task, steps: Sequence[Step], constraints: Constraints) -> Verdict:
        """The final check: the steps join to a whole that satisfies the constraints."""
        try:
            return task.check(steps, constraints)
        except Exception as error:  # noqa: BLE001 - law 6
            return Verdict.unknown("check-raised", f"the final check raised {_said(error)}")

    # --- serving and patching ------------------------------------------------------------------

    def serve(self, option: _Option, reason: str) -> Flow[Outcome]:
        adapted = option.plan.action == "adapt"
        entry = yield from self.keep_as(option.steps, option.entry)
        changed = sum(a.text != b.text for a, b in zip(option.steps, option.entry.steps))
        return self.outcome(
            join(option.steps),
            "adapt" if adapted else "reuse",
            reason,
            steps=option.steps,
            verdicts=option.verdicts,
            reused=len(option.steps) - changed,
            avoided=option.entry.usage,
            entry=entry,
        )

    def patch(self, option: _Option) -> Flow[Outcome | None]:
        """Ask for the failing block only; None when that does not lead to a verified whole."""
        task, constraints = self.task, self.constraints
        block = option.plan.blocks[0]
        if task is None or constraints is None:
            return None
        steps, verdicts = option.steps, option.verdicts
        call = self.safely(task.patch, self.request, steps, block, verdicts, constraints)
        if call is None:
            self.note("patch", "the block cannot be asked for alone")
            return None
        quoted = sum(len(m.text) for m in call.messages) - sum(
            len(m.text) for m in self.request.messages
        )
        if quoted > self.policy.max_quoted_chars:
            self.note("patch", f"it would quote {quoted} characters of the cache")
            return None
        reply = yield from self.second_ask(call, "patch")
        if reply is None or not complete(reply.finish_reason):
            self.note("patch", "no complete reply")
            return None
        text = self.safely(task.splice, reply.text, steps, block, verdicts, constraints)
        if text is None:
            self.note("patch", "the reply does not fit the gap")
            return None
        steps = self.cut(task, text)
        verdicts = self.verify_all(task, steps, constraints)
        bad = worst([*verdicts, self.final(task, steps, constraints)])
        if bad is not None:
            self.note("patch", f"the patched answer failed: {bad.reason}")
            return None
        reused = len(option.steps) - len(block)
        self.note("patch", f"{len(block)} of {len(option.steps)} steps made anew and verified")
        usage = _larger(option.entry.usage, self.spent)
        entry = yield from self.keep_as(steps, option.entry, usage)
        return self.outcome(
            text,
            "patch",
            option.plan.reason,
            steps=steps,
            verdicts=verdicts,
            reused=reused,
            patched=len(block),
            avoided=option.entry.usage.minus(self.spent),
            entry=entry,
        )

    def second_ask(self, call: ModelCall, name: str) -> Flow[Reply | None]:
        """Ask the model for something the user did not ask for as such; its failure is ours."""
        reply = yield from self.attempt(Generate(call), name, None)
        if reply is not None:
            self.spent += reply.usage
        return reply

    # --- asking --------------------------------------------------------------------------------

    def pass_through(self, why: str) -> Flow[Outcome]:
        if not self.may_ask:
            return self.outcome("", "bypass", why, served=False)
        call = ModelCall(purpose="answer", messages=self.request.messages, live=True)
        reply = yield from do(Generate(call))
        self.spent += reply.usage
        return self.from_reply(reply, "bypass", why)

    def ask(self, route: Route, why: str) -> Flow[Outcome]:
        """Ask the model for the whole answer, and see that it is right where that can be seen."""
        judged = self.constraints is not None and self.constraints.whole
        call = ModelCall(purpose="answer", messages=self.request.messages, live=not judged)
        reply = yield from do(Generate(call))
        self.spent += reply.usage
        self.note("asked", f"the model, for the whole answer ({route})")
        if not judged or reply.refusal or not reply.reusable:
            entry_id = yield from self.admit_reply(reply, parsed=True)
            return self.from_reply(reply, route, why, entry_id)
        return (yield from self.judge(reply, route, why))

    def judge(self, reply: Reply, route: Route, why: str) -> Flow[Outcome]:
        verdict = self.check_reply(reply)
        if verdict.status is Status.PASS:
            return (yield from self.accept(reply, route, why))
        self.note("check", verdict.reason)
        mended = self.mend(reply)
        if mended is not None:
            self.note("mended", "without the model")
            return (yield from self.accept(mended, route, why))
        if complete(reply.finish_reason):
            for _ in range(self.policy.max_repairs):
                better = yield from self.repair(reply, verdict)
                if better is not None:
                    self.note("repaired", "the second answer passed")
                    return (yield from self.accept(better, route, why))
        solved = self.solved(reply)
        if solved is not None:
            self.note("fallback", "the deterministic answer")
            return (yield from self.accept(solved, "fallback", verdict.reason))
        self.note("rejected", "nothing passed the final check; the model's own answer is returned")
        outcome = self.from_reply(reply, route, why)
        if self.policy.on_reject == "raise":
            raise AnswerRejected(f"no answer passed the final check: {verdict.reason}", outcome)
        return outcome

    def check_reply(self, reply: Reply) -> Verdict:
        task, constraints = self.task, self.constraints
        if task is None or constraints is None:
            return Verdict.unknown("no-task", "no task can judge it")
        if not complete(reply.finish_reason):
            return Verdict.unknown("incomplete", f"the answer ended by {reply.finish_reason!r}")
        return self.final(task, self.cut(task, reply.text), constraints)

    def mend(self, reply: Reply) -> Reply | None:
        task, constraints = self.task, self.constraints
        if task is None or constraints is None or not complete(reply.finish_reason):
            return None
        text = self.safely(task.mend, reply.text, constraints)
        if text is None:
            return None
        mended = replace(reply, text=text)
        return mended if self.check_reply(mended).status is Status.PASS else None

    def repair(self, reply: Reply, verdict: Verdict) -> Flow[Reply | None]:
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
        self.note("repair", "asked once more, with the reason")
        call = ModelCall(purpose="repair", messages=messages)
        second = yield from self.second_ask(call, "repair")
        if second is None or not second.reusable:
            return None
        if self.check_reply(second).status is Status.PASS:
            return second
        return self.mend(second)

    def solved(self, reply: Reply) -> Reply | None:
        task, constraints = self.task, self.constraints
        if task is None or constraints is None or not self.policy.fallback:
            return None
        text = self.safely(task.solve, constraints)
        if text is None:
            return None
        answer = replace(reply, text=text, finish_reason="stop")
        return answer if self.check_reply(answer).status is Status.PASS else None

    def accept(self, reply: Reply, route: Route, why: str) -> Flow[Outcome]:
        entry_id = yield from self.admit_reply(reply, parsed=True)
        return self.from_reply(reply, route, why, entry_id)

    # --- keeping -------------------------------------------------------------------------------

    def admit_reply(self, reply: Reply, *, parsed: bool = False) -> Flow[str | None]:
        """Keep a reply if law 5 lets it in; returns the entry's id."""
        if not parsed:
            why = self.why_bypass()
            if why is not None:
                return None
            self.parse()
        why = why_not_admitted(reply, self.policy)
        if why is not None:
            self.note("not admitted", why)
            return None
        constraints = self.constraints if reply.reusable else None
        steps: tuple[Step, ...] = (Step(index=0, text=reply.text),) if reply.text else ()
        if constraints is not None and self.task is not None:
            verdict = self.check_reply(reply)
            if verdict.status is Status.FAIL or (
                verdict.status is Status.UNKNOWN and constraints.whole
            ):
                self.note("not admitted", verdict.reason)
                return None
            if verdict.status is Status.UNKNOWN:
                constraints = None
            else:
                steps = self.cut(self.task, reply.text)
        entry = self.entry(steps, constraints, reply)
        vector = None
        if constraints is not None and self.task is not None and self.task.retrieves:
            vector = yield from self.embed()
        return (yield from self.put(entry, vector))

    def entry(
        self,
        steps: tuple[Step, ...],
        constraints: Constraints | None,
        reply: Reply,
    ) -> Entry:
        text = join(steps)
        return Entry(
            id=self.entry_id(text, reply.message),
            scope=self.identity.scope,
            exact_key=self.identity.exact_key,
            canonical_key=self.canonical if constraints is not None else None,
            prompt=self.request.text,
            constraints=constraints,
            steps=steps,
            message=reply.message,
            usage=self.spent if self.spent.calls else reply.usage,
            model=reply.model,
            tags=self.control.tags,
        )

    def entry_id(self, text: str, message: str | None) -> str:
        """Of an answer with text the host's record tells nothing more, and how it came (streamed,
        whole) may vary in it; of one without, the record is all there is."""
        return digest("entry", self.identity.exact_key, text or message)[:24]

    def keep_as(
        self, steps: tuple[Step, ...], source: Entry, usage: Usage | None = None
    ) -> Flow[Entry]:
        """Keep proven steps under the new request too, no younger than the entry they came from."""
        entry = replace(
            source,
            id=self.entry_id(join(steps), source.message),
            exact_key=self.identity.exact_key,
            canonical_key=self.canonical,
            prompt=self.request.text,
            constraints=self.constraints,
            steps=steps,
            usage=usage or source.usage,
            tags=tuple(dict.fromkeys((*source.tags, *self.control.tags))),
        )
        same_demands = source.canonical_key == self.canonical
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
        kept = yield from self.attempt(Put(entry, vector, ttl), "store", False)
        if not kept:
            return None
        self.note("admitted", f"entry {entry.id}")
        return entry.id

    # --- telling -------------------------------------------------------------------------------

    def cut(self, task: Task, text: str) -> tuple[Step, ...]:
        """The answer's steps; one step when the task's own cut loses a character (law 3)."""
        steps = self.safely(task.segment, text)
        if steps is None or join(steps) != text:
            self.note("task", f"{task.name} broke law 3: its steps do not join to the answer")
            return (Step(index=0, text=text),)
        return steps

    def safely(
        self, function: Callable[P, T | None], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """Call a task; one that raises has nothing to offer (law 6)."""
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001
            self.note("task", f"{getattr(function, '__name__', 'it')} raised {_said(error)}")
            return None

    def note(self, name: str, detail: str) -> None:
        self.events.append(Event(name=name, detail=detail))

    def attempt(self, wish: Ask[T], port: str, default: T) -> Flow[T]:
        """Fulfil a wish whose failure is no reason to fail the user."""
        try:
            return (yield from do(wish))
        except Exception as error:  # noqa: BLE001 - law 6: machinery fails open
            self.note(f"{port} failed", _said(error))
            return default

    def from_reply(
        self, reply: Reply, route: Route, why: str, entry_id: str | None = None
    ) -> Outcome:
        steps: tuple[Step, ...] = ()
        if reply.text:
            steps = (Step(index=0, text=reply.text),)
            if self.task is not None and reply.reusable:
                steps = self.cut(self.task, reply.text)
        return Outcome(
            text=reply.text,
            route=route,
            reason=why,
            steps=steps,
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
        reason: str,
        *,
        steps: tuple[Step, ...] = (),
        verdicts: tuple[Verdict, ...] = (),
        reused: int = 0,
        patched: int = 0,
        avoided: Usage | None = None,
        entry: Entry | None = None,
        served: bool = True,
    ) -> Outcome:
        return Outcome(
            text=text,
            route=route,
            reason=reason,
            steps=steps,
            verdicts=verdicts,
            reused_steps=reused,
            patched_steps=patched,
            entry_id=entry.id if entry else None,
            spent=self.spent,
            avoided=avoided or Usage(),
            message=entry.message if entry else None,
            model=entry.model if entry else None,
            served=served,
            trace=self.trace(),
        )

    def trace(self) -> Trace:
        return Trace(events=tuple(self.events))


def _joined(outcome: Outcome) -> Outcome:
    reason = "an equal request was in flight and its answer is shared"
    return replace(
        outcome,
        route="exact",
        reason=reason,
        reused_steps=len(outcome.steps),
        patched_steps=0,
        spent=Usage(),
        avoided=outcome.spent + outcome.avoided,
        trace=Trace(events=(*outcome.trace.events, Event(name="joined", detail=reason))),
    )


def _larger(one: Usage, other: Usage) -> Usage:
    return one if one.tokens >= other.tokens else other


def _told(differences: Sequence[Difference], limit: int = 3) -> str:
    told = ", ".join(str(d) for d in differences[:limit])
    more = len(differences) - limit
    return f"{told} and {more} more" if more > 0 else told


def _said(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:200]}" if said else type(error).__name__
