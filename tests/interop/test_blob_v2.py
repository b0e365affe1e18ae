"""Blob v2 against pylance: each finds the payloads that the other placed, and both place them alike."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.blob
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from lance.blob import Blob, blob_array, blob_field
from lance.fragment import DataFile, FragmentMetadata

from lancelet.file import LanceFileReader, LanceFileSession, LanceFileWriter
from lancelet.file.blob_descriptors import BlobDescriptorArrayBuilder
from lancelet.file.blob_reader import BlobReader
from lancelet.storage import open_store

SESSIONS: dict[str, Any] = {"lancelet": LanceFileSession, "pylance": lance.file.LanceFileSession}
BUILDERS: dict[str, Any] = {
    "lancelet": BlobDescriptorArrayBuilder,
    "pylance": lance.blob.BlobDescriptorArrayBuilder,
}
SMALL: dict[str, Any] = {
    "inline_size_threshold": 10,
    "dedicated_size_threshold": 1000,
    "pack_file_size_threshold": 1500,
}


def _payloads(seed: int, largest: int, count: int = 60) -> list[bytes | None]:
    draw = np.random.default_rng(seed)
    sizes = np.where(draw.random(count) < 0.5, draw.integers(0, 20, count), draw.integers(0, largest, count))
    nulls = draw.random(count) < 0.1
    return [None if null else draw.bytes(size) for size, null in zip(sizes.tolist(), nulls.tolist(), strict=True)]


def _around_defaults() -> list[bytes | None]:
    sizes = [5 << 20, 70_000, 0, 2, None, 4 << 20, (4 << 20) + 1, 65_536, 65_537]
    return [None if size is None else bytes([at + 1]) * size for at, size in enumerate(sizes)]


def _written_by_pylance(folder: Path, table: pa.Table, **options: Any) -> tuple[lance.LanceDataset, Path]:
    dataset = lance.write_dataset(table, str(folder / "theirs"), data_storage_version="2.2", **options)
    (path,) = (folder / "theirs/data").glob("*.lance")
    return dataset, path


def _committed(folder: Path, table: pa.Table, fields: list[int], **options: Any) -> lance.LanceDataset:
    """A pylance dataset whose only rows are in a data file of ours."""
    uri = folder / "ours"
    dataset = lance.write_dataset(table.slice(0, 0), str(uri), data_storage_version="2.2", **options)
    with LanceFileWriter(uri / "data/mine.lance", table.schema, version="2.2") as writer:
        writer.write_batch(table)
    return _with_file(dataset, uri / "data/mine.lance", fields, table.num_rows)


def _with_file(dataset: lance.LanceDataset, path: Path, fields: list[int], rows: int) -> lance.LanceDataset:
    columns = list(range(len(fields)))
    file = DataFile(path.name, fields, columns, 2, 2, file_size_bytes=path.stat().st_size)
    append = lance.LanceOperation.Append([FragmentMetadata(0, [file], rows)])
    return lance.LanceDataset.commit(dataset.uri, append, read_version=dataset.version)


def _reader(path: Path, **options: Any) -> BlobReader:
    return BlobReader(open_store(path.parent), path.name, **options)


def _descriptors(path: Path, column: str) -> pa.ChunkedArray:
    return LanceFileReader(path, columns=[column]).read_all().to_table()[column]


def _pylance_reads(dataset: lance.LanceDataset, column: str, values: list[bytes | None]) -> None:
    rows = list(range(len(values)))
    assert [data for _, data in dataset.read_blobs(column, indices=rows)] == values
    files = dataset.take_blobs(column, indices=rows)
    assert [None if file is None else file.readall() for file in files] == values


CASES = [
    pytest.param({}, _around_defaults(), id="defaults"),
    pytest.param(SMALL, _payloads(1, 2000), id="small thresholds"),
    pytest.param({"inline_size_threshold": 0}, _payloads(2, 100), id="nothing inline but the empty"),
    pytest.param({"inline_size_threshold": 10**9, "dedicated_size_threshold": 10**9}, _payloads(3, 9000), id="inline"),
    pytest.param({"dedicated_size_threshold": 1}, _payloads(4, 30, 20), id="dedicated"),
    pytest.param({}, [None] * 9, id="nulls"),
    pytest.param({}, [b""] * 9, id="empty"),
]


@pytest.mark.parametrize(("thresholds", "values"), CASES)
def test_payloads_that_pylance_placed_are_found(
    tmp_path: Path, thresholds: dict[str, Any], values: list[bytes | None]
) -> None:
    table = pa.table([blob_array(values)], schema=pa.schema([blob_field("b", **thresholds)]))
    dataset, path = _written_by_pylance(tmp_path, table)
    found = _descriptors(path, "b")
    assert found.to_pylist() == dataset.to_table()["b"].to_pylist()
    reader = _reader(path)
    assert list(reader.read_blobs(found)) == values
    assert reader.read_array(found).to_pylist() == values
    assert [file and file.readall() for file in reader.open(found)] == values


@pytest.mark.parametrize(("thresholds", "values"), CASES)
def test_pylance_finds_our_payloads_where_it_would_have_put_them(
    tmp_path: Path, thresholds: dict[str, Any], values: list[bytes | None]
) -> None:
    fields = [pa.field("i", pa.int64()), blob_field("b", **thresholds), blob_field("c", **SMALL)]
    columns = [pa.array(range(len(values))), blob_array(values), blob_array(values[::-1])]
    table = pa.table(columns, schema=pa.schema(fields))
    dataset = _committed(tmp_path, table, [0, 1, 6])
    assert dataset.to_table(columns=["i"])["i"].to_pylist() == list(range(len(values)))
    _pylance_reads(dataset, "b", values)
    _pylance_reads(dataset, "c", values[::-1])
    theirs, path = _written_by_pylance(tmp_path, table)
    for name in "bc":
        mine, other = (side.to_table(columns=[name])[name].to_pylist() for side in (dataset, theirs))
        assert [_place(row) for row in mine] == [_place(row) for row in other]
    mine, other = (
        {file.name: file.read_bytes() for file in folder.glob("*.blob")}
        for folder in (tmp_path / "ours/data/mine", path.with_suffix(""))
    )
    assert mine == other


def _place(row: dict[str, Any] | None) -> tuple[object, ...] | None:
    """What both writers decide alike: where in a data file an inline payload lies is each one's own affair."""
    if row is None:
        return None
    return row["kind"], row["size"], row["blob_id"], row["blob_uri"], row["position"] if row["kind"] else None


