"""The stores of this package, wrapped or not, keep the contract that they ship a suite for."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lancelet.config import Retries
from lancelet.storage.caching import CachingStore
from lancelet.storage.counting import CountingStore
from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore, forget
from lancelet.storage.retrying import RetryingStore
from lancelet.storage.store import Store
from lancelet.storage.throttling import ThrottlingStore
from lancelet.testing.faults import FaultyStore, Kind
from lancelet.testing.storage import Check, checks

# Threads read and write at once, so with faults drawn by seed the order, and with it the faults, differ each time.
WRAPPERS: dict[str, Callable[[Store], Store]] = {
    "counting": CountingStore,
    "caching": lambda inner: CachingStore(inner, suffixes=(".never",)),
    "throttling": lambda inner: ThrottlingStore(inner, concurrency=2, bytes_per_second=1e12),
    "retrying": RetryingStore,
    "faultless": FaultyStore,
    "retrying over faults": lambda inner: RetryingStore(
        FaultyStore(inner, rate=0.05, seed=7, kinds=(Kind.ERROR,)), Retries(attempts=50, first_delay=0)
    ),
}
#: Checks in which a writer may fail in the middle, which no repetition can help.
WITH_WRITERS = ("writer", "big objects")


@pytest.fixture
def memory() -> Iterator[Callable[[], Store]]:
    """A factory of memory stores, all forgotten in the end."""
    name = f"memory://{uuid.uuid4()}"
    yield lambda: MemoryStore(f"{name}/{uuid.uuid4()}")
    forget(name)


@pytest.mark.parametrize("check", checks(across_processes=False), ids=str)
def test_memory_keeps_the_contract(check: Check, memory: Callable[[], Store]) -> None:
    check(memory)


@pytest.mark.parametrize("check", checks(), ids=str)
def test_local_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    check(lambda: LocalStore(tmp_path / str(uuid.uuid4())))


@pytest.mark.parametrize("check", [check for check in checks() if "writ" in check.name or "put" in check.name], ids=str)
def test_durable_local_writes_keep_the_contract(check: Check, tmp_path: Path) -> None:
    check(lambda: LocalStore(tmp_path / str(uuid.uuid4()), durable=True))


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("check", checks(across_processes=False), ids=str)
def test_wrapped_stores_keep_the_contract(check: Check, wrapper: str, memory: Callable[[], Store]) -> None:
    if wrapper == "retrying over faults" and any(word in check.name for word in WITH_WRITERS):
        wrapper = "retrying"
    check(lambda: WRAPPERS[wrapper](memory()))


@pytest.mark.parametrize("wrapper", [name for name in WRAPPERS if "fault" not in name])
def test_wrapped_stores_work_after_fork(wrapper: str, tmp_path: Path) -> None:
    check = next(check for check in checks() if "fork works" in check.name)
    check(lambda: WRAPPERS[wrapper](LocalStore(tmp_path / str(uuid.uuid4()))))
