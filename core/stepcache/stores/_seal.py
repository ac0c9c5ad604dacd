"""The sealed form of a record: bytes that only a holder of the key can have made.

    format 1 | mode 1 | key id 8 | binding 16 | tag 32 | record          mode 0: authenticated
    format 1 | mode 1 | key id 8 | binding 16 | nonce 12 | ciphertext    mode 1: encrypted too

Mode 0 is HMAC-SHA-256 over all but the tag itself; mode 1 is AES-256-GCM with a random nonce and
everything before it as associated data. The record (``_record``) holds what an entry is: the scope,
in which the namespace is, its keys and id, prompt, steps, model, versions and times. The binding is
a digest of the embedder's fingerprint and the vector, which lie beside the record and are compared
with it before a row found by its vector counts. So nothing of a row can be made, changed or moved
to another place without the key; what is left to whoever can write the store is to remove rows, and
to put back genuine ones until they expire.
"""

from __future__ import annotations

import hmac
import os
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypeAlias

from stepcache._errors import ConfigurationError
from stepcache._types import Entry
from stepcache.stores._keys import KEY_ID_BYTES, Key, KeyRing
from stepcache.stores._record import MAX_RECORD_BYTES, decode

__all__ = [
    "BAD",
    "Opened",
    "Reason",
    "Refused",
    "aead",
    "binding",
    "hide",
    "key_of",
    "open_record",
    "seal",
    "unhide",
    "vector_size",
]

FORMAT = 0x82  # not UTF-8 and not "{": no record of before the seals begins like this
_PLAIN, _ENCRYPTED = 0, 1
_BINDING_BYTES = 16
_HEAD = 2 + KEY_ID_BYTES + _BINDING_BYTES
_TAG_BYTES = 32
_NONCE_BYTES = 12
_DOMAIN = b"stepcache/record/1\0"
_VECTOR_DOMAIN = b"stepcache/vector/1\0"
_HIDDEN = b"\x82"
"""Begins a hidden vector, whose length so is no multiple of four."""

Reason: TypeAlias = Literal["unsealed", "newer", "unknown key", "forged", "malformed", "misplaced"]
"""Why bytes are not believed. ``forged`` and ``malformed``: the seal does not hold, or nobody knows
what is in it. ``misplaced``: a genuine record where it does not belong. The others may be somebody
else's good records, and are left alone: of before there were seals, of a newer release, or of a key
this process was not given."""

BAD: frozenset[Reason] = frozenset(("forged", "malformed", "misplaced"))
"""Reasons for which a row is removed."""


