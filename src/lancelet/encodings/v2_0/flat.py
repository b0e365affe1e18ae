"""Flat: values of one width side by side, or single bits; the whole buffer may be compressed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lancelet.encodings import general
from lancelet.encodings.budget import check_budget
from lancelet.encodings.v2_0.buffers import (
    Decoded,
    PageBuffers,
    Pending,
    Rows,
    aligned,
    count_of,
    put,
    read_bits,
    read_bytes,
    select_bits,
    select_bytes,
)
from lancelet.encodings.v2_0.steps import Steps, fetch
from lancelet.encodings.values import Bytes, Fixed
from lancelet.errors import Corrupt, Unsupported
from lancelet.format.arrays import Compression, Flat
from lancelet.format.compressions import BufferCompression, Scheme

__all__ = ["compressed", "decompressed", "encode", "read", "read_all"]

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SCHEMES = {"zstd": Scheme.ZSTD, "lz4": Scheme.LZ4}
_STEP = 2**20


def read(encoding: Flat, source: PageBuffers, rows: Rows) -> Steps[Pending]:
    """Some rows."""
    bits = encoding.bits_per_value
    if bits != 1 and (bits % 8 or not bits):
        raise Corrupt(f"flat values have {bits} bits each, expected 1 or a multiple of 8")
    if encoding.compression is not None:
        packed = yield from read_all(encoding, source)
        return lambda: Decoded(_select(decompressed(encoding.compression, packed), bits, rows))
    if bits == 1:
        data = yield from read_bits(source, encoding.buffer, rows)
    else:
        data = yield from read_bytes(source, encoding.buffer, bits // 8, rows)
    return lambda: Decoded(Fixed(bits, count_of(rows), aligned(data, bits // 8)))


def _select(data: Bytes, bits: int, rows: Rows) -> Fixed:
    picked = select_bits(data, rows) if bits == 1 else select_bytes(data, bits // 8, rows)
    return Fixed(bits, count_of(rows), aligned(picked, bits // 8))


def read_all(encoding: Flat, source: PageBuffers) -> Steps[Bytes]:
    """The entire buffer as it is stored."""
    (data,) = yield from fetch([source.place(encoding.buffer)])
    return data


def decompressed(compression: Compression | None, data: Bytes) -> Bytes:
    """The plain bytes of a stored buffer."""
    if compression is None or compression.scheme in ("", "none"):
        return data
    scheme = _SCHEMES.get(compression.scheme)
    if scheme is None:
        raise Unsupported(f"buffer is compressed with {compression.scheme!r}, expected one of: {', '.join(_SCHEMES)}")
    if not len(data):
        return data
    if scheme is Scheme.ZSTD and data[:4].tobytes() == _ZSTD_MAGIC and data[8:12].tobytes() != _ZSTD_MAGIC:
        return _stream(data)
    return general.decompress(scheme, data)


def _stream(data: Bytes) -> Bytes:
    """A zstd frame without its size before it, as the first writers of 2.0 left it."""
    pieces, size = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "zstd") as stream:
            while piece := stream.read(_STEP):
                size += len(piece)
                check_budget(size)
                pieces.append(piece)
    except pa.ArrowException as error:
        raise Corrupt(f"buffer is not a zstd frame: {error}") from None
    except OSError as error:
        raise Corrupt(f"buffer is not a zstd frame: {error}") from None
    return np.frombuffer(b"".join(pieces), np.uint8)


def encode(values: Fixed, buffers: list[Bytes], compression: Compression | None = None) -> Flat:
    """Append the values' bytes, compressed if asked for."""
    data = values.data[: (values.count * values.bits + 7) // 8]
    return Flat(values.bits, put(buffers, compressed(compression, data)), compression)


def compressed(compression: Compression | None, data: Bytes) -> Bytes:
    """The stored form of plain bytes."""
    if compression is None:
        return data
    return general.compress(BufferCompression(_SCHEMES[compression.scheme], compression.level), data)
