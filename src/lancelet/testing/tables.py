"""Tables for tests: of metadata alone, where nobody reads rows, or with files of real rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pyarrow as pa

from lancelet.file import LanceFileWriter
from lancelet.format import operations as op
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import DataFile, DeletionFile, DeletionKind, Fragment
from lancelet.format.names import DATA, data_file_name, deletion_path
from lancelet.format.transaction import Transaction
from lancelet.rows.deletion_files import write_deletions
from lancelet.rows.deletions import DeletionVector
from lancelet.storage.store import Store
from lancelet.table.commit import commit, create_table
from lancelet.table.conflicts import AffectedRows
from lancelet.table.outcome import Committed, Outcome, committed
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = [
    "TWO_COLUMNS",
    "carry_out",
    "empty_fragment",
    "make_table",
    "write_fragment",
    "write_table",
    "written_deletion",
]

#: The schema of tables without rows.
TWO_COLUMNS = Schema((Field("a", "int64"), Field("b", "double"))).with_ids()


def empty_fragment(rows: int = 10, *, file: str = "") -> Fragment:
    """A fragment of two columns, in a file that is not there; of a new name unless one is given."""
    return Fragment(0, (DataFile(file or data_file_name(), (0, 1), (0, 1), 2, 2, 1),), physical_rows=rows)


def make_table(
    store: Store, fragments: int = 3, *, stable_row_ids: bool = False, files: Sequence[str] = ()
) -> Snapshot:
    """A new table of fragments without files; ``files`` names those of the first ones."""
    names = [*files, *[""] * (fragments - len(files))]
    operation = op.Overwrite(tuple(empty_fragment(file=name) for name in names), TWO_COLUMNS)
    committed(create_table(store, Transaction(0, operation), stable_row_ids=stable_row_ids))
    return open_snapshot(store)


def carry_out(
    store: Store, operation: op.Operation, *, version: int | None = None, affected_rows: AffectedRows | None = None
) -> Outcome:
    """Commit an operation that was worked out from a version; from the newest if none is given."""
    snapshot = open_snapshot(store, version=version)
    return commit(snapshot, Transaction(snapshot.version, operation), affected_rows=affected_rows)


def write_fragment(store: Store, rows: pa.Table, *, field_ids: tuple[int, ...] | None = None) -> Fragment:
    """A data file of rows of flat columns, and the fragment that it makes."""
    name = data_file_name()
    with LanceFileWriter(name, _place=(store, f"{DATA}/{name}")) as writer:
        writer.write_batch(rows)
    columns = tuple(range(rows.num_columns))
    file = DataFile(name, field_ids or columns, columns, 2, 2, writer.size_bytes)
    return Fragment(0, (file,), physical_rows=rows.num_rows)


def write_table(store: Store, *parts: pa.Table, stable_row_ids: bool = False) -> Committed:
    """A new table with a fragment for each part."""
    schema = schema_from_arrow(parts[0].schema).with_ids()
    operation = op.Overwrite(tuple(write_fragment(store, part) for part in parts), schema)
    return committed(create_table(store, Transaction(0, operation), stable_row_ids=stable_row_ids))


def written_deletion(snapshot: Snapshot, fragment_id: int, offsets: list[int]) -> Fragment:
    """The fragment of a snapshot with some rows deleted by a new file, whatever was deleted before."""
    place = snapshot.manifest.fragments.place_of(fragment_id)
    if place is None:
        raise KeyError(fragment_id)
    kind, data = write_deletions(DeletionVector(np.array(offsets, np.uint32)))
    file = DeletionFile(DeletionKind(kind), snapshot.version, uuid4().int >> 64, len(set(offsets)))
    snapshot.store.put(deletion_path(fragment_id, file), data)
    return replace(snapshot.manifest.fragments[place], deletion_file=file)
