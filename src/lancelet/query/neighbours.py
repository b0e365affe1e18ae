"""Small fragments that lie side by side and are alike, read as if they were one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
import pyarrow as pa

from lancelet.encodings.page import Rows
from lancelet.errors import Corrupt, LanceletError
from lancelet.file.data_file import DataFile as OpenFile
from lancelet.file.joined import join_files
from lancelet.file.legacy import LegacyFile
from lancelet.format.fields import Field, Schema
from lancelet.format.versions import FileVersion
from lancelet.query.blob_outputs import holds_blobs
from lancelet.query.files import kept_data_file
from lancelet.query.layouts import Projection
from lancelet.query.plan import Piece
from lancelet.query.selection import Selection
from lancelet.query.stored import StoredFragment
from lancelet.rows.deletions import NO_DELETIONS, DeletionVector
from lancelet.table.paths import Places

__all__ = ["JoinedFragments", "can_be_joined", "joined"]

#: What is worth joining, in bytes of a file, and how much is read at once.
_SMALL, _MOST_BYTES = 64 * 2**10, 4 * 2**20
#: Fragments of the first group, so that there soon is something to do, and of the largest.
_FIRST, _MOST = 16, 256
_NO_FIELDS = Schema(())


class JoinedFragments(StoredFragment):
    """Neighbours whose files hold the same columns: rows are counted from the start of the first."""

    __slots__ = ("begins", "members")

    def __init__(self, places: Places, members: Sequence[StoredFragment]) -> None:
        super().__init__(places, members[0].fragment)
        self.members = tuple(members)
        #: The first row of each member, and behind them the number of all rows.
        self.begins = [0, *accumulate(member.physical_rows for member in members)]
        self.physical_rows = self.begins[-1]

    @cached_property
    def deleted(self) -> DeletionVector:
        """The rows that are deleted in any of them."""
        rows = [
            member.deleted.rows.astype(np.uint64) + np.uint64(begin)
            for member, begin in zip(self.members, self.begins, strict=False)
            if member.fragment.deletion_file is not None
        ]
        return DeletionVector(np.concatenate(rows)) if rows else NO_DELETIONS

    def file(self, place: int, fields: Schema = _NO_FIELDS) -> OpenFile | LegacyFile:  # noqa: ARG002
        """The files at one place of all members as one file."""
        found = self._files[place]
        if found is None:
            files, contents = [], []
            for member in self.members:
                file, content = kept_data_file(self._places, member.fragment.files[place])
                if file.num_rows != member.physical_rows:
                    raise Corrupt(f"the file has {file.num_rows} rows, its fragment {member.physical_rows}")
                files.append(file)
                contents.append(content)
            found = self._files[place] = join_files(files, contents)
        return found

    def read(self, projection: Projection, rows: Rows) -> dict[str, pa.ChunkedArray]:
        """The stored columns of some rows; each member is read by itself where they cannot be read as one."""
        try:
            return super().read(projection, rows)
        except LanceletError:
            # One of the members says what is wrong, and where.
            found = [member.read(projection, own) for member, own in self._shared(rows)]
            if not found:
                raise
            return {
                name: pa.chunked_array([chunk for each in found for chunk in each[name].chunks], column.type)
                for name, column in found[0].items()
            }

    def shares(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The fragments that some of the rows from ``start`` to ``stop`` belong to, and how many of the rows."""
        for member, begin, end in zip(self.members, self.begins, self.begins[1:], strict=False):
            if max(start, begin) < min(stop, end):
                yield member.fragment.id, min(stop, end) - max(start, begin)

    def ends_within(self, selection: Selection) -> list[int]:
        """For each fragment how many of the selected rows come before its end."""
        ends = np.array(self.begins[1:])
        if selection.whole:
            return list((ends.clip(selection.start, selection.stop) - selection.start).tolist())
        return list(selection.numbers.searchsorted(ends).tolist())

    def _shared(self, rows: Rows) -> Iterator[tuple[StoredFragment, Rows]]:
        """Each member with those of the rows that are its own."""
        for member, begin, end in zip(self.members, self.begins, self.begins[1:], strict=False):
            if isinstance(rows, slice):
                first, last = max(rows.start, begin), min(rows.stop, end)
                if first < last:
                    yield member, slice(first - begin, last - begin)
            else:
                own = rows[rows.searchsorted(begin) : rows.searchsorted(end)]
                if len(own):
                    yield member, own - begin


def can_be_joined(field: Field) -> bool:
    """Whether values of a field are the same wherever in a file they lie, and fit into one array.

    >>> can_be_joined(Field("x", "int32")), can_be_joined(Field("d", "dict:string:int8:false"))
    (True, False)
    """
    return not holds_blobs(field) and not any(item.logical_type.startswith("dict:") for item in field.walk())


def joined(opened: Iterator[tuple[Piece, StoredFragment]], places: Places) -> Iterator[tuple[Piece, StoredFragment]]:
    """The fragments in their order, small ones that are alike and follow each other as one."""
    group: list[tuple[Piece, StoredFragment]] = []
    key: object = None
    room, most = 0, _FIRST
    for piece, stored in opened:
        found = _kind(piece, stored)
        size = sum(item.file_size or 0 for item in stored.fragment.files)
        if group and (found is None or found != key or size > room or len(group) >= most):
            yield _as_one(group, places)
            group, most = [], min(2 * most, _MOST)
        if found is None:
            yield piece, stored
            continue
        if not group:
            key, room = found, _MOST_BYTES
        group.append((piece, stored))
        room -= size
    if group:
        yield _as_one(group, places)


def _as_one(group: Sequence[tuple[Piece, StoredFragment]], places: Places) -> tuple[Piece, StoredFragment]:
    if len(group) == 1:
        return group[0]
    return group[0][0], JoinedFragments(places, [stored for _, stored in group])


def _kind(piece: Piece, stored: StoredFragment) -> object:
    """What fragments have in common that are read as one; None for what is read by itself."""
    if piece.start or piece.skip or piece.stop is not None or piece.take is not None or not stored.physical_rows:
        return None
    files = stored.fragment.files
    if any(not 0 < (item.file_size or 0) <= _SMALL or item.version < FileVersion.V2_1 for item in files):
        return None
    return tuple((item.fields, item.column_indices, item.version) for item in files) or None
