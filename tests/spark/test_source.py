"""The source ``format("lance")``: what Spark reads of tables is what pylance reads of them, whatever is asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TypeAlias

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

import lancelet
from lancelet.spark import read
from lancelet.spark.progress import on_connect

Reader: TypeAlias = Callable[..., DataFrame]
ROWS = 1000


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    points = [{"x": at, "y": f"p{at % 7}"} if at % 11 else None for at in range(ROWS)]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": pa.array([f"name {at % 10}" if at % 13 else None for at in range(ROWS)]),
            "small": pa.array([at % 250 for at in range(ROWS)], pa.uint8()),
            "ratio": pa.array([float("nan") if at % 17 == 0 else at / 8 for at in range(ROWS)]),
            "point": pa.array(points, pa.struct([("x", pa.int32()), ("y", pa.string())])),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * 4, dtype=np.float32)), 4),
        }
    )


@pytest.fixture(scope="module")
def table(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four versions: three fragments, some rows deleted, others appended, all rows replaced."""
    place = str(tmp_path_factory.mktemp("source") / "table.lance")
    made = lance.write_dataset(rows, place, max_rows_per_file=300, enable_stable_row_ids=True)
    made.delete("id % 10 = 3")
    made = lance.write_dataset(rows.slice(0, 20), place, mode="append")
    made.tags.create("three", 3)
    lance.write_dataset(rows.slice(0, 5), place, mode="overwrite")
    return place


def by_source(spark: SparkSession, uri: str, **options: object) -> DataFrame:
    reader = spark.read.format("lance")
    for name, value in options.items():
        reader = reader.option(name, value if isinstance(value, str) else str(value))
    return reader.load(uri)


def by_helper(spark: SparkSession, uri: str, **options: object) -> DataFrame:
    columns = options.pop("columns", None)
    if isinstance(columns, str):
        options["columns"] = [name.strip() for name in columns.split(",")]
    return read(spark, uri, **options)  # type: ignore[arg-type]


READERS = pytest.mark.parametrize("load", [by_source, by_helper], ids=["source", "helper"])


