"""A server that is down, killed, hanging, slow, full or not ours costs a call little and loses
nothing that was acknowledged; nothing has to be restarted."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from stepcache import ConfigurationError, Message, Reply, Request, StepCacheEngine, StoreError
from stepcache.stores import AsyncPostgresStore, PostgresStore
from stepcache.testing.stores import direction, make_entry

KILLS = int(os.environ.get("STEPCACHE_KILLS", "3"))


class Model:
    """Answers at once, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def generate(self, call: Any) -> Reply:
        self.calls += 1
        return Reply(text="Oslo is the capital of Norway.")


ASKED = Request(messages=(Message(role="user", text="What is the capital of Norway?"),))


def _timed(call: Callable[[], object]) -> float:
    begun = time.monotonic()
    with pytest.raises(StoreError):
        call()
    return time.monotonic() - begun


def _until_it_works(call: Callable[[], object], seconds: float) -> float:
    begun = time.monotonic()
    while True:
        try:
            call()
        except StoreError:
            if time.monotonic() - begun > seconds:
                raise
            time.sleep(0.05)
        else:
            return time.monotonic() - begun


def test_a_killed_server_is_a_miss_and_recovers(own_server: Any) -> None:
    """Killed in mid-life: the engine asks the model and says so in the trace; started again, the
    same engine serves what had been kept."""
    model = Model()
    engine = StepCacheEngine(store=own_server.url, backend=model)
    engine.resolve(ASKED)
    assert engine.resolve(ASKED).route != "miss"
    own_server.kill()
    begun = time.monotonic()
    outcome = engine.resolve(ASKED)
    assert time.monotonic() - begun < 1
    assert (outcome.route, model.calls) == ("miss", 2)
    assert "PostgreSQL" in str(outcome.trace)
    own_server.start()
    assert _until_it_works(lambda: engine.store.count(), 15) < 12
    assert engine.resolve(ASKED).route != "miss"
    assert model.calls == 2
    engine.close()


def test_a_restart_between_calls_is_not_noticed(own_server: Any) -> None:
    """Connections that broke while idle are replaced, and the call is made again."""
    store = PostgresStore(own_server.url)
    store.put(make_entry("a"), direction(1), "f")
    for _ in range(2):
        own_server.stop()
        own_server.start()
        assert store.get("scope", "exact-a") is not None
        own_server.kill()
        own_server.start()
        assert store.search("scope", direction(1), "f", limit=1)
        own_server.stop()
        own_server.start()
        assert store.remove("id-scope-a") is True
        own_server.stop()
        own_server.start()
        store.put(make_entry("a"), direction(1), "f")
    store.close()


WRITER = """
import sys
from stepcache import StoreError
from stepcache.stores import PostgresStore
from stepcache.testing.stores import direction, make_entry

store = PostgresStore(sys.argv[1])
turn = 0
while True:
    name = f"{sys.argv[2]}-{turn}"
    try:
        store.put(make_entry(name), direction(1, turn), "f")
    except StoreError:
        continue
    print(name, flush=True)
    turn += 1
"""


@contextmanager
def _writers(url: str) -> Iterator[list[str]]:
    """Two processes that put for ever, and what they say they have put; killed in the end."""
    acknowledged: list[str] = []
    writers, readers = [], []
    try:
        for name in ("left", "right"):
            command = [sys.executable, "-c", WRITER, url, name]
            writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            writers.append(writer)
            reader = threading.Thread(
                target=lambda pipe: acknowledged.extend(pipe), args=[writer.stdout]
            )
            reader.start()
            readers.append(reader)
        yield acknowledged
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
        for reader in readers:
            reader.join()
        for writer in writers:
            writer.stdout.close()


@pytest.mark.parametrize("repetition", range(KILLS))
def test_nothing_acknowledged_is_lost(own_server: Any, repetition: int) -> None:
    """Two processes write; the server is killed under them, then one of them: every entry whose
    put returned is there afterwards, whole."""
    PostgresStore(own_server.url).close()
    with _writers(own_server.url) as acknowledged:
        _wait_for(lambda: len(acknowledged) > 40)
        own_server.kill()
        before = len(acknowledged)
        own_server.start()
        _wait_for(lambda: len(acknowledged) > before + 40)
    store = PostgresStore(own_server.url)
    for line in acknowledged:
        name = line.strip()
        entry = store.get("scope", f"exact-{name}")
        assert entry is not None, name
        assert entry.prompt == f"What is {name}?"
    # One per writer may have been kept without its word getting through.
    assert len(acknowledged) <= store.count() <= len(acknowledged) + 4
    assert store.unreadable == 0
    store.close()


