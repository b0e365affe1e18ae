"""Differences between versions: what each operation leaves, told from the manifests alone."""

from __future__ import annotations

import itertools
from dataclasses import replace
from uuid import UUID

import pytest

from lancelet.format import operations as op
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import DataFile
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import BasePath
from lancelet.format.operations import Operation
from lancelet.storage.counting import CountingStore
from lancelet.storage.memory import MemoryStore
from lancelet.table.branches import create_branch
from lancelet.table.diff import Difference, data_files_changed, diff
from lancelet.table.outcome import committed
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.tables import TWO_COLUMNS, carry_out, empty_fragment, make_table, written_deletion

NUMBERS = itertools.count()


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore(f"memory://diff-{next(NUMBERS)}")
    make_table(made, 3)
    return made


def after(store: MemoryStore, *operations: Operation) -> Difference:
    for operation in operations:
        committed(carry_out(store, operation))
    return diff(open_snapshot(store, version=1), open_snapshot(store))


def test_a_version_is_no_different_from_itself(store: MemoryStore) -> None:
    found = after(store)
    assert not found
    assert str(found) == "version 1 -> 1: no difference"


def test_rows_that_come_and_go_show_in_fragments(store: MemoryStore) -> None:
    changed = written_deletion(open_snapshot(store), 1, [0, 4])
    found = after(store, op.Delete((changed,), (2,)), op.Append((empty_fragment(25),)))
    assert [item.id for item in found.fragments.added] == [3]
    assert [item.id for item in found.fragments.removed] == [2]
    assert [(one.id, one.num_rows, other.num_rows) for one, other in found.fragments.changed] == [(1, 10, 8)]
    assert found.rows == 25 - 10 - 2
    assert str(found) == "version 1 -> 3: rows +13, fragments +1 -1 ~1"


def test_the_way_back_is_the_opposite(store: MemoryStore) -> None:
    there = after(store, op.Append((empty_fragment(),)), op.UpdateConfig(op.MapUpdate((("k", "v"),))))
    back = diff(open_snapshot(store), open_snapshot(store, version=1))
    assert (back.fragments.removed, back.config.removed) == (there.fragments.added, there.config.added)
    assert back.rows == -(there.rows or 0) == -10


def test_columns_are_told_apart_by_their_ids(store: MemoryStore) -> None:
    first, second = TWO_COLUMNS.fields
    renamed, added = replace(first, name="z"), Field("c", "int32", id=7)
    fragments = tuple(
        replace(item, files=(*item.files, DataFile("new.lance", (7,), (0,), 2, 2, 9)))
        for item in open_snapshot(store).manifest.fragments
    )
    found = after(store, op.Merge(fragments, Schema((renamed, second, added))), op.Project(Schema((added, renamed))))
    assert [item.name for item in found.fields.added] == ["c"]
    assert [item.name for item in found.fields.removed] == ["b"]
    assert [(one.name, other.name) for one, other in found.fields.changed] == [("a", "z")]
    for one, other in found.fragments.changed:
        files = data_files_changed(one, other)
        assert [item.path for item in files.added] == ["new.lance"]
        assert not files.removed


def test_a_field_within_another_is_told_of_alone() -> None:
    store = MemoryStore(f"memory://diff-{next(NUMBERS)}")
    inner = Field("x", "int32", id=1, parent_id=0)
    outer = Field("s", "struct", children=(inner,), id=0)
    from_schema, to_schema = Schema((outer,)), Schema((replace(outer, children=(replace(inner, nullable=False),)),))
    make_table(store)
    committed(carry_out(store, op.Overwrite((), from_schema)))
    committed(carry_out(store, op.Project(to_schema)))
    found = diff(open_snapshot(store, version=2), open_snapshot(store))
    assert [(one.name, one.nullable, other.nullable) for one, other in found.fields.changed] == [("x", True, False)]


def test_settings_indexes_and_base_paths_are_told_of(store: MemoryStore) -> None:
    index = IndexMetadata(UUID(int=5), "i", (0,), dataset_version=1)
    settings = op.UpdateConfig(
        config=op.MapUpdate((("k", "v"),)),
        table_metadata=op.MapUpdate((("t", "1"),)),
        schema_metadata=op.MapUpdate((("s", "2"),)),
        field_metadata={0: op.MapUpdate((("f", "3"),))},
    )
    found = after(store, settings, op.CreateIndex((index,)), op.UpdateBases((BasePath(0, "memory://elsewhere"),)))
    assert (found.config.added, found.table_metadata.added) == ((("k", "v"),), (("t", "1"),))
    assert found.schema_metadata.added == (("s", "2"),)
    assert [other.metadata for _, other in found.fields.changed] == [{"f": "3"}]
    assert [item.name for item in found.indexes.added] == ["i"]
    assert [item.path for item in found.base_paths.added] == ["memory://elsewhere"]
    more = after(store, op.UpdateConfig(op.MapUpdate((("k", "w"),))), op.CreateIndex((), (index,)))
    assert more.config.added == (("k", "w"),)
    assert not more.indexes
    assert found.rows == 0


def test_a_branch_is_compared_with_where_it_came_from(store: MemoryStore) -> None:
    branch = create_branch(open_snapshot(store), "b")
    found = diff(open_snapshot(store), branch)
    assert (found.before, found.after, found.rows) == (1, 1, 0)
    assert all(one.files[0].base_id is None and other.files[0].base_id == 0 for one, other in found.fragments.changed)


def test_comparing_reads_nothing(store: MemoryStore) -> None:
    committed(carry_out(store, op.Append((empty_fragment(),))))
    counting = CountingStore(store)
    one, other = open_snapshot(counting, version=1), open_snapshot(counting)
    before = counting.snapshot()
    assert diff(one, other)
    assert counting.snapshot() == before
