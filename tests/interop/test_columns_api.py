"""Columns through datasets and fragments beside pylance: added, joined, altered, dropped, updated; each reads both."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelet
from lancelet.udf import BatchUDFCheckpoint

warnings.filterwarnings("ignore", category=DeprecationWarning)

Dataset = Any
ROWS = 5_000


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table(
        {
            "id": numbers,
            "word": pa.array([f"w{n % 17}" for n in numbers.tolist()], mask=numbers % 5 == 0),
            "real": pa.array(numbers / 3, mask=numbers % 7 == 0),
            "at": pa.StructArray.from_arrays([pa.array(numbers % 3), pa.array(numbers * 2)], ["x", "y"]),
        }
    )


class Pair:
    """Two tables of equal rows, some deleted, one handled by each implementation."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.theirs: Dataset = lance.write_dataset(rows(), root / "theirs", max_rows_per_file=2_000, **options)
        self.ours: Dataset = lancelet.write_dataset(rows(), root / "ours", max_rows_per_file=2_000, **options)
        for dataset in (self.theirs, self.ours):
            dataset.delete("id % 11 = 3 OR id BETWEEN 3990 AND 4005")

    def both(self, change: Callable[[Any, Dataset], object]) -> None:
        """Make a change to both, with the module of each at hand; both read the same from both afterwards."""
        change(lance, self.theirs)
        change(lancelet, self.ours)
        self.check()

    def check(self) -> None:
        assert self.ours.version == self.theirs.version
        assert self.ours.schema == self.theirs.schema
        expected = self.theirs.to_table()
        for found in (self.ours, lance.dataset(self.ours.uri), lancelet.dataset(self.theirs.uri)):
            assert found.schema == expected.schema
            assert found.to_table() == expected
        lancelet.dataset(self.theirs.uri).validate()
        lance.dataset(self.ours.uri).validate()


@pytest.fixture(params=["2.0", "2.1", "2.2", "stable"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    if request.param == "stable":
        return Pair(tmp_path, enable_stable_row_ids=True)
    return Pair(tmp_path, data_storage_version=request.param)


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"double": pc.multiply(batch["id"], 2)})


def as_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    return pd.DataFrame({"text": [str(number) for number in batch["id"].to_pylist()]})


ADDITIONS: dict[str, Callable[[Any, Dataset], object]] = {
    "expressions": lambda _, ds: ds.add_columns({"sum": "id + at.y", "upper": "upper(word)", "one": "1"}),
    "no expressions": lambda _, ds: ds.add_columns({}),
    "a function": lambda _, ds: ds.add_columns(doubled, read_columns=["id"]),
    "a function of frames": lambda _, ds: ds.add_columns(as_frame, batch_size=700),
    "a decorated function": lambda module, ds: ds.add_columns(module.batch_udf()(doubled)),
    "a function with a schema": lambda module, ds: ds.add_columns(
        module.batch_udf(output_schema=pa.schema({"double": pa.int64()}))(doubled)
    ),
    "row ids": lambda _, ds: ds.add_columns(
        lambda batch: pa.record_batch({"i": batch["_rowid"], "a": batch["_rowaddr"]}),
        read_columns=["_rowid", "_rowaddr"],
    ),
    "a field": lambda _, ds: ds.add_columns(pa.field("later", pa.list_(pa.float32(), 4))),
    "fields": lambda _, ds: ds.add_columns([pa.field("a", pa.string()), pa.field("b", pa.struct({"c": pa.int8()}))]),
    "a schema": lambda _, ds: ds.add_columns(pa.schema({"s": pa.timestamp("us", "UTC")})),
    "a table": lambda _, ds: ds.add_columns(pa.table({"n": np.arange(ds.count_rows())})),
    "batches": lambda _, ds: (
        ds.add_columns(
            (pa.record_batch({"n": [number] * 3 + [None]}) for number in range(ds.count_rows() // 4)),
            reader_schema=pa.schema({"n": pa.int64()}),
        )
        if ds.count_rows() % 4 == 0
        else ds.add_columns(pa.table({"n": np.arange(ds.count_rows())}))
    ),
    "pandas": lambda _, ds: ds.add_columns(pd.DataFrame({"n": np.arange(ds.count_rows()) * 0.5})),
    "a join": lambda _, ds: ds.merge(pa.table({"id": [5, 4_999, 99_999], "j": ["a", "b", "c"]}), "id"),
    "a join by another name": lambda _, ds: ds.merge(
        pa.table({"key": ["w3", "w4", "w3"], "j": [1, 2, 3], "l": [[1], None, [2, 3]]}), "word", "key"
    ),
    "a join by row id": lambda _, ds: ds.merge(
        pa.table({"_rowid": pa.array([7, 2_500], pa.uint64()), "j": [0.5, 1.5]}), "_rowid"
    ),
    "a new name": lambda _, ds: ds.alter_columns({"path": "word", "name": "term"}),
    "a new name within a struct": lambda _, ds: ds.alter_columns({"path": "at.x", "name": "z"}),
    "no nulls": lambda _, ds: ds.alter_columns({"path": "id", "nullable": False}, {"path": "real", "name": "r"}),
    "a type": lambda _, ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}, {"path": "word", "name": "term"}),
    "a type of text": lambda _, ds: ds.alter_columns({"path": "word", "data_type": pa.large_string()}),
    "a column less": lambda _, ds: ds.drop_columns(["word"]),
    "columns less": lambda _, ds: ds.drop_columns(["real", "at.x", "real"]),
    "nothing less": lambda _, ds: ds.drop_columns([]),
}


