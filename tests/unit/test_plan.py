"""Verdicts and policy in, plan out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache import ConfigurationError, Policy, Step, Verdict
from stepcache._plan import make_plan, share_of, to_the_end, worst
from stepcache._types import Block, Fix, Status

STEPS = tuple(Step(index=i, text=text) for i, text in enumerate(["aaaa\n\n", "bb\n\n", "cccc"]))
PASS = Verdict.passed("ok")
FAIL = Verdict.failed("wrong", "2x = 10 has another solution")
UNKNOWN = Verdict.unknown("unread", "cannot be read")


def test_all_verified_is_a_reuse() -> None:
    """No block to make anew means nothing is."""
    plan = make_plan(STEPS, [PASS] * 3, None, Policy())
    assert (plan.action, plan.reason) == ("reuse", "all 3 steps verified")
    one = make_plan(STEPS[:1], [PASS], None, Policy())
    assert (one.action, one.reason) == ("reuse", "the one step verified")


def test_a_small_block_is_patched_with_its_reason() -> None:
    """The failing step's own reason is the plan's."""
    plan = make_plan(STEPS, [PASS, PASS, FAIL], Block(start=2, stop=3), Policy())
    assert plan.action == "patch"
    assert plan.blocks == (Block(start=2, stop=3),)
    assert plan.reason == "step 3 of 3: 2x = 10 has another solution"


def test_a_large_block_is_a_skip() -> None:
    """Above the patched share the answer is asked for whole."""
    plan = make_plan(STEPS, [FAIL, PASS, PASS], Block(start=0, stop=3), Policy())
    assert plan.action == "skip"
    assert "100%" in plan.reason


def test_patching_can_be_switched_off() -> None:
    """Then a failing step is a skip, however small."""
    plan = make_plan(STEPS, [PASS, PASS, FAIL], Block(start=2, stop=3), Policy(patch=False))
    assert plan.action == "skip"


def test_a_fix_makes_a_step_cheaper() -> None:
    """Of a step whose fix names the missing part, only that part counts."""
    part = Verdict.failed("missing-keys", "a key is missing", Fix(ask=("river",), share=0.25))
    whole = share_of(STEPS, [PASS, FAIL, PASS], Block(start=1, stop=2))
    assert share_of(STEPS, [PASS, part, PASS], Block(start=1, stop=2)) == pytest.approx(whole / 4)


@given(st.lists(st.sampled_from([PASS, FAIL, UNKNOWN]), min_size=1, max_size=9))
def test_dependent_steps_are_made_anew_from_the_first_doubt(verdicts: list[Verdict]) -> None:
    """Everything before the block passed; an unknown counts as much as a failure."""
    block = to_the_end(verdicts)
    if block is None:
        assert all(v.status is Status.PASS for v in verdicts)
        assert worst(verdicts) is None
    else:
        assert all(v.status is Status.PASS for v in verdicts[: block.start])
        assert verdicts[block.start].status is not Status.PASS
        assert block.stop == len(verdicts)


def test_a_verdict_has_no_truth_value() -> None:
    """``if verdict`` would take unknown for one of the others."""
    with pytest.raises(TypeError, match="status"):
        bool(UNKNOWN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("candidates", -1),
        ("candidates", True),
        ("min_similarity", 1.5),
        ("max_patched_share", "half"),
        ("max_repairs", -1),
        ("ttl", 0),
        ("max_wait", -1),
        ("on_reject", "shout"),
        ("max_answer_chars", 0),
    ],
)
def test_a_bad_policy_names_value_and_fix(field: str, value: object) -> None:
    """A knob that cannot work is refused with its name, its value and what to use."""
    with pytest.raises(ConfigurationError, match=rf"Policy\.{field} is .*: use") as caught:
        Policy(**{field: value})  # type: ignore[arg-type]
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 2), (3, 1)])
def test_a_block_that_exists_is_valid(start: int, stop: int) -> None:
    """An empty or reversed block cannot be made."""
    with pytest.raises(ValueError, match="start < stop"):
        Block(start=start, stop=stop)


@pytest.mark.parametrize(("value", "kept"), [(0, 0), (0.0, 0.0)])
def test_zero_is_not_unset(value: float, kept: float) -> None:
    """A knob set to zero is zero, not its default."""
    policy = Policy(min_similarity=value, candidates=int(value), max_patched_share=value)
    assert (policy.min_similarity, policy.candidates, policy.max_patched_share) == (kept, 0, kept)
