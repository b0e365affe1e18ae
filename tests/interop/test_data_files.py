"""Data files of 2.1 and 2.2 against pylance: each reads what the other writes, over generated columns."""

from __future__ import annotations

import itertools
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest

from lancelet.errors import LanceletError
from lancelet.file import LanceFileReader, LanceFileWriter
from lancelet.testing.arrays import WISHES, Case, cases, late_types, leaf_types, make_array, nested_types, wished

VERSIONS = ("2.1", "2.2")
WRITERS = {"lancelet": LanceFileWriter, "pylance": lance.file.LanceFileWriter}
READERS = {"lancelet": LanceFileReader, "pylance": lance.file.LanceFileReader}


def _kinds(version: str) -> list[pa.DataType]:
    return leaf_types() + nested_types() + (late_types() if version == "2.2" else [])


def _write(writer: str, path: Path, table: pa.Table, version: str, **options: object) -> None:
    with WRITERS[writer](str(path), table.schema, version=version, **options) as out:
        for batch in table.to_batches():
            out.write_batch(batch if writer == "lancelet" else _copied(batch))


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without offsets into larger arrays, on some of which pylance panics."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def _same(found: pa.Table, expected: pa.Table, what: object) -> None:
    for name in expected.column_names:
        column, wanted = found[name], expected[name]
        column.validate(full=True)
        assert column.type.equals(wanted.type), f"{what}: column {name} has type {column.type}"
        if pa.types.is_dictionary(column.type):
            column, wanted = (side.cast(side.type.value_type) for side in (column, wanted))
        assert column.equals(wanted), f"{what}: column {name} of type {column.type} differs"


def _check_partial_reads(path: Path, table: pa.Table, case: Case) -> None:
    reader, rows = LanceFileReader(path), table.num_rows
    if rows < 3:
        return
    start, count = rows // 3, rows // 2
    _same(reader.read_range(start, count).to_table(), table.slice(start, count), case)
    chosen = np.sort(np.random.default_rng(case.seed).integers(0, rows, 40))
    _same(reader.take_rows(chosen).to_table(), table.take(chosen), case)
    _same(pa.Table.from_batches(reader.read_all(batch_size=97).to_batches()), table, case)


def _run(version: str, writer: str, seed: int, count: int, folder: Path) -> None:
    # The seed is in the test's name, the case in every failure's message.
    for case in cases(seed, count, _kinds(version)):
        table = pa.table({"c": case.array()})
        path = folder / "a.lance"
        path.unlink(missing_ok=True)
        _write(writer, path, table, version)
        for reader in READERS.values():
            _same(reader(str(path)).read_all().to_table(), table, case)
        _check_partial_reads(path, table, case)


@pytest.mark.parametrize(("version", "writer", "seed"), list(itertools.product(VERSIONS, WRITERS, range(4))))
def test_both_read_a_generated_column_equal(version: str, writer: str, seed: int, tmp_path: Path) -> None:
    _run(version, writer, seed, 60, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("version", "writer", "seed"), list(itertools.product(VERSIONS, WRITERS, range(100, 120))))
def test_both_read_thousands_of_generated_columns_equal(version: str, writer: str, seed: int, tmp_path: Path) -> None:
    _run(version, writer, seed, 250, tmp_path)


#: Wishes for the structure of pages: with them pylance writes files of some types that it panics on.
STRUCTURES = ({"structural-encoding": "fullzip"}, {"structural-encoding": "fullzip", "compression": "zstd"})


def _run_wished(version: str, writer: str, seed: int, count: int, folder: Path) -> None:
    """As ``_run``, with wishes. What we refuse, or pylance cannot read of what it wrote itself, is left out."""
    draw, wishes, left_out = np.random.default_rng(seed), WISHES + STRUCTURES, 0
    for case in cases(seed, count, _kinds(version)):
        wish = wishes[int(draw.integers(len(wishes)))]
        table, path, what = wished(case.array(), wish), folder / "a.lance", f"{case} with {wish}"
        path.unlink(missing_ok=True)
        try:
            _write(writer, path, table, version)
            theirs = READERS["pylance"](str(path)).read_all().to_table() if writer == "pylance" else None
        except BaseException as error:
            # A panic of pylance is no Exception.
            if isinstance(error, KeyboardInterrupt) or (writer == "lancelet" and not isinstance(error, LanceletError)):
                raise
            left_out += 1
            continue
        _same(READERS["lancelet"](str(path)).read_all().to_table(), table, what)
        theirs = READERS["pylance"](str(path)).read_all().to_table() if theirs is None else theirs
        _same(theirs, table, what)
        _check_partial_reads(path, table, case)
    assert left_out <= 0.1 * count


@pytest.mark.parametrize(("version", "writer", "seed"), list(itertools.product(VERSIONS, WRITERS, range(50, 53))))
def test_both_read_a_column_written_as_its_metadata_wishes(
    version: str, writer: str, seed: int, tmp_path: Path
) -> None:
    _run_wished(version, writer, seed, 60, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("version", "writer", "seed"), list(itertools.product(VERSIONS, WRITERS, range(200, 220))))
def test_both_read_thousands_of_columns_written_as_their_metadata_wishes(
    version: str, writer: str, seed: int, tmp_path: Path
) -> None:
    _run_wished(version, writer, seed, 250, tmp_path)