@pytest.mark.parametrize("logical", [2, 4])
def test_both_logical_forms_are_taken(tmp_path: Path, logical: int) -> None:
    kind = pa.struct(list(lance.blob.BlobType().storage_type)[:logical])
    field = pa.field("b", kind, metadata={"ARROW:extension:name": "lance.blob.v2"})
    array = pa.array([{"data": b"abc", "uri": None}, None, {"data": b"x" * 70_000, "uri": None}], kind)
    dataset = _committed(tmp_path, pa.table([array], schema=pa.schema([field])), [0])
    _pylance_reads(dataset, "b", [b"abc", None, b"x" * 70_000])


def test_pylance_finds_blobs_below_structs_and_lists(tmp_path: Path) -> None:
    kind = pa.struct([blob_field("b", **SMALL), pa.field("x", pa.int32())])
    blobs = blob_array([b"a", b"hidden" * 50, None, b"c" * 500])
    mask = pa.array([False, True, False, False])
    struct = pa.StructArray.from_arrays([blobs, pa.array([1, 2, 3, 4], pa.int32())], fields=list(kind), mask=mask)
    lists = pa.ListArray.from_arrays([0, 1, 1, 3, 4], blob_array([b"l", None, b"m" * 2000, b""]))
    schema = pa.schema([pa.field("s", kind), pa.field("l", lists.type)])
    table = pa.table([struct, lists], schema=schema)
    dataset = _committed(tmp_path, table, [1, 6, 8])
    _pylance_reads(dataset, "s.b", [b"a", None, None, b"c" * 500])
    theirs, path = _written_by_pylance(tmp_path, table)
    for name in "sl":
        mine, other = (side.to_table(columns=[name])[name].to_pylist() for side in (dataset, theirs))
        assert [_kinds(row) for row in mine] == [_kinds(row) for row in other]
        assert _descriptors(path, name).to_pylist() == other


