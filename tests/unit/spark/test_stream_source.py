"""Streams of a table, asked as Spark asks them: what they tell, how much at once, and where they cannot go on."""

from __future__ import annotations

import json
import pickle
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

import lancelet
from lancelet.errors import InvalidInput, NotFound, Unsupported
from lancelet.spark.stream_source import LanceStreamReader
from pyspark_lance import DefaultSource

BOTH = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])


def stream(uri: str, **options: object) -> LanceStreamReader:
    source = DefaultSource({"path": uri, **{name: str(value) for name, value in options.items()}})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, LanceStreamReader)
    assert isinstance(reader, SupportsTriggerAvailableNow)
    return reader


class Run:
    """A query's way through a stream, with the checkpoint that Spark would keep."""

    def __init__(self, reader: LanceStreamReader, at: dict[str, object] | None = None) -> None:
        self.reader = reader
        self.at = at if at is not None else self._kept(reader.initialOffset())

    @staticmethod
    def _kept(offset: dict[str, object]) -> dict[str, object]:
        kept: dict[str, object] = json.loads(json.dumps(offset))
        return kept

    def batch(self, limit: object = None) -> list[dict[str, Any]] | None:
        """The rows of the next batch, None where there is none."""
        end = self._kept(self.reader.latestOffset(self.at, limit or self.reader.getDefaultReadLimit()))  # type: ignore[arg-type]
        if end == self.at:
            return None
        task = pickle.loads(pickle.dumps(self.reader))
        found = [
            row
            for partition in self.reader.partitions(self.at, end)
            for batch in task.read(pickle.loads(pickle.dumps(partition)))
            for row in batch.to_pylist()
        ]
        self.at = end
        return found

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        while (found := self.batch()) is not None:
            yield found


def make(place: Path, count: int = 10, *, stable: bool = False, **options: Any) -> str:
    rows = pa.table({"id": list(range(count)), "name": [f"name {at}" for at in range(count)]})
    lance.write_dataset(rows, str(place), enable_stable_row_ids=stable, **options)
    return str(place)


def append(uri: str, start: int, stop: int) -> None:
    rows = pa.table({"id": list(range(start, stop)), "name": [f"name {at}" for at in range(start, stop)]})
    lance.write_dataset(rows, uri, mode="append")


