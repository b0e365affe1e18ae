"""Full-zip, constant and blob pages with damaged bytes: a typed error or some rows, soon and within bounds."""

from __future__ import annotations

import random
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.encodings import page as pages
from lancelet.encodings.page import Rows, StoredPage
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt, InvalidInput, LanceletError, OverBudget, Unsupported
from lancelet.file import LanceFileReader, LanceFileWriter
from lancelet.file.requests import requests_for
from lancelet.format import compressions as c
from lancelet.format.columns import Range
from lancelet.format.layouts import BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout, PageLayout
from lancelet.testing.wide import WideCase, blob_cases, packed_cases, wide_cases

EXPECTED = (Corrupt, Unsupported, OverBudget)
MOST_BYTES = 64 * 2**20
CONSTANTS = [
    WideCase("constant lists", pa.array([[], None, [None]] * 90, pa.list_(pa.int32()))),
    WideCase("constant words", pa.array(["x" * 20] * 90)),
    WideCase("constant numbers", pa.array([5] * 90)),
]


def stored_pages(folder: Path, case: WideCase, version: str) -> tuple[Bytes, list[StoredPage]]:
    """The bytes of a file with one column, and its pages."""
    path = folder / "a.lance"
    with LanceFileWriter(path, case.table().schema, version=version) as writer:
        writer.write_batch(case.table())
    reader = LanceFileReader(str(path))
    requests = requests_for(reader.file, reader.shapes[0], slice(0, reader.num_rows()))
    return np.fromfile(path, np.uint8), [request.page for request in requests]


def read(data: Bytes, page: StoredPage, rows: Rows, *, whole: bool) -> pa.Array:
    """What the reader does with one page."""

    def bytes_of(ranges: list[Range]) -> list[Bytes]:
        for start, size in ranges:
            if start + size > len(data) and not whole:
                raise Corrupt("the store refuses")
        return [data[start : start + size] for start, size in ranges]

    index = pages.load_index(page, rows, bytes_of(pages.index_ranges(page, rows)))
    array = pages.read(page, index, rows, bytes_of(pages.data_ranges(page, index, rows, whole=whole)), whole=whole)
    array.validate(full=True)
    return array


def damaged_bytes(draw: random.Random, data: Bytes, page: StoredPage) -> Bytes:
    """The file with some bytes of the page's buffers changed."""
    changed = data.copy()
    places = [place for start, size in page.buffers for place in (range(start, start + size))]
    for _ in range(draw.choice([1, 1, 3, 20]) if places else 0):
        place = draw.choice(places[:64] if draw.random() < 0.5 else places)
        changed[place] = draw.choice([0, 255, 127, draw.randrange(256)])
    return changed


def damaged_layout(draw: random.Random, page: StoredPage) -> StoredPage:
    """The page with another number somewhere in its description."""
    number = draw.choice([0, 1, 7, 8, 16, 17, 33, 64, 255, 2**31, 2**63])
    layout: PageLayout = page.layout
    buffers = page.buffers
    match draw.randrange(4), layout:
        case 0, FullZipLayout():
            layout = draw.choice(
                [
                    replace(layout, bits_rep=number),
                    replace(layout, bits_def=number),
                    replace(layout, num_items=number, num_visible_items=number),
                ]
            )
        case 1, FullZipLayout():
            fixed = layout.bits_per_value is not None
            layout = replace(layout, bits_per_value=number) if fixed else replace(layout, bits_per_offset=number)
        case 2, FullZipLayout() | ConstantLayout() | BlobLayout():
            layout = replace(layout, layers=layout.layers[: draw.randrange(3)] * 2)
        case 3, FullZipLayout():
            layout = replace(layout, values=draw.choice(ENCODINGS))
        case _, ConstantLayout():
            layout = replace(layout, num_rep_values=number, num_def_values=number)
        case _, BlobLayout(inner=MiniBlockLayout() as inner):
            layout = replace(layout, inner=replace(inner, num_items=number))
        case _:
            buffers = buffers[:-1]
    if draw.random() < 0.2 and buffers:
        start, size = buffers[0]
        buffers = ((start, draw.randrange(size + 1)), *buffers[1:])
    return replace(page, layout=layout, buffers=buffers)


