"""Lineage that lies in data files: read where a commit builds on it, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lancelet.errors import Corrupt
from lancelet.file import LanceFileWriter
from lancelet.format import operations as op
from lancelet.format.fragments import SPILLED_ROW_IDS, TOMBSTONE, DataFile, Fragment
from lancelet.format.names import DATA, data_file_name
from lancelet.format.row_ids import Range, write_row_ids
from lancelet.format.transaction import Transaction
from lancelet.storage.counting import CountingStore
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table.commit import commit, create_table
from lancelet.table.lineage import row_ids_of, versions_of
from lancelet.table.outcome import committed
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.table.spilled import with_inline_lineage
from lancelet.testing.tables import TWO_COLUMNS, empty_fragment, written_deletion

IDS, CREATED, UPDATED = [5, 3, 9, 0], [1, 1, 7, 2], [2, 8, 8, 3]


def spilled_fragment(store: Store) -> Fragment:
    """Four rows whose ids and versions lie beside them."""
    name = data_file_name()
    rows = pa.table(
        {
            "a": [1, 2, 3, 4],
            "b": [0.5] * 4,
            "_rowid": pa.array(IDS, pa.uint64()),
            "created": pa.array(CREATED, pa.uint64()),
            "updated": pa.array(UPDATED, pa.uint64()),
        }
    )
    with LanceFileWriter(name, _place=(store, f"{DATA}/{name}")) as writer:
        writer.write_batch(rows)
    file = DataFile(name, (0, 1, -3, -4, -5), (0, 1, 2, 3, 4), 2, 2, writer.size_bytes)
    return Fragment(
        0,
        (file,),
        physical_rows=4,
        column_row_ids=b"",
        column_created_at_versions=b"",
        column_last_updated_at_versions=b"",
    )


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Snapshot:
    """A table of that fragment, as compaction leaves it."""
    store = MemoryStore(f"memory://{request.node.name}")
    committed(create_table(store, Transaction(0, op.Overwrite((), TWO_COLUMNS)), stable_row_ids=True))
    before = open_snapshot(store)
    rewritten = op.Rewrite((op.RewriteGroup((), (spilled_fragment(store),)),))
    committed(commit(before, Transaction(1, rewritten)))
    return open_snapshot(store)


def test_ids_and_versions_are_read_from_data_files(table: Snapshot) -> None:
    found = with_inline_lineage(Places.of(table), table.manifest.fragments[0])
    assert row_ids_of(found).tolist() == IDS
    assert versions_of(found.inline_created_at_versions, 4).tolist() == CREATED
    assert versions_of(found.inline_last_updated_at_versions, 4).tolist() == UPDATED
    assert (found.column_row_ids, found.column_created_at_versions) == (None, None)


def test_rows_whose_columns_change_are_changed_now_and_the_others_when_they_were(table: Snapshot) -> None:
    item = table.manifest.fragments[0]
    file = replace(item.files[0], fields=(0, TOMBSTONE, -3, -4, -5))
    changed = replace(item, files=(file, DataFile("b.lance", (1,), (0,), 2, 2, 1)))
    update = op.Update(
        (), (changed,), fields_modified=(1,), mode=op.UpdateMode.REWRITE_COLUMNS, updated_offsets={item.id: (1, 3)}
    )
    committed(commit(table, Transaction(table.version, update)))
    after = open_snapshot(table.store)
    found = with_inline_lineage(Places.of(after), after.manifest.fragments[0])
    assert versions_of(found.inline_last_updated_at_versions, 4).tolist() == [2, 3, 8, 3]
    assert versions_of(found.inline_created_at_versions, 4).tolist() == CREATED


def test_moved_rows_keep_the_version_that_made_them(table: Snapshot) -> None:
    ids = write_row_ids([Range(9, 10), Range(3, 4)])
    moved = replace(empty_fragment(3), inline_row_ids=ids)
    update = op.Update((), (written_deletion(table, 0, [1, 2]),), (moved,))
    affected = {0: np.array([1, 2], np.uint32)}
    committed(commit(table, Transaction(table.version, update), affected_rows=affected))
    new = open_snapshot(table.store).manifest.fragments[1]
    assert row_ids_of(new).tolist() == [9, 3, 0]
    assert versions_of(new.inline_created_at_versions, 3).tolist() == [7, 1, 3]
    assert versions_of(new.inline_last_updated_at_versions, 3).tolist() == [3, 3, 3]


def test_only_commits_that_build_on_lineage_read_it(table: Snapshot) -> None:
    counting = CountingStore(table.store)
    committed(commit(replace(table, store=counting), Transaction(table.version, op.Append((empty_fragment(),)))))
    assert counting.snapshot().requests == {"list": 1, "put": 2, "put_if_absent": 1}


def test_a_column_that_no_file_has_is_corrupt(table: Snapshot) -> None:
    item = table.manifest.fragments[0]
    fields = tuple(TOMBSTONE if number == SPILLED_ROW_IDS else number for number in item.files[0].fields)
    broken = replace(item, files=(replace(item.files[0], fields=fields),))
    with pytest.raises(Corrupt, match="_rowid of fragment 0 is in a data file"):
        with_inline_lineage(Places.of(table), broken)
