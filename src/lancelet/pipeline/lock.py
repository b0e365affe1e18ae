"""One run of a pipeline at a time: a lock in the store, which a run that died leaves and the next takes over.

    <folder>/lock-<number>    put if absent: of many who want the next number one gets it; its holder says who it is

The holder writes its lock again every few seconds, and removes it at the end. A lock that was not written for a while,
or whose process on this machine is gone, is dead: who wants to run takes the next number.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from lancelet.errors import AlreadyExists, Conflict, LanceletError, NotFound
from lancelet.storage.store import Store

__all__ = ["held"]

#: Seconds between two signs of life, and without any after which a lock is dead.
_BEAT, _LEASE = 10.0, 90.0
_DIGITS = 10


@contextmanager
def held(store: Store, folder: str, name: str, *, lease: float = _LEASE) -> Iterator[None]:
    """Hold the lock while the block runs. Conflict where another holds it."""
    path = _taken(store, folder, name, lease)
    over = threading.Event()

    def beat() -> None:
        while not over.wait(_BEAT):
            # A store that does not answer now may do so at the next beat.
            try:
                store.put(path, _sign())
            except LanceletError:
                continue

    thread = threading.Thread(target=beat, name="lancelet-pipeline-lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        store.delete([path])


def _taken(store: Store, folder: str, name: str, lease: float) -> str:
    found = [entry.path for entry in store.list_from(f"{folder}/lock-")]
    number = 1
    if found:
        holder = _read(store, found[-1])
        number = int(found[-1].rpartition("-")[2]) + 1
        if holder is not None and _lives(holder, lease):
            who = f"process {holder['process']} on {holder['host']}"
            hint = f"wait for it; a run that died is taken over after {lease:.0f} seconds"
            raise Conflict(
                f"another run of pipeline {name} is under way: {who}", uri=store.uri, retryable=True, hint=hint
            )
    path = f"{folder}/lock-{number:0{_DIGITS}}"
    try:
        store.put_if_absent(path, _sign())
    except AlreadyExists:
        found_one = f"another run of pipeline {name} has just begun"
        raise Conflict(found_one, uri=store.uri, retryable=True, hint="wait for it") from None
    store.delete(found)
    return path


def _sign() -> bytes:
    return json.dumps(
        {"host": socket.gethostname(), "process": os.getpid(), "at": time.time(), "id": uuid4().hex}
    ).encode()


def _read(store: Store, path: str) -> dict[str, object] | None:
    try:
        found = json.loads(bytes(store.read_all(path)))
    except (NotFound, ValueError):
        return None
    return found if isinstance(found, dict) and {"host", "process", "at"} <= set(found) else None


def _lives(holder: dict[str, object], lease: float) -> bool:
    if time.time() - float(str(holder["at"])) > lease:
        return False
    if holder["host"] != socket.gethostname():
        return True
    try:
        os.kill(int(str(holder["process"])), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
