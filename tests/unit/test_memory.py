"""The memory store: capacity, bookkeeping, and searches beside changes."""

import threading

import pytest

from stepcache._errors import ConfigurationError, StoreError
from stepcache.index import VectorIndex
from stepcache.stores import MemoryStore
from stepcache.stores._record import encode
from stepcache.testing.stores import Clock, direction, make_entry

FINGERPRINT = "test/1"


def names(store, limit=99):
    matches = store.search("scope", direction(1), FINGERPRINT, limit=limit)
    return [match.entry.exact_key.removeprefix("exact-") for match in matches]


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10"])
def test_a_capacity_that_cannot_work_is_refused(value):
    """Capacities are whole numbers above zero."""
    with pytest.raises(ConfigurationError, match=r"MemoryStore\(max_entries=.*whole number"):
        MemoryStore(max_entries=value)


def test_the_least_recently_used_goes_first():
    """Getting, finding and putting an entry keep it; the one left alone longest goes."""
    store = MemoryStore(max_entries=3)
    for name in "abc":
        store.put(make_entry(name, canonical_key=f"c-{name}"), None, FINGERPRINT)
    store.get("scope", "exact-a")
    store.get("scope", "c-b")
    store.put(make_entry("d"), direction(1), FINGERPRINT)
    assert [store.get("scope", f"exact-{n}") is not None for n in "abcd"] == [1, 1, 0, 1]
    assert store.get("scope", "c-c") is None
    store.get("scope", "exact-a")
    store.get("scope", "exact-b")
    assert names(store) == ["d"]
    store.put(make_entry("e"), None, FINGERPRINT)
    assert store.get("scope", "exact-a") is None
    assert store.get("scope", "exact-d") is not None


def put_sized(store, name, size=10):
    store.put(make_entry(name, message="x" * size), direction(1), FINGERPRINT)


def kept(store):
    return "".join(sorted(entry.exact_key.removeprefix("exact-") for entry in store.entries()))


def test_the_oldest_goes_first_where_that_is_wanted():
    """Whether it is read or not."""
    store = MemoryStore(max_entries=3, evict="oldest")
    for name in "abc":
        put_sized(store, name)
    store.get("scope", "exact-a")
    put_sized(store, "d")
    assert kept(store) == "bcd"


def test_what_is_used_least_for_its_size_goes_first():
    """A large entry goes before small ones, unless it is used more for its size."""
    store = MemoryStore(max_entries=3, evict="lfu-size")
    put_sized(store, "l", 20_000)
    for name in "st":
        put_sized(store, name)
    for _ in range(50):
        store.get("scope", "exact-l")
        store.get("scope", "exact-s")
    put_sized(store, "u")
    assert kept(store) == "lsu"
    put_sized(store, "v", 50_000)
    put_sized(store, "w")
    assert "v" not in kept(store)


def test_old_fame_fades():
    """An entry used much long ago goes in the end, when others come and go."""
    store = MemoryStore(max_entries=3, evict="lfu-size")
    put_sized(store, "a")
    for _ in range(10):
        store.get("scope", "exact-a")
    for turn in range(60):
        put_sized(store, f"{turn}")
    assert store.get("scope", "exact-a") is None


@pytest.mark.parametrize("evict", ["oldest", "lru", "lfu-size"])
def test_bytes_are_bounded(evict):
    """The bytes of records and vectors stay within the limit; what was just put is there."""
    store = MemoryStore(max_bytes=20_000, evict=evict)
    for turn in range(300):
        put_sized(store, str(turn % 90), 100 * (turn % 17))
        size = sum(len(encode(entry)) + direction(1).nbytes for entry in store.entries())
        assert size == store._keeper.size <= 20_000
        assert store.get("scope", f"exact-{turn % 90}") is not None
        if turn % 7 == 0:
            store.remove(f"id-scope-{turn % 90}")
    assert store.count() > 5
    with pytest.raises(StoreError, match="larger than max_bytes=20000"):
        put_sized(store, "huge", 30_000)
    assert store.count() > 5
    store.clear()
    assert store._keeper.size == 0


@pytest.mark.parametrize(
    "options", [{"max_bytes": 0}, {"max_bytes": True}, {"evict": "fifo"}, {"max_entries": -1}]
)
def test_limits_that_cannot_work_are_named(options):
    """The error names the argument and what to use."""
    with pytest.raises(ConfigurationError, match=rf"MemoryStore\({next(iter(options))}.*use"):
        MemoryStore(**options)


