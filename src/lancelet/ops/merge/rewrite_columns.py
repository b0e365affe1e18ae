"""Merged columns: new values beside the fragments whose rows they belong to, in a file for each fragment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelet.format.arrow import schema_to_arrow
from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.versions import FileVersion
from lancelet.ops.data_files import NewFile, discard
from lancelet.ops.fitting import conformed
from lancelet.ops.merge.plan import MergePlan
from lancelet.ops.merge.rewrite_rows import one_array
from lancelet.query.layouts import Projection
from lancelet.query.reads import reads_at
from lancelet.query.stored import open_fragment
from lancelet.rows.addresses import UInt32s, UInt64s, by_fragment
from lancelet.rows.bitmaps import to_bitmap, write_bitmap
from lancelet.table.changes import with_replaced_columns
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["ColumnsOut", "written_fields"]

_WINDOW = 2**16


def written_fields(plan: MergePlan) -> Schema:
    """The fields that get new values: those of the source but for the key."""
    own = {key.path[0] for key in plan.keys}
    return replace(plan.given, fields=tuple(item for item in plan.given.fields if item.name not in own))


class ColumnsOut:
    """Writes new columns for fragments. As a context manager it removes what it wrote when the block raises."""

    def __init__(self, fields: Schema, version: FileVersion, snapshot: Snapshot, places: Places) -> None:
        self._snapshot, self._places, self._version = snapshot, places, version
        self._schema = fields
        self._arrow = schema_to_arrow(self._schema)
        self._read = Projection(reads_at(self._schema, {(item.name,) for item in self._schema.fields}))
        self.fragments: list[Fragment] = []
        self.offsets: dict[int, bytes] = {}
        self._files: list[DataFile] = []

    def __enter__(self) -> ColumnsOut:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            discard(self._snapshot.store, self._files)

    def update(self, rows: pa.Table, addresses: UInt64s) -> None:
        """Give the rows at some addresses, which ascend, new values; all of a fragment come at once."""
        start = 0
        for number, offsets, _ in by_fragment(addresses):
            place = self._snapshot.manifest.fragments.place_of(number)
            if place is not None:
                self.rewrite(self._snapshot.manifest.fragments[place], rows.slice(start, len(offsets)), offsets)
            start += len(offsets)

    def rewrite(self, fragment: Fragment, rows: pa.Table, offsets: UInt32s) -> Fragment:
        """Give the rows of one fragment at some offsets, which ascend, new values; the fragment with them."""
        rows = rows.select(self._arrow.names).combine_chunks()
        file = NewFile(self._snapshot.store, self._schema, self._version)
        try:
            for batch in self._patched(fragment, rows, offsets):
                file.write(batch)
            made = file.finish()
        except BaseException:
            file.abort()
            raise
        self._files.append(made)
        patched = replace(fragment, files=with_replaced_columns(fragment.files, made))
        self.fragments.append(patched)
        self.offsets[fragment.id] = write_bitmap(to_bitmap(offsets))
        return patched

    def _patched(self, fragment: Fragment, rows: pa.Table, offsets: UInt32s) -> Iterator[pa.RecordBatch]:
        """All physical rows of a fragment, those at some offsets with the values given."""
        stored = open_fragment(self._places, fragment)
        for start in range(0, stored.physical_rows, _WINDOW):
            stop = min(start + _WINDOW, stored.physical_rows)
            old = stored.read(self._read, slice(start, stop))
            first, last = np.searchsorted(offsets, [start, stop])
            places = offsets[first:last].astype(np.int64) - start
            columns = [
                _scattered(one_array(old[name]), one_array(rows.column(name)).slice(first, last - first), places)
                for name in self._arrow.names
            ]
            yield from conformed([pa.record_batch(columns, names=self._arrow.names)], self._arrow)


def _scattered(old: pa.Array, new: pa.Array, places: np.ndarray) -> pa.Array:
    if not len(places):
        return old
    order = np.arange(len(old), dtype=np.int64)
    order[places] = len(old) + np.arange(len(places))
    return pa.concat_arrays([old, new.cast(old.type)]).take(pa.array(order))