def history(uri: str, *, stable: bool) -> None:
    """Versions of all kinds; those that move rows among new ones only where ids are stable."""
    append(uri, 10, 15)
    lance.dataset(uri).delete("id < 2")
    lance.dataset(uri).optimize.compact_files()
    append(uri, 15, 20)
    if stable:
        lance.dataset(uri).update({"name": "upper(name)"}, where="id % 5 = 0")
        new = pa.table({"id": [3, 16, 100], "name": ["three", "sixteen", "hundred"]})
        merge = lance.dataset(uri).merge_insert("id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(new)
        lance.dataset(uri).delete("name = 'three'")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    lance.write_dataset(pa.table({"id": [1, 2], "name": ["a", "b"]}), uri, mode="overwrite")
    append(uri, 50, 53)


def replayed(rows: Counter[str], changes: list[dict[str, Any]]) -> Counter[str]:
    found = Counter(rows)
    for change in changes:
        values = repr((change["id"], change["name"]))
        found[values] += 1 if change["_change_type"] in ("insert", "update_postimage") else -1
    assert min(found.values(), default=0) >= 0
    return Counter({key: count for key, count in found.items() if count})


@BOTH
@pytest.mark.parametrize("start", [1, 3, None])
def test_changes_replayed_make_every_version(tmp_path: Path, stable: bool, start: int | None) -> None:
    uri = make(tmp_path / "t", stable=stable, max_rows_per_file=4)
    # Without a start the rows of the table come first, as they are when the stream begins.
    begun = Run(stream(uri, stream="changes", max_versions_per_batch=1)).at if start is None else None
    history(uri, stable=stable)
    options = {} if start is None else {"starting_version": start}
    run = Run(stream(uri, stream="changes", max_versions_per_batch=1, **options), begun)
    before = lance.dataset(uri, version=2).to_table().to_pylist() if start == 3 else []
    rows = Counter(repr((row["id"], row["name"])) for row in before)
    seen = []
    for changes in run.batches():
        rows = replayed(rows, changes)
        version = int(str(run.at["version"]))
        seen.append(version)
        expected = lance.dataset(uri, version=version).to_table().to_pylist()
        assert rows == Counter(repr((row["id"], row["name"])) for row in expected)
        assert {row["_commit_version"] for row in changes} <= {version}
        assert all(row["_commit_timestamp"] is not None for row in changes)
    assert seen == list(range(start or 1, lance.dataset(uri).version + 1))


@BOTH
def test_every_row_is_told_once_when_it_is_inserted(tmp_path: Path, stable: bool) -> None:
    uri = make(tmp_path / "t", stable=stable, max_rows_per_file=4)
    run = Run(stream(uri))
    history(uri, stable=stable)
    told = [row["id"] for rows in run.batches() for row in rows]
    merged = [100] if stable else []
    assert sorted(told) == sorted([*range(20), *merged, 1, 2, 50, 51, 52])


def test_batches_are_cut_at_fragments_by_rows_and_bytes(tmp_path: Path) -> None:
    uri = make(tmp_path / "t", 20, max_rows_per_file=4)
    assert [len(rows) for rows in Run(stream(uri, max_rows_per_batch=9)).batches()] == [8, 8, 4]
    assert [len(rows) for rows in Run(stream(uri, max_rows_per_batch=1)).batches()] == [4] * 5
    assert [len(rows) for rows in Run(stream(uri, max_bytes_per_batch="1B")).batches()] == [4] * 5
    for at in range(3):
        append(uri, 100 + at * 10, 110 + at * 10)
    run = Run(stream(uri, max_rows_per_batch=12, max_versions_per_batch=2))
    assert [len(rows) for rows in run.batches()] == [12, 8, 10, 10, 10]
    run = Run(stream(uri, max_rows_per_batch=1, starting_version=1))
    # A trigger that asks for everything gets it.
    assert len(run.batch(ReadAllAvailable()) or ()) == 50


def test_a_restart_in_the_midst_of_a_version_goes_on_there(tmp_path: Path) -> None:
    uri = make(tmp_path / "t", 20, max_rows_per_file=4)
    first = Run(stream(uri, max_rows_per_batch=8))
    told = [row["id"] for row in first.batch() or ()]
    append(uri, 20, 22)
    lance.dataset(uri).optimize.compact_files()
    again = Run(stream(uri), first.at)
    told += [row["id"] for rows in again.batches() for row in rows]
    assert told == list(range(22))


def test_what_is_there_now_is_all_that_is_available_now(tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    reader = stream(uri, max_versions_per_batch=1)
    append(uri, 10, 12)
    reader.prepareForTriggerAvailableNow()
    append(uri, 12, 14)
    run = Run(reader, {"version": 0})
    assert [len(rows) for rows in run.batches()] == [10, 2]
    assert reader.reportLatestOffset()["version"] == 3


def test_a_stream_begins_where_it_is_said(tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    append(uri, 10, 12)
    # pylance rounds to microseconds, maybe to one after the commit.
    moment = lancelet.dataset(uri).versions()[1]["timestamp"].astimezone().isoformat()
    for options in ({"starting_version": 2}, {"startingVersion": 2}, {"starting_timestamp": moment}):
        assert [row["id"] for rows in Run(stream(uri, **options)).batches() for row in rows] == [10, 11]
    latest = Run(stream(uri, starting_version="latest"))
    assert list(latest.batches()) == []
    append(uri, 12, 13)
    assert [row["id"] for rows in latest.batches() for row in rows] == [12]
    with pytest.raises(InvalidInput, match="starting_version is 9, and the newest version of the table is 3"):
        Run(stream(uri, starting_version=9))


def test_columns_are_chosen_and_known_facts_of_rows_among_them(tmp_path: Path) -> None:
    uri = make(tmp_path / "t", 3, stable=True)
    lance.dataset(uri).update({"name": "'x'"}, where="id = 1")
    run = Run(stream(uri, stream="changes", columns="_rowid, name", starting_version=1))
    found = [(row["_rowid"], row["name"], row["_change_type"]) for rows in run.batches() for row in rows]
    assert sorted(found[:3]) == [(0, "name 0", "insert"), (1, "name 1", "insert"), (2, "name 2", "insert")]
    assert found[3:] == [(1, "name 1", "update_preimage"), (1, "x", "update_postimage")]


@BOTH
def test_a_version_that_was_cleaned_up_ends_the_stream(tmp_path: Path, stable: bool) -> None:
    uri = make(tmp_path / "t", stable=stable)
    run = Run(stream(uri))
    assert len(run.batch() or ()) == 10
    for at in range(3):
        append(uri, 10 + at, 11 + at)
    lance.dataset(uri).cleanup_old_versions(timedelta(0))
    with pytest.raises(NotFound, match=r"version [12] was cleaned up before the stream had told") as caught:
        run.batch()
    assert "new checkpointLocation" in str(caught.value)


def test_a_table_made_anew_ends_the_stream(tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    run = Run(stream(uri))
    run.batch()
    shutil.rmtree(uri)
    with pytest.raises(NotFound, match="there is no table any more"):
        run.batch()
    make(tmp_path / "t")
    again = Run(stream(uri), run.at)
    with pytest.raises(NotFound, match="the table was made anew meanwhile"):
        again.batch()
    append(uri, 10, 11)
    with pytest.raises(NotFound, match="the table was made anew meanwhile"):
        run.batch()


@pytest.mark.parametrize("change", ["added", "dropped", "overwritten"])
def test_other_columns_end_the_stream_until_it_is_made_anew(tmp_path: Path, change: str) -> None:
    uri = make(tmp_path / "t")
    run = Run(stream(uri, stream="changes"))
    chosen = Run(stream(uri, columns="id"))
    assert len(run.batch() or ()) == 10
    assert len(chosen.batch() or ()) == 10
    append(uri, 10, 11)
    if change == "added":
        lance.dataset(uri).add_columns({"twice": "id * 2"})
    elif change == "dropped":
        lance.dataset(uri).drop_columns(["name"])
    else:
        lance.write_dataset(pa.table({"id": [1], "name": [b"binary"]}), uri, mode="overwrite")
    with pytest.raises(InvalidInput, match=r"version 3 has other columns than the stream: .*(name|twice)"):
        run.batch()
    # A stream of columns that are what they were does not mind.
    assert len(chosen.batch() or ()) == (2 if change == "overwritten" else 1)
    again = Run(stream(uri, stream="changes"), run.at)
    if change == "overwritten":
        with pytest.raises(InvalidInput, match=r"version 2 has other columns than the stream: .*name"):
            again.batch()
        return
    found = again.batch() or []
    assert found[0]["id"] == 10
    assert found[0].get("twice", "none") == (None if change == "added" else "none")


def test_rows_moved_without_stable_ids_end_the_stream_with_what_is_missing(tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    run = Run(stream(uri))
    run.batch()
    lance.dataset(uri).update({"name": "'x'"}, where="id = 1")
    with pytest.raises(Unsupported, match="enable_stable_row_ids"):
        run.batch()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": 1}, "a stream has no option version.*starting_version"),
        ({"filter": "id > 1"}, "a stream has no option filter.*where"),
        ({"limit": 3}, "a stream has no option limit"),
        ({"stream": "all"}, "option stream is 'all'"),
        ({"max_rows_per_batch": 0}, "max_rows_per_batch is 0"),
        ({"starting_version": 1, "starting_timestamp": "2026-01-01"}, "both given"),
    ],
    ids=str,
)
def test_options_that_a_stream_does_not_have_are_refused(tmp_path: Path, options: dict[str, object], said: str) -> None:
    uri = make(tmp_path / "t")
    with pytest.raises(InvalidInput, match=said):
        stream(uri, **options)


def test_the_checkpoint_of_another_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="none of this source"):
        Run(stream(make(tmp_path / "t")), {"logOffset": 3}).batch()


def test_branches_are_followed(tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    branch = lance.dataset(uri).create_branch("side", 1)
    run = Run(stream(uri, branch="side"))
    assert len(run.batch() or ()) == 10
    lance.write_dataset(pa.table({"id": [77], "name": ["side"]}), branch, mode="append")
    append(uri, 10, 12)
    assert [row["id"] for row in run.batch() or ()] == [77]


@pytest.mark.parametrize("blobs", ["reference", "bytes"])
def test_blobs_are_told_before_and_after_a_change(tmp_path: Path, blobs: str) -> None:
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string()), field])
    values = [bytes([at]) * 3000 if at != 1 else None for at in range(4)]
    rows = pa.table([[0, 1, 2, 3], ["a", "b", "c", "d"], values], schema=schema)
    uri = str(tmp_path / "t")
    lance.write_dataset(rows, uri, enable_stable_row_ids=True, data_storage_version="2.1")
    made = lance.dataset(uri)
    made.update({"name": "'new'"}, where="id = 2")
    made.delete("id < 2")
    found = [
        row for rows in Run(stream(uri, stream="changes", starting_version=1, blobs=blobs)).batches() for row in rows
    ]
    told = []
    for row in found:
        blob = row["blob"]
        if blobs == "reference" and blob is not None:
            with open(blob["uri"], "rb") as file:
                file.seek(blob["position"])
                blob = file.read(blob["size"])
        told.append((row["_change_type"], row["id"], row["name"], blob))
    assert told[:4] == [("insert", *row) for row in zip([0, 1, 2, 3], "abcd", values, strict=True)]
    changed = [("update_preimage", 2, "c", values[2]), ("update_postimage", 2, "new", values[2])]
    assert sorted(told[4:6]) == sorted(changed)
    assert sorted(told[6:], key=lambda row: row[1]) == [("delete", 0, "a", values[0]), ("delete", 1, "b", None)]


def test_a_table_of_the_catalog_is_followed_where_its_first_column_says(tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    # What Spark keeps of CREATE TABLE ... USING lance LOCATION, and all that it tells a stream of the table.
    schema = DefaultSource({"path": uri, "provider": "lance"}).schema()
    reader = DefaultSource({}).streamReader(schema)
    assert isinstance(reader, LanceStreamReader)
    assert [row["id"] for rows in Run(reader).batches() for row in rows] == list(range(10))
