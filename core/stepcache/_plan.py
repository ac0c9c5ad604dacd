"""Verdicts and policy in, plan out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stepcache._counts import count
from stepcache._types import Block, Plan, Policy, Status, Step, Verdict

__all__ = ["make_plan", "share_of", "to_the_end", "worst"]


def make_plan(
    steps: Sequence[Step], verdicts: Sequence[Verdict], block: Block | None, policy: Policy
) -> Plan:
    """What to do with a candidate whose differences are explained.

    Args:
        block: What the task would make anew; None when it would make nothing.
    """
    if block is None:
        which = "the one step" if len(steps) == 1 else f"all {count(len(steps), 'step')}"
        return Plan(action="reuse", code="all-verified", reason=f"{which} verified")
    first = worst(verdicts[block.start : block.stop])
    reason = first.reason if first is not None else "the task asks for it anew"
    code = first.code if first is not None else "asked-anew"
    why = f"step {block.start + 1} of {len(steps)}: {reason}"
    share = share_of(steps, verdicts, block)
    if not policy.patch:
        reason = f"patching is off; {why}"
        return Plan(action="skip", code="patching-off", reason=reason, share=share)
    if share > policy.max_patched_share:
        return Plan(
            action="skip",
            code="too-much-anew",
            reason=f"{share:.0%} of the answer would have to be made anew; {why}",
            share=share,
        )
    return Plan(action="patch", blocks=(block,), code=code, reason=why, share=share)


def share_of(steps: Sequence[Step], verdicts: Sequence[Verdict], block: Block) -> float:
    """Portion of the answer's characters, 0 to 1, that the block makes anew."""
    total = sum(len(step.text) for step in steps) or 1
    anew = 0.0
    for step, verdict in zip(steps[block.start : block.stop], verdicts[block.start : block.stop]):
        anew += len(step.text) * (verdict.fix.share if verdict.fix else 1.0)
    return anew / total


def to_the_end(verdicts: Sequence[Verdict]) -> Block | None:
    """The block for steps that depend on each other: from the first that did not pass."""
    for index, verdict in enumerate(verdicts):
        if verdict.status is not Status.PASS:
            return Block(start=index, stop=len(verdicts))
    return None


def worst(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The first failed verdict, else the first unknown one, else None."""
    for status in (Status.FAIL, Status.UNKNOWN):
        for verdict in verdicts:
            if verdict.status is status:
                return verdict
    return None
