"""Leases and epochs in a SQLite file: one leader at a time, and a namespace emptied at once."""

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stepcache import Control, Message, Policy, Reply, Request, StepCacheEngine
from stepcache.protocols import LeasingStore
from stepcache.stores import SQLiteStore
from stepcache.testing.stores import Clock, direction, make_entry

FINGERPRINT = "lease/1"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.db"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_store(path, clock):
    stores = []

    def opened(**options):
        stores.append(SQLiteStore(path, **{"clock": clock, **options}))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


# --- leases ------------------------------------------------------------------------------------


def test_one_holds_a_lease_until_it_ends(open_store, clock):
    """Nobody else gets it before it is released or over; tokens rise, whoever gets them."""
    one, other = open_store(), open_store()
    assert isinstance(one, LeasingStore)
    first = one.acquire("k", 10)
    assert first is not None
    assert other.acquire("k", 10) is None
    assert other.acquire("other \ud800 key", 10) > first
    assert not other.release("k", first + 1)
    assert one.release("k", first)
    assert not one.release("k", first)
    second = other.acquire("k", 10)
    assert second > first
    clock.advance(9)
    assert other.renew("k", second, 10)
    clock.advance(9)
    assert one.acquire("k", 10) is None
    clock.advance(1)
    third = one.acquire("k", 10)
    assert third > second
    assert not other.renew("k", second, 10)
    assert not other.release("k", second)


def test_whoever_was_overtaken_keeps_nothing(open_store, clock):
    """A put with a lease that is somebody else's by now changes nothing, however full the store."""
    for options in ({}, {"max_entries": 1, "evict": "lru"}):
        store = open_store(**options)
        slow = store.acquire("k", 10)
        clock.advance(11)
        quick = store.acquire("k", 10)
        lease = {"key": "k", "token": quick}
        assert store.put_leased(make_entry("a"), direction(1), FINGERPRINT, **lease)
        late = make_entry("a", message="late")
        assert not store.put_leased(late, direction(1), FINGERPRINT, key="k", token=slow)
        assert store.get("scope", "exact-a").message != "late"
        assert store.release("k", quick)
        assert not store.put_leased(late, direction(1), FINGERPRINT, **lease)
        store.clear()


def test_lost_leases_do_not_pile_up(open_store, path, clock):
    """Those of leaders that died are forgotten in the end."""
    store = open_store()
    for turn in range(50):
        store.acquire(f"{turn}", 1)
    clock.advance(5000)
    store.acquire("k", 1)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM leases").fetchone() == (1,)
    connection.close()


