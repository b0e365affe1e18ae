"""The stores of this package keep the contract that they ship a suite for."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore, forget
from lancelet.testing.storage import Check, checks


@pytest.mark.parametrize("check", checks(across_processes=False), ids=str)
def test_memory_keeps_the_contract(check: Check) -> None:
    name = f"memory://{uuid.uuid4()}"
    check(lambda: MemoryStore(f"{name}/{uuid.uuid4()}"))
    forget(name)


@pytest.mark.parametrize("check", checks(), ids=str)
def test_local_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    check(lambda: LocalStore(tmp_path / str(uuid.uuid4())))


@pytest.mark.parametrize("check", [check for check in checks() if "writ" in check.name or "put" in check.name], ids=str)
def test_durable_local_writes_keep_the_contract(check: Check, tmp_path: Path) -> None:
    check(lambda: LocalStore(tmp_path / str(uuid.uuid4()), durable=True))
