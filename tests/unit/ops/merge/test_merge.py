"""Merging by key: in memory and on disk the same rows come of it as of going through all pairs one by one."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.config import Options
from lancelet.errors import InvalidInput
from lancelet.format.names import DATA, DELETIONS
from lancelet.ops.data_files import Limits
from lancelet.ops.merge.merge import (
    Duplicates,
    Matched,
    MergeRequest,
    WriteMode,
    merge_insert,
    merge_uncommitted,
)
from lancelet.ops.write import create
from lancelet.query.scan import scan
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table.commit import commit
from lancelet.table.outcome import committed
from lancelet.table.snapshot import Snapshot, open_snapshot

few = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
#: With this budget a source of a few rows goes to disk, and its partitions are divided again.
TINY = Options(memory_budget=2**15, threads=1)
SCHEMA = pa.schema([("k", pa.int64()), ("a", pa.int32()), ("s", pa.string())])
Row = dict[str, object]


def opened(store: Store, options: Options | None = None) -> Snapshot:
    return open_snapshot(store, options=options)


def table_of(rows: list[Row], *, stable: bool = False) -> MemoryStore:
    store = MemoryStore(f"memory://{uuid4()}")
    made = create(store, pa.Table.from_pylist(rows, SCHEMA), stable_row_ids=stable, limits=Limits(rows_per_file=7))
    committed(made)
    return store


def rows_of(store: Store) -> list[Row]:
    found: list[Row] = scan(opened(store)).read_all().to_pylist()
    return found


def files(store: Store) -> list[str]:
    return sorted(entry.path for folder in (DATA, DELETIONS) for entry in store.list_from(f"{folder}/"))


def model(table: list[Row], source: list[Row], request: MergeRequest) -> list[Row] | None:
    """The rows that are left, by going through all pairs; None where the merge is refused."""
    known: set[int] = set()
    kept: list[Row] = []
    for row in table:
        pairs = [
            (number, one)
            for number, one in enumerate(source)
            if all(row[key] is not None and row[key] == one[key] for key in request.on)
        ]
        known.update(number for number, _ in pairs)
        if pairs and request.matched is Matched.FAIL:
            return None
        if not pairs:
            if not goes(row, request.delete_unmatched):
                kept.append(row)
            continue
        acting = [one for _, one in pairs if holds(request.condition, one, row)]
        if request.matched not in (Matched.UPDATE, Matched.DELETE) or not acting:
            kept.append(row)
            continue
        if len(acting) > 1 and request.duplicates is Duplicates.FAIL:
            return None
        if request.matched is Matched.UPDATE:
            kept.append({**row, **acting[0]})
    if request.insert:
        kept.extend(
            {name: row.get(name) for name in SCHEMA.names} for number, row in enumerate(source) if number not in known
        )
    return kept


def goes(row: Row, wanted: object) -> bool:
    if isinstance(wanted, bool):
        return wanted
    value = row["a"]
    return isinstance(value, int) and value > 4


def holds(condition: object, source: Row, target: Row) -> bool:
    if condition is None:
        return True
    one, other = source.get("a"), target["a"]
    return isinstance(one, int) and isinstance(other, int) and one > other


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Row], list[Row], MergeRequest]:
    """A table, a source of all or some columns, and a request."""

    def rows(least: int, names: list[str]) -> st.SearchStrategy[list[Row]]:
        values = {
            "k": st.one_of(st.none(), st.integers(0, 12)),
            "a": st.one_of(st.none(), st.integers(0, 9)),
            "s": st.sampled_from([None, "", "x", "yy"]),
        }
        return st.lists(st.fixed_dictionaries({name: values[name] for name in names}), min_size=least, max_size=25)

    on = draw(st.sampled_from([("k",), ("s",), ("k", "s")]))
    names = draw(st.sampled_from([SCHEMA.names, ["k", "a", "s"], [*on], [*on, "a"]]))
    matched = draw(st.sampled_from(Matched))
    insert = draw(st.booleans())
    unmatched = draw(st.sampled_from([False, True, "a > 4"]))
    if matched is Matched.KEEP and not insert and unmatched is False:
        insert = True
    condition = None
    if matched is Matched.UPDATE and "a" in names and draw(st.booleans()):
        condition = "source.a > target.a"
    request = MergeRequest(
        on=on,
        matched=matched,
        condition=condition,
        insert=insert,
        delete_unmatched=unmatched,
        duplicates=draw(st.sampled_from(Duplicates)),
    )
    return draw(rows(1, SCHEMA.names)), draw(rows(0, list(dict.fromkeys(names)))), request


def source_of(rows: list[Row], names: list[str]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([SCHEMA.field(name) for name in names]))


def counted(rows: list[Row]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


@few
@given(cases(), st.booleans(), st.booleans())
def test_a_merge_leaves_the_rows_that_going_through_all_pairs_leaves(
    case: tuple[list[Row], list[Row], MergeRequest], on_disk: bool, stable: bool
) -> None:
    table, source, request = case
    names = list(source[0]) if source else list(dict.fromkeys([*request.on, "a"]))
    store = table_of(table, stable=stable)
    # On disk there is more to come: rows that no row of the table has, so that the source is too large for memory.
    padding = [dict.fromkeys(names, None) | {request.on[0]: pad} for pad in _padding(request)] if on_disk else []
    rows = [*source, *padding]
    expected = model(rows_of(store), rows, request)
    before = files(store)
    snapshot = opened(store, TINY if on_disk else None)
    if expected is None:
        with pytest.raises(InvalidInput):
            merge_insert(snapshot, source_of(rows, names).to_reader(9), request)
        assert files(store) == before
        assert opened(store).version == 1
        return
    stats = merge_insert(snapshot, source_of(rows, names).to_reader(9), request).stats
    assert counted(rows_of(store)) == counted(expected)
    assert len(expected) == len(table) + stats.num_inserted_rows - stats.num_deleted_rows


def _padding(request: MergeRequest) -> list[object]:
    return [f"pad {number}" if request.on[0] == "s" else 1000 + number for number in range(400)]


def test_what_is_put_aside_is_removed_also_when_the_source_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = table_of([{"k": 1, "a": 1, "s": "x"}])
    rows = [{"k": number, "a": 0, "s": "new"} for number in range(2000)]
    merge_insert(opened(store, TINY), source_of(rows, SCHEMA.names), MergeRequest.upsert(["k"]))
    assert list(tmp_path.iterdir()) == []

    def failing() -> Iterator[pa.RecordBatch]:
        yield from source_of(rows, SCHEMA.names).to_batches(100)
        raise RuntimeError("the source broke")

    before = files(store)
    with pytest.raises(RuntimeError, match="the source broke"):
        merge_insert(opened(store, TINY), failing(), MergeRequest.upsert(["k"]), schema=SCHEMA)
    assert list(tmp_path.iterdir()) == []
    assert files(store) == before


def test_a_key_that_repeats_too_often_for_memory_is_taken_block_by_block() -> None:
    store = table_of([{"k": number, "a": 1, "s": "old"} for number in range(10)])
    rows = [{"k": 77, "a": number, "s": "same key"} for number in range(3000)]
    rows.append({"k": 3, "a": 2, "s": "other"})
    request = MergeRequest(on=("k",), insert=True, delete_unmatched="a = 1")
    stats = merge_insert(opened(store, TINY), source_of(rows, SCHEMA.names).to_reader(100), request).stats
    assert (stats.num_inserted_rows, stats.num_deleted_rows) == (3000, 9)
    again = replace(request, matched=Matched.UPDATE, insert=False, delete_unmatched=False)
    with pytest.raises(InvalidInput, match=r"several rows of the source .* k = 77"):
        merge_insert(opened(store, TINY), source_of(rows, SCHEMA.names).to_reader(100), again)
    first = replace(again, duplicates=Duplicates.FIRST)
    stats = merge_insert(opened(store, TINY), source_of(rows, SCHEMA.names).to_reader(100), first).stats
    assert stats.num_updated_rows == 3001
    assert {row["a"] for row in rows_of(store) if row["k"] == 77} == {0}


def test_columns_in_place_are_the_same_from_memory_and_from_disk() -> None:
    table = [{"k": number, "a": number % 5, "s": f"old {number}"} for number in range(40)]
    rows = [{"k": number, "a": 100 + number} for number in range(0, 2000, 3)]
    request = MergeRequest(on=("k",), matched=Matched.UPDATE, write_mode=WriteMode.REWRITE_COLUMNS)
    found = []
    for options in (None, TINY):
        store = table_of(table, stable=True)
        merge_insert(opened(store, options), source_of(rows, ["k", "a"]), request)
        found.append(scan(opened(store), ["k", "a", "s", "_rowid", "_row_last_updated_at_version"]).read_all())
    assert found[0] == found[1]
    assert found[0]["a"].to_pylist() == [100 + n if n % 3 == 0 else n % 5 for n in range(40)]
    assert found[0]["_row_last_updated_at_version"].to_pylist() == [2 if n % 3 == 0 else 1 for n in range(40)]


REFUSED: dict[str, Callable[[], MergeRequest]] = {
    "nothing to do": lambda: MergeRequest(on=("k",)),
    "a key named twice": lambda: MergeRequest(on=("k", "k"), insert=True),
    "a condition for rows that are not updated": lambda: MergeRequest(on=("k",), condition="source.a > 1", insert=True),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_a_request_that_says_nothing_or_too_much_is_refused(make: Callable[[], MergeRequest]) -> None:
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize(
    ("request_", "source", "found"),
    [
        (MergeRequest.upsert(["none"]), {"k": [1]}, "no column 'none' for the key"),
        (MergeRequest.upsert([]), {"k": [1]}, "has no key"),
        (MergeRequest.upsert(["k"]), {"a": pa.array([1], pa.int32())}, "lacks column 'k' of the key"),
        (MergeRequest.upsert(["k"]), {"k": [1], "z": [1]}, "no column 'z'"),
        (MergeRequest.upsert(["k"]), {"k": pa.array([1], pa.int8())}, "type int8, expected int64"),
        (MergeRequest.upsert(["k"], "source.z > 1"), {"k": [1]}, "z"),
    ],
)
def test_what_does_not_fit_the_table_is_refused_and_leaves_no_file(
    request_: MergeRequest, source: dict[str, object], found: str
) -> None:
    store = table_of([{"k": 1, "a": 1, "s": "x"}])
    before = files(store)
    with pytest.raises(InvalidInput, match=found):
        merge_insert(opened(store), pa.table(source), request_)
    assert files(store) == before


def test_a_merge_without_a_commit_is_seen_only_after_one() -> None:
    store = table_of([{"k": 1, "a": 1, "s": "x"}])
    made, stats, _ = merge_uncommitted(
        opened(store), source_of([{"k": 1, "a": 2, "s": "y"}], SCHEMA.names), MergeRequest.upsert(["k"])
    )
    assert (stats.num_updated_rows, rows_of(store)[0]["a"]) == (1, 1)
    committed(commit(opened(store), made))
    assert rows_of(store) == [{"k": 1, "a": 2, "s": "y"}]


def test_a_field_inside_a_struct_may_be_the_key_and_a_part_of_a_struct_be_updated() -> None:
    store = MemoryStore(f"memory://{uuid4()}")
    point = pa.array([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, None])
    committed(create(store, pa.table({"p": point, "v": [1, 2, 3]})))
    source = pa.table({"p": pa.array([{"x": 2}, {"x": 5}])})
    merge_insert(opened(store), source, MergeRequest.upsert(["p.x"]))
    merge_insert(opened(store), pa.table({"p": [{"x": 1, "y": "new"}], "v": [7]}), MergeRequest.upsert(["p.x"]))
    found = sorted(rows_of(store), key=repr)
    assert found == [
        {"p": None, "v": 3},
        {"p": {"x": 1, "y": "new"}, "v": 7},
        {"p": {"x": 2, "y": "b"}, "v": 2},
        {"p": {"x": 5, "y": None}, "v": None},
    ]


def test_a_merge_in_a_forked_process_is_as_in_any_other() -> None:
    with tempfile.TemporaryDirectory() as folder:
        from lancelet.storage import open_store

        store = open_store(folder)
        committed(create(store, source_of([{"k": 1, "a": 1, "s": "x"}], SCHEMA.names)))
        rows_of(store)
        child = os.fork()
        if child == 0:
            merge_insert(
                opened(store), source_of([{"k": 2, "a": 2, "s": "y"}], SCHEMA.names), MergeRequest.upsert(["k"])
            )
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert len(rows_of(store)) == 2