HOLDER = """
import sys, time
from stepcache.stores import SQLiteStore
store = SQLiteStore(sys.argv[1])
assert store.acquire("k", 10_000) is not None
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="dead processes are not seen")
def test_a_dead_holder_is_not_waited_for(path):
    """Killed with a lease that would last for hours, seen to be dead before anybody collects it and
    after; alive, it holds."""
    store = SQLiteStore(path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        assert store.acquire("k", 1) is None
        holder.kill()
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        first = store.acquire("k", 10_000)
        assert first is not None
    assert store.acquire("k", 1) is None  # this process lives
    raw = sqlite3.connect(path, isolation_level=None)
    (ours,) = raw.execute("SELECT holder FROM leases").fetchone()
    dead = ours.replace(f" {os.getpid()}-", f" {holder.pid}-")
    for told, held in (
        ("", True),
        ("elsewhere pid:[1] 1-1", True),
        (f"{ours}9", False),  # its number was given to another since
        (ours.rpartition(" ")[0] + " x", True),
        (dead, False),
    ):
        raw.execute("UPDATE leases SET holder = ?", (told,))
        token = store.acquire("k", 10_000)
        assert (token is None) == held, told
    raw.close()
    store.close()


class Model:
    """Waits for leave before it answers."""

    def __init__(self):
        self.calls = 0
        self.leave = threading.Event()

    def generate(self, call):
        self.calls += 1
        self.leave.wait(20)
        return Reply(text="Barges wait there for the tide.")


def test_two_engines_on_one_file_share_a_model_call(path):
    """The second waits for the first and serves what it kept."""
    slow, quick = Model(), Model()
    quick.leave.set()
    first = StepCacheEngine(store=str(path), backend=slow)
    second = StepCacheEngine(store=str(path), backend=quick)
    asked = Request(messages=(Message(role="user", text="What is a lock gate for?"),))
    outcomes = []
    leader = threading.Thread(target=lambda: outcomes.append(first.resolve(asked)))
    leader.start()
    while not slow.calls:
        threading.Event().wait(0.01)
    follower = threading.Thread(target=lambda: outcomes.append(second.resolve(asked)))
    follower.start()
    threading.Event().wait(0.1)
    slow.leave.set()
    for thread in (leader, follower):
        thread.join()
    assert (slow.calls, quick.calls) == (1, 0)
    assert sorted(outcome.route for outcome in outcomes) == ["exact", "miss"]
    first.close()
    second.close()


def test_a_leader_that_sleeps_is_overtaken_and_fenced(path):
    """Whoever outlasts the others' patience still gets its answer, but does not replace theirs."""
    policy = Policy(max_wait=1.0)
    slow, quick = Model(), Model()
    quick.leave.set()
    first = StepCacheEngine(store=str(path), backend=slow, policy=policy)
    second = StepCacheEngine(store=str(path), backend=quick, policy=policy)
    asked = Request(messages=(Message(role="user", text="What is a lock gate for?"),))
    outcomes = []
    leader = threading.Thread(target=lambda: outcomes.append(first.resolve(asked)))
    leader.start()
    while not slow.calls:
        threading.Event().wait(0.01)
    other = second.resolve(asked)
    slow.leave.set()
    leader.join()
    assert (slow.calls, quick.calls) == (1, 1)
    assert other.entry_id is not None
    assert outcomes[0].text
    assert outcomes[0].entry_id is None
    assert second.count() == 1
    first.close()
    second.close()


# --- epochs ------------------------------------------------------------------------------------


def test_a_namespace_is_emptied_at_once(open_store, path):
    """Nothing of it is served, counted, listed or found; others are; its new entries are too."""
    backend = Model()
    backend.leave.set()
    engine = StepCacheEngine(store=open_store(), backend=backend)
    other = StepCacheEngine(store=open_store(), backend=backend)

    def ask(number, namespace, engine=engine):
        text = f"What is harbour {number} for?"
        request = Request(messages=(Message(role="user", text=text),))
        return engine.resolve(request, control=Control(namespace=namespace)).route

    for number in range(300):
        for namespace in ("a", "b", ""):
            assert ask(number, namespace) == "miss"
    asked = backend.calls
    other.store.invalidate("a")
    assert other.count() == engine.count() == 600
    assert len(list(other.store.entries())) == 600
    assert [ask(7, namespace) for namespace in ("a", "b", "")] == ["miss", "exact", "exact"]
    assert backend.calls == asked + 1
    assert ask(7, "a", other) == "exact"
    store = open_store()
    store.invalidate("")
    assert store.count() == 301
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM epochs").fetchone()[0] >= 1
    connection.close()
    store.compact()
    assert store.count() == 301
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM epochs").fetchone() == (0,)
        assert connection.execute("SELECT entries FROM totals").fetchone() == (301,)
    connection.close()
    assert [ask(9, namespace) for namespace in ("a", "b", "")] == ["miss", "exact", "miss"]
    store.invalidate("nobody's")
    assert store.count() == 303


def test_an_emptied_namespace_goes_with_later_puts(open_store, path, clock):
    """Its rows go little by little, and expired ones are counted once."""
    store = open_store()
    for turn in range(700):
        store.put(
            make_entry(f"{turn}"), direction(1, turn), FINGERPRINT, ttl=5 if turn % 2 else None
        )
    store.invalidate("")
    clock.advance(6)
    assert store.count() == store.count("scope") == 0
    assert store.search("scope", direction(1), FINGERPRINT, limit=4) == ()
    for turn in range(6):
        store.put(make_entry(f"new-{turn}"), direction(1, turn), FINGERPRINT)
    assert store.count() == store.count("scope") == 6
    assert len(store.search("scope", direction(1), FINGERPRINT, limit=9)) == 6
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (6,)
        assert connection.execute("SELECT count(*) FROM epochs").fetchone() == (0,)
    connection.close()
