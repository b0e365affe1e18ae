"""The engine behind remote stores: obstore's compiled module, its clients and our threads, sound across fork.

obstore keeps one tokio runtime per loaded library. A forked child inherits that runtime without its threads, so that
every call would wait for ever. A child therefore loads a copy of the library of its own (15 MB, 20 ms, only if the
parent had loaded it) and never calls, drops or frees anything that the parent made.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from datetime import timedelta
from types import ModuleType
from typing import Protocol, TypeVar, cast

from lancelet.config import Retries
from lancelet.storage.remote_location import Location
from lancelet.storage.remote_options import Settings

__all__ = ["Client", "in_parallel"]

_MODULE = "obstore._obstore"
_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


class _Engine(Protocol):
    """What we use of obstore's compiled module; its stores are opaque to us."""

    put: Callable[..., object]
    get: Callable[..., object]
    get_range: Callable[..., object]
    head: Callable[..., dict[str, object]]
    list: Callable[..., Iterable[Sequence[dict[str, object]]]]
    copy: Callable[..., None]
    delete: Callable[..., None]
    _store: _Stores


class _Stores(Protocol):
    S3Store: Callable[..., object]
    GCSStore: Callable[..., object]
    AzureStore: Callable[..., object]
    HTTPStore: Callable[..., object]


class _Process:
    """What belongs to this process alone and is made anew in a forked child."""

    def __init__(self, *, copy_engine: bool = False) -> None:
        self.lock = threading.Lock()
        self.copy_engine = copy_engine
        self.engine: _Engine | None = None
        self.pools: dict[int, ThreadPoolExecutor] = {}
        self.clients: weakref.WeakSet[Client] = weakref.WeakSet()


_process = _Process()
# What forked children inherited: kept alive, so that no destructor of the parent's objects runs in a child.
_inherited: list[object] = []


def _after_fork() -> None:
    global _process
    parent = _process
    _inherited.append((parent, list(parent.clients)))
    _process = _Process(copy_engine=parent.copy_engine or _MODULE in sys.modules)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _engine() -> _Engine:
    process = _process
    with process.lock:
        if process.engine is None:
            module = _load_copy() if process.copy_engine else importlib.import_module(_MODULE)
            process.engine = cast(_Engine, module)
        return process.engine


def _load_copy() -> ModuleType:
    """Load obstore's library a second time, with statics of its own.

    The loader tells libraries apart by inode and by name: a file in memory, named with this process's number, has
    new ones of both.
    """
    found = importlib.util.find_spec(_MODULE)
    if found is None or found.origin is None:
        raise ModuleNotFoundError("obstore is not installed", name="obstore")
    with open(found.origin, "rb") as library:
        content = library.read()
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("obstore")
        name = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        descriptor, name = tempfile.mkstemp(suffix=".so")
    try:
        with open(descriptor, "wb", closefd=False) as copy:
            copy.write(content)
        loader = importlib.machinery.ExtensionFileLoader("_obstore", name)
        spec = importlib.util.spec_from_loader("_obstore", loader, origin=name)
        if spec is None:
            raise ModuleNotFoundError("obstore's library cannot be loaded again", name="obstore")
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module
    finally:
        os.close(descriptor)
        if not name.startswith("/proc/"):
            os.unlink(name)


class Client:
    """A client for one location: the engine, its store, and the same store without retries. Made per process."""

    def __init__(self, location: Location, settings: Settings) -> None:
        self.process = os.getpid()
        self.engine = _engine()
        self.store = _open(self.engine, location, settings, settings.retries)
        self._once: object | None = None
        self._description = location, settings
        _process.clients.add(self)

    @property
    def once(self) -> object:
        """The store that asks a single time: for requests whose repetition could be mistaken for somebody else's."""
        if self._once is None:
            self._once = _open(self.engine, *self._description, Retries(attempts=1))
        return self._once


def _open(engine: _Engine, location: Location, settings: Settings, retries: Retries) -> object:
    backoff = {
        "init_backoff": timedelta(seconds=retries.first_delay),
        "max_backoff": timedelta(seconds=retries.longest_delay),
        "base": retries.factor,
    }
    retry = {
        "max_retries": retries.attempts - 1,
        "retry_timeout": timedelta(seconds=retries.deadline),
        "backoff": backoff,
    }
    common: dict[str, object] = {"client_options": settings.client or None, "retry_config": retry}
    if location.kind == "http":
        return engine._store.HTTPStore(location.bucket, **common)
    config = dict(settings.config)
    if {"access_key_id", "secret_access_key"} <= config.keys() and "session_token" not in config:
        # The engine would add a session token that it finds in the environment, which belongs to other keys.
        fixed = {"access_key_id": config.pop("access_key_id"), "secret_access_key": config.pop("secret_access_key")}
        common["credential_provider"] = lambda: {**fixed, "token": None, "expires_at": None}
    kinds = {"s3": engine._store.S3Store, "gcs": engine._store.GCSStore, "azure": engine._store.AzureStore}
    return kinds[location.kind](location.bucket, config=config, **common)


def in_parallel(call: Callable[[_Item], _Answer], items: Sequence[_Item], *, concurrency: int) -> list[_Answer]:
    """``call`` of each item, at most ``concurrency`` at once over all callers of this process, answers in order.

    The first failure is raised at once; calls that have not begun are dropped.

    >>> in_parallel(len, ["a", "bcd"], concurrency=2)
    [1, 3]
    """
    if len(items) <= 1 or concurrency == 1:
        return [call(item) for item in items]
    process = _process
    with process.lock:
        pool = process.pools.get(concurrency)
        if pool is None:
            pool = process.pools[concurrency] = ThreadPoolExecutor(concurrency, thread_name_prefix="lancelet-io")
    futures = [pool.submit(call, item) for item in items]
    done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
    for future in waiting:
        future.cancel()
    for future in done:
        future.result()
    return [future.result() for future in futures]
