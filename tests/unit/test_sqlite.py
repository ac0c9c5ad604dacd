"""The SQLite store: processes, crashes, damage and strange files."""

import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from zlib import crc32

import numpy as np
import pytest

from stepcache._errors import ConfigurationError, StoreError
from stepcache.stores import SQLiteStore
from stepcache.stores._record import encode
from stepcache.testing.stores import Clock, direction, make_entry

FINGERPRINT = "test/1"
PRELUDE = """
import os, sys, threading
from stepcache.stores import SQLiteStore
from stepcache.testing.stores import direction, make_entry
FINGERPRINT = "test/1"
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.db"


@pytest.fixture
def open_store(path):
    """Open the file; every store is closed at the end."""
    stores = []

    def opened(**options):
        stores.append(SQLiteStore(path, **options))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def start(script, *args):
    """Another process that runs a script after the prelude."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + script, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process):
    with process:
        try:
            out, _ = process.communicate(timeout=240)
        finally:
            process.kill()
    assert process.returncode == 0, out
    return out


def names(matches):
    return [match.entry.exact_key.removeprefix("exact-") for match in matches]


def change(path, statement, *values):
    """Tamper with the file behind the store's back."""
    connection = sqlite3.connect(path)
    with connection:
        changed = connection.execute(statement, values).rowcount
    connection.close()
    return changed


# --- the file ----------------------------------------------------------------------------------


def test_entries_outlive_the_store(open_store):
    """What one store put, the next one on the same file gets and finds."""
    first = open_store()
    first.put(make_entry("a", canonical_key="c"), direction(1), FINGERPRINT)
    expected = first.get("scope", "exact-a")
    first.close()
    second = open_store()
    assert second.get("scope", "exact-a") == second.get("scope", "c") == expected
    assert names(second.search("scope", direction(1), FINGERPRINT, limit=3)) == ["a"]


def test_the_file_is_private_and_its_directories_are_made(tmp_path):
    """Answers are readable by their owner only, in SQLite's side files too."""
    path = tmp_path / "deep" / "er" / "cache.db"
    store = SQLiteStore(path)
    store.put(make_entry("a"), direction(1), FINGERPRINT)
    files = sorted(path.parent.iterdir())
    assert [f.name for f in files] == ["cache.db", "cache.db-shm", "cache.db-wal", "cache.db.key"]
    assert {stat.S_IMODE(f.stat().st_mode) for f in files} == {0o600}
    assert store.path == str(path)
    store.close()
    assert sorted(path.parent.iterdir()) == [path, path.with_name("cache.db.key")]


def test_a_changed_directory_does_not_move_the_file(tmp_path, monkeypatch):
    """A relative path means the directory of the moment the store was made."""
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore("cache.db")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    store.put(make_entry("a"), None, FINGERPRINT)
    store.close()
    assert os.listdir(tmp_path / "other") == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (":memory:", "MemoryStore"),
        ("", "MemoryStore"),
        ("file:x.db?mode=memory", "plain path"),
        ("a\0b", "NUL"),
        (7, "int is no path.*Path"),
        ("{tmp}", "directory.*file name"),
        ("{tmp}/taken/x.db", "cannot be created|in the way"),
        ("{tmp}/taken/deep/x.db", "cannot be created|in the way"),
        ("/proc/nowhere/x.db", "cannot be created.*writable"),
        ("/dev/null", "in the way"),
    ],
)
def test_a_path_that_cannot_work_is_named(tmp_path, path, words):
    """The error says which path, why not, and what to do."""
    (tmp_path / "taken").write_text("a file")
    if isinstance(path, str):
        path = path.replace("{tmp}", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"(?s){words}") as caught:
        SQLiteStore(path)
    assert repr(path) in str(caught.value) or "/proc" in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10"])
def test_a_capacity_that_cannot_work_is_refused(path, value):
    """Capacities are whole numbers above zero; nothing is created for any other."""
    with pytest.raises(ConfigurationError, match=r"max_entries.*whole number"):
        SQLiteStore(path, max_entries=value)
    assert not path.exists()


