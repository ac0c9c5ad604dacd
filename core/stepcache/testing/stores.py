"""What every store has to do, as a test class to inherit.

Whoever writes a store subclasses :class:`StoreContract` in a test module and says how to open one::

    class TestMyStore(StoreContract):
        @pytest.fixture
        def clock(self):
            return Clock()

        @pytest.fixture
        def store(self, clock):
            store = MyStore(clock=clock)
            yield store
            store.close()

The suite is synchronous; a store that answers with awaitables is wrapped by its author.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import SkipTest

import numpy as np

from stepcache._errors import StoreError
from stepcache._types import Constraints, Entry, Span, Step, Usage
from stepcache.protocols import Store, Vector

__all__ = ["Clock", "StoreContract", "direction", "make_entry"]

_DIMENSION = 8
_FINGERPRINT = "contract/1"
_THREADS = 8


class Clock:
    """A clock that stands still until it is told to move. Seconds since the epoch."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def make_entry(name: str, scope: str = "scope", /, **changes: Any) -> Entry:
    """A plausible entry whose id, exact key and text follow from its name.

    Args:
        changes: Fields of :class:`stepcache.Entry` to set otherwise.
    """
    fields: dict[str, Any] = {
        "id": f"id-{scope}-{name}",
        "scope": scope,
        "exact_key": f"exact-{name}",
        "canonical_key": None,
        "prompt": f"What is {name}?",
        "constraints": Constraints(
            task="naming",
            version="1",
            values={"name": name, "parts": [1, 2.5, None, True, {"deep": []}]},
            spans=(Span(start=8, stop=8 + len(name), name="name"),),
        ),
        "steps": (
            Step(index=0, text=f"It is {name}.\n", kind="prose"),
            Step(index=1, text="Done: \u2713 \U0001f680", kind="item"),
        ),
        "message": f'{{"role": "assistant", "content": "{name}"}}',
        "usage": Usage(calls=1, prompt_tokens=12, completion_tokens=34),
        "model": "model-a",
        "tags": ("first", "second"),
    }
    return Entry(**{**fields, **changes})


def direction(*weights: float) -> Vector:
    """A float32 unit vector of the suite's dimension, shape (8,), from its first weights."""
    vector = np.zeros(_DIMENSION, dtype=np.float32)
    vector[: len(weights)] = weights
    unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


def _raises(method: Callable[..., object], *args: object, **options: object) -> bool:
    try:
        method(*args, **options)
    except StoreError:
        return True
    return False


def _names(matches: Sequence[Any]) -> list[str]:
    return [match.entry.exact_key.removeprefix("exact-") for match in matches]


