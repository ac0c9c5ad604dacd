"""Figures: percentiles, intervals, and which fault is whose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache.bench._figures import figures, judged, percentile, ratios, summary, wilson
from stepcache.bench._items import EquationDemand, Item, ObjectDemand
from stepcache.bench._log import Exchange
from stepcache.bench._recorder import Call


def item(number: int, *, right: str = "13", must_not: bool = False, group: str = "g") -> Item:
    """An equation whose solution is 5, or another with another right side."""
    return Item(
        id=f"i{number}",
        seed=1,
        split="paper",
        family="math",
        group=group,
        base="b",
        prompt=f"p{number}",
        demand=EquationDemand(variable="x", left="2*x + (3)", right=right),
        must_not=must_not,
    )


def exchange(number: int, text: str, route: str, calls: int = 0, **rest: object) -> Exchange:
    call = Call(
        digest="d",
        purpose="answer",
        text=text,
        finish_reason="stop",
        prompt_tokens=10,
        completion_tokens=4,
    )
    fields = {"mode": "stepcache", "seconds": 1.0, **rest}
    return Exchange(item=f"i{number}", text=text, route=route, calls=(call,) * calls, **fields)


def faults(items: list[Item], exchanges: list[Exchange]) -> list[str]:
    return [row.fault for row in judged({i.id: i for i in items}, exchanges)]


@pytest.mark.parametrize(
    ("route", "calls", "fault"),
    [
        ("reuse", 0, "wrong serve"),
        ("exact", 0, "wrong serve"),
        ("adapt", 0, "wrong serve"),
        ("hit", 0, "wrong serve"),
        ("fallback", 1, "wrong serve"),
        ("patch", 1, "wrong patch"),
        ("skip", 1, "wrong generation"),
        ("model", 1, "wrong generation"),
    ],
)
def test_a_wrong_answer_is_charged_to_its_maker(route: str, calls: int, fault: str) -> None:
    """What came out of the cache is a wrong serve; what the model made is a wrong generation."""
    assert faults([item(1)], [exchange(1, "x = 6", route, calls)]) == [fault]
    assert faults([item(1)], [exchange(1, "x = 5", route, calls)]) == [""]


def test_a_wrong_answer_given_again_is_inherited() -> None:
    """The model's own mistake, given again to the same demand, is counted apart."""
    told = [exchange(1, "x = 6", "miss", 1), exchange(2, "x = 6", "reuse")]
    assert faults([item(1), item(2)], told) == ["wrong generation", "inherited"]


def test_a_right_answer_given_to_another_demand_is_a_wrong_serve() -> None:
    """Right where it was made, wrong where it was served."""
    told = [exchange(1, "x = 5", "miss", 1), exchange(2, "x = 5", "reuse")]
    assert faults([item(1), item(2, right="23")], told) == ["", "wrong serve"]


def test_a_group_that_must_not_be_served_counts_every_serve() -> None:
    """Where no earlier answer can satisfy the request, serving one as it stands is wrong."""
    wanted = [("hit", "wrong serve"), ("reuse", "wrong serve"), ("adapt", ""), ("skip", "")]
    for route, fault in wanted:
        assert faults([item(1, must_not=True)], [exchange(1, "x = 5", route)]) == [fault]


@pytest.mark.parametrize(("route", "fault"), [("adapt", "wrong serve"), ("miss", "")])
def test_stale_working_is_held_against_caches_only(route: str, fault: str) -> None:
    """A served answer whose working is of another equation is a wrong serve; a model may slip."""
    told = [exchange(1, "2x + 3 = 17\nx = 5", route)]
    assert faults([item(1)], told) == [fault]


def about(number: int, topic: str) -> Item:
    """A request for an object about something."""
    demand = ObjectDemand(required=("country",), topic=topic)
    fields = {"id": f"i{number}", "seed": 1, "split": "paper", "family": "json", "group": "g"}
    return Item(base="b", prompt=f"p{number}", demand=demand, **fields)


def told(number: int, text: str, route: str, *said: str) -> Exchange:
    """An exchange in which the model said some things."""
    calls = tuple(
        Call(
            digest="d",
            purpose="answer",
            text=one,
            finish_reason="stop",
            prompt_tokens=1,
            completion_tokens=1,
        )
        for one in said
    )
    where = {"mode": "stepcache", "item": f"i{number}", "seconds": 1.0}
    return Exchange(text=text, route=route, calls=calls, **where)