def _kinds(value: Any) -> Any:
    """A nested value with kind and size in the place of each descriptor."""
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    if isinstance(value, dict) and "kind" in value:
        return value["kind"], value["size"]
    return {name: _kinds(item) for name, item in value.items()} if isinstance(value, dict) else value


def test_external_blobs_are_read_by_both(tmp_path: Path) -> None:
    (tmp_path / "base/dir").mkdir(parents=True)
    (tmp_path / "out side").mkdir()
    inside, outside = tmp_path / "base/dir/a.bin", tmp_path / "out side/b.bin"
    inside.write_bytes(bytes(range(100)))
    outside.write_bytes(bytes(range(100, 200)))
    values = [inside.as_uri(), Blob.from_uri(inside.as_uri(), 10, 5), outside.as_uri(), b"own", None]
    wanted = [inside.read_bytes(), inside.read_bytes()[10:15], outside.read_bytes(), b"own", None]
    table = pa.table([blob_array(values)], schema=pa.schema([blob_field("b")]))
    bases = [lance.DatasetBasePath((tmp_path / "base").as_uri(), "ext", False, 7)]
    _, path = _written_by_pylance(tmp_path, table, initial_bases=bases, allow_external_blob_outside_bases=True)
    found = _descriptors(path, "b")
    assert {row["blob_id"] for row in found.to_pylist() if row} == {0, 7}
    assert list(_reader(path, bases={7: (tmp_path / "base").as_uri()}).read_blobs(found)) == wanted
    ours = _committed(tmp_path, table, [0])
    files = ours.take_blobs("b", indices=list(range(5)))
    assert [None if file is None else file.readall() for file in files] == wanted


def test_many_uris_are_compressed_and_read_by_both(tmp_path: Path) -> None:
    uris = [f"file:///nowhere/collection/{at:06d}/image.jpg" for at in range(3000)]
    table = pa.table([blob_array(uris)], schema=pa.schema([blob_field("b")]))
    theirs, path = _written_by_pylance(tmp_path, table, allow_external_blob_outside_bases=True)
    ours = _committed(tmp_path, table, [0])
    assert ours.to_table()["b"].to_pylist() == theirs.to_table()["b"].to_pylist()
    assert _descriptors(path, "b").equals(_descriptors(tmp_path / "ours/data/mine.lance", "b"))
    assert (tmp_path / "ours/data/mine.lance").stat().st_size < 1.03 * path.stat().st_size


# Columns written by hand


def _by_hand(session: Any, builder: Any) -> tuple[pa.Field, pa.Array, list[str], pa.Array]:
    """One column through every call of the blob writers; what they returned on the way."""
    packed = session.open_packed_blob_writer("f.lance", 1)
    packed.write_blob(b"first")
    packed.write_blob(bytearray(b""))
    packed.write_blobs(pa.array([b"a", None, b"", b"long" * 50]))
    packed.write_blobs(pa.chunked_array([pa.array([b"x", b"y"], pa.large_binary())]))
    packed.write_blobs(pa.array([b"12", None], pa.binary(2)))
    dedicated = session.open_dedicated_blob_writer("f.lance", 6)
    dedicated.write(b"one")
    dedicated.write(b"two")
    other = session.open_packed_blob_writer("f.lance", 3)
    other.write_blobs(pa.array([b"p", None, b"q"]))
    texts = [packed.path, dedicated.path, str(packed.blob_id), str(dedicated.blob_id)]
    made = packed.finish()
    one = dedicated.finish()
    texts += [repr(made), repr(one)]
    builder.extend(made)
    builder.append(one)
    builder.append_inline(b"inline")
    builder.append_inline(b"")
    builder.append_null()
    builder.extend_packed(1, [0, 1], [5, 2])
    builder.append_dedicated(6, 6)
    array = other.finish_array("b")
    assert other.field == builder.field
    return builder.field, builder.finish(), texts, array


