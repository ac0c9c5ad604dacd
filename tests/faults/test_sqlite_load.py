"""Many processes and threads on one SQLite file, and a file that cannot grow.

``STEPCACHE_LOAD_SECONDS`` sets how long the writers work, 2 by default; a full run takes 60.
``STEPCACHE_KILLS`` sets how often a disk fills up, and a writer is killed; a full run takes 20.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepcache import Message, Policy, Reply, Request, StepCacheEngine
from stepcache.stores import SQLiteStore
from stepcache.testing.load import check_load, faults_of
from stepcache.testing.stores import direction, make_entry

FINGERPRINT = "load/1"
SECONDS = float(os.environ.get("STEPCACHE_LOAD_SECONDS", "2"))
KILLS = int(os.environ.get("STEPCACHE_KILLS", "3"))
PROCESSES, THREADS = 4, 8

PREAMBLE = """
import json, random, sys, threading, time, traceback
from stepcache import StoreError
from stepcache.stores import SQLiteStore
from stepcache.testing.stores import direction, make_entry
FINGERPRINT = "load/1"
"""

WORKER = """
path, process, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
store = SQLiteStore(path)
end = time.monotonic() + seconds
kept, errors, foreign, lost, reads = {}, [], 0, 0, 0
lock = threading.Lock()

def work(thread):
    global foreign, lost, reads
    dice = random.Random(f"{process} {thread}")
    mine, scopes, turn = {}, [f"scope-{n}" for n in range(4)], 0
    try:
        while time.monotonic() < end:
            turn += 1
            scope = dice.choice(scopes)
            if dice.random() < 0.4:
                name = f"{process}-{thread}-{turn}"
                vector = direction(*(dice.uniform(-1, 1) for _ in range(8)))
                store.put(make_entry(name, scope, message=scope + "x" * 500), vector, FINGERPRINT)
                mine[name] = scope
            elif dice.random() < 0.5 and mine:
                name = dice.choice(list(mine))
                found = store.get(mine[name], f"exact-{name}")
                other = store.get(scopes[scopes.index(mine[name]) - 1], f"exact-{name}")
                with lock:
                    reads += 1
                    lost += found is None
                    foreign += other is not None
            else:
                vector = direction(*(dice.uniform(-1, 1) for _ in range(8)))
                found = store.search(scope, vector, FINGERPRINT, limit=4)
                with lock:
                    reads += 1
                    foreign += sum(
                        m.entry.scope != scope or not m.entry.message.startswith(scope)
                        for m in found
                    )
    except Exception:
        with lock:
            errors.append(traceback.format_exc())
    with lock:
        kept.update(mine)

threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
store.close()
print(json.dumps({"kept": kept, "errors": errors, "foreign": foreign, "lost": lost, "reads": reads}))
"""

FULL = """
import resource, signal
path, limit = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
store = SQLiteStore(path)
kept, refused = [], 0
for turn in range(100_000):
    try:
        store.put(make_entry(f"{turn}", message="x" * 3000), direction(1, turn), FINGERPRINT)
    except StoreError:
        refused += 1
        if refused == 20:
            break
    else:
        kept.append(turn)
served = sum(store.get("scope", f"exact-{turn}") is not None for turn in kept)
found = len(store.search("scope", direction(1), FINGERPRINT, limit=4))
print(json.dumps({"kept": kept, "refused": refused, "served": served, "found": found}))
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", PREAMBLE + script, *map(str, arguments)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str], timeout: float) -> dict:
    output, errors = process.communicate(timeout=timeout)
    assert process.returncode == 0, errors
    return json.loads(output)


def sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    answer = connection.execute("PRAGMA integrity_check").fetchone()
    kept, true = connection.execute(
        "SELECT totals.entries, (SELECT count(*) FROM entries) FROM totals"
    ).fetchone()
    connection.close()
    return answer == ("ok",) and kept == true


def test_four_processes_of_eight_threads_share_a_file(tmp_path):
    """No error, no acknowledged entry lost, no entry of another scope, the file sound."""
    path = tmp_path / "cache.db"
    workers = [start(WORKER, path, number, SECONDS) for number in range(PROCESSES)]
    told = [result(worker, SECONDS + 120) for worker in workers]
    assert [error for each in told for error in each["errors"]] == []
    assert sum(each["foreign"] for each in told) == 0
    assert sum(each["lost"] for each in told) == 0
    assert min(each["reads"] for each in told) > 0
    kept = {name: scope for each in told for name, scope in each["kept"].items()}
    assert len(kept) >= PROCESSES * THREADS
    store = SQLiteStore(path)
    assert store.count() == len(kept)
    for name, scope in kept.items():
        entry = store.get(scope, f"exact-{name}")
        assert entry is not None
        assert entry.scope == scope
    store.close()
    assert sound(path)


