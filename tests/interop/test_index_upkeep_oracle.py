"""Which fragments an index covers after rows moved: as pylance has it, for every type of index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lancelet.format import operations as op
from lancelet.format.indexes import IndexMetadata, holds_addresses
from lancelet.format.transaction import Transaction
from lancelet.storage import open_store
from lancelet.table.build import Settings, next_manifest
from lancelet.table.snapshot import Snapshot, open_snapshot

KINDS = {"BTREE": "k", "BITMAP": "k", "ZONEMAP": "k", "BLOOMFILTER": "k", "NGRAM": "s", "LABEL_LIST": "l"}
ROWS = pa.table(
    {"k": range(12), "s": [f"text {n}" for n in range(12)], "l": [[n % 3] for n in range(12)], "x": range(12)}
)


def opened(root: Path, version: int | None = None) -> Snapshot:
    return open_snapshot(open_store(root), version=version)


def indexed(root: Path, kind: str) -> Any:
    dataset: Any = lance.write_dataset(ROWS, root, max_rows_per_file=4, enable_stable_row_ids=True)
    dataset.create_scalar_index(KINDS[kind], kind)
    return lance.dataset(root)


def following(before: Snapshot, transaction: Transaction) -> tuple[IndexMetadata, ...]:
    """The indexes of the version that a transaction makes of another."""
    return next_manifest(before.manifest, before.indexes(), transaction, Settings(timestamp=1)).indexes


def covered(index: IndexMetadata) -> list[int]:
    assert index.fragment_bitmap is not None
    return list(BitMap.deserialize(index.fragment_bitmap))


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_covers_after_a_compaction_what_it_does_by_pylance(tmp_path: Path, kind: str) -> None:
    indexed(tmp_path, kind).optimize.compact_files()
    after = opened(tmp_path)
    before = opened(tmp_path, after.version - 1)
    transaction = after.transaction()
    assert transaction is not None
    assert isinstance(transaction.operation, op.Rewrite)
    ours = following(before, transaction)
    assert [covered(item) for item in ours] == [covered(item) for item in after.indexes()]
    # Without the index rewritten along, what names rows by address must forget those that moved.
    left = following(before, replace(transaction, operation=op.Rewrite(transaction.operation.groups)))[0]
    assert covered(left) == ([] if holds_addresses(left) else [3])


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_covers_after_an_update_what_it_does_by_pylance(tmp_path: Path, kind: str) -> None:
    indexed(tmp_path, kind).update({"x": "x + 100"}, where="k < 2")
    after = opened(tmp_path)
    before = opened(tmp_path, after.version - 1)
    transaction = after.transaction()
    assert transaction is not None
    assert isinstance(transaction.operation, op.Update)
    ours = following(before, transaction)
    assert [covered(item) for item in ours] == [covered(item) for item in after.indexes()]


def test_kinds_that_nobody_knows_are_taken_to_name_rows_by_id() -> None:
    assert not holds_addresses(IndexMetadata(uuid4(), "i", (0,)))
