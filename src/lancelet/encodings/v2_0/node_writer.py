"""Writing columns of 2.0: which encoding an array gets, and its page.

As other writers of this version do: numbers flat, strings as ends and bytes, strings of few different values as a
dictionary. Only the bytes of strings are compressed, and only where the field's metadata asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings import shape as shapes
from lancelet.encodings.flatten import flatten
from lancelet.encodings.knobs import Knobs, parse_knobs
from lancelet.encodings.leaf_page import EncodedPage
from lancelet.encodings.v2_0 import binary, dictionary, fixed_size_list, flat, spans
from lancelet.encodings.values import Bytes, Fixed, Packed, Variable, from_arrow
from lancelet.errors import LanceletError, Unsupported
from lancelet.events import emit
from lancelet.format.arrays import (
    AllNulls,
    ArrayEncoding,
    Compression,
    Dictionary,
    FixedSizeList,
    List,
    NoNulls,
    SimpleStruct,
    SomeNulls,
)

__all__ = ["NodeWriter"]


@dataclass(frozen=True, slots=True)
class NodeWriter:
    """Turns the rows of one column into pages. Lists come as large lists of nothing, structs as nothing."""

    node: shapes.Shape
    metadata: dict[str, str]
    name: str
    #: Rows and entries of a page are the same thing in 2.0.
    scale: int = 1

    def pages(self, rows: pa.Array) -> Iterator[EncodedPage]:
        """The page that holds the rows."""
        buffers: list[Bytes] = []
        try:
            encoding = self._encode(rows, buffers)
        except LanceletError as error:
            raise error.where(column=self.name) from None
        yield EncodedPage(encoding, tuple(buffers), len(rows))

    def empty(self) -> EncodedPage:
        """The page of a column that has no entries in a file that has rows: all of its lists are null or empty."""
        buffers: list[Bytes] = []
        encoding: ArrayEncoding = AllNulls()
        if isinstance(self.node, shapes.Struct):
            encoding = SimpleStruct()
        elif isinstance(self.node, shapes.List):
            encoding = _encode_lists(pa.array([], pa.large_list(pa.null())), buffers)
        return EncodedPage(encoding, tuple(buffers), 0)

    def _encode(self, rows: pa.Array, buffers: list[Bytes]) -> ArrayEncoding:
        if isinstance(self.node, shapes.Struct) or (pat.is_struct(rows.type) and not rows.type.num_fields):
            return SimpleStruct()
        if not isinstance(self.node, shapes.Leaf):
            return _encode_lists(rows, buffers)
        if isinstance(rows, pa.ExtensionArray):
            rows = rows.storage
        if pat.is_null(rows.type):
            return AllNulls()
        if pat.is_struct(rows.type):
            return _encode_packed(rows, buffers)
        if pat.is_dictionary(rows.type):
            return _encode_dictionary(rows, buffers)
        if _is_variable(rows.type):
            return _encode_strings(rows, parse_knobs(self.metadata), buffers)
        return _encode_fixed(rows, buffers)


def _is_variable(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_binary(kind) or pat.is_large_string(kind) or pat.is_large_binary(kind))


def _clean(rows: pa.Array) -> pa.Array:
    """The rows' values with zero or nothing where they are null, so that files do not keep what nulls hide."""
    if not rows.null_count or (_is_variable(rows.type) and not _hides_bytes(rows)):
        return rows
    (part,) = flatten(shapes.Leaf(pa.field("", rows.type), 0), rows)
    return part.values


def _hides_bytes(rows: pa.Array) -> bool:
    """Whether a null string has bytes; mostly none has."""
    large = pat.is_large_string(rows.type) or pat.is_large_binary(rows.type)
    width = np.dtype("i8" if large else "i4")
    offsets = np.frombuffer(rows.buffers()[1], width, len(rows) + 1, rows.offset * width.itemsize)
    null = np.flatnonzero(np.asarray(rows.is_null()))
    return bool((offsets[null + 1] > offsets[null]).any())


def _valid(rows: pa.Array) -> np.ndarray | None:
    return np.asarray(rows.is_valid()) if rows.null_count else None


