"""Files that we write are read by the reference implementation as what they are, and are not larger than its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest

from lancelet.errors import InvalidInput, Unsupported
from lancelet.file import LanceFileReader
from lancelet.file.file_writer import FileWriter
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.versions import FileVersion
from lancelet.storage import open_store
from lancelet.testing.arrays import WISHES, cases, leaf_types, nested_types, wished

VERSIONS = ("2.1", "2.2")


def table(array: pa.Array, wishes: dict[str, str] | None = None) -> pa.Table:
    return wished(array, wishes or {})


def write(folder: Path, data: pa.Table, version: str) -> str:
    name = "ours.lance"
    writer = FileWriter(
        open_store(str(folder)).writer(name), schema_from_arrow(data.schema), data.schema, FileVersion.parse(version)
    )
    writer.write(data)
    writer.close()
    return str(folder / name)


def equal(found: pa.Table, expected: pa.Table) -> bool:
    """Whether columns hold the same; NaN is itself, and what lists call their items does not matter."""
    ours, theirs = found["c"].combine_chunks(), expected["c"].combine_chunks()
    return bool(ours.equals(theirs)) or repr(ours.to_pylist()) == repr(theirs.to_pylist())


def check(folder: Path, data: pa.Table, version: str) -> str:
    path = write(folder, data, version)
    assert equal(lance.file.LanceFileReader(path).read_all().to_table(), data), "the reference reads something else"
    assert equal(LanceFileReader(path).read_all().to_table(), data), "we read something else"
    return path


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(6))
def test_generated_columns_are_read_as_written(tmp_path: Path, seed: int, version: str) -> None:
    draw = np.random.default_rng(seed)
    for case in cases(seed, 60, leaf_types() + nested_types()):
        wishes = WISHES[int(draw.integers(len(WISHES)))]
        try:
            check(tmp_path, table(case.array(), wishes), version)
        except AssertionError as error:
            pytest.fail(f"{case} with {wishes}: {error}")


def random_strings(draw: np.random.Generator, count: int) -> list[str]:
    return [f"{value:x}" for value in draw.integers(0, 2**60, count).tolist()]


def sparse(items: pa.DataType, values: list[object]) -> pa.Array:
    return pa.array([*([[]] * 70_000), values, *([[]] * 70_000), values, None], pa.list_(items))


def structs(count: int) -> pa.Array:
    rows = [None if row % 5 == 0 else {"x": row, "y": f"s{row}"} for row in range(count)]
    return pa.array(rows, pa.struct([("x", pa.int32()), ("y", pa.string())]))


SPECIAL: dict[str, Callable[[np.random.Generator], pa.Array]] = {
    "long lists go over chunks": lambda draw: pa.array([draw.integers(0, 99, 70_000).tolist(), [1], [2] * 9_000]),
    "lists too sparse for one page": lambda draw: sparse(pa.int32(), [1, 2, 3]),
    "strings in lists too sparse for one page": lambda draw: sparse(pa.string(), ["a", "b"]),
    "nested lists": lambda draw: pa.array([[[1] * (row % 3)] * (row % 4) for row in range(3_000)]),
    "booleans in vectors of odd length": lambda draw: pa.FixedSizeListArray.from_arrays(
        pa.array(draw.random(3001 * 50) < 0.5), 3001
    ),
    "vectors that hold nulls": lambda draw: pa.FixedSizeListArray.from_arrays(
        pa.array(draw.random(7 * 3000), mask=draw.random(7 * 3000) < 0.3), 7
    ),
    "vectors of structs": lambda draw: pa.FixedSizeListArray.from_arrays(structs(999), 3),
    "runs that end in the middle of chunks": lambda draw: pa.array(np.repeat(draw.integers(0, 9, 700), 13)),
    "runs and no runs in turn": lambda draw: pa.array(
        np.concatenate([np.zeros(30_000, np.int64), draw.integers(0, 2**62, 3_000), np.ones(30_001, np.int64)])
    ),
    "wide strings among narrow ones": lambda draw: pa.array([*random_strings(draw, 5000), "x" * 255]),
    "large strings": lambda draw: pa.array(random_strings(draw, 20_000), pa.large_string()),
    "empty strings": lambda draw: pa.array(["" if row % 9 else "x" for row in range(5000)]),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SPECIAL)
def test_awkward_columns_are_read_as_written(tmp_path: Path, name: str, version: str) -> None:
    if name == "vectors of structs" and version == "2.1":
        pytest.skip("fixed-size lists of structs are stored since 2.2")
    check(tmp_path, table(SPECIAL[name](np.random.default_rng(5))), version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(3))
def test_any_rows_of_lists_that_go_over_chunks_can_be_read_alone(tmp_path: Path, seed: int, version: str) -> None:
    draw, count = np.random.default_rng(seed), 60
    lengths = draw.choice([0, 1, 3, 50, 1024, 3000, 9000], count).tolist()
    rows = [None if draw.random() < 0.1 else draw.integers(0, 99, length).tolist() for length in lengths]
    array = pa.array(rows, pa.list_(pa.int64()))
    reader = LanceFileReader(write(tmp_path, table(array), version))
    for _ in range(20):
        start, stop = np.sort(draw.integers(0, count + 1, 2)).tolist()
        found = reader.read_range(start, stop - start).to_table()["c"].combine_chunks()
        assert found.equals(array.slice(start, stop - start)), (start, stop)
        picked = np.sort(draw.choice(count, 5, replace=False)).tolist()
        assert reader.take_rows(picked).to_table()["c"].combine_chunks().equals(array.take(picked)), picked


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("keys", [pa.int8(), pa.uint16(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize(
    "values", [["a", "bb", ""], [b"a", b"bb", b""], [1.5, -0.0, 2.0], [7, 8, 9]], ids=["str", "bin", "float", "int"]
)
def test_dictionary_columns_keep_keys_and_values(
    tmp_path: Path, keys: pa.DataType, values: list[object], version: str
) -> None:
    draw = np.random.default_rng(1)
    indices = pa.array(draw.integers(0, 3, 3000), mask=draw.random(3000) < 0.2).cast(keys)
    check(tmp_path, table(pa.DictionaryArray.from_arrays(indices, pa.array(values))), version)


PACKED = {"packed": "true"}


@pytest.mark.parametrize("version", VERSIONS)
def test_packed_structs_are_rows_of_bytes(tmp_path: Path, version: str) -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.float32()), ("c", pa.binary(3))])
    rows = [None if row % 7 == 0 else {"a": row, "b": row / 2, "c": b"%03d" % (row % 999)} for row in range(3000)]
    check(tmp_path, table(pa.array(rows, kind), PACKED), version)
    with pytest.raises(InvalidInput, match="field 'a' of a packed struct is null"):
        write(tmp_path, table(pa.array([{"a": None, "b": 1.0, "c": b"abc"}], kind), PACKED), version)
    flags = pa.array([{"a": True, "b": 1.0}], pa.struct([("a", pa.bool_()), ("b", pa.float32())]))
    with pytest.raises(Unsupported, match="no booleans"):
        write(tmp_path, table(flags, PACKED), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_that_cannot_be_obeyed_names_column_key_and_value(tmp_path: Path, version: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        write(tmp_path, table(pa.array([1, 2]), {"compression": "ZSTD"}), version)
    assert caught.value.column == "c"
    assert "lance-encoding:compression is 'ZSTD', expected one of: none, fsst, lz4, zstd" in str(caught.value)


def test_the_same_rows_make_the_same_bytes(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    data = table(pa.array(random_strings(draw, 20_000)))
    first = Path(write(tmp_path, data, "2.2")).read_bytes()
    assert Path(write(tmp_path, data, "2.2")).read_bytes() == first


def yardstick() -> Iterator[tuple[str, pa.Array, dict[str, str]]]:
    """Columns as users have them."""
    draw, rows = np.random.default_rng(11), 20_000
    words = np.array(random_strings(draw, 5000))
    nulls = draw.random(rows) < 0.1
    yield "sequence", pa.array(np.arange(rows)), {}
    yield "small integers", pa.array(draw.integers(0, 1000, rows)), {}
    yield "small negative integers", pa.array(draw.integers(-100, 100, rows)), {}
    yield "random integers", pa.array(draw.integers(-(2**62), 2**62, rows)), {}
    yield "integers and nulls", pa.array(draw.integers(0, 10**6, rows), mask=nulls), {}
    yield "runs of integers", pa.array(np.repeat(draw.integers(0, 10**9, rows // 50), 50)), {}
    yield "runs of few integers", pa.array(np.repeat(draw.choice(draw.integers(0, 2**62, 20), rows // 10), 10)), {}
    yield "few integers", pa.array(draw.choice(draw.integers(-(2**62), 2**62, 100), rows)), {}
    yield "bytes", pa.array(draw.integers(0, 256, rows), pa.uint8()), {}
    yield "times", pa.array(1_700_000_000_000_000 + draw.integers(0, 10**12, rows), pa.timestamp("us")), {}
    yield "floats", pa.array(draw.standard_normal(rows)), {}
    yield "whole floats", pa.array(draw.integers(0, 1000, rows).astype(float)), {}
    yield "floats and nulls", pa.array(draw.standard_normal(rows).astype(np.float32), mask=nulls), {}
    yield "booleans", pa.array(draw.random(rows) < 0.5, mask=nulls), {}
    yield "decimals", pa.array([Decimal(value) for value in draw.integers(0, 50, rows).tolist()]), {}
    yield "unique strings", pa.array(random_strings(draw, rows)), {}
    yield "few strings", pa.array(words[draw.integers(0, 50, rows)], mask=nulls), {}
    yield "many strings", pa.array(words[draw.integers(0, 5000, rows)]), {}
    yield (
        "addresses",
        pa.array([f"https://example.com/item/{row}/page?id={row * 7919 % 100000}" for row in range(rows)]),
        {},
    )
    yield "binary", pa.array([draw.bytes(20) for _ in range(rows)]), {}
    yield "vectors", pa.FixedSizeListArray.from_arrays(pa.array(draw.random(4 * rows).astype(np.float32)), 4), {}
    offsets = pa.array(np.cumsum([0, *draw.integers(0, 6, 5000)]), pa.int32())
    items = int(offsets[-1].as_py())
    yield "lists", pa.ListArray.from_arrays(offsets, pa.array(draw.integers(0, 10**5, items))), {}
    yield "lists of strings", pa.ListArray.from_arrays(offsets, pa.array(random_strings(draw, items))), {}
    yield "long lists", pa.array([draw.integers(0, 99, 500).tolist() for _ in range(100)]), {}
    yield "zstd floats", pa.array(np.round(draw.random(rows) * 1000, 2)), {"compression": "zstd"}
    yield "lz4 integers", pa.array(draw.integers(0, 5000, rows), pa.int32()), {"compression": "lz4"}
    yield "zstd runs", pa.array(np.repeat(draw.integers(0, 10**9, 300), 30)), {"compression": "zstd"}
    yield "unpacked runs", pa.array(np.repeat(draw.integers(0, 10**9, 300), 30)), {"compression": "none"}


def column_bytes(path: str) -> int:
    return sum(column.size_bytes for column in lance.file.LanceFileReader(path).file_statistics().columns)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_column_is_three_percent_larger_than_the_reference_makes_it_and_all_are_smaller(
    tmp_path: Path, version: str
) -> None:
    sizes: dict[str, tuple[int, int]] = {}
    for name, array, wishes in yardstick():
        data = table(array, wishes)
        theirs = str(tmp_path / "theirs.lance")
        with lance.file.LanceFileWriter(theirs, data.schema, version=version) as writer:
            writer.write_batch(data)
        sizes[name] = column_bytes(check(tmp_path, data, version)), column_bytes(theirs)
    assert {name: pair for name, pair in sizes.items() if pair[0] > 1.03 * pair[1]} == {}
    assert sum(ours for ours, _ in sizes.values()) < sum(theirs for _, theirs in sizes.values())
