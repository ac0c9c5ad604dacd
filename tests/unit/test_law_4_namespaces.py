"""Law 4 at the stores: nothing crosses a scope, whatever was put where and in which order."""

import shutil
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache.stores import MemoryStore, SQLiteStore
from stepcache.testing.stores import direction, make_entry

# Scopes that a careless join, prefix, case fold or normal form would take for each other.
SCOPES = st.sampled_from(
    ["", "a", "A", "a ", "ab", "b", "a\0", "a\0b", "\u00e9", "e\u0301", "\ud800", "%", "_", "a/b"]
)
KEYS = st.sampled_from(["", "k", "bk", "\0bk", "K"])
PUT = st.tuples(
    st.just("put"), SCOPES, KEYS, st.none() | KEYS, st.integers(0, 3), st.sampled_from(["f", "g"])
)
REMOVE = st.tuples(st.just("remove"), SCOPES, KEYS)
CLEAR = st.tuples(st.just("clear"), SCOPES)


def check(store, operations):
    """Do the operations and compare all scopes with a dictionary of what each should hold."""
    model = {}
    for number, (kind, scope, *rest) in enumerate(operations):
        if kind == "put":
            key, canonical, angle, fingerprint = rest
            entry = make_entry(
                key, scope, exact_key=key, canonical_key=canonical, id=f"{scope}|{key}"
            )
            store.put(entry, direction(1, angle), fingerprint)
            model.pop((scope, key), None)
            model[scope, key] = (number, canonical, fingerprint)
        elif kind == "remove":
            expected = model.pop((scope, rest[0]), None) is not None
            assert store.remove(f"{scope}|{rest[0]}") is expected
        else:
            gone = [place for place in model if place[0] == scope]
            assert store.clear(scope) == len(gone)
            for place in gone:
                del model[place]
    scopes = {operation[1] for operation in operations} | {"a", "untouched"}
    for scope in scopes:
        compare(store, scope, {key: kept for (s, key), kept in model.items() if s == scope})
    assert store.count() == len(model)


def compare(store, scope, expected):
    """One scope of the store holds what is expected and shows nothing else."""
    assert store.count(scope) == len(expected)
    for key in ("", "k", "bk", "\0bk", "K"):
        sharing = [(kept[0], name) for name, kept in expected.items() if kept[1] == key]
        name = key if key in expected else max(sharing)[1] if sharing else None
        found = store.get(scope, key)
        place = None if name is None else (scope, name)
        assert (found and (found.scope, found.exact_key)) == place
    for fingerprint in ("f", "g"):
        matches = store.search(scope, direction(1, 1), fingerprint, limit=50)
        assert {m.entry.scope for m in matches} <= {scope}
        names = sorted(m.entry.exact_key for m in matches)
        assert names == sorted(k for k, kept in expected.items() if kept[2] == fingerprint)


OPERATIONS = st.lists(PUT | PUT | PUT | REMOVE | CLEAR, max_size=25)


@settings(max_examples=150, deadline=None)
@given(OPERATIONS)
def test_nothing_crosses_a_scope_in_memory(operations):
    """An entry is got, found, counted, removed and cleared in its own scope only."""
    store = MemoryStore()
    check(store, operations)
    store.close()


@settings(max_examples=40, deadline=None)
@given(OPERATIONS)
def test_nothing_crosses_a_scope_in_a_file(operations):
    """The same holds for the file, its keys being bytes."""
    directory = tempfile.mkdtemp()
    store = SQLiteStore(f"{directory}/cache.db")
    try:
        check(store, operations)
    finally:
        store.close()
        shutil.rmtree(directory)
