"""Queries in SQL over a dataset: rows are those that pylance finds, and only what a query needs is read."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancelet

Dataset = Any


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Dataset]:
    """One table, opened by both."""
    numbers = np.arange(3_000)
    rows = pa.table(
        {
            "id": numbers,
            "word": pa.array([f"w{n % 17}" for n in numbers.tolist()], mask=numbers % 5 == 0),
            "real": pa.array(numbers / 3, mask=numbers % 7 == 0),
            "day": pa.array(numbers.astype("i4") % 900, pa.date32()),
            "pos": pa.StructArray.from_arrays([pa.array(numbers % 3), pa.array(numbers * 2)], ["x", "y"]),
        }
    )
    place = str(tmp_path_factory.mktemp("sql") / "t")
    theirs = lance.write_dataset(rows, place, max_rows_per_file=700)
    theirs.delete("id % 11 = 3")
    return lancelet.dataset(place), lance.dataset(place)


QUERIES = [
    "SELECT id, word FROM dataset WHERE id BETWEEN 690 AND 710 ORDER BY id",
    "SELECT * FROM dataset WHERE word IS NULL AND real > 900 ORDER BY id",
    "SELECT count(*) AS n, sum(id) AS s, round(avg(real), 6) AS m, min(day) AS d, max(word) AS w FROM dataset",
    "SELECT word, count(*) AS n, sum(pos.y) AS y FROM dataset GROUP BY word HAVING count(*) > 5 ORDER BY n, word",
    "SELECT a.id, b.id AS other FROM dataset a JOIN dataset b ON a.id = b.pos.y WHERE b.id < 40 ORDER BY a.id",
    "SELECT id, lag(id) OVER (PARTITION BY word ORDER BY id DESC) AS n FROM dataset WHERE id < 60 ORDER BY id",
    "WITH few AS (SELECT id FROM dataset LIMIT 0) SELECT count(*) AS n FROM few",
    "SELECT DISTINCT pos.x AS x FROM dataset WHERE day < DATE '1970-02-01' ORDER BY x DESC",
    "SELECT CASE WHEN real IS NULL THEN 'none' ELSE 'some' END AS c, word || '!' AS e FROM dataset ORDER BY id LIMIT 9",
    "SELECT id FROM dataset WHERE id > 99999",
]


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_pylance(pair: tuple[Dataset, Dataset], query: str) -> None:
    found, expected = (dataset.sql(query).build().to_batch_records() for dataset in pair)
    assert [row for batch in found for row in batch.to_pylist()] == [
        row for batch in expected for row in batch.to_pylist()
    ]
    if expected:
        assert found[0].schema.types == expected[0].schema.types
    assert pair[0].sql(query).build().to_stream_reader().schema.names


def test_row_ids_are_there_if_asked_for(pair: tuple[Dataset, Dataset]) -> None:
    for options in (("with_row_id",), ("with_row_addr",), ("with_row_addr", "with_row_id")):
        found = []
        for dataset in pair:
            builder = dataset.sql("SELECT * FROM rows WHERE id > 2990 ORDER BY id").table_name("rows")
            for name in options:
                builder = getattr(builder, name)()
            found.append(pa.Table.from_batches(builder.build().to_batch_records()))
        assert found[0].to_pylist() == found[1].to_pylist()
        assert found[0].schema.names == found[1].schema.names
    with pytest.raises(ValueError, match="_rowid"):
        pair[0].sql("SELECT _rowid FROM dataset").with_row_id(False).build().to_batch_records()


def test_batches_are_of_the_size_asked_for_and_a_query_is_carried_out_again(pair: tuple[Dataset, Dataset]) -> None:
    query = pair[0].sql("SELECT id FROM dataset").batch_size(100).build()
    assert max(batch.num_rows for batch in query.to_stream_reader()) <= 100
    assert sum(batch.num_rows for batch in query.to_batch_records()) == pair[0].count_rows()
    first = next(iter(query.to_stream_reader()))
    assert first.num_rows <= 100


def test_plans_name_the_columns_and_conditions_that_scans_get(pair: tuple[Dataset, Dataset]) -> None:
    for query in ("EXPLAIN SELECT id FROM dataset WHERE real > 15", "EXPLAIN ANALYZE SELECT id FROM dataset"):
        ours, theirs = (pa.Table.from_batches(dataset.sql(query).build().to_batch_records()) for dataset in pair)
        assert ours.schema.names == theirs.schema.names == ["plan_type", "plan"]
        assert "id" in ours["plan"][0].as_py()
    plan = pair[0].sql(f"EXPLAIN {QUERIES[0]}").build().to_batch_records()[0]["plan"][0].as_py()
    assert "word" in plan
    assert "690" in plan


@pytest.mark.parametrize(
    "query",
    [
        "SELEC",
        "SELECT nothing FROM dataset",
        "SELECT * FROM other",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM pair",
        "INSERT INTO dataset VALUES (1)",
        "COPY dataset TO '/tmp/x.csv'",
        "SET memory_limit = '1TB'",
        "SELECT 1; SELECT 2",
        "SELECT CAST(word AS INT) FROM dataset",
        "SELECT sum(9223372036854775807) FROM dataset",
        "",
    ],
)
def test_what_is_no_query_over_the_dataset_is_refused(pair: tuple[Dataset, Dataset], query: str) -> None:
    assert pair is not None
    with pytest.raises(ValueError, match=r"query|statement|integer"):
        pair[0].sql(query).build().to_batch_records()


def test_options_that_cannot_be_are_refused_as_by_pylance(pair: tuple[Dataset, Dataset]) -> None:
    for dataset in pair:
        with pytest.raises(ValueError, match="batch_size"):
            dataset.sql("SELECT id FROM dataset").batch_size(0).build().to_batch_records()
        with pytest.raises(ValueError, match="blob_handling"):
            dataset.sql("SELECT id FROM dataset").blob_handling("x")
    with pytest.raises(TypeError):
        pair[0].sql(5)


def test_only_the_bytes_that_a_query_needs_are_read(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    rows = pa.table({"k": np.arange(200_000), "wide": draw.random(200_000), "other": draw.random(200_000)})
    told: list[lancelet.ScanStatistics] = []
    lancelet.write_dataset(rows, tmp_path / "t", max_rows_per_file=50_000)
    dataset = lancelet.dataset(tmp_path / "t", default_scan_options={"scan_stats_callback": told.append})

    def bytes_of(query: str) -> int:
        told.clear()
        dataset.sql(query).build().to_batch_records()
        return sum(item.bytes_read for item in told)

    whole = bytes_of("SELECT * FROM dataset")
    assert whole > 3_000_000
    assert bytes_of("SELECT k FROM dataset") < whole / 4
    assert bytes_of("SELECT wide FROM dataset WHERE k = 77777") < whole / 4
    assert 0 < bytes_of("SELECT count(*) FROM dataset") < whole / 4


def test_blobs_are_bytes_if_asked_for(tmp_path: Path) -> None:
    values = [b"a" * 10, None, b"c" * 1_000]
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    dataset = lancelet.write_dataset(pa.table({"b": values}, schema=schema), tmp_path / "t")
    found = dataset.sql("SELECT b FROM dataset").blob_handling("all_binary").build().to_batch_records()
    assert [row["b"] for batch in found for row in batch.to_pylist()] == values
    described = dataset.sql("SELECT b FROM dataset").build().to_batch_records()
    assert pa.types.is_struct(described[0].schema.field("b").type)


def test_without_duckdb_the_extra_is_named() -> None:
    script = """
        import sys
        sys.modules["duckdb"] = None
        import lancelet, pyarrow as pa
        query = lancelet.write_dataset(pa.table({"x": [1]}), "memory://absent").sql("SELECT 1").build()
        try:
            query.to_batch_records()
        except lancelet.LanceletError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert "lancelet[duckdb]" in done.stdout, done.stderr
