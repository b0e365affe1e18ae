"""Writes as Spark runs them, without Spark: attempts that die or run twice, commits whose answers are lost, races."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from lancelet.errors import AlreadyExists, Conflict, InvalidInput, Storage
from lancelet.ops.dead_attempts import COMMIT_GRACE, dead_attempts, remove_dead
from lancelet.ops.journal import ATTEMPTS, JobJournal
from lancelet.ops.write import Mode, create
from lancelet.query.scan import scan
from lancelet.spark.address import Address
from lancelet.spark.options import WriteOptions
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.spark.write_commit import LEASE, commit_writing, discard_writing
from lancelet.spark.writing import Writing, plan_writing, write_rows
from lancelet.storage import open_store
from lancelet.storage.store import Store
from lancelet.table.cleanup import plan_cleanup, run_cleanup
from lancelet.table.cleanup_policy import CleanupPolicy
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind


def schema_of(*columns: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns])


SCHEMA = schema_of(("id", LongType()), ("name", StringType()))


def batches(*numbers: int, schema: StructType = SCHEMA) -> Iterator[pa.RecordBatch]:
    for number in numbers:
        yield pa.RecordBatch.from_pydict({"id": [number], "name": [f"n{number}"]}, schema=spark_arrow(schema))


def begin(place: Path, mode: Mode = Mode.APPEND, options: WriteOptions | None = None) -> Writing:
    """A write that is planned and written down, as the driver does it."""
    writing = plan_writing(Address(uri=str(place)), SCHEMA, options or WriteOptions(), mode=mode)
    writing = pickle.loads(pickle.dumps(writing))
    JobJournal(open_store(str(place)), "test", lease=LEASE, job=writing.job).beat()
    return writing


def whole(place: Path, *numbers: int, mode: Mode = Mode.APPEND) -> None:
    """A write from beginning to end."""
    writing = begin(place, mode)
    commit_writing(writing, [write_rows(writing, batches(*numbers))])


def ids(place: Path) -> list[int]:
    return sorted(scan(open_snapshot(open_store(str(place)))).read_all()["id"].to_pylist())


def data_files(place: Path) -> set[str]:
    return {entry.path for entry in open_store(str(place)).list_from("data/")}


def named_files(place: Path) -> set[str]:
    """The data files that any version names."""
    store = open_store(str(place))
    return {
        f"data/{file.path}"
        for version in list_versions(store)
        for item in version.manifest.fragments
        for file in item.files
    }


def journal_of(place: Path) -> list[str]:
    return [entry.path for entry in open_store(str(place)).list_from(ATTEMPTS)]


def test_rows_of_tasks_come_together_in_one_commit(tmp_path: Path) -> None:
    writing = begin(tmp_path)
    assert not writing.exists
    written = [pickle.loads(pickle.dumps(write_rows(writing, batches(*numbers)))) for numbers in ((1, 2), (), (3,))]
    assert [item.rows for item in written] == [2, 0, 1]
    assert data_files(tmp_path) - named_files(tmp_path) == data_files(tmp_path)
    assert commit_writing(writing, written).version == 1
    assert ids(tmp_path) == [1, 2, 3]
    assert journal_of(tmp_path) == []
    whole(tmp_path, 4)
    assert ids(tmp_path) == [1, 2, 3, 4]
    whole(tmp_path, 5, mode=Mode.OVERWRITE)
    assert ids(tmp_path) == [5]
    assert data_files(tmp_path) == named_files(tmp_path)


def test_the_transaction_names_the_job(tmp_path: Path) -> None:
    writing = begin(tmp_path, options=WriteOptions(commit_message="nightly"))
    commit_writing(writing, [write_rows(writing, batches(1))])
    transaction = open_snapshot(open_store(str(tmp_path))).transaction()
    assert transaction is not None
    assert transaction.properties["lancelet.job"] == writing.job
    assert transaction.message == "nightly"


def test_an_attempt_that_ran_besides_the_winner_leaves_no_row_and_no_file(tmp_path: Path) -> None:
    writing = begin(tmp_path)
    write_rows(writing, batches(1, 2))
    winner = write_rows(writing, batches(1, 2))
    commit_writing(writing, [winner])
    assert ids(tmp_path) == [1, 2]
    assert data_files(tmp_path) == named_files(tmp_path)


@pytest.mark.parametrize("verb", ["writer", "write", "close", "put"])
@pytest.mark.parametrize("after", [False, True])
def test_an_attempt_that_was_killed_leaves_no_row_and_no_file(tmp_path: Path, verb: str, after: bool) -> None:
    writing = begin(tmp_path)
    inner = open_store(str(tmp_path))
    store = FaultyStore(inner, [Fault(kind=Kind.KILL, verb=verb, after=after)])
    with pytest.raises(Killed):
        write_rows(writing, batches(1, 2), store=store)
    assert store.injected
    commit_writing(writing, [write_rows(writing, batches(1, 2))])
    assert ids(tmp_path) == [1, 2]
    assert data_files(tmp_path) == named_files(tmp_path)


def test_an_attempt_that_begins_after_the_end_writes_nothing(tmp_path: Path) -> None:
    writing = begin(tmp_path)
    commit_writing(writing, [write_rows(writing, batches(1))])
    before = data_files(tmp_path)
    with pytest.raises(Conflict, match="is over or was given up"):
        write_rows(writing, batches(1))
    assert data_files(tmp_path) == before


def test_a_write_that_failed_is_removed_and_its_late_attempts_with_the_next_cleanup(tmp_path: Path) -> None:
    whole(tmp_path, 1)
    writing = begin(tmp_path)
    write_rows(writing, batches(2))
    discard_writing(writing)
    discard_writing(writing)
    assert ids(tmp_path) == [1]
    assert data_files(tmp_path) == named_files(tmp_path)
    with pytest.raises(Conflict):
        write_rows(writing, batches(2))
    # The attempts' entries stay for a while, so that what a task wrote late is found.
    store = open_store(str(tmp_path))
    remove_dead(store, dead_attempts(store, time.time() + 2 * LEASE))
    assert data_files(tmp_path) == named_files(tmp_path)


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("kind", [Kind.LOST_ANSWER, Kind.ERROR, Kind.TIMEOUT])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_commit_whose_answer_was_lost_is_looked_up_and_never_made_twice(
    tmp_path: Path, exists: bool, kind: Kind, times: int
) -> None:
    if exists:
        whole(tmp_path, 1)
    writing = begin(tmp_path)
    written = write_rows(writing, batches(2))
    fault = Fault(kind=kind, verb="put_if_absent", path="_versions/*", times=times)
    store = FaultyStore(open_store(str(tmp_path)), [fault])
    made = commit_writing(writing, [written], store=store)
    assert store.injected
    assert made.version == (2 if exists else 1)
    assert ids(tmp_path) == ([1, 2] if exists else [2])
    assert journal_of(tmp_path) == []
    assert data_files(tmp_path) == named_files(tmp_path)


@pytest.mark.parametrize("kind", [Kind.LOST_ANSWER, Kind.ERROR])
def test_a_store_that_says_nothing_more_leaves_the_files_until_somebody_has_looked(tmp_path: Path, kind: Kind) -> None:
    whole(tmp_path, 1)
    writing = begin(tmp_path)
    written = write_rows(writing, batches(2))
    faults = [
        Fault(kind=kind, verb="put_if_absent", path="_versions/*", times=None),
        Fault(kind=Kind.ERROR, verb="read_all", path="_versions/*", at=2, times=None),
    ]
    store = FaultyStore(open_store(str(tmp_path)), faults)
    with pytest.raises(Storage):
        commit_writing(writing, [written], store=store, looks=2)
    discard_writing(writing)
    assert written.fragments[0].files[0].path in {path.partition("/")[2] for path in data_files(tmp_path)}
    there = ids(tmp_path)
    assert there == ([1, 2] if kind is Kind.LOST_ANSWER else [1])
    # A cleanup looks, and removes them only where no version names them.
    plain = open_store(str(tmp_path))
    remove_dead(plain, dead_attempts(plain, time.time() + 2 * LEASE + COMMIT_GRACE))
    assert ids(tmp_path) == there
    assert data_files(tmp_path) == named_files(tmp_path)


def test_of_two_jobs_that_make_a_table_the_second_puts_its_rows_behind(tmp_path: Path) -> None:
    first, second = begin(tmp_path), begin(tmp_path)
    written = write_rows(second, batches(2))
    commit_writing(first, [write_rows(first, batches(1))])
    assert commit_writing(second, [written]).version == 2
    assert ids(tmp_path) == [1, 2]


def test_of_two_jobs_that_make_a_table_the_second_replaces_it_if_it_was_to(tmp_path: Path) -> None:
    first, second = begin(tmp_path), begin(tmp_path, Mode.OVERWRITE)
    written = write_rows(second, batches(2))
    commit_writing(first, [write_rows(first, batches(1))])
    commit_writing(second, [written])
    assert ids(tmp_path) == [2]


def test_a_table_that_must_be_new_is_not_made_where_another_made_one(tmp_path: Path) -> None:
    first, second = begin(tmp_path), begin(tmp_path, Mode.CREATE)
    written = write_rows(second, batches(2))
    commit_writing(first, [write_rows(first, batches(1))])
    with pytest.raises(AlreadyExists, match="meanwhile"):
        commit_writing(second, [written])
    assert ids(tmp_path) == [1]
    assert data_files(tmp_path) == named_files(tmp_path)
    with pytest.raises(AlreadyExists):
        begin(tmp_path, Mode.CREATE)


def test_a_table_of_other_columns_that_appeared_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    writing = begin(tmp_path)
    written = write_rows(writing, batches(1))
    create(open_store(str(tmp_path)), pa.table({"other": [1]}))
    with pytest.raises((AlreadyExists, InvalidInput)):
        commit_writing(writing, [written])
    assert data_files(tmp_path) == named_files(tmp_path)


def test_rows_are_put_behind_what_others_committed_since_the_plan(tmp_path: Path) -> None:
    whole(tmp_path, 1)
    writing = begin(tmp_path)
    written = write_rows(writing, batches(3))
    whole(tmp_path, 2)
    assert commit_writing(writing, [written]).version == 3
    assert ids(tmp_path) == [1, 2, 3]


def test_a_version_that_was_cleaned_up_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    whole(tmp_path, 1)
    writing = begin(tmp_path)
    written = write_rows(writing, batches(9))
    whole(tmp_path, 2)
    newest = open_snapshot(open_store(str(tmp_path)))
    run_cleanup(plan_cleanup(newest, CleanupPolicy(older_than=timedelta(0))))
    with pytest.raises(Conflict, match="was cleaned up meanwhile") as caught:
        commit_writing(writing, [written])
    assert caught.value.retryable
    assert ids(tmp_path) == [1, 2]


def test_columns_that_do_not_fit_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    whole(tmp_path, 1)
    before = sorted(entry.path for entry in open_store(str(tmp_path)).list_from(""))
    for schema, said in (
        (schema_of(("id", LongType()), ("other", StringType())), "no column 'other'"),
        (schema_of(("id", StringType())), "string cannot become int64"),
        (schema_of(("id", LongType()), ("ID", LongType())), "two columns are given for 'id'"),
    ):
        with pytest.raises((InvalidInput, NotImplementedError), match=said):
            plan_writing(Address(uri=str(tmp_path)), schema, WriteOptions())
    assert sorted(entry.path for entry in open_store(str(tmp_path)).list_from("")) == before


def test_files_are_told_before_they_are_begun(tmp_path: Path) -> None:
    writing = begin(tmp_path)
    store: Store = FaultyStore(open_store(str(tmp_path)), [Fault(kind=Kind.KILL, verb="writer")])
    with pytest.raises(Killed):
        write_rows(writing, batches(1), store=store)
    told = [path for path in journal_of(tmp_path) if "-" in path]
    assert len(told) == 1
    assert data_files(tmp_path) == set()


def test_figures_say_what_was_written(tmp_path: Path) -> None:
    writing = begin(tmp_path, options=WriteOptions(max_rows_per_file=2))
    written = write_rows(writing, batches(*range(5)))
    assert (written.rows, len(written.fragments)) == (5, 3)
    assert written.size == sum(open_store(str(tmp_path)).size(path) for path in data_files(tmp_path))