@pytest.mark.parametrize("name", ADDITIONS)
def test_columns_are_changed_as_pylance_changes_them(pair: Pair, name: str) -> None:
    pair.both(ADDITIONS[name])
    for dataset in (pair.theirs, pair.ours):
        dataset.delete("_rowid = 12")
    pair.check()


REFUSED: dict[str, tuple[type[Exception], Callable[[Any, Dataset], object]]] = {
    "a name taken": (OSError, lambda _, ds: ds.add_columns({"real": "1"})),
    "a name that is no text": (TypeError, lambda _, ds: ds.add_columns({1: "1"})),
    "an expression that is no text": (TypeError, lambda _, ds: ds.add_columns({"a": 1})),
    "an unknown column": (OSError, lambda _, ds: ds.add_columns({"a": "nothing + 1"})),
    "a number": (TypeError, lambda _, ds: ds.add_columns(5)),
    "an iterable without a schema": (ValueError, lambda _, ds: ds.add_columns([])),
    "nulls where none may be": (OSError, lambda _, ds: ds.add_columns(pa.field("f", pa.int8(), nullable=False))),
    "too few rows": (OSError, lambda _, ds: ds.add_columns(pa.table({"n": [1, 2]}))),
    "too many rows": (OSError, lambda _, ds: ds.add_columns(pa.table({"n": np.arange(ds.count_rows() + 1)}))),
    "a function that fails": (TypeError, lambda _, ds: ds.add_columns(lambda batch: batch.nothing)),
    "too few values": (OSError, lambda _, ds: ds.add_columns(lambda batch: pa.record_batch({"z": batch["id"][:1]}))),
    "a join on no column": (OSError, lambda _, ds: ds.merge(pa.table({"k": [1], "j": [1]}), "nothing", "k")),
    "a join on no column there": (OSError, lambda _, ds: ds.merge(pa.table({"k": [1], "j": [1]}), "id")),
    "a join of other types": (OSError, lambda _, ds: ds.merge(pa.table({"id": ["1"], "j": [1]}), "id")),
    "a join of what is there": (OSError, lambda _, ds: ds.merge(pa.table({"id": [1], "real": [1.0]}), "id")),
    "altering nothing": (ValueError, lambda _, ds: ds.alter_columns({"path": "real"})),
    "altering no column": (ValueError, lambda _, ds: ds.alter_columns({"name": "a"})),
    "altering an unknown column": (OSError, lambda _, ds: ds.alter_columns({"path": "nothing", "name": "a"})),
    "a type that is none": (TypeError, lambda _, ds: ds.alter_columns({"path": "id", "data_type": "int8"})),
    "an unknown key": (ValueError, lambda _, ds: ds.alter_columns({"path": "id", "nme": "a"})),
    "no nulls where there are some": (OSError, lambda _, ds: ds.alter_columns({"path": "real", "nullable": False})),
    "dropping an unknown column": (ValueError, lambda _, ds: ds.drop_columns(["nothing"])),
    "dropping a text": (TypeError, lambda _, ds: ds.drop_columns("real")),
    "dropping all": (ValueError, lambda _, ds: ds.drop_columns(ds.schema.names)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_pylance_refuses_is_refused_with_its_exception_and_leaves_nothing_behind(
    tmp_path: Path, name: str
) -> None:
    kind, change = REFUSED[name]
    pair = Pair(tmp_path)
    files = sorted((tmp_path / "ours" / "data").iterdir())
    for module, dataset in ((lance, pair.theirs), (lancelet, pair.ours)):
        with pytest.raises(kind):
            change(module, dataset)
    pair.check()
    assert sorted((tmp_path / "ours" / "data").iterdir()) == files


def committed(module: Any, dataset: Dataset, made: list[Any], schema: Any) -> Dataset:
    operation = module.LanceOperation.Merge(made, schema)
    return module.LanceDataset.commit(dataset, operation, read_version=dataset.version)


FRAGMENTS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "expressions": lambda fragment: fragment.merge_columns({"sum": "id + at.y"}),
    "a function": lambda fragment: fragment.merge_columns(doubled, columns=["id"], batch_size=300),
    "rows": lambda fragment: fragment.merge_columns(pa.table({"n": np.arange(fragment.count_rows())})),
    "a join": lambda fragment: fragment.merge(pa.table({"k": [7, 2_700], "j": ["a", "b"]}), "id", "k"),
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_columns_of_fragments_are_committed_as_those_of_pylance(pair: Pair, name: str) -> None:
    for module, side in ((lance, "theirs"), (lancelet, "ours")):
        dataset = getattr(pair, side)
        made = [FRAGMENTS[name](fragment) for fragment in dataset.get_fragments()]
        setattr(pair, side, committed(module, dataset, [item for item, _ in made], made[0][1]))
    pair.check()


@pytest.mark.parametrize("on", ["id", "_rowid", "_rowaddr"])
def test_columns_of_fragments_are_updated_as_by_pylance(pair: Pair, on: str) -> None:
    new = {"real": [0.25, None, 0.75], "word": ["new", "newer", None]}
    told = []
    for module, side in ((lance, "theirs"), (lancelet, "ours")):
        dataset = getattr(pair, side)
        keys = pa.array([2_100, 7, 99_999]) if on == "id" else pa.array([100, 7, 1 << 40], pa.uint64())
        made = [item.update_columns(pa.table({on: keys, **new}), on, with_offsets=True) for item in
                dataset.get_fragments()]  # fmt: skip
        told.append([(sorted(fields), offsets) for _, fields, offsets in made])
        operation = module.LanceOperation.Update(
            updated_fragments=[item for item, _, _ in made],
            fields_modified=made[0][1],
            update_mode="rewrite_columns",
            updated_fragment_offsets={item.id: offsets for item, _, offsets in made},
        )
        setattr(pair, side, module.LanceDataset.commit(dataset, operation, read_version=dataset.version))
    assert told[0] == told[1]
    pair.check()
    fragment = pair.ours.get_fragment(0)
    assert fragment.update_columns(pa.table({"id": [1], "real": [1.0]}), "id")[1] == [2]


def test_a_null_key_joins_nothing(tmp_path: Path) -> None:
    dataset = lancelet.write_dataset(pa.table({"k": pa.array([1, None])}), tmp_path / "t")
    dataset.merge(pa.table({"k": pa.array([1, None]), "v": ["a", "b"]}), "k")
    assert dataset.to_table()["v"].to_pylist() == ["a", None]


class Failing:
    """A function that fails at its so-manieth call, and counts the rows that it has seen."""

    def __init__(self, last: int) -> None:
        self.last, self.calls, self.rows = last, 0, 0

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.calls += 1
        if self.calls > self.last:
            raise RuntimeError("no more")
        self.rows += batch.num_rows
        return doubled(batch)


def test_a_function_that_failed_is_carried_on_from_its_checkpoint(tmp_path: Path) -> None:
    dataset = lancelet.write_dataset(rows(), tmp_path / "t", max_rows_per_file=2_000)
    schema = pa.schema({"double": pa.int64()})
    for last in (3, 7):
        udf = lancelet.batch_udf(output_schema=schema, checkpoint_file=tmp_path / "kept")(Failing(last))
        with pytest.raises(RuntimeError, match="no more"):
            dataset.add_columns(udf, batch_size=250)
        assert udf.func.rows == last * 250
    # Others commit meanwhile: what is done stays good but for the rows that are new.
    lancelet.dataset(dataset.uri).insert(rows(ROWS, 500))
    dataset = lancelet.dataset(dataset.uri)
    last = Failing(1_000)
    dataset.add_columns(lancelet.batch_udf(schema, tmp_path / "kept")(last), batch_size=250)
    assert last.rows == ROWS + 500 - 10 * 250
    assert not (tmp_path / "kept").exists()
    found = lance.dataset(dataset.uri).to_table()
    assert found["double"].to_pylist() == [2 * number for number in range(ROWS + 500)]


def test_rows_appended_while_a_function_runs_get_their_values_too(tmp_path: Path) -> None:
    dataset = lancelet.write_dataset(rows(), tmp_path / "t", max_rows_per_file=2_000)
    seen: list[int] = []

    def slow(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not seen:
            other = lancelet.dataset(dataset.uri)
            other.insert(rows(ROWS, 100))
            other.delete("id < 10")
        seen.extend(batch["id"].to_pylist())
        return doubled(batch)

    dataset.add_columns(lancelet.batch_udf(pa.schema({"double": pa.int64()}))(slow))
    found = lance.dataset(dataset.uri).to_table()
    assert found["double"].to_pylist() == [2 * number for number in found["id"].to_pylist()]
    assert found.num_rows == ROWS + 90
    assert len(seen) == ROWS + 100


def test_checkpoints_keep_what_pylance_keeps_by_the_same_names(tmp_path: Path) -> None:
    batch = pa.record_batch({"y": [1, None]})
    for module in (lance.udf, lancelet.udf):
        made = module.BatchUDFCheckpoint(tmp_path / module.__name__)
        info = made.BatchInfo(fragment_id=3, batch_index=4)
        assert made.get_batch(info) is None
        made.insert_batch(info, batch)
        assert made.get_batch(info) == batch
        made.insert_fragment(3, "done")
        assert (made.get_fragment(3), made.get_fragment(4), made.get_batch(info)) == ("done", None, None)
        made.cleanup()
        assert not (tmp_path / module.__name__).exists()


def test_results_that_pylance_pickled_are_computed_again_and_other_files_are_refused(tmp_path: Path) -> None:
    theirs = lance.udf.BatchUDFCheckpoint(tmp_path / "kept")
    theirs.insert_batch(theirs.BatchInfo(0, 0), pa.record_batch({"y": [1]}))
    assert BatchUDFCheckpoint(tmp_path / "kept").get_batch(BatchUDFCheckpoint.BatchInfo(0, 0)) is None
    (tmp_path / "other").write_text("not a database, but long enough to look like one to someone who is in a hurry" * 9)
    with pytest.raises(ValueError, match="checkpoint"):
        BatchUDFCheckpoint(tmp_path / "other")


def test_a_fragment_takes_no_function_with_a_checkpoint(tmp_path: Path) -> None:
    for module in (lance, lancelet):
        dataset = module.write_dataset(rows(), tmp_path / module.__name__)
        udf = module.batch_udf(checkpoint_file=tmp_path / "kept")(doubled)
        with pytest.raises(ValueError, match="checkpoint"):
            dataset.get_fragment(0).merge_columns(udf)


def test_what_tells_the_storage_options_is_like_that_of_pylance(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1]}), tmp_path / "t")
    for module in (lance, lancelet):
        assert module.dataset(tmp_path / "t").storage_options_accessor is None
        told = module.dataset(tmp_path / "t", storage_options={"timeout": "5s"}).storage_options_accessor
        assert told.get_storage_options()["timeout"] == told.initial_storage_options()["timeout"] == "5s"
        assert (told.has_provider(), told.refresh_offset_secs()) == (False, 60)
        same = type(told).with_static_options(told.get_storage_options())
        assert same.accessor_id() == told.accessor_id()
        assert "5s" not in repr(told)
