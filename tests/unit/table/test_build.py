"""Building manifests: what an operation changes, what it must not, and what it is refused for."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest

from lancelet.errors import InvalidInput, Unsupported
from lancelet.format import operations as op
from lancelet.format import row_ids
from lancelet.format.fields import Field
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.indexes import IndexDetails, IndexMetadata
from lancelet.format.manifest import BasePath, Manifest, WriterVersion
from lancelet.format.transaction import Transaction
from lancelet.rows.bitmaps import BitMap, write_bitmap
from lancelet.table.build import Built, Settings, first_manifest, next_manifest
from lancelet.table.index_upkeep import covered, relevant_indexes
from lancelet.table.lineage import row_ids_of, versions_of
from lancelet.testing.tables import TWO_COLUMNS, empty_fragment

NOW = Settings(timestamp=2, transaction_file="t.txn")


def table(fragments: int = 3, *, stable_row_ids: bool = False) -> Manifest:
    operation = op.Overwrite(tuple(empty_fragment() for _ in range(fragments)), TWO_COLUMNS)
    return first_manifest(Transaction(0, operation), replace(NOW, stable_row_ids=stable_row_ids)).manifest


def after(current: Manifest, operation: op.Operation, indexes: tuple[IndexMetadata, ...] = ()) -> Built:
    return next_manifest(current, indexes, Transaction(current.version, operation), NOW)


def index(number: int, field: int, fragments: list[int], *, name: str = "i", kind: str = "BTree") -> IndexMetadata:
    details = IndexDetails(f"/lance.table.{kind}IndexDetails")
    bitmap = write_bitmap(BitMap(fragments))
    return IndexMetadata(UUID(int=number), name, (field,), number, fragment_bitmap=bitmap, details=details)


def test_reserved_ids_are_given_to_nobody_else_and_come_in_by_their_order() -> None:
    reserved = after(table(), op.ReserveFragments(2)).manifest
    assert reserved.max_fragment_id == 4
    appended = after(reserved, op.Append((empty_fragment(),))).manifest
    groups = (op.RewriteGroup((appended.fragments[0],), (replace(empty_fragment(), id=3),)),)
    rewritten = after(appended, op.Rewrite(groups)).manifest
    assert rewritten.fragments.ids().tolist() == [1, 2, 3, 5]


def test_an_overwrite_keeps_config_and_bases_and_goes_on_counting() -> None:
    current = replace(table(stable_row_ids=True), config={"a": "1"}, base_paths=(BasePath(1, "x"),))
    built = after(current, op.Overwrite((empty_fragment(),), TWO_COLUMNS, {"b": "2"}), (index(1, 0, [0]),))
    manifest = built.manifest
    assert (dict(manifest.config), manifest.base_paths, built.indexes) == (
        {"a": "1", "b": "2"},
        (BasePath(1, "x"),),
        (),
    )
    assert (manifest.fragments.ids().tolist(), manifest.next_row_id) == ([3], 40)


def test_bases_without_numbers_get_the_next_ones() -> None:
    current = replace(table(), base_paths=(BasePath(4, "x"),))
    built = after(current, op.UpdateBases((BasePath(0, "y", name="n"), BasePath(0, "z"))))
    assert [(base.id, base.path) for base in built.manifest.base_paths] == [(4, "x"), (5, "y"), (6, "z")]
    with pytest.raises(InvalidInput, match="path 'x'"):
        after(current, op.UpdateBases((BasePath(0, "x"),)))


def test_a_restored_version_gives_no_id_twice() -> None:
    old = table(1, stable_row_ids=True)
    current = replace(old, version=9, max_fragment_id=7, next_row_id=70, branch="b", base_paths=(BasePath(1, "x"),))
    restored = next_manifest(current, (), Transaction(9, op.Restore(1)), NOW, restored=Built(old)).manifest
    assert restored.version == 10
    assert (restored.max_fragment_id, restored.next_row_id, restored.branch) == (7, 70, "b")
    assert restored.base_paths == current.base_paths
    assert restored.fragments == old.fragments


def test_rows_that_moved_keep_ids_and_the_version_they_were_made_in() -> None:
    current = after(table(1, stable_row_ids=True), op.Append((empty_fragment(),))).manifest
    kept = row_ids.write_row_ids([row_ids.PlainArray(row_ids.PackedArray.of(np.array([15, 3], np.uint64)))])
    moved = replace(empty_fragment(3), inline_row_ids=kept)
    changed = tuple(current.fragments)
    manifest = after(current, op.Update((), changed, (moved,))).manifest
    item = manifest.fragments[2]
    assert row_ids_of(item).tolist() == [15, 3, 20]
    assert versions_of(item.inline_created_at_versions, 3).tolist() == [2, 1, 3]
    assert versions_of(item.inline_last_updated_at_versions, 3).tolist() == [3, 3, 3]
    assert manifest.next_row_id == 21


def test_indexes_go_on_covering_rows_that_moved_unless_their_values_changed() -> None:
    current = table(2, stable_row_ids=True)
    moved = replace(empty_fragment(2), inline_row_ids=row_ids.write_row_ids([row_ids.Range(0, 2)]))
    operation = op.Update((), (current.fragments[0],), (moved,), fields_for_preserving_frag_bitmap=(1,))
    indexes = (index(1, 0, [0, 1], name="i"), index(2, 1, [0, 1], name="j"), index(3, 0, [1], name="k"))
    found = {item.name: list(covered(item) or ()) for item in after(current, operation, indexes).indexes}
    assert found == {"i": [0, 1, 2], "j": [0, 1], "k": [1]}


def test_an_index_that_covers_nothing_stays_only_where_it_can_be_built_again() -> None:
    fragments = Fragments([replace(empty_fragment(), id=5)])
    indexes = (
        index(1, 0, [0], name="alone"),
        index(2, 0, [0], name="vector", kind="Vector"),
        index(3, 0, [0], name="old and dead"),
        index(4, 0, [1], name="old and dead"),
        index(5, 0, [0], name="one lives"),
        index(6, 0, [5], name="one lives"),
        index(7, 9, [5], name="its field is gone"),
    )
    assert [item.uuid.int for item in relevant_indexes(indexes, TWO_COLUMNS, fragments)] == [1, 3, 6]


def test_metadata_is_changed_where_it_belongs() -> None:
    operation = op.UpdateConfig(
        table_metadata=op.MapUpdate((("t", "1"),)),
        schema_metadata=op.MapUpdate((("s", "1"),)),
        field_metadata={1: op.MapUpdate((("f", "1"),))},
    )
    manifest = after(table(), operation).manifest
    assert dict(manifest.table_metadata) == {"t": "1"}
    assert dict(manifest.schema.metadata) == {"s": "1"}
    assert [dict(field.metadata) for field in manifest.schema.fields] == [{}, {"f": "1"}]
    # A projection has no room for the schema's metadata, so it keeps what there is.
    projected = after(manifest, op.Project(replace(manifest.schema, metadata={}))).manifest
    assert dict(projected.schema.metadata) == {"s": "1"}


def test_dropped_columns_take_files_along_that_hold_nothing_else_but_row_ids() -> None:
    files = (DataFile("a", (0,), (0,)), DataFile("b", (1,), (0,)), DataFile("c", (-3, -4), (0, 1)))
    current = replace(table(1), fragments=Fragments([Fragment(0, files, physical_rows=1)]))
    schema = replace(TWO_COLUMNS, fields=TWO_COLUMNS.fields[:1])
    assert [file.path for file in after(current, op.Project(schema)).manifest.fragments[0].files] == ["a", "c"]


def test_field_ids_that_are_never_used_again_stay_counted() -> None:
    current = replace(table(), max_allocated_field_id=7)
    wider = replace(TWO_COLUMNS, fields=(*TWO_COLUMNS.fields, Field("c", "int8", id=8)))
    assert after(current, op.Merge(tuple(current.fragments), wider)).manifest.max_allocated_field_id == 8
    assert after(current, op.Project(TWO_COLUMNS)).manifest.max_allocated_field_id == 7


def test_what_newer_writers_put_into_a_manifest_survives() -> None:
    current = replace(
        table(), unknown=b"\xda\x3e\x01x", clustering=(b"\x08\x01",), writer_version=WriterVersion("l", "9")
    )
    manifest = after(current, op.Append((empty_fragment(),))).manifest
    assert (manifest.unknown, manifest.clustering) == (current.unknown, current.clustering)
    assert manifest.writer_version is not None
    assert manifest.writer_version.library == "lancelet"


REFUSED = {
    "a fragment that is not there": (op.Delete((), (9,)), InvalidInput, "fragment 9"),
    "an update of one that is not there": (op.Update((9,)), InvalidInput, "fragment 9"),
    "values for one that is not there": (
        op.DataReplacement((op.DataReplacementGroup(9, DataFile("x", (0,), (0,))),)),
        InvalidInput,
        "fragment 9",
    ),
    "a merge that loses a fragment": (op.Merge((), TWO_COLUMNS), InvalidInput, "leaves out fragment 0"),
    "a merge that changes rows": (
        op.Merge(tuple(replace(empty_fragment(7), id=number) for number in range(3)), TWO_COLUMNS),
        InvalidInput,
        "7 rows, expected 10",
    ),
    "metadata of no field": (op.UpdateConfig(field_metadata={7: op.MapUpdate()}), InvalidInput, "field 7"),
    "bases for a table that is there": (
        op.Overwrite((), TWO_COLUMNS, initial_bases=(BasePath(1, "x"),)),
        InvalidInput,
        "new table only",
    ),
    "a restore of nothing": (op.Restore(1), InvalidInput, "not given"),
    "the write-ahead log": (op.UpdateMemWalState((b"x",)), Unsupported, "UpdateMemWalState"),
    "an update of the write-ahead log": (op.Update(compacted_sstables=(b"x",)), Unsupported, "Update"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_carried_out_is_refused(case: str) -> None:
    operation, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        after(table(), operation)


def test_only_an_overwrite_makes_a_table() -> None:
    with pytest.raises(InvalidInput, match="begins with Overwrite"):
        first_manifest(Transaction(0, op.Append(())), NOW)