def test_a_miss_keeps_nothing():
    """Looking for what is not there, or in another scope, is not a use."""
    store = MemoryStore(max_entries=2)
    store.put(make_entry("a"), None, FINGERPRINT)
    store.put(make_entry("b"), None, FINGERPRINT)
    store.get("other", "exact-a")
    store.put(make_entry("c"), None, FINGERPRINT)
    assert store.get("scope", "exact-a") is None


def test_replacing_does_not_evict():
    """A full store takes a new answer to an old request without losing another."""
    store = MemoryStore(max_entries=2)
    for name in "abababb":
        store.put(make_entry(name), direction(1), FINGERPRINT)
    assert store.count() == 2
    assert sorted(names(store)) == ["a", "b"]


def test_capacity_counts_over_all_scopes():
    """The limit is the store's, not a scope's."""
    store = MemoryStore(max_entries=2)
    for scope in ("x", "y", "z"):
        store.put(make_entry("a", scope), None, FINGERPRINT)
    assert (store.count("x"), store.count("y"), store.count("z")) == (0, 1, 1)


def test_nothing_is_left_of_what_is_gone():
    """Entries that were replaced, evicted, expired, removed or cleared leave no bookkeeping."""
    clock = Clock()
    store = MemoryStore(max_entries=20, clock=clock)
    for turn in range(2000):
        entry = make_entry(f"{turn % 50}", f"scope-{turn % 3}", canonical_key=f"{turn % 7}")
        store.put(entry, direction(1, turn), f"f{turn % 2}", ttl=None if turn % 5 else 1000)
        if turn % 11 == 0:
            store.remove(entry.id)
    assert store.count() == 20 == len(store._by_id) == sum(map(len, store._canonical.values()))
    assert len(store._deadlines) <= 2 * 20 + 64
    assert sum(map(len, store._indexes.values())) == 20
    for scope in range(3):
        store.clear(f"scope-{scope}")
    leftovers = [
        *(store._entries, store._exact, store._canonical, store._by_id, store._by_scope),
        store._indexes,
    ]
    assert leftovers == [{}] * 6
    store.put(make_entry("a"), direction(1), FINGERPRINT, ttl=1)
    clock.advance(1)
    assert store.count() == 0
    assert store._indexes == {}


def test_an_entry_is_not_copied():
    """Entries are frozen values, so two reads give the same object."""
    store = MemoryStore()
    store.put(make_entry("a"), None, FINGERPRINT)
    assert store.get("scope", "exact-a") is store.get("scope", "exact-a")


def test_a_removal_in_mid_search_hides_nothing(monkeypatch):
    """When what a search found is removed before it is read, the search looks again."""
    store = MemoryStore()
    for n in range(4):
        store.put(make_entry(f"{n}"), direction(1, n), FINGERPRINT)
    search, doomed = VectorIndex.search, ["id-scope-0", "id-scope-1"]

    def interrupted(self, vector, limit):
        found = search(self, vector, limit)
        if doomed:
            assert store.remove(doomed.pop(0))
        return found

    monkeypatch.setattr(VectorIndex, "search", interrupted)
    assert names(store, limit=1) == ["2"]


def test_searches_beside_changes_find_live_entries_only():
    """While others replace and remove, a search returns entries of its scope, best first."""
    store, stop, failures = MemoryStore(max_entries=60), threading.Event(), []
    for n in range(40):
        store.put(make_entry(f"{n}"), direction(1, n), FINGERPRINT)

    def change(worker):
        turn = 0
        while not stop.is_set():
            turn += 1
            store.put(make_entry(f"{worker}-{turn % 30}"), direction(1, turn), FINGERPRINT)
            store.remove(f"id-scope-{worker}-{turn % 7}")

    def search():
        for turn in range(150):
            found = store.search("scope", direction(1, turn), FINGERPRINT, limit=5)
            cosines = [match.similarity for match in found]
            if cosines != sorted(cosines, reverse=True) or len({id(m.entry) for m in found}) < len(
                found
            ):
                failures.append(found)

    changers = [threading.Thread(target=change, args=(n,)) for n in range(2)]
    searchers = [threading.Thread(target=search) for _ in range(4)]
    for thread in [*changers, *searchers]:
        thread.start()
    for thread in searchers:
        thread.join()
    stop.set()
    for thread in changers:
        thread.join()
    assert not failures
    assert store.count() <= 60
