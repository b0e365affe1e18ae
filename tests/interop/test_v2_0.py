"""Files of version 2.0: pylance and lancelet read what the other writes, whole, in ranges and row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader as TheirReader
from lance.file import LanceFileWriter as TheirWriter

from lancelet.errors import Unsupported
from lancelet.file import LanceFileReader, LanceFileWriter
from lancelet.file.data_file import DataFile, open_file
from lancelet.format.arrays import (
    ArrayEncoding,
    Bitpacked,
    BitpackedForNonNeg,
    Buffer,
    FixedSizeBinary,
    Flat,
    NoNulls,
    SomeNulls,
)
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.columns import Column, describe_page, write_column
from lancelet.format.fields import FileDescriptor, write_file_descriptor
from lancelet.format.footer import Footer, write_footer, write_offset_table
from lancelet.format.versions import FileVersion
from lancelet.kernels import bitpack
from lancelet.storage import open_store
from lancelet.testing.arrays import Case, cases, leaf_types, make_array, nested_types

COMPRESSION = "lance-encoding:compression"
BLOB = {"lance-encoding:blob": "true"}
KINDS = [*leaf_types(), *nested_types(), pa.null(), pa.dictionary(pa.int32(), pa.string())]


def without_null_structs(array: pa.Array) -> pa.Array:
    """The array with no struct null, which version 2.0 cannot hold."""
    kind = array.type
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([without_null_structs(one) for one in array.flatten()], fields=list(kind))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        maker = pa.ListArray if pa.types.is_list(kind) else pa.LargeListArray
        offsets = array.offsets
        if array.null_count:
            offsets = pa.array(np.asarray(offsets), offsets.type, mask=np.append(np.asarray(array.is_null()), False))
        return maker.from_arrays(offsets, without_null_structs(array.values), type=kind)
    return array


def column(case: Case) -> tuple[pa.Array, dict[str, str]]:
    """A column, and metadata that asks for other encodings than the usual ones now and then."""
    if pa.types.is_dictionary(case.kind):
        draw = np.random.default_rng(case.seed)
        return make_array(draw, pa.string(), case.rows, nulls=case.nulls, shape=case.shape).dictionary_encode(), {}
    array = without_null_structs(case.array())
    if pa.types.is_large_binary(case.kind) and case.seed % 2:
        return array, BLOB
    if case.seed % 3 or pa.types.is_large_string(case.kind) or pa.types.is_large_binary(case.kind):
        return array, {}
    return array, {COMPRESSION: ("zstd", "lz4", "fsst")[case.seed // 3 % 3]}


Writer = type[LanceFileWriter] | type[TheirWriter]


def write(writer: Writer, path: Path, case: Case) -> pa.Array:
    """Write a case's column, in two batches for half of the cases."""
    array, metadata = column(case)
    schema = pa.schema([pa.field("c", array.type, metadata=metadata)])
    middle = len(array) // 2 if case.seed % 2 else 0
    with writer(str(path), schema, version="2.0") as file:
        for part in (array.slice(0, middle), array.slice(middle)) if middle else (array,):
            file.write_batch(pa.record_batch([part], schema=schema))
    return array


def read(path: Path, *, mapped: bool = True) -> LanceFileReader:
    reader = LanceFileReader(str(path))
    if not mapped:
        object.__setattr__(reader.file, "view", None)
    return reader


