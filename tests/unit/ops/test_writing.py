"""Writing from any source: what rows may come as, where files go, and what a failure or a race leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from lancelet.errors import AlreadyExists, InvalidInput, LanceletError
from lancelet.events import Event, subscribe
from lancelet.format import operations as op
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import BasePath
from lancelet.format.names import DATA, NamingScheme
from lancelet.format.transaction import Transaction
from lancelet.ops.attempts import Attempts
from lancelet.ops.committing import CommitOptions
from lancelet.ops.data_files import Limits
from lancelet.ops.prefetch import ahead_of
from lancelet.ops.sources import reader_of
from lancelet.ops.write import Mode
from lancelet.ops.writing import WriteOptions, write, write_uncommitted
from lancelet.query.scan import scan
from lancelet.storage import open_store
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table.cleanup_policy import auto_cleanup_config
from lancelet.table.commit import commit
from lancelet.table.outcome import committed
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions

TABLE = pa.table({"x": pa.array([1, 2, 3]), "y": pa.array(["a", None, "c"])})


def new_store() -> MemoryStore:
    return MemoryStore(f"memory://{uuid4()}")


def rows_of(store: Store) -> pa.Table:
    return scan(open_snapshot(store)).read_all()


def data_files(store: Store) -> list[str]:
    return sorted(entry.path for entry in store.list_from(f"{DATA}/"))


class Stream:
    """What other libraries export."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return TABLE.to_reader().__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Callable[[], object]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(1),
    "dataset": lambda: pads.dataset(TABLE),
    "scanner": lambda: pads.dataset(TABLE).scanner(),
    "stream": Stream,
    "pandas": lambda: TABLE.to_pandas(),
    "columns": lambda: TABLE.to_pydict(),
    "rows": lambda: TABLE.to_pylist(),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_rows_are_written_whatever_they_come_as(source: Callable[[], object]) -> None:
    store = new_store()
    write(store, source())
    write(store, source(), "append")
    assert rows_of(store).to_pydict() == pa.concat_tables([TABLE, TABLE]).to_pydict()


@pytest.mark.parametrize(
    "pieces", [lambda: iter(TABLE.to_batches()), lambda: [TABLE], lambda: (one for one in [TABLE])]
)
def test_batches_of_an_iterable_take_the_schema_given(pieces: Callable[[], object]) -> None:
    wanted = pa.schema({"y": pa.large_string(), "x": pa.int16()})
    assert reader_of(pieces(), wanted).read_all() == TABLE.select(["y", "x"]).cast(wanted)
    with pytest.raises(InvalidInput, match="schema of an iterable"):
        reader_of(pieces())


def test_batches_that_cannot_take_the_schema_are_refused() -> None:
    with pytest.raises(InvalidInput, match="does not fit the schema"):
        reader_of(iter(TABLE.to_batches()), pa.schema({"x": pa.int64(), "y": pa.int8()})).read_all()
    with pytest.raises(InvalidInput, match="holds a int"):
        reader_of(iter([1]), TABLE.schema).read_all()
    with pytest.raises(InvalidInput, match="cannot be read from a int"):
        reader_of(7)


def test_the_labels_of_a_data_frame_come_along_unless_they_are_plain() -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=[5, 6])
    assert reader_of(frame).schema.names == ["x", "__index_level_0__"]
    assert reader_of(frame.reset_index(drop=True)).schema.names == ["x"]


def test_writing_makes_a_table_only_where_there_is_none() -> None:
    store = new_store()
    assert write(store, TABLE, Mode.APPEND).version == 1
    files = data_files(store)
    with pytest.raises(AlreadyExists, match="there is a table already"):
        write(store, TABLE)
    assert data_files(store) == files
    assert write(store, TABLE.select(["x"]), "overwrite").version == 2
    assert rows_of(store).to_pydict() == {"x": [1, 2, 3]}
    with pytest.raises(ValueError, match="sideways"):
        write(store, TABLE, "sideways")


def test_what_is_said_with_a_write_stands_in_its_transaction() -> None:
    store = new_store()
    options = WriteOptions(
        commit=CommitOptions(message="made", properties={"job": "1"}),
        config=auto_cleanup_config(3),
        naming=NamingScheme.V1,
        stable_row_ids=True,
        data_storage_version="2.1",
    )
    write(store, TABLE, options=options)
    snapshot = open_snapshot(store)
    transaction = snapshot.transaction()
    assert transaction is not None
    assert dict(transaction.properties) == {"job": "1", "__lance_commit_message": "made"}
    assert snapshot.path == "_versions/1.manifest"
    assert snapshot.manifest.config["lance.auto_cleanup.interval"] == "3"
    assert snapshot.manifest.next_row_id == 3
    assert snapshot.manifest.data_format is not None
    assert snapshot.manifest.data_format.version == "2.1"


def test_a_write_cleans_up_where_the_table_asks_for_it() -> None:
    store = new_store()
    write(store, TABLE, options=WriteOptions(config=auto_cleanup_config(4, retain_versions=2)))
    for _ in range(4):
        write(store, TABLE, "append")
    assert sorted(found.version for found in list_versions(store)) == [3, 4, 5]


def test_a_cleanup_that_fails_does_not_undo_the_write() -> None:
    store = new_store()
    write(store, TABLE, options=WriteOptions(config={"lance.auto_cleanup.interval": "none"}))
    seen: list[Event] = []
    with subscribe(seen.append):
        assert write(store, TABLE, "append").version == 2
    assert [event.facts["version"] for event in seen if event.name == "cleanup.failed"] == [2]


