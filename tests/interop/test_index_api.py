"""The index API of datasets beside pylance's: descriptions, statistics, transactions, errors; each uses the other's."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pytest

import lancelet
import lancelet.indices
from lancelet.index.kinds import KINDS

warnings.filterwarnings("ignore", category=DeprecationWarning)

#: Types and the columns that they are tried on.
COLUMNS = {
    "BTREE": "number",
    "BITMAP": "word",
    "LABEL_LIST": "tags",
    "NGRAM": "word",
    "ZONEMAP": "real",
    "BLOOMFILTER": "number",
}
TYPES = [name for name in COLUMNS if name in KINDS]
Dataset = Any


def rows(first: int, count: int) -> pa.Table:
    draw = np.random.default_rng(first)
    missing = draw.random(count) < 0.1
    return pa.table(
        {
            "key": np.arange(first, first + count),
            "number": pa.array(draw.integers(0, 400, count), mask=missing),
            "word": pa.array([f"word {n}" for n in draw.integers(0, 30, count).tolist()], mask=np.roll(missing, 1)),
            "tags": [[f"t{n % 5}", f"t{n % 3}"][: n % 3] for n in range(first, first + count)],
            "real": draw.standard_normal(count),
            "at": pa.StructArray.from_arrays([pa.array(np.arange(count)), pa.array(np.arange(count))], ["x y", "a.b"]),
        }
    )


class Pair:
    """Two tables of equal rows, one handled by each implementation; both are at the same version all the time."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.theirs: Dataset = lance.write_dataset(rows(0, 1000), root / "theirs", max_rows_per_file=300, **options)
        self.ours: Dataset = lancelet.write_dataset(rows(0, 1000), root / "ours", max_rows_per_file=300, **options)

    def both(self, change: Callable[[Dataset], object]) -> None:
        """Make a change to both; what they say of their indexes is the same afterwards."""
        for dataset in (self.theirs, self.ours):
            change(dataset)
        self.check()

    def append(self, first: int, count: int) -> None:
        """Add rows to both."""
        self.theirs.insert(rows(first, count))
        self.ours.insert(rows(first, count))

    def check(self) -> None:
        """Compare all that is said of indexes; of what each wrote the other says the same."""
        ours, theirs = self.ours, self.theirs
        assert ours.version == theirs.version
        expected = told_of(theirs)
        assert told_of(ours) == expected
        assert told_of(lance.dataset(ours.uri)) == expected
        assert told_of(lancelet.dataset(theirs.uri)) == expected


def told_of(dataset: Dataset) -> dict[str, object]:
    """What a dataset says of its indexes, without ids, times and sizes."""
    told: dict[str, object] = {"has": dataset.has_index}
    for item in dataset.describe_indices():
        segments = [
            (
                set(one.fragment_ids),
                one.dataset_version_at_last_update,
                one.index_version,
                one.base_id,
                one.covering_fields,
                one.created_at is not None,
                one.size_bytes is not None,
            )
            for one in item.segments
        ]
        told[item.name] = (
            item.index_type,
            item.type_url,
            item.num_rows_indexed,
            item.fields,
            item.field_names,
            item.details,
            item.total_size_bytes is not None,
            segments,
        )
        figures = dict(dataset.stats.index_stats(item.name))
        assert isinstance(figures.pop("updated_at_timestamp_ms"), int)
        told[f"figures of {item.name}"] = figures
        assert dict(dataset.index_statistics(item.name)).keys() == {*figures, "updated_at_timestamp_ms"}
    listed = dataset.list_indices()
    told["listed"] = [
        {key: set(value) if key == "fragment_ids" else value for key, value in one.items() if key != "uuid"}
        for one in listed
    ]
    return told


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
@pytest.mark.parametrize("kind", TYPES)
def test_what_is_said_of_indexes_is_what_pylance_says(tmp_path: Path, kind: str, stable: bool) -> None:
    pair, column = Pair(tmp_path, enable_stable_row_ids=stable), COLUMNS[kind]
    pair.both(lambda it: it.create_scalar_index(column, kind))
    pair.both(lambda it: it.delete("key % 10 = 3"))
    pair.both(lambda it: it.delete("key < 300"))
    pair.append(1000, 200)
    pair.check()
    pair.both(lambda it: it.create_scalar_index(column, kind, name="second"))
    pair.both(lambda it: it.create_scalar_index(column, kind, name="empty", train=False))
    pair.both(lambda it: it.drop_index("second"))
    for index in (pair.ours, pair.theirs):
        index.prewarm_index(f"{column}_idx")