def _wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_hanging_server_is_left_alone(own_server: Any) -> None:
    """A stopped server keeps no time limit of its own; a call is ended on this side, the next ones
    fail at once, and when it goes on everything does."""
    store = PostgresStore(own_server.url, timeout=0.5)
    store.put(make_entry("a"), direction(1), "f")
    own_server.signal(signal.SIGSTOP)
    assert 0.3 < _timed(lambda: store.get("scope", "exact-a")) < 2.5
    assert _timed(lambda: store.get("scope", "exact-a")) < 0.1
    assert _timed(lambda: store.put(make_entry("b"), None, "f")) < 0.1
    own_server.signal(signal.SIGCONT)
    assert _until_it_works(lambda: store.get("scope", "exact-a"), 15) < 12
    assert store.get("scope", "exact-a") is not None
    store.close()


def test_a_slow_server_is_given_up(own_server: Any) -> None:
    """A statement that waits for a lock ends at its time limit; after two, calls fail at once for
    a while."""
    store = PostgresStore(own_server.url, timeout=0.3)
    store.put(make_entry("a"), direction(1), "f")
    from psycopg import connect

    with connect(own_server.url) as other:
        other.execute("LOCK TABLE stepcache.entries IN ACCESS EXCLUSIVE MODE")
        assert 0.2 < _timed(lambda: store.get("scope", "exact-a")) < 1.5
        assert 0.2 < _timed(lambda: store.get("scope", "exact-a")) < 1.5
        other.rollback()
    assert _until_it_works(lambda: store.get("scope", "exact-a"), 15) < 12
    store.close()


def test_all_connections_busy_is_an_error_in_time(own_server: Any) -> None:
    """Who gets no connection within the time limit is told so."""
    store = PostgresStore(own_server.url, timeout=0.3, max_connections=1)
    store.put(make_entry("a"), direction(1), "f")
    with store._pool.lend(5):
        assert 0.2 < _timed(lambda: store.get("scope", "exact-a")) < 1
    assert store.get("scope", "exact-a") is not None
    store.close()


def test_a_server_that_takes_no_more_connections(own_server: Any) -> None:
    """Refused at the door: an error at once, and well again when there is room."""
    own_server.execute("ALTER SYSTEM SET max_connections = 6")
    own_server.execute("ALTER SYSTEM SET superuser_reserved_connections = 0")
    own_server.stop()
    own_server.start()
    from psycopg import OperationalError, connect

    store = PostgresStore(own_server.url)
    store._pool.forget_idle()
    others: list[Any] = []
    with suppress(OperationalError):
        while len(others) < 20:
            others.append(connect(own_server.url))
    assert len(others) < 7
    assert _timed(lambda: store.count()) < 1
    for other in others:
        other.close()
    assert _until_it_works(lambda: store.count(), 10) < 8
    store.close()


@pytest.mark.parametrize("repetition", range(KILLS))
def test_a_full_disk(own_server: Any, repetition: int) -> None:
    """Puts fail with the server's word for it and keep nothing half; gets go on; with room again,
    so do puts."""
    # Not below pytest's own folder, which every session of it shuts to the server's user again.
    disk = Path(tempfile.mkdtemp(prefix="stepcache-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={6 + repetition % 5}m,mode=777", "tmpfs", str(disk)],
        capture_output=True,
    )
    if mounted.returncode:
        disk.rmdir()
        pytest.skip("a small file system cannot be mounted here")
    try:
        space = disk / "space"
        subprocess.run(["install", "-d", "-m", "700", str(space)], check=True)
        owner = own_server.folder.stat()
        os.chown(space, owner.st_uid, owner.st_gid)
        own_server.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        store = PostgresStore(own_server.url)
        own_server.execute("ALTER TABLE stepcache.entries SET TABLESPACE small")
        text = "".join(chr(0x4E00 + (turn * 7919) % 20000) for turn in range(60_000))
        kept = []

        def fill() -> None:
            for turn in range(400):
                store.put(make_entry(str(turn), message=text[turn:]), direction(1, turn), "f")
                kept.append(str(turn))

        with pytest.raises(StoreError, match="53100"):
            fill()
        assert kept
        for name in kept:
            assert store.get("scope", f"exact-{name}") is not None
        assert store.count() == len(kept)
        more = ["mount", "-o", "remount,size=32m", str(disk)]
        subprocess.run(more, check=True)
        store.put(make_entry("after"), direction(1), "f")
        assert store.get("scope", "exact-after") is not None
        assert store.unreadable == 0
        store.close()
    finally:
        own_server.stop()
        subprocess.run(["umount", str(disk)], check=False)
        disk.rmdir()


