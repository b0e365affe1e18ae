"""Chunks of a column put together in one array, also where Arrow itself would refuse."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pat

__all__ = ["one_array", "one_batch"]


def one_array(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array | None:
    """All values in one array; None where that is more than one array can hold.

    >>> one_array([pa.array(["a"]), pa.array(["b"])], pa.string()).to_pylist()
    ['a', 'b']
    """
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return pa.array([], kind)
    try:
        return pa.concat_arrays(chunks)
    except pa.ArrowCapacityError:
        return None
    except pa.ArrowInvalid as error:
        if pat.is_dictionary(kind):
            # Arrow does not bring dictionaries together that have a null among their values.
            plain = one_array([chunk.dictionary_decode() for chunk in chunks], kind.value_type)
            return None if plain is None else plain.dictionary_encode().cast(kind)
        if "overflow" in str(error):
            return None
        raise


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table of some rows as one batch, also if it has no columns.

    >>> one_batch(pa.table({"x": pa.chunked_array([[1], [2]])})).num_rows
    2
    """
    if not table.num_columns:
        # Only a struct can have values without anything in them.
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), table.num_rows, [None]))
    batches = table.to_batches()
    if len(batches) == 1:
        return batches[0]
    columns = [one_array(column.chunks, column.type) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
