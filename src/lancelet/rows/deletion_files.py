"""Deletion files: a deletion vector as bytes, and back: an Arrow file of row numbers, or a Roaring bitmap.

.arrow   Arrow IPC file of one batch: row_id uint32 not null, in no order, each once; its buffer is compressed (zstd)
.bin     Roaring bitmap of 32-bit integers, in the portable format
"""

from __future__ import annotations

import pyarrow as pa

from lancelet.errors import Corrupt, LanceletError
from lancelet.format.fragments import DeletionKind
from lancelet.rows.addresses import LARGEST
from lancelet.rows.arrow_messages import declared_sizes
from lancelet.rows.bitmaps import parse_bitmap, to_bitmap, to_values, write_bitmap
from lancelet.rows.deletions import DeletionVector

__all__ = ["BITMAP_FROM", "read_deletions", "write_deletions"]

#: With so many rows or more the reference writes a bitmap, with fewer an array.
BITMAP_FROM = 5_000

_MAGIC = b"ARROW1\0\0"
#: Buffers may be longer than their values by what aligns them, and tiny ones by what a frame costs.
_PADDING = 1024
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
        deleted = _read_bitmap(data, physical_rows) if kind is DeletionKind.BITMAP else _read_array(data, physical_rows)
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


def _read_array(data: bytes | memoryview, physical_rows: int | None) -> DeletionVector:
    if bytes(data[: len(_MAGIC)]) != _MAGIC or bytes(data[-6:]) != _MAGIC[:6]:
        raise Corrupt("the deletion file is no Arrow file: it does not begin and end with ARROW1")
    # The messages are read in the order in which they were written: what is checked is what is then decoded.
    # Between the magic and the first message lie zeros, up to the alignment that the writer chose.
    begin = next((place for place in range(len(_MAGIC), 65, 8) if any(data[place : place + 8])), len(_MAGIC))
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(data)[begin:])
    try:
        messages = list(reader)
        if [message.type for message in messages] != ["schema", "record batch"]:
            raise Corrupt(f"the deletion file holds {max(len(messages) - 1, 0)} batches, expected 1")
        schema = pa.ipc.read_schema(messages[0])
        if schema.names != _SCHEMA.names or schema.field(0).type != pa.uint32():
            raise Corrupt(f"the deletion file holds the columns [{schema}], expected row_id: uint32")
        _check_sizes(messages[1], physical_rows)
        rows = pa.ipc.read_record_batch(messages[1], schema).column(0)
        rows.validate(full=True)
    except LanceletError:
        raise
    except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
        raise Corrupt(f"the deletion file is no Arrow file: {error}") from None
    if rows.null_count:
        raise Corrupt(f"the deletion file holds {rows.null_count} nulls, expected none")
    return DeletionVector(rows.to_numpy(zero_copy_only=False))


def _check_sizes(message: pa.Message, physical_rows: int | None) -> None:
    """Corrupt where a batch would take more memory than the rows it may list."""
    rows, largest = declared_sizes(memoryview(message.metadata), memoryview(message.body))
    if not 0 <= rows <= (LARGEST + 1 if physical_rows is None else physical_rows):
        raise Corrupt(f"the deletion file lists {rows} rows, the fragment has {physical_rows} rows")
    if largest > 4 * rows + _PADDING:
        raise Corrupt(f"the deletion file holds a buffer of {largest} bytes for {rows} rows")
