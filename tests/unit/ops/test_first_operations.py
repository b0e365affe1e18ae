"""Writing, deleting, changing columns: what is refused leaves nothing behind, what others do meanwhile counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from lancelet.errors import Conflict as ConflictError
from lancelet.errors import InvalidInput, LanceletError, Unsupported
from lancelet.format import operations as op
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.fields import Field, Schema
from lancelet.format.names import DATA, DELETIONS
from lancelet.format.transaction import Transaction
from lancelet.ops import alter, columns, delete, new_columns, write
from lancelet.ops.data_files import Limits, NewFile
from lancelet.query.request import request_for
from lancelet.query.scan import plan_scan, run_scan, scan
from lancelet.rows.addresses import join
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table.commit import commit
from lancelet.table.outcome import Conflict, committed
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot

KEYS = pa.schema([pa.field("key", pa.int64(), nullable=False), pa.field("text", pa.string())])


def new_store() -> MemoryStore:
    return MemoryStore(f"memory://{uuid4()}")


def rows(first: int, count: int) -> pa.Table:
    return pa.table([range(first, first + count), [f"t{number}" for number in range(count)]], schema=KEYS)


def files(store: Store) -> list[str]:
    return sorted(entry.path for folder in (DATA, DELETIONS) for entry in store.list_from(f"{folder}/"))


@pytest.fixture
def table() -> Snapshot:
    """Twelve rows in fragments of five, five and two."""
    store = new_store()
    committed(write.create(store, rows(0, 12), limits=Limits(rows_per_file=5)))
    return open_snapshot(store)


def keys(store: Store) -> list[int]:
    found: list[int] = scan(open_snapshot(store), ["key"]).read_all()["key"].to_pylist()
    return found


def failing_rows() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows(20, 4).to_batches()
        raise InvalidInput("the source failed")

    return pa.RecordBatchReader.from_batches(KEYS, batches())


REFUSED: dict[str, Callable[[Snapshot], object]] = {
    "append of another type": lambda at: write.append(at, pa.table({"key": ["a"]})),
    "append of an unknown column": lambda at: write.append(at, rows(0, 1).append_column("more", pa.array([1]))),
    "append without a needed column": lambda at: write.append(at, rows(0, 1).select(["text"])),
    "append of a null that is not allowed": lambda at: write.append(
        at, pa.table({"key": pa.array([1, 2, None]), "text": ["a", "b", "c"]}), limits=Limits(rows_per_file=1)
    ),
    "append from a source that fails": lambda at: write.append(at, failing_rows(), limits=Limits(rows_per_file=3)),
    "overwrite in a version that is not written": lambda at: write.overwrite(
        at, rows(0, 1), data_storage_version="legacy"
    ),
    "creation where a table is": lambda at: committed(write.create(at.store, rows(0, 3))),
    "deletion from no fragment": lambda at: delete.delete(at, join(7, [0])),
    "deletion of no row": lambda at: delete.delete(at, join(2, [2])),
    "drop of no column": lambda at: columns.drop_columns(at, ["none"]),
    "drop of all columns": lambda at: columns.drop_columns(at, ["key", "text"]),
    "rename to a name that is taken": lambda at: columns.rename_columns(at, {"key": "text"}),
    "rename to a name with a dot": lambda at: columns.rename_columns(at, {"key": "a.b"}),
    "order of not all columns": lambda at: columns.reorder_columns(at, ["key"]),
    "new column of a name that is taken": lambda at: new_columns.add_columns(at, pa.table({"key": range(12)})),
    "new column with too few values": lambda at: new_columns.add_columns(at, pa.table({"new": range(11)})),
    "new column with too many values": lambda at: new_columns.add_columns(at, pa.table({"new": range(13)})),
    "null column that may not be null": lambda at: new_columns.add_null_columns(
        at, pa.schema([pa.field("new", pa.int8(), nullable=False)])
    ),
    "cast of values that do not fit": lambda at: alter.cast_column(at, "text", pa.int32()),
    "cast of no column": lambda at: alter.cast_column(at, "none", pa.int32()),
    "scan of no column": lambda at: scan(at, ["none"]),
    "scan in batches of none": lambda at: scan(at, batch_size=0),
}


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_leaves_the_table_and_its_files_as_they_were(
    table: Snapshot, request_: Callable[[Snapshot], object]
) -> None:
    before = files(table.store)
    with pytest.raises(LanceletError) as raised:
        request_(table)
    assert isinstance(raised.value, InvalidInput | Unsupported | ConflictError)
    assert files(table.store) == before
    assert open_snapshot(table.store).version == 1


def test_files_have_as_many_rows_as_the_limit_says(table: Snapshot) -> None:
    assert table.manifest.fragments.physical_rows().tolist() == [5, 5, 2]
    committed(write.append(table, rows(12, 7).to_reader(max_chunksize=3), limits=Limits(rows_per_file=4)))
    after = open_snapshot(table.store)
    assert after.manifest.fragments.physical_rows().tolist() == [5, 5, 2, 4, 3]
    assert keys(table.store) == list(range(19))


def test_a_file_that_grows_past_the_limit_in_bytes_is_the_last_of_its_rows(table: Snapshot) -> None:
    limits = Limits(bytes_per_file=1, rows_per_batch=50_000)
    committed(write.append(table, rows(12, 3_000_000), limits=limits))
    counts = open_snapshot(table.store).manifest.fragments.physical_rows()[3:]
    assert len(counts) > 1
    assert counts.sum() == 3_000_000


@pytest.mark.parametrize("size", [1, 3, 100])
def test_batches_are_no_larger_than_asked_and_skip_deleted_rows(table: Snapshot, size: int) -> None:
    committed(delete.delete(table, np.concatenate([join(0, [0, 1]), join(1, range(5)), join(2, [1])])))
    after = open_snapshot(table.store)
    assert after.manifest.fragments.ids().tolist() == [0, 2]
    batches = list(
        run_scan(plan_scan(after, request_for(after, ["_rowaddr", "key"], batch_size=size)), Places.of(after))
    )
    assert all(0 < batch.num_rows <= size for batch in batches)
    assert pa.Table.from_batches(batches).to_pydict() == {
        "_rowaddr": [2, 3, 4, 2 << 32],
        "key": [2, 3, 4, 10],
    }


def test_deletions_of_different_rows_from_one_fragment_are_merged_and_of_the_same_conflict(table: Snapshot) -> None:
    committed(delete.delete(table, join(0, [0])))
    first = open_snapshot(table.store)
    committed(delete.delete(first, join(0, [1])))
    # Row 0 was deleted before: to ask for it once more takes nothing from anybody.
    committed(delete.delete(first, join(0, [0, 3])))
    assert keys(table.store) == [2, 4, *range(5, 12)]
    lost = delete.delete(first, join(0, [1, 2]))
    assert isinstance(lost, Conflict)
    assert lost.retryable
    assert len(files(table.store)) == 3 + 3
    assert keys(table.store) == [2, 4, *range(5, 12)]


def test_rows_appended_meanwhile_make_a_new_column_start_again(table: Snapshot) -> None:
    committed(write.append(table, rows(12, 1)))
    lost = new_columns.add_columns(table, pa.table({"new": range(12)}))
    assert isinstance(lost, Conflict)
    assert lost.retryable
    assert len(files(table.store)) == 3 + 1
    committed(new_columns.add_columns(open_snapshot(table.store), pa.table({"new": range(13)})))
    assert scan(open_snapshot(table.store), ["new"]).read_all()["new"].to_pylist() == list(range(13))


def test_new_columns_without_nulls_keep_a_value_for_deleted_rows(table: Snapshot) -> None:
    committed(delete.delete(table, np.concatenate([join(0, [0, 4]), join(2, [0])])))
    schema = pa.schema([pa.field("new", pa.int64(), nullable=False)])
    committed(new_columns.add_columns(open_snapshot(table.store), pa.table([range(9)], schema=schema)))
    after = open_snapshot(table.store)
    assert scan(after, ["new", "key"]).read_all().to_pydict() == {
        "new": list(range(9)),
        "key": [1, 2, 3, 5, 6, 7, 8, 9, 11],
    }


def test_a_cast_looks_at_live_rows_only_and_gives_a_new_id_in_the_old_place() -> None:
    store = new_store()
    committed(write.create(store, pa.table({"a": ["1", "x", "3"], "b": [1, 2, 3]})))
    committed(delete.delete(open_snapshot(store), [1]))
    committed(alter.cast_column(open_snapshot(store), "a", pa.int32()))
    after = open_snapshot(store)
    assert [(item.name, item.id) for item in after.schema.fields] == [("a", 2), ("b", 1)]
    assert scan(after).read_all().to_pydict() == {"a": [1, 3], "b": [1, 3]}


def test_columns_can_swap_names_and_change_places(table: Snapshot) -> None:
    committed(columns.rename_columns(table, {"key": "text", "text": "key"}))
    committed(columns.reorder_columns(open_snapshot(table.store), ["key", "text"]))
    found = scan(open_snapshot(table.store)).read_all()
    assert found.slice(0, 2).to_pydict() == {"key": ["t0", "t1"], "text": [0, 1]}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_fields_of_one_struct_may_lie_in_several_files_or_in_none(version: str) -> None:
    store = new_store()
    committed(
        write.create(store, pa.table({"s": [{"a": 1, "b": "x"}, {"a": 2, "b": None}]}), data_storage_version=version)
    )
    before = open_snapshot(store)
    old = before.schema.fields[0]
    new = Field("c", "int64", id=3, parent_id=0)
    file = NewFile(
        store, Schema((Field("s", "struct", children=(new,), id=0),)), before.manifest.fragments[0].files[0].version
    )
    file.write(pa.table({"s": [{"c": 7}, {"c": 8}]}).to_batches()[0])
    more = Field("d", "int8", id=4, parent_id=0)
    schema = replace(before.schema, fields=(replace(old, children=(*old.children, new, more)),))
    fragment = before.manifest.fragments[0]
    merge = op.Merge((replace(fragment, files=(*fragment.files, file.finish())),), schema)
    committed(commit(before, Transaction(1, merge)))
    found = scan(open_snapshot(store)).read_all()
    assert found["s"].to_pylist() == [{"a": 1, "b": "x", "c": 7, "d": None}, {"a": 2, "b": None, "c": 8, "d": None}]
    assert scan(open_snapshot(store), ["s.d", "s.c"]).read_all().to_pydict() == {"s.d": [None, None], "s.c": [7, 8]}
    committed(columns.drop_columns(open_snapshot(store), ["s.a", "s.c"]))
    assert scan(open_snapshot(store)).read_all()["s"].to_pylist() == [{"b": "x", "d": None}, {"b": None, "d": None}]


def test_an_overwrite_starts_field_ids_again_unless_the_table_never_reuses_them(table: Snapshot) -> None:
    plan = write.plan_overwrite(table, KEYS)
    assert plan.schema == schema_from_arrow(KEYS)
    assert [item.id for item in plan.schema.fields] == [0, 1]
    careful = replace(table, file=replace(table.file, manifest=replace(table.manifest, max_allocated_field_id=6)))
    assert [item.id for item in write.plan_overwrite(careful, KEYS).schema.fields] == [7, 8]
    assert new_columns.next_field_id(careful) == 7
