"""Sealed records: only what a holder of the key wrote is read, and keys are kept from others."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache._errors import ConfigurationError
from stepcache.stores import RecordGuard, SQLiteStore
from stepcache.stores._keys import Key, KeyRing, key_ring, new_key
from stepcache.stores._record import encode
from stepcache.stores._seal import Refused, binding, hide, open_record, seal, unhide
from stepcache.testing.stores import Clock, direction, make_entry

FINGERPRINT = "test/1"
KEY, OTHER = b"k" * 32, b"o" * 32
RING = KeyRing([KEY])
VECTOR = direction(1, 2).tobytes()


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """Keys of the machine play no part."""
    monkeypatch.delenv("STEPCACHE_KEY", raising=False)
    monkeypatch.delenv("STEPCACHE_KEY_FILE", raising=False)


def sealed(entry=None, *, encrypt=False, key=KEY):
    record = encode(entry or make_entry("a"))
    return seal(record, binding(FINGERPRINT, VECTOR), Key(key), encrypt=encrypt)


def reason(blob, ring=RING):
    with pytest.raises(Refused) as caught:
        open_record(blob, ring)
    return caught.value.reason


# --- one record --------------------------------------------------------------------------------


@pytest.mark.parametrize("encrypt", [False, True])
def test_what_was_sealed_is_read(encrypt):
    """An entry comes back equal, and encrypted nothing of it can be seen."""
    blob = sealed(encrypt=encrypt)
    assert open_record(blob, RING).entry == make_entry("a")
    assert open_record(blob, KeyRing([OTHER, KEY])).entry == make_entry("a")
    assert (b"It is a" in blob) is not encrypt


@pytest.mark.parametrize("encrypt", [False, True])
def test_every_byte_is_under_the_seal(encrypt):
    """With any one byte changed nothing is read, whichever it is."""
    blob = sealed(encrypt=encrypt)
    for at in range(len(blob)):
        for change in (1, 0x80):
            forged = bytearray(blob)
            forged[at] ^= change
            reason(bytes(forged))


@settings(max_examples=300, deadline=None)
@given(st.data(), st.booleans())
def test_cut_grown_and_spliced_records_are_refused(data, encrypt):
    """Two genuine records give no third, however they are cut and joined."""
    one, two = sealed(encrypt=encrypt), sealed(make_entry("b"), encrypt=encrypt)
    cut, other = data.draw(st.integers(0, len(one))), data.draw(st.integers(0, len(two)))
    made = one[:cut] + two[other:]
    if made not in (one, two):
        reason(made)
    reason(one + data.draw(st.binary(min_size=1, max_size=9)))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=9) | st.none() | st.integers())
def test_arbitrary_storage_is_refused(blob):
    """Whatever a column holds, reading it ends in a refusal and nothing else."""
    reason(blob)


def test_the_reason_tells_whose_fault_it_may_be():
    """Other people's good records are told apart from bad ones."""
    blob = sealed()
    assert reason(encode(make_entry("a"))) == "unsealed"
    assert reason(sealed(key=OTHER)) == "unknown key"
    assert reason(b"\x83" + blob[1:]) == "newer"
    assert reason(blob[:-1] + b"?") == "forged"
    assert reason(b"rubbish" * 20) == "malformed"
    assert reason(seal(b"{}", bytes(16), Key(KEY))) == "malformed"


def test_a_record_sealed_by_another_key_with_our_key_s_id_is_forged():
    """The id only says which key to try."""
    blob = sealed(key=OTHER)
    assert reason(blob[:2] + Key(KEY).id + blob[10:]) == "forged"


def test_a_plain_record_cannot_pass_for_an_encrypted_one():
    """Nor the other way round: the mode is under the seal."""
    plain, hidden = sealed(), sealed(encrypt=True)
    assert reason(plain[:1] + b"\x01" + plain[2:]) == "forged"
    assert reason(hidden[:1] + b"\x00" + hidden[2:]) == "forged"


def test_a_vector_is_bound_to_its_record():
    """Another vector, another embedder's name, or none in its place does not hold."""
    guard = RecordGuard("test", KEY)
    record, blob = guard.seal(make_entry("a"), direction(1, 2), FINGERPRINT)
    opened = guard.open(record)
    assert guard.holds(opened, FINGERPRINT, blob)
    assert not guard.holds(opened, FINGERPRINT, direction(1, 3).tobytes())
    assert not guard.holds(opened, "test/2", blob)
    assert not guard.holds(opened, FINGERPRINT, None)
    assert not guard.holds(opened, FINGERPRINT, b"")
    assert not guard.holds(guard.open(guard.seal(make_entry("b")).record), FINGERPRINT, blob)


