"""Folders of stores keep the contract of stores, and stay within themselves."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import pytest

from lancelet.errors import InvalidInput
from lancelet.storage.counting import CountingStore
from lancelet.storage.folder import folder_of
from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Mappable
from lancelet.testing.storage import Check, checks

NUMBERS = itertools.count()


@pytest.mark.parametrize("check", checks(across_processes=False), ids=str)
def test_a_folder_of_a_memory_store_keeps_the_contract(check: Check) -> None:
    check(lambda: folder_of(MemoryStore(f"memory://folder-{next(NUMBERS)}"), "tree/a b"))


@pytest.mark.parametrize("check", checks(across_processes=False), ids=str)
def test_a_folder_of_a_local_store_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    check(lambda: folder_of(LocalStore(tmp_path / str(next(NUMBERS))), "tree/x"))


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/a", "", "."])
def test_no_path_leads_out_of_the_folder(path: str) -> None:
    store = folder_of(MemoryStore("memory://folder-out"), "tree/x")
    for call in (store.read_all, store.size, lambda name: store.put(name, b""), lambda name: store.delete([name])):
        with pytest.raises(InvalidInput):
            call(path)


def test_a_folder_maps_objects_if_its_store_does() -> None:
    inner = MemoryStore("memory://folder-mapped")
    mapped = folder_of(inner, "f")
    mapped.put("a", b"12")
    assert isinstance(mapped, Mappable)
    assert bytes(mapped.view("a")) == b"12"
    assert not isinstance(folder_of(CountingStore(inner), "f"), Mappable)


def test_a_folder_pickles_with_its_store() -> None:
    store = folder_of(MemoryStore("memory://folder-pickled"), "f")
    store.put("a", b"1")
    copy = pickle.loads(pickle.dumps(store))
    assert (copy.uri, bytes(copy.read_all("a"))) == (store.uri, b"1")
