"""Locks that are sound across fork: no child process starts with one held or with half-changed state behind it."""

from __future__ import annotations

import os
import threading
import weakref

__all__ = ["fork_safe_lock"]

_registry_lock = threading.Lock()
_registry: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_held: list[threading.Lock] = []


def fork_safe_lock() -> threading.Lock:
    """A lock that fork waits for. Hold it for short, pure-memory steps only and never two at once."""
    lock = threading.Lock()
    with _registry_lock:
        _registry.add(lock)
    return lock


def _before_fork() -> None:
    _registry_lock.acquire()
    _held.extend(_registry)
    for lock in _held:
        lock.acquire()


def _after_fork() -> None:
    for lock in _held:
        lock.release()
    _held.clear()
    _registry_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