WANTED = [b"first", b"", b"a", None, b"", b"long" * 50, b"x", b"y", b"12", None, b"onetwo", b"inline", b"", None]
WANTED += [b"first", b"ir", b"onetwo", b"p", None, b"q"]


def test_the_writers_by_hand_answer_as_pylance_does(tmp_path: Path) -> None:
    found = {}
    for name, session in SESSIONS.items():
        folder = tmp_path / name / "data"
        folder.mkdir(parents=True)
        found[name] = _by_hand(session(str(folder)), BUILDERS[name]("b"))
    (field, array, texts, packed), theirs = found["lancelet"], found["pylance"]
    assert field.equals(theirs[0], check_metadata=True)
    assert array.type == theirs[1].type
    assert array.to_pylist() == theirs[1].to_pylist()
    assert [text.replace("/lancelet/", "/pylance/") for text in texts] == theirs[2]
    assert packed.to_pylist() == theirs[3].to_pylist()
    mine, other = (
        {file.name: file.read_bytes() for file in (tmp_path / name / "data/f").iterdir()} for name in SESSIONS
    )
    assert mine == other


@pytest.mark.parametrize("writer", SESSIONS)
def test_columns_by_hand_are_read_by_both(tmp_path: Path, writer: str) -> None:
    empty = pa.table([blob_array([])], schema=pa.schema([blob_field("b")]))
    dataset = lance.write_dataset(empty, str(tmp_path / "t"), data_storage_version="2.2")
    folder = tmp_path / "t/data"
    folder.mkdir(exist_ok=True)
    session = SESSIONS[writer](str(folder))
    field, array, _, packed = _by_hand(session, BUILDERS[writer]("b"))
    schema = pa.schema([field])
    with session.open_writer("f.lance", schema=schema, version="2.2") as out:
        out.write_batch(pa.record_batch([array], schema=schema))
        out.write_batch(pa.record_batch([packed], schema=schema))
    _pylance_reads(_with_file(dataset, folder / "f.lance", [0], len(WANTED)), "b", WANTED)
    assert list(_reader(folder / "f.lance").read_blobs(_descriptors(folder / "f.lance", "b"))) == WANTED


@pytest.mark.parametrize(
    "use",
    [
        lambda session: session.open_packed_blob_writer("f.lance", 0),
        lambda session: session.open_dedicated_blob_writer("f", 1),
        lambda session: session.open_packed_blob_writer("f.lance", 1).field,
        lambda session: session.open_packed_blob_writer("f.lance", 1).write_blobs([b"a"]),
        lambda session: session.open_packed_blob_writer("f.lance", 1).write_blobs(pa.array(["a"])),
    ],
)
def test_both_refuse_the_same_calls(tmp_path: Path, use: Callable[[Any], object]) -> None:
    for session in SESSIONS.values():
        with pytest.raises(ValueError, match=r"\w"):
            use(session(str(tmp_path)))


def test_blob_files_behave_as_those_of_pylance(tmp_path: Path) -> None:
    value = np.random.default_rng(5).bytes(70_000)
    table = pa.table([blob_array([value])], schema=pa.schema([blob_field("b")]))
    dataset, path = _written_by_pylance(tmp_path, table)
    (mine,) = _reader(path).open(_descriptors(path, "b"))
    (theirs,) = dataset.take_blobs("b", indices=[0])

    def tour(file: Any) -> list[object]:
        seen: list[object] = [repr(file), file.size(), file.read(10), file.tell(), file.read1(5), file.seek(-4, 2)]
        seen += [file.read(), file.read(), file.seek(100_000), file.read(3), file.seek(5), file.seek(5, io.SEEK_CUR)]
        buffer = bytearray(20)
        seen += [file.readinto(buffer), buffer, file.read_range(3, 4), file.read_ranges([(0, 2), (69_999, 1)])]
        seen += [file.tell(), len(file.readall()), file.readall(), file.closed, file.writable()]
        file.close()
        return [*seen, file.closed, file.size()]

    assert mine is not None
    assert tour(mine) == tour(theirs)
