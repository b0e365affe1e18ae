"""Binary: strings as ends and bytes; with FSST, bytes in a symbol table's codes; of one size, bytes alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lancelet.encodings import fsst as fsst_codec
from lancelet.encodings.chunks import Ints
from lancelet.encodings.v2_0 import flat, spans
from lancelet.encodings.v2_0.buffers import Decoded, PageBuffers, Pending, Rows, count_of, expanded, runs_of
from lancelet.encodings.v2_0.spans import Reader, Spans
from lancelet.encodings.v2_0.steps import Steps, both, fetch
from lancelet.encodings.values import Bytes, Fixed, Variable
from lancelet.encodings.variable import offset_type
from lancelet.errors import Corrupt, Unsupported
from lancelet.format.arrays import (
    ArrayEncoding,
    Binary,
    Compression,
    FixedSizeBinary,
    Flat,
    Fsst,
    NoNulls,
)
from lancelet.kernels import fsst_encode, gather

__all__ = ["encode", "encode_fsst", "read", "read_fixed_size", "read_fsst"]


def read(encoding: Binary, source: PageBuffers, rows: Rows, reader: Reader) -> Steps[Pending]:
    """Some rows. Where all bytes are cheap or needed, ends and bytes are asked for together."""
    data = _flat_bytes(encoding.data)
    ends = spans.read(encoding.indices, encoding.null_adjustment, source, rows, reader)
    if source.whole or source.covers(rows) or data.compression is not None:
        spans_of, stored = yield from both(ends, flat.read_all(data, source))
        return lambda: _cut(spans_of(), flat.decompressed(data.compression, stored))
    found = (yield from ends)()
    start, size = source.place(data.buffer)
    _check_end(found, size)
    pieces = yield from fetch(runs_of(start + found.starts, start + found.stops))
    return lambda: _joined(found, np.concatenate([np.zeros(0, np.uint8), *pieces]))


def _flat_bytes(encoding: ArrayEncoding) -> Flat:
    while isinstance(encoding, NoNulls):
        encoding = encoding.values
    if not isinstance(encoding, Flat):
        raise Unsupported(f"bytes of strings in encoding {type(encoding).__name__}")
    if encoding.bits_per_value != 8:
        raise Corrupt(f"bytes of strings have {encoding.bits_per_value} bits each")
    return encoding


def _check_end(found: Spans, size: int) -> None:
    if len(found.stops) and int(found.stops[-1]) > size:
        raise Corrupt(f"strings end at byte {int(found.stops[-1]):,} of {size:,}")


def _cut(found: Spans, data: Bytes) -> Decoded:
    """The strings out of all bytes of the page."""
    _check_end(found, len(data))
    if not len(found.starts):
        return _joined(found, data[:0])
    if found.bounds is not None:
        return _joined(found, data[int(found.starts[0]) : int(found.stops[-1])])
    out = np.empty(int(found.sizes.sum()), np.uint8)
    gather.copy_pieces(data, np.ascontiguousarray(found.starts), found.sizes, out)
    return _joined(found, out)


def _joined(found: Spans, data: Bytes) -> Decoded:
    offsets: Ints = found.offsets()
    narrow = offsets.astype(offset_type(len(data)), copy=False)
    return Decoded(Variable(len(found.starts), narrow, data), found.validity)


def read_fsst(encoding: Fsst, source: PageBuffers, rows: Rows, reader: Reader) -> Steps[Pending]:
    """Strings written in codes."""
    pending = yield from reader(encoding.binary, pa.large_binary(), source, rows)

    def finish() -> Decoded:
        packed = pending()
        if not isinstance(packed.values, Variable):
            raise Corrupt("values in FSST codes are not strings")
        return Decoded(fsst_codec.decode(encoding.symbol_table, packed.values), packed.validity)

    return finish


def read_fixed_size(encoding: FixedSizeBinary, source: PageBuffers, rows: Rows, reader: Reader) -> Steps[Pending]:
    """Strings of one size, whose offsets follow from it."""
    width, count = encoding.byte_width, count_of(rows)
    if isinstance(rows, slice):
        inner: Rows = slice(rows.start * width, rows.stop * width)
    else:
        inner = expanded(rows, width)
    pending = yield from reader(encoding.data, pa.uint8(), source, inner)

    def finish() -> Decoded:
        found = pending().values
        if not isinstance(found, Fixed) or found.bits != 8:
            raise Corrupt("strings of one size are not stored as bytes")
        offsets = np.arange(count + 1, dtype=offset_type(count * width)) * width
        return Decoded(Variable(count, offsets, found.data))

    return finish


def encode(
    values: Variable, valid: np.ndarray | None, buffers: list[Bytes], compression: Compression | None = None
) -> Binary:
    """Append ends and bytes; only the bytes are compressed."""
    ends, adjustment = spans.encode(values.offsets, valid)
    indices = NoNulls(flat.encode(ends, buffers))
    data = values.data[int(values.offsets[0]) : int(values.offsets[-1])]
    return Binary(indices, flat.encode(Fixed(8, len(data), data), buffers, compression), adjustment)


def encode_fsst(values: Variable, valid: np.ndarray | None, buffers: list[Bytes]) -> Fsst:
    """Append ends and bytes in the codes of a table made for them."""
    table = fsst_encode.train(values.data, values.offsets)
    packed = np.empty(2 * int(values.offsets[-1] - values.offsets[0]), np.uint8)
    offsets = np.empty_like(values.offsets)
    size = fsst_encode.encode(np.frombuffer(table, np.uint8), values.data, values.offsets, offsets, packed)
    return Fsst(encode(Variable(values.count, offsets, packed[:size]), valid, buffers), table)