@pytest.mark.parametrize(
    "content", [b"garbage", b"garbage" * 5000, b"SQLite format 3\0" + b"x" * 90]
)
def test_a_file_that_is_not_sqlite_is_refused_and_left_alone(path, content):
    """Somebody's text file is neither opened nor changed."""
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"(?s)not a database.*path of a SQLite file"):
        SQLiteStore(path)
    assert path.read_bytes() == content


def test_another_application_s_database_is_refused_and_left_alone(path):
    """A SQLite file with foreign tables gets none of ours."""
    change(path, "CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match=r"another application.*another file"):
        SQLiteStore(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(open_store, path):
    """A file of a later release says so instead of being misread."""
    open_store().close()
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(ConfigurationError, match=r"version 99.*upgrade stepcache"):
        SQLiteStore(path)


def test_a_file_that_claims_our_schema_but_lacks_it_is_refused(open_store, path):
    """The table is looked at, not only the version."""
    open_store().close()
    change(path, "ALTER TABLE entries DROP COLUMN checksum")
    with pytest.raises(ConfigurationError, match="checksum"):
        SQLiteStore(path)


def test_an_empty_file_becomes_a_store(open_store, path):
    """As does a file that somebody touched beforehand."""
    path.touch()
    open_store().put(make_entry("a"), None, FINGERPRINT)
    assert open_store().get("scope", "exact-a") is not None


# --- damage ------------------------------------------------------------------------------------


DAMAGES = {
    "garbage": "UPDATE entries SET record = x'00ff' WHERE exact_key = CAST('exact-a' AS BLOB)",
    "text": "UPDATE entries SET record = 'text' WHERE exact_key = CAST('exact-a' AS BLOB)",
    "cut": "UPDATE entries SET record = substr(record, 1, 40)"
    " WHERE exact_key = CAST('exact-a' AS BLOB)",
    "one letter": "UPDATE entries SET record ="
    " CAST(replace(CAST(record AS TEXT), 'It is a', 'It is b') AS BLOB)"
    " WHERE exact_key = CAST('exact-a' AS BLOB)",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_a_counted_miss(open_store, path, damage):
    """It is not served by key, hides nothing in a search, is removed, and can be put anew."""
    store = open_store()
    store.put(make_entry("a", canonical_key="c"), direction(1), FINGERPRINT)
    store.put(make_entry("b"), direction(1, 1), FINGERPRINT)
    assert change(path, DAMAGES[damage]) == 1
    assert store.get("scope", "exact-a") is None
    assert store.unreadable == 1
    assert names(store.search("scope", direction(1), FINGERPRINT, limit=1)) == ["b"]
    assert store.get("scope", "c") is None
    assert store.unreadable == 1
    assert store.count() == 1
    store.put(make_entry("a"), direction(1), FINGERPRINT)
    assert store.get("scope", "exact-a") is not None
    assert names(store.search("scope", direction(1), FINGERPRINT, limit=1)) == ["a"]


def test_a_damaged_newest_entry_leads_to_the_next(open_store, path):
    """A canonical key falls back to the newest entry that can be read."""
    store = open_store()
    for name in "abc":
        store.put(make_entry(name, canonical_key="same"), None, FINGERPRINT)
    change(path, "UPDATE entries SET record = x'00' WHERE entry_id = CAST('id-scope-c' AS BLOB)")
    assert store.get("scope", "same").exact_key == "exact-b"


def test_a_record_forged_into_another_scope_is_a_miss(open_store, path):
    """A whole record moved to a scope or key that it does not name is not served there."""
    store = open_store()
    store.put(make_entry("a", "left"), direction(1), FINGERPRINT)
    change(path, "UPDATE entries SET scope = CAST('right' AS BLOB)")
    assert store.get("right", "exact-a") is None
    assert store.search("right", direction(1), FINGERPRINT, limit=3) == ()
    store.put(make_entry("b", "left"), None, FINGERPRINT)
    change(path, "UPDATE entries SET exact_key = CAST('exact-z' AS BLOB) WHERE vector IS NULL")
    assert store.get("left", "exact-z") is None


def test_a_forged_deadline_does_not_revive(open_store, path):
    """The record's own deadline counts beside the row's."""
    clock = Clock()
    store = open_store(clock=clock)
    store.put(make_entry("a"), direction(1), FINGERPRINT, ttl=5)
    change(path, "UPDATE entries SET expires = NULL")
    clock.advance(6)
    assert store.get("scope", "exact-a") is None
    assert store.search("scope", direction(1), FINGERPRINT, limit=1) == ()


def test_damaged_vectors_are_left_out(open_store, path):
    """Vectors of another length, not finite or not of unit length find nothing, and are counted."""
    store = open_store()
    bad = {
        "short": direction(1).tobytes()[:-4],
        "odd": b"abc",
        "nan": np.full(8, np.nan, np.float32).tobytes(),
        "huge": np.full(8, 1e30, np.float32).tobytes(),
        "text": "x" * 32,
    }
    for name in [*bad, "good", "better"]:
        store.put(make_entry(name), direction(1), FINGERPRINT)
    for name, vector in bad.items():
        key = f"exact-{name}".encode()
        assert change(path, "UPDATE entries SET vector = ? WHERE exact_key = ?", vector, key) == 1
    found = store.search("scope", direction(1), FINGERPRINT, limit=9)
    assert sorted(names(found)) == ["better", "good"]
    assert store.unreadable == len(bad)
    assert store.get("scope", "exact-nan") is not None


def test_a_torn_file_gives_errors_or_misses_but_no_wrong_entry(open_store, path, tmp_path):
    """Whatever is cut off or overwritten, each entry comes back as it was or not at all."""
    store, clock = open_store(clock=Clock(5.0)), Clock(5.0)
    entries = {f"{n}": make_entry(f"{n}", created=5.0) for n in range(60)}
    for entry in entries.values():
        store.put(entry, direction(1, int(entry.exact_key[6:])), FINGERPRINT)
    store.close()
    whole, dice = path.read_bytes(), random.Random(3)
    outcomes = {"refused": 0, "failed": 0, "missed": 0, "got": 0}
    for turn in range(24):
        torn = bytearray(whole)
        if turn % 2:
            del torn[dice.randrange(1, len(torn)) :]
        else:
            for _ in range(30):
                torn[dice.randrange(100, len(torn))] = dice.randrange(256)
        copy = tmp_path / f"{turn}.db"
        copy.write_bytes(torn)
        try:
            damaged = SQLiteStore(copy, clock=clock, integrity_key=f"{path}.key")
        except ConfigurationError:
            outcomes["refused"] += 1
            continue
        for name, entry in entries.items():
            try:
                found = damaged.get("scope", f"exact-{name}")
            except StoreError:
                outcomes["failed"] += 1
                continue
            assert found in (None, entry)
            outcomes["missed" if found is None else "got"] += 1
        try:
            for match in damaged.search("scope", direction(1), FINGERPRINT, limit=60):
                assert match.entry in entries.values()
        except StoreError:
            outcomes["failed"] += 1
        damaged.close()
    assert all(outcomes.values()), outcomes


def test_a_locked_out_writer_is_a_store_error(open_store, monkeypatch, path):
    """When another writer does not let go, the put fails as a store failure, and reads go on."""
    monkeypatch.setattr("stepcache.stores._sqlite_file.BUSY_SECONDS", 0.05)
    store = open_store()
    store.put(make_entry("a"), None, FINGERPRINT)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"(?s)cache.db.*locked"):
        store.put(make_entry("b"), None, FINGERPRINT)
    assert store.get("scope", "exact-a") is not None
    blocker.execute("ROLLBACK")
    blocker.close()
    store.put(make_entry("b"), None, FINGERPRINT)
    assert store.count() == 2


def test_an_entry_without_a_record_changes_nothing(open_store):
    """An entry that cannot be written is refused before anything is replaced."""
    store = open_store(max_entries=1)
    store.put(make_entry("a", model="kept"), None, FINGERPRINT)
    with pytest.raises(StoreError, match="cannot be recorded"):
        store.put(make_entry("a", message=object()), None, FINGERPRINT)
    assert store.get("scope", "exact-a").model == "kept"


def test_a_write_that_fails_half_way_is_undone(open_store, path):
    """When making room fails, the new entry is not kept either, and the store works on."""
    store = open_store(max_entries=1)
    store.put(make_entry("a"), None, FINGERPRINT)
    change(
        path, "CREATE TRIGGER t BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'stuck'); END"
    )
    with pytest.raises(StoreError, match="stuck"):
        store.put(make_entry("b"), None, FINGERPRINT)
    assert store.count() == 1
    assert store.get("scope", "exact-b") is None
    change(path, "DROP TRIGGER t")
    store.put(make_entry("b"), None, FINGERPRINT)
    assert store.get("scope", "exact-b") is not None


def test_a_monstrous_row_is_not_loaded(open_store, path):
    """A record that no store would have written fails instead of filling the memory."""
    store = open_store()
    store.put(make_entry("a"), None, FINGERPRINT)
    change(path, "UPDATE entries SET record = zeroblob(?)", 65 * 2**20)
    with pytest.raises(StoreError, match="too big"):
        store.get("scope", "exact-a")


def test_the_file_is_written_as_promised(open_store):
    """Write-ahead log, synchronous NORMAL and no trust in the file's own schema."""
    store = open_store()
    with store._database.lend() as connection:
        settings = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "trusted_schema", "busy_timeout")
        ]
    assert settings == ["wal", 1, 0, 30_000]
    assert store.blocking is True