class Refused(Exception):
    """Bytes that are no record of ours.

    Attributes:
        reason: Why not.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


class Opened(NamedTuple):
    """What a genuine record holds."""

    entry: Entry
    bound: bytes
    """The binding to its vector."""


def binding(fingerprint: str, vector: bytes | None) -> bytes:
    """What a record says of its vector; zeros where it has none.

    Args:
        vector: float32 numbers, little-endian.
    """
    if vector is None:
        return bytes(_BINDING_BYTES)
    name = fingerprint.encode("utf-8", "surrogatepass")
    mark = blake2b(len(name).to_bytes(8, "little"), digest_size=_BINDING_BYTES)
    mark.update(name)
    mark.update(vector)
    return mark.digest()


def seal(record: bytes, bound: bytes, key: Key, *, encrypt: bool = False) -> bytes:
    """The sealed form of a record.

    Args:
        record: What :func:`stepcache.stores._record.encode` made.
        bound: What :func:`binding` said of its vector.
        encrypt: Whether the record is unreadable without the key.

    Raises:
        ConfigurationError: Encryption without the package ``cryptography``.
    """
    head = bytes((FORMAT, _ENCRYPTED if encrypt else _PLAIN)) + key.id + bound
    if encrypt:
        nonce = os.urandom(_NONCE_BYTES)
        return head + nonce + _encrypted(key, nonce, record, _DOMAIN + head)
    return head + hmac.digest(key.mac, _DOMAIN + head + record, "sha256") + record


def open_record(blob: object, ring: KeyRing) -> Opened:
    """Verify one stored record and read it. The one way from stored bytes to an entry.

    Args:
        blob: What the storage holds; anything.
        ring: The keys that are believed.

    Raises:
        Refused: Not a record that one of these keys sealed, whole and unchanged.
        ConfigurationError: It is encrypted, and the package ``cryptography`` is not installed.
    """
    if not isinstance(blob, bytes) or len(blob) > MAX_RECORD_BYTES + 256:
        raise Refused("malformed")
    if blob[:1] == b"{":
        raise Refused("unsealed")
    if len(blob) < _HEAD + _TAG_BYTES or not 0x80 <= blob[0] <= 0x8F:
        raise Refused("malformed")
    if blob[0] != FORMAT or blob[1] not in (_PLAIN, _ENCRYPTED):
        raise Refused("newer")
    key = ring.find(blob[2 : 2 + KEY_ID_BYTES])
    if key is None:
        raise Refused("unknown key")
    head = blob[:_HEAD]
    if blob[1] == _PLAIN:
        record = blob[_HEAD + _TAG_BYTES :]
        tag = hmac.digest(key.mac, _DOMAIN + head + record, "sha256")
        if not hmac.compare_digest(tag, blob[_HEAD : _HEAD + _TAG_BYTES]):
            raise Refused("forged")
    else:
        record = _decrypted(key, blob[_HEAD:], _DOMAIN + head)
    entry = decode(record)
    if entry is None:
        raise Refused("malformed")
    return Opened(entry, head[-_BINDING_BYTES:])


def key_of(blob: object) -> bytes | None:
    """The id of the key that bytes claim to be sealed with."""
    if not isinstance(blob, bytes) or blob[:1] != bytes((FORMAT,)):
        return None
    return blob[2 : 2 + KEY_ID_BYTES]


def hide(vector: bytes, key: Key) -> bytes:
    """A vector, from which its text can partly be guessed, as only the key's holder can read it."""
    nonce = os.urandom(_NONCE_BYTES)
    head = _HIDDEN + key.id
    return head + nonce + _encrypted(key, nonce, vector, _VECTOR_DOMAIN + head)


def unhide(blob: object, ring: KeyRing) -> bytes | None:
    """A stored vector's bytes, hidden or not; None for what is no vector that we can read.

    Nothing is proven by it: a vector finds rows, and counts only with the record it is bound to.
    """
    if not isinstance(blob, bytes) or not blob:
        return None
    if len(blob) % 4 == 0:
        return blob
    start = 1 + KEY_ID_BYTES
    key = ring.find(blob[1:start]) if blob[:1] == _HIDDEN else None
    if key is None:
        return None
    try:
        return _decrypted(key, blob[start:], _VECTOR_DOMAIN + blob[:start])
    except Refused:
        return None


def vector_size(stored: int) -> int | None:
    """Bytes of the vector in a stored one of so many bytes, hidden or not; None where neither."""
    size = stored if stored % 4 == 0 else stored - (1 + KEY_ID_BYTES + _NONCE_BYTES + 16)
    return size if size > 0 and size % 4 == 0 else None


def _encrypted(key: Key, nonce: bytes, data: bytes, associated: bytes) -> bytes:
    encrypted: bytes = _cipher(key.cipher).encrypt(nonce, data, associated)
    return encrypted


def _decrypted(key: Key, blob: bytes, associated: bytes) -> bytes:
    cipher = _cipher(key.cipher)
    from cryptography.exceptions import InvalidTag

    try:
        data: bytes = cipher.decrypt(blob[:_NONCE_BYTES], blob[_NONCE_BYTES:], associated)
    except (InvalidTag, ValueError):
        raise Refused("forged") from None
    return data


@lru_cache(maxsize=16)
def _cipher(key: bytes) -> Any:
    return aead()(key)


def aead() -> Any:
    """The class of the cipher.

    Raises:
        ConfigurationError: The package ``cryptography`` is not installed.
    """
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "encryption needs the package cryptography: pip install 'stepcache[crypto]'"
        ) from error
    return AESGCM