def values(table: pa.Table) -> pa.Array:
    """The only column in one piece, checked, dictionaries resolved."""
    array = table["c"].combine_chunks()
    array.validate(full=True)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def plain(array: pa.Array) -> pa.Array:
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def check_reads(path: Path, expected: pa.Array, case: Case) -> None:
    """Every way to read gives the rows expected."""
    expected, rows = plain(expected), len(expected)
    assert values(read(path).read_all().to_table()).equals(expected), case
    batches = read(path).read_all(batch_size=100).to_batches()
    assert values(pa.Table.from_batches(batches, read(path).schema)).equals(expected), case
    draw = np.random.default_rng(case.seed)
    picks = np.sort(draw.integers(0, rows, min(40, rows)))
    for mapped in (True, False):
        reader = read(path, mapped=mapped)
        part = values(reader.read_range(rows // 3, rows // 2).to_table())
        assert part.equals(expected.slice(rows // 3, rows // 2)), (case, mapped)
        assert values(reader.take_rows(picks.tolist()).to_table()).equals(expected.take(pa.array(picks))), (
            case,
            mapped,
        )


@pytest.mark.parametrize("seed", range(4))
def test_we_read_what_pylance_writes(tmp_path: Path, seed: int) -> None:
    refused = 0
    for number, case in enumerate(cases(100 + seed, 80, KINDS, largest=3000)):
        path = tmp_path / f"{number}.lance"
        try:
            expected = write(TheirWriter, path, case)
        # pylance cannot write some sliced structs of this version.
        except BaseException as error:
            if type(error).__name__ not in ("PanicException", "RuntimeError", "OSError"):
                raise
            refused += 1
            continue
        check_reads(path, expected, case)
    assert refused < 8


@pytest.mark.parametrize("seed", range(4))
def test_pylance_reads_what_we_write(tmp_path: Path, seed: int) -> None:
    for number, case in enumerate(cases(200 + seed, 80, KINDS, largest=3000)):
        path = tmp_path / f"{number}.lance"
        expected = plain(write(LanceFileWriter, path, case))
        theirs, rows = TheirReader(str(path)), len(expected)
        assert values(theirs.read_all().to_table()).equals(expected), case
        if rows:
            picks = np.unique(np.random.default_rng(case.seed).integers(0, rows, min(40, rows)))
            part = values(theirs.read_range(rows // 3, max(rows // 2, 1)).to_table())
            assert part.equals(expected.slice(rows // 3, max(rows // 2, 1))), case
            assert values(theirs.take_rows(picks.tolist()).to_table()).equals(expected.take(pa.array(picks))), case
        check_reads(path, expected, case)


@pytest.mark.parametrize("seed", range(2))
def test_our_files_are_no_larger(tmp_path: Path, seed: int) -> None:
    ours = theirs = 0
    kinds = [kind for kind in KINDS if not pa.types.is_struct(kind)]
    for case in cases(300 + seed, 60, kinds, largest=3000):
        mine, other = tmp_path / "ours.lance", tmp_path / "theirs.lance"
        write(LanceFileWriter, mine, case)
        try:
            write(TheirWriter, other, case)
        # pylance cannot write some sliced structs of this version.
        except BaseException as error:
            if type(error).__name__ not in ("PanicException", "RuntimeError", "OSError"):
                raise
            continue
        assert mine.stat().st_size <= 1.03 * other.stat().st_size, case
        ours, theirs = ours + mine.stat().st_size, theirs + other.stat().st_size
    assert ours <= theirs


def hand_made(path: Path, kind: pa.DataType, rows: int, encoding: ArrayEncoding, buffers: Sequence[bytes]) -> None:
    """A file of one column and one page."""
    data, places = b"", []
    descriptor = FileDescriptor(schema_from_arrow(pa.schema([pa.field("c", kind)])), rows)
    for buffer in (*buffers, write_file_descriptor(descriptor)):
        # Version 2.0 does not ask for alignment, so an odd place is a good one.
        data += b"\xaa" * (1 + -len(data) % 3)
        places.append((len(data), len(buffer)))
        data += buffer
    column = Column((describe_page(encoding, buffers=places[:-1], length=rows, priority=0),))
    metadata = write_column(column)
    tables = [write_offset_table([(len(data), len(metadata))]), write_offset_table(places[-1:])]
    at = len(data) + len(metadata)
    footer = Footer(FileVersion.V2_0, len(data), at, at + len(tables[0]), 1, 1)
    path.write_bytes(b"".join([data, metadata, *tables, write_footer(footer)]))


def in_sequence(numbers: np.ndarray, width: int) -> bytes:
    """The lowest ``width`` bits of each number, one behind the other."""
    bits = np.unpackbits(numbers.astype("<i8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")[:, :width]
    return np.packbits(bits.reshape(-1), bitorder="little").tobytes()


def in_blocks(numbers: np.ndarray, width: int, word: int) -> bytes:
    """Blocks of 1,024 in FastLanes order."""
    out = np.zeros(-(-len(numbers) // 1024) * 128 * width, np.uint8)
    bitpack.pack_blocks(numbers.astype(f"u{word // 8}"), np.full(-(-len(numbers) // 1024), width, np.uint8), out)
    return out.tobytes()


def check_hand_made(path: Path, expected: pa.Array) -> None:
    assert values(TheirReader(str(path)).read_all().to_table()).equals(expected)
    rows = len(expected)
    picks = np.unique(np.random.default_rng(rows).integers(0, rows, 50))
    for mapped in (True, False):
        reader = read(path, mapped=mapped)
        assert values(reader.read_all().to_table()).equals(expected)
        assert values(reader.read_range(5, rows // 2).to_table()).equals(expected.slice(5, rows // 2))
        assert values(reader.take_rows(picks.tolist()).to_table()).equals(expected.take(pa.array(picks)))


@pytest.mark.parametrize(("kind", "width"), [(pa.uint8(), 3), (pa.int16(), 11), (pa.int32(), 17), (pa.uint64(), 61)])
def test_blocks_of_packed_integers_are_read(tmp_path: Path, kind: pa.DataType, width: int) -> None:
    word = kind.bit_width
    numbers = np.random.default_rng(width).integers(0, 2 ** (width - 1), 2500)
    encoding = NoNulls(BitpackedForNonNeg(width, word, Buffer(0)))
    hand_made(tmp_path / "f", kind, 2500, encoding, [in_blocks(numbers, width, word)])
    check_hand_made(tmp_path / "f", pa.array(numbers, kind))


@pytest.mark.parametrize(
    ("kind", "width", "signed"),
    [(pa.uint8(), 3, False), (pa.int16(), 11, True), (pa.int32(), 17, True), (pa.uint64(), 60, False)],
)
def test_packed_integers_in_sequence_are_read(tmp_path: Path, kind: pa.DataType, width: int, signed: bool) -> None:
    least = -(2 ** (width - 1)) if signed else 0
    numbers = np.random.default_rng(width).integers(least, 2 ** (width - 1), 501)
    encoding = NoNulls(Bitpacked(width, kind.bit_width, Buffer(0), signed))
    hand_made(tmp_path / "f", kind, 501, encoding, [in_sequence(numbers, width)])
    expected = pa.array(numbers, kind)
    rows = len(expected)
    for mapped in (True, False):
        reader = read(tmp_path / "f", mapped=mapped)
        assert values(reader.read_all().to_table()).equals(expected)
        assert values(reader.read_range(5, rows // 2).to_table()).equals(expected.slice(5, rows // 2))
        assert values(reader.take_rows(range(0, rows, 9)).to_table()).equals(expected[::9])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary()])
def test_strings_of_one_size_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    words = [f"{n:03}" for n in range(400)]
    data = NoNulls(FixedSizeBinary(NoNulls(Flat(8, Buffer(0))), 3))
    hand_made(tmp_path / "f", kind, 400, data, ["".join(words).encode()])
    expected = pa.array(words).cast(kind)
    for mapped in (True, False):
        reader = read(tmp_path / "f", mapped=mapped)
        assert values(reader.read_all().to_table()).equals(expected)
        assert values(reader.take_rows([0, 7, 7, 399]).to_table()).equals(expected.take(pa.array([0, 7, 7, 399])))


def test_buffers_need_no_alignment(tmp_path: Path) -> None:
    numbers = np.arange(1000)
    validity = np.packbits(numbers % 3 > 0, bitorder="little").tobytes()
    encoding = SomeNulls(Flat(1, Buffer(0)), Flat(64, Buffer(1)))
    hand_made(tmp_path / "f", pa.int64(), 1000, encoding, [validity, numbers.tobytes()])
    check_hand_made(tmp_path / "f", pa.array(numbers, mask=numbers % 3 == 0))


class Counted:
    """An unmapped file that notes what is read of it."""

    def __init__(self, path: Path) -> None:
        self.reader = LanceFileReader(str(path))
        self.rounds: list[int] = []
        file = self.reader.file
        object.__setattr__(file, "view", None)
        original = DataFile.read

        def noted(ranges: Sequence[tuple[int, int]]) -> list[np.ndarray]:
            self.rounds.append(sum(size for _, size in ranges))
            return original(file, ranges)

        object.__setattr__(file, "read", noted)


ROWS = 50_000
FILLED: dict[str, tuple[Callable[[], pa.Array], int, int]] = {
    "number": (lambda: pa.array(range(ROWS)), 1, 80),
    "vector": (lambda: pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(ROWS * 16, np.float32)), 16), 1, 640),
    "string": (lambda: pa.array([f"string {n}" for n in range(ROWS)]), 2, 300),
    "list": (lambda: pa.array([[n, n] for n in range(ROWS)]), 2, 320),
    "deep": (lambda: pa.array([[[str(n)]] for n in range(ROWS)]), 4, 600),
}


@pytest.mark.parametrize("name", FILLED)
def test_ten_rows_cost_few_bytes_in_few_rounds(tmp_path: Path, name: str) -> None:
    make, rounds, size = FILLED[name]
    with LanceFileWriter(str(tmp_path / "f"), version="2.0") as writer:
        writer.write_batch(pa.table({"c": make(), "d": make()}))
    file = Counted(tmp_path / "f")
    file.reader.take_rows(range(10, ROWS, 5000)).to_table()
    # Two columns cost no more rounds than one.
    assert len(file.rounds) == rounds
    assert sum(file.rounds) <= 2 * size


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: pa.array([{"x": 1}, None]), "struct has 1 nulls"),
        (lambda: pa.array([[{"x": 1}, None]]), "struct has 1 nulls"),
        (lambda: pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "needs file version 2.2"),
        (lambda: pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.int64())]), 1)), "needs file version 2.2"),
    ],
)
def test_what_the_version_cannot_hold_is_refused(tmp_path: Path, make: Callable[[], pa.Array], match: str) -> None:
    with pytest.raises(Unsupported, match=match), LanceFileWriter(str(tmp_path / "f"), version="2.0") as writer:
        writer.write_batch(pa.table({"c": make()}))
    assert not (tmp_path / "f").exists()


def test_a_projection_reads_only_its_columns(tmp_path: Path) -> None:
    kind = pa.struct([("x", pa.int64()), ("l", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())])))])
    rows = [{"x": n, "l": [{"a": n, "b": str(n)}] * (n % 4)} for n in range(300)]
    with TheirWriter(str(tmp_path / "f"), pa.schema([("c", kind), ("d", pa.int8())]), version="2.0") as writer:
        writer.write_batch(pa.record_batch([pa.array(rows, kind), pa.array([1] * 300, pa.int8())], names=["c", "d"]))
    table = LanceFileReader(str(tmp_path / "f"), columns=["d", "c.l.item.a"]).read_all().to_table()
    assert table.column_names == ["d", "c"]
    assert table["c"].to_pylist() == [{"l": [{"a": n}] * (n % 4)} for n in range(300)]


def test_pages_of_a_column_may_end_anywhere(tmp_path: Path) -> None:
    kind = pa.struct([("x", pa.int8()), ("s", pa.string()), ("l", pa.list_(pa.int16()))])
    rows = [{"x": n % 99, "s": str(n) * 9, "l": list(range(n % 9))} for n in range(20_000)]
    whole = pa.array(rows, kind)
    with LanceFileWriter(str(tmp_path / "f"), version="2.0", data_cache_bytes=30_000) as writer:
        for start in range(0, len(rows), 501):
            writer.write_batch(pa.table({"c": whole.slice(start, 501)}))
    file = open_file(open_store(str(tmp_path)), "f")
    ends = {tuple(np.cumsum([page.length for page in file.column(at).pages])) for at in (1, 2, 3)}
    assert len(ends) == 3
    assert values(TheirReader(str(tmp_path / "f")).read_all().to_table()).equals(whole)
    check_reads(tmp_path / "f", whole, Case(kind, "none", "random", len(rows), 1))
