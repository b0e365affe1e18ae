"""What only the memory store does: it is found by name, within one process."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from lancelet.errors import InvalidInput
from lancelet.storage.memory import MemoryStore, forget


def test_a_name_is_one_place_and_folders_lie_within_it() -> None:
    MemoryStore("memory://shared").put("a/b/c", b"1")
    assert bytes(MemoryStore("memory://shared/a/").read_all("b/c")) == b"1"
    assert [entry.path for entry in MemoryStore("memory://shared/a/b").list_from("")] == ["c"]
    assert list(MemoryStore("memory://share").list_from("")) == []
    forget("memory://shared/a/b")
    assert list(MemoryStore("memory://shared").list_from("")) == []


def test_another_process_sees_an_empty_place() -> None:
    store = MemoryStore("memory://mine")
    store.put("a", b"1")
    assert bytes(pickle.loads(pickle.dumps(store)).read_all("a")) == b"1"
    code = f"import pickle, sys; sys.exit(len(list(pickle.loads({pickle.dumps(store)!r}).list_from(''))))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_three_slashes_mean_the_same_as_two() -> None:
    assert MemoryStore("memory:///abc").uri == "memory://abc"


@pytest.mark.parametrize("uri", ["memory://", "s3://a", "abc"])
def test_a_memory_store_needs_a_name(uri: str) -> None:
    with pytest.raises(InvalidInput):
        MemoryStore(uri)
