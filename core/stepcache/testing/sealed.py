"""What a store has to do that others can write to, or that many tenants share, as test classes.

A store whose storage somebody else may reach proves with :class:`SealedStoreContract` that it
believes only what it wrote itself. Beside ``store`` and ``clock`` the author provides ``tamper``, a
function that puts every stored record through an edit of its bytes, behind the store's back::

    class TestMySealedStore(SealedStoreContract):
        @pytest.fixture
        def tamper(self, store):
            def tampered(edit):
                for key, blob in my_storage.items():
                    my_storage[key] = edit(blob)
            return tampered

:class:`stepcache.stores.RecordGuard` does the sealing for any store.
:class:`NamespaceLimitContract` is for stores that keep at most so many entries of one namespace;
its ``store`` keeps three.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from stepcache._reports import namespace_tags, report_of
from stepcache.testing.stores import Clock, direction, make_entry

__all__ = ["NamespaceLimitContract", "SealedStoreContract"]

_FINGERPRINT = "contract/1"
_Tamper = Callable[[Callable[[bytes], bytes]], None]


class SealedStoreContract:
    """Nothing that was made, changed or moved behind the store's back is served.

    Subclasses provide the fixtures ``clock``, ``store`` (empty, reading that clock) and ``tamper``.
    """

    def test_what_nobody_touched_is_served(self, store: Any, tamper: _Tamper) -> None:
        """Rewriting the same bytes changes nothing: what follows is for the edits alone."""
        self._fill(store)
        tamper(lambda blob: bytes(blob))
        assert store.get("scope", "exact-a") is not None
        assert store.get("scope", "canonical") is not None
        assert len(store.search("scope", direction(1), _FINGERPRINT, limit=9)) == 2

    def test_no_byte_of_a_record_can_be_changed(self, store: Any, tamper: _Tamper) -> None:
        """A flipped bit anywhere, front to end, makes the record a miss by every way."""
        self._fill(store)
        dice, size = Random(7), 0  # noqa: S311 - a choice of places, not a secret

        def measure(blob: bytes) -> bytes:
            nonlocal size
            size = max(size, len(blob))
            return blob

        tamper(measure)
        for at in sorted({0, 1, 2, size - 1, *(dice.randrange(size) for _ in range(12))}):

            def flip(blob: bytes, at: int = at) -> bytes:
                changed = bytearray(blob)
                changed[at % len(changed)] ^= 1 << at % 8
                return bytes(changed)

            tamper(flip)
            self._nothing(store)
            self._fill(store)
        assert store.get("scope", "exact-a") is not None

    def test_cut_grown_and_foreign_records_are_misses(self, store: Any, tamper: _Tamper) -> None:
        """As is whatever was never a record."""
        for edit in (
            lambda blob: blob[: len(blob) // 2],
            lambda blob: blob + b" ",
            lambda blob: b"",
            lambda blob: b'{"v": 1}',
            lambda blob: b"\x80\x04N.",  # a pickle
        ):
            self._fill(store)
            tamper(edit)
            self._nothing(store)

    def test_records_that_changed_places_are_misses(self, store: Any, tamper: _Tamper) -> None:
        """Genuine bytes under another entry's key, vector or id are not that entry."""
        self._fill(store)
        seen: list[bytes] = []

        def look(blob: bytes) -> bytes:
            seen.append(bytes(blob))
            return blob

        tamper(look)
        assert len(seen) == 2
        turned = iter(seen[::-1])
        tamper(lambda blob: next(turned))
        for key, name in (("exact-a", "a"), ("exact-b", "b"), ("canonical", "a")):
            found = store.get("scope", key)
            assert found is None or name in found.exact_key
            assert found is None or key in (found.exact_key, found.canonical_key)
        assert store.search("scope", direction(1), _FINGERPRINT, limit=9) == ()

    def test_what_was_refused_is_counted_and_can_be_put_anew(
        self, store: Any, tamper: _Tamper
    ) -> None:
        """Where a store counts, it counts; and a new answer takes the place of the bad record."""
        self._fill(store)
        tamper(lambda blob: bytes(blob[:-1]) + bytes([blob[-1] ^ 1]))
        assert store.get("scope", "exact-a") is None
        if hasattr(store, "refusals"):
            assert sum(store.refusals.values()) >= 1
        self._fill(store)
        assert store.get("scope", "exact-a") is not None
        assert len(store.search("scope", direction(1), _FINGERPRINT, limit=9)) == 2

    def _fill(self, store: Any) -> None:
        store.put(make_entry("a", canonical_key="canonical"), direction(1), _FINGERPRINT)
        store.put(make_entry("b"), direction(1, 1), _FINGERPRINT)

    def _nothing(self, store: Any) -> None:
        assert store.get("scope", "exact-a") is None
        assert store.get("scope", "exact-b") is None
        assert store.get("scope", "canonical") is None
        assert store.search("scope", direction(1), _FINGERPRINT, limit=9) == ()
        if hasattr(store, "find"):
            assert store.find("id-scope-a") is None
            assert list(store.entries()) == []


class NamespaceLimitContract:
    """One namespace cannot crowd out the others.

    Subclasses provide the fixtures ``clock`` and ``store``, an empty store that reads it and keeps
    three entries of a namespace.
    """

    def test_the_oldest_of_the_namespace_goes(self, store: Any, clock: Clock) -> None:
        """The others' entries stay, whatever one namespace puts, in however many scopes."""
        self._put(store, "ours", "a")
        self._put(store, "", "b")
        for turn in range(9):
            clock.advance(1)
            self._put(store, "theirs", f"t{turn}", scope=f"scope-{turn % 2}")
        kept = [turn for turn in range(9) if self._has(store, f"t{turn}", f"scope-{turn % 2}")]
        assert kept == [6, 7, 8]
        assert self._has(store, "a")
        assert self._has(store, "b")
        assert store.count() == 5

    def test_entries_without_a_namespace_share_one_limit(self, store: Any) -> None:
        """The default namespace is one like the others."""
        for name in "abcde":
            self._put(store, "", name)
        assert [name for name in "abcde" if self._has(store, name)] == ["c", "d", "e"]

    def test_a_replaced_entry_takes_one_place(self, store: Any) -> None:
        """Putting the same key again crowds nobody out."""
        for name in "abcc":
            self._put(store, "ours", name)
        assert store.count() == 3
        assert self._has(store, "a")

    def test_what_is_removed_makes_room(self, store: Any) -> None:
        """The limit is on what is there, not on what ever was."""
        for name in "abc":
            self._put(store, "ours", name)
        assert store.remove("id-scope-b") is True
        self._put(store, "ours", "d")
        assert [name for name in "abcd" if self._has(store, name)] == ["a", "c", "d"]

    def test_reports_are_not_crowded_out(self, store: Any) -> None:
        """That an answer was bad is remembered, however many answers come after."""
        report = report_of(make_entry("bad"))
        store.put(report, None, _FINGERPRINT)
        for name in "abcdef":
            self._put(store, "", name)
        assert store.get(report.scope, report.exact_key) is not None

    def _put(self, store: Any, namespace: str, name: str, scope: str = "scope") -> None:
        entry = make_entry(name, scope, tags=("x", *namespace_tags(namespace)))
        store.put(entry, direction(1), _FINGERPRINT)

    def _has(self, store: Any, name: str, scope: str = "scope") -> bool:
        return store.get(scope, f"exact-{name}") is not None
