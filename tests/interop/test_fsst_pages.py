"""FSST pages of the reference implementation: we decode its codes, and it decodes ours when they are put there."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

from lancelet.kernels import fsst, fsst_encode
from lancelet.kernels.symbol_table import read_table

FSST = {b"lance-encoding:compression": b"fsst", b"lance-encoding:structural-encoding": b"miniblock"}
# Bytes 3..8 of a symbol table: the switch and the magic, little-endian.
MARK = b"\x01TSSF"


@dataclass(frozen=True, slots=True)
class Page:
    """The one page of a file of one column without nulls, version 2.1: its table and chunks, by place in the file."""

    raw: bytearray
    table_at: int
    starts: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray

    @property
    def table(self) -> bytes:
        return bytes(self.raw[self.table_at : self.table_at + 2312])


def urls(count: int) -> list[str]:
    random = np.random.default_rng(3)
    stems = ["".join(map(chr, random.integers(97, 123, 6))) for _ in range(40)]
    picks = random.integers(0, 40, (count, 3))
    return [f"https://www.{stems[a]}.example.com/{stems[b]}/{stems[c]}?id={i}" for i, (a, b, c) in enumerate(picks)]


def write(path: Path, values: list[str] | list[bytes], kind: pa.DataType) -> Page:
    schema = pa.schema([pa.field("s", kind, nullable=False, metadata=FSST)])
    with lance.file.LanceFileWriter(str(path), schema, version="2.1") as writer:
        writer.write_batch(pa.record_batch([pa.array(values, kind)], schema=schema))
    raw = bytearray(path.read_bytes())
    assert raw.count(MARK) == 1
    # Chunk words come first in the file: the low four bits are the logarithm of the count of values, 0 in the last one,
    # the others size / 8 - 1. The chunks follow at the next multiple of 64.
    words = [struct.unpack_from("<H", raw)[0]]
    while words[-1] & 15:
        words.append(struct.unpack_from("<H", raw, 2 * len(words))[0])
    counts = [1 << (word & 15) for word in words[:-1]]
    counts.append(len(values) - sum(counts))
    places, sizes, at = [], [], -(-2 * len(words) // 64) * 64
    for word in words:
        # Two numbers of 16 bits lead a chunk, the count of levels and the size of the values; eight bytes are kept.
        places.append(at + 8)
        sizes.append(struct.unpack_from("<H", raw, at + 2)[0])
        at += ((word >> 4) + 1) * 8
    return Page(raw, raw.index(MARK) - 3, *(np.array(each, np.int64) for each in (places, sizes, counts)))


def decoded(page: Page, offset_bytes: int) -> list[bytes]:
    total = int(page.counts.sum())
    offsets, out = np.empty(total + 1, np.int64), np.empty(8 * int(page.sizes.sum()), np.uint8)
    data = np.frombuffer(bytes(page.raw), np.uint8)
    fsst.decode_chunks(page.table, data, page.starts, page.sizes, page.counts, offset_bytes, offsets, out)
    return [out[a:b].tobytes() for a, b in pairwise(offsets)]


@pytest.mark.parametrize(("kind", "offset_bytes"), [(pa.string(), 4), (pa.large_string(), 8)])
def test_its_pages_decode_to_its_strings(tmp_path: Path, kind: pa.DataType, offset_bytes: int) -> None:
    values = urls(5000)
    page = write(tmp_path / "a.lance", values, kind)
    assert decoded(page, offset_bytes) == [value.encode() for value in values]
    assert len(read_table(page.table)[0]) > 100


def test_it_decodes_our_codes_and_our_table(tmp_path: Path) -> None:
    values = urls(5000)
    path = tmp_path / "a.lance"
    page = write(path, values, pa.string())
    data = np.frombuffer("".join(values).encode(), np.uint8)
    offsets = np.cumsum([0, *map(len, values)])
    table = fsst_encode.train(data, offsets)
    assert table != page.table
    first = 0
    for start, size, count in zip(page.starts.tolist(), page.sizes.tolist(), page.counts.tolist(), strict=True):
        ends, out = np.empty(count + 1, np.int64), np.empty(2**16, np.uint8)
        made = fsst_encode.encode(table, data, offsets[first : first + count + 1], ends, out)
        chunk = (ends + 4 * (count + 1)).astype("<u4").tobytes() + out[:made].tobytes()
        # Our codes take less room than those they replace; what is left over is never looked at.
        assert len(chunk) <= size
        page.raw[start : start + len(chunk)] = chunk
        first += count
    page.raw[page.table_at : page.table_at + 2312] = table
    path.write_bytes(page.raw)
    assert lance.file.LanceFileReader(str(path)).read_all().to_table()["s"].to_pylist() == values
