"""Stored rows of one fragment: its files opened when they are needed, its deletions, and the values of some rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from lancelet.encodings.page import Rows
from lancelet.errors import Corrupt
from lancelet.file.data_file import DataFile as OpenFile
from lancelet.file.legacy import LegacyFile
from lancelet.file.reading import read_columns
from lancelet.format.fields import Schema
from lancelet.format.fragments import Fragment
from lancelet.query.files import open_data_file
from lancelet.query.layouts import Projection, column_of
from lancelet.query.reads import NO_READS
from lancelet.query.request import CREATED_AT, LAST_UPDATED_AT, ROW_ID
from lancelet.rows.deletions import NO_DELETIONS, DeletionVector
from lancelet.rows.segments import read_sequence
from lancelet.rows.sequences import RowIdSequence
from lancelet.rows.versions import VersionSequence, read_version_sequence
from lancelet.storage.objects import process_objects
from lancelet.table.deletions import deletions_of
from lancelet.table.paths import Places

__all__ = ["StoredFragment", "count_of", "open_fragment"]

_NO_FIELDS = Schema(())
_INLINE = {
    ROW_ID: "inline_row_ids",
    CREATED_AT: "inline_created_at_versions",
    LAST_UPDATED_AT: "inline_last_updated_at_versions",
}


class StoredFragment:
    """A fragment of which rows are read. What it learns stays true: it may be kept and shared by threads."""

    __slots__ = ("__dict__", "_files", "_places", "fragment", "physical_rows")

    def __init__(self, places: Places, fragment: Fragment) -> None:
        self._places = places
        self.fragment = fragment
        self._files: list[OpenFile | LegacyFile | None] = [None] * len(fragment.files)
        self.physical_rows: int = fragment.physical_rows or 0
        if fragment.physical_rows is None:
            self.physical_rows = self._counted()

    def __repr__(self) -> str:
        return f"StoredFragment({self.fragment.id}, {self.physical_rows} rows)"

    @cached_property
    def deleted(self) -> DeletionVector:
        """The rows that are deleted."""
        item = self.fragment.deletion_file
        if item is None:
            return NO_DELETIONS
        store, path = self._places.deletion_file(self.fragment.id, item)

        def make() -> tuple[DeletionVector, int]:
            found = deletions_of(self._places, self.fragment, physical_rows=self.physical_rows)
            return found, 3 * found.nbytes

        return process_objects().get((store.uri, path, "deletions"), make)

    @property
    def live_rows(self) -> int:
        """Rows that are not deleted."""
        return self.physical_rows - len(self.deleted)

    @cached_property
    def row_ids(self) -> RowIdSequence | None:
        """The stable ids of the rows, where the manifest holds them."""
        data = self.fragment.inline_row_ids
        return None if data is None else read_sequence(data, rows=self.physical_rows)

    @cached_property
    def all_row_ids(self) -> RowIdSequence:
        """The stable ids of the rows, wherever they are kept; Corrupt where they are nowhere."""
        if self.row_ids is not None:
            return self.row_ids
        column = self.read_spilled(ROW_ID, slice(0, self.physical_rows), Projection(NO_READS))
        if column is None:
            raise self.without_row_ids()
        return RowIdSequence.from_ids(np.asarray(column.combine_chunks()))

    def without_row_ids(self) -> Corrupt:
        """The error for a fragment without row ids in a table whose rows have them."""
        number = self.fragment.id
        return Corrupt(f"fragment {number} does not say which ids its rows have", fragment=number)

    @cached_property
    def created_at(self) -> VersionSequence | None:
        """The versions that made the rows, where the manifest holds them."""
        data = self.fragment.inline_created_at_versions
        return None if data is None else read_version_sequence(data, rows=self.physical_rows)

    @cached_property
    def last_updated_at(self) -> VersionSequence | None:
        """The versions that last changed the rows, where the manifest holds them."""
        data = self.fragment.inline_last_updated_at_versions
        return None if data is None else read_version_sequence(data, rows=self.physical_rows)

    def file(self, place: int, fields: Schema = _NO_FIELDS) -> OpenFile | LegacyFile:
        """One of the files; Corrupt where it has not as many rows as the fragment.

        A file of version 0.1 is opened anew for the ``fields`` to be read: its own schema may be older than they are.
        """
        found = self._files[place]
        if found is None:
            found = open_data_file(self._places, self.fragment.files[place], fields)
            if found.num_rows != self.physical_rows:
                text = f"the file has {found.num_rows} rows, its fragment {self.physical_rows}"
                raise Corrupt(text, uri=found.uri, fragment=self.fragment.id)
            if isinstance(found, OpenFile):
                self._files[place] = found
        return found

    def open_files(self, projection: Projection) -> None:
        """Open what a projection will read, and read which rows are deleted."""
        for part in projection.layout(self.fragment).parts:
            if not part.legacy:
                self.file(part.place)
        len(self.deleted)

    def read(self, projection: Projection, rows: Rows) -> dict[str, pa.ChunkedArray]:
        """The stored columns of some physical rows: a range, or ascending numbers."""
        layout = projection.layout(self.fragment)
        found = []
        for part in layout.parts:
            fields = Schema(part.fields) if part.legacy else _NO_FIELDS
            file = self.file(part.place, fields)
            shapes = part.shapes if projection.keys is None else projection.keys.of(file, part.shapes)
            found.append(read_columns(file, shapes, rows))
        columns = {}
        for top, sources, whole in zip(projection.reads.schema.fields, layout.sources, layout.whole, strict=True):
            if whole:
                number, at = sources[0]
                columns[top.name] = found[number][at]
            else:
                pieces = [(layout.parts[number].fields[at], found[number][at]) for number, at in sources]
                columns[top.name] = column_of(top, pieces, count_of(rows))
        return columns

    def read_spilled(self, name: str, rows: Rows, projection: Projection) -> pa.ChunkedArray | None:
        """A column of row ids or versions that lies in a data file; None where the manifest has the values.

        A column of versions stays in its file when all rows of the fragment are changed, and tells no truth any more.
        """
        if getattr(self.fragment, _INLINE[name]) is not None:
            return None
        found = projection.layout(self.fragment).spilled.get(name)
        return None if found is None else read_columns(self.file(found[0]), [found[1]], rows)[0]

    def _counted(self) -> int:
        """The rows of the first file, where an old manifest does not say how many there are."""
        if not self.fragment.files:
            number = self.fragment.id
            raise Corrupt(f"fragment {number} has no files and does not say how many rows it has", fragment=number)
        return open_data_file(self._places, self.fragment.files[0], _NO_FIELDS).num_rows


def count_of(rows: Rows) -> int:
    """How many rows are asked for."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def open_fragment(places: Places, fragment: Fragment) -> StoredFragment:
    """A fragment to read rows of; nothing is read yet unless an old manifest does not say how many rows it has.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://stored"), pa.table({"x": [1, 2]}))
    >>> table = open_snapshot(open_store("memory://stored"))
    >>> open_fragment(Places.of(table), table.manifest.fragments[0]).live_rows
    2
    """
    return StoredFragment(places, fragment)
