"""Every type that a table can hold goes into Spark's JVM and comes back as the same values."""

from __future__ import annotations

import zlib
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.types as pat
import pytest
from pyspark.sql import SparkSession

from lancelet.errors import LanceletError
from lancelet.spark import fetch_blobs, open_blob, read
from lancelet.spark.casts import cast_batch, cast_for
from lancelet.spark.choices import Choices
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.spark.types import to_spark
from lancelet.testing.arrays import late_types, leaf_types, make_array, nested_types

KINDS = [*leaf_types(), *nested_types(), *late_types()]


def whole(array: pa.Array) -> pa.Array:
    """Nanoseconds without digits that Spark has no room for."""
    if getattr(array.type, "unit", None) != "ns":
        return array
    counts = array.cast(pa.int64())
    return pa.array([None if n is None else n // 1000 * 1000 for n in counts.to_pylist()], pa.int64()).cast(array.type)


def every_type(rows: int) -> pa.Table:
    columns = {}
    for place, kind in enumerate(KINDS):
        draw = np.random.default_rng(zlib.crc32(str(kind).encode()))
        columns[f"c{place}"] = whole(make_array(draw, kind, rows, nulls="few", shape="small"))
    return pa.table(columns)


@pytest.mark.parametrize("way", ["source", "helper"])
def test_all_types_read_as_they_were_written(spark: SparkSession, tmp_path: Path, way: str) -> None:
    table = every_type(60)
    lance.write_dataset(table, str(tmp_path / "t"), data_storage_version="2.2")
    place = str(tmp_path / "t")
    frame = spark.read.format("lance").load(place) if way == "source" else read(spark, place)
    expected = to_spark(table.schema)
    assert [field.dataType for field in frame.schema] == [field.dataType for field in expected]
    assert [field.metadata for field in frame.schema] == [field.metadata for field in expected]
    found = frame.toArrow()
    for place_, name in enumerate(table.schema.names):
        field = table.schema.field(name)
        cast = cast_for(field, spark_arrow(expected).field(name))
        column = table.column(name).combine_chunks()
        wanted = column if cast is None else cast(column)
        assert repr(found.column(name).to_pylist()) == repr(wanted.to_pylist()), KINDS[place_]


@pytest.mark.parametrize(
    "choices", [Choices(time="time", nanoseconds="long"), Choices(time="string", nanoseconds="truncate")]
)
def test_types_that_spark_lacks_are_what_was_chosen(spark: SparkSession, tmp_path: Path, choices: Choices) -> None:
    kinds = [kind for kind in leaf_types() if pat.is_time(kind) or getattr(kind, "unit", None) == "ns"]
    columns = {
        f"c{at}": make_array(np.random.default_rng(at), kind, 50, shape="small") for at, kind in enumerate(kinds)
    }
    table = pa.table(columns)
    if choices.time == "time":
        table = pa.table(
            {
                name: whole(column.combine_chunks()) if pat.is_time(column.type) else column
                for name, column in zip(table.schema.names, table.columns, strict=True)
            }
        )
    lance.write_dataset(table, str(tmp_path / "t"))
    spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        options = {"time_type": choices.time, "nanoseconds": choices.nanoseconds}
        frame = spark.read.format("lance").options(**options).load(str(tmp_path / "t"))
        expected = to_spark(table.schema, choices)
        assert [field.dataType for field in frame.schema] == [field.dataType for field in expected]
        found = frame.toArrow()
        target = spark_arrow(expected)
        casts = [
            cast_for(one, other, truncate=choices.nanoseconds == "truncate")
            for one, other in zip(table.schema, target, strict=True)
        ]
        wanted = cast_batch(table.combine_chunks().to_batches()[0], casts, target)
        assert repr(found.to_pylist()) == repr(pa.Table.from_batches([wanted]).to_pylist())
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")


def test_digits_that_would_be_lost_end_the_read_with_the_columns_name(spark: SparkSession, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"when": pa.array([1001], pa.int64()).cast(pa.timestamp("ns"))}), str(tmp_path / "t"))
    with pytest.raises(Exception, match=r"would lose data.*column=when"):
        spark.read.format("lance").load(str(tmp_path / "t")).collect()


def test_variants_are_variants_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    encoded = spark.sql("select parse_json('{\"a\": [1, null]}') v").toArrow()
    kind = pa.struct(
        [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, metadata={"variant": "true"})]
    )
    made = pa.table({"v": encoded.column("v").cast(kind)}) if encoded.column("v").type != kind else encoded
    lance.write_dataset(made, str(tmp_path / "t"))
    frame = spark.read.format("lance").load(str(tmp_path / "t"))
    assert frame.schema["v"].dataType.typeName() == "variant"
    assert frame.selectExpr("to_json(v) j").collect()[0].j == '{"a":[1,null]}'


def blob_table(place: Path, version: str) -> list[bytes | None]:
    values = [bytes([at]) * (at * 100) if at % 5 else None for at in range(40)]
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table(
        [pa.array(range(40)), pa.array(values, pa.large_binary())],
        schema=pa.schema([pa.field("id", pa.int64()), field]),
    )
    if version == "2.2":
        from lance import blob_array, blob_field

        table = pa.table(
            [table["id"], blob_array(values)], schema=pa.schema([table.schema.field("id"), blob_field("blob")])
        )
    made = lance.write_dataset(table, str(place), max_rows_per_file=15, data_storage_version=version)
    made.delete("id = 7")
    return values


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("way", ["source", "helper"])
def test_blobs_are_references_that_can_be_fetched(spark: SparkSession, tmp_path: Path, version: str, way: str) -> None:
    values = blob_table(tmp_path / "t", version)
    load = {
        "source": lambda: spark.read.format("lance").load(str(tmp_path / "t")),
        "helper": lambda: read(spark, str(tmp_path / "t")),
    }[way]
    frame = load()
    assert frame.columns == ["id", "blob"]
    assert frame.schema["blob"].dataType.simpleString() == "struct<uri:string,position:bigint,size:bigint>"
    assert frame.where("blob is not null").selectExpr("sum(blob.size)").collect()[0][0] == sum(
        len(value) for at, value in enumerate(values) if value is not None and at != 7
    )
    wanted = {at: value for at, value in enumerate(values) if at != 7}
    assert {row.id: None if row.blob is None else bytes(row.blob) for row in fetch_blobs(frame).collect()} == wanted
    one = frame.where("id = 11").collect()[0].blob
    with open_blob(one) as file:
        assert file.read() == values[11]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_are_bytes_where_that_is_asked(spark: SparkSession, tmp_path: Path, version: str) -> None:
    values = blob_table(tmp_path / "t", version)
    frame = spark.read.format("lance").option("blobs", "bytes").option("columns", "blob,id").load(str(tmp_path / "t"))
    found = {row.id: None if row.blob is None else bytes(row.blob) for row in frame.collect()}
    assert found == {at: value for at, value in enumerate(values) if at != 7}


def test_only_references_are_fetched(spark: SparkSession, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "t"))
    frame = read(spark, str(tmp_path / "t"))
    with pytest.raises(LanceletError, match="no column holds references"):
        fetch_blobs(frame)
    with pytest.raises(LanceletError, match="column 'id' holds no references"):
        fetch_blobs(frame, "id")
