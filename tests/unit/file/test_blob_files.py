"""Files over blobs: they read like bytes in memory, in few requests."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import InvalidInput
from lancelet.file.blob_file import BlobFile, BlobLocation
from lancelet.storage import Store, open_store
from lancelet.storage.counting import CountingStore
from lancelet.storage.memory import MemoryStore

_FRESH = count()


def _fresh() -> str:
    return f"memory://blob-file-tests-{next(_FRESH)}"


@pytest.fixture
def place() -> str:
    """A store nobody has used."""
    return _fresh()


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(-1, 40)),
        st.tuples(st.just("read1"), st.integers(0, 40)),
        st.tuples(st.just("seek"), st.integers(0, 120)),
        st.tuples(st.just("readinto"), st.integers(0, 40)),
    ),
    max_size=12,
)


def _blob(store: Store, buffer_size: int = 16) -> BlobFile:
    return BlobFile(BlobLocation(store, "a", 3, 100), buffer_size)


@settings(max_examples=60)
@given(_STEPS, st.integers(0, 30), st.booleans())
def test_a_blob_file_reads_like_bytes_in_memory(steps: list[tuple[str, int]], buffer_size: int, mapped: bool) -> None:
    store: Store = MemoryStore(_fresh())
    store.put("a", bytes(range(106)))
    file = _blob(store if mapped else CountingStore(store), buffer_size)
    twin = io.BytesIO(bytes(range(3, 103)))
    for step, number in steps:
        if step == "readinto":
            mine, theirs = bytearray(number), bytearray(number)
            assert (file.readinto(mine), mine) == (twin.readinto(theirs), theirs)
        else:
            assert getattr(file, step)(number) == getattr(twin, step)(number)
        assert file.tell() == twin.tell()


def test_small_reads_share_requests(place: str) -> None:
    store = CountingStore(MemoryStore(place))
    store.put("a", bytes(200))
    file = _blob(store, 50)
    store.reset()
    while file.read(5):
        pass
    assert store.snapshot().requests == {"read": 2}


def test_ranges_leave_the_cursor_alone(place: str) -> None:
    store = open_store(place)
    store.put("a", bytes(range(106)))
    file = _blob(store)
    file.seek(-2, io.SEEK_END)
    assert file.read_ranges([(0, 2), (98, 2), (5, 0), (100, 0)]) == [b"\x03\x04", b"\x65\x66", b"", b""]
    assert file.tell() == 98
    for wrong in ((99, 2), (-1, 2), (0, -1), (101, 0)):
        with pytest.raises(InvalidInput, match="asked of a blob"):
            file.read_range(*wrong)


def test_a_closed_blob_file_still_knows_its_size(place: str) -> None:
    store = open_store(place)
    store.put("a", bytes(200))
    with _blob(store) as file:
        assert (file.readable(), file.seekable(), file.writable()) == (True, True, False)
    assert (file.closed, file.size(), repr(file)) == (True, 100, "<BlobFile size=100>")
    for use in (file.read, file.tell, lambda: file.seek(0), lambda: file.read_range(0, 1)):
        with pytest.raises(InvalidInput, match="closed"):
            use()


@pytest.mark.parametrize("wrong", [lambda file: file.seek(-1), lambda file: file.seek(0, 9)])
def test_a_blob_file_refuses_impossible_seeks(place: str, wrong: Callable[[BlobFile], int]) -> None:
    with pytest.raises(InvalidInput):
        wrong(_blob(open_store(place)))


def test_a_blob_file_travels_to_other_processes(tmp_path: object) -> None:
    store = open_store(str(tmp_path))
    store.put("a", bytes(range(106)))
    copy = pickle.loads(pickle.dumps(_blob(store)))
    assert copy.read() == bytes(range(3, 103))
    assert copy.location.uri.endswith("/a")