def test_processes_ask_the_model_once_a_key(tmp_path):
    """Engines of four processes on one file: no fault, and one model call for each thing asked."""
    figures = check_load(f"sqlite:///{tmp_path / 'cache.db'}", seconds=SECONDS)
    assert faults_of(figures) == []
    assert figures["keys"] > 10
    assert figures["requests"] > figures["model_calls"]
    assert min(figures[name] for name in ("puts", "gets", "searches")) > 0
    assert sound(tmp_path / "cache.db")


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
@pytest.mark.parametrize("limit", [300_000, 700_000, 1_500_000, 3_000_000])
def test_a_full_disk_loses_nothing_acknowledged(tmp_path, limit):
    """Puts are refused, reads go on, and afterwards everything acknowledged is there."""
    path = tmp_path / "cache.db"
    SQLiteStore(path).close()
    told = result(start(FULL, path, limit), 120)
    assert told["refused"] == 20
    assert told["kept"]
    assert told["served"] == len(told["kept"])
    assert told["found"] == min(4, len(told["kept"]))
    store = SQLiteStore(path)
    for turn in told["kept"]:
        entry = store.get("scope", f"exact-{turn}")
        assert entry is not None
        assert entry.message == "x" * 3000
    assert store.unreadable == 0
    store.put(make_entry("after"), direction(1), FINGERPRINT)
    assert store.get("scope", "exact-after") is not None
    store.close()
    assert sound(path)


WRITER = """
from stepcache import Control, Message, Reply, Request, StepCacheEngine
path, generation = sys.argv[1], sys.argv[2]
class Model:
    def generate(self, call):
        return Reply(text=f"About {call.messages[-1].text} " + "x" * 500)
engine = StepCacheEngine(store=path, backend=Model())
lock, turns = threading.Lock(), iter(range(100_000))
def work():
    while True:
        with lock:
            turn = next(turns)
        asked = f"harbour {generation}-{turn}"
        outcome = engine.resolve(Request(messages=(Message(role="user", text=asked),)))
        if outcome.entry_id is not None:
            sys.stdout.write(asked + "\\n")
            sys.stdout.flush()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_a_killed_writer_loses_nothing_acknowledged(tmp_path):
    """Killed amid four threads' requests, again and again: whatever they were told was kept is
    served afterwards as it was, what was in the making is made by the next process without waiting
    for the dead, and the next start is clean."""
    path, dice, acknowledged = tmp_path / "cache.db", random.Random(7), []
    for generation in range(KILLS):
        process = start(WRITER, path, generation)
        acknowledged.append(process.stdout.readline())
        time.sleep(dice.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        # The last line may have been cut.
        lines = [acknowledged.pop(), *process.stdout.readlines()]
        acknowledged += [line.strip() for line in lines if line.endswith("\n")]
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        engine = StepCacheEngine(store=str(path), policy=Policy(max_wait=3600), backend=Model())
        for asked in acknowledged:
            outcome = engine.lookup(Request(messages=(Message(role="user", text=asked),)))
            assert outcome.route == "exact", asked
            assert outcome.text == f"About {asked} " + "x" * 500
        # One more of each thread may have been kept whose word did not get out.
        assert engine.count() <= len(acknowledged) + 4 * (generation + 1)
        assert engine.store.unreadable == 0
        raw = sqlite3.connect(path)
        held = [key for (key,) in raw.execute("SELECT key FROM leases")]
        raw.close()
        for key in held:
            token = engine.store.acquire(key.decode(), 1)
            assert token is not None
            assert engine.store.release(key.decode(), token)
        engine.close()
        assert sound(path)
    assert len(acknowledged) >= KILLS


@contextmanager
def small_disk(folder: Path, size: str):
    """A file system of its own that is soon full; skips where there can be none."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.parametrize("repetition", range(KILLS))
def test_a_file_system_without_room(tmp_path, repetition):
    """Puts are refused when there is no room, reads and the engine's answers go on, nothing that
    was acknowledged is lost, and with room again everything works."""
    disk, dice = tmp_path / "disk", random.Random(repetition)
    with small_disk(disk, f"{dice.randrange(600, 4000)}k"):
        path, model, kept = disk / "cache.db", Model(), []
        engine = StepCacheEngine(store=str(path), backend=model)
        refused = 0
        while refused < 10:
            asked = f"harbour {len(kept) + refused}"
            outcome = engine.resolve(request(asked))
            assert outcome.text == model.answer(asked)
            if outcome.entry_id is None:
                refused += 1
                assert any(event.name == "store failed" for event in outcome.trace.events)
            else:
                kept.append(asked)
        assert kept
        for asked in kept:
            assert engine.lookup(request(asked)).text == model.answer(asked)
        engine.close()
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        engine = StepCacheEngine(store=str(path), backend=model)
        for asked in kept:
            assert engine.lookup(request(asked)).text == model.answer(asked)
        assert engine.count() == len(kept)
        assert engine.resolve(request("after")).entry_id is not None
        assert engine.store.unreadable == 0
        engine.close()
        assert sound(path)


class Model:
    """Answers at some length."""

    @staticmethod
    def answer(asked):
        return f"About {asked} " + "x" * random.Random(asked).randrange(20_000)

    def generate(self, call):
        return Reply(text=self.answer(call.messages[-1].text))


def request(text):
    return Request(messages=(Message(role="user", text=text),))
