"""What pylance's data files say about themselves is understood, and written again gives the same bytes."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

from lancelet.format import arrays
from lancelet.format.blobs import file_schema
from lancelet.format.columns import Column, Page, describe_page, parse_column, write_column
from lancelet.format.fields import FileDescriptor, parse_file_descriptor, write_file_descriptor
from lancelet.format.footer import (
    Footer,
    LegacyFooter,
    parse_footer,
    parse_offset_table,
    write_footer,
    write_legacy_footer,
    write_offset_table,
)
from lancelet.format.legacy import (
    parse_framed,
    parse_legacy_manifest,
    parse_legacy_metadata,
    parse_page_table,
    write_legacy_metadata,
)
from lancelet.format.versions import FileVersion

ROWS = 3000


def sprinkled(values: list[object], share: float, seed: int) -> list[object]:
    """The values, some of them replaced by None."""
    draw = random.Random(seed)
    return [None if draw.random() < share else value for value in values]


def corpus() -> pa.Table:
    """Columns that make the writer use many layouts and encodings."""
    draw = np.random.default_rng(5)
    floats = draw.normal(size=ROWS * 8).astype(np.float32)
    return pa.table(
        {
            "small": draw.integers(0, 9, ROWS),
            "wide": draw.integers(-(2**60), 2**60, ROWS),
            "nullable": pa.array(sprinkled(list(range(ROWS)), 0.3, 1), pa.int32()),
            "constant": pa.array([7] * ROWS, pa.int16()),
            "nothing": pa.array([None] * ROWS, pa.int64()),
            "null": pa.nulls(ROWS),
            "runs": np.repeat(draw.integers(0, 2**40, ROWS // 100), 100),
            "flags": pa.array(sprinkled([True, False] * (ROWS // 2), 0.1, 2)),
            "double": draw.normal(size=ROWS),
            "words": pa.array([f"word {n % 50}" for n in range(ROWS)]),
            "texts": pa.array(sprinkled([f"a longer text, number {n}" for n in range(ROWS)], 0.2, 3)),
            "large": pa.array(["x" * 500 + str(n) for n in range(ROWS)]),
            "bytes": pa.array([bytes([n % 256]) * 20 for n in range(ROWS)], pa.binary(20)),
            "vectors": pa.FixedSizeListArray.from_arrays(pa.array(floats), 8),
            "lists": pa.array([[1, 2, 3][: n % 4] if n % 5 else None for n in range(ROWS)], pa.list_(pa.int32())),
            "deep": pa.array([[["a"], []] if n % 3 else [] for n in range(ROWS)], pa.list_(pa.list_(pa.string()))),
            "dictionary": pa.array([f"{n % 7}" for n in range(ROWS)]).dictionary_encode(),
            "struct": pa.array([{"x": n, "y": [str(n)]} for n in range(ROWS)]),
        }
    )


EXTRA = {
    "zstd": pa.field("c", pa.string(), metadata={"lance-encoding:compression": "zstd"}),
    "lz4": pa.field("c", pa.string(), metadata={"lance-encoding:compression": "lz4"}),
    "fsst": pa.field("c", pa.string(), metadata={"lance-encoding:compression": "fsst"}),
    "plain": pa.field("c", pa.string(), metadata={"lance-encoding:compression": "none"}),
    "zipped": pa.field("c", pa.string(), metadata={"lance-encoding:structural-encoding": "fullzip"}),
    "packed": pa.field(
        "c", pa.struct([("a", pa.int32()), ("b", pa.int64())]), metadata={"lance-encoding:packed": "true"}
    ),
    "split": pa.field("c", pa.float32(), metadata={"lance-encoding:bss": "on", "lance-encoding:compression": "lz4"}),
    "blob": pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
}


def values(kind: pa.DataType) -> pa.Array:
    """A few hundred values of a type that ``EXTRA`` uses."""
    if pa.types.is_struct(kind):
        return pa.array([{"a": n, "b": -n} for n in range(500)], kind)
    if pa.types.is_floating(kind):
        return pa.array(np.linspace(0, 1, 500), kind)
    return pa.array([None if n % 9 == 0 else f"some text {n}" for n in range(500)]).cast(kind)


def columns_of(data: bytes, footer: Footer) -> list[tuple[bytes, Column]]:
    """Each column's metadata as stored and as parsed."""
    start, size = footer.column_table
    table = parse_offset_table(data[start : start + size], len(data))
    assert write_offset_table(table) == data[start : start + size]
    stored = [data[at : at + length] for at, length in table.tolist()]
    return [(raw, parse_column(raw, footer.version, len(data))) for raw in stored]