def test_transactions_say_what_those_of_pylance_say(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    pair.both(lambda it: it.create_scalar_index("number", "BTREE"))
    pair.both(lambda it: it.create_scalar_index("number", "BITMAP", name="number_idx"))
    pair.both(lambda it: it.drop_index("number_idx"))
    for version in range(2, pair.ours.version + 1):
        ours, theirs = (it.read_transaction(version) for it in (pair.ours, lance.dataset(pair.theirs.uri)))
        assert type(ours.operation).__name__ == type(theirs.operation).__name__ == "CreateIndex"
        for side in ("new_indices", "removed_indices"):
            found, expected = (getattr(it.operation, side) for it in (ours, theirs))
            assert list(map(essence, found)) == list(map(essence, expected))


def essence(index: Any) -> tuple[object, ...]:
    """An index of a transaction, without its id, times and sizes."""
    files = sorted(file.path for file in index.files)
    details = index.index_details[0]
    return index.name, index.fields, index.dataset_version, set(index.fragment_ids), index.index_version, files, details


@pytest.mark.parametrize("column", ["Number", "at.x y", "at.`a.b`", "at.`x y`", "AT.`A.B`"])
def test_columns_are_found_and_indexes_named_as_by_pylance(tmp_path: Path, column: str) -> None:
    Pair(tmp_path).both(lambda it: it.create_scalar_index(column, "BTREE"))


def test_names_count_up_where_another_type_has_taken_them(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    for kind in ("BTREE", "BITMAP", "ZONEMAP", "BTREE"):
        pair.both(lambda it, kind=kind: it.create_scalar_index("number", kind))


def test_parameters_come_as_a_config(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    homes = {lance.LanceDataset: lance.indices, lancelet.LanceDataset: lancelet.indices}
    for name, parameters in {"btree": {"zone_size": 100}, "zonemap": {"rows_per_zone": 50}, "bitmap": {}}.items():
        pair.both(
            lambda it, name=name, parameters=parameters: it.create_scalar_index(
                "number", homes[type(it)].IndexConfig(name, parameters), name=name
            )
        )


WRONG: dict[str, Callable[[Dataset], object]] = {
    "unknown column": lambda it: it.create_scalar_index("nothing", "BTREE"),
    "unknown nested column": lambda it: it.create_scalar_index("at.nothing", "BTREE"),
    "row id": lambda it: it.create_scalar_index("_rowid", "BTREE"),
    "unknown type": lambda it: it.create_scalar_index("number", "TREE"),
    "several columns": lambda it: it.create_scalar_index(["number", "word"], "BTREE"),
    "name taken": lambda it: it.create_scalar_index("number", "BTREE", name="taken", replace=False),
    "name taken by another column": lambda it: it.create_scalar_index("word", "BTREE", name="taken"),
    "list of labels of numbers": lambda it: it.create_scalar_index("number", "LABEL_LIST"),
    "tree of lists": lambda it: it.create_scalar_index("tags", "BTREE"),
    "fragments": lambda it: it.create_scalar_index("number", "BTREE", fragment_ids=[0]),
    "bad id": lambda it: it.create_scalar_index("number", "BTREE", index_uuid="x"),
    "vectors of numbers": lambda it: it.create_index("number", "IVF_PQ"),
    "vectors of nothing": lambda it: it.create_index("nothing", "IVF_PQ"),
    "drop": lambda it: it.drop_index("nothing"),
    "prewarm": lambda it: it.prewarm_index("nothing"),
    "prewarm positions": lambda it: it.prewarm_index("taken", with_position=True),
    "statistics": lambda it: it.stats.index_stats("nothing"),
    "statistics of old": lambda it: it.index_statistics("nothing"),
    "segment of no fragments": lambda it: it.create_index_uncommitted("number", "BTREE"),
    "segment of unknown fragments": lambda it: it.create_index_uncommitted("number", "BTREE", fragment_ids=[77]),
    "segment of a name taken": lambda it: it.create_index_uncommitted(
        "number", "BTREE", name="taken", fragment_ids=[0]
    ),
    "merge of nothing": lambda it: it.merge_existing_index_segments([]),
    "commit of nothing": lambda it: it.commit_existing_index_segments("x", "number", []),
    "metadata of btrees": lambda it: it.merge_index_metadata("0" * 32, "BTREE"),
    "metadata of bitmaps": lambda it: it.merge_index_metadata("0" * 32, "BITMAP"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_raise_what_pylance_raises(tmp_path: Path, wrong: str) -> None:
    pair = Pair(tmp_path)
    pair.both(lambda it: it.create_scalar_index("number", "BTREE", name="taken"))
    with pytest.raises(Exception) as theirs:
        WRONG[wrong](pair.theirs)
    with pytest.raises(Exception) as ours:
        WRONG[wrong](pair.ours)
    assert isinstance(ours.value, theirs.type), (ours.type.__mro__, theirs.type)
    pair.check()


@pytest.mark.parametrize("kind", TYPES)
def test_segments_built_apart_become_one_index(tmp_path: Path, kind: str) -> None:
    pair, column = Pair(tmp_path), COLUMNS[kind]

    def build(it: Dataset) -> None:
        first, second, third = (
            it.create_index_uncommitted(column, kind, name="parts", fragment_ids=part) for part in ([0, 1], [2], [3])
        )
        assert it.version == 1
        merged = it.merge_existing_index_segments([first, pickle.loads(pickle.dumps(second))])
        assert (merged.name, set(merged.fragment_ids), merged.dataset_version) == ("parts", {0, 1, 2}, 1)
        it.commit_existing_index_segments("parts", column, [merged, third])

    pair.both(build)
    pair.append(1000, 150)

    def more(it: Dataset) -> None:
        added = it.create_index_uncommitted(column, kind, name="parts", fragment_ids=[4], replace=True)
        it.commit_existing_index_segments("parts", column, [added])

    pair.both(more)
    condition = {"tags": "array_has_any(tags, ['t1', 't4'])", "real": "real > 1"}.get(column, f"{column} > 'word 2'")
    condition = "number BETWEEN 10 AND 90" if column == "number" else condition
    for reader in (pair.ours, pair.theirs, lance.dataset(pair.ours.uri), lancelet.dataset(pair.theirs.uri)):
        scanned = reader.scanner(columns=["key"], filter=condition, use_scalar_index=False).to_table()
        found = reader.scanner(columns=["key"], filter=condition).to_table()
        assert sorted(found["key"].to_pylist()) == sorted(scanned["key"].to_pylist())


def test_segments_that_do_not_fit_are_refused_as_by_pylance(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    for it in (pair.ours, pair.theirs):
        both, one = (it.create_index_uncommitted("number", "BITMAP", name="n", fragment_ids=f) for f in ([0, 1], [0]))
        with pytest.raises(ValueError, match=r"overlap|covered by two"):
            it.commit_existing_index_segments("n", "number", [both, one])
        with pytest.raises(ValueError, match=r"field"):
            it.commit_existing_index_segments("n", "word", [both])
        it.commit_existing_index_segments("n", "number", [both])
        with pytest.raises(ValueError, match=r"orphan|covered by nothing"):
            it.commit_existing_index_segments("n", "number", [one])
    pair.check()


def test_progress_is_told_as_rows_are_read(tmp_path: Path) -> None:
    dataset = lancelet.write_dataset(rows(0, 1000), tmp_path / "t", max_rows_per_file=300)
    seen: list[lancelet.IndexProgress] = []
    dataset.create_scalar_index("number", "BTREE", progress_callback=seen.append)
    assert [item.event for item in seen] == ["start", *["progress"] * (len(seen) - 2), "complete"]
    assert (seen[-1].completed, seen[-1].total, seen[-1].unit) == (1000, 1000, "rows")


def test_a_callback_that_raises_ends_the_work_and_nothing_is_committed(tmp_path: Path) -> None:
    dataset = lancelet.write_dataset(rows(0, 1000), tmp_path / "t")

    def stop(progress: lancelet.IndexProgress) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        dataset.create_scalar_index("number", "BTREE", progress_callback=stop)
    assert lancelet.dataset(tmp_path / "t").version == 1
    assert not [path for path in (tmp_path / "t").rglob("*") if "_indices" in str(path) and path.is_file()]
