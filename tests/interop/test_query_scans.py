"""Scans of generated tables by generated requests: lancelet and pylance hand out the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.dataset import ColumnOrdering

from lancelet.query.request import (
    CREATED_AT,
    LAST_UPDATED_AT,
    ROW_ADDRESS,
    ROW_ID,
    ROW_OFFSET,
    Ordering,
    bound_schema,
    column_named,
    request_for,
)
from lancelet.query.scan import plan_scan, read_table, run_scan
from lancelet.storage import open_store
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.testing.arrays import late_types, leaf_types, nested_types
from lancelet.testing.requests import Question, questions, sample_table

SYSTEM = (ROW_ID, ROW_ADDRESS, ROW_OFFSET, CREATED_AT, LAST_UPDATED_AT)
ROWS = 700


def kinds(version: str) -> list[pa.DataType]:
    """What files of a version hold without loss: 2.0 knows no null structs."""
    known = [*leaf_types(), *nested_types(), *(late_types() if version == "2.2" else [])]
    return [kind for kind in known if version != "2.0" or not ("struct" in str(kind) or pa.types.is_null(kind))]


def made(root: Path, version: Any, seed: int, *, stable: bool) -> tuple[lance.LanceDataset, Snapshot]:
    """A table of several fragments with deleted rows, written by pylance."""
    some = kinds(version)
    chosen = [some[(seed * 7 + number * 11) % len(some)] for number in range(6)]
    # One fragment after the other: pylance cannot cut structs with nulls into files.
    for first in range(0, ROWS, 150):
        rows = sample_table(seed * 100 + first, min(150, ROWS - first), chosen, first=first)
        mode: Any = "append" if first else "create"
        lance.write_dataset(rows, root, mode=mode, data_storage_version=version, enable_stable_row_ids=stable)
    dataset = lance.dataset(root)
    dataset.delete("key % 13 = 5 OR key BETWEEN 310 AND 340")
    return lance.dataset(root), open_snapshot(open_store(root))


def theirs(dataset: lance.LanceDataset, question: Question) -> pa.Table:
    """The answer of pylance, which panics when it is to order no rows."""
    if question.limit == 0:
        question = replace(question, order_by=())
    fragments = dataset.get_fragments()
    columns = [*(question.columns or dataset.schema.names), *question.system]
    return (
        dataset.scanner(
            columns=columns,
            filter=question.filter,
            limit=question.limit,
            offset=question.offset,
            batch_size=question.batch_size,
            fragments=None if question.fragments is None else [fragments[place] for place in question.fragments],
            # Without a row id pylance cannot fetch columns after sorting.
            with_row_id=bool(question.order_by),
            order_by=[ColumnOrdering(*key) for key in question.order_by] or None,
        )
        .to_table()
        .select(columns)
    )


def ours(snapshot: Snapshot, question: Question) -> pa.Table:
    bound = bound_schema(snapshot.schema)
    ids = snapshot.manifest.fragments.ids().tolist()
    request = request_for(
        snapshot,
        [*(question.columns or [item.name for item in snapshot.schema.fields]), *question.system],
        filter=question.filter,
        limit=question.limit,
        offset=question.offset or 0,
        batch_size=question.batch_size or 8192,
        fragments=None if question.fragments is None else [ids[place] for place in question.fragments],
        order_by=[Ordering(column_named(name, bound), up, first) for name, up, first in question.order_by],
    )
    plan = plan_scan(snapshot, request)
    places = Places.of(snapshot)
    found = read_table(plan, places)
    batches = list(run_scan(plan, places))
    assert all(0 < batch.num_rows <= request.batch_size for batch in batches)
    assert pa.Table.from_batches(batches, plan.schema).equals(found)
    return found


def check(expected: pa.Table, found: pa.Table, question: Question) -> None:
    assert found.column_names == expected.column_names, question
    for name in expected.column_names:
        assert found.schema.field(name).type == expected.schema.field(name).type, (name, question)
        assert found[name].to_pylist() == expected[name].to_pylist() or found[name].equals(expected[name]), (
            name,
            question,
        )


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
@pytest.mark.parametrize("seed", range(4), ids=lambda seed: f"seed-{seed}")
def test_generated_requests_give_the_rows_that_pylance_gives(
    tmp_path: Path, seed: int, stable: bool, version: str
) -> None:
    dataset, snapshot = made(tmp_path / "table", version, seed, stable=stable)
    count = len(dataset.get_fragments())
    for question in questions(seed, 25, dataset.schema, ROWS, fragments=count, system=SYSTEM):
        check(theirs(dataset, question), ours(snapshot, question), question)
