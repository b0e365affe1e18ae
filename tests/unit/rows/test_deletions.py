"""Deletion vectors against a plain set of deleted rows, and their files against damage."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancelet.errors import Corrupt, InvalidInput, LanceletError
from lancelet.format.fragments import DeletionKind
from lancelet.rows.deletion_files import BITMAP_FROM, read_deletions, write_deletions
from lancelet.rows.deletions import NO_DELETIONS, DeletionVector, union

ROWS = 60
DELETED = st.lists(st.integers(0, ROWS - 1), max_size=ROWS)
BOUND = st.integers(0, ROWS)


@given(DELETED, BOUND, BOUND)
def test_a_range_shows_the_rows_that_are_left(deleted: list[int], begin: int, end: int) -> None:
    vector = DeletionVector(deleted)
    live = [row for row in range(begin, end) if row not in deleted]
    assert vector.within(begin, end).tolist() == sorted({row for row in deleted if begin <= row < end})
    assert vector.live_offsets(begin, end).tolist() == live
    assert vector.live_count(begin, end) == len(live)
    begins, ends = vector.live_ranges(begin, end)
    assert [row for low, high in zip(begins, ends, strict=True) for row in range(low, high)] == live
    mask = vector.live_mask(begin, end)
    assert mask is None or [begin + place for place, kept in enumerate(mask) if kept] == live


@given(DELETED)
def test_logical_and_physical_offsets_lead_to_each_other(deleted: list[int]) -> None:
    vector = DeletionVector(deleted)
    live = [row for row in range(ROWS) if row not in deleted]
    assert vector.to_physical(range(len(live))).tolist() == live
    assert vector.to_logical(live).tolist() == list(range(len(live)))
    assert vector.contains(range(ROWS)).tolist() == [row in deleted for row in range(ROWS)]


@given(st.lists(DELETED, max_size=4))
def test_a_union_deletes_what_any_of_them_deletes(parts: list[list[int]]) -> None:
    merged = union(DeletionVector(part) for part in parts)
    assert merged == DeletionVector(sorted({row for part in parts for row in part}))
    assert hash(merged) == hash(pickle.loads(pickle.dumps(merged)))


def test_offsets_past_any_row_are_simply_not_deleted() -> None:
    assert DeletionVector([2**32 - 1]).contains([2**32 - 1, 2**32, 2**63]).tolist() == [True, False, False]
    assert NO_DELETIONS.contains([0]).tolist() == [False]


@pytest.mark.parametrize("rows", [[-1], [2**32], [0.5]])
def test_a_vector_of_what_is_no_row_number_is_refused(rows: list[float]) -> None:
    with pytest.raises(InvalidInput):
        DeletionVector(rows)


@pytest.mark.parametrize("count", [1, 2, 100, BITMAP_FROM - 1, BITMAP_FROM, BITMAP_FROM + 1, 70_000])
@pytest.mark.parametrize("shape", ["range", "scattered"])
def test_files_give_back_the_vector_in_the_kind_for_its_size(count: int, shape: str) -> None:
    rows = np.arange(count) + 7 if shape == "range" else np.random.default_rng(count).permutation(200_000)[:count]
    vector = DeletionVector(rows)
    kind, data = write_deletions(vector)
    assert kind is (DeletionKind.BITMAP if count >= BITMAP_FROM else DeletionKind.ARROW_ARRAY)
    assert read_deletions(data, kind, physical_rows=200_000, num_deleted_rows=count) == vector
    with pytest.raises(Corrupt, match=r"the fragment has 7 rows \[uri=there, fragment=3\]"):
        read_deletions(data, kind, physical_rows=7, uri="there", fragment=3)
    with pytest.raises(Corrupt, match=f"lists {count} rows, the manifest says {count + 1}"):
        read_deletions(data, kind, num_deleted_rows=count + 1)


def arrow_file(*batches: pa.RecordBatch) -> bytes:
    """An Arrow file of some batches."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


ROW_IDS = pa.record_batch([pa.array([3, 1], pa.uint32())], names=["row_id"])


def test_an_array_may_be_in_any_order_and_uncompressed() -> None:
    assert read_deletions(arrow_file(ROW_IDS), DeletionKind.ARROW_ARRAY).rows.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("data", "kind", "what"),
    [
        (b"", DeletionKind.ARROW_ARRAY, "no Arrow file"),
        (b"", DeletionKind.BITMAP, "is empty"),
        (b"ARROW1\0\0" * 4, DeletionKind.ARROW_ARRAY, "no Arrow file"),
        (arrow_file(ROW_IDS).replace(b"row_id", b"row_\xff\xff"), DeletionKind.ARROW_ARRAY, "no Arrow file"),
        (arrow_file(ROW_IDS, ROW_IDS), DeletionKind.ARROW_ARRAY, "2 batches"),
        (arrow_file(pa.record_batch([[1]], names=["row_id"])), DeletionKind.ARROW_ARRAY, "expected row_id: uint32"),
        (
            arrow_file(pa.record_batch([pa.array([1], pa.uint32())], names=["row"])),
            DeletionKind.ARROW_ARRAY,
            "expected row_id: uint32",
        ),
        (
            arrow_file(pa.record_batch([pa.array([1, None], pa.uint32())], names=["row_id"])),
            DeletionKind.ARROW_ARRAY,
            "1 nulls",
        ),
        (b"\x3a\x30\0\0\xff\xff\xff\x7f", DeletionKind.BITMAP, "no Roaring bitmap"),
        (BitMap(range(2**32)).serialize(), DeletionKind.BITMAP, "row 4294967295 is listed as deleted"),
    ],
)
def test_files_that_are_something_else_are_corrupt(data: bytes, kind: DeletionKind, what: str) -> None:
    with pytest.raises(Corrupt, match=what):
        read_deletions(data, kind, physical_rows=10)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_small_file_that_unfolds_to_gigabytes_is_refused_before_it_does(compression: str) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.array(np.zeros(2_000_000, np.uint32))], schema=pa.schema({"row_id": pa.uint32()}))
    with pa.ipc.new_file(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    stored = bytes(sink.getvalue())
    with pytest.raises(Corrupt, match="lists 2000000 rows, the fragment has 10 rows"):
        read_deletions(stored, DeletionKind.ARROW_ARRAY, physical_rows=10)
    few = stored.replace((2_000_000).to_bytes(8, "little"), (10).to_bytes(8, "little"))
    assert few != stored
    with pytest.raises(Corrupt, match="a buffer of 8000000 bytes for 10 rows"):
        read_deletions(few, DeletionKind.ARROW_ARRAY, physical_rows=10)
    assert read_deletions(stored, DeletionKind.ARROW_ARRAY, physical_rows=2_000_000).rows.tolist() == [0]


@given(st.data())
def test_damaged_files_give_rows_in_bounds_or_a_typed_error(data: st.DataObject) -> None:
    count = data.draw(st.sampled_from([3, 600, BITMAP_FROM]))
    kind, stored = write_deletions(DeletionVector(np.arange(count) * 3))
    damaged = bytearray(stored)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(len(damaged) - 20, len(damaged))) :]
    try:
        vector = read_deletions(bytes(damaged), kind, physical_rows=20_000)
    except LanceletError:
        return
    assert len(vector) <= 20_000
    assert not len(vector) or int(vector.rows[-1]) < 20_000
