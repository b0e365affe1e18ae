"""Reading rows of 0.1 files: batch by batch down the tree of fields; a list's offsets say which items it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.budget import check_budget
from lancelet.encodings.legacy import read_bounds, read_plain, read_strings
from lancelet.encodings.shape import Leaf, List, Shape, Struct
from lancelet.encodings.v2_0.buffers import Rows, count_of
from lancelet.encodings.v2_0.nested import list_array, struct_array
from lancelet.encodings.v2_0.steps import Steps, decode, together
from lancelet.errors import Corrupt, LanceletError, Unsupported
from lancelet.file.carrying_out import run_steps
from lancelet.file.legacy import LegacyFile
from lancelet.file.requests import rows_by_page

__all__ = ["read_columns"]

_Pending = Callable[[], pa.Array]


def read_columns(file: LegacyFile, shapes: Sequence[Shape], rows: Rows) -> list[pa.ChunkedArray]:
    """The rows of each shape, one chunked array each; shapes are numbered by field id."""
    repeated = None
    if not isinstance(rows, slice) and len(rows) and np.any(rows[1:] == rows[:-1]):
        rows, repeated = np.unique(rows, return_inverse=True)
    batches = []
    if count_of(rows):
        batches = list(rows_by_page(np.array(file.metadata.batch_offsets, np.int64), rows))
    found = run_steps(file, _all_batches(file, shapes, batches)) if batches and shapes else []
    columns = [
        pa.chunked_array(found[at * len(batches) : (at + 1) * len(batches)], shape.field.type)
        for at, shape in enumerate(shapes)
    ]
    return columns if repeated is None else [column.take(pa.array(repeated)) for column in columns]


def _all_batches(
    file: LegacyFile, shapes: Sequence[Shape], batches: Sequence[tuple[int, Rows]]
) -> Steps[list[pa.Array]]:
    pending = yield from together(
        [_node(file, shape, batch, rows, shape.field.name) for shape in shapes for batch, rows in batches]
    )
    return (yield from decode(pending))


@contextmanager
def _located(file: LegacyFile, name: str, batch: int) -> Iterator[None]:
    try:
        yield
    except LanceletError as error:
        raise error.where(uri=file.uri, column=name, page=batch) from None
    except pa.ArrowException as error:
        raise Corrupt(f"page does not decode: {error}", uri=file.uri, column=name, page=batch) from None


def _node(file: LegacyFile, shape: Shape, batch: int, rows: Rows, name: str) -> Steps[_Pending]:
    with _located(file, name, batch):
        match shape:
            case Leaf():
                finish = yield from _leaf(file, shape, batch, rows)
            case Struct(field, children):
                parts = yield from together(
                    [_node(file, child, batch, rows, f"{name}.{child.field.name}") for child in children]
                )
                kind = field.type
                finish = lambda: struct_array(kind, [part() for part in parts])  # noqa: E731
            case List():
                finish = yield from _lists(file, shape, batch, rows, name)

    def located() -> pa.Array:
        with _located(file, name, batch):
            return finish()

    return located


def _leaf(file: LegacyFile, leaf: Leaf, batch: int, rows: Rows) -> Steps[_Pending]:
    kind, count, whole = leaf.field.type, count_of(rows), file.view is not None
    if pat.is_struct(kind):
        if kind.num_fields:
            raise Unsupported("a packed struct in a file of version 0.1")
        return lambda: pa.Array.from_buffers(kind, count, [None])
    place = file.page(leaf.column, batch)
    end = rows.stop if isinstance(rows, slice) else int(rows[-1]) + 1
    if end > place[1]:
        raise Corrupt(f"page has {place[1]:,} values, expected at least {end:,}")
    if pat.is_null(kind):
        return lambda: pa.nulls(count)
    if pat.is_dictionary(kind):
        items = file.dictionaries.get(leaf.column)
        if items is None:
            raise Unsupported("the items of the dictionary are not in the file", hint="read it through its table")
        keys = yield from read_plain(kind.index_type, place, rows, file.size, whole=whole)
        return lambda: _dictionary(kind, keys(), items)
    if pat.is_string(kind) or pat.is_binary(kind) or pat.is_large_string(kind) or pat.is_large_binary(kind):
        nullable = leaf.field.nullable
        return (yield from read_strings(kind, place, rows, file.size, whole=whole, nullable=nullable))
    return (yield from read_plain(kind, place, rows, file.size, whole=whole))


def _dictionary(kind: pa.DataType, keys: pa.Array, items: pa.Array) -> pa.Array:
    numbers = np.asarray(keys)
    if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) >= len(items)):
        raise Corrupt(f"keys {numbers.min()} to {numbers.max()} into a dictionary of {len(items):,}")
    return pa.DictionaryArray.from_arrays(keys, items, ordered=kind.ordered)


def _lists(file: LegacyFile, shape: List, batch: int, rows: Rows, name: str) -> Steps[_Pending]:
    kind = shape.field.type
    if not (pat.is_list(kind) or pat.is_large_list(kind)):
        raise Unsupported(f"type {kind} in a file of version 0.1")
    width = 8 if pat.is_large_list(kind) else 4
    place = file.page(shape.column, batch)
    starts, stops = yield from read_bounds(place, width, rows, file.size, whole=file.view is not None)
    sizes = stops - starts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if not offsets[-1]:
        return lambda: list_array(shape.field, offsets, None, None)
    if np.array_equal(starts[1:], stops[:-1]):
        items: Rows = slice(int(starts[0]), int(stops[-1]))
    else:
        check_budget(8 * int(offsets[-1]))
        items = np.repeat(starts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
    below = yield from _node(file, shape.child, batch, items, f"{name}.{shape.child.field.name}")
    return lambda: list_array(shape.field, offsets, None, below())
