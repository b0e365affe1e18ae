"""Table functions in SQL: they tell what pylance and the local API tell of the same table."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lancelet.spark import register_functions

ROWS, DIMENSION = 60, 4


@pytest.fixture(scope="module")
def sql(spark: SparkSession) -> SparkSession:
    register_functions(spark)
    return spark


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    vectors = np.random.default_rng(0).standard_normal((ROWS, DIMENSION)).astype(np.float32)
    rows = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "point": pa.array([{"x": at, "y": f"y{at}"} if at % 7 else None for at in range(ROWS)]),
            "small": pa.array([at % 250 for at in range(ROWS)], pa.uint8()),
            "vector": pa.FixedSizeListArray.from_arrays(vectors.reshape(-1), DIMENSION),
        }
    )
    place = str(tmp_path_factory.mktemp("functions") / "t")
    lance.write_dataset(rows, place, max_rows_per_file=25)
    lance.dataset(place).delete("id = 11")
    lance.dataset(place).tags.create("two", 2)
    return place


def test_rows_are_searched_by_conditions(sql: SparkSession, table: str) -> None:
    found = sql.sql(
        f"SELECT * FROM lance_search('{table}', filter => 'id > 50 and small < 58', "
        "columns => 'id, point, small', with_row_id => true) ORDER BY id"
    )
    assert found.columns == ["id", "point", "small", "_rowid"]
    expected = lance.dataset(table).to_table(
        columns=["id", "point", "small"], filter="id > 50 and small < 58", with_row_id=True
    )
    assert [row.asDict(recursive=True) for row in found.collect()] == expected.to_pylist()
    assert sql.sql(f"SELECT count(*) n FROM lance_search('{table}', version => 1)").collect()[0].n == ROWS
    assert len(sql.sql(f"SELECT id FROM lance_search('{table}', limit => 3)").collect()) == 3


def test_the_nearest_rows_are_found_for_literals_and_for_rows_of_another_table(sql: SparkSession, table: str) -> None:
    nearest = {"column": "vector", "q": np.array([0.5, 0.25, -1.0, 0.0], np.float32), "k": 5}
    expected = lance.dataset(table).to_table(columns=["id"], nearest=nearest, filter="id > 9", prefilter=True)
    found = sql.sql(
        f"SELECT id, _distance FROM lance_search('{table}', columns => array('id'), column => 'vector', "
        "nearest => array(0.5, 0.25, -1, 0), k => 5, filter => 'id > 9', prefilter => true)"
    ).collect()
    assert [row.id for row in found] == expected["id"].to_pylist()
    assert np.allclose([row._distance for row in found], expected["_distance"].to_numpy())
    each = sql.sql(
        f"SELECT q.id, s.id other FROM (SELECT id, vector FROM lance_search('{table}') WHERE id IN (3, 8)) q, "
        f"LATERAL lance_search('{table}', columns => 'id', column => 'vector', nearest => q.vector, k => 1) s"
    ).collect()
    assert sorted((row.id, row.other) for row in each) == [(3, 3), (8, 8)]


def test_versions_files_and_pages_are_told(sql: SparkSession, table: str) -> None:
    versions = sql.sql(f"SELECT version, operation, tags, metrics['num_rows'] n FROM lance_versions('{table}')")
    assert [tuple(row) for row in versions.collect()] == [(2, "Delete", ["two"], 59), (1, "Overwrite", [], 60)]
    files = sql.sql(f"SELECT * FROM lance_files('{table}') ORDER BY fragment").collect()
    expected = [item.data_files()[0] for item in lance.dataset(table).get_fragments()]
    assert [row.path for row in files] == [f"data/{item.path}" for item in expected]
    assert [row.size_bytes for row in files] == [Path(row.uri).stat().st_size for row in files]
    assert [(row.rows, row.deleted_rows) for row in files] == [(25, 1), (25, 0), (10, 0)]
    assert files[0]["columns"] == ["id", "point.x", "point.y", "small", "vector"]
    assert Path(files[0].deletion_file).exists()
    assert sql.sql(f"SELECT count(deletion_file) n FROM lance_files('{table}', version => 1)").collect()[0].n == 0
    pages = sql.sql(
        f"SELECT column, sum(rows) n, sum(num_bytes) size FROM lance_pages('{table}') GROUP BY column ORDER BY column"
    ).collect()
    assert [(row["column"], row.n) for row in pages] == [
        (name, ROWS) for name in ("id", "point.x", "point.y", "small", "vector")
    ]
    assert sum(row["size"] for row in pages) < sum(row.size_bytes for row in files)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("lance_search('{table}', colums => 'id')", "lance_search has no argument colums"),
        ("lance_search('{table}', nearest => array(1, 2))", "nearest needs the argument column"),
        ("lance_search('{table}', columns => 'idd')", "there is no column 'idd'"),
        ("lance_search('{table}/nowhere')", "there is no table"),
        ("lance_versions('{table}/nowhere')", "there is no table"),
    ],
    ids=str,
)
def test_calls_that_make_no_sense_are_refused_with_what_is_wrong(
    sql: SparkSession, table: str, call: str, said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        sql.sql(f"SELECT * FROM {call.format(table=table)}").collect()
