"""Columns read as keys of their dictionaries, where every page of a file has one: few values are then looked at.

What a dictionary's null entry holds says nothing; the validity of the keys does.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.shape import Leaf, Shape
from lancelet.errors import Unsupported
from lancelet.file.data_file import DataFile
from lancelet.file.legacy import LegacyFile
from lancelet.format import compressions as c
from lancelet.format.layouts import MiniBlockLayout
from lancelet.format.versions import FileVersion
from lancelet.query.picking import pick

__all__ = ["KeyShapes", "plain"]

_KEYS = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


class KeyShapes:
    """Shapes to read columns by, one for each kind of file met so far: files remember what they learn by shape."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], tuple[Shape, Leaf]] = {}

    def of(self, file: DataFile | LegacyFile, shapes: Sequence[Shape]) -> list[Shape]:
        """The shapes, with those of columns that are all dictionaries made to read keys."""
        if isinstance(file, LegacyFile) or file.version is FileVersion.V2_0:
            return list(shapes)
        return [self._shape(file, shape) if isinstance(shape, Leaf) else shape for shape in shapes]

    def _shape(self, file: DataFile, leaf: Leaf) -> Shape:
        if not _is_text(leaf.field.type):
            return leaf
        bits = _key_bits(file, leaf.column)
        if bits is None:
            return leaf
        found = self._made.get((id(leaf), bits))
        if found is None:
            kind = pa.dictionary(_KEYS[bits], leaf.field.type)
            # The leaf is kept, too, so that no other can come to have its identity.
            found = self._made[id(leaf), bits] = leaf, Leaf(leaf.field.with_type(kind), leaf.column)
        return found[1]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind))


def _key_bits(file: DataFile, column: int) -> int | None:
    """Bits of a key, the widest of all pages; None where a page has no dictionary."""
    known = file.learnt.key_bits
    if column not in known:
        known[column] = _widest(file, column)
    return known[column]


def _widest(file: DataFile, column: int) -> int | None:
    widest = 0
    for page in file.column(column).pages:
        try:
            layout = page.describe(file.version)
        except Unsupported:
            return None
        if not isinstance(layout, MiniBlockLayout) or layout.dictionary is None:
            return None
        bits = _bits(layout.values)
        if bits not in _KEYS:
            return None
        widest = max(widest, bits)
    return widest or None


def _bits(encoding: c.Compression) -> int:
    """Bits of a decoded value; 0 where that is not known."""
    match encoding:
        case c.Flat(bits) | c.InlineBitpacking(bits) | c.OutOfLineBitpacking(bits):
            return bits
        case c.Rle(values) | c.General(_, values) | c.ByteStreamSplit(values):
            return _bits(values)
    return 0


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The values of a column that was read as keys.

    >>> plain(pa.array(["b", None, "b"]).dictionary_encode()).to_pylist()
    ['b', None, 'b']
    """
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([plain(chunk) for chunk in column.chunks], column.type.value_type)
    if column.null_count:
        return column.dictionary_decode()
    return pick(column.dictionary, column.indices.to_numpy().astype("int64"))
