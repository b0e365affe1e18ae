"""Merging BITMAP indexes: the sets of each value, renamed and joined; new rows become a segment of their own first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lancelet.file.file_writer import FileWriter
from lancelet.index.building import Built, Target
from lancelet.index.merging import Part, new_rows_as_part
from lancelet.index.row_sets_by_key import SetsByKey, StoredForm, merged_sets
from lancelet.index.scalar.bitmap.build import TYPE_URL, add_statistics, bitmap_schema, build_bitmap
from lancelet.index.scalar.bitmap.stored import BITMAPS, FILE, KEYS

__all__ = ["merge_bitmaps", "write_merged"]


def merge_bitmaps(parts: Sequence[Part], rows: Iterable[pa.RecordBatch], kind: pa.DataType, target: Target) -> Built:
    """Write the index of what segments hold and of new rows."""
    with (
        new_rows_as_part(rows, target, lambda new, inner: build_bitmap(new, kind, inner)) as added,
        target.file(FILE, bitmap_schema(kind)) as file,
    ):
        write_merged([*parts, *added], kind, file)
    return target.built(TYPE_URL, 0)


def write_merged(parts: Sequence[Part], kind: pa.DataType, file: FileWriter) -> None:
    """Write the joined sets of segments whose keys are of a type."""
    sources = [SetsByKey(part, part.files.open(FILE), KEYS, BITMAPS) for part in parts]
    count = 0
    for keys, sets in merged_sets(sources, kind, StoredForm()):
        count += len(keys)
        file.write(pa.record_batch([keys, sets], schema=bitmap_schema(kind)))
    add_statistics(file, count)