# --- other processes ---------------------------------------------------------------------------


def test_two_processes_share_the_file(open_store, path):
    """Each sees what the other puts, replaces and removes, by key and by vector, as it happens."""
    store = open_store()
    store.put(make_entry("mine"), direction(1), FINGERPRINT)
    store.put(make_entry("doomed"), direction(1, 0.1), FINGERPRINT)
    found = store.search("scope", direction(1), FINGERPRINT, limit=9)
    assert names(found) == ["mine", "doomed"]
    other = start(
        """
store = SQLiteStore(sys.argv[1])
assert len(store.search("scope", direction(1), FINGERPRINT, limit=9)) == 2
store.put(make_entry("theirs", canonical_key="c"), direction(1, 0.2), FINGERPRINT)
store.put(make_entry("mine", model="replaced"), direction(0, 1), FINGERPRINT)
assert store.remove("id-scope-doomed")
print("done", flush=True)
sys.stdin.readline()
found = store.search("scope", direction(1), FINGERPRINT, limit=9)
print([m.entry.exact_key for m in found], store.count())
store.close()
""",
        path,
    )
    assert other.stdout.readline() == "done\n"
    assert store.get("scope", "c").exact_key == "exact-theirs"
    assert store.get("scope", "exact-mine").model == "replaced"
    assert store.get("scope", "exact-doomed") is None
    found = store.search("scope", direction(1), FINGERPRINT, limit=9)
    assert names(found) == ["theirs", "mine"]
    np.testing.assert_allclose([m.similarity for m in found], [1 / 1.04**0.5, 0], atol=1e-6)
    store.clear()
    store.put(make_entry("last"), direction(1), FINGERPRINT)
    assert finish(other) == "['exact-last'] 1\n"


