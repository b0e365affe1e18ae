"""Columns put in by tasks of Spark: by expressions and functions, carried on after failures, rebased over others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import lancelet
from lancelet.errors import InvalidInput
from lancelet.ops.backfill.checkpoint import BACKFILLS
from lancelet.spark.table import LanceTable
from lancelet.storage import open_store

# What workers run is sent to them by value where it is defined inside a function; functions of this file are not there.


def rows(first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    words = pa.array([f"w{n % 7}" for n in numbers.tolist()], mask=numbers % 5 == 0)
    return pa.table({"id": numbers, "word": words, "at": pa.StructArray.from_arrays([pa.array(numbers * 2)], ["x"])})


def make(place: Path, **options: Any) -> LanceTable:
    lance.write_dataset(rows(0, 500), str(place), max_rows_per_file=60, **options).delete("id % 11 = 3 OR id < 65")
    return LanceTable.forPath(SparkSession.active(), place)


def notes(place: Path) -> list[str]:
    """What checkpoints still tell of backfills."""
    return [entry.path for entry in open_store(str(place)).list_from(BACKFILLS)]


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_expressions_give_the_columns_that_pylance_gives(spark: SparkSession, tmp_path: Path, version: str) -> None:
    table = make(tmp_path / "t", data_storage_version=version)
    expressions = {"sum": "id + at.x", "upper": "upper(word)", "one": "1"}
    figures = table.addColumns(expressions, message="wider")
    expected = lance.write_dataset(rows(0, 500), str(tmp_path / "theirs"), max_rows_per_file=60)
    expected.delete("id % 11 = 3 OR id < 65")
    expected.add_columns(expressions)
    found = lance.dataset(str(tmp_path / "t"))
    found.validate()
    assert found.schema == expected.schema
    assert found.to_table() == expected.to_table()
    assert (figures.version, figures.names, figures.num_attempts) == (3, ("sum", "upper", "one"), 1)
    assert (figures.num_fragments, figures.num_fragments_kept, figures.num_files) == (8, 0, 8)
    assert table.history(1).first().message == "wider"
    assert table.toDF().columns == ["id", "word", "at", "sum", "upper", "one"]
    assert notes(tmp_path / "t") == []


def test_functions_and_expressions_give_columns_in_the_order_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    seen = spark.sparkContext.accumulator(0)

    def length(batch: pa.RecordBatch) -> object:
        seen.add(batch.num_rows)
        assert batch.schema.names == ["word", "_rowid"]
        assert batch.num_rows <= 25
        return [None if word is None else len(word) * 1.5 for word in batch["word"].to_pylist()]

    given = {"a": length, "b": "id % 3", "c": lambda batch: batch["_rowid"], "d": lambda batch: np.ones(len(batch))}
    figures = table.addColumns(given, readColumns=["word", "_rowid"], batchSize=25)
    found = table.dataset().to_table(with_row_id=True)
    assert found.schema.names == ["id", "word", "at", "a", "b", "c", "d", "_rowid"]
    assert found["a"].to_pylist() == [None if word is None else 3.0 for word in found["word"].to_pylist()]
    assert found["b"].to_pylist() == [number % 3 for number in found["id"].to_pylist()]
    assert found["c"] == found["_rowid"]
    assert pc.sum(found["d"]).as_py() == found.num_rows
    assert figures.num_files == 8
    # The first row once more, on which the function was tried; its word is null, so that more of them were.
    assert found["word"][0].as_py() is None
    assert seen.value == found.num_rows + 1 + 25


def test_a_function_makes_several_columns(spark: SparkSession, tmp_path: Path) -> None:
    @lancelet.batch_udf()
    def both(batch: pa.RecordBatch) -> pd.DataFrame:
        numbers = batch["id"].to_numpy()
        return pd.DataFrame({"half": numbers / 2, "text": numbers.astype(str)})

    table = make(tmp_path / "t")
    assert table.addColumns(both).names == ("half", "text")
    found = lance.dataset(str(tmp_path / "t")).to_table()
    assert found["text"].to_pylist() == [str(number) for number in found["id"].to_pylist()]
    schema = pa.schema({"v": pa.list_(pa.float32(), 2)})

    def vectors(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = np.repeat(batch["id"].to_numpy(), 2).astype(np.float32)
        return pa.record_batch([pa.FixedSizeListArray.from_arrays(values, 2)], schema=schema)

    table.addColumns(vectors, outputSchema=schema)
    assert table.dataset().to_table()["v"].to_pylist()[0] == [65.0, 65.0]


def test_work_that_failed_is_carried_on_fragment_by_fragment(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", enable_stable_row_ids=True)
    marker = str(tmp_path / "broken")
    Path(marker).touch()

    def fragile(batch: pa.RecordBatch) -> pa.Array:
        # A file of one machine decides, so that the same code fails once and succeeds later.
        import os

        if os.path.exists(marker) and pc.max(batch["id"]).as_py() > 420:
            raise RuntimeError("out of luck")
        return pc.multiply(batch["id"], 3)

    files = len(list((tmp_path / "t/data").iterdir()))
    with pytest.raises(Exception, match="out of luck"):
        table.addColumns({"triple": fragile})
    assert table.version == 2
    kept = len(notes(tmp_path / "t"))
    assert kept > 0
    Path(marker).unlink()
    # Another program, after others have appended and deleted.
    lance.write_dataset(rows(500, 30), str(tmp_path / "t"), mode="append")
    lance.dataset(str(tmp_path / "t")).delete("id BETWEEN 100 AND 110")
    again = LanceTable.forPath(spark, tmp_path / "t")
    figures = again.addColumns({"triple": fragile})
    assert figures.num_fragments_kept == kept
    assert figures.num_fragments == 9
    found = lance.dataset(str(tmp_path / "t")).to_table()
    assert found["triple"].to_pylist() == [3 * number for number in found["id"].to_pylist()]
    assert notes(tmp_path / "t") == []
    assert len(list((tmp_path / "t/data").iterdir())) == files + 1 + figures.num_files


@pytest.mark.parametrize("other", ["append", "compact", "delete"])
def test_what_others_commit_meanwhile_is_kept_and_filled(spark: SparkSession, tmp_path: Path, other: str) -> None:
    table = make(tmp_path / "t")
    place, marker = str(tmp_path / "t"), str(tmp_path / "meanwhile")
    more = rows(500, 40)

    def meanwhile(batch: pa.RecordBatch) -> pa.Array:
        import lance

        try:
            open(marker, "x").close()
        except FileExistsError:
            return pc.add(batch["id"], 1)
        if other == "append":
            lance.write_dataset(more, place, mode="append")
        elif other == "compact":
            lance.dataset(place).optimize.compact_files(target_rows_per_fragment=200)
        else:
            lance.dataset(place).delete("id > 490")
        return pc.add(batch["id"], 1)

    figures = table.addColumns({"next": meanwhile}, outputSchema=pa.schema({"next": pa.int64()}))
    found = lance.dataset(place)
    found.validate()
    rows_now = found.to_table()
    assert rows_now["next"].to_pylist() == [number + 1 for number in rows_now["id"].to_pylist()]
    expected = {"append": 395 + 40, "compact": 395, "delete": 395 - 8}
    assert rows_now.num_rows == pytest.approx(expected[other], abs=6)
    assert figures.version == found.version
    # Every file is one of the table's versions: nothing is left of values that were of no use.
    named = {
        Path(file.path).name
        for version in found.versions()
        for fragment in lance.dataset(place, version=version["version"]).get_fragments()
        for file in fragment.data_files()
    }
    assert {item.name for item in (tmp_path / "t/data").iterdir()} == named


def test_columns_that_cannot_be_are_refused_before_anything_is_computed(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    for given in ({}, {"a": 5}, {"id": "1"}, {"a": "nothing + 1"}):
        with pytest.raises(InvalidInput):
            table.addColumns(given)
    with pytest.raises(TypeError, match="dict of expressions"):
        table.addColumns(5)
    with pytest.raises(InvalidInput, match="functions are given for"):
        table.addColumns({"a": len}, outputSchema=pa.schema({"b": pa.int8()}))
    with pytest.raises(InvalidInput, match="nothing but nulls"):
        table.addColumns({"a": lambda batch: [None] * len(batch)})
    with pytest.raises(InvalidInput, match="only the newest version"):
        LanceTable.forPath(spark, tmp_path / "t", version=1).addColumns({"a": "1"})
    empty = LanceTable.create(spark, tmp_path / "empty", "x long")
    with pytest.raises(InvalidInput, match="outputSchema"):
        empty.addColumns({"y": lambda batch: batch["x"]})
    empty.addColumns({"y": lambda batch: batch["x"]}, outputSchema=pa.schema({"y": pa.int64()}))
    assert empty.toDF().columns == ["x", "y"]
    with pytest.raises(Exception, match="rows for"):
        table.addColumns({"a": lambda batch: batch["id"][:1]})
    assert table.version == 2