def test_a_server_that_will_not_do_is_refused(own_server: Any) -> None:
    """No server, no such database, a newer schema, a bad name: said at construction, with the
    way out; or, where wanted, only when it is used."""
    with pytest.raises(ConfigurationError, match="CREATE EXTENSION"):
        PostgresStore(own_server.url.replace("/postgres?", "/nowhere?"))
    own_server.execute("CREATE ROLE guest LOGIN")
    guest = own_server.url.replace("//postgres:", "//guest:")
    with pytest.raises(ConfigurationError, match="permission denied"):
        PostgresStore(guest, required=False)
    with pytest.raises(ConfigurationError, match="small letters"):
        PostgresStore(own_server.url, schema='x"; DROP TABLE y; --')
    for wrong in ({"timeout": 0}, {"max_connections": True}, {"max_entries": 0}):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            PostgresStore(own_server.url, **wrong)
    PostgresStore(own_server.url).close()
    own_server.execute("INSERT INTO stepcache.migrations (version) VALUES (99)")
    with pytest.raises(ConfigurationError, match=r"version 99.*upgrade"):
        PostgresStore(own_server.url)
    own_server.execute("DELETE FROM stepcache.migrations WHERE version = 99")
    own_server.stop()
    with pytest.raises(ConfigurationError, match="check that it runs"):
        PostgresStore(own_server.url)
    late = PostgresStore(own_server.url, required=False)
    assert _timed(lambda: late.count()) < 1
    own_server.start()
    assert _until_it_works(lambda: late.count(), 10) < 8
    late.close()


async def test_the_asynchronous_store_recovers_too(own_server: Any) -> None:
    """Down, hanging and back again, awaited."""
    import asyncio

    store = AsyncPostgresStore(own_server.url, timeout=0.5)
    await store.put(make_entry("a"), direction(1), "f")
    own_server.stop()
    own_server.start()
    assert await store.get("scope", "exact-a") is not None
    own_server.signal(signal.SIGSTOP)
    begun = time.monotonic()
    results = await asyncio.gather(
        *(store.get("scope", "exact-a") for _ in range(4)), return_exceptions=True
    )
    assert all(isinstance(result, StoreError) for result in results)
    assert time.monotonic() - begun < 4
    own_server.signal(signal.SIGCONT)
    own_server.kill()
    with pytest.raises(StoreError):
        await store.get("scope", "exact-a")
    own_server.start()
    deadline = time.monotonic() + 15
    while True:
        try:
            assert await store.get("scope", "exact-a") is not None
            break
        except StoreError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
    await store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:1/db",
        "postgresql://me:hunter2@127.0.0.1:1/db?password=hunter2&sslpassword=hunter2",
        "postgresql://me:hunter2@[::1/db",
        "postgresql://me:hunter2@h/db?nonsense=hunter2",
        "postgresql://me:hunter2%@h/db",
        "mysql://me:hunter2@h/db",
    ],
)
def test_passwords_show_nowhere(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither messages, tracebacks, logs nor what an object says of itself hold the password."""
    import traceback

    caplog.set_level(logging.DEBUG)
    with pytest.raises(ConfigurationError) as caught:
        PostgresStore(url, timeout=0.2)
    told = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in told.replace(url, "")
    assert "hunter2" not in caplog.text
    if "127.0.0.1:1/" in url:
        store = PostgresStore(url, required=False, timeout=0.2)
        with pytest.raises(StoreError) as failed:
            store.count()
        told = "".join(traceback.format_exception(failed.value)) + repr(store) + repr(vars(store))
        assert "hunter2" not in told
        store.close()
