"""The stores of this package keep the contract that they ship a suite for."""

from __future__ import annotations

import uuid

import pytest

from lancelet.storage.memory import MemoryStore, forget
from lancelet.testing.storage import Check, checks


@pytest.mark.parametrize("check", checks(across_processes=False), ids=str)
def test_memory_keeps_the_contract(check: Check) -> None:
    name = f"memory://{uuid.uuid4()}"
    check(lambda: MemoryStore(f"{name}/{uuid.uuid4()}"))
    forget(name)
