"""Options as Spark gives them: any spelling of their names, checked values, and storage options kept apart."""

from __future__ import annotations

import pytest

from lancelet.errors import InvalidInput
from lancelet.spark.options import read_options, stream_options, write_options


@pytest.mark.parametrize("name", ["batch_size", "batchsize", "batchSize", "BATCH-SIZE"])
def test_a_name_may_be_spelled_as_spark_or_pylance_would(name: str) -> None:
    assert read_options({"path": "/t", name: "7"})[1].batch_size == 7


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a,b", ("a", "b")),
        (" a , s.x ,_rowid", ("a", "s.x", "_rowid")),
        ('["a,b", "c"]', ("a,b", "c")),
        ('{"twice": "a * 2"}', {"twice": "a * 2"}),
    ],
)
def test_columns_are_names_or_expressions(text: str, columns: object) -> None:
    assert read_options({"path": "/t", "columns": text})[1].columns == columns


def test_what_a_store_needs_is_told_by_its_own_names_or_by_a_prefix() -> None:
    options = {"path": "s3://bucket/t", "aws_access_key_id": "key", "storage.timeout": "5s", "limit": "3"}
    address, asked = read_options(options)
    assert dict(address.storage_options) == {"aws_access_key_id": "key", "timeout": "5s"}
    assert asked.limit == 3
    assert "key" not in repr(address)


def test_what_spark_adds_is_nothing_to_us() -> None:
    added = {"checkpointlocation": "/c", "queryname": "q", "provider": "lance", "owner": "root", "option.tag": "x"}
    assert read_options({"path": "/t", **added})[0].uri == "/t"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_sice": "7"}, "option 'batch_sice' is unknown; did you mean batch_size"),
        ({"batch_size": "many"}, "option batch_size is 'many', expected a whole number"),
        ({"batch_size": "0"}, "option batch_size is 0, expected at least 1"),
        ({"limit": "-1"}, "option limit is -1, expected at least 0"),
        ({"split_size": "big"}, "not a size: 'big'"),
        ({"with_row_id": "yes"}, "option with_row_id is 'yes', expected true or false"),
        ({"time_type": "clock"}, "option time_type is 'clock', expected one of long, string, time"),
        ({"columns": '{"a": 1}'}, "option columns is no JSON object of SQL texts"),
        ({"columns": '["a"'}, "option columns is no JSON"),
        ({"columns": " , "}, "option columns names none"),
        ({"fragments": "1,x"}, "option fragments is 'x', expected a whole number"),
        ({"version": "1", "tag": "x"}, "version and tag are both given"),
        ({"branch": "b", "tag": "x"}, "branch and tag are both given"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_was_found(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_options({"path": "/t", **options})
    assert said in str(caught.value)


def test_a_table_must_be_named() -> None:
    with pytest.raises(InvalidInput, match="there is no path to a table"):
        read_options({})


def test_paths_are_absolute_for_tasks_that_run_elsewhere(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    assert read_options({"path": "t"})[0].uri == str(tmp_path / "t")
    assert read_options({"path": "file:/a%20b"})[0].uri == "/a b"
    assert read_options({"path": "s3://b/t"})[0].uri == "s3://b/t"


def test_only_the_newest_version_is_written_to() -> None:
    with pytest.raises(InvalidInput, match="newest version only"):
        write_options({"path": "/t", "version": "3"})
    with pytest.raises(InvalidInput, match="max_rows_per_file is 0"):
        write_options({"path": "/t", "max_rows_per_file": "0"})
    with pytest.raises(InvalidInput):
        write_options({"path": "/t", "data_storage_version": "9.9"})
    assert write_options({"path": "/t", "branch": "b", "enable_stable_row_ids": "TRUE"})[1].enable_stable_row_ids


@pytest.mark.parametrize("options", [{"stream": "all"}, {"max_rows_per_batch": "0"}, {"starting_version": "old"}])
def test_a_stream_is_of_inserts_or_changes(options: dict[str, str]) -> None:
    assert stream_options({"path": "/t", "stream": "changes", "startingversion": "latest"}).starting_version == "latest"
    with pytest.raises(InvalidInput):
        stream_options({"path": "/t", **options})
