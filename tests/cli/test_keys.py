"""``stepcache key``, ``rotate`` and ``export --trust-unsealed``."""

import json
import sqlite3
import stat
from pathlib import Path
from zlib import crc32

import pytest
from typer.testing import CliRunner, Result

from stepcache.cli._app import app
from stepcache.stores import SQLiteStore
from stepcache.stores._record import encode
from stepcache.testing.stores import direction, make_entry


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the machine play no part."""
    monkeypatch.delenv("STEPCACHE_KEY", raising=False)
    monkeypatch.delenv("STEPCACHE_KEY_FILE", raising=False)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def test_a_key_is_printed_or_written_for_its_owner_only(tmp_path: Path) -> None:
    """64 digits, another each time; a file that is there is not overwritten."""
    one, other = run("key").stdout.strip(), run("key").stdout.strip()
    assert len(bytes.fromhex(one)) == 32
    assert one != other
    file = tmp_path / "deep" / "key"
    assert json.loads(run("key", "--file", file, "--json").stdout) == {"file": str(file)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    again = run("key", "--file", file)
    assert again.exit_code == 1
    assert "there already" in again.stderr
    assert file.read_text() == before
    SQLiteStore(tmp_path / "c.db", integrity_key=file).close()


def test_a_store_s_key_is_rotated(tmp_path: Path) -> None:
    """New key first, every record sealed anew, old key forgotten; nothing is lost."""
    path = tmp_path / "c.db"
    store = SQLiteStore(path)
    store.put(make_entry("a", canonical_key="c"), direction(1), "f")
    old = store.key_ring.newest.secret
    store.close()
    said = run("rotate", path, "--new", "--retire")
    assert said.exit_code == 0, said.output
    assert "1 record sealed" in said.stderr
    assert json.loads(run("rotate", path, "--json").stdout) == {"records": 0}
    assert old.hex() not in (tmp_path / "c.db.key").read_text()
    again = SQLiteStore(path)
    assert again.get("scope", "c") is not None
    assert len(again.search("scope", direction(1), "f", limit=1)) == 1
    again.close()
    stolen = SQLiteStore(path, integrity_key=old)
    assert stolen.get("scope", "c") is None
    stolen.close()


def test_keys_of_the_environment_are_not_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says where the new key belongs; with it in place, rotation does the rest."""
    path = tmp_path / "c.db"
    monkeypatch.setenv("STEPCACHE_KEY", "aa" * 32)
    store = SQLiteStore(path)
    store.put(make_entry("a"), None, "f")
    store.close()
    refused = run("rotate", path, "--new")
    assert refused.exit_code == 1
    assert "before the old ones" in refused.stderr
    monkeypatch.setenv("STEPCACHE_KEY", "bb" * 32 + "," + "aa" * 32)
    assert "1 record sealed" in run("rotate", path).stderr
    monkeypatch.setenv("STEPCACHE_KEY", "bb" * 32)
    store = SQLiteStore(path)
    assert store.get("scope", "exact-a") is not None
    store.close()
    assert run("rotate", tmp_path / "none.db").exit_code == 2


def test_records_of_before_there_were_seals_are_carried_over(tmp_path: Path) -> None:
    """Only on request: an export that trusts them, and an import that seals them."""
    path, new, lines = tmp_path / "c.db", tmp_path / "new.db", tmp_path / "lines.jsonl"
    store = SQLiteStore(path)
    store.put(make_entry("a"), direction(1), "f")
    store.close()
    record = encode(make_entry("a"))
    raw = sqlite3.connect(path)
    with raw:
        raw.execute("UPDATE entries SET record = ?, checksum = ?", (record, crc32(record)))
    raw.close()
    assert "0 entries" in run("export", path, lines).stderr
    assert "1 entry written" in run("export", path, lines, "--trust-unsealed").stderr
    assert run("import", new, lines).exit_code == 0
    store = SQLiteStore(new)
    assert store.get("scope", "exact-a") is not None
    assert len(store.search("scope", direction(1), "f", limit=1)) == 1
    store.close()