def same(frame: DataFrame, expected: pa.Table) -> None:
    """Equal rows in any order, NaN like NaN."""
    found = [tuple(row.values()) for row in frame.toArrow().to_pylist()]
    wanted = [tuple(row.values()) for row in expected.to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


@READERS
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_version_reads_as_it_does_for_pylance(
    spark: SparkSession, table: str, load: Reader, version: int
) -> None:
    same(load(spark, table, version=version), lance.dataset(table, version=version).to_table())


@READERS
@pytest.mark.parametrize(
    ("options", "scan"),
    [
        ({"columns": "id"}, {"columns": ["id"]}),
        ({"columns": "vector, id"}, {"columns": ["vector", "id"]}),
        ({"columns": "point.x,_rowid,_rowaddr"}, {"columns": ["point.x", "_rowid", "_rowaddr"]}),
        ({"filter": "id < 100 and name is not null"}, {"filter": "id < 100 and name is not null"}),
        ({"filter": "id >= 995", "columns": "name"}, {"filter": "id >= 995", "columns": ["name"]}),
        ({"filter": "small = 7 or id in (1, 2, 3)"}, {"filter": "small = 7 or id in (1, 2, 3)"}),
    ],
    ids=str,
)
def test_columns_and_filters_select_what_they_do_for_pylance(
    spark: SparkSession, table: str, load: Reader, options: dict[str, object], scan: dict[str, object]
) -> None:
    expected = lance.dataset(table, version=3).to_table(**scan)
    frame = load(spark, table, version=3, **options)
    assert frame.columns == expected.schema.names
    same(frame, expected)


@READERS
def test_lineage_tells_what_it_does_to_pylance(spark: SparkSession, table: str, load: Reader) -> None:
    names = ["id", "_row_created_at_version", "_row_last_updated_at_version"]
    same(
        load(spark, table, version=3, columns=",".join(names)), lance.dataset(table, version=3).to_table(columns=names)
    )


@READERS
@pytest.mark.parametrize(("limit", "offset"), [(7, 0), (0, 0), (500, 400), (10_000, 850), (3, 2000), (271, 0)])
def test_a_limit_is_of_the_whole_read(spark: SparkSession, table: str, load: Reader, limit: int, offset: int) -> None:
    expected = lance.dataset(table, version=3).to_table(limit=limit, offset=offset)
    same(load(spark, table, version=3, limit=limit, offset=offset), expected)


@READERS
def test_a_limit_after_a_filter_is_of_the_rows_that_pass(spark: SparkSession, table: str, load: Reader) -> None:
    asked = {"filter": "id % 2 = 0", "limit": 33, "offset": 5}
    same(load(spark, table, version=3, **asked), lance.dataset(table, version=3).to_table(**asked))


@READERS
def test_tags_and_moments_name_versions(spark: SparkSession, table: str, load: Reader) -> None:
    assert load(spark, table, tag="three").count() == 920
    # As we tell it: pylance divides floats, and may be a microsecond off.
    moment = lancelet.dataset(table).versions()[1]["timestamp"].astimezone().isoformat()
    assert load(spark, table, timestamp=moment).count() == 900


@READERS
def test_branches_are_read(spark: SparkSession, rows: pa.Table, tmp_path: Path, load: Reader) -> None:
    made = lance.write_dataset(rows.slice(0, 10), str(tmp_path / "t"))
    branch = made.create_branch("work/one", 1)
    lance.write_dataset(rows.slice(10, 5), branch, mode="append")
    assert load(spark, str(tmp_path / "t"), branch="work/one").count() == 15
    assert load(spark, str(tmp_path / "t"), branch="work/one", version=1).count() == 10
    assert load(spark, str(tmp_path / "t"), branch="main").count() == 10


@READERS
def test_only_fragments_that_are_named_are_read(spark: SparkSession, table: str, load: Reader) -> None:
    fragments = [0, 2] if load is by_helper else "0, 2"
    frame = load(spark, table, version=1, fragments=fragments, columns="id")
    assert sorted(row.id for row in frame.collect()) == [*range(300), *range(600, 900)]


@READERS
def test_values_are_computed_where_they_are_read(spark: SparkSession, table: str, load: Reader) -> None:
    columns = {"twice": "id * 2", "y": "point.y"}
    asked = columns if load is by_helper else str(columns).replace("'", '"')
    frame = (
        load(spark, table, version=1, columns=asked, filter="id = 5")
        if load is by_source
        else read(spark, table, version=1, columns=columns, filter="id = 5")
    )
    assert [tuple(row) for row in frame.collect()] == [(10, "p5")]


@READERS
def test_a_fragment_is_split_and_small_ones_share_a_task(spark: SparkSession, tmp_path: Path, load: Reader) -> None:
    numbers = pa.table({"n": pa.array(range(40_000), pa.int64()), "m": pa.array([0] * 40_000, pa.int64())})
    lance.write_dataset(numbers, str(tmp_path / "large"), max_rows_per_file=40_000)
    lance.write_dataset(numbers, str(tmp_path / "small"), max_rows_per_file=1000)
    # 40,000 rows of 16 bytes.
    large = load(spark, str(tmp_path / "large"), split_size=160_000)
    small = load(spark, str(tmp_path / "small"), split_size=160_000)
    for frame in (large, small):
        assert frame.select(functions.spark_partition_id()).distinct().count() == 4
        assert frame.agg(functions.sum("n"), functions.count("n")).collect()[0] == (sum(range(40_000)), 40_000)


@READERS
def test_an_empty_table_reads(spark: SparkSession, rows: pa.Table, tmp_path: Path, load: Reader) -> None:
    made = lance.write_dataset(rows.slice(0, 5), str(tmp_path / "t"))
    made.delete("true")
    frame = load(spark, str(tmp_path / "t"))
    assert frame.columns == rows.schema.names
    assert frame.collect() == []
    lance.write_dataset(rows.schema.empty_table(), str(tmp_path / "none"))
    assert load(spark, str(tmp_path / "none")).count() == 0


@READERS
def test_the_version_is_pinned_when_the_frame_is_made(
    spark: SparkSession, rows: pa.Table, tmp_path: Path, load: Reader
) -> None:
    lance.write_dataset(rows.slice(0, 10), str(tmp_path / "t"))
    frame = load(spark, str(tmp_path / "t"))
    lance.write_dataset(rows.slice(0, 10), str(tmp_path / "t"), mode="append")
    # Connect looks at what a frame of a source is each time that the frame is used.
    assert frame.count() == (20 if on_connect(spark) and load is by_source else 10)
    assert load(spark, str(tmp_path / "t"), version=1).count() == 10
    assert load(spark, str(tmp_path / "t")).count() == 20


def test_a_table_made_anew_at_the_same_place_is_not_taken_for_the_old_one(
    spark: SparkSession, rows: pa.Table, tmp_path: Path
) -> None:
    import shutil

    place = tmp_path / "t"
    for count in (10, 7):
        lance.write_dataset(rows.slice(0, count), str(place))
        assert by_source(spark, str(place)).count() == count
        assert by_helper(spark, str(place)).count() == count
        shutil.rmtree(place)


def test_a_schema_of_the_user_prunes_columns_and_fields(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("lance").schema("point struct<y: string>, id bigint").option("version", 1).load(table)
    assert frame.columns == ["point", "id"]
    row = frame.where("id = 5").collect()[0]
    assert (row.id, row.point.asDict()) == (5, {"y": "p5"})
    wider = spark.read.format("lance").schema("small bigint").option("version", 1).load(table)
    assert wider.agg(functions.max("small")).collect()[0][0] == 249


def test_filters_are_taken_where_the_session_lets_them(spark: SparkSession, table: str) -> None:
    expected = lance.dataset(table, version=3).to_table()
    conditions = [
        "id > 500",
        "id = 5 or id = 7",
        "name = 'name 3' and small < 100",
        "name is null",
        "not (name = 'name 3')",
        "ratio > 100",
        "ratio = 1.5",
        "isnan(ratio)",
        "ratio = double('nan')",
        "ratio < 2 and id > 3",
        "small in (1, 2, 300)",
        "point.x between 5 and 9",
        "point is null",
        "name like 'name%' and name like '%5'",
        "not (point.x <=> 3)",
        "id in (1, null)",
        "vector[0] > 3980",
    ]
    plain = {text: by_source(spark, table, version=3).where(text).select("id") for text in conditions}
    wanted = {text: sorted(row.id for row in frame.collect()) for text, frame in plain.items()}
    assert len(expected) == 920
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for text in conditions:
            frame = by_source(spark, table, version=3).where(text).select("id")
            assert sorted(row.id for row in frame.collect()) == wanted[text], text
        plan = explained(by_source(spark, table, version=3).where("id > 500 and ratio = 1.5"))
        # The first is taken, the second is looked at again.
        assert "Filter" in plan
        assert "ratio" in plan.split("Filter", 1)[1].split("\n", 1)[0]
        assert "id#" not in plan.split("Filter", 1)[1].split("\n", 1)[0]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def explained(frame: DataFrame) -> str:
    said = StringIO()
    with redirect_stdout(said):
        frame.explain()
    return said.getvalue()


def test_a_pushed_filter_never_changes_which_rows_a_limit_leaves(spark: SparkSession, table: str) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = by_source(spark, table, version=1, limit=10).where("id >= 8").select("id")
        assert [row.id for row in frame.collect()] == [8, 9]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": 99}, "there is no version 99"),
        ({"tag": "none"}, "none"),
        ({"columns": "id,nmae"}, "did you mean 'name'"),
        ({"filter": "idd > 3"}, "did you mean"),
        ({"batch_sice": 3}, "did you mean batch_size"),
        ({"fragments": "77"}, "there is no fragment 77"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused_with_its_name(
    spark: SparkSession, table: str, options: dict[str, object], said: str
) -> None:
    with pytest.raises(AnalysisException) as caught:
        by_source(spark, table, **options).collect()
    assert said in str(caught.value)


def test_a_place_without_a_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="there is no table"):
        # On Connect the schema is what is asked for first.
        assert by_source(spark, str(tmp_path / "nothing")).schema


def test_a_data_file_that_is_gone_ends_the_read_with_its_name(
    spark: SparkSession, rows: pa.Table, tmp_path: Path
) -> None:
    lance.write_dataset(rows, str(tmp_path / "t"))
    frame = by_source(spark, str(tmp_path / "t"))
    file = next((tmp_path / "t/data").iterdir())
    file.unlink()
    with pytest.raises(PySparkException, match=file.name):
        frame.collect()