PERU, BOTH = '{"country": "Peru"}', '{"country": "Peru", "river": "Rimac"}'


@pytest.mark.parametrize(
    ("topic", "route", "text", "said", "fault"),
    [
        ("Lima", "reuse", PERU, (), ""),
        ("Lima", "adapt", PERU, (), ""),
        ("Oslo", "reuse", PERU, (), "wrong serve"),
        ("Oslo", "adapt", PERU, (), "wrong serve"),
        ("Oslo", "hit", PERU, (), "wrong serve"),
        ("Oslo", "miss", PERU, (PERU,), ""),
        ("Lima", "patch", BOTH, ('{"river": "Rimac"}',), ""),
        ("Oslo", "patch", BOTH, ('{"river": "Rimac"}',), "wrong patch"),
        ("Lima", "patch", BOTH, ('{"river": "Rimac"',), ""),
        ("Lima", "adapt", '{"country": "Chile"}', (), "wrong serve"),
    ],
)
def test_cached_values_must_have_been_said_of_the_same_subject(
    topic: str, route: str, text: str, said: tuple[str, ...], fault: str
) -> None:
    """An object may look right and yet hold what the model said of something else."""
    first = told(1, PERU, "miss", PERU)
    items = [about(1, "Lima"), about(2, topic)]
    assert faults(items, [first, told(2, text, route, *said)]) == ["", fault]


def test_an_error_is_an_error() -> None:
    """A call that failed is no wrong generation."""
    assert faults([item(1)], [exchange(1, "", "error", error="boom")]) == ["error"]


def test_figures_of_a_small_run() -> None:
    """Means, tokens, calls, shares and routes of four exchanges, by hand."""
    items = [item(n) for n in range(4)]
    told = [
        exchange(0, "x = 5", "miss", 1, seconds=4.0),
        exchange(1, "x = 5", "reuse", seconds=1.0),
        exchange(2, "x = 5", "reuse", seconds=1.0),
        exchange(3, "x = 6", "miss", 2, seconds=2.0),
    ]
    got = figures(judged({i.id: i for i in items}, told))
    assert got["mean_seconds"] == 2.0
    assert got["median_seconds"] == 1.5
    assert (got["tokens_in"], got["tokens_out"], got["tokens"], got["calls"]) == (30, 12, 42, 3)
    assert (got["correct"], got["without_call"]) == (0.75, 0.5)
    assert got["routes"] == {"miss": 2, "reuse": 2}
    assert got["faults"] == {"wrong generation": 1}
    assert got["wrong_serves"] == 0


def test_summary_parts_and_ratios() -> None:
    """Modes stand beside bare, which is what their ratios are to; warm-up is not counted."""
    items = [item(0, group="a"), item(1, group="b")]
    told = [
        exchange(n, "x = 5", route, calls, mode=mode, seconds=seconds)
        for mode, route, calls, seconds in (
            ("bare", "model", 1, 2.0),
            ("stepcache", "reuse", 0, 0.5),
        )
        for n in (0, 1)
    ]
    modes = summary(judged({i.id: i for i in items}, told))["paper"]
    assert modes["stepcache"]["ratios_to_bare"]["mean_seconds"] == 4.0
    assert modes["stepcache"]["ratios_to_bare"]["tokens_saved"] == 1.0
    assert set(modes["bare"]["by_group"]) == {"math: a", "math: b"}
    nothing = {"tokens": 0, "calls": 0, **dict.fromkeys(modes["bare"]["overall"], 0)}
    assert ratios(nothing, nothing)["mean_seconds"] is None


def test_wilson_is_the_known_interval() -> None:
    """Figures of the textbook: 8 of 10, all of 10, none, nothing."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 500), st.integers(0, 500))
def test_wilson_holds_the_share(a: int, b: int) -> None:
    """The interval lies in 0 to 1 and holds the observed share."""
    right, of = min(a, b), max(a, b)
    low, high = wilson(right, of)
    assert 0 <= low <= high <= 1
    if of:
        assert low - 1e-9 <= right / of <= high + 1e-9


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_percentiles_lie_between_the_ends(values: list[float], share: float) -> None:
    """A percentile is never outside of what was measured."""
    found = percentile(values, share)
    assert min(values) - 1e-6 <= found <= max(values) + 1e-6
    assert percentile(values, 0) == min(values)
    assert percentile(values, 1) == max(values)
    assert percentile([], share) == 0.0
