"""Full-zip pages: what is read for which rows, and what is refused, without any file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.encodings import full_zip, full_zip_write
from lancelet.encodings.chunks import Ints
from lancelet.encodings.full_zip_codecs import store_fixed, store_variable
from lancelet.encodings.full_zip_values import stored_bits
from lancelet.encodings.knobs import Knobs
from lancelet.encodings.leaf_page import LeafPage
from lancelet.encodings.shape import Leaf
from lancelet.encodings.values import Fixed, FixedList, from_arrow
from lancelet.errors import Corrupt, Unsupported
from lancelet.file import LanceFileReader, LanceFileWriter
from lancelet.file.data_file import open_file
from lancelet.format import compressions as c
from lancelet.format.layouts import FullZipLayout, Layer
from lancelet.format.versions import FileVersion
from lancelet.storage import open_store
from lancelet.storage.counting import CountingStore

WORDS = FullZipLayout(
    values=c.Variable(c.Flat(32)),
    layers=(Layer.ALL_VALID_ITEM,),
    bits_rep=0,
    bits_def=0,
    num_items=1000,
    num_visible_items=1000,
    bits_per_offset=32,
)
VECTORS = replace(WORDS, values=c.FixedSizeList(64, c.Flat(32)), bits_per_offset=None, bits_per_value=2048)
VALUES, INDEX = (0, 100_000), (100_032, 4004)


def leaf_page(array: pa.Array, definition: list[int] | None = None) -> LeafPage:
    levels = None if definition is None else np.array(definition, np.uint16)
    return LeafPage(
        kind=array.type,
        version=FileVersion.V2_1,
        num_rows=len(array),
        layers=(Layer.ALL_VALID_ITEM if definition is None else Layer.NULLABLE_ITEM,),
        repetition=None,
        definition=levels,
        num_items=len(array),
        values=from_arrow(array),
        validity=None if levels is None else np.packbits(levels == 0, bitorder="little"),
    )


def test_a_page_is_laid_out_as_the_format_says() -> None:
    page = full_zip_write.encode(leaf_page(pa.array(["x" * 3, "", "", "yyy"]), [0, 0, 1, 0]), Knobs())
    assert page.buffers[0].tobytes().hex(" ") == "00 03 00 00 00 78 78 78 00 00 00 00 00 01 00 03 00 00 00 79 79 79"
    assert page.buffers[1].tolist() == [0, 8, 13, 14, 22]
    assert isinstance(page.layout, FullZipLayout)
    assert (page.layout.bits_rep, page.layout.bits_def, page.layout.bits_per_offset) == (0, 1, 32)


def test_values_of_one_width_without_nulls_are_not_copied() -> None:
    array = pa.array(np.arange(640, dtype=np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(array, 64)
    (buffer,) = full_zip_write.encode(leaf_page(vectors), Knobs()).buffers
    assert buffer.__array_interface__["data"][0] == array.buffers()[1].address


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (slice(0, 1000), []),
        (slice(10, 12), [(100_032 + 40, 12)]),
        (np.array([3]), [(100_032 + 12, 8)]),
        (np.array([3, 900]), [(100_032 + 12, 3596)]),
        (np.array([], np.int64), []),
    ],
)
def test_only_the_entries_of_wanted_rows_are_read(wanted: slice | Ints, expected: list[tuple[int, int]]) -> None:
    assert full_zip.index_ranges(WORDS, (VALUES, INDEX), 1000, wanted) == expected


def test_entries_far_apart_are_read_one_by_one() -> None:
    index = (0, 4 * 1_000_001)
    far = np.array([5, 900_000])
    assert full_zip.index_ranges(WORDS, (VALUES, index), 1_000_000, far) == [(20, 8), (3_600_000, 8)]
    assert full_zip.index_ranges(WORDS, (VALUES, index), 1_000_000, slice(5, 900_000)) == [(20, 4), (3_600_000, 4)]


def test_values_of_one_width_are_found_by_counting() -> None:
    assert full_zip.index_ranges(VECTORS, ((0, 256_000),), 1000, np.array([1, 5])) == []
    index = full_zip.load_index(VECTORS, ((0, 256_000),), 1000, np.array([1, 5]), [])
    assert (index.starts.tolist(), index.ends.tolist()) == ([256, 1280], [512, 1536])


@pytest.mark.parametrize(
    ("layout", "buffers", "wanted", "loaded", "message"),
    [
        (VECTORS, ((0, 255_999),), slice(0, 9), [], "expected 256,000 for 1,000 rows of 256"),
        (replace(VECTORS, bits_per_value=2049), ((0, 1),), slice(0, 9), [], "its encoding makes 2048"),
        (WORDS, (VALUES, (0, 4005)), slice(0, 9), [], "expected 1, 2, 4 or 8"),
        (WORDS, (VALUES, INDEX), slice(0, 1), [[9, 0, 0, 0, 8, 0, 0, 0]], "bytes 9..8 of 100,000"),
        (WORDS, (VALUES, INDEX), slice(0, 1), [[9, 0, 0, 0, 8, 0, 0, 255]], "of 100,000"),
        (WORDS, (VALUES, INDEX, INDEX), slice(0, 1), [], "3 buffers"),
    ],
)
def test_an_index_that_cannot_be_is_named(
    layout: FullZipLayout,
    buffers: tuple[tuple[int, int], ...],
    wanted: slice,
    loaded: list[list[int]],
    message: str,
) -> None:
    with pytest.raises(Corrupt, match=message):
        full_zip.load_index(layout, buffers, 1000, wanted, [np.array(piece, np.uint8) for piece in loaded])


def test_more_rows_than_asked_for_are_named() -> None:
    index = full_zip.FullZipIndex(np.array([0]), np.array([8]))
    path = (Leaf(pa.field("a", pa.string()), 0),)
    with pytest.raises(Corrupt, match="holds 2 rows where 1 are expected"):
        full_zip.read_rows(WORDS, path, index, np.zeros(8, np.uint8), slice(0, 1), whole=True)


def test_lists_of_no_item_keep_only_their_bitmap() -> None:
    stored = store_fixed(FixedList(9, 2, Fixed(32, 18, np.zeros(72, np.uint8)), np.zeros(3, np.uint8)))
    assert stored.encoding == c.FixedSizeList(9, c.Constant(), has_validity=True)
    assert (stored.width, stored.data.tolist()) == (2, [0, 0, 0, 0])
    assert stored_bits(stored.encoding) == 16


def test_lists_of_booleans_are_refused() -> None:
    with pytest.raises(Unsupported, match="lists of booleans"):
        store_fixed(FixedList(8, 1, Fixed(1, 8, np.zeros(1, np.uint8))))


@pytest.mark.parametrize(
    ("knobs", "array", "expected"),
    [
        (Knobs(), pa.array(["abc" * 500 + str(n) for n in range(90)]), c.Fsst),
        (Knobs(compression="none"), pa.array(["abc" * 500] * 90), c.Variable),
        (Knobs(compression="lz4"), pa.array(["abc" * 500] * 90), c.General),
        (Knobs(compression="zstd"), pa.array(["abc"] * 9), c.Variable),
        (Knobs(), pa.array([b"a" * 40_000]), c.General),
        (Knobs(), pa.array([np.random.default_rng(0).bytes(40_000)]), c.Variable),
    ],
)
def test_strings_take_the_form_that_suits_them(knobs: Knobs, array: pa.Array, expected: type) -> None:
    values = from_arrow(array)
    stored = store_variable(values, None, knobs, text=pa.types.is_string(array.type), offset_bits=32)  # type: ignore[arg-type]
    assert isinstance(stored.encoding, expected)


def test_a_few_rows_of_a_large_page_cost_few_bytes(tmp_path: Path) -> None:
    data = pa.table({"w": [f"{row:05}" * 100 for row in range(9000)]})
    with LanceFileWriter(tmp_path / "a.lance", version="2.2") as writer:
        writer.write_batch(data)
    store = CountingStore(open_store(str(tmp_path)))
    reader = LanceFileReader("", _file=open_file(store, "a.lance"))
    before = store.snapshot().bytes_read
    found = reader.take_rows([17, 8000]).to_table()
    assert found["w"].to_pylist() == [data["w"][17].as_py(), data["w"][8000].as_py()]
    assert store.snapshot().bytes_read - before < 50_000