@pytest.mark.parametrize(("version", "writer"), list(itertools.product(VERSIONS, WRITERS)))
def test_many_pages_of_many_columns_come_back_in_order(version: str, writer: str, tmp_path: Path) -> None:
    # pylance does not read a structural fixed-size list together with other columns.
    kinds = [kind for kind in _kinds(version) if "fixed_size_list<item: struct" not in str(kind)]
    draw = np.random.default_rng(7)
    table = pa.table({f"c{at}": make_array(draw, kind, 6000) for at, kind in enumerate(kinds)})
    batches = pa.Table.from_batches(table.to_batches(max_chunksize=700))
    path = tmp_path / "a.lance"
    _write(writer, path, batches, version, data_cache_bytes=16 * 1024 * len(kinds))
    for reader in READERS.values():
        _same(reader(str(path)).read_all().to_table(), table, writer)
    ours = LanceFileReader(path)
    _same(ours.read_range(1234, 3456).to_table(), table.slice(1234, 3456), writer)
    chosen = np.sort(draw.integers(0, 6000, 300))
    _same(ours.take_rows(chosen).to_table(), table.take(chosen), writer)


def test_slices_and_views_are_written_as_the_rows_they_show(tmp_path: Path) -> None:
    table = pa.table(
        {
            "s": pa.array(["a", None, "ccc", "", "e"] * 50),
            "l": pa.array([[1, None], None, [], [2], [3, 4, 5]] * 50),
            "v": pa.array(["x", None, "a rather long value that is not inlined", "", "y"] * 50, pa.string_view()),
            "st": pa.array([{"a": 1, "b": [True]}, None, {"a": None, "b": None}, {"a": 2, "b": []}, None] * 50),
        }
    ).slice(13, 201)
    path = tmp_path / "a.lance"
    _write("lancelet", path, table, "2.2")
    expected = table.set_column(2, "v", table["v"].cast(pa.string()))
    for reader in READERS.values():
        _same(reader(str(path)).read_all().to_table(), expected, "slice")


def test_a_projection_reads_nested_fields_by_path(tmp_path: Path) -> None:
    table = pa.table(
        {"a": [1, 2], "p": [{"x": 1, "q": {"y": "u", "z": 1.5}}, {"x": 2, "q": None}], "l": [[{"k": 1, "m": 2}], []]}
    )
    path = tmp_path / "a.lance"
    _write("pylance", path, table, "2.2")
    found = LanceFileReader(path, columns=["p.q.y", "l.m", "a"]).read_all().to_table()
    assert found.to_pylist() == [
        {"p": {"q": {"y": "u"}}, "l": [{"m": 2}], "a": 1},
        {"p": {"q": None}, "l": [], "a": 2},
    ]


def test_an_empty_file_has_its_schema(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    path = tmp_path / "a.lance"
    with LanceFileWriter(path, schema):
        pass
    for reader in READERS.values():
        found = reader(str(path)).read_all().to_table()
        assert found.schema == schema
        assert found.num_rows == 0


def test_metadata_and_global_buffers_are_seen_by_both(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    with LanceFileWriter(path, pa.schema([("a", pa.int64())])) as out:
        out.add_schema_metadata("who", "lancelet")
        assert out.add_global_buffer(b"hello") == 1
        out.write_batch(pa.table({"a": [1, 2, 3]}))
    for reader in READERS.values():
        opened = reader(str(path))
        assert opened.read_global_buffer(1) == b"hello"
        assert opened.metadata().schema.metadata == {b"who": b"lancelet"}
        assert opened.num_rows() == 3
        assert (opened.metadata().major_version, opened.metadata().minor_version) == (2, 2)
    ours, theirs = (reader(str(path)) for reader in READERS.values())
    assert [(c.num_pages, c.size_bytes) for c in ours.file_statistics().columns] == [
        (c.num_pages, c.size_bytes) for c in theirs.file_statistics().columns
    ]


def _hidden(items: pa.Array) -> pa.Array:
    """Four lists over nine items, of which the second and the fourth are null and yet have items behind them."""
    validity = pa.py_buffer(bytes([0b0101]))
    offsets = pa.py_buffer(np.array([0, 2, 5, 6, 9], np.int32))
    return pa.Array.from_buffers(pa.list_(items.type), 4, [validity, offsets], 2, children=[items])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "items",
    [
        pa.array(range(9)),
        pa.array([f"s{at}" for at in range(9)]),
        pa.array([[at, None] for at in range(12)], pa.list_(pa.int32(), 2)).slice(3),
        pa.array([[[at, None], None] for at in range(12)], pa.list_(pa.list_(pa.int8(), 2), 2)).slice(3),
    ],
    ids=["numbers", "strings", "vectors of a slice", "vectors of vectors of a slice"],
)
def test_items_behind_null_lists_are_not_written(items: pa.Array, version: str, tmp_path: Path) -> None:
    lists = _hidden(items)
    path = tmp_path / "a.lance"
    _write("lancelet", path, pa.table({"c": lists}), version)
    for reader in READERS.values():
        assert reader(str(path)).read_all().to_table()["c"].to_pylist() == lists.to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_lists_inside_null_structs_are_not_written(version: str, tmp_path: Path) -> None:
    lists = pa.array([[1, 2], [3], [4, 5], [6]])
    structs = pa.StructArray.from_arrays(
        [lists, pa.array([1, 2, 3, 4])], names=["l", "x"], mask=pa.array([False, True, False, False])
    ).slice(1)
    path = tmp_path / "a.lance"
    _write("lancelet", path, pa.table({"c": structs}), version)
    for reader in READERS.values():
        assert reader(str(path)).read_all().to_table()["c"].to_pylist() == structs.to_pylist()
