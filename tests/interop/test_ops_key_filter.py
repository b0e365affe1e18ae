"""The filter of inserted keys that a merge by primary key leaves in its transaction is bit for bit that of pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import pyarrow as pa
import pytest

from lancelet.format import operations as op
from lancelet.ops.merge.merge import Matched, MergeRequest, merge_insert
from lancelet.ops.write import create
from lancelet.storage import open_store
from lancelet.storage.memory import MemoryStore
from lancelet.table.outcome import committed
from lancelet.table.snapshot import open_snapshot

KEYS: dict[str, list[pa.Array]] = {
    "int64": [pa.array([3, -1, 5, 2**40])],
    "int32": [pa.array([3, -1, 5, 7], pa.int32())],
    "uint32": [pa.array([3, 1, 5, 2**31], pa.uint32())],
    "uint64": [pa.array([3, 1, 5, 2**63], pa.uint64())],
    "string": [pa.array(["", "a", "bc", "d" * 50])],
    "large string": [pa.array(["", "a", "bc", "d" * 50], pa.large_string())],
    "binary": [pa.array([b"", b"\0", b"bc", b"d" * 50])],
    "two": [pa.array([3, -1, 5, 2**40]), pa.array(["", "a", "bc", "d"])],
}


def keyed(columns: list[pa.Array], count: int) -> pa.Table:
    marks = [
        {"lance-schema:unenforced-primary-key": "true", "lance-schema:unenforced-primary-key:position": str(place)}
        for place in range(1, len(columns) + 1)
    ]
    fields = [
        pa.field(f"k{place}", column.type, False, metadata=mark)
        for place, (column, mark) in enumerate(zip(columns, marks, strict=True))
    ]
    arrays = [column.slice(0, count) for column in columns]
    return pa.table([*arrays, pa.array(range(count))], schema=pa.schema([*fields, pa.field("v", pa.int64())]))


def filter_of(store: Any) -> op.KeyFilter | None:
    transaction = open_snapshot(store).transaction()
    assert transaction is not None
    assert isinstance(transaction.operation, op.Update)
    return transaction.operation.inserted_rows


@pytest.mark.parametrize("name", KEYS)
def test_the_filter_of_inserted_keys_is_that_of_pylance(tmp_path: Path, name: str) -> None:
    root = tmp_path / "theirs"
    table, source = keyed(KEYS[name], 1), keyed(KEYS[name], 4)
    lance.write_dataset(table, root)
    dataset: Any = lance.dataset(root)
    dataset.merge_insert().when_matched_update_all().when_not_matched_insert_all().execute(source)
    ours = open_store(tmp_path / "ours")
    committed(create(ours, table))
    merge_insert(open_snapshot(ours), source, MergeRequest(matched=Matched.UPDATE, insert=True))
    assert filter_of(ours) == filter_of(open_store(root))
    assert filter_of(ours) is not None


def test_a_merge_by_another_key_leaves_no_filter() -> None:
    store = MemoryStore(f"memory://{uuid4()}")
    committed(create(store, keyed(KEYS["int64"], 2)))
    merge_insert(open_snapshot(store), keyed(KEYS["int64"], 3), MergeRequest.upsert(["v"]))
    assert filter_of(store) is None
