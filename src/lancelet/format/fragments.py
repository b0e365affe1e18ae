"""Fragments: the rows that were written together, in data files side by side, with the file of those deleted since."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from lancelet.errors import Corrupt, Unsupported
from lancelet.format.preserve import put_unknown, storable, unknown_of
from lancelet.format.protos import table_pb2 as wire
from lancelet.format.versions import FileVersion
from lancelet.format.wire import parse_message, write_message

__all__ = [
    "SPILLED_CREATED_AT",
    "SPILLED_LAST_UPDATED_AT",
    "SPILLED_ROW_IDS",
    "TOMBSTONE",
    "DataFile",
    "DeletionFile",
    "DeletionKind",
    "Fragment",
    "data_file_message",
    "fragment_message",
    "parse_fragment",
    "read_data_file",
    "read_fragment",
    "write_fragment",
]

#: In :attr:`DataFile.fields`: the column belongs to no field any more.
TOMBSTONE = -2
#: In :attr:`DataFile.fields`: the column holds the fragment's row ids, or the versions of its rows.
SPILLED_ROW_IDS, SPILLED_CREATED_AT, SPILLED_LAST_UPDATED_AT = -3, -4, -5


class DeletionKind(IntEnum):
    """How a deletion file lists the deleted rows."""

    ARROW_ARRAY = 0
    BITMAP = 1

    @property
    def extension(self) -> str:
        """How the names of such files end."""
        return "arrow" if self is DeletionKind.ARROW_ARRAY else "bin"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file and the columns in it: ``fields[i]`` is the id of the field in column ``column_indices[i]``.

    Files of version 0.1 have no column indices; what lies where follows from the field ids.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...] = ()
    file_major_version: int = 2
    file_minor_version: int = 0
    #: Bytes in the file; None where the writer did not say.
    file_size: int | None = None
    #: Id of the base path below which the file lies; None for the table's own.
    base_id: int | None = None
    unknown: bytes = b""

    @property
    def version(self) -> FileVersion:
        """The file's version; Unsupported where this release does not know it."""
        return FileVersion.from_numbers(self.file_major_version, self.file_minor_version)


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Which file says what rows of a fragment are deleted. Its name is made of these numbers and the fragment's id."""

    kind: DeletionKind
    read_version: int
    id: int
    #: None where the writer did not say.
    num_deleted_rows: int | None = None
    base_id: int | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True)
