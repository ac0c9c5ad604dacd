"""What a task says of candidates and answers, made safe: it may raise, lose text or not know.

Pure. A task that raises has nothing to offer, and a verifier that raises does not know (law 6); an
answer whose steps do not join to it is one step (law 3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from stepcache._admission import complete
from stepcache._counts import count
from stepcache._difference import content, residue_differences
from stepcache._identity import canonical_key
from stepcache._patience import Budget
from stepcache._plan import make_plan, worst
from stepcache._proofs import Proofs
from stepcache._types import (
    Block,
    Candidate,
    Constraints,
    Declined,
    Difference,
    Entry,
    ModelCall,
    Plan,
    Policy,
    Reply,
    Request,
    Status,
    Step,
    Verdict,
    join,
)
from stepcache.protocols import Task, Verifier

__all__ = ["OVER_BUDGET", "Gap", "Judge", "Option", "find_judge", "said"]

P = ParamSpec("P")
T = TypeVar("T")
Note = Callable[[str, str], None]
"""Takes the name and the detail of one line of the trace."""

OVER_BUDGET = "over-budget"
"""Code of what nobody had the time to prove."""
_MAX_CUTS = 4
_MAX_ENDINGS = 12
"""Endings tried for one beginning, beside the whole deterministic answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """An answer with a block that has to be made anew."""

    steps: tuple[Step, ...]
    block: Block
    verdicts: tuple[Verdict, ...]

    @property
    def beginning(self) -> str:
        """The text before the block."""
        return join(self.steps[: self.block.start])


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A candidate and what to do with it."""

    entry: Entry
    plan: Plan
    steps: tuple[Step, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def gap(self) -> Gap:
        """What a patch has to fill."""
        return Gap(steps=self.steps, block=self.plan.blocks[0], verdicts=self.verdicts)


def find_judge(
    request: Request,
    scope: str,
    tasks: Sequence[Task],
    policy: Policy,
    verifiers: Sequence[Verifier],
    note: Note,
    proofs: Proofs | None = None,
    budget: Budget | None = None,
) -> Judge | None:
    """The first task that accepts a request, with the constraints it read; None when none does."""
    for task in tasks:
        if request.task not in (None, task.name):
            continue
        try:
            parsed = task.parse(request)
            if isinstance(parsed, Declined):
                note("task", f"not {task.name}: {parsed.reason}")
                continue
            tokens = content(request.text, parsed.spans, task.neutral)
            key = canonical_key(scope, parsed, tokens)
        except Exception as error:  # noqa: BLE001 - a broken task is no reason to fail a user
            note("task", f"not {task.name}: it raised {said(error)}")
            continue
        note("task", task.name)
        known = None if verifiers else proofs
        return Judge(
            task,
            parsed,
            tokens,
            key,
            policy,
            tuple(verifiers),
            note,
            known,
            budget if budget is not None else Budget(None, None),
        )
    note("task", "none accepts it")
    return None


@dataclass(frozen=True, slots=True)
class Judge:
    """One task before one request's constraints."""

    task: Task
    constraints: Constraints
    content: tuple[str, ...]
    """The tokens of the request's residue that can change an answer."""
    canonical: str
    """Key of the demands, however worded."""
    policy: Policy
    verifiers: tuple[Verifier, ...]
    note: Note
    proofs: Proofs | None = None
    """What was proven before; None where verifiers beside the task may change their minds."""
    budget: Budget = field(default_factory=lambda: Budget(None, None))
    """What proofs may still take."""
    met: list[Candidate] = field(default_factory=list)
    """The entries considered so far."""
    cuts: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    """The answers cut last: one is checked, kept and handed over."""

    # --- candidates ----------------------------------------------------------------------------

    def consider(self, entry: Entry, similarity: float | None = None) -> Option | None:
        """What could be done with an entry; None when a difference is not explained (law 2)."""
        with self.budget:
            return self._consider(entry, similarity)

    def _consider(self, entry: Entry, similarity: float | None) -> Option | None:
        new, old = self.constraints, entry.constraints
        if old is None:
            return None
        differences: tuple[Difference, ...] = ()
        option: Option | None = None
        try:
            if self.budget.over:
                code, why = OVER_BUDGET, self._over()
            elif (old.task, old.version) != (new.task, new.version):
                code, why = "retired", f"entry {entry.id} is of {old.task} {old.version}"
            else:
                tokens = content(entry.prompt, old.spans, self.task.neutral)
                differences = (
                    *residue_differences(tokens, self.content),
                    *self.task.differences(old, new),
                )
                code, why = "differs", _told([d for d in differences if not d.explained])
                if not why:
                    if differences:
                        self.note("explained", _told(differences))
                    option = self._assess(entry, old, changed=bool(differences))
        except Exception as error:  # noqa: BLE001 - law 6: a verifier that raises is unknown
            code, why = "task-raised", f"{self.task.name} raised {said(error)}"
        if option is None:
            self.note("retired" if code == "retired" else "differs", why)
        else:
            code, why = option.plan.code, option.plan.reason
        self.met.append(
            Candidate(
                entry=entry,
                action=option.plan.action if option is not None else "rejected",
                code=code,
                reason=why,
                similarity=similarity,
                differences=differences,
                verdicts=option.verdicts if option is not None else (),
            )
        )
        return option

    def _assess(self, entry: Entry, old: Constraints, *, changed: bool) -> Option:
        verdicts = self.verify(entry.steps)
        plan = make_plan(entry.steps, verdicts, self.task.block(verdicts), self.policy)
        if plan.action == "reuse":
            verdict = self.whole(entry.steps)
            if verdict.status is not Status.PASS:
                why = f"the whole: {verdict.reason}"
                plan = Plan(action="skip", code=verdict.code, reason=why, share=1.0)
        option = Option(entry=entry, plan=plan, steps=entry.steps, verdicts=verdicts)
        # Steps that happen to hold under changed demands still speak of the old ones; where they
        # can be re-derived, they speak of the new.
        if self.policy.adapt and (changed or plan.action != "reuse"):
            option = self._adapted(option, old) or option
        self.note("plan", f"{option.plan.action} {entry.id}: {option.plan.reason}")
        return option

    def _adapted(self, option: Option, old: Constraints) -> Option | None:
        steps = self.task.adapt(option.steps, old, self.constraints)
        if steps is None:
            return None
        verdicts = self.verify(steps)
        if worst([*verdicts, self.whole(steps)]) is not None:
            return None
        why = f"{count(len(steps), 'step')} re-derived and verified"
        plan = Plan(action="adapt", code="re-derived", reason=why)
        return replace(option, plan=plan, steps=steps, verdicts=verdicts)

    # --- verdicts ------------------------------------------------------------------------------

    def verify(self, steps: Sequence[Step]) -> tuple[Verdict, ...]:
        """A verdict for each step, further verifiers included."""
        known = self.proofs.steps(self.canonical, steps) if self.proofs else None
        if known is not None:
            return known
        with self.budget:
            verdicts = tuple(self._verify(step) for step in steps)
        if self.proofs:
            self.proofs.keep_steps(self.canonical, steps, verdicts)
        return verdicts

    def _verify(self, step: Step) -> Verdict:
        if self.budget.over:
            return Verdict.unknown(OVER_BUDGET, self._over())
        try:
            verdict = self.task.verify(step, self.constraints)
            for verifier in self.verifiers:
                if verdict.status is Status.PASS:
                    verdict = verifier(step, self.constraints) or verdict
            return verdict
        except Exception as error:  # noqa: BLE001 - law 6
            return Verdict.unknown("verifier-raised", f"the verifier raised {said(error)}")

    def whole(self, steps: Sequence[Step]) -> Verdict:
        """The final check: do the steps join to an answer that satisfies the request?"""
        known = self.proofs.whole(self.canonical, steps) if self.proofs else None
        if known is not None:
            return known
        if self.budget.over:
            return Verdict.unknown(OVER_BUDGET, self._over())
        try:
            with self.budget:
                verdict = self.task.check(steps, self.constraints)
        except Exception as error:  # noqa: BLE001 - law 6
            return Verdict.unknown("check-raised", f"the final check raised {said(error)}")
        if self.proofs:
            self.proofs.keep_whole(self.canonical, steps, verdict)
        return verdict

    def _over(self) -> str:
        return f"proofs took longer than max_verify_seconds={self.budget.seconds:g}"

    def reply(self, reply: Reply) -> Verdict:
        """The final check of a model's reply."""
        if not complete(reply.finish_reason):
            return Verdict.unknown("incomplete", f"the answer ended by {reply.finish_reason!r}")
        return self.whole(self.cut(reply.text))

    # --- texts ---------------------------------------------------------------------------------

    def cut(self, text: str) -> tuple[Step, ...]:
        """The answer's steps; one step when the task's own cut loses a character."""
        steps = self.cuts.get(text)
        if steps is None:
            if len(self.cuts) >= _MAX_CUTS:
                self.cuts.clear()
            steps = self.cuts[text] = self._cut(text)
        return steps

    def _cut(self, text: str) -> tuple[Step, ...]:
        steps = self._safely(self.task.segment, text)
        if steps is None or join(steps) != text:
            self.note("task", f"{self.task.name} broke law 3: its steps do not join to the answer")
            return (Step(index=0, text=text),)
        return steps

    def patch_call(self, request: Request, gap: Gap) -> ModelCall | None:
        """How to ask for the block that has to be made anew; None when it cannot be asked for."""
        call = self._safely(
            self.task.patch, request, gap.steps, gap.block, gap.verdicts, self.constraints
        )
        if call is None:
            self.note("patch", "the block cannot be asked for alone")
            return None
        quoted = _chars(call) - sum(len(m.text) for m in request.messages)
        if quoted > self.policy.max_quoted_chars:
            self.note("patch", f"it would quote {count(quoted, 'character')} of the cache")
            return None
        return call

    def spliced(self, reply: str, gap: Gap) -> str | None:
        """The stitched whole, not verified; None when the reply does not fit the gap."""
        return self._safely(
            self.task.splice, reply, gap.steps, gap.block, gap.verdicts, self.constraints
        )

    def patched(self, text: str | None, option: Option) -> Option | None:
        """The stitched whole, verified like any other; None when it cannot stand."""
        if text is None:
            self.note("patch", "the reply does not fit the gap")
            return None
        steps = self.cut(text)
        verdicts = self.verify(steps)
        bad = worst([*verdicts, self.whole(steps)])
        if bad is not None:
            self.note("patch", f"the patched answer failed: {bad.reason}")
            return None
        return replace(option, steps=steps, verdicts=verdicts)

    def mended(self, reply: Reply) -> Reply | None:
        """The reply repaired without a model, if the repair passes the final check."""
        if not complete(reply.finish_reason):
            return None
        return self._passing(reply, self._safely(self.task.mend, reply.text, self.constraints))

    def solved(self, reply: Reply, beginning: str = "") -> Reply | None:
        """The task's deterministic answer in the reply's place, if it passes the final check.

        Args:
            beginning: What of the reply stands, to be gone on from.
        """
        whole = replace(reply, finish_reason="stop")
        if beginning:
            return self._passing(whole, self.ended(beginning))
        return self._passing(whole, self._safely(self.task.solve, self.constraints))

    def ended(self, beginning: str) -> str | None:
        """An answer that begins as told and ends with as little of the task's deterministic one as
        will do, every step verified; None where there is no such ending."""
        solution = self._safely(self.task.solve, self.constraints)
        if not solution:
            return None
        steps = self.cut(solution)
        gap = "" if beginning.endswith("\n") else "\n\n"
        shortest = max(1, len(steps) - _MAX_ENDINGS)
        for first in (*range(len(steps), shortest - 1, -1), 0):
            text = beginning + (gap + join(steps[first:]) if first < len(steps) else "")
            cut = self.cut(text)
            if worst([*self.verify(cut), self.whole(cut)]) is None:
                return text
        return None

    def broken_off(self, beginning: str, reply: Reply, verdict: Verdict) -> Gap:
        """A reply that stands up to the end of ``beginning``, and no further."""
        steps = self.cut(beginning)
        rest = Step(index=len(steps), text=reply.text[len(beginning) :] or " ")
        return Gap(
            steps=(*steps, rest),
            block=Block(start=len(steps), stop=len(steps) + 1),
            verdicts=(*self.verify(steps), verdict),
        )

    def _passing(self, reply: Reply, text: str | None) -> Reply | None:
        if text is None:
            return None
        candidate = replace(reply, text=text)
        return candidate if self.reply(candidate).status is Status.PASS else None

    def _safely(
        self, function: Callable[P, T | None], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - law 6
            self.note("task", f"{getattr(function, '__name__', 'it')} raised {said(error)}")
            return None


def said(error: BaseException) -> str:
    """An error in one short line; a key or a password in an address of it is not repeated."""
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    return f"{type(error).__name__}: {_SECRET.sub(_masked, lines[0][:2_000])[:200]}"


_SECRET = re.compile(
    r"(://)[^/\s@]{1,200}@"
    r"|(\b(?:api[-_]?key|key|token|secret|password|passwd|signature|sig|authorization|bearer)\b"
    r"[\"']?\s{0,3}[=:\s]\s{0,3}[\"']?)(?:bearer\s{1,3}|basic\s{1,3})?[^\s\"'&,;]{6,}"
    r"|()\b(?:sk|pk|rk|gsk|xai|hf|ghp|AIza|AKIA)[-_A-Za-z0-9]{12,}",
    re.IGNORECASE,
)


def _masked(match: re.Match[str]) -> str:
    before = match.group(1) or match.group(2) or ""
    return f"{before}***{'@' if match.group(1) else ''}"


def _chars(call: ModelCall) -> int:
    return sum(len(m.text) for m in call.messages) + len(call.prefix or "")


def _told(differences: Sequence[Difference], limit: int = 3) -> str:
    told = ", ".join(str(d) for d in differences[:limit])
    more = len(differences) - limit
    return f"{told} and {more} more" if more > 0 else told
