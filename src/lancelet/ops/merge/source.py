"""Sources of merges: rows kept in memory while they are few, else put aside on disk divided by their keys.

Either way they can be read again, so that a merge can be worked out anew after a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.expr import Column
from lancelet.ops.fitting import conformed
from lancelet.ops.join.codes import codes_of, spread
from lancelet.ops.join.spill import Partitions, SpillFile, SpillFolder, bits_of
from lancelet.ops.merge.plan import MergePlan
from lancelet.rows.addresses import UInt64s

__all__ = ["PARTITION_BITS", "MergeSource", "gathered", "key_columns", "words_of"]

#: Rows are divided among as many files as so many bits tell, and those of one file again where they are too many.
PARTITION_BITS = 6
#: Batches are divided in pieces of about this many bytes: what waits to be written keeps all of its piece in memory.
_PIECE = 8 * 2**20


@dataclass(frozen=True, slots=True)
class MergeSource:
    """All rows of a source: in memory, or in files by the upper bits of their keys' words."""

    schema: pa.Schema
    num_rows: int
    rows: pa.Table | None = None
    partitions: Sequence[SpillFile] = ()
    folder: SpillFolder | None = None

    def close(self) -> None:
        """Remove what was put aside."""
        if self.folder is not None:
            self.folder.close()


def gathered(plan: MergePlan, batches: Iterable[pa.RecordBatch], *, most: int) -> MergeSource:
    """Read a source to its end; more than ``most`` bytes of it go to disk."""
    rows = _normal(plan, batches)
    held: list[pa.RecordBatch] = []
    size = count = 0
    for batch in rows:
        held.append(batch)
        size += batch.nbytes
        count += batch.num_rows
        if size > most:
            return _spilled(plan, held, rows)
    table = pa.Table.from_batches(held, held[0].schema if held else plan.source)
    return MergeSource(table.schema, count, table.combine_chunks())


def _normal(plan: MergePlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with the columns, and the types, of the plan; text that lies in views as plain text."""
    for batch in conformed(batches, plan.source):
        columns = [_plain(column, field.type) for column, field in zip(batch.columns, plan.source, strict=True)]
        fields = [
            pa.field(field.name, column.type, metadata=field.metadata)
            for column, field in zip(columns, plan.source, strict=True)
        ]
        yield pa.record_batch(columns, schema=pa.schema(fields))


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    found = column.type
    if found == kind or isinstance(found, pa.BaseExtensionType) or isinstance(kind, pa.BaseExtensionType):
        return column
    seen = pat.is_string_view(found) or pat.is_binary_view(found) or pat.is_nested(found)
    return column.cast(kind) if seen else column


def _spilled(plan: MergePlan, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> MergeSource:
    folder, count = SpillFolder(), 0
    try:
        divided = Partitions(folder, "source", held[0].schema, 1 << PARTITION_BITS)
        while held:
            count += _divide(plan, divided, held.pop(0))
        for batch in rest:
            count += _divide(plan, divided, batch)
        return MergeSource(divided.schema, count, None, divided.finish(), folder)
    except BaseException:
        folder.close()
        raise


def _divide(plan: MergePlan, divided: Partitions, batch: pa.RecordBatch) -> int:
    step = max(1, batch.num_rows * _PIECE // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, step):
        piece = batch.slice(start, step)
        divided.add(piece, bits_of(words_of(key_columns(piece, plan.keys)), PARTITION_BITS))
    count: int = batch.num_rows
    return count


def key_columns(rows: pa.RecordBatch | pa.Table, keys: Sequence[Column]) -> list[pa.Array]:
    """The columns of the key; a field of a struct is null where the struct is.

    >>> rows = pa.record_batch({"s": [{"x": 1}, None]})
    >>> [column.to_pylist() for column in key_columns(rows, [Column(("s", "x"), pa.int64())])]
    [[1, None]]
    """
    found = []
    for key in keys:
        column = rows.column(key.path[0])
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        for step in key.path[1:]:
            place = column.type.get_field_index(step)
            column = column.flatten()[place]
        found.append(column)
    return found


def words_of(columns: Sequence[pa.Array]) -> UInt64s:
    """What divides rows among files: like keys have one word, rows without a key are spread."""
    words = spread(codes_of(columns))
    for column in columns:
        if column.null_count:
            # They match nothing, so any file will do.
            rows = np.flatnonzero(np.asarray(column.is_null()))
            words[rows] = spread(rows.astype(np.uint64))
    return words