ENCODINGS: list[c.Compression] = [
    c.Flat(8),
    c.Flat(2**40),
    c.FixedSizeList(2**62, c.Flat(32)),
    c.FixedSizeList(2**30, c.Constant(), has_validity=True),
    c.FixedSizeList(2**30, c.Constant()),
    c.FixedSizeList(3, c.FixedSizeList(0, c.Flat(8), has_validity=True), has_validity=True),
    c.Variable(c.Flat(64)),
    c.Fsst(b"", c.Variable(c.Flat(32))),
    c.Fsst(bytes(2312), c.Flat(8)),
    c.General(c.BufferCompression(c.Scheme.ZSTD), c.Variable(c.Flat(32))),
    c.General(c.BufferCompression(c.Scheme.LZ4), c.Variable(c.Flat(32))),
    c.VariablePackedStruct((c.PackedField(c.Flat(8), bits_per_value=8),)),
    c.VariablePackedStruct((c.PackedField(c.Flat(2**50), bits_per_value=2**50),) * 2),
    c.VariablePackedStruct(()),
    c.PackedStruct((8, 2**40), c.Flat(2**40 + 8)),
]


def some_rows(draw: random.Random, rows: int) -> Rows:
    if draw.random() < 0.3:
        return slice(0, rows)
    if draw.random() < 0.5:
        start = draw.randrange(rows)
        return slice(start, draw.randrange(start + 1, rows + 1))
    return np.sort(np.array(draw.choices(range(rows), k=5), np.int64))


def all_cases() -> list[WideCase]:
    cases = [*list(wide_cases(1))[::2], *packed_cases(1), *blob_cases(1), *CONSTANTS]
    return [case for case in cases if len(case.array)]


@pytest.mark.parametrize("what", ["bytes", "layout"])
def test_damaged_pages_give_typed_errors_or_rows(tmp_path: Path, what: str) -> None:
    draw = random.Random(what)
    refused = tried = 0
    for case in all_cases():
        data, stored = stored_pages(tmp_path, case, "2.2")
        for _ in range(12):
            page = draw.choice(stored)
            changed, damaged = data, page
            if what == "bytes":
                changed = damaged_bytes(draw, data, page)
            else:
                damaged = damaged_layout(draw, page)
            tried += 1
            try:
                rows = some_rows(draw, page.rows)
                read(changed, damaged, rows, whole=draw.random() < 0.5)
            except EXPECTED:
                refused += 1
            except pa.ArrowException:
                # Bytes that are no text, and the like: reading.py turns these into Corrupt.
                refused += 1
    assert refused > tried // 20


def test_a_page_cannot_ask_for_more_memory_than_it_is_worth(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        for case in list(wide_cases(2))[:20]:
            data, (page, *_) = stored_pages(tmp_path, case, "2.2")
            if not isinstance(page.layout, FullZipLayout):
                continue
            for encoding in ENCODINGS:
                damaged = replace(page, layout=replace(page.layout, values=encoding))
                with suppress(LanceletError, pa.ArrowException):
                    read(data, damaged, slice(0, page.rows), whole=True)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_beyond_the_end_of_the_file_are_named(tmp_path: Path, version: str) -> None:
    case = WideCase("blob", pa.array([b"x" * 100, b"y" * 200], pa.large_binary()), {"lance-encoding:blob": "true"})
    data, (page,) = stored_pages(tmp_path, case, version)
    (start, _) = page.buffers[1]
    positions = data[start:].copy()
    found = int(np.flatnonzero(positions[:64] == 100)[0])
    data[start + found + 6] = 1
    with pytest.raises((Corrupt, OverBudget)):
        read(data, page, slice(0, 2), whole=True)


def test_blobs_in_lists_are_refused(tmp_path: Path) -> None:
    kind = pa.list_(pa.field("item", pa.large_binary(), metadata={"lance-encoding:blob": "true"}))
    with (
        pytest.raises((Unsupported, InvalidInput), match="blobs inside lists"),
        LanceFileWriter(tmp_path / "a.lance", version="2.1") as writer,
    ):
        writer.write_batch(pa.table([pa.array([[b"x"]], kind)], schema=pa.schema([pa.field("c", kind)])))
