"""Writing from Spark: what pylance reads of the tables is what was in the frames, whatever the way it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from lancelet.errors import AlreadyExists, InvalidInput
from lancelet.ops.journal import ATTEMPTS
from lancelet.spark import fetch_blobs, read, write
from lancelet.storage import open_store
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions

WAYS = pytest.mark.parametrize("way", ["sink", "helper"])


def save(frame: DataFrame, uri: object, way: str, mode: str = "append", **options: Any) -> None:
    if way == "helper":
        write(frame, str(uri), mode=mode, **options)  # type: ignore[arg-type]
        return
    writer = frame.write.format("lance").mode(mode)
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.save(str(uri))


def leftovers(uri: object) -> list[str]:
    """What the journal still tells, and data files that no version names."""
    store = open_store(str(uri))
    told = [entry.path for entry in store.list_from(ATTEMPTS)]
    fragments = [item for version in list_versions(store) for item in version.manifest.fragments]
    named = {f"data/{file.path}" for item in fragments for file in item.files}
    return told + [entry.path for entry in store.list_from("data/") if entry.path not in named]


@pytest.fixture
def people(spark: SparkSession) -> DataFrame:
    rows = [(at, f"name {at}", [float(at), 1.0, 2.0]) for at in range(100)]
    return spark.createDataFrame(rows, "id bigint, name string, vector array<float>").repartition(3)


@WAYS
def test_a_missing_table_is_made_and_rows_are_put_behind(people: DataFrame, tmp_path: Path, way: str) -> None:
    place = tmp_path / "t"
    for count in (1, 2):
        save(people, place, way)
        found = lance.dataset(str(place))
        assert found.version == count
        assert sorted(found.to_table(columns=["id"])["id"].to_pylist()) == sorted(list(range(100)) * count)
    assert found.schema.field("name").type == pa.string()
    assert leftovers(place) == []


@WAYS
def test_overwriting_replaces_rows_and_keeps_the_version_before(people: DataFrame, tmp_path: Path, way: str) -> None:
    place = tmp_path / "t"
    save(people, place, way, "overwrite")
    save(people.limit(7).select("name", "id"), place, way, "overwrite")
    found = lance.dataset(str(place))
    assert found.count_rows() == 7
    assert found.schema.names == ["name", "id"]
    assert lance.dataset(str(place), version=1).count_rows() == 100
    assert leftovers(place) == []


@WAYS
def test_columns_are_matched_by_name_and_missing_ones_are_null(people: DataFrame, tmp_path: Path, way: str) -> None:
    place = tmp_path / "t"
    save(people, place, way)
    save(people.selectExpr("upper(name) NAME", "id + 1000 id"), place, way)
    found = lance.dataset(str(place)).to_table(filter="id >= 1000")
    assert found["name"].to_pylist()[0].startswith("NAME")
    assert found["vector"].null_count == 100


@WAYS
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("id, name, vector, 1 extra", "the table has no column 'extra'"),
        ("id, name, ID + 1 as Id, vector", "two columns are given for 'id'"),
        ("name id, 'x' name", "string cannot become int64"),
        ("id, array(1.0D) vector", "double cannot become float"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_before_a_byte_is_written(
    spark: SparkSession, people: DataFrame, tmp_path: Path, way: str, change: str, said: str
) -> None:
    place = tmp_path / "t"
    save(people, place, way)
    before = sorted(entry.path for entry in open_store(str(place)).list_from(""))
    spark.conf.set("spark.sql.caseSensitive", "true" if "Id" in change else "false")
    try:
        with pytest.raises((PySparkException, InvalidInput, ValueError)) as caught:
            save(people.selectExpr(*[part.strip().replace("ID", "id") for part in change.split(",")]), place, way)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert said in str(caught.value)
    assert sorted(entry.path for entry in open_store(str(place)).list_from("")) == before


@WAYS
def test_a_value_that_does_not_fit_ends_the_write_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    place = str(tmp_path / "t")
    lance.write_dataset(pa.table({"u": pa.array([1], pa.uint8())}), place)
    with pytest.raises(PySparkException) as caught:
        save(spark.range(300).selectExpr("id u").repartition(4), place, way)
    assert "column=u" in str(caught.value)
    assert lance.dataset(place).count_rows() == 1
    assert [path for path in leftovers(place) if path.startswith("data/")] == []


@WAYS
def test_options_say_how_large_files_are_and_what_a_new_table_is_like(
    people: DataFrame, tmp_path: Path, way: str
) -> None:
    place = tmp_path / "t"
    options = {"data_storage_version": "2.1", "enable_stable_row_ids": True, "max_rows_per_file": 10}
    save(people.coalesce(1), place, way, "append", commit_message="first", **options)
    found = lance.dataset(str(place))
    assert found.data_storage_version == "2.1"
    assert found.has_stable_row_ids
    assert [fragment.count_rows() for fragment in found.get_fragments()] == [10] * 10
    transaction = open_snapshot(open_store(str(place))).transaction()
    assert transaction is not None
    assert transaction.message == "first"
    assert len(transaction.properties["lancelet.job"]) == 32


@WAYS
def test_files_are_as_large_as_they_may_be(spark: SparkSession, tmp_path: Path, way: str) -> None:
    place = tmp_path / "t"
    # Numbers that no encoding makes smaller: 24 MB.
    frame = spark.range(0, 3_000_000, 1, 1).selectExpr("xxhash64(id) h")
    most = 5_000_000
    save(frame, place, way, "append", max_bytes_per_file=most if way == "helper" else "5MB")
    sizes = [path.stat().st_size for path in (place / "data").iterdir()]
    assert 2 <= len(sizes) <= 5
    # A file ends with the page that fills it, as it does for pylance.
    assert max(sizes) < most + 9 * 2**20
    assert lance.dataset(str(place)).count_rows() == 3_000_000


@WAYS
def test_a_branch_is_written_to(people: DataFrame, tmp_path: Path, way: str) -> None:
    place = str(tmp_path / "t")
    made = lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), place)
    made.create_branch("side", 1)
    save(people.select("id"), place, way, branch="side")
    assert lance.dataset(place).count_rows() == 1
    assert lance.dataset(place).checkout_version(("side", None)).count_rows() == 101


@WAYS
def test_an_empty_frame_makes_a_table_and_empties_one(people: DataFrame, tmp_path: Path, way: str) -> None:
    place = tmp_path / "t"
    save(people.where("id < 0"), place, way)
    assert lance.dataset(str(place)).count_rows() == 0
    save(people, place, way)
    save(people.where("id < 0"), place, way, "overwrite")
    assert lance.dataset(str(place)).count_rows() == 0
    assert lance.dataset(str(place)).schema.names == ["id", "name", "vector"]


def test_rows_that_are_none_add_no_version(people: DataFrame, tmp_path: Path) -> None:
    save(people, tmp_path / "t", "sink")
    save(people.where("id < 0"), tmp_path / "t", "sink")
    assert lance.dataset(str(tmp_path / "t")).version == 1
    assert leftovers(tmp_path / "t") == []


def test_vectors_stay_vectors_and_small_numbers_small(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema(
        {"v": pa.list_(pa.float32(), 3), "h": pa.list_(pa.float16(), 3), "u": pa.uint16(), "t": pa.time32("s")}
    )
    rows = pa.table({"v": [[1.0, 2.0, 3.0]], "h": [[1.0, 2.0, 3.0]], "u": [7], "t": [5]}, schema=schema)
    lance.write_dataset(rows, str(tmp_path / "t"))
    frame = spark.read.format("lance").load(str(tmp_path / "t"))
    # A copy, rows put behind, and rows replaced by a query that tells of arrays and numbers alone.
    frame.write.format("lance").mode("append").save(str(tmp_path / "copy"))
    frame.selectExpr("v", "h", "u", "t").write.format("lance").mode("append").save(str(tmp_path / "t"))
    spark.sql("select array(1f, 2f, 3f) v, array(1f, 2f, 3f) h, 7 u, 5L t").write.format("lance").mode(
        "overwrite"
    ).save(str(tmp_path / "t"))
    for name, version, count in (("copy", 1, 1), ("t", 2, 2), ("t", 3, 1)):
        found = lance.dataset(str(tmp_path / name), version=version)
        assert found.schema.types == schema.types
        assert found.to_table().to_pylist() == rows.to_pylist() * count


def test_blobs_are_copied_by_their_references_and_written_as_bytes(spark: SparkSession, tmp_path: Path) -> None:
    values = [bytes([at]) * 5000 if at % 3 else None for at in range(30)]
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table(
        [pa.array(range(30)), pa.array(values, pa.large_binary())],
        schema=pa.schema([pa.field("id", pa.int64()), field]),
    )
    for version in ("2.1", "2.2"):
        source = str(tmp_path / f"source {version}")
        lance.write_dataset(rows, source, data_storage_version="2.1")
        frame = read(spark, source)
        target = str(tmp_path / f"target {version}")
        write(frame, target, mode="append", data_storage_version=version)
        # References go into a table that is there, too, and so do bytes.
        write(frame, target, mode="append")
        write(fetch_blobs(frame), target, mode="append")
        found = read(spark, target)
        assert found.schema["blob"].dataType.simpleString() == "struct<uri:string,position:bigint,size:bigint>"
        got = sorted((row.id, None if row.blob is None else bytes(row.blob)) for row in fetch_blobs(found).collect())
        assert got == sorted([(at, value) for at, value in enumerate(values)] * 3, key=lambda pair: pair[0])


@pytest.mark.parametrize("mode", ["error", "errorifexists", "create", "ignore"])
def test_the_helper_knows_all_modes_of_spark(people: DataFrame, tmp_path: Path, mode: Any) -> None:
    figures = write(people, tmp_path / "t", mode=mode)
    assert figures is not None
    assert (figures.version, figures.num_rows) == (1, 100)
    assert figures.num_files >= 1
    assert figures.num_bytes > 400
    if mode == "ignore":
        assert write(people, tmp_path / "t", mode=mode) is None
    else:
        with pytest.raises(AlreadyExists, match="there is a table already"):
            write(people, tmp_path / "t", mode=mode)
    assert lance.dataset(str(tmp_path / "t")).version == 1
    with pytest.raises(InvalidInput, match="mode is 'upsert'"):
        write(people, tmp_path / "t", mode="upsert")  # type: ignore[arg-type]


def test_a_temporary_view_is_read_and_inserted_into(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    place = tmp_path / "t"
    save(people.select("id", "name"), place, "sink")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW people_view USING lance OPTIONS (path '{place}')")
    spark.sql("INSERT INTO people_view VALUES (1000, 'new')")
    assert spark.sql("SELECT name FROM people_view WHERE id = 5").collect()[0].name == "name 5"
    assert lance.dataset(str(place)).count_rows() == 101
    spark.sql("INSERT OVERWRITE people_view SELECT id, name FROM people_view WHERE id < 10")
    assert lance.dataset(str(place)).count_rows() == 10


def test_a_table_of_the_catalog_keeps_its_address(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    place = tmp_path / "t"
    save(people.select("id", "name"), place, "sink")
    save(people.select("id", "name"), tmp_path / "u", "sink")
    with spark_tables(spark, "kept", "other", "first"):
        spark.sql(f"CREATE TABLE kept USING lance LOCATION '{place}'")
        spark.sql(f"CREATE TABLE other USING lance OPTIONS (path '{tmp_path / 'u'}')")
        assert spark.table("kept").count() == 100
        spark.sql(f"INSERT INTO kept WITH (path = '{place}') VALUES (1000, 'new')")
        assert spark.sql("SELECT count(*) n FROM kept WHERE id = 1000").collect()[0].n == 1
        spark.sql(f"INSERT OVERWRITE kept WITH (path = '{place}') SELECT id, name FROM range(3) JOIN (SELECT 'x' name)")
        assert spark.table("kept").count() == 3
        assert spark.sql("SELECT count(*) n FROM kept WITH (version = 1)").collect()[0].n == 100
        spark.sql(f"CREATE TABLE first USING lance OPTIONS (path '{place}', version 1)")
        assert spark.table("first").count() == 100
        address = json.loads(spark.table("kept").schema["id"].metadata["lance.table"])
        assert address == {"path": str(place)}


def spark_tables(spark: SparkSession, *names: str) -> Any:
    """Drops tables of the catalog when the block ends."""
    from contextlib import contextmanager

    @contextmanager
    def held() -> Any:
        try:
            yield
        finally:
            for name in names:
                spark.sql(f"DROP TABLE IF EXISTS {name}")

    return held()


def test_an_insert_that_does_not_name_its_table_is_refused_and_changes_nothing(
    spark: SparkSession, people: DataFrame, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        save(people.select("id", "name"), tmp_path / name, "sink")
    with spark_tables(spark, "table_a", "table_b", "table_c"):
        for name in ("a", "b"):
            spark.sql(f"CREATE TABLE table_{name} USING lance LOCATION '{tmp_path / name}'")
        for statement in (
            # Spark hands over the columns of the source here: with their address this would replace the source.
            "INSERT OVERWRITE table_a SELECT * FROM table_b",
            "INSERT INTO table_a SELECT * FROM table_b",
            "INSERT INTO table_a VALUES (1, 'x')",
            "CREATE TABLE table_c USING lance AS SELECT * FROM table_a",
        ):
            with pytest.raises(PySparkException, match="Spark does not tell which table is meant"):
                spark.sql(statement)
        # The catalog would give the new table the address of the old one.
        with pytest.raises(PySparkException, match="carries the address of the table"):
            spark.table("table_a").write.format("lance").option("path", str(tmp_path / "c")).saveAsTable("table_c")
        write(spark.table("table_a"), tmp_path / "c", mode="append")
        spark.table("table_a").write.format("lance").mode("append").option("copy", "true").save(str(tmp_path / "c"))
        assert lance.dataset(str(tmp_path / "c")).count_rows() == 200
    for name in ("a", "b"):
        assert lance.dataset(str(tmp_path / name)).version == 1


def test_a_table_of_the_catalog_needs_a_place_with_a_table(spark: SparkSession, tmp_path: Path) -> None:
    with spark_tables(spark, "nowhere", "listed"):
        with pytest.raises(AnalysisException, match="there is no path to a table"):
            spark.sql("CREATE TABLE nowhere USING lance")
        with pytest.raises(AnalysisException, match="there is no table"):
            spark.sql(f"CREATE TABLE nowhere USING lance LOCATION '{tmp_path / 'none'}'")
        spark.sql(f"CREATE TABLE listed (id bigint) USING lance LOCATION '{tmp_path / 'none'}'")
        with pytest.raises(AnalysisException, match="without columns"):
            spark.table("listed").collect()


def test_concurrent_appends_all_arrive(spark: SparkSession, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    place = tmp_path / "t"

    def one(number: int) -> None:
        # Spark looks for sources in the session of the thread, which this makes so; range alone does not.
        frame = spark.createDataFrame([(at,) for at in range(number * 10, number * 10 + 10)], "id bigint")
        frame.write.format("lance").mode("append").save(str(place))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(one, range(6)))
    assert sorted(lance.dataset(str(place)).to_table()["id"].to_pylist()) == list(range(60))
    assert leftovers(place) == []
