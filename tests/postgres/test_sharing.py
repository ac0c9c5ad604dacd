"""Several processes on one database: one truth, one migration, one leader, bounded memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from stepcache import StoreError
from stepcache.stores import PostgresStore
from stepcache.testing.stores import direction, make_entry

Opener = Callable[..., PostgresStore]

WORKER = """
import random, sys
from stepcache.stores import PostgresStore
from stepcache.testing.stores import direction, make_entry

url, schema, worker, turns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = PostgresStore(url, schema=schema, local_entries=50, upkeep_seconds=0.05)
random.seed(worker)
for turn in range(turns):
    scope = f"scope-{random.randrange(3)}"
    entry = make_entry(f"{worker}-{turn}", scope, canonical_key=f"c{turn % 5}")
    store.put(entry, direction(1, turn), "f")
    assert store.get(scope, entry.exact_key).id == entry.id
    for match in store.search(scope, direction(1, turn), "f", limit=3):
        assert match.entry.scope == scope
    other = store.get(scope, f"c{turn % 5}")
    assert other.scope == scope and other.canonical_key == f"c{turn % 5}"
    if turn % 4 == 0:
        assert store.remove(entry.id)
        assert store.get(scope, entry.exact_key) is None
assert store.unreadable == 0
store.close()
"""


def _processes(count: int, script: str, *args: object) -> list[str]:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, *map(str, args[:2]), str(number), *map(str, args[2:])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    outputs = []
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        outputs.append(out)
    return outputs


def test_four_processes_share_one_truth(server: Any, schema: str, opened: Opener) -> None:
    """Four processes, of which one finds no schema and makes it, read and write without an error,
    a lost entry or a foreign one."""
    _processes(4, WORKER, server.url, schema, 40)
    store = opened()
    assert store.count() == 4 * 30
    for worker in range(4):
        for turn in range(40):
            key = f"exact-{worker}-{turn}"
            found = [store.get(f"scope-{number}", key) for number in range(3)]
            assert sum(entry is not None for entry in found) == (turn % 4 != 0)


def test_a_schema_is_migrated_once(server: Any, schema: str, opened: Opener) -> None:
    """Eight threads that open a store on nothing leave one schema of one version."""
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: opened(), range(8)))
    assert [store.count() for store in stores] == [0] * 8
    assert server.execute(f"SELECT version FROM {schema}.migrations") == [(1,), (2,)]


def test_the_servers_clock_counts(opened: Opener) -> None:
    """Without a clock of its own a store stamps and expires by the server's time."""
    store = opened()
    before = time.time()
    store.put(make_entry("a"), direction(1), "f", ttl=0.4)
    entry = store.get("scope", "exact-a")
    assert entry is not None
    assert entry.expires is not None
    assert abs(entry.created - before) < 5
    assert entry.expires - entry.created == pytest.approx(0.4, abs=1e-4)
    time.sleep(0.5)
    assert store.get("scope", "exact-a") is None
    assert store.search("scope", direction(1), "f", limit=1) == ()
    assert store.count() == 0


def test_upkeep_deletes_what_is_over(server: Any, schema: str, opened: Opener) -> None:
    """Expired rows and those beyond the limit go; one host has the turn at a time."""
    store = opened(max_entries=5, upkeep_seconds=None)
    for turn in range(12):
        store.put(make_entry(str(turn)), direction(1, turn), "f", ttl=0.01 if turn < 4 else None)
    time.sleep(0.05)
    store.upkeep()
    assert server.execute(f"SELECT count(*) FROM {schema}.entries") == [(5,)]
    assert store.get("scope", "exact-11") is not None
    assert store.get("scope", "exact-6") is None
    assert store._tidy(60) is None


