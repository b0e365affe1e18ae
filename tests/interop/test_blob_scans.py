"""Blobs in scans: descriptions or bytes as asked for, of both kinds, as pylance hands them out."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.config import default_options
from lancelet.query.blob_values import BlobReaders, with_bytes
from lancelet.query.scan import tables_of

HANDLING = ("all_binary", "blobs_descriptions", "all_descriptions")


def some_blobs(rows: int, seed: int) -> pa.Table:
    """Null, empty, small and larger blobs, also within a struct."""
    random = np.random.default_rng(seed)
    sizes = random.choice([0, 1, 7, 100, 3_000], rows)
    values = [None if random.random() < 0.2 else random.bytes(size) for size in sizes.tolist()]
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    inner = pa.struct([blob, pa.field("y", pa.int32())])
    schema = pa.schema([pa.field("x", pa.int64()), blob, pa.field("s", inner)])
    array = pa.array(values, pa.large_binary())
    within = pa.StructArray.from_arrays(
        [array.take(pa.array(np.arange(rows)[::-1])), pa.nulls(rows, pa.int32())], fields=list(inner)
    )
    return pa.table([np.arange(rows), array, within], schema=schema)


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    table = some_blobs(200, 1)
    if request.param != "2.2":
        # Blobs within structs came with version 2.2.
        table = table.drop_columns(["s"])
    lance.write_dataset(table, uri, data_storage_version=request.param, max_rows_per_file=90)
    lance.dataset(uri).delete("x % 7 = 3")
    return uri


@pytest.mark.parametrize("handling", [None, *HANDLING])
@pytest.mark.parametrize("filter", [None, "x > 150", "x % 2 = 0"])
def test_scans_hand_out_what_is_asked_for(uri: str, handling: str | None, filter: str | None) -> None:
    ours, theirs = lancelet.dataset(uri), lance.dataset(uri)
    columns = [*theirs.schema.names][::-1]
    asked = {"columns": columns, "filter": filter, "blob_handling": handling, "with_row_id": True}
    expected, found = theirs.to_table(**asked), ours.to_table(**asked)
    assert found.schema.names == expected.schema.names
    assert [field.type for field in found.schema] == [field.type for field in expected.schema]
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.field("b").metadata == expected.schema.field("b").metadata


@pytest.mark.parametrize("handling", HANDLING)
def test_limits_batches_and_orders_do_not_change_blobs(uri: str, handling: str) -> None:
    asked: dict[str, object] = {"columns": ["b", "x"], "blob_handling": handling, "limit": 40, "offset": 30}
    expected = lance.dataset(uri).to_table(**asked).to_pylist()
    scanner = lancelet.dataset(uri).scanner(**asked, batch_size=11)
    assert pa.Table.from_batches(scanner.to_batches(), scanner.projected_schema).to_pylist() == expected
    backwards = lancelet.dataset(uri).to_table(**asked | {"offset": None, "limit": None}, order_by=["x"]).to_pylist()
    assert backwards[30:70] == expected


def test_takes_hand_out_descriptions_and_files_read_the_bytes(uri: str) -> None:
    rows = [100, 3, 3, 150]
    ours, theirs = lancelet.dataset(uri), lance.dataset(uri)
    assert ours.take(rows, columns=["b"]).to_pylist() == theirs.take(rows, columns=["b"]).to_pylist()
    assert ours.take(rows).to_pylist() == theirs.take(rows).to_pylist()
    values = ours.to_table(columns=["b"], blob_handling="all_binary")["b"]
    there = [row for row in range(40) if values[row].is_valid]
    assert [file.read() for file in ours.take_blobs("b", indices=there)] == [values[row].as_py() for row in there]


def test_bytes_of_blobs_come_in_pieces_that_fit_into_memory() -> None:
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    values = [bytes([number]) * 2**18 for number in range(40)]
    made = lancelet.write_dataset(
        pa.table([pa.array(values, pa.large_binary())], schema=schema), "memory://blob-pieces"
    )
    plan = made.scanner(blob_handling="all_binary").plan
    assert plan.fetch is not None
    readers = BlobReaders(made.places, default_options().with_(memory_budget=8 * 2**20))
    pieces = list(with_bytes(tables_of(plan.fetch.scan, made.places), plan.fetch.outputs, plan.schema, readers))
    assert max(piece.nbytes for piece in pieces) < 2 * 2**20
    assert pa.concat_tables(pieces)["b"].to_pylist() == values