def test_an_index_survives_a_massacre_by_another_process(open_store, path):
    """When another process removes nearly everything near, the search still fills its limit."""
    store, other = open_store(), open_store()
    for n in range(200):
        store.put(make_entry(f"{n}"), direction(1, n / 1000), FINGERPRINT)
    assert len(store.search("scope", direction(1), FINGERPRINT, limit=4)) == 4
    for n in range(198):
        other.remove(f"id-scope-{n}")
    found = store.search("scope", direction(1), FINGERPRINT, limit=4)
    assert names(found) == ["198", "199"]


def test_processes_write_at_once(path):
    """Four processes that write and search at the same time, from opening on, lose nothing."""
    script = """
store = SQLiteStore(sys.argv[1])
for turn in range(40):
    name = f"{sys.argv[2]}-{turn}"
    store.put(make_entry(name), direction(1, turn), FINGERPRINT)
    assert store.get("scope", f"exact-{name}") is not None
    store.put(make_entry("shared"), direction(1), FINGERPRINT)
    assert store.search("scope", direction(1, turn), FINGERPRINT, limit=2)
assert store.unreadable == 0
store.close()
"""
    for process in [start(script, path, worker) for worker in range(4)]:
        finish(process)
    store = SQLiteStore(path)
    assert store.count() == 4 * 40 + 1
    assert len(store.search("scope", direction(1), FINGERPRINT, limit=999)) == 4 * 40 + 1
    store.close()


