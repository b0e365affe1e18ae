"""Rows deleted, updated and merged by the table object are those that pylance and the local API change."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

import lancelet
from lancelet.errors import InvalidInput
from lancelet.ops.journal import ATTEMPTS
from lancelet.spark import read
from lancelet.spark.table import LanceTable
from lancelet.storage import open_store
from lancelet.table.versions import list_versions


def rows(numbers: range, seed: int = 0) -> pa.Table:
    """Rows of many types, some of them null."""
    draw = random.Random(seed)
    count = len(numbers)
    name = [None if draw.random() < 0.1 else f"n{draw.randrange(40)}" for _ in range(count)]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "x": pa.array([None if draw.random() < 0.1 else draw.randrange(100) for _ in range(count)], pa.int32()),
            "name": pa.array(name, pa.string()),
            "vector": pa.array([[float(at), draw.random(), 0.0] for at in numbers], pa.list_(pa.float32(), 3)),
            "inner": pa.array(
                [{"a": at, "b": f"{at}"} for at in numbers], pa.struct({"a": pa.int16(), "b": pa.string()})
            ),
        }
    )


def make(place: Path, count: int = 200, **options: Any) -> Path:
    lance.write_dataset(rows(range(count)), str(place), max_rows_per_file=60, **options)
    return place


def contents(place: Path, *, ids: bool = False) -> list[dict[str, Any]]:
    """The rows as pylance reads them, in an order of their own."""
    found = lance.dataset(str(place)).scanner(with_row_id=ids).to_table().to_pylist()
    return sorted(found, key=repr)


def leftovers(place: Path) -> list[str]:
    """What the journal still tells, and data and deletion files that no version names."""
    store = open_store(str(place))
    named = set()
    for version in list_versions(store):
        for item in version.manifest.fragments:
            named |= {f"data/{file.path}" for file in item.files}
            if item.deletion_file is not None:
                named.add(f"{item.id}-{item.deletion_file.read_version}-{item.deletion_file.id}")
    told = [entry.path for entry in store.list_from(ATTEMPTS)]
    deletions = [entry.path for entry in store.list_from("_deletions/")]
    unknown = [path for path in deletions if path.rpartition("/")[2].rpartition(".")[0] not in named]
    return told + unknown + [entry.path for entry in store.list_from("data/") if entry.path not in named]


CONDITIONS = [
    ("id % 7 = 3", "id % 7 = 3"),
    ("id between 20 and 25", "id >= 20 AND id <= 25"),
    ("x > 50", "x > 50"),
    ("name in ('n1', 'n2') and id > 100", "name IN ('n1', 'n2') AND id > 100"),
    ("name is null or inner.a < 5", "name IS NULL OR inner.a < 5"),
    ("target.id = 5", "id = 5"),
    ("x is not null and not (x < 90)", "x IS NOT NULL AND NOT (x < 90)"),
    ("id < 0", "id < 0"),
]
VALUES = [
    ({"x": "x + 1"}, {"x": "x + 1"}),
    ({"name": "upper(name)", "x": "7"}, {"name": "upper(name)", "x": "7"}),
    ({"target.name": "concat(name, '!')"}, {"name": "concat(name, '!')"}),
    ({"x": "cast(null as int)", "id": "id + 1000"}, {"x": "NULL", "id": "id + 1000"}),
]


@pytest.mark.parametrize("stable", [False, True])
def test_histories_of_deletes_and_updates_agree_with_pylance(spark: SparkSession, tmp_path: Path, stable: bool) -> None:
    mine, theirs = (make(tmp_path / name, enable_stable_row_ids=stable) for name in ("mine", "theirs"))
    table, oracle = LanceTable.forPath(spark, mine), lance.dataset(str(theirs))
    draw = random.Random(7)
    for step in range(10):
        ours, lances = draw.choice(CONDITIONS)
        if draw.random() < 0.4:
            figures, expected = table.delete(ours), oracle.delete(lances)["num_deleted_rows"]
            assert (figures.num_deleted_rows, figures.num_files) == (expected, 0), (step, ours)
        else:
            values, others = draw.choice(VALUES)
            figures, expected = table.update(ours, values), oracle.update(others, where=lances)["num_rows_updated"]
            assert figures.num_updated_rows == expected, (step, ours, values)
        assert figures.version == oracle.version == lance.dataset(str(mine)).version
        assert contents(mine, ids=stable) == contents(theirs, ids=stable), (step, ours)
    assert leftovers(mine) == []


def test_conditions_and_values_may_be_columns_of_functions(spark: SparkSession, tmp_path: Path) -> None:
    table = LanceTable.forPath(spark, make(tmp_path / "t")).alias("t")
    assert table.delete(col("t.id") < 10).num_deleted_rows == 10
    assert table.update(col("id") == 50, {"name": lit("fifty"), "x": col("x") * 0}).num_updated_rows == 1
    assert table.delete(expr("id in (select max(id) from range(60))")).num_deleted_rows == 1
    found = lance.dataset(str(tmp_path / "t")).to_table(filter="id < 60")
    assert found["id"].to_pylist() == [*range(10, 50), *range(51, 59), 50]
    assert found["name"].to_pylist()[-1] == "fifty"


def test_all_rows_are_deleted_without_a_look_at_them(spark: SparkSession, tmp_path: Path) -> None:
    table = LanceTable.forPath(spark, make(tmp_path / "t"))
    assert table.delete().num_deleted_rows == 200
    assert lance.dataset(str(tmp_path / "t")).count_rows() == 0
    assert table.toDF().count() == 0
    assert table.update(None, {"x": "1"}).num_updated_rows == 0


def test_values_that_do_not_fit_and_columns_that_are_not_there_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = make(tmp_path / "t")
    table = LanceTable.forPath(spark, place)
    with pytest.raises(InvalidInput, match="there is no column 'y'"):
        table.update(None, {"y": "1"})
    with pytest.raises(InvalidInput, match="set the whole struct"):
        table.update(None, {"inner.a": "1"})
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        table.delete("nowhere = 1")
    with pytest.raises(PySparkException, match=r"a value does not fit: .*\[column=x\]"):
        table.update("id = 3", {"x": "id + 10000000000"})
    with pytest.raises(InvalidInput, match="only the newest version can be changed"):
        LanceTable.forPath(spark, place, version=1).delete("id = 1")
    assert lance.dataset(str(place)).version == 1
    assert [path for path in leftovers(place) if not path.startswith(ATTEMPTS)] == []


def changes(spark: SparkSession) -> DataFrame:
    """Some rows that are there, some that are not, and a null key."""
    made = [
        "if(id < 209, id, null) id",
        "cast(id * 2 as int) x",
        "concat('m', id) name",
        "array(cast(id as float), 1f, 2f) vector",
        "named_struct('a', cast(id as short), 'b', 'new') inner",
    ]
    return spark.range(190, 210).selectExpr(*made)


#: Clauses of a merge: of the table object's, and the same of pylance's.
WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "upsert": (
        lambda merge: merge.whenMatchedUpdateAll().whenNotMatchedInsertAll(),
        lambda merge: merge.when_matched_update_all().when_not_matched_insert_all(),
    ),
    "insert what is missing": (
        lambda merge: merge.whenNotMatchedInsertAll(),
        lambda merge: merge.when_not_matched_insert_all(),
    ),
    "update where": (
        lambda merge: merge.whenMatchedUpdateAll("source.x > 390 and target.id < 199"),
        lambda merge: merge.when_matched_update_all("source.x > 390 AND target.id < 199"),
    ),
    "replace a part": (
        lambda merge: (
            merge.whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .whenNotMatchedBySourceDelete("target.id > 150 and target.x > 10")
        ),
        lambda merge: (
            merge.when_matched_update_all()
            .when_not_matched_insert_all()
            .when_not_matched_by_source_delete("id > 150 AND x > 10")
        ),
    ),
    "delete": (lambda merge: merge.whenMatchedDelete(), lambda merge: merge.when_matched_delete()),
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_merges_agree_with_pylance_and_the_local_api(
    spark: SparkSession, tmp_path: Path, way: str, stable: bool
) -> None:
    mine, theirs, local = (make(tmp_path / name, enable_stable_row_ids=stable) for name in ("mine", "theirs", "local"))
    frame = changes(spark)
    schema = lance.dataset(str(mine)).schema
    data = pa.Table.from_pylist([row.asDict(recursive=True) for row in frame.collect()], schema)
    clauses, others = WAYS[way]
    figures = clauses(LanceTable.forPath(spark, mine).merge(frame, "target.id = source.id")).execute()
    for api, place in ((lance, theirs), (lancelet, local)):
        expected = others(api.dataset(str(place)).merge_insert("id")).execute(data)
        for name in ("num_inserted_rows", "num_updated_rows", "num_deleted_rows"):
            assert getattr(figures, name) == expected[name], name
        assert contents(mine) == contents(place)
    if stable and way != "insert what is missing":
        # Rows keep their ids; those of new rows depend on the order in which they are written.
        kept = [{row["_rowid"]: row["id"] for row in contents(place, ids=True)} for place in (mine, theirs)]
        assert {key for key, value in kept[0].items() if key < 200} == {key for key in kept[1] if key < 200}
    assert figures.version == 2
    assert leftovers(mine) == []


def test_clauses_count_in_their_order_and_set_columns_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    place = make(tmp_path / "t", 20)
    before = {row["id"]: row for row in contents(place)}
    source = spark.range(10, 30).selectExpr("id key", "cast(id as int) y", "id % 2 = 0 even")
    figures = (
        LanceTable.forPath(spark, place)
        .alias("t")
        .merge(source.alias("s"), "t.id = s.key")
        .whenMatchedDelete("s.key = 11")
        .whenMatchedUpdate("s.even", {"x": "s.y + coalesce(t.x, 0)"})
        .whenMatchedUpdate(None, {"t.name": "concat('odd ', t.inner.b)"})
        .whenNotMatchedInsert("s.key < 25", {"id": "s.key", "x": "s.y"})
        .whenNotMatchedBySourceUpdate("t.id < 3", {"name": "'alone'"})
        .whenNotMatchedBySourceDelete("t.id = 4")
        .execute()
    )
    counts = (figures.num_inserted_rows, figures.num_updated_rows, figures.num_deleted_rows, figures.num_attempts)
    assert counts == (5, 12, 2, 1)
    after = {row["id"]: row for row in contents(place)}
    assert sorted(after) == [number for number in range(25) if number not in (4, 11)]
    for number, row in after.items():
        old = before.get(number, {"name": None, "x": None, "vector": None, "inner": None})
        expected = {**old, "id": number}
        if number >= 20:
            expected["x"] = number
        elif number >= 10 and number % 2 == 0:
            expected["x"] = number + (old["x"] or 0)
        elif number >= 10:
            expected["name"] = f"odd {number}"
        elif number < 3:
            expected["name"] = "alone"
        assert row == expected
    assert leftovers(place) == []


def test_a_merge_deletes_and_inserts_where_a_column_may_not_be_null(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.int32(), nullable=False)])
    lance.write_dataset(pa.table([range(10), range(10)], schema=schema), str(tmp_path / "t"))
    table = LanceTable.forPath(spark, tmp_path / "t")
    source = spark.range(8, 12).selectExpr("id", "cast(id as int) x", "nullif(cast(id as int), 11) y")
    merge = table.merge(source, "target.id = source.id").whenMatchedDelete()
    with pytest.raises((InvalidInput, PySparkException), match="may not be"):
        merge.whenNotMatchedInsert(values={"id": "source.id", "x": "source.y"}).execute()
    figures = merge.whenNotMatchedInsertAll().execute()
    assert (figures.num_deleted_rows, figures.num_inserted_rows) == (2, 2)
    assert sorted(row["id"] for row in contents(tmp_path / "t")) == [*range(8), 10, 11]
    assert lance.dataset(str(tmp_path / "t")).schema == schema
    assert leftovers(tmp_path / "t") == []


def test_a_row_that_would_be_changed_twice_is_refused_unless_it_goes(spark: SparkSession, tmp_path: Path) -> None:
    place = make(tmp_path / "t")
    table = LanceTable.forPath(spark, place)
    twice = spark.sql("select 3L id, 5 x union all select 3L, 6")
    with pytest.raises(InvalidInput, match="several rows of the source are to change one row"):
        table.merge(twice, "target.id = source.id").whenMatchedUpdateAll().execute()
    assert lance.dataset(str(place)).version == 1
    assert [path for path in leftovers(place) if not path.startswith(ATTEMPTS)] == []
    # One of the two is told apart by a condition, or both say the same.
    merge = table.merge(twice, "target.id = source.id")
    assert merge.whenMatchedUpdateAll("source.x = 6").execute().num_updated_rows == 1
    merge.whenMatchedDelete().execute()
    assert lance.dataset(str(place)).count_rows() == 199


def test_merges_that_make_no_sense_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    merge = LanceTable.forPath(spark, make(tmp_path / "t")).merge(spark.range(3), "target.id = source.id")
    with pytest.raises(InvalidInput, match="not to change anything"):
        merge.execute()
    with pytest.raises(InvalidInput, match="stands behind one without a condition"):
        merge.whenMatchedDelete().whenMatchedUpdateAll("target.id = 1").execute()
    with pytest.raises(InvalidInput, match="no column is given a value"):
        merge.whenMatchedUpdate("target.id = 1")
    with pytest.raises(InvalidInput, match="the source has none of the table's columns"):
        LanceTable.forPath(spark, tmp_path / "t").merge(
            spark.range(3).selectExpr("id k"), "target.id = source.k"
        ).whenNotMatchedInsertAll().execute()


def test_a_source_that_differs_each_time_is_evaluated_once(spark: SparkSession, tmp_path: Path) -> None:
    place = make(tmp_path / "t", 50)
    source = spark.range(100).selectExpr("id", "cast(rand() * 1000000 as int) x", "uuid() name")
    figures = (
        LanceTable.forPath(spark, place)
        .merge(source, "target.id = source.id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    assert (figures.num_updated_rows, figures.num_inserted_rows) == (50, 50)
    found = lance.dataset(str(place)).to_table(columns=["id", "name"])
    assert sorted(found["id"].to_pylist()) == list(range(100))
    assert len(set(found["name"].to_pylist())) == 100


def test_blobs_stay_where_rows_are_updated_and_come_from_frames(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [bytes([at]) * 3000 if at % 3 else None for at in range(12)]
    data = [pa.array(range(12)), pa.array(range(12)), pa.array(values, pa.large_binary())]
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("x", pa.int64()), field])
    lance.write_dataset(pa.table(data, schema=schema), place, data_storage_version="2.1", max_rows_per_file=5)
    table = LanceTable.forPath(spark, place)
    assert table.update("id >= 6", {"x": "x + 100"}).num_updated_rows == 6
    swapped = read(spark, place, columns=["id", "blob"]).selectExpr("11 - id id", "blob").where("id < 2")
    assert table.merge(swapped, "target.id = source.id").whenMatchedUpdateAll().execute().num_updated_rows == 2
    frame = read(spark, place, blobs="bytes")
    got = {row.id: (row.x, None if row.blob is None else bytes(row.blob)) for row in frame.collect()}
    for at in range(12):
        expected = values[11 - at] if at < 2 else values[at]
        assert got[at] == (at + 100 if at >= 6 else at, expected)
