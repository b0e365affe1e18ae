"""The end of a data file of version 2.0 or later: global buffers, column metadata, the tables of both, the footer."""

from __future__ import annotations

from collections.abc import Sequence

from lancelet.format.columns import ALIGNMENT, Column, Range, write_column
from lancelet.format.fields import FileDescriptor, write_file_descriptor
from lancelet.format.footer import Footer, write_footer, write_offset_table
from lancelet.format.versions import FileVersion
from lancelet.storage.store import Writer

__all__ = ["put_aligned", "write_tail"]


def put_aligned(output: Writer, data: bytes | memoryview) -> Range:
    """Write one buffer at the next multiple of the alignment; where it lies."""
    # Readers want even the place of nothing aligned.
    output.write(bytes(-output.position % ALIGNMENT))
    place = (output.position, len(data))
    if len(data):
        output.write(data)
    return place


def write_tail(
    output: Writer,
    version: FileVersion,
    descriptor: FileDescriptor,
    columns: Sequence[Column],
    global_buffers: Sequence[Range] = (),
) -> None:
    """Write what stands behind the pages; the global buffers given lie before, and come after that of the schema."""
    buffers = [put_aligned(output, write_file_descriptor(descriptor)), *global_buffers]
    metadata_start = output.position
    places = [_append(output, write_column(column)) for column in columns]
    column_table = _append(output, write_offset_table(places))
    global_table = _append(output, write_offset_table(buffers))
    footer = Footer(version, metadata_start, column_table[0], global_table[0], len(buffers), len(places))
    output.write(write_footer(footer))


def _append(output: Writer, data: bytes) -> Range:
    place = (output.position, len(data))
    output.write(data)
    return place