class Fragment:
    """One fragment as a manifest describes it.

    >>> fragment = Fragment(3, (DataFile("a.lance", (0,), (0,)),), physical_rows=10)
    >>> parse_fragment(write_fragment(fragment)) == fragment
    True
    """

    id: int
    files: tuple[DataFile, ...] = ()
    #: Rows in the files, deleted ones among them; None where the writer did not say.
    physical_rows: int | None = None
    deletion_file: DeletionFile | None = None
    #: Stored sequences, read by :mod:`lancelet.format.row_ids`; None where there is none in the manifest.
    inline_row_ids: bytes | None = None
    inline_created_at_versions: bytes | None = None
    inline_last_updated_at_versions: bytes | None = None
    #: Not None where the values are a column of a data file instead.
    column_row_ids: bytes | None = None
    column_created_at_versions: bytes | None = None
    column_last_updated_at_versions: bytes | None = None
    #: Carried along unread.
    overlays: tuple[bytes, ...] = ()
    clustering_id: int | None = None
    metadata: tuple[bytes, ...] = ()
    unknown: bytes = b""

    @property
    def num_deleted_rows(self) -> int | None:
        """How many rows are deleted; None where there is a deletion file that does not say."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int | None:
        """Rows that are not deleted; None where the manifest does not say."""
        if self.physical_rows is None or self.num_deleted_rows is None:
            return None
        return self.physical_rows - self.num_deleted_rows

    @property
    def has_row_ids(self) -> bool:
        """Whether the fragment says, here or in a column, which stable ids its rows have."""
        return self.inline_row_ids is not None or self.column_row_ids is not None


def parse_fragment(data: bytes | memoryview) -> Fragment:
    """The fragment that the bytes of a message describe."""
    return read_fragment(parse_message(wire.Fragment, data, "fragment"))


def write_fragment(fragment: Fragment) -> bytes:
    """The bytes of the message that describes a fragment."""
    return write_message(fragment_message(fragment))


def read_fragment(message: wire.Fragment) -> Fragment:
    """The dataclass of a message. Corrupt where more rows are deleted than there are."""
    fragment = Fragment(
        id=message.id,
        files=tuple(read_data_file(item) for item in message.files),
        physical_rows=message.physical_rows or None,
        deletion_file=_read_deletion_file(message.deletion_file) if message.HasField("deletion_file") else None,
        inline_row_ids=message.inline_row_ids if message.HasField("inline_row_ids") else None,
        inline_created_at_versions=(
            message.inline_created_at_versions if message.HasField("inline_created_at_versions") else None
        ),
        inline_last_updated_at_versions=(
            message.inline_last_updated_at_versions if message.HasField("inline_last_updated_at_versions") else None
        ),
        column_row_ids=message.column_row_ids if message.HasField("column_row_ids") else None,
        column_created_at_versions=(
            message.column_created_at_versions if message.HasField("column_created_at_versions") else None
        ),
        column_last_updated_at_versions=(
            message.column_last_updated_at_versions if message.HasField("column_last_updated_at_versions") else None
        ),
        overlays=tuple(message.overlays),
        clustering_id=message.clustering_id if message.HasField("clustering_id") else None,
        metadata=tuple(message.metadata),
        unknown=unknown_of(message),
    )
    if fragment.num_rows is not None and fragment.num_rows < 0:
        found = f"{fragment.num_deleted_rows} of {fragment.physical_rows} rows are deleted"
        raise Corrupt(f"fragment {fragment.id}: {found}", fragment=fragment.id)
    return fragment


def fragment_message(fragment: Fragment) -> wire.Fragment:
    """The message of a fragment."""
    with storable(f"fragment {fragment.id}"):
        message = wire.Fragment(
            id=fragment.id,
            files=[data_file_message(item) for item in fragment.files],
            deletion_file=_deletion_file_message(fragment.deletion_file),
            physical_rows=fragment.physical_rows or 0,
            inline_row_ids=fragment.inline_row_ids,
            inline_created_at_versions=fragment.inline_created_at_versions,
            inline_last_updated_at_versions=fragment.inline_last_updated_at_versions,
            overlays=fragment.overlays,
            column_row_ids=fragment.column_row_ids,
            column_created_at_versions=fragment.column_created_at_versions,
            column_last_updated_at_versions=fragment.column_last_updated_at_versions,
            clustering_id=fragment.clustering_id,
            metadata=fragment.metadata,
        )
    put_unknown(message, fragment.unknown)
    return message


def read_data_file(message: wire.DataFile) -> DataFile:
    """The dataclass of a message. Corrupt where fields and columns do not pair up."""
    fields, columns = tuple(message.fields), tuple(message.column_indices)
    if columns and len(columns) != len(fields):
        raise Corrupt(
            f"data file {message.path!r} has {len(fields)} fields in {len(columns)} columns, expected as many"
        )
    return DataFile(
        path=message.path,
        fields=fields,
        column_indices=columns,
        file_major_version=message.file_major_version,
        file_minor_version=message.file_minor_version,
        file_size=message.file_size_bytes or None,
        base_id=message.base_id if message.HasField("base_id") else None,
        unknown=unknown_of(message),
    )


def data_file_message(item: DataFile) -> wire.DataFile:
    """The message of a data file."""
    with storable(f"data file {item.path!r}"):
        message = wire.DataFile(
            path=item.path,
            fields=item.fields,
            column_indices=item.column_indices,
            file_major_version=item.file_major_version,
            file_minor_version=item.file_minor_version,
            file_size_bytes=item.file_size or 0,
            base_id=item.base_id,
        )
    put_unknown(message, item.unknown)
    return message


def _read_deletion_file(message: wire.DeletionFile) -> DeletionFile:
    kind = int(message.file_type)
    if kind not in (DeletionKind.ARROW_ARRAY, DeletionKind.BITMAP):
        raise Unsupported(f"deletion file {message.id} is of kind {kind}, expected 0 (Arrow) or 1 (Roaring)")
    return DeletionFile(
        kind=DeletionKind(kind),
        read_version=message.read_version,
        id=message.id,
        num_deleted_rows=message.num_deleted_rows or None,
        base_id=message.base_id if message.HasField("base_id") else None,
        unknown=unknown_of(message),
    )


def _deletion_file_message(item: DeletionFile | None) -> wire.DeletionFile | None:
    if item is None:
        return None
    message = wire.DeletionFile(
        file_type=wire.DeletionFile.Kind.ValueType(item.kind),
        read_version=item.read_version,
        id=item.id,
        num_deleted_rows=item.num_deleted_rows or 0,
        base_id=item.base_id,
    )
    put_unknown(message, item.unknown)
    return message
