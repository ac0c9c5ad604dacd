"""Locks that a fork does not leave locked for ever.

In a forked child only the forking thread lives on: a lock that any other thread held at that moment
would never be released there, and what it guards could be half changed. So a fork waits until no
thread holds any of these locks, and lets them go on both sides.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["call_in_child", "fork_safe_lock"]

_PATIENCE = 1.0
"""Seconds a fork waits for one lock: the forking thread may hold it itself."""

_locks: list[weakref.ref[threading.Lock]] = []
"""In order of creation, which is the order in which nested ones are taken."""
_forked: weakref.WeakSet[_Forked] = weakref.WeakSet()
_held: list[threading.Lock] = []
_MANY = 1_000


class _Forked(Protocol):
    def after_fork(self) -> None: ...


def fork_safe_lock() -> threading.Lock:
    """A new lock that is free in every forked child."""
    lock = threading.Lock()
    if len(_locks) >= _MANY and len(_locks) % _MANY == 0:
        _locks[:] = [each for each in _locks if each() is not None]
    _locks.append(weakref.ref(lock))
    return lock


def call_in_child(forked: _Forked) -> None:
    """Have ``forked.after_fork()`` called in every forked child, for as long as it lives."""
    _forked.add(forked)


def _before() -> None:
    for each in tuple(_locks):
        lock = each()
        if lock is not None and lock.acquire(timeout=_PATIENCE):
            _held.append(lock)


def _release() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    _release()
    for each in tuple(_forked):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
