"""What an Arrow record batch would take in memory, read from its message before anything is decompressed.

A message is a flatbuffer: tables whose first word points back to a list of where each field lies.

    Message      field 2: RecordBatch
    RecordBatch  field 0: i64 rows   field 2: buffers, each (i64 place in the body, i64 bytes)   field 3: compression
    body         each compressed buffer begins with its size in memory, as i64; -1: stored as it is
"""

from __future__ import annotations

import struct

from lancelet.errors import Corrupt

__all__ = ["declared_sizes"]

_I64, _I32, _U32, _U16 = struct.Struct("<q"), struct.Struct("<i"), struct.Struct("<I"), struct.Struct("<H")


def declared_sizes(metadata: memoryview, body: memoryview) -> tuple[int, int]:
    """How many rows a record batch message says it holds, and how many bytes its largest buffer takes in memory."""
    try:
        batch = _table(metadata, _field(metadata, _table(metadata, 0), 2))
        rows = _field(metadata, batch, 0)
        largest = 0
        for place, length in _buffers(metadata, _field(metadata, batch, 2)):
            if not 0 <= place <= place + length <= len(body):
                raise Corrupt(f"an Arrow buffer at {place} has {length} bytes, the message has {len(body)}")
            if _field(metadata, batch, 3) and length >= _I64.size:
                length = max(length, _I64.unpack_from(body, place)[0])
            largest = max(largest, length)
        return (_I64.unpack_from(metadata, rows)[0] if rows else 0), largest
    except struct.error as error:
        raise Corrupt(f"an Arrow message points outside of itself: {error}") from None


def _buffers(metadata: memoryview, field: int) -> list[tuple[int, int]]:
    if not field:
        return []
    vector = _table(metadata, field)
    (count,) = _U32.unpack_from(metadata, vector)
    begin = vector + _U32.size
    if count * 16 > len(metadata) - begin:
        raise Corrupt(f"an Arrow message of {len(metadata)} bytes lists {count} buffers")
    return list(struct.iter_unpack("<qq", metadata[begin : begin + 16 * count]))


def _table(metadata: memoryview, place: int) -> int:
    """What the word at a place points to."""
    return place + int(_U32.unpack_from(metadata, place)[0])


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Where a field of a table lies; 0 where the table has none."""
    slots = table - _I32.unpack_from(metadata, table)[0]
    slot = 4 + 2 * number
    if slots < 0 or slot >= _U16.unpack_from(metadata, slots)[0]:
        return 0
    (offset,) = _U16.unpack_from(metadata, slots + slot)
    return table + offset if offset else 0
