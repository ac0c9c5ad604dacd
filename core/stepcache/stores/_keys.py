"""The keys that records are sealed with: where they come from, and who may read them.

A key is 32 random bytes, written as 64 hexadecimal digits. Several make a ring: the first seals,
all of them open, so that a key can be changed without losing what the old one sealed. Whoever has
a key can forge records, so a file that others can read is refused, and a key that came from outside
is never joined by one that merely lies beside the store.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias, Union

from stepcache._errors import ConfigurationError
from stepcache._forking import fork_safe_lock

__all__ = ["KEY_ENV", "KEY_FILE_ENV", "Key", "KeyRing", "KeySource", "key_ring", "new_key"]

KEY_ENV = "STEPCACHE_KEY"
"""Holds keys as hexadecimal digits, the newest first, parted by commas or white space."""
KEY_FILE_ENV = "STEPCACHE_KEY_FILE"
"""Names a key file."""

KeySource: TypeAlias = Union[bytes, str, "os.PathLike[str]", Sequence[bytes]]
"""Key bytes, the path of a key file, or several keys, the newest first."""

KEY_ID_BYTES = 8
_KEY_BYTES = 32
_LEAST_BYTES = 16
_LARGEST_FILE = 65_536
_MAKE_ONE = "make one with 'stepcache key --file PATH'"


class Key:
    """One secret and what is derived from it; shows up in no text.

    Attributes:
        id: 8 bytes that tell keys apart and say nothing of the secret.
        mac: 32 bytes for authentication.
        cipher: 32 bytes for encryption.
    """

    __slots__ = ("cipher", "id", "mac", "secret")

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.id = _derived(secret, b"stepcache/id", KEY_ID_BYTES)
        self.mac = _derived(secret, b"stepcache/mac", 32)
        self.cipher = _derived(secret, b"stepcache/cipher", 32)

    def __repr__(self) -> str:
        return f"<Key {self.id.hex()}>"


def _derived(secret: bytes, purpose: bytes, size: int) -> bytes:
    return blake2b(secret, digest_size=size, person=purpose).digest()


class KeyRing:
    """Keys in order, the newest first. Thread-safe.

    A ring that came from a file looks there again when it meets a record of a key it does not know:
    another process may have changed the key meanwhile.

    Args:
        keys: At least one secret.
        path: The file they came from.
    """

    def __init__(self, keys: Iterable[bytes], path: Path | None = None) -> None:
        self.path = path
        self._lock = fork_safe_lock()
        self._seen = _nature(path)
        self._keep(keys)

    def __repr__(self) -> str:
        return f"<KeyRing of {len(self._keys)}>"

    @property
    def newest(self) -> Key:
        """The key that seals."""
        return self._newest

    def find(self, key_id: bytes) -> Key | None:
        """The key of an id, or None."""
        key = self._keys.get(key_id)
        if key is None and self.path is not None:
            self._look_again(self.path)
            key = self._keys.get(key_id)
        return key

    def _keep(self, keys: Iterable[bytes]) -> None:
        ring = [Key(secret) for secret in keys]
        self._newest = ring[0]
        self._keys = {key.id: key for key in reversed(ring)}

    def _look_again(self, path: Path) -> None:
        with self._lock:
            nature = _nature(path)
            if nature == self._seen:
                return
            self._seen = nature
            with suppress(ConfigurationError):  # what is known stays good
                self._keep(_from_file("the store", path))

    def renew(self, *, retire: bool = False) -> None:
        """Put a new key before the others, in the file too.

        Args:
            retire: Forget all others instead of adding one; what only they sealed is lost.

        Raises:
            ConfigurationError: The ring did not come from a file, or it cannot be written.
        """
        if self.path is None:
            raise ConfigurationError(
                "these keys did not come from a file: pass the new key before the old ones"
            )
        with self._lock:
            known = _from_file("the store", self.path)
            keys = known[:1] if retire else [new_key(), *known]
            _write(self.path, keys, replace=True)
            self._seen = _nature(self.path)
            self._keep(keys)


def new_key() -> bytes:
    """32 bytes that nobody can guess."""
    return secrets.token_bytes(_KEY_BYTES)


def key_ring(
    owner: str,
    given: KeySource | KeyRing | None,
    *,
    beside: str | None = None,
) -> KeyRing:
    """The keys of a store.

    In this order: what was given; the environment (``STEPCACHE_KEY``, ``STEPCACHE_KEY_FILE``); for
    a store in a file the key file beside it, made where there is none; for one that hosts share the
    file ``key`` in the user's configuration folder.

    Args:
        owner: Who asks, for messages.
        given: The constructor's argument.
        beside: A store's file; its key file is ``<beside>.key``.

    Raises:
        ConfigurationError: No key, not a key, or a file that is missing or that others can read.
    """
    if isinstance(given, KeyRing):
        return given
    if given is not None:
        return _given(owner, given)
    if text := os.environ.get(KEY_ENV):
        return KeyRing(_parsed(owner, text, KEY_ENV))
    if name := os.environ.get(KEY_FILE_ENV):
        return _ring_of(owner, Path(name))
    if beside is not None:
        path = Path(f"{beside}.key")
        if not path.exists():
            _write(path, [new_key()], replace=False)
        return _ring_of(owner, path)
    path = _config_folder() / "key"
    if path.exists():
        return _ring_of(owner, path)
    raise ConfigurationError(
        f"{owner} has no integrity key, and every host that shares its entries needs the same one: "
        f"pass integrity_key=, set {KEY_ENV} or {KEY_FILE_ENV}, or {_MAKE_ONE} and copy it to "
        f"{path} on every host"
    )


def write_key_file(path: Path, *, replace: bool = False) -> None:
    """Write a file with one new key, readable by its owner only.

    Raises:
        ConfigurationError: It is there already, or cannot be written.
    """
    if not replace and path.exists():
        raise ConfigurationError(f"the key file {str(path)!r} is there already: choose another")
    _write(path, [new_key()], replace=replace)


def _given(owner: str, given: object) -> KeyRing:
    if isinstance(given, (str, os.PathLike)):
        return _ring_of(owner, Path(given).expanduser())
    keys = [given] if isinstance(given, (bytes, bytearray)) else given
    if not isinstance(keys, (list, tuple)) or not keys:
        raise _refused(owner, f"a {type(given).__name__} is no key")
    for key in keys:
        if not isinstance(key, (bytes, bytearray)) or len(key) < _LEAST_BYTES:
            raise _refused(owner, f"a key has at least {_LEAST_BYTES} bytes, better {_KEY_BYTES}")
    return KeyRing([bytes(key) for key in keys])


def _refused(owner: str, reason: str) -> ConfigurationError:
    # The value itself may be a secret: it is not named.
    return ConfigurationError(
        f"{owner}(integrity_key=...): {reason}; pass bytes, the path of a key file, or several "
        "keys with the newest first"
    )


def _ring_of(owner: str, path: Path) -> KeyRing:
    return KeyRing(_from_file(owner, path), path)


def _from_file(owner: str, path: Path) -> list[bytes]:
    """The keys of a file that only its owner (or root) can read and write."""
    where = f"the key file {str(path)!r}"
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            text = file.read(_LARGEST_FILE).decode("ascii", "replace")
    except OSError as error:
        raise ConfigurationError(
            f"{owner}: {where} cannot be read ({error.strerror}); {_MAKE_ONE}"
        ) from error
    if os.name == "posix":
        if stat.S_IMODE(about.st_mode) & 0o077:
            raise ConfigurationError(
                f"{owner}: {where} can be read or written by others "
                f"(mode {stat.S_IMODE(about.st_mode):04o}); run: chmod 600 {path}"
            )
        if about.st_uid not in (os.geteuid(), 0):
            raise ConfigurationError(
                f"{owner}: {where} belongs to another user (uid {about.st_uid}); "
                "use a key file of your own"
            )
    return _parsed(owner, text, where)


def _parsed(owner: str, text: str, where: str) -> list[bytes]:
    """Keys as hexadecimal digits; lines that begin with # are notes."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    keys: list[bytes] = []
    for word in " ".join(lines).replace(",", " ").split():
        try:
            key = bytes.fromhex(word)
        except ValueError:
            key = b""
        if len(key) < _LEAST_BYTES:
            raise ConfigurationError(
                f"{owner}: {where} holds something that is no key: "
                f"{2 * _KEY_BYTES} hexadecimal digits each; {_MAKE_ONE}"
            )
        keys.append(key)
    if not keys:
        raise ConfigurationError(f"{owner}: {where} holds no key; {_MAKE_ONE}")
    return keys


def _write(path: Path, keys: Sequence[bytes], *, replace: bool) -> None:
    """Write a key file at once: nobody ever sees half of one.

    Without ``replace`` whoever comes first wins, and the others use what that one wrote.
    """
    notes = "# StepCache integrity keys, the newest first. Whoever has one can forge records.\n"
    text = notes + "".join(f"{key.hex()}\n" for key in keys)
    passing = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        with os.fdopen(os.open(passing, flags, 0o600), "wb") as file:
            file.write(text.encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        try:
            if replace:
                passing.replace(path)
            else:
                with suppress(FileExistsError):
                    _link(passing, path)
        finally:
            passing.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the key file {str(path)!r} cannot be written ({error.strerror}); pass integrity_key= "
            f"or set {KEY_ENV}"
        ) from error


def _link(passing: Path, path: Path) -> None:
    """Give a finished file its name, unless there is one of that name."""
    try:
        os.link(passing, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: two that come at once may both win
        if path.exists():
            raise FileExistsError from None
        passing.replace(path)


def _nature(path: Path | None) -> tuple[int, int, int] | None:
    if path is None:
        return None
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size


def _config_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", "~")).expanduser() / "stepcache"
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "stepcache"
