"""Damaged files of version 2.0 give typed errors that name the file, never anything else, and take bounded time."""

from __future__ import annotations

import dataclasses
import random
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.errors import LanceletError
from lancelet.file import LanceFileReader, LanceFileWriter
from lancelet.file.data_file import open_file
from lancelet.format.arrays import (
    ArrayEncoding,
    Bitpacked,
    BitpackedForNonNeg,
    Buffer,
    FixedSizeBinary,
    FixedSizeList,
    Flat,
    NoNulls,
)
from lancelet.format.columns import Column, Page, describe_page, write_column
from lancelet.format.footer import Footer, write_footer, write_offset_table
from lancelet.format.versions import FileVersion
from lancelet.storage import open_store

ROWS = 600
#: What a hostile writer would put in place of a number.
NUMBERS = (0, 1, 2, 7, 8, 63, 64, 65, 1000, 2**16, 2**31 - 1, 2**32 - 1)
LARGE = (2**33, 2**48, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def table() -> pa.Table:
    """Columns in every encoding that the writer chooses."""
    draw = np.random.default_rng(3)
    words = pa.array([f"a word {n}" if n % 7 else None for n in range(ROWS)])
    points = pa.StructArray.from_arrays([pa.array(draw.normal(size=ROWS)), words], names=["x", "w"])
    offsets = pa.array(np.arange(0, ROWS + 1, 2), pa.int32(), mask=np.arange(ROWS // 2 + 1) % 5 == 2)
    inner = pa.ListArray.from_arrays(offsets, points)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, ROWS // 2 + 1, 3), pa.int32()), inner)
    packed = pa.StructArray.from_arrays([pa.array(range(ROWS)), pa.array(draw.normal(size=ROWS))], names=["a", "b"])
    rows = len(lists)
    return pa.table(
        {
            "number": pa.array([n if n % 3 else None for n in range(rows)], pa.int64()),
            "flag": pa.array([n % 3 == 0 if n % 5 else None for n in range(rows)]),
            "nothing": pa.nulls(rows, pa.int32()),
            "few": pa.array([f"{n % 5}" if n % 4 else None for n in range(rows)]),
            "word": words[:rows],
            "zstd": words[:rows],
            "fsst": words[:rows],
            "dictionary": words[:rows].dictionary_encode(),
            "vector": pa.array([[1.0, None, n] if n % 2 else None for n in range(rows)], pa.list_(pa.float32(), 3)),
            "packed": packed[:rows],
            "blob": pa.array([b"x" * (n % 9) if n % 6 else None for n in range(rows)], pa.large_binary()),
            "lists": lists,
        },
        schema=pa.schema(
            [
                ("number", pa.int64()),
                ("flag", pa.bool_()),
                ("nothing", pa.int32()),
                ("few", pa.string()),
                ("word", pa.string()),
                pa.field("zstd", pa.string(), metadata={"lance-encoding:compression": "zstd"}),
                pa.field("fsst", pa.string(), metadata={"lance-encoding:compression": "fsst"}),
                ("dictionary", pa.dictionary(pa.int32(), pa.string())),
                ("vector", pa.list_(pa.float32(), 3)),
                pa.field("packed", packed.type, metadata={"lance-encoding:packed": "true"}),
                pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
                ("lists", lists.type),
            ]
        ),
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of an undamaged file."""
    path = tmp_path_factory.mktemp("v2_0") / "whole.lance"
    with LanceFileWriter(str(path), version="2.0") as writer:
        writer.write_batch(table())
    return path.read_bytes()


def read_all_ways(path: Path) -> None:
    """Read a file column by column, whole, in part, and row by row, mapped and not; only typed errors pass."""
    try:
        reader = LanceFileReader(str(path))
        names = reader.schema.names
    except LanceletError:
        return
    for name in names:
        for mapped in (True, False):
            try:
                one = LanceFileReader(str(path), columns=[name])
                if not mapped:
                    object.__setattr__(one.file, "view", None)
                rows = min(one.num_rows(), ROWS)
                one.read_range(0, rows).to_table().validate(full=False)
                one.read_range(rows // 3, rows // 2).to_table().validate(full=False)
                one.take_rows(range(0, rows, 7)).to_table().validate(full=False)
            except LanceletError as error:
                assert error.uri is not None, error  # noqa: PT017 - an error is allowed, not expected


def check(damaged: bytes, path: Path) -> None:
    path.write_bytes(damaged)
    began = time.perf_counter()
    read_all_ways(path)
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bytes_give_typed_errors(whole: bytes, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(12):
        damaged = bytearray(whole)
        for _ in range(draw.choice((1, 3, 30))):
            # Most of what can go wrong is described behind the data.
            at = draw.randrange(len(whole) // 2, len(whole)) if draw.random() < 0.6 else draw.randrange(len(whole))
            damaged[at] = draw.randrange(256)
        check(bytes(damaged), tmp_path / "f.lance")


@pytest.mark.parametrize("seed", range(3))
def test_cut_files_give_typed_errors(whole: bytes, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(6):
        start = draw.randrange(len(whole))
        check(whole[:start] + whole[start + draw.randrange(1, 200) :], tmp_path / "f.lance")


def changed(encoding: object, draw: random.Random, share: float) -> object:
    """An encoding with some of its numbers, or of its parts, replaced by others."""
    if not dataclasses.is_dataclass(encoding) or isinstance(encoding, type):
        return encoding
    if draw.random() < share / 4 and not isinstance(encoding, Buffer):
        width, word, buffer = draw.choice(NUMBERS[:8]), draw.choice((8, 16, 32, 64)), Buffer(draw.randrange(3))
        flat = NoNulls(Flat(8, Buffer(draw.randrange(3))))
        return draw.choice(
            [
                Bitpacked(width, word, buffer, draw.random() < 0.5),
                BitpackedForNonNeg(width, word, buffer),
                FixedSizeBinary(flat, draw.choice(NUMBERS)),
                FixedSizeList(draw.choice(NUMBERS), flat),
            ]
        )
    values: dict[str, object] = {}
    for field in dataclasses.fields(encoding):
        value = getattr(encoding, field.name)
        if isinstance(value, int) and not isinstance(value, bool) and field.name != "home" and draw.random() < share:
            wide = field.name in ("null_adjustment", "null_offset_adjustment", "num_items")
            limit = 2**64 if wide or field.name.endswith("bits_per_value") else 2**32
            value = draw.choice([one for one in NUMBERS + LARGE if one < limit])
        elif isinstance(value, tuple):
            value = tuple(changed(one, draw, share) for one in value)
        else:
            value = changed(value, draw, share)
        values[field.name] = value
    return type(encoding)(**values)


def rewritten(path: Path, draw: random.Random) -> bytes:
    """The file with the description of some pages changed, and everything around them in order."""
    file = open_file(open_store(str(path.parent)), path.name)
    data = path.read_bytes()[: file.footer.column_metadata_start]
    columns = []
    for number in range(len(file.column_places)):
        column = file.column(number)
        columns.append(
            Column(tuple(changed_page(page, draw) for page in column.pages), column.buffers, column.encoding)
        )
    places, position, parts = [], len(data), [data]
    for column in columns:
        parts.append(write_column(column))
        places.append((position, len(parts[-1])))
        position += len(parts[-1])
    tables = [write_offset_table(places), write_offset_table(file.global_buffers)]
    footer = Footer(FileVersion.V2_0, len(data), position, position + len(tables[0]), 1, len(columns))
    return b"".join([*parts, *tables, write_footer(footer)])


def changed_page(page: Page, draw: random.Random) -> Page:
    if draw.random() < 0.5:
        return page
    encoding = changed(page.describe(FileVersion.V2_0), draw, draw.choice((0.1, 0.3)))
    length = draw.choice([one for one in NUMBERS + LARGE if one < 2**63]) if draw.random() < 0.2 else page.length
    buffers = list(page.buffers)
    if buffers and draw.random() < 0.3:
        at = draw.randrange(len(buffers))
        buffers[at] = (buffers[at][0], draw.randrange(buffers[at][1] + 1))
    assert isinstance(encoding, ArrayEncoding)
    return describe_page(encoding, buffers=buffers, length=length, priority=0)


@pytest.mark.parametrize("seed", range(8))
def test_lying_encodings_give_typed_errors(whole: bytes, tmp_path: Path, seed: int) -> None:
    draw = random.Random(1000 + seed)
    path = tmp_path / "whole.lance"
    path.write_bytes(whole)
    for _ in range(10):
        try:
            damaged = rewritten(path, draw)
        except LanceletError:
            continue
        check(damaged, tmp_path / "f.lance")


def test_blobs_that_overlap_are_refused_when_they_exceed_the_budget(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f.lance"
    path.write_bytes(whole)
    reader = LanceFileReader(str(path), columns=["blob"])
    column = reader.shapes[0].column
    start, _ = reader.file.column(column).pages[0].buffers[0]
    damaged = bytearray(whole)
    damaged[start : start + 16] = (0).to_bytes(8, "little") + len(whole).to_bytes(8, "little")
    check(bytes(damaged), path)
    damaged[start : start + 16] = (1).to_bytes(8, "little") + len(whole).to_bytes(8, "little")
    path.write_bytes(bytes(damaged))
    with pytest.raises(LanceletError, match="ends past the file"):
        LanceFileReader(str(path), columns=["blob"]).read_all().to_table()