def test_kill_9_loses_no_acknowledged_entry(path):
    """Every entry whose put had returned when the process was killed is there afterwards."""
    script = """
store = SQLiteStore(sys.argv[1])
for turn in range(100_000):
    name = f"{sys.argv[2]}-{turn}"
    store.put(make_entry(name, message="x" * 2000), direction(1, turn), FINGERPRINT)
    sys.stdout.write(name + "\\n")
    sys.stdout.flush()
"""
    acknowledged, dice = [], random.Random(11)
    for generation in range(4):
        process = start(script, path, generation)
        # At least one was acknowledged, so the writer is in the middle of its work.
        acknowledged.append(process.stdout.readline().strip())
        time.sleep(dice.uniform(0.01, 0.12))
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().split("\n")[:-1]
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        store = SQLiteStore(path)
        lost = [n for n in acknowledged if store.get("scope", f"exact-{n}") is None]
        assert lost == []
        # One more may have been kept whose acknowledgement did not get out.
        assert len(acknowledged) <= store.count() <= len(acknowledged) + generation + 1
        assert len(store.search("scope", direction(1), FINGERPRINT, limit=10**6)) == store.count()
        store.close()
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()
    assert len(acknowledged) > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_works_and_the_parent_goes_on(path):
    """Children forked while threads use the store answer at once, and share the same file."""
    script = """
import signal, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is the point
store = SQLiteStore(sys.argv[1])
store.put(make_entry("parent"), direction(1), FINGERPRINT)
store.search("scope", direction(1), FINGERPRINT, limit=9)
stop = threading.Event()
def hammer(worker):
    turn = 0
    while not stop.is_set():
        turn += 1
        store.put(make_entry(f"{worker}", "busy"), direction(1, turn), FINGERPRINT)
        store.search("busy", direction(1), FINGERPRINT, limit=4)
        time.sleep(0.001)
threads = [threading.Thread(target=hammer, args=(w,), daemon=True) for w in range(3)]
for thread in threads:
    thread.start()
for child in range(6):
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        try:
            assert store.get("scope", "exact-parent") is not None
            store.put(make_entry(f"child-{child}"), direction(0, 1), FINGERPRINT)
            found = store.search("scope", direction(0, 1), FINGERPRINT, limit=99)
            assert len(found) == child + 2, found
            # The parent's threads replace these all the time: one look may find none of them.
            looks = (store.search("busy", direction(1), FINGERPRINT, limit=4) for _ in range(200))
            assert any(looks), "busy entries"
            store.close()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0, child
stop.set()
for thread in threads:
    thread.join()
print(len(store.search("scope", direction(1), FINGERPRINT, limit=99)), store.count("scope"))
store.close()
"""
    assert finish(start(script, path)) == "7 7\n"
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