def test_upkeep_comes_by_itself(server: Any, schema: str, opened: Opener) -> None:
    """A put once in a while is enough to have expired rows deleted."""
    store = opened(upkeep_seconds=0.05)
    store.put(make_entry("old"), None, "f", ttl=0.01)
    deadline = time.monotonic() + 10
    while server.execute(f"SELECT count(*) FROM {schema}.entries") != [(1,)]:
        assert time.monotonic() < deadline
        time.sleep(0.06)
        store.put(make_entry("new"), None, "f")


def test_a_large_space_gets_an_index_of_its_own(server: Any, schema: str, opened: Opener) -> None:
    """Above the limit a space is indexed, the index is used, finds what a scan finds, and keeps up
    with puts, replacements and removals; other spaces stay exact."""
    store = opened(index_above=500, upkeep_seconds=None)
    random = np.random.default_rng(3)
    vectors = random.normal(size=(700, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for number, vector in enumerate(vectors):
        store.put(make_entry(str(number)), vector, "f")
    store.put(make_entry("b", "small"), vectors[0], "f")
    built = store.upkeep()
    assert len(built) == 1
    assert store.upkeep() == ()
    operations = store._operations
    server.execute(f"ANALYZE {schema}.entries")
    plan = "\n".join(
        row[0]
        for row in server.execute(
            "EXPLAIN "
            + operations.sql.search(built[0], 16, True)
            .replace("%(vector)b", f"'{vectors[0].tolist()}'::vector(16)")
            .replace("%(now)s", "NULL")
            .replace("%(limit)s", "5")
        )
    )
    assert f"entries_hnsw_{built[0]}" in plan
    store.put(make_entry("fresh"), vectors[1], "f")
    store.put(make_entry("2"), -vectors[2], "f")
    store.remove("id-scope-3")
    hits = 0
    for number in range(0, 700, 7):
        found = store.search("scope", vectors[number], "f", limit=3)
        hits += any(match.entry.exact_key == f"exact-{number}" for match in found)
    assert hits >= 99
    near = {m.entry.exact_key for m in store.search("scope", vectors[1], "f", limit=2)}
    assert near == {"exact-1", "exact-fresh"}
    assert store.search("scope", -vectors[2], "f", limit=1)[0].entry.exact_key == "exact-2"
    found = store.search("scope", vectors[3], "f", limit=5)
    assert "exact-3" not in {match.entry.exact_key for match in found}
    assert [m.entry.scope for m in store.search("small", vectors[1], "f", limit=9)] == ["small"]


def test_a_damaged_row_is_no_entry(server: Any, schema: str, opened: Opener) -> None:
    """A record that was torn or moved to another place is a miss, counted and removed, and an older
    answer to the same demand is served."""
    store = opened()
    store.put(make_entry("a", canonical_key="c"), direction(1), "f")
    store.put(make_entry("b", canonical_key="c"), direction(1), "f")
    store.put(make_entry("x", "other"), None, "f")
    record, scope = "substring(record FOR 40)", "(SELECT scope FROM {0}.entries WHERE number = 1)"
    server.execute(f"UPDATE {schema}.entries SET record = {record} WHERE number = 2")
    server.execute(f"UPDATE {schema}.entries SET scope = {scope.format(schema)} WHERE number = 3")
    found = store.get("scope", "c")
    assert found is not None
    assert found.exact_key == "exact-a"
    assert store.get("scope", "exact-b") is None
    assert store.get("scope", "exact-x") is None
    assert len(store.search("scope", direction(1), "f", limit=9)) == 1
    assert store.refusals == {"malformed": 1, "misplaced": 1}
    assert store.count() == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking beside threads is the point
def test_a_fork_opens_its_own_connections(opened: Opener) -> None:
    """Parent and child both go on, and neither hears the other's answers."""
    store = opened(local_entries=10)
    for name in "ab":
        store.put(make_entry(name), direction(1), "f")
    assert store.get("scope", "exact-a") is not None
    child = os.fork()
    if not child:
        try:
            for _ in range(50):
                assert store.get("scope", "exact-b").exact_key == "exact-b"
            store.put(make_entry("c"), direction(1), "f")
            os._exit(0)
        finally:
            os._exit(1)
    for _ in range(50):
        assert store.search("scope", direction(1), "f", limit=1)
        assert store.get("scope", "exact-a").exact_key == "exact-a"
    assert os.waitpid(child, 0)[1] == 0
    assert store.get("scope", "exact-c") is not None


# --- entries remembered by one process -----------------------------------------------------------


def _remembered(store: PostgresStore, key: str) -> None:
    """Get a key until it is remembered."""
    deadline = time.monotonic() + 10
    while store._local.get("scope", key) is None:
        assert store.get("scope", key) is not None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_another_hosts_change_is_noticed_within_the_bound(opened: Opener) -> None:
    """However often another store replaces an entry, no answer is staler than the bound."""
    bound = 0.3
    reader, writer = opened(local_entries=10, local_seconds=bound), opened()
    writer.put(make_entry("a", model="0"), None, "f")
    acknowledged = [(0, time.monotonic())]
    stop = threading.Event()

    def write() -> None:
        version = 0
        while not stop.is_set():
            version += 1
            writer.put(make_entry("a", model=str(version)), None, "f")
            acknowledged.append((version, time.monotonic()))
            time.sleep(0.005 if version % 20 else 0.25)

    thread = threading.Thread(target=write)
    _remembered(reader, "exact-a")
    thread.start()
    served = 0
    until = time.monotonic() + 3
    try:
        while time.monotonic() < until:
            asked = time.monotonic()
            entry = reader.get("scope", "exact-a")
            assert entry is not None
            served += 1
            due = (
                max(version for version, when in tuple(acknowledged) if when < asked - bound)
                if acknowledged[0][1] < asked - bound
                else 0
            )
            assert int(entry.model) >= due
    finally:
        stop.set()
        thread.join()
    assert served > 500


def test_removed_and_cleared_entries_are_forgotten_within_the_bound(opened: Opener) -> None:
    """By key, by the shared key they answered to, and all at once."""
    reader, writer = opened(local_entries=200, local_seconds=0.3), opened()
    for name in "abc":
        writer.put(make_entry(name, canonical_key="c"), None, "f")
    for key in ("exact-a", "exact-b", "exact-c", "c"):
        _remembered(reader, key)
    writer.remove("id-scope-c")
    time.sleep(0.3)
    assert reader.get("scope", "exact-c") is None
    assert reader.get("scope", "c").exact_key == "exact-b"
    writer.put(make_entry("d", canonical_key="c"), None, "f")
    time.sleep(0.3)
    assert reader.get("scope", "c").exact_key == "exact-d"
    for turn in range(150):
        writer.put(make_entry(f"m{turn}"), None, "f")
    _remembered(reader, "exact-m7")
    writer.clear()
    time.sleep(0.3)
    assert reader.get("scope", "exact-m7") is None
    assert reader.get("scope", "exact-a") is None


def test_own_changes_are_seen_at_once(opened: Opener) -> None:
    """What this process replaces or removes it never serves again."""
    store = opened(local_entries=10)
    for turn in range(30):
        store.put(make_entry("a", model=str(turn), canonical_key=f"c{turn % 2}"), None, "f")
        if turn == 5:
            _remembered(store, "exact-a")
        assert store.get("scope", "exact-a").model == str(turn)
        assert store.get("scope", f"c{turn % 2}").model == str(turn)
        assert store.get("scope", f"c{1 - turn % 2}") is None
    store.remove("id-scope-a")
    assert store.get("scope", "exact-a") is None


def test_remembered_entries_expire(opened: Opener) -> None:
    """A deadline holds for a remembered entry as for any other."""
    store = opened(local_entries=10, local_seconds=5)
    store.put(make_entry("a"), None, "f", ttl=0.6)
    _remembered(store, "exact-a")
    time.sleep(0.6)
    assert store.get("scope", "exact-a") is None


def test_remembered_entries_are_not_served_without_a_line(own_server: Any) -> None:
    """When the server is gone for longer than the bound nobody can say what still holds."""
    store = PostgresStore(own_server.url, local_entries=10, local_seconds=0.2)
    store.put(make_entry("a"), None, "f")
    _remembered(store, "exact-a")
    own_server.kill()
    time.sleep(0.25)
    with pytest.raises(StoreError):
        store.get("scope", "exact-a")
    own_server.start()
    other = PostgresStore(own_server.url)
    other.put(make_entry("a", model="new"), None, "f")
    other.close()
    deadline = time.monotonic() + 15
    while True:
        try:
            assert store.get("scope", "exact-a").model == "new"
            break
        except StoreError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    _remembered(store, "exact-a")
    store.close()


# --- leases ----------------------------------------------------------------------------------------


def test_a_lease_has_one_holder(opened: Opener) -> None:
    """Of many who ask at once one gets it; tokens rise; released or over, the next one does."""
    stores = [opened() for _ in range(3)]
    with ThreadPoolExecutor(9) as pool:
        tokens = list(pool.map(lambda n: stores[n % 3].acquire("key", 30), range(27)))
    held = [token for token in tokens if token is not None]
    assert len(held) == 1
    assert stores[0].acquire("other", 30) is not None
    assert stores[1].renew("key", held[0], 30) is True
    assert stores[1].renew("key", held[0] + 1, 30) is False
    assert stores[2].release("key", held[0]) is True
    assert stores[2].renew("key", held[0], 30) is False
    second = stores[0].acquire("key", 0.1)
    assert second is not None
    assert second > held[0]
    time.sleep(0.15)
    third = stores[1].acquire("key", 30)
    assert third is not None
    assert third > second
    assert stores[0].release("key", second) is False
    assert stores[2].acquire("key", 30) is None


def test_a_lost_lease_fences_its_put(opened: Opener) -> None:
    """Who slept through its lease cannot replace what the next holder kept; who slept but was not
    overtaken can."""
    slow, quick = opened(), opened()
    old = slow.acquire("key", 0.05)
    time.sleep(0.1)
    new = quick.acquire("key", 30)
    vector = direction(1)
    kept = make_entry("a", model="new")
    assert quick.put_leased(kept, vector, "f", key="key", token=new) is True
    assert quick.release("key", new) is True
    assert slow.put_leased(make_entry("a", model="old"), vector, "f", key="key", token=old) is False
    assert slow.get("scope", "exact-a").model == "new"
    alone = slow.acquire("other", 0.05)
    time.sleep(0.1)
    late = make_entry("b")
    assert slow.put_leased(late, None, "f", key="other", token=alone, ttl=50) is True
    assert slow.get("scope", "exact-b").expires is not None


LEADER = """
import sys, time
from stepcache.stores import PostgresStore
from stepcache.testing.stores import make_entry

store = PostgresStore(sys.argv[1], schema=sys.argv[2])
calls = 0
for turn in range(int(sys.argv[4])):
    key = f"exact-{turn}"
    while store.get("scope", key) is None:
        token = store.acquire(key, 5.0)
        if token is None:
            time.sleep(0.005)
            continue
        if store.get("scope", key) is None:
            calls += 1
            time.sleep(0.02)  # the model
            assert store.put_leased(make_entry(str(turn)), None, "f", key=key, token=token)
        store.release(key, token)
print(calls)
store.close()
"""


def test_four_processes_call_the_model_once_a_key(server: Any, schema: str, opened: Opener) -> None:
    """With leases, equal requests of several processes share one call of the model."""
    opened()
    calls = _processes(4, LEADER, server.url, schema, 25)
    assert sum(map(int, calls)) == 25
    assert opened().count() == 25