def test_hidden_vectors_come_back_and_damaged_ones_do_not():
    """Bytes that are not a vector hidden by a known key are none."""
    blob = hide(VECTOR, Key(KEY))
    assert unhide(blob, RING) == VECTOR
    assert VECTOR[:8] not in blob
    assert unhide(blob, KeyRing([OTHER])) is None
    for at in range(len(blob)):
        forged = bytearray(blob)
        forged[at] ^= 1
        assert unhide(bytes(forged), RING) is None


# --- keys --------------------------------------------------------------------------------------


def test_a_file_gets_a_key_that_only_its_owner_reads(tmp_path):
    """The key is made beside the store, used again by the next one, and is in no text."""
    path = tmp_path / "cache.db"
    first = SQLiteStore(path)
    first.put(make_entry("a"), None, FINGERPRINT)
    first.close()
    key = tmp_path / "cache.db.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    secret = key.read_text().split()[-1]
    assert len(bytes.fromhex(secret)) == 32
    again = SQLiteStore(path)
    assert again.get("scope", "exact-a") is not None
    assert secret not in repr(again._guard.ring) + repr(again._guard.ring.newest)
    assert bytes.fromhex(secret) not in path.read_bytes()
    again.close()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_key_file_that_others_can_read_is_refused(tmp_path, mode):
    """The message names the file, its mode and the command that mends it."""
    SQLiteStore(tmp_path / "cache.db").close()
    key = tmp_path / "cache.db.key"
    key.chmod(mode)
    with pytest.raises(ConfigurationError, match=rf"(?s)cache.db.key.*{mode:04o}.*chmod 600"):
        SQLiteStore(tmp_path / "cache.db")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_a_key_file_of_another_user_is_refused(tmp_path):
    """Whoever may write the folder cannot bring a key of their own."""
    SQLiteStore(tmp_path / "cache.db").close()
    os.chown(tmp_path / "cache.db.key", 12345, -1)
    with pytest.raises(ConfigurationError, match=r"another user.*12345"):
        SQLiteStore(tmp_path / "cache.db")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (b"short", "at least 16 bytes"),
        (7, "int is no key"),
        ((), "tuple is no key"),
        ((KEY, b"short"), "at least 16 bytes"),
        ("{tmp}/missing", "cannot be read.*stepcache key"),
        ("{tmp}/empty", "holds no key"),
        ("{tmp}/words", "no key: 64 hexadecimal"),
    ],
)
def test_a_key_that_is_none_is_refused(tmp_path, given, words):
    """The error says what is wrong and what to do, and never shows what was given as a key."""
    for name, text in (("empty", "# nothing\n"), ("words", "correct horse\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    given = given.replace("{tmp}", str(tmp_path)) if isinstance(given, str) else given
    with pytest.raises(ConfigurationError, match=f"(?s){words}") as caught:
        RecordGuard("SQLiteStore", given)
    assert "short" not in str(caught.value)
    assert "horse" not in str(caught.value)


def test_the_environment_gives_keys(monkeypatch, tmp_path):
    """Digits, the newest first, or the name of a file; an argument goes before both."""
    monkeypatch.setenv("STEPCACHE_KEY", f"{OTHER.hex()}, {KEY.hex()}")
    assert key_ring("test", None).newest.id == Key(OTHER).id
    assert open_record(sealed(), key_ring("test", None)).entry == make_entry("a")
    assert key_ring("test", KEY).newest.id == Key(KEY).id
    monkeypatch.setenv("STEPCACHE_KEY", "zz")
    with pytest.raises(ConfigurationError, match="STEPCACHE_KEY holds something that is no key"):
        key_ring("test", None)
    monkeypatch.delenv("STEPCACHE_KEY")
    file = tmp_path / "key"
    file.write_text(KEY.hex())
    file.chmod(0o600)
    monkeypatch.setenv("STEPCACHE_KEY_FILE", str(file))
    assert key_ring("test", None).newest.id == Key(KEY).id


def test_a_shared_store_needs_a_key_of_its_user_s(monkeypatch, tmp_path):
    """Without one the message says how to give every host the same; the user's folder counts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"(?s)every host.*STEPCACHE_KEY.*stepcache/key"):
        key_ring("PostgresStore", None)
    (tmp_path / "stepcache").mkdir()
    (tmp_path / "stepcache" / "key").write_text(KEY.hex())
    (tmp_path / "stepcache" / "key").chmod(0o600)
    assert key_ring("PostgresStore", None).newest.id == Key(KEY).id


def test_a_key_from_outside_is_not_joined_by_one_beside_the_store(tmp_path):
    """Who may put a file beside the store cannot make their records believed."""
    path = tmp_path / "cache.db"
    planted = SQLiteStore(path)
    planted.put(make_entry("a"), None, FINGERPRINT)
    planted.close()
    store = SQLiteStore(path, integrity_key=KEY)
    assert store.get("scope", "exact-a") is None
    assert store.refusals == {"unknown key": 1}
    store.close()


def test_processes_that_come_at_once_agree_on_one_key(tmp_path):
    """Of four that make the key of a new store at the same moment, all read what each wrote."""
    script = (
        "import sys; from stepcache.stores import SQLiteStore;"
        "from stepcache.testing.stores import make_entry;"
        "s = SQLiteStore(sys.argv[1]); s.put(make_entry(sys.argv[2]), None, 'f'); s.close()"
    )
    path = tmp_path / "cache.db"
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(path), str(number)])
        for number in range(4)
    ]
    assert [process.wait(240) for process in started] == [0] * 4
    store = SQLiteStore(path)
    assert all(store.get("scope", f"exact-{number}") for number in range(4))
    store.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache.db", "cache.db.key"]


def test_threads_that_make_a_key_at_once_agree(tmp_path):
    """The same within one process."""
    rings = []
    start = threading.Barrier(8)

    def make():
        start.wait()
        rings.append(key_ring("test", None, beside=str(tmp_path / "c.db")).newest.id)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rings) == 8
    assert len(set(rings)) == 1


# --- the store ---------------------------------------------------------------------------------


def change(path, statement, *values):
    connection = sqlite3.connect(path)
    with connection:
        changed = connection.execute(statement, values).rowcount
    connection.close()
    return changed


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.db"


@pytest.fixture
def opened(path):
    stores = []

    def make(**options):
        stores.append(SQLiteStore(path, **options))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


def test_records_of_an_unknown_key_are_left_alone(opened, path):
    """A wrong key makes misses; it does not destroy what the right key sealed."""
    right = opened()
    right.put(make_entry("a", canonical_key="c"), direction(1), FINGERPRINT)
    wrong = opened(integrity_key=OTHER)
    assert wrong.get("scope", "exact-a") is None
    assert wrong.get("scope", "c") is None
    assert wrong.search("scope", direction(1), FINGERPRINT, limit=3) == ()
    assert wrong.find("id-scope-a") is None
    assert list(wrong.entries()) == []
    assert set(wrong.refusals) == {"unknown key"}
    assert right.get("scope", "exact-a") is not None


def test_records_of_before_there_were_seals_are_counted_misses(opened, path, tmp_path):
    """They are neither served nor removed; an export that trusts them carries them over."""
    store = opened(clock=Clock(5.0))
    store.put(make_entry("a"), direction(1), FINGERPRINT)
    old = encode(make_entry("a", created=5.0))
    from zlib import crc32

    assert change(path, "UPDATE entries SET record = ?, checksum = ?", old, crc32(old)) == 1
    assert store.get("scope", "exact-a") is None
    assert store.refusals == {"unsealed": 1}
    assert store.count() == 1
    assert list(store.rows()) == []
    ((entry, vector, fingerprint),) = store.rows(trust_unsealed=True)
    store.put(entry, vector, fingerprint)
    assert store.get("scope", "exact-a") == make_entry("a", created=5.0)


def test_another_entry_s_vector_finds_nothing(opened, path):
    """Vectors swapped between two genuine rows: neither is found by the other's."""
    store = opened()
    store.put(make_entry("a"), direction(1), FINGERPRINT)
    store.put(make_entry("b"), direction(0, 1), FINGERPRINT)
    swapped = direction(0, 1).tobytes()
    key = b"exact-a"
    assert change(path, "UPDATE entries SET vector = ? WHERE exact_key = ?", swapped, key) == 1
    found = opened().search("scope", direction(0, 1), FINGERPRINT, limit=4)
    assert [match.entry.exact_key for match in found] == ["exact-b"]


def test_an_embedder_s_name_cannot_be_lent(opened, path):
    """A row relabelled for another embedder is not found by it."""
    store = opened()
    store.put(make_entry("a"), direction(1), "mine/1")
    change(path, "UPDATE entries SET fingerprint = CAST('yours/2' AS BLOB)")
    assert store.search("scope", direction(1), "yours/2", limit=4) == ()
    assert store.refusals == {"misplaced": 1}


def test_an_id_that_leads_to_another_entry_is_refused(opened, path):
    """Finding by id believes the record, not the row."""
    store = opened()
    store.put(make_entry("a"), None, FINGERPRINT)
    change(path, "UPDATE entries SET entry_id = CAST('id-scope-b' AS BLOB)")
    assert store.find("id-scope-b") is None
    assert store.count() == 0


def test_a_reader_does_not_wait_for_a_writer_to_remove_a_row(opened, path):
    """Removing what is forged is not worth a wait; it is done when nobody is in the way."""
    store = opened()
    store.put(make_entry("a"), None, FINGERPRINT)
    change(path, "UPDATE entries SET record = x'00'")
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    assert store.get("scope", "exact-a") is None  # would fail after 30 seconds if it waited
    blocker.execute("ROLLBACK")
    blocker.close()
    assert store.count() == 1
    assert store.get("scope", "exact-a") is None
    assert store.count() == 0


def test_prolonged_records_are_sealed_again(opened, path):
    """A use that gives an entry a new life leaves it genuine, for keys and for vectors."""
    clock = Clock()
    store = opened(clock=clock, sliding=True)
    store.put(make_entry("a"), direction(1), FINGERPRINT, ttl=100)
    clock.advance(60)
    assert store.get("scope", "exact-a") is not None
    clock.advance(60)
    other = opened(clock=clock)
    assert other.get("scope", "exact-a") is not None
    assert len(other.search("scope", direction(1), FINGERPRINT, limit=1)) == 1
    assert other.unreadable == 0


# --- encryption and rotation -------------------------------------------------------------------


def test_an_encrypted_store_shows_nothing(opened, path):
    """Prompt, answer, tags, model and vector are in none of its files."""
    store = opened(encrypt=True)
    entry = make_entry("secret-name", model="secret-model", tags=("secret-tag",))
    store.put(entry, direction(1, 2, 3), FINGERPRINT)
    found = store.search("scope", direction(1, 2, 3), FINGERPRINT, limit=1)
    assert found[0].entry.prompt == entry.prompt
    assert found[0].similarity == pytest.approx(1.0)
    raw = b"".join(p.read_bytes() for p in path.parent.iterdir() if p.suffix != ".key")
    for word in (b"What is", b"It is", b"secret-model", b"secret-tag"):
        assert word not in raw
    assert direction(1, 2, 3).tobytes() not in raw
    again = opened(encrypt=True)
    assert again.get("scope", "exact-secret-name") is not None
    assert len(again.search("scope", direction(1, 2, 3), FINGERPRINT, limit=1)) == 1


def test_stores_read_each_other_s_form(opened):
    """Encryption is how one writes; with the key, plain and encrypted records are both read."""
    plain, hidden = opened(), opened(encrypt=True)
    plain.put(make_entry("a"), direction(1), FINGERPRINT)
    hidden.put(make_entry("b"), direction(1, 1), FINGERPRINT)
    for store in (plain, hidden):
        found = store.search("scope", direction(1), FINGERPRINT, limit=4)
        assert [match.entry.exact_key for match in found] == ["exact-a", "exact-b"]
        assert store.unreadable == 0


@pytest.mark.parametrize("encrypt", [False, True])
def test_a_key_is_changed_without_losing_anything(opened, path, encrypt):
    """After a rotation the new key alone reads all; other processes find the new key themselves."""
    store, bystander = opened(encrypt=encrypt), opened(encrypt=encrypt)
    for name in "abc":
        store.put(make_entry(name, canonical_key=name), direction(1, ord(name)), FINGERPRINT)
    assert store.rotate() == 0
    store._guard.ring.renew()
    assert store.rotate() == 3
    assert store.rotate() == 0
    assert bystander.get("scope", "exact-a") is not None
    assert len(bystander.search("scope", direction(1), FINGERPRINT, limit=4)) == 3
    assert bystander.unreadable == 0
    newest = store._guard.ring.newest.secret
    alone = opened(integrity_key=newest)
    assert len(alone.search("scope", direction(1), FINGERPRINT, limit=4)) == 3
    assert alone.get("scope", "b") is not None
    store._guard.ring.renew(retire=True)
    assert len(path.with_name("cache.db.key").read_text().split("\n")) == 3
    assert len(list(opened().entries())) == 3


def test_what_a_retired_key_sealed_is_a_miss(opened, path):
    """A retired key's records are not served, by processes that had it either."""
    store = opened()
    store.put(make_entry("a"), None, FINGERPRINT)
    store._guard.ring.renew()
    store._guard.ring.renew(retire=True)
    fresh = opened()
    assert fresh.get("scope", "exact-a") is None
    assert fresh.refusals == {"unknown key": 1}


def test_rotation_can_take_encryption_up_and_down(opened, path):
    """The form follows the store that rotates; entries and vectors stay what they were."""
    opened().put(make_entry("a"), direction(1), FINGERPRINT)
    assert opened(encrypt=True).rotate() == 1
    assert b"It is a" not in path.read_bytes()
    assert opened().rotate() == 1
    store = opened()
    assert len(store.search("scope", direction(1), FINGERPRINT, limit=1)) == 1
    assert store.unreadable == 0


def test_a_ring_given_as_bytes_is_not_renewed(opened):
    """Where keys did not come from a file, the owner passes the new one."""
    with pytest.raises(ConfigurationError, match="pass the new key before the old ones"):
        KeyRing([new_key()]).renew()


def test_encryption_without_its_package_says_what_to_install(monkeypatch):
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ConfigurationError, match=r"stepcache\[crypto\]"):
        RecordGuard("SQLiteStore", KEY, encrypt=True)