def test_a_process_that_forgets_to_close_exits_cleanly(path):
    """Connections of all threads are closed at exit, without a warning."""
    script = """
store = SQLiteStore(sys.argv[1])
store.put(make_entry("a"), None, FINGERPRINT)
thread = threading.Thread(target=store.get, args=("scope", "exact-a"))
thread.start()
thread.join()
"""
    finish(start(script, path))
    assert not path.with_name("cache.db-wal").exists()


# --- threads -----------------------------------------------------------------------------------


def test_a_thread_s_connection_goes_with_it(open_store):
    """Threads that end do not leave connections behind."""
    store = open_store()
    for _ in range(5):
        thread = threading.Thread(target=store.count)
        thread.start()
        thread.join()
    assert len(store._database._handles) <= 1


def test_closing_waits_for_nobody_and_breaks_nobody(open_store):
    """Threads in mid-work when the store closes get a store error, and nothing else."""
    store, errors, started = open_store(), [], threading.Barrier(5)

    def work(worker):
        started.wait()
        try:
            for turn in range(100_000):
                store.put(make_entry(f"{worker}-{turn}"), direction(1), FINGERPRINT)
                store.search("scope", direction(1), FINGERPRINT, limit=2)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    time.sleep(0.1)
    store.close()
    for thread in threads:
        thread.join(20)
    assert [type(error) for error in errors] == [StoreError] * 4
    assert all("closed" in str(error) for error in errors)


# --- capacity and time -------------------------------------------------------------------------


def test_the_oldest_written_go_first(open_store):
    """Above the capacity the entries written longest ago are gone, from searches too."""
    store = open_store(max_entries=3)
    for name in "abcab":
        store.put(make_entry(name), direction(1), FINGERPRINT)
    store.put(make_entry("d"), direction(1), FINGERPRINT)
    assert store.count() == 3
    assert store.get("scope", "exact-c") is None
    found = store.search("scope", direction(1), FINGERPRINT, limit=9)
    assert sorted(names(found)) == ["a", "b", "d"]


def test_a_smaller_capacity_is_reached_at_the_next_put(open_store):
    """Opening a full file with a lower limit shrinks it."""
    store = open_store()
    for n in range(20):
        store.put(make_entry(f"{n}"), None, FINGERPRINT)
    small = open_store(max_entries=5)
    small.put(make_entry("new"), None, FINGERPRINT)
    assert small.count() == store.count() == 5


def test_expired_rows_leave_the_file(open_store, path):
    """They are deleted by later writes, not only hidden."""
    clock = Clock()
    store = open_store(clock=clock)
    for n in range(10):
        store.put(make_entry(f"{n}"), direction(1), FINGERPRINT, ttl=5)
    clock.advance(6)
    store.put(make_entry("new"), None, FINGERPRINT)
    check = sqlite3.connect(path)
    assert check.execute("SELECT count(*) FROM entries").fetchone() == (1,)
    check.close()


def test_a_copied_file_is_a_working_store(open_store, path, tmp_path):
    """After close everything is in the one file."""
    store = open_store()
    store.put(make_entry("a"), direction(1), FINGERPRINT)
    store.close()
    shutil.copy(path, tmp_path / "copy.db")
    shutil.copy(f"{path}.key", tmp_path / "copy.db.key")
    copy = SQLiteStore(tmp_path / "copy.db")
    assert names(copy.search("scope", direction(1), FINGERPRINT, limit=1)) == ["a"]
    copy.close()


def test_the_checksum_is_that_of_the_record(open_store, path):
    """Other tools can verify a row with plain CRC-32, and find the record at its end."""
    store = open_store(clock=Clock(7.0))
    store.put(make_entry("a"), None, FINGERPRINT)
    check = sqlite3.connect(path)
    checksum, record = check.execute("SELECT checksum, record FROM entries").fetchone()
    check.close()
    assert record.endswith(encode(make_entry("a", created=7.0)))
    assert checksum == crc32(record)