class StoreContract:
    """Every sentence of :class:`stepcache.protocols.Store`, as tests.

    Subclasses provide two fixtures: ``clock``, a :class:`Clock`, and ``store``, an empty store that
    reads it.
    """

    # --- what is put can be got ----------------------------------------------------------------

    def test_satisfies_the_protocol(self, store: Any) -> None:
        """A store has every method of the protocol."""
        assert isinstance(store, Store)

    def test_an_empty_store_finds_nothing(self, store: Any) -> None:
        """Looking in an empty store is no error."""
        assert store.get("scope", "exact-a") is None
        assert store.search("scope", direction(1), _FINGERPRINT, limit=3) == ()
        assert store.count() == 0
        assert store.count("scope") == 0
        assert store.clear() == 0
        assert store.clear("scope") == 0
        assert store.remove("id-scope-a") is False

    def test_returns_what_was_put(self, store: Any, clock: Clock) -> None:
        """An entry comes back equal in every field, but for the times the store stamps."""
        entry = make_entry("a", canonical_key="canonical")
        store.put(entry, direction(1), _FINGERPRINT)
        expected = make_entry("a", canonical_key="canonical", created=clock.now)
        assert store.get("scope", "exact-a") == expected
        assert store.get("scope", "canonical") == expected
        assert [m.entry for m in store.search("scope", direction(1), _FINGERPRINT, limit=1)] == [
            expected
        ]

    def test_returns_entries_of_the_barest_and_the_oddest_content(self, store: Any) -> None:
        """No text is too odd and no optional part too absent to be kept."""
        odd = (
            'NUL \x00, lone \ud800, quotes "\\\n\r\u2028, emoji \U0001f469\u200d\U0001f680, \u0627'
        )
        entry = make_entry(
            "odd",
            prompt=odd,
            constraints=None,
            steps=(Step(index=0, text=odd),),
            message=odd,
            model=None,
            tags=(),
            usage=Usage(),
        )
        store.put(entry, None, _FINGERPRINT)
        found = store.get("scope", "exact-odd")
        assert found is not None
        assert (found.prompt, found.text, found.message) == (odd, odd, odd)
        assert (found.constraints, found.model, found.tags) == (None, None, ())

    def test_stamps_the_times_itself(self, store: Any, clock: Clock) -> None:
        """The moment of keeping is the store's to say; an end is counted from it, or kept."""
        store.put(make_entry("a", created=5.0, expires=clock.now + 50), None, _FINGERPRINT)
        store.put(make_entry("b"), None, _FINGERPRINT, ttl=30)
        store.put(make_entry("c"), None, _FINGERPRINT)
        first, second, third = (store.get("scope", f"exact-{name}") for name in "abc")
        assert (first.created, first.expires) == (clock.now, clock.now + 50)
        assert (second.created, second.expires) == (clock.now, clock.now + 30)
        assert (third.created, third.expires) == (clock.now, None)

    def test_the_same_exact_key_is_replaced(self, store: Any) -> None:
        """Putting under a key again leaves one entry: the new one, under its new id and vector."""
        store.put(make_entry("a"), direction(1), _FINGERPRINT)
        store.put(make_entry("a", id="new", model="model-b"), direction(0, 1), _FINGERPRINT)
        assert store.count() == 1
        assert store.get("scope", "exact-a").model == "model-b"
        assert store.remove("id-scope-a") is False
        matches = store.search("scope", direction(1), _FINGERPRINT, limit=5)
        assert [(m.entry.id, round(m.similarity, 5)) for m in matches] == [("new", 0.0)]

    def test_replacing_drops_what_the_new_entry_lacks(self, store: Any) -> None:
        """A canonical key, vector or deadline of the replaced entry does not outlive it."""
        store.put(make_entry("a", canonical_key="c"), direction(1), _FINGERPRINT, ttl=10)
        store.put(make_entry("a"), None, _FINGERPRINT)
        assert store.get("scope", "c") is None
        assert store.search("scope", direction(1), _FINGERPRINT, limit=5) == ()
        assert store.get("scope", "exact-a").expires is None

    def test_a_replaced_deadline_does_not_fire(self, store: Any, clock: Clock) -> None:
        """The new entry lives by its own time to live only."""
        store.put(make_entry("a"), direction(1), _FINGERPRINT, ttl=10)
        store.put(make_entry("a"), direction(1), _FINGERPRINT, ttl=100)
        clock.advance(50)
        assert store.get("scope", "exact-a") is not None
        assert len(store.search("scope", direction(1), _FINGERPRINT, limit=5)) == 1

    def test_a_shared_canonical_key_leads_to_the_newest(self, store: Any) -> None:
        """Of several wordings of one demand the latest answer is served."""
        for name in ("a", "b", "c"):
            store.put(make_entry(name, canonical_key="same"), None, _FINGERPRINT)
        assert store.get("scope", "same").exact_key == "exact-c"
        store.put(make_entry("a", canonical_key="same"), None, _FINGERPRINT)
        assert store.get("scope", "same").exact_key == "exact-a"
        assert store.count() == 3

    def test_a_canonical_key_falls_back_to_the_next_newest(self, store: Any, clock: Clock) -> None:
        """When the newest entry goes, by removal or by age, the one before it is served."""
        store.put(make_entry("a", canonical_key="same"), None, _FINGERPRINT)
        store.put(make_entry("b", canonical_key="same"), None, _FINGERPRINT, ttl=10)
        store.put(make_entry("c", canonical_key="same"), None, _FINGERPRINT)
        assert store.remove("id-scope-c") is True
        assert store.get("scope", "same").exact_key == "exact-b"
        clock.advance(10)
        assert store.get("scope", "same").exact_key == "exact-a"
        assert store.remove("id-scope-a") is True
        assert store.get("scope", "same") is None

    def test_an_exact_key_comes_before_an_equal_canonical_one(self, store: Any) -> None:
        """A key that is exact for one entry and canonical for another means the exact one."""
        store.put(make_entry("a"), None, _FINGERPRINT)
        store.put(make_entry("b", canonical_key="exact-a"), None, _FINGERPRINT)
        assert store.get("scope", "exact-a").id == "id-scope-a"

    # --- scopes --------------------------------------------------------------------------------

    def test_nothing_crosses_a_scope(self, store: Any) -> None:
        """Equal keys and equal vectors of two scopes never meet."""
        for scope in ("left", "right"):
            store.put(make_entry("a", scope, canonical_key="c"), direction(1), _FINGERPRINT)
        for scope in ("left", "right"):
            assert store.get(scope, "exact-a").scope == scope
            assert store.get(scope, "c").scope == scope
            matches = store.search(scope, direction(1), _FINGERPRINT, limit=9)
            assert [m.entry.scope for m in matches] == [scope]
        assert store.get("", "exact-a") is None
        assert store.get("lef", "texact-a") is None
        assert store.search("other", direction(1), _FINGERPRINT, limit=9) == ()

    def test_clearing_a_scope_leaves_the_others(self, store: Any) -> None:
        """Clearing says how many went, and only they went."""
        for scope, names in (("left", "abc"), ("right", "de")):
            for name in names:
                entry = make_entry(name, scope, canonical_key="c")
                store.put(entry, direction(1), _FINGERPRINT)
        assert (store.count("left"), store.count("right"), store.count()) == (3, 2, 5)
        assert store.clear("left") == 3
        assert (store.count("left"), store.count("right"), store.count()) == (0, 2, 2)
        assert store.get("left", "exact-a") is None
        assert store.get("left", "c") is None
        assert store.search("left", direction(1), _FINGERPRINT, limit=9) == ()
        assert len(store.search("right", direction(1), _FINGERPRINT, limit=9)) == 2
        assert store.clear() == 2
        assert store.count() == 0
        assert store.search("right", direction(1), _FINGERPRINT, limit=9) == ()

    def test_a_cleared_store_can_be_filled_again(self, store: Any) -> None:
        """Clearing leaves a working store, by key and by vector."""
        store.put(make_entry("a"), direction(1), _FINGERPRINT)
        store.search("scope", direction(1), _FINGERPRINT, limit=1)
        store.clear()
        store.put(make_entry("b"), direction(1), _FINGERPRINT)
        assert store.get("scope", "exact-b") is not None
        assert _names(store.search("scope", direction(1), _FINGERPRINT, limit=9)) == ["b"]

    # --- search --------------------------------------------------------------------------------

    def test_search_gives_the_nearest_first(self, store: Any) -> None:
        """Matches are ordered by cosine, which they carry, and there are at most ``limit``."""
        for name, weights in (("far", (0, 1)), ("near", (1, 0.1)), ("mid", (1, 1)), ("op", (-1,))):
            store.put(make_entry(name), direction(*weights), _FINGERPRINT)
        matches = store.search("scope", direction(1), _FINGERPRINT, limit=9)
        assert _names(matches) == ["near", "mid", "far", "op"]
        expected = [1 / 1.01**0.5, 0.5**0.5, 0.0, -1.0]
        np.testing.assert_allclose([m.similarity for m in matches], expected, atol=1e-6)
        assert _names(store.search("scope", direction(1), _FINGERPRINT, limit=2)) == ["near", "mid"]
        assert store.search("scope", direction(1), _FINGERPRINT, limit=0) == ()

    def test_search_agrees_with_a_linear_scan(self, store: Any) -> None:
        """Among many entries, some replaced and some removed, the very nearest are found."""
        random = np.random.default_rng(7)
        vectors: dict[str, Vector] = {}
        for turn in range(120):
            name = str(turn % 90)
            vectors[name] = direction(*random.normal(size=_DIMENSION))
            store.put(make_entry(name), vectors[name], _FINGERPRINT)
            if turn % 7 == 0:
                store.remove(f"id-scope-{name}")
                del vectors[name]
        for _ in range(20):
            query = direction(*random.normal(size=_DIMENSION))
            ranked = sorted(vectors, key=lambda name: -float(vectors[name] @ query))
            assert _names(store.search("scope", query, _FINGERPRINT, limit=5)) == ranked[:5]

    def test_embedders_never_mix(self, store: Any) -> None:
        """Vectors of one fingerprint are not compared with those of another, of any length."""
        store.put(make_entry("a"), direction(1), "one")
        store.put(make_entry("b"), direction(1), "two")
        store.put(make_entry("c"), np.ones(3, dtype=np.float32), "three")
        assert _names(store.search("scope", direction(1), "one", limit=9)) == ["a"]
        assert _names(store.search("scope", direction(1), "two", limit=9)) == ["b"]
        assert _names(store.search("scope", np.ones(3, np.float32), "three", limit=9)) == ["c"]
        assert store.search("scope", direction(1), "four", limit=9) == ()

    def test_entries_without_a_vector_are_not_searched(self, store: Any) -> None:
        """They are found by key only."""
        store.put(make_entry("a"), None, _FINGERPRINT)
        assert store.search("scope", direction(1), _FINGERPRINT, limit=9) == ()
        assert store.get("scope", "exact-a") is not None

    def test_vectors_that_are_none_are_refused(self, store: Any) -> None:
        """Not finite, not flat, not numbers: an error, and nothing is kept or changed."""
        store.put(make_entry("a", model="kept"), direction(1), _FINGERPRINT)
        bad = direction(1).copy()
        bad[3] = np.nan
        infinite = direction(1).copy()
        infinite[0] = np.inf
        for vector in (bad, infinite, direction(1)[None], np.array(["x"]), direction(1)[:0]):
            for name in ("a", "new"):
                entry = make_entry(name)
                assert _raises(store.put, entry, vector, _FINGERPRINT)
            assert _raises(store.search, "scope", vector, _FINGERPRINT, limit=1)
        assert store.get("scope", "exact-a").model == "kept"
        assert store.count() == 1

    def test_a_query_of_another_length_is_refused(self, store: Any) -> None:
        """A fingerprint stands for one dimension; a query of another is an error, not a match."""
        store.put(make_entry("a"), direction(1), _FINGERPRINT)
        short = np.ones(3, dtype=np.float32)
        assert _raises(store.search, "scope", short, _FINGERPRINT, limit=1)
        store.search("scope", direction(1), _FINGERPRINT, limit=1)
        assert _raises(store.put, make_entry("b"), short, _FINGERPRINT)
        assert store.count() == 1

    def test_a_zero_vector_is_near_to_nothing(self, store: Any) -> None:
        """A text without content is kept and found with cosine zero."""
        store.put(make_entry("a"), direction(1) * 0, _FINGERPRINT)
        matches = store.search("scope", direction(1), _FINGERPRINT, limit=1)
        assert [(m.entry.id, m.similarity) for m in matches] == [("id-scope-a", 0.0)]

    def test_a_dimension_goes_with_the_last_of_its_entries(self, store: Any) -> None:
        """When a scope holds no entry of a fingerprint any more, the next may be of any length."""
        store.put(make_entry("a"), direction(1), _FINGERPRINT)
        store.search("scope", direction(1), _FINGERPRINT, limit=1)
        store.remove("id-scope-a")
        short, long = np.ones(3, dtype=np.float32), np.ones(9, dtype=np.float32)
        assert store.search("scope", short, _FINGERPRINT, limit=1) == ()
        store.put(make_entry("b"), short, _FINGERPRINT)
        assert _names(store.search("scope", short, _FINGERPRINT, limit=1)) == ["b"]
        store.remove("id-scope-b")
        store.put(make_entry("c"), long, _FINGERPRINT)
        assert _names(store.search("scope", long, _FINGERPRINT, limit=1)) == ["c"]

    # --- time ----------------------------------------------------------------------------------

    def test_an_entry_lives_for_its_time_and_no_longer(self, store: Any, clock: Clock) -> None:
        """It is served until just before its deadline, and from then on not at all."""
        entry = make_entry("a", canonical_key="c")
        store.put(entry, direction(1), _FINGERPRINT, ttl=10)
        clock.advance(9.75)
        assert store.get("scope", "exact-a") is not None
        assert store.get("scope", "c") is not None
        assert len(store.search("scope", direction(1), _FINGERPRINT, limit=1)) == 1
        assert store.count() == 1
        clock.advance(0.25)
        assert store.search("scope", direction(1), _FINGERPRINT, limit=1) == ()
        assert store.get("scope", "exact-a") is None
        assert store.get("scope", "c") is None
        assert (store.count(), store.count("scope")) == (0, 0)
        assert store.remove("id-scope-a") is False
        assert store.clear() == 0

    def test_being_read_does_not_prolong_a_life(self, store: Any, clock: Clock) -> None:
        """The time to live counts from the put."""
        store.put(make_entry("a"), None, _FINGERPRINT, ttl=10)
        for _ in range(4):
            clock.advance(3)
            store.get("scope", "exact-a")
        assert store.get("scope", "exact-a") is None

    def test_expired_entries_do_not_hide_live_ones(self, store: Any, clock: Clock) -> None:
        """A search still fills its limit when everything nearer has expired."""
        for name in "abcdef":
            store.put(make_entry(name), direction(1, 0.01), _FINGERPRINT, ttl=10)
        store.put(make_entry("live"), direction(0, 1), _FINGERPRINT)
        store.search("scope", direction(1), _FINGERPRINT, limit=1)
        clock.advance(11)
        assert _names(store.search("scope", direction(1), _FINGERPRINT, limit=1)) == ["live"]

    def test_a_time_to_live_that_cannot_be_is_refused(self, store: Any) -> None:
        """Zero, negative, infinite or undefined seconds are an error, and nothing is kept."""
        for ttl in (0, -1, float("nan"), float("inf")):
            entry = make_entry("a")
            assert _raises(store.put, entry, None, _FINGERPRINT, ttl=ttl)
        assert store.count() == 0

    # --- removal -------------------------------------------------------------------------------

    def test_a_removed_entry_is_gone_everywhere(self, store: Any) -> None:
        """By exact key, canonical key, vector and count; removing it again says False."""
        store.put(make_entry("a", canonical_key="c"), direction(1), _FINGERPRINT)
        store.put(make_entry("b"), direction(0, 1), _FINGERPRINT)
        store.search("scope", direction(1), _FINGERPRINT, limit=9)
        assert store.remove("id-scope-a") is True
        assert store.get("scope", "exact-a") is None
        assert store.get("scope", "c") is None
        assert _names(store.search("scope", direction(1), _FINGERPRINT, limit=1)) == ["b"]
        assert store.count() == 1
        assert store.remove("id-scope-a") is False

    def test_entries_can_be_browsed(self, store: Any, clock: Clock) -> None:
        """Where a store offers it: by id, and all of them once; the dead do not show."""
        if not hasattr(store, "find"):
            raise SkipTest("the store does not offer find() and entries()")
        assert store.find("none") is None
        assert list(store.entries()) == []
        entries = [make_entry(name, scope) for scope in ("left", "right") for name in "abc"]
        for entry in entries:
            store.put(entry, None, _FINGERPRINT)
        store.put(make_entry("late"), None, _FINGERPRINT, ttl=5)
        assert store.find("id-scope-late").exact_key == make_entry("late").exact_key
        assert store.count() == 7
        clock.advance(10)
        assert store.find("id-scope-late") is None
        assert store.find("id-left-b").text == make_entry("b", "left").text
        store.remove("id-left-b")
        assert store.find("id-left-b") is None
        left = sorted(entry.id for entry in store.entries())
        assert left == sorted(e.id for e in entries if e.id != "id-left-b")

    # --- threads and the end -------------------------------------------------------------------

    def test_threads_lose_nothing_and_see_nothing_foreign(self, store: Any) -> None:
        """Eight threads that put, get, search and remove at once leave exactly what they should."""
        start = threading.Barrier(_THREADS)

        def work(worker: int) -> None:
            scope = f"scope-{worker % 2}"
            start.wait()
            for turn in range(25):
                name = f"{worker}-{turn}"
                store.put(make_entry(name, scope), direction(1, turn), _FINGERPRINT)
                assert store.get(scope, f"exact-{name}").prompt == f"What is {name}?"
                for match in store.search(scope, direction(1, turn), _FINGERPRINT, limit=4):
                    assert match.entry.scope == scope
                if turn % 5 == 0:
                    assert store.remove(f"id-{scope}-{name}") is True

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(work, range(_THREADS)))
        assert store.count() == _THREADS * 20
        assert store.count("scope-0") == store.count("scope-1") == _THREADS * 10
        matches = store.search("scope-1", direction(1), _FINGERPRINT, limit=500)
        assert len({m.entry.id for m in matches}) == _THREADS * 10

    def test_threads_putting_one_key_leave_one_entry(self, store: Any) -> None:
        """Writers of one exact key take turns."""

        def work(worker: int) -> None:
            for turn in range(15):
                entry = make_entry("a", id=f"{worker}-{turn}", canonical_key="c")
                store.put(entry, direction(1), _FINGERPRINT)

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(work, range(_THREADS)))
        assert store.count() == 1
        assert len(store.search("scope", direction(1), _FINGERPRINT, limit=9)) == 1
        assert store.get("scope", "c") == store.get("scope", "exact-a")

    def test_a_closed_store_refuses_everything(self, store: Any) -> None:
        """After close every method raises; closing twice is no error."""
        store.put(make_entry("a"), direction(1), _FINGERPRINT)
        store.close()
        assert _raises(store.get, "scope", "exact-a")
        assert _raises(store.search, "scope", direction(1), _FINGERPRINT, limit=1)
        assert _raises(store.put, make_entry("a"), None, _FINGERPRINT)
        assert _raises(store.remove, "id-scope-a")
        assert _raises(store.clear)
        assert _raises(store.count)
        store.close()