def _encode_fixed(rows: pa.Array, buffers: list[Bytes]) -> ArrayEncoding:
    """Values of one width or fixed-size lists of them; the bitmap, if there is one, comes before the values."""
    if isinstance(rows, pa.ExtensionArray):
        rows = rows.storage
    if rows.null_count == len(rows):
        return AllNulls()
    validity = None
    if rows.null_count:
        bits = np.frombuffer(rows.is_valid().buffers()[1], np.uint8)[: (len(rows) + 7) // 8]
        validity = flat.encode(Fixed(1, len(rows), bits), buffers)
    rows = _clean(rows)
    values: ArrayEncoding
    if pat.is_fixed_size_list(rows.type):
        size = rows.type.list_size
        items = rows.values.slice(rows.offset * size, len(rows) * size)
        values = FixedSizeList(size, _encode_fixed(items, buffers))
    else:
        found = from_arrow(rows)
        if not isinstance(found, Fixed):
            raise Unsupported(f"type {rows.type} in a file of version 2.0")
        values = flat.encode(found, buffers)
    return NoNulls(values) if validity is None else SomeNulls(validity, values)


def _encode_lists(rows: pa.Array, buffers: list[Bytes]) -> List:
    offsets = np.frombuffer(rows.buffers()[1], np.int64, len(rows) + 1, 8 * rows.offset)
    ends, adjustment = spans.encode(offsets, _valid(rows))
    return List(NoNulls(flat.encode(ends, buffers)), adjustment, adjustment - 1)


def _encode_packed(rows: pa.Array, buffers: list[Bytes]) -> ArrayEncoding:
    for at, field in enumerate(rows.type):
        if rows.field(at).null_count:
            raise Unsupported(
                f"field {field.name!r} of a packed struct has nulls, which a file of version 2.0 cannot hold"
            )
    values = from_arrow(rows)
    if not isinstance(values, Packed):
        raise Unsupported(f"type {rows.type} as a packed struct")
    return fixed_size_list.encode_packed(values, buffers)


def _encode_strings(rows: pa.Array, knobs: Knobs, buffers: list[Bytes]) -> ArrayEncoding:
    few = dictionary.distinct(rows) if pat.is_string(rows.type) else None
    if few is not None:
        return dictionary.encode_strings(few, buffers)
    values = from_arrow(_clean(rows))
    if not isinstance(values, Variable):
        raise Unsupported(f"type {rows.type} as strings")
    if knobs.compression == "fsst":
        if values.offsets.dtype == np.int32:
            return binary.encode_fsst(values, _valid(rows), buffers)
        emit("encoding.key_ignored", key="lance-encoding:compression", value="fsst", why=f"type {rows.type} in 2.0")
    compression = None
    if knobs.compression in ("zstd", "lz4"):
        compression = Compression(knobs.compression, knobs.compression_level)
    return binary.encode(values, _valid(rows), buffers, compression)


def _encode_dictionary(rows: pa.DictionaryArray, buffers: list[Bytes]) -> Dictionary:
    """Nulls are keys of a null item, which is appended if there is none."""
    keys, items = rows.indices, rows.dictionary
    if isinstance(items, pa.ExtensionArray):
        items = items.storage
    if keys.null_count or not len(items):
        nulls = np.flatnonzero(np.asarray(items.is_null())) if items.null_count else np.zeros(0, np.int64)
        if not len(nulls):
            items = pa.concat_arrays([items, pa.nulls(1, items.type)])
        at = int(nulls[0]) if len(nulls) else len(items) - 1
        if at > np.iinfo(keys.type.to_pandas_dtype()).max:
            raise Unsupported(
                f"dictionary of {at:,} items has no key of type {keys.type} left for null",
                hint="use a wider type of keys",
            )
        keys = keys.fill_null(pa.scalar(at, keys.type))
    found = from_arrow(keys)
    if not isinstance(found, Fixed):
        raise Unsupported(f"keys of type {keys.type}")
    indices = NoNulls(flat.encode(found, buffers))
    encoded: ArrayEncoding
    if _is_variable(items.type):
        words = from_arrow(items)
        if not isinstance(words, Variable):
            raise Unsupported(f"type {items.type} as strings")
        encoded = binary.encode(words, _valid(items), buffers)
    else:
        encoded = _encode_fixed(items, buffers)
    return Dictionary(indices, encoded, len(items))