def test_files_of_an_append_may_be_of_another_version() -> None:
    store = new_store()
    write(store, TABLE, options=WriteOptions(data_storage_version="2.0"))
    write(store, TABLE, "append", options=WriteOptions(data_storage_version="2.2"))
    manifest = open_snapshot(store).manifest
    assert [item.files[0].version.label for item in manifest.fragments] == ["2.0", "2.2"]
    assert rows_of(store).num_rows == 6
    with pytest.raises(LanceletError):
        write(store, TABLE, "append", options=WriteOptions(data_storage_version="legacy"))


def test_files_go_in_turn_to_the_base_paths_that_are_named() -> None:
    name = uuid4()
    store = open_store(f"memory://{name}")
    bases = (BasePath(0, f"memory://{name}-a", name="plain"), BasePath(0, f"memory://{name}-b", True, "table"))
    one_row = Limits(rows_per_file=1)
    write(store, TABLE, options=WriteOptions(bases=bases, target_bases=["table", "plain"], limits=one_row))
    write(store, TABLE, "append", options=WriteOptions(target_all_bases=True, limits=one_row))
    write(store, TABLE, "append", options=WriteOptions(target_bases=[store.uri, f"memory://{name}-a"], limits=one_row))
    write(store, TABLE, "append", options=WriteOptions(target_all_bases=False, limits=one_row))
    manifest = open_snapshot(store).manifest
    found = [item.files[0].base_id for item in manifest.fragments]
    assert found == [2, 1, 2, None, 1, 2, None, 1, None, 1, 2, 1]
    assert rows_of(store).num_rows == 12
    assert len(data_files(store)) == 3
    assert len(list(open_store(f"memory://{name}-a").list_from(""))) == 5
    for wrong in (WriteOptions(target_bases=["none"]), WriteOptions(target_bases=[], target_all_bases=None)):
        with pytest.raises(InvalidInput, match="base"):
            write(store, TABLE, "append", options=wrong)
    with pytest.raises(InvalidInput, match="both"):
        write(store, TABLE, "append", options=WriteOptions(target_bases=["plain"], target_all_bases=True))


def test_progress_is_told_of_each_fragment() -> None:
    told: list[str] = []

    class Progress:
        def begin(self, fragment: Fragment) -> None:
            told.append(f"begin {len(fragment.files)}")

        def complete(self, fragment: Fragment) -> None:
            told.append(f"complete {fragment.physical_rows}")

    write(new_store(), TABLE, options=WriteOptions(limits=Limits(rows_per_file=2)), progress=Progress())
    assert told == ["begin 0", "complete 2", "begin 0", "complete 1"]


def test_what_is_written_without_a_commit_is_seen_only_after_one() -> None:
    store = new_store()
    write(store, TABLE)
    transaction, fragments = write_uncommitted(store, TABLE.select(["y"]))
    assert isinstance(transaction.operation, op.Append)
    assert fragments[0].files[0].fields == (1,)
    assert rows_of(store).num_rows == 3
    committed(commit(open_snapshot(store), transaction))
    assert rows_of(store)["x"].to_pylist() == [1, 2, 3, None, None, None]


def test_a_source_that_fails_in_the_middle_leaves_no_file() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(5):
            yield TABLE.to_batches()[0]
        raise RuntimeError("the source broke")

    store = new_store()
    with pytest.raises(RuntimeError, match="the source broke"):
        write(store, batches(), schema=TABLE.schema, options=WriteOptions(limits=Limits(rows_per_file=4)))
    assert data_files(store) == []


def test_of_many_writers_that_make_a_table_one_succeeds_and_the_others_leave_nothing() -> None:
    store = new_store()
    results: list[object] = []
    start = threading.Barrier(6)

    def make() -> None:
        start.wait()
        try:
            results.append(write(store, TABLE).version)
        except AlreadyExists:
            results.append(None)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results, key=str) == [1, None, None, None, None, None]
    assert len(data_files(store)) == 1


@pytest.mark.parametrize("fits", [True, False])
def test_an_append_is_committed_anew_after_a_change_of_the_schema_that_it_still_fits(fits: bool) -> None:
    store = new_store()
    write(store, TABLE)
    snapshot = open_snapshot(store)
    fields = snapshot.schema.fields if fits else snapshot.schema.fields[:1]
    schema = type(snapshot.schema)(fields, snapshot.schema.metadata)
    committed(commit(snapshot, Transaction(1, op.Project(schema, preserves_nullability=False))))
    if fits:
        assert write(snapshot, TABLE, "append", options=WriteOptions(attempts=Attempts(2))).version == 3
        assert len(data_files(store)) == 2
    else:
        with pytest.raises(InvalidInput, match="has no column 'y'"):
            write(snapshot, TABLE, "append")
        assert len(data_files(store)) == 1


def test_reading_ahead_hands_out_the_same_batches_and_stops_when_nobody_wants_more() -> None:
    made: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(100):
            made.append(number)
            yield pa.record_batch({"x": [number] * 10})

    piece = pa.record_batch({"x": [1] * 10}).nbytes * 3
    assert [batch["x"][0].as_py() for batch in ahead_of(batches(), piece=piece)] == list(range(100))
    made.clear()
    ahead = ahead_of(batches(), piece=piece)
    next(ahead)
    ahead.close()  # type: ignore[attr-defined]
    assert len(made) <= 6
