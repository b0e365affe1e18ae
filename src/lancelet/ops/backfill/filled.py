"""Filled fragments: the file with the new columns of one, and whether it still fits a later version of the table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lancelet.errors import NotFound
from lancelet.expr import Column
from lancelet.expr.tree import walk
from lancelet.file.shapes import column_numbers
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.blobs import file_schema
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import DataFile, DeletionFile, DeletionKind, Fragment
from lancelet.ops.backfill.fields import NewFields
from lancelet.query.request import ROW_ADDRESS, ROW_ID, SYSTEM_COLUMNS, ScanRequest
from lancelet.table.deletions import deletions_of
from lancelet.table.paths import Places

__all__ = ["Filled", "SourceKeys", "fits", "renumbered"]

#: Columns that are known of rows themselves and stay as long as their fragment does.
_LASTING = (ROW_ID, ROW_ADDRESS)


@dataclass(frozen=True, slots=True)
class Filled:
    """The new columns of one fragment. What no file names any more is never used again."""

    fragment: int
    #: None where no row of the fragment is left.
    file: DataFile | None
    physical_rows: int
    #: What the values were made from: see :class:`SourceKeys`.
    source: str
    #: The rows that were deleted then, and have no values of their own.
    deletion_file: DeletionFile | None = None

    def to_json(self) -> str:
        """The same as text, for those who carry the work on.

        >>> made = Filled(3, DataFile("a.lance", (7,), (0,)), 10, "k")
        >>> Filled.from_json(made.to_json()) == made
        True
        """
        file, deleted = self.file, self.deletion_file
        return json.dumps(
            {
                "fragment": self.fragment,
                "physical_rows": self.physical_rows,
                "source": self.source,
                "file": None if file is None else _file_tree(file),
                "deletion_file": None if deleted is None else [int(deleted.kind), deleted.read_version, deleted.id,
                                                               deleted.num_deleted_rows, deleted.base_id],
            }
        )  # fmt: skip

    @staticmethod
    def from_json(text: str) -> Filled:
        """What :meth:`to_json` gave. ValueError, TypeError or KeyError for anything else."""
        tree = json.loads(text)
        file, deleted = tree["file"], tree["deletion_file"]
        return Filled(
            fragment=int(tree["fragment"]),
            file=None if file is None else _file_of(file),
            physical_rows=int(tree["physical_rows"]),
            source=str(tree["source"]),
            deletion_file=None if deleted is None else _deletion_of(deleted),
        )


def _file_tree(file: DataFile) -> list[object]:
    return [
        *(file.path, list(file.fields), list(file.column_indices)),
        *(file.file_major_version, file.file_minor_version, file.file_size, file.base_id),
    ]


def _file_of(tree: Sequence[object]) -> DataFile:
    path, fields, columns, major, minor, size, base = tree
    return DataFile(path, tuple(fields), tuple(columns), major, minor, size, base)  # type: ignore[arg-type]


def _deletion_of(tree: Sequence[int]) -> DeletionFile:
    kind, read_version, number, count, base = tree
    return DeletionFile(DeletionKind(kind), read_version, number, count, base)


class SourceKeys:
    """What values are made from, fragment by fragment, as short texts: like keys mean like values in every live row."""

    def __init__(self, schema: Schema, request: ScanRequest, key: str, fields: NewFields) -> None:
        self._read = _read_ids(schema, request)
        self._made = [key, str(schema_to_arrow(file_schema(fields.stored)))]

    def of(self, fragment: Fragment, physical_rows: int) -> str | None:
        """The key of a fragment; None where its rows are looked at in a way that no later version need agree with."""
        if self._read is None:
            return None
        files = [
            (item.path, item.base_id, held)
            for item in fragment.files
            if (held := [pair for pair in zip(item.fields, item.column_indices, strict=False) if pair[0] in self._read])
        ]
        text = json.dumps([fragment.id, physical_rows, files, self._made])
        return hashlib.sha256(text.encode()).hexdigest()


def _read_ids(schema: Schema, request: ScanRequest) -> frozenset[int] | None:
    """Ids of all fields that a request looks at; None where it looks at lineage."""
    known = {item.name: item for item in file_schema(schema).fields}
    found: set[int] = set()
    for _, expr in request.columns or ():
        for node in walk(expr):
            if not isinstance(node, Column):
                continue
            if node.path[0] in known:
                found.update(item.id for item in _at(known[node.path[0]], node.path[1:]).walk())
            elif node.path[0] in SYSTEM_COLUMNS and node.path[0] not in _LASTING:
                return None
    return frozenset(found)


def _at(field: Field, path: Sequence[str]) -> Field:
    for name in path:
        inner = next((child for child in field.children if child.name == name), None)
        if inner is None:
            return field
        field = inner
    return field


def fits(filled: Filled, fragment: Fragment, source: str | None, places: Places) -> bool:
    """Whether a fragment may have columns that were made for it before: of the same values, with no row come back."""
    if source is None or filled.source != source or not _is_there(filled, places):
        return False
    before, now = filled.deletion_file, fragment.deletion_file
    if before is None or before == now:
        return True
    if now is None:
        return False
    try:
        old = deletions_of(places, replace(fragment, deletion_file=before), physical_rows=filled.physical_rows)
    except NotFound:
        return False
    rows = deletions_of(places, fragment, physical_rows=filled.physical_rows).rows
    return bool(np.isin(old.rows, rows).all())


def _is_there(filled: Filled, places: Places) -> bool:
    if filled.file is None:
        return True
    store, path = places.data_file(filled.file)
    try:
        return store.size(path) == filled.file.file_size
    except NotFound:
        return False


def renumbered(filled: Filled, fields: NewFields) -> Filled:
    """The same with the ids that the fields have now: others may have taken those of before."""
    if filled.file is None:
        return filled
    columns = column_numbers(file_schema(fields.stored), fields.version)
    ids = tuple(number for number in columns if number >= 0)
    return replace(filled, file=replace(filled.file, fields=ids))
