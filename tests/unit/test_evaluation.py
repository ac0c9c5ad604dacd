"""Evaluation: pairs are read strictly, look-ups are told apart, intervals are Wilson's."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache import ConfigurationError, Message, StepCacheEngine
from stepcache.evaluation import (
    EngineFace,
    LangChainFace,
    Pair,
    evaluate,
    load_face,
    read_fow,
    read_pairs,
    wilson,
)
from stepcache.tasks.text import TextTask


def pair(a: str, b: str, *, same: bool, category: str = "all") -> Pair:
    return Pair.of(f"{a}|{b}", a, b, same=same, category=category)


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


# --- intervals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Published values of the score interval without continuity correction (Newcombe 1998).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_intervals_are_the_published_ones(successes: int, n: int, low: float, high: float) -> None:
    """The four worked examples of the literature come out to four digits."""
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_share(case: tuple[int, int]) -> None:
    """The share lies in its interval, the interval in 0 to 1, and failures mirror successes."""
    successes, n = case
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    assert wilson(n - successes, n) == pytest.approx((1 - high, 1 - low))


def test_no_trial_tells_nothing() -> None:
    """Without a trial anything is possible."""
    assert wilson(0, 0) == (0.0, 1.0)


# --- reading -----------------------------------------------------------------------------------


def test_both_forms_are_read(tmp_path: Path) -> None:
    """Our label and a bare true or false, texts and conversations, and the reason for doubt."""
    turns = [
        {"role": "user", "content": "Book a table."},
        {"role": "assistant", "content": "For when?"},
        {"role": "user", "content": "Friday."},
    ]
    path = lines(
        tmp_path / "p.jsonl",
        {"id": "1", "a": "x", "b": "y", "label": "different_answer", "category": "c"},
        {"id": "2", "a": turns, "b": turns, "same_answer": True, "subtype": "s"},
        {"id": "3", "a": "x", "b": "y", "same_answer": True, "ambiguous": "doubt"},
    )
    one, two, three = read_pairs(path)
    assert (one.same, one.category, one.a) == (False, "c", (Message(role="user", text="x"),))
    assert (two.same, two.category, len(two.a)) == (True, "s", 3)
    assert (three.same, three.category) == (False, "doubt")


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    """Files below a folder are read in the order of their names; blank lines are none."""
    record = {"a": "x", "b": "y", "same_answer": False}
    lines(tmp_path / "b.jsonl", record)
    (tmp_path / "a").mkdir()
    lines(tmp_path / "a" / "z.jsonl", record, record)
    with (tmp_path / "a" / "z.jsonl").open("a") as file:
        file.write("\n")
    assert [p.id for p in read_pairs(tmp_path)] == ["z:1", "z:2", "b:1"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"a": "x", "b": "y"}',
        '{"a": "x", "label": "same_answer"}',
        '{"a": "x", "b": "y", "label": "maybe"}',
        '{"a": "x", "b": "y", "label": 1}',
        '{"a": "x", "b": [], "label": "same_answer"}',
        '{"a": "x", "b": 7, "label": "same_answer"}',
        '{"a": "x", "b": [{"role": "user", "content": null}], "label": "same_answer"}',
        '{"a": "x", "b": "y", "label": "same_answer", "answer_a": 3}',
        "[" * 5_000,
    ],
)
def test_what_is_no_pair_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    """A broken line names its file and number; nothing is skipped in silence."""
    path = tmp_path / "p.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"p\.jsonl:2 is no pair"):
        read_pairs(path)


def test_missing_sources_are_refused(tmp_path: Path) -> None:
    """No file, an empty folder, bytes that are no text, and an unknown set: each says so."""
    (tmp_path / "raw.jsonl").write_bytes(b"\xff\xfe\n")
    for path in (tmp_path / "none.jsonl", tmp_path / "raw.jsonl"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            read_pairs(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match="holds no"):
        read_pairs(tmp_path / "empty")
    with pytest.raises(ConfigurationError, match="no set 'answers'"):
        read_fow("answers")


# --- looking up --------------------------------------------------------------------------------


def test_both_orders_are_looked_up() -> None:
    """Each pair makes two look-ups, and a served one names its route."""
    report = evaluate(EngineFace(), [pair("What's a fjord?", "what is a fjord", same=True)])
    assert [(u.order, u.served, u.route) for u in report.look_ups] == [
        ("a->b", True, "reuse"),
        ("b->a", True, "reuse"),
    ]


def test_a_served_answer_that_is_not_wanted_is_wrong() -> None:
    """The label alone makes a serve wrong, and the report names it in both orders."""
    report = evaluate(EngineFace(), [pair("What's a fjord?", "what is a fjord", same=False)])
    assert report.wrong == 2
    assert [u.order for u in report.wrongs()] == ["a->b", "b->a"]
    assert "wrong serves: 2" in report.render()


def test_an_answer_made_for_the_request_is_not_the_stored_one() -> None:
    """A re-derived answer is counted apart: it is neither the stored one nor a wrong serve."""
    report = evaluate(
        EngineFace(), [pair("Solve 2x + 3 = 13 for x.", "Solve 2x + 3 = 15 for x.", same=False)]
    )
    assert report.wrong == 0
    assert all(u.kept for u in report.look_ups)
    assert {u.route for u in report.look_ups if u.derived} <= {"adapt"}
    assert report.total(same=False).derived == 2


def test_what_is_not_kept_is_counted() -> None:
    """A request whose stand-in answer fails its check leaves the cache empty, and that is told."""
    report = evaluate(
        EngineFace(),
        [
            pair(
                "Describe Rome as JSON with keys a.",
                "Describe Rome as JSON with keys a!",
                same=True,
            )
        ],
    )
    assert report.total(same=True).not_kept == 2


def test_a_given_answer_is_stored_instead_of_a_stand_in() -> None:
    """With real answers a JSON request is kept and served."""
    side = (Message(role="user", text="Describe Rome as JSON with keys a."),)
    given = Pair(
        id="1",
        a=side,
        b=side,
        same=True,
        category="c",
        answer_a='{"a": 1}',
        answer_b='{"a": 2}',
    )
    report = evaluate(EngineFace(), [given])
    assert [u.text for u in report.look_ups] == ['{"a": 1}', '{"a": 2}']
    assert report.total(same=True).not_kept == 0


def test_pairs_do_not_meet() -> None:
    """The cache is emptied before every look-up, so an earlier pair serves no later one."""
    pairs = [
        pair("Name 3 rivers.", "Name 4 rivers.", same=False),
        pair("Name 5 rivers.", "Name 3 rivers.", same=False),
    ]
    seen: list[int] = []
    report = evaluate(EngineFace(), pairs, progress=seen.append)
    assert not any(u.hit for u in report.look_ups)
    assert seen == [1, 2]


def test_categories_are_tallied_apart() -> None:
    """Look-ups are grouped by label and category; the interval's unit is the pair."""
    report = evaluate(
        EngineFace(),
        [
            pair("What's a fjord?", "what is a fjord", same=True, category="wording"),
            pair("What's a fjord?", "What's a moor?", same=True, category="wording"),
            pair("What's a fjord?", "What's a bay?", same=False, category="word"),
        ],
    )
    wording, word = report.tallies()
    assert (wording.category, wording.look_ups, wording.pairs, wording.served) == (
        "wording",
        4,
        2,
        2,
    )
    assert wording.interval == wilson(1, 2)
    assert (word.category, word.served, word.share) == ("word", 0, 0.0)
    assert report.as_dict()["categories"][0]["interval"] == [round(x, 6) for x in wilson(1, 2)]