def descriptor_of(data: bytes, footer: Footer) -> FileDescriptor:
    """The first global buffer, which is written again as it was."""
    start, size = footer.global_table
    (at, length), *_ = parse_offset_table(data[start : start + size], len(data), what="global buffer").tolist()
    return parse_file_descriptor(data[at : at + length])


def again(page: Page, version: FileVersion) -> Page:
    """The page with its description parsed and written."""
    return describe_page(page.describe(version), buffers=page.buffers, length=page.length, priority=page.priority)


def assert_understood(path: Path, version: str, rows: int) -> list[Column]:
    """Footer, tables, columns and pages are read, and give the stored bytes when written."""
    data = path.read_bytes()
    footer = parse_footer(data[-40:], len(data))
    assert isinstance(footer, Footer)
    assert footer.version is FileVersion.parse(version)
    assert write_footer(footer) == data[-40:]
    descriptor = descriptor_of(data, footer)
    assert descriptor.length == rows
    assert parse_file_descriptor(write_file_descriptor(descriptor)) == descriptor
    columns = columns_of(data, footer)
    for raw, column in columns:
        assert write_column(column) == raw
        assert tuple(again(page, footer.version) for page in column.pages) == column.pages
    return [column for _, column in columns]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_file_of_many_columns_is_understood(tmp_path: Path, version: str) -> None:
    path, table = tmp_path / "a.lance", corpus()
    with LanceFileWriter(str(path), table.schema, version=version) as writer:
        writer.write_batch(table)
    columns = assert_understood(path, version, ROWS)
    reported = LanceFileReader(str(path)).metadata().columns
    for ours, theirs in zip(columns, reported, strict=True):
        for page, other in zip(ours.pages, theirs.pages, strict=True):
            assert list(page.buffers) == [(buffer.position, buffer.size) for buffer in other.buffers]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("case", EXTRA)
def test_fields_with_encoding_metadata_are_understood(tmp_path: Path, case: str, version: str) -> None:
    path, field = tmp_path / "a.lance", EXTRA[case]
    array = values(field.type)
    with LanceFileWriter(str(path), pa.schema([field]), version=version) as writer:
        writer.write_batch(pa.record_batch([array], schema=pa.schema([field])))
    (first, *_) = assert_understood(path, version, len(array))
    if case == "blob" and version == "2.0":
        assert first.encoding == arrays.BlobColumn(arrays.ValuesColumn())


def test_a_dataset_of_blobs_is_understood(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"abc", None, b"", b"x" * 100_000])], schema=pa.schema([field]))
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.2")
    (path,) = (tmp_path / "t/data").glob("*.lance")
    data = path.read_bytes()
    assert_understood(path, "2.2", 4)
    footer = parse_footer(data, len(data))
    assert isinstance(footer, Footer)
    schema = descriptor_of(data, footer).schema
    assert [item.name for item in schema.walk()] == ["b", "kind", "position", "size", "blob_id", "blob_uri"]
    assert file_schema(schema) == schema


def test_a_legacy_file_is_understood(tmp_path: Path) -> None:
    table = corpus().drop_columns(["null"])
    lance.write_dataset(table, tmp_path / "t", data_storage_version="legacy")
    (path,) = (tmp_path / "t/data").glob("*.lance")
    data = path.read_bytes()
    footer = parse_footer(data[-16:], len(data))
    assert isinstance(footer, LegacyFooter)
    assert write_legacy_footer(footer) == data[-16:]
    stored = parse_framed(data[footer.metadata_position :], "metadata")
    metadata = parse_legacy_metadata(stored)
    assert parse_legacy_metadata(write_legacy_metadata(metadata)) == metadata
    assert (metadata.num_rows, metadata.num_batches) == (ROWS, 3)
    assert metadata.manifest_position is not None
    fields = parse_legacy_manifest(parse_framed(data[metadata.manifest_position :], "manifest"))
    assert [field.name for field in fields] == table.column_names
    ids = [item.id for field in fields for item in field.walk()]
    size = 16 * len(ids) * metadata.num_batches
    raw = data[metadata.page_table_position : metadata.page_table_position + size]
    pages = parse_page_table(raw, metadata.num_batches, len(data))
    assert pages.shape == (len(ids), 3, 2)
    assert pages[0, :, 1].sum() == ROWS
