"""Deletion files: a deletion vector as bytes, and back: an Arrow file of row numbers, or a Roaring bitmap.

.arrow   Arrow IPC file of one batch: row_id uint32 not null, in no order, each once; its buffer is compressed (zstd)
.bin     Roaring bitmap of 32-bit integers, in the portable format
"""

from __future__ import annotations

import pyarrow as pa

from lancelet.errors import Corrupt, LanceletError
from lancelet.format.fragments import DeletionKind
from lancelet.rows.bitmaps import parse_bitmap, to_bitmap, to_values, write_bitmap
from lancelet.rows.deletions import DeletionVector

__all__ = ["BITMAP_FROM", "read_deletions", "write_deletions"]

#: With so many rows or more the reference writes a bitmap, with fewer an array.
BITMAP_FROM = 5_000

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])


def write_deletions(deleted: DeletionVector) -> tuple[DeletionKind, bytes]:
    """The bytes of a deletion file, and which kind of file they make.

    >>> kind, data = write_deletions(DeletionVector([7, 3]))
    >>> kind.extension, read_deletions(data, kind, physical_rows=8).rows.tolist()
    ('arrow', [3, 7])
    """
    if len(deleted) >= BITMAP_FROM:
        return DeletionKind.BITMAP, write_bitmap(to_bitmap(deleted.rows))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.record_batch([pa.array(deleted.rows)], schema=_SCHEMA))
    return DeletionKind.ARROW_ARRAY, sink.getvalue().to_pybytes()


def read_deletions(
    data: bytes | memoryview,
    kind: DeletionKind,
    *,
    physical_rows: int | None = None,
    num_deleted_rows: int | None = None,
    uri: str | None = None,
    fragment: int | None = None,
) -> DeletionVector:
    """The vector that a deletion file holds. Corrupt where it is no such file.

    Also where it lists rows past ``physical_rows``, or not ``num_deleted_rows`` of them; None leaves that unchecked.
    """
    try:
        deleted = _read_bitmap(data, physical_rows) if kind is DeletionKind.BITMAP else _read_array(data)
        if physical_rows is not None:
            deleted.check(physical_rows)
        if num_deleted_rows is not None and len(deleted) != num_deleted_rows:
            raise Corrupt(f"the deletion file lists {len(deleted)} rows, the manifest says {num_deleted_rows}")
    except LanceletError as error:
        raise error.where(uri=uri, fragment=fragment) from None
    return deleted


def _read_bitmap(data: bytes | memoryview, physical_rows: int | None) -> DeletionVector:
    bitmap = parse_bitmap(data, "deletion file")
    # A few bytes may stand for four thousand million rows: the largest is checked before any of them is listed.
    if physical_rows is not None and len(bitmap) and bitmap.max() >= physical_rows:
        raise Corrupt(f"row {bitmap.max()} is listed as deleted, the fragment has {physical_rows} rows")
    return DeletionVector(to_values(bitmap))


def _read_array(data: bytes | memoryview) -> DeletionVector:
    try:
        reader = pa.ipc.open_file(pa.py_buffer(data))
        if reader.num_record_batches != 1:
            raise Corrupt(f"the deletion file holds {reader.num_record_batches} batches, expected 1")
        if reader.schema.names != _SCHEMA.names or reader.schema.field(0).type != pa.uint32():
            raise Corrupt(f"the deletion file holds the columns [{reader.schema}], expected row_id: uint32")
        rows = reader.get_batch(0).column(0)
        rows.validate(full=True)
    except (pa.ArrowException, OSError, MemoryError) as error:
        if isinstance(error, LanceletError):
            raise
        raise Corrupt(f"the deletion file is no Arrow file: {error}") from None
    if rows.null_count:
        raise Corrupt(f"the deletion file holds {rows.null_count} nulls, expected none")
    return DeletionVector(rows.to_numpy(zero_copy_only=False))