def test_langchain_caches_are_evaluated() -> None:
    """LangChain's own cache serves equal requests only; ours serves re-worded ones as well."""
    caches = pytest.importorskip("langchain_core.caches")
    stepcache = pytest.importorskip("langchain_stepcache")
    pairs = [
        pair("What's a fjord?", "What's a fjord?", same=True, category="equal"),
        pair("What's a fjord?", "what is a fjord", same=True, category="wording"),
        pair("What's a fjord?", "What's a bay?", same=False, category="word"),
    ]
    served = {
        plain: [
            u.served
            for u in evaluate(LangChainFace(caches.InMemoryCache(), plain=plain), pairs).look_ups
        ]
        for plain in (False, True)
    }
    assert served[False] == served[True] == [True, True, False, False, False, False]
    report = evaluate(LangChainFace(stepcache.StepCache()), pairs)
    assert [u.served for u in report.look_ups] == [True, True, True, True, False, False]


def test_faces_are_loaded_by_name() -> None:
    """A class, an instance or a function that makes one; anything else is refused."""
    assert isinstance(load_face(None), EngineFace)
    assert isinstance(load_face("stepcache:StepCacheEngine"), EngineFace)
    pytest.importorskip("langchain_core")
    assert isinstance(load_face("langchain_core.caches:InMemoryCache"), LangChainFace)
    for target, why in [
        ("stepcache", "module:attribute"),
        ("no_such_module:x", "cannot be imported"),
        ("stepcache:no_such_name", "cannot be imported"),
        ("stepcache.tasks.text:TextTask", "is a TextTask"),
    ]:
        with pytest.raises(ConfigurationError, match=why):
            load_face(target)


def test_an_engine_of_ones_own_is_evaluated() -> None:
    """The face takes any engine, with its tasks and its policy."""
    face = EngineFace(StepCacheEngine(tasks=[TextTask()]))
    report = evaluate(face, [pair("Solve 2x = 4.", "Solve x = 2.", same=True)])
    assert not any(u.hit for u in report.look_ups)
