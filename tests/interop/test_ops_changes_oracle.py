"""Deletes, updates and merges against pylance: the same request to two copies of a table leaves the same rows in both.

Rows, their stable ids and lineage, what is counted, the schema, and what the transaction says are compared; requests
that one refuses the other refuses, too.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lancelet.errors import LanceletError
from lancelet.format import operations as op
from lancelet.ops.deletion import delete_where
from lancelet.ops.merge.merge import Matched, MergeRequest, WriteMode, merge_insert
from lancelet.ops.update import update
from lancelet.query.request import CREATED_AT, LAST_UPDATED_AT
from lancelet.storage import open_store
from lancelet.table.snapshot import Snapshot, open_snapshot

SEEDS = range(40)
POINT = pa.struct([("x", pa.int64()), ("y", pa.string())])
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("a", pa.int32()),
        ("s", pa.string()),
        ("p", POINT),
        ("f", pa.float64()),
        ("t", pa.list_(pa.int8())),
    ]
)
PREDICATES = [
    "k > 7",
    "k < 3 OR a IS NULL",
    "a > 4 AND s IS NOT NULL",
    "NOT (a > 4)",
    "f >= 2.5",
    "p.x > 5",
    "s = 's3' OR s IN ('s4', 's5')",
    "k IS NULL",
    "k >= 0",
    "true",
    "false",
    "k > 1000",
    "a + 1 > k",
]
VALUES: list[dict[str, str]] = [
    {"a": "a + 1"},
    {"a": "NULL"},
    {"s": "'new'"},
    {"f": "f * 2"},
    {"f": "a", "s": "s"},
    {"k": "k + 100"},
]
CONDITIONS = [
    None,
    "source.a > target.a",
    "target.f IS NULL OR target.f < 4",
    "source.s = target.s",
    "target.k > 3 AND source.a IS NOT NULL",
]


def opened(root: Path) -> Snapshot:
    return open_snapshot(open_store(root))


def dataset_of(root: Path) -> Any:
    """What pylance opens; its annotations are narrower than what it takes."""
    return lance.dataset(root)


def rows(draw: random.Random, keys: list[int | None]) -> pa.Table:
    """Rows of keys, other values at random."""

    def maybe(value: object) -> object:
        return None if draw.random() < 0.2 else value

    found = [
        {
            "k": key,
            "a": maybe(draw.randrange(10)),
            "s": maybe(f"s{draw.randrange(8)}"),
            "p": {"x": maybe(draw.randrange(10)), "y": maybe("y")},
            "f": maybe(draw.randrange(20) / 2),
            "t": maybe([draw.randrange(5)] * draw.randrange(3)),
        }
        for key in keys
    ]
    return pa.Table.from_pylist(found, SCHEMA)


@dataclass
class Pair:
    """Two copies of one table, for pylance and for us."""

    theirs: Path
    ours: Path
    stable: bool

    def seen(self, root: Path) -> tuple[object, ...]:
        """What there is of a table: rows in no order, with ids and lineage as far as they are the same for all."""
        dataset = dataset_of(root)
        names = [*dataset.schema.names, *([CREATED_AT, LAST_UPDATED_AT] if self.stable else [])]
        found = dataset.to_table(columns=names, with_row_id=self.stable).to_pylist()
        newest = dataset.version
        for row in found:
            # Rows of one version may have got their ids in any order.
            if row.get(CREATED_AT) == newest:
                row["_rowid"] = "new"
        return sorted(map(repr, found)), dataset.schema, newest, dataset.count_rows()

    def operation(self, root: Path) -> tuple[object, ...]:
        """What the newest transaction says, without the names of files."""
        transaction = opened(root).transaction()
        assert transaction is not None
        operation = transaction.operation
        if isinstance(operation, op.Delete):
            return deleted_of(operation.updated_fragments), sorted(operation.deleted_fragment_ids), operation.predicate
        assert isinstance(operation, op.Update)
        return (
            deleted_of(operation.updated_fragments),
            sorted(operation.removed_fragment_ids),
            [item.physical_rows for item in operation.new_fragments],
            sorted(operation.fields_modified),
            # Where no row moved, pylance names only the columns, and it makes no difference.
            sorted(operation.fields_for_preserving_frag_bitmap) if operation.new_fragments else None,
            operation.mode,
            files_of(operation.updated_fragments) if operation.mode is op.UpdateMode.REWRITE_COLUMNS else None,
            operation.inserted_rows,
            dict(operation.updated_offset_bitmaps),
            transaction.read_version,
        )

    def check(self) -> None:
        """Both are the same, and both read them alike."""
        assert self.seen(self.ours) == self.seen(self.theirs)
        assert self.operation(self.ours) == self.operation(self.theirs)


def deleted_of(fragments: Any) -> list[tuple[object, ...]]:
    return sorted((item.id, item.num_deleted_rows, item.deletion_file is not None) for item in fragments)


def files_of(fragments: Any) -> list[tuple[object, ...]]:
    """The fields in each file; pylance keeps files in which nothing is left."""
    return sorted(
        (item.id, [sorted(file.fields) for file in item.files if max(file.fields) >= 0]) for item in fragments
    )


@pytest.fixture
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Pair:
    """A table of random rows, some of them deleted already."""
    seed, stable, version = request.param
    draw = random.Random(f"table {seed}")
    keys: list[int | None] = list(range(draw.randrange(1, 25)))
    keys += [None] * draw.randrange(3)
    draw.shuffle(keys)
    lance.write_dataset(
        rows(draw, keys),
        tmp_path / "theirs",
        max_rows_per_file=draw.randrange(3, 12),
        enable_stable_row_ids=stable,
        data_storage_version=version,
    )
    if draw.random() < 0.6:
        dataset_of(tmp_path / "theirs").delete(f"k = {draw.randrange(10)} OR k = {draw.randrange(20)}")
    shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
    return Pair(tmp_path / "theirs", tmp_path / "ours", stable)


def tables(*versions: str) -> list[Any]:
    """Seeds, with and without stable ids, all versions."""
    known = versions or ("2.0", "2.1", "2.2")
    return [pytest.param((seed, bool(seed % 2), known[seed % len(known)]), seed, id=f"seed-{seed}") for seed in SEEDS]


@pytest.mark.parametrize(("pair", "seed"), tables(), indirect=["pair"])
def test_a_deletion_leaves_what_that_of_pylance_leaves(pair: Pair, seed: int) -> None:
    for predicate in random.Random(f"delete {seed}").sample(PREDICATES, 2):
        theirs = dataset_of(pair.theirs).delete(predicate)
        ours = delete_where(opened(pair.ours), predicate)
        assert ours.num_deleted_rows == theirs["num_deleted_rows"]
        pair.check()


@pytest.mark.parametrize(("pair", "seed"), tables(), indirect=["pair"])
def test_an_update_leaves_what_that_of_pylance_leaves(pair: Pair, seed: int) -> None:
    draw = random.Random(f"update {seed}")
    for _ in range(2):
        values, where = draw.choice(VALUES), draw.choice([*PREDICATES, None])
        theirs = dataset_of(pair.theirs).update(values, where=where)
        ours = update(opened(pair.ours), values, where)
        assert ours.num_updated_rows == theirs["num_rows_updated"]
        pair.check()


def requests(draw: random.Random) -> MergeRequest:
    """A request at random, of the many that can be made."""
    matched = draw.choice([Matched.UPDATE] * 3 + [Matched.KEEP, Matched.DELETE, Matched.FAIL])
    on = draw.choice([("k",), ("k",), ("k", "s"), ("s", "a")])
    unmatched: bool | str = draw.choice([False, False, False, True, "a > 4", "f < 3 OR s IS NULL"])
    insert = draw.random() < 0.6
    if matched is Matched.KEEP and not insert and unmatched is False:
        insert = True
    if matched is Matched.DELETE and unmatched is not False:
        # Pylance ends by an internal error.
        insert = True
    condition = draw.choice(CONDITIONS) if matched is Matched.UPDATE else None
    return MergeRequest(on=on, matched=matched, condition=condition, insert=insert, delete_unmatched=unmatched)


def builder(dataset: Any, request: MergeRequest) -> Any:
    """The same to pylance."""
    made = dataset.merge_insert(list(request.on))
    if request.matched is Matched.UPDATE:
        made = made.when_matched_update_all(request.condition)
    if request.matched is Matched.DELETE:
        made = made.when_matched_delete()
    if request.matched is Matched.FAIL:
        made = made.when_matched_fail()
    if request.insert:
        made = made.when_not_matched_insert_all()
    if request.deletes_unmatched:
        condition = None if request.delete_unmatched is True else request.delete_unmatched
        made = made.when_not_matched_by_source_delete(condition)
    if request.write_mode is WriteMode.REWRITE_COLUMNS:
        made = made.write_mode("rewrite_columns")
    return made


def merged_both(pair: Pair, request: MergeRequest, source: pa.Table) -> None:
    """Merge on both sides and compare."""
    counts: Mapping[str, int] | None
    try:
        counts = builder(dataset_of(pair.theirs), request).execute(source)
    except (OSError, ValueError):
        counts = None
    if counts is None:
        with pytest.raises(LanceletError):
            merge_insert(opened(pair.ours), source, request)
        assert opened(pair.ours).version == dataset_of(pair.theirs).version
        return
    stats = merge_insert(opened(pair.ours), source, request).stats
    assert {name: getattr(stats, name) for name in counts} == counts
    pair.check()


def source_rows(draw: random.Random) -> pa.Table:
    """Rows, some of whose keys the table has; some keys may be null, or occur twice."""
    keys: list[int | None] = draw.sample(range(40), draw.randrange(0, 15))
    if draw.random() < 0.3:
        keys += [None]
    if draw.random() < 0.2:
        keys += keys[:1]
    return rows(draw, keys)


@pytest.mark.parametrize(("pair", "seed"), tables(), indirect=["pair"])
def test_a_merge_leaves_what_that_of_pylance_leaves(pair: Pair, seed: int) -> None:
    draw = random.Random(f"merge {seed}")
    for _ in range(3):
        merged_both(pair, requests(draw), source_rows(draw))


# Files of 2.0 hold no structs that are null, as those of rows put in without them are.
@pytest.mark.parametrize(("pair", "seed"), tables("2.1", "2.1", "2.2"), indirect=["pair"])
def test_a_merge_of_some_columns_leaves_what_that_of_pylance_leaves(pair: Pair, seed: int) -> None:
    draw = random.Random(f"partial merge {seed}")
    for _ in range(3):
        request = requests(draw)
        others = [name for name in SCHEMA.names if name not in request.on]
        chosen = [*request.on, *draw.sample(others, draw.randrange(len(others)))]
        if request.condition is not None and "source.s" in request.condition and "s" not in chosen:
            chosen.append("s")
        if request.condition is not None and "source.a" in request.condition and "a" not in chosen:
            chosen.append("a")
        merged_both(pair, request, source_rows(draw).select(chosen))


@pytest.mark.parametrize(("pair", "seed"), tables(), indirect=["pair"])
def test_columns_merged_in_place_are_those_of_pylance(pair: Pair, seed: int) -> None:
    draw = random.Random(f"columns {seed}")
    for _ in range(2):
        condition = draw.choice([None, "target.a > 3", "source.k > 4"])
        request = MergeRequest(
            on=("k",), matched=Matched.UPDATE, condition=condition, write_mode=WriteMode.REWRITE_COLUMNS
        )
        chosen = draw.sample(["a", "s", "f", "t"], draw.randrange(1, 4))
        source = source_rows(draw).select(["k", *chosen])
        if not source.num_rows:
            # Pylance then says that the source has all columns.
            continue
        merged_both(pair, request, source)
        with pytest.raises(LanceletError, match="cannot rewrite columns"):
            merge_insert(opened(pair.ours), source, replace(request, insert=True))
