"""Files of version 0.1: what pylance writes into legacy datasets is read as pylance reads it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from lancelet.errors import LanceletError, Unsupported
from lancelet.file import LanceFileReader
from lancelet.file.opening import open_table_legacy
from lancelet.format.arrow import schema_from_arrow
from lancelet.storage import open_store
from lancelet.testing.arrays import cases, leaf_types, make_array, nested_types

KINDS = [*leaf_types(), *nested_types(), pa.null(), pa.dictionary(pa.int16(), pa.string())]


def dataset(path: Path, table: pa.Table, rows_per_group: int) -> tuple[lance.LanceDataset, Path]:
    """A legacy dataset of one file, and the file."""
    made = lance.write_dataset(
        table, str(path), data_storage_version="legacy", max_rows_per_group=rows_per_group, mode="overwrite"
    )
    (fragment,) = made.get_fragments()
    return made, path / "data" / fragment.metadata.files[0].path


def read(path: Path, *, mapped: bool = True) -> LanceFileReader:
    reader = LanceFileReader(str(path))
    if not mapped:
        object.__setattr__(reader.file, "view", None)
    return reader


def values(table: pa.Table) -> pa.Array:
    array = table["c"].combine_chunks()
    array.validate(full=True)
    return array


@pytest.mark.parametrize("seed", range(3))
def test_every_type_is_read_as_pylance_reads_it(tmp_path: Path, seed: int) -> None:
    refused = 0
    for number, case in enumerate(cases(500 + seed, 60, KINDS, largest=2500)):
        draw = np.random.default_rng(case.seed)
        if pa.types.is_dictionary(case.kind):
            array = make_array(draw, pa.string(), case.rows, nulls=case.nulls, shape="few").dictionary_encode()
        else:
            array = case.array()
        if not len(array):
            continue
        try:
            made, path = dataset(tmp_path / str(number), pa.table({"c": array}), (7, 100, 1024)[number % 3])
            expected = made.to_table()["c"].combine_chunks()
        # pylance cannot write or read back some nested columns of this version.
        except BaseException as error:
            if type(error).__name__ not in ("PanicException", "RuntimeError", "OSError", "ValueError", "ArrowInvalid"):
                raise
            refused += 1
            continue
        assert values(read(path).read_all().to_table()).equals(expected), case
        rows = len(expected)
        picks = np.sort(draw.integers(0, rows, min(30, rows)))
        for mapped in (True, False):
            reader = read(path, mapped=mapped)
            part = values(reader.read_range(rows // 3, rows // 2).to_table())
            assert part.equals(expected.slice(rows // 3, rows // 2)), (case, mapped)
            taken = values(reader.take_rows(picks.tolist()).to_table())
            assert taken.equals(expected.take(pa.array(picks))), (case, mapped)
    assert refused < 15


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, Path]:
    """A file of several types, and what is in it."""
    draw = np.random.default_rng(1)
    kinds = [pa.int64(), pa.bool_(), pa.string(), pa.list_(pa.string()), pa.list_(pa.float32(), 4)]
    kinds += [
        pa.struct([("x", pa.int32()), ("l", pa.large_list(pa.int8()))]),
        pa.list_(pa.struct([("y", pa.binary())])),
    ]
    table = pa.table({f"c{at}": make_array(draw, kind, 300, nulls="none") for at, kind in enumerate(kinds)})
    table = table.append_column("d", pa.array([f"{n % 5}" for n in range(300)]).dictionary_encode())
    made, path = dataset(tmp_path_factory.mktemp("legacy") / "ds", table, 64)
    return made.to_table(), path


def test_a_table_gives_schema_ids_and_dictionaries(mixed: tuple[pa.Table, Path]) -> None:
    expected, path = mixed
    schema = schema_from_arrow(expected.schema)
    ids = [field.id for field in schema.walk()]
    items = pa.array(["a", "b", "c", "d", "e"])
    file = open_table_legacy(
        open_store(str(path.parent)), path.name, schema=schema, field_ids=ids, dictionaries={ids[-1]: items}
    )
    found = LanceFileReader(str(path), columns=["d", "c2", "c5.x"], _file=file).read_all().to_table()
    assert found["c2"].equals(expected["c2"])
    assert found["d"].to_pylist() == [items[int(text)].as_py() for text in expected["d"].to_pylist()]
    assert found["c5"].to_pylist() == [{"x": row["x"]} for row in expected["c5"].to_pylist()]


def test_there_is_no_metadata_of_pages(mixed: tuple[pa.Table, Path]) -> None:
    with pytest.raises(Unsupported, match="no such metadata"):
        LanceFileReader(str(mixed[1])).metadata()


@pytest.mark.parametrize("seed", range(4))
def test_damage_gives_typed_errors(mixed: tuple[pa.Table, Path], tmp_path: Path, seed: int) -> None:
    whole, draw = mixed[1].read_bytes(), random.Random(seed)
    path = tmp_path / "f.lance"
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(draw.choice((1, 4, 20))):
            # The page table and all metadata stand in the last part.
            at = draw.randrange(len(whole) * 2 // 3, len(whole)) if draw.random() < 0.7 else draw.randrange(len(whole))
            damaged[at] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
        path.write_bytes(bytes(damaged[draw.randrange(30) * (draw.random() < 0.1) :]))
        began = time.perf_counter()
        for mapped in (True, False):
            try:
                reader = read(path, mapped=mapped)
                rows = min(reader.num_rows(), 300)
                reader.read_range(0, rows).to_table().validate()
                reader.take_rows(range(0, rows, 7)).to_table().validate()
            except LanceletError as error:
                assert error.uri is not None, error  # noqa: PT017 - an error is allowed, not expected
        assert time.perf_counter() - began < 5
