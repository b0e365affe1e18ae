"""Batches of streams, written as Spark has them written: once each, whatever dies between the steps."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.types import LongType, StructField, StructType

from lancelet.errors import Conflict, InvalidInput, NotFound, Unsupported
from lancelet.ops.journal import ATTEMPTS
from lancelet.ops.numbered import Batch, commit_once, is_in
from lancelet.spark.stream_sink import LanceStreamWriter, StreamWritten
from lancelet.storage import open_store
from lancelet.table.versions import list_versions
from pyspark_lance import DefaultSource

SCHEMA = StructType([StructField("id", LongType())])


def planned(place: Path, overwrite: bool = False, **options: str) -> LanceStreamWriter:
    """The writer that comes to the tasks."""
    source = DefaultSource({"path": str(place), "checkpointlocation": "/checkpoints/a", **options})
    made = pickle.loads(pickle.dumps(source.streamWriter(schema=SCHEMA, overwrite=overwrite)))
    assert isinstance(made, LanceStreamWriter)
    return made


def written(writer: LanceStreamWriter, *tasks: list[int], query: str | None = "query") -> list[StreamWritten]:
    """What its tasks tell; outside of Spark nobody says which query they are of."""
    found = []
    for ids in tasks:
        batch = pa.record_batch({"id": pa.array(ids, pa.int64())})
        message = writer.write(iter([batch] if ids else []))
        found.append(pickle.loads(pickle.dumps(StreamWritten(message.written, message.writing, query))))
    return found


def commit(place: Path, messages: list[StreamWritten], batch: int) -> None:
    """As the driver does, with a writer that knows of nothing."""
    source = DefaultSource({"path": str(place), "checkpointlocation": "/checkpoints/a"})
    source.streamWriter(schema=SCHEMA, overwrite=False).commit(list(messages), batch)


def ids(place: Path) -> list[int]:
    found: list[int] = lance.dataset(str(place)).to_table()["id"].to_pylist()
    return sorted(found)


def orphans(place: Path) -> list[str]:
    """Data files that no version names."""
    store = open_store(str(place))
    fragments = [item for version in list_versions(store) for item in version.manifest.fragments]
    named = {f"data/{file.path}" for item in fragments for file in item.files}
    return [entry.path for entry in store.list_from("data/") if entry.path not in named]


def jobs(place: Path) -> list[str]:
    names = [entry.path.rpartition("/")[2] for entry in open_store(str(place)).list_from(f"{ATTEMPTS}/")]
    return [name for name in names if "-" not in name and name.endswith(".json")]


@pytest.mark.parametrize("exists", [True, False])
def test_a_batch_that_is_tried_again_is_in_once(tmp_path: Path, exists: bool) -> None:
    place = tmp_path / "t"
    if exists:
        lance.write_dataset(pa.table({"id": pa.array([100], pa.int64())}), str(place))
    before = [100] if exists else []
    commit(place, written(planned(place), [1, 2], [3]), 0)
    for _ in range(2):
        commit(place, written(planned(place), [1, 2], [3]), 0)
    commit(place, written(planned(place), [4]), 1)
    assert ids(place) == [1, 2, 3, 4, *before]
    transaction = lance.dataset(str(place)).read_transaction(lance.dataset(str(place)).version)
    assert transaction is not None
    assert lance.dataset(str(place)).version == 2 + exists
    assert orphans(place) == jobs(place) == []


def test_batches_of_other_queries_are_others(tmp_path: Path) -> None:
    commit(tmp_path / "t", written(planned(tmp_path / "t"), [1]), 0)
    commit(tmp_path / "t", written(planned(tmp_path / "t"), [1], query="another"), 0)
    assert ids(tmp_path / "t") == [1, 1]


def test_a_run_that_died_before_its_commit_leaves_nothing_and_cannot_commit_any_more(tmp_path: Path) -> None:
    place = tmp_path / "t"
    commit(place, written(planned(place), [1]), 0)
    dead = written(planned(place), [2], [3])
    assert len(orphans(place)) == 2
    commit(place, written(planned(place), [2, 3]), 1)
    assert orphans(place) == []
    # It was not dead, but asleep: the batch is in.
    commit(place, dead, 1)
    # And it may wake up with one that is not.
    late = written(planned(place), [4])
    planned(place)
    with pytest.raises(Conflict):
        commit(place, late, 2)
    assert ids(place) == [1, 2, 3]
    assert orphans(place) == []


def test_two_runs_that_commit_the_same_batch_at_once_make_one_version(tmp_path: Path) -> None:
    place = tmp_path / "t"
    lance.write_dataset(pa.table({"id": pa.array([100], pa.int64())}), str(place))
    one = written(planned(place, checkpointlocation="/checkpoints/b"), [1])
    other = written(planned(place), [1])
    mark = Batch("query", 0).path
    commit(place, one, 0)
    # The second has looked before the first committed.
    open_store(str(place)).delete([mark])
    commit(place, other, 0)
    assert ids(place) == [1, 100]
    assert orphans(place) == []


def test_a_batch_whose_commit_was_cut_off_is_looked_up(tmp_path: Path) -> None:
    place = tmp_path / "t"
    commit(place, written(planned(place), [1]), 0)
    store, batch = open_store(str(place)), Batch("query", 1)
    before = lance.dataset(str(place)).version
    commit(place, written(planned(place), [2]), 1)
    # The process died between the commit and the mark that says that it is in.
    mark = f'{{"query": "query", "done": 0, "tried": 1, "version": {before}}}'.encode()
    store.put(batch.path, mark)
    lance.write_dataset(pa.table({"id": pa.array([50], pa.int64())}), str(place), mode="append")
    commit(place, written(planned(place), [2]), 1)
    assert ids(place) == [1, 2, 50]
    assert orphans(place) == []
    # Where versions since are gone nobody can tell.

    store.put(batch.path, mark)
    lance.dataset(str(place)).cleanup_old_versions(timedelta(0))
    with pytest.raises(NotFound, match="nobody can tell whether batch 1"):
        is_in(store, batch)


def test_other_versions_may_be_cleaned_up_between_two_batches(tmp_path: Path) -> None:

    place = tmp_path / "t"
    commit(place, written(planned(place), [1]), 0)
    for at in (10, 11, 12):
        lance.write_dataset(pa.table({"id": pa.array([at], pa.int64())}), str(place), mode="append")
    lance.dataset(str(place)).cleanup_old_versions(timedelta(0))
    commit(place, written(planned(place), [1]), 0)
    commit(place, written(planned(place), [2]), 1)
    assert ids(place) == [1, 2, 10, 11, 12]


def test_batches_replace_the_rows_where_all_are_told_each_time(tmp_path: Path) -> None:
    place = tmp_path / "t"
    for number, rows in enumerate(([1], [1, 2], [], [3])):
        commit(place, written(planned(place, overwrite=True), rows), number)
        assert ids(place) == rows


def test_batches_without_rows_add_no_version(tmp_path: Path) -> None:
    place = tmp_path / "t"
    commit(place, written(planned(place), [1]), 0)
    commit(place, written(planned(place), [], []), 1)
    commit(place, [], 2)
    assert lance.dataset(str(place)).version == 1
    assert jobs(place) == []


def test_a_batch_that_is_given_up_leaves_no_files(tmp_path: Path) -> None:
    place = tmp_path / "t"
    commit(place, written(planned(place), [1]), 0)
    writer = planned(place)
    messages = written(writer, [2])
    writer.abort([None, *messages], 1)
    assert orphans(place) == []
    assert ids(place) == [1]


def test_a_query_that_nobody_names_is_refused(tmp_path: Path) -> None:
    messages = written(planned(tmp_path / "t"), [1], query=None)
    with pytest.raises(Unsupported, match="which query they are of"):
        commit(tmp_path / "t", messages, 0)


def test_what_does_not_fit_is_refused_before_a_task_starts(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"other": [1]}), str(tmp_path / "t"))
    with pytest.raises(InvalidInput, match="the table has no column 'id'"):
        planned(tmp_path / "t")
    assert jobs(tmp_path / "t") == []


def test_batches_have_names_and_numbers() -> None:
    store = open_store("memory://numbers")
    assert not is_in(store, Batch("q", 0))
    with pytest.raises(InvalidInput):
        Batch("", 0)
    with pytest.raises(RuntimeError, match="broken"):
        commit_once(store, Batch("q", 0), lambda: (_ for _ in ()).throw(RuntimeError("broken")))
    assert commit_once(store, Batch("q", 0), lambda: 7) == 7
    assert commit_once(store, Batch("q", 0), lambda: 8) is None


def test_rows_are_taken_where_spark_has_no_batches_to_hand_over(tmp_path: Path) -> None:
    message = planned(tmp_path / "t").write(iter([Row(id=at) for at in range(5000)]))
    commit(tmp_path / "t", [StreamWritten(message.written, message.writing, "query")], 0)
    assert ids(tmp_path / "t") == list(range(5000))
