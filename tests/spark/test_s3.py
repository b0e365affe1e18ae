"""Tables in an object store: options of the store reach the tasks, and commits whose answers are lost are made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lancelet.ops.journal import ATTEMPTS
from lancelet.spark import read, write
from lancelet.spark.table import LanceTable
from lancelet.storage import open_store
from lancelet.table.versions import list_versions
from lancelet.testing.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from lancelet.testing.servers import ServedStore

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "x": pa.array(range(100), pa.int64())})


@pytest.mark.parametrize("prefix", ["", "storage."])
def test_options_of_the_store_are_given_to_the_source_and_the_sink(
    spark: SparkSession, s3_server: ServedStore, prefix: str
) -> None:
    place = s3_server.place()
    options = {prefix + name: value for name, value in s3_server.storage_options.items()}
    frame = spark.range(0, 50, 1, 2)
    frame.write.format("lance").mode("append").options(**options).save(place)
    write(frame, place, mode="append", storage_options=s3_server.storage_options)
    assert lance.dataset(place, storage_options=s3_server.storage_options).count_rows() == 100
    source = spark.read.format("lance").options(**options).load(place)
    helper = read(spark, place, storage_options=s3_server.storage_options)
    for found in (source, helper):
        assert sorted(row.id for row in found.collect()) == sorted([*range(50), *range(50)])
    # Credentials are nowhere to be seen.
    assert "test-secret" not in source.schema.json()
    with pytest.raises(PySparkException, match=r"did you mean .*access_key_id"):
        spark.read.format("lance").options(**{**options, "acess_key_id": "x"}).load(place).collect()


@pytest.fixture(scope="module")
def proxy(s3_server: ServedStore) -> Iterator[FaultyProxy]:
    """A proxy before the server, which fails what it is told to fail."""
    with faulty_proxy(s3_server.endpoint) as running:
        yield running


def losing(times: int, fault: Fault) -> Callable[[str, str], Fault]:
    """Decides that so many attempts to put a manifest fail, and nothing else."""
    left = [fault] * times

    def decide(verb: str, path: str) -> Fault:
        return left.pop() if verb == "PUT" and "_versions/" in path and left else "none"

    return decide


def by_sink(frame: DataFrame, place: str, options: Mapping[str, str]) -> None:
    frame.write.format("lance").mode("append").options(**options).save(place)


def by_helper(frame: DataFrame, place: str, options: Mapping[str, str]) -> None:
    write(frame, place, mode="append", storage_options=options)


def by_merge(frame: DataFrame, place: str, options: Mapping[str, str]) -> None:
    table = LanceTable.forPath(frame.sparkSession, place, storage_options=options)
    assert table.merge(frame, "target.id = source.id").whenNotMatchedInsertAll().execute().num_inserted_rows == 20


def by_update(frame: DataFrame, place: str, options: Mapping[str, str]) -> None:
    table = LanceTable.forPath(frame.sparkSession, place, storage_options=options)
    assert table.update("id < 20", {"id": "id + 100"}).num_updated_rows == 20


def by_delete(frame: DataFrame, place: str, options: Mapping[str, str]) -> None:
    table = LanceTable.forPath(frame.sparkSession, place, storage_options=options)
    assert table.delete("id < 20").num_deleted_rows == 20


def by_index(frame: DataFrame, place: str, options: Mapping[str, str]) -> None:
    table = LanceTable.forPath(frame.sparkSession, place, storage_options=options)
    assert table.createIndex("id").num_rows == 100


@pytest.mark.parametrize("fault", ["answer lost", "refused"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (by_sink, range(120)),
        (by_helper, range(120)),
        (by_merge, range(120)),
        (by_update, range(20, 120)),
        (by_delete, range(20, 100)),
        (by_index, range(100)),
    ],
)
def test_a_commit_that_fails_or_whose_answer_is_lost_is_made_once(
    spark: SparkSession,
    s3_server: ServedStore,
    proxy: FaultyProxy,
    change: Callable[[DataFrame, str, Mapping[str, str]], None],
    expected: range,
    fault: Fault,
) -> None:
    place = s3_server.place()
    lance.write_dataset(ROWS, place, storage_options=s3_server.storage_options)
    proxy.decide = losing(2, fault)
    frame = spark.range(100, 120).selectExpr("id", "id x")
    change(frame, place, {**s3_server.storage_options, "endpoint": proxy.endpoint})
    proxy.decide = None
    found = lance.dataset(place, storage_options=s3_server.storage_options)
    assert found.version == 2
    assert sorted(found.to_table()["id"].to_pylist()) == list(expected)
    store = open_store(place, storage_options=s3_server.storage_options)
    assert [entry.path for entry in store.list_from(ATTEMPTS)] == []
    fragments = [item for version in list_versions(store) for item in version.manifest.fragments]
    named = {f"data/{file.path}" for item in fragments for file in item.files}
    assert {entry.path for entry in store.list_from("data/")} == named
