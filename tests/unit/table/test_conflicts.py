"""The conflict table itself: whole, and each rule on both sides of its line."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest

from lancelet.errors import Unsupported
from lancelet.format import operations as op
from lancelet.format.fragments import DataFile, DeletionFile, DeletionKind, Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import BasePath
from lancelet.format.transaction import Transaction
from lancelet.rows.bitmaps import BitMap, write_bitmap
from lancelet.table.conflicts import CELLS, RULES, Ours, check_conflict, check_conflicts
from lancelet.testing.tables import TWO_COLUMNS

FILES = (DataFile("x.lance", (0, 1), (0, 1), 2, 2, 1),)
PLAIN = Fragment(0, FILES, physical_rows=10)
DELETED = replace(PLAIN, deletion_file=DeletionFile(DeletionKind.ARROW_ARRAY, 1, 5, 1))
WIDER = replace(PLAIN, files=(*FILES, DataFile("y.lance", (2,), (0,), 2, 2, 1)))


def index(name: str, field: int, fragments: set[int] | None) -> op.CreateIndex:
    bitmap = None if fragments is None else write_bitmap(BitMap(fragments))
    return op.CreateIndex((IndexMetadata(UUID(int=1), name, (field,), fragment_bitmap=bitmap),))


def replacement(fragment: int, field: int) -> op.DataReplacement:
    return op.DataReplacement((op.DataReplacementGroup(fragment, DataFile("n.lance", (field,), (0,))),))


def config(**values: str | None) -> op.UpdateConfig:
    return op.UpdateConfig(op.MapUpdate(tuple(values.items())))


def inserted(*hashes: int) -> op.Update:
    return op.Update(new_fragments=(PLAIN,), inserted_rows=op.KeyFilter((0,), op.ExactKeys(hashes)))


def bloom(bits: int) -> op.Update:
    keys = op.BloomKeys(bits.to_bytes(8, "little"), 64, 1, 0.1)
    return op.Update(new_fragments=(PLAIN,), inserted_rows=op.KeyFilter((0,), keys))


def test_the_table_is_square_and_every_cell_means_something() -> None:
    names = {row for row, _ in CELLS}
    assert {column for _, column in CELLS} == names
    assert len(CELLS) == len(names) ** 2 == 15**2
    assert set(CELLS.values()) - {".", "retry", "never"} == set(RULES)


REWRITE = op.Rewrite((op.RewriteGroup((PLAIN,), (Fragment(9, FILES, physical_rows=10),)),))
DROP = op.Project(replace(TWO_COLUMNS, fields=TWO_COLUMNS.fields[:1]))
RENAME = replace(DROP, preserves_nullability=True)

CASES = {
    "appends pass": (op.Append(()), op.Append(()), "pass"),
    "deletes of unlike fragments pass": (op.Delete((DELETED,)), op.Delete((replace(DELETED, id=1),)), "pass"),
    "a fragment deleted whole is lost to others": (op.Delete((DELETED,)), op.Delete((), (0,)), "retry"),
    "a column in place and rows of one fragment": (op.Delete((DELETED,)), op.Update((), (WIDER,)), "retry"),
    "a rewrite of a fragment": (op.Delete((DELETED,)), REWRITE, "retry"),
    "an index on what was rewritten": (index("i", 0, {0, 1}), REWRITE, "retry"),
    "an index on other fragments": (index("i", 0, {1}), REWRITE, "pass"),
    "an index that does not say": (index("i", 0, None), REWRITE, "retry"),
    "a rewrite after an index": (REWRITE, index("i", 0, {0}), "retry"),
    "two indexes of one name": (index("i", 0, {1}), index("i", 1, {1}), "retry"),
    "two indexes": (index("i", 0, {1}), index("j", 0, {1}), "pass"),
    "an index on replaced values": (index("i", 1, {0}), replacement(0, 1), "retry"),
    "an index on other values": (index("i", 0, {0}), replacement(0, 1), "pass"),
    "values under a new index": (replacement(0, 1), index("i", 1, {0}), "retry"),
    "one column replaced twice": (replacement(0, 1), replacement(0, 1), "retry"),
    "two columns replaced": (replacement(0, 1), replacement(0, 0), "pass"),
    "values of a fragment that is gone": (replacement(0, 1), op.Delete((), (0,)), "never"),
    "values of rows that moved": (replacement(0, 1), op.Update((), (DELETED,)), "retry"),
    "values of a dropped field": (replacement(0, 1), RENAME, "never"),
    "an index on a dropped field": (index("i", 1, {0}), DROP, "retry"),
    "rows for a new schema": (op.Append(()), DROP, "retry"),
    "rows for a schema that takes them": (op.Append(()), RENAME, "pass"),
    "a new schema over new rows": (DROP, op.Append(()), "retry"),
    "a renaming over new rows": (RENAME, op.Append(()), "pass"),
    "one key set twice": (config(k="1"), config(k="2"), "never"),
    "one key set and removed": (config(k="1"), config(k=None), "never"),
    "one key removed twice": (config(k=None), config(k=None), "pass"),
    "two keys": (config(k="1"), config(j="1"), "pass"),
    "a key that an overwrite sets": (config(k="1"), op.Overwrite((), TWO_COLUMNS, {"k": "2"}), "never"),
    "schema metadata before a restore": (op.Restore(1), op.UpdateConfig(schema_metadata=op.MapUpdate()), "never"),
    "config before a restore": (op.Restore(1), config(k="1"), "pass"),
    "bases of one path": (op.UpdateBases((BasePath(0, "x"),)), op.UpdateBases((BasePath(0, "x"),)), "never"),
    "bases of one name": (
        op.UpdateBases((BasePath(0, "x", name="n"),)),
        op.UpdateBases((BasePath(0, "y", name="n"),)),
        "never",
    ),
    "bases without names": (op.UpdateBases((BasePath(0, "x"),)), op.UpdateBases((BasePath(0, "y"),)), "pass"),
    "one key inserted twice": (inserted(1, 2), inserted(2, 3), "retry"),
    "unlike keys inserted": (inserted(1, 2), inserted(3), "pass"),
    "keys among rows without a filter": (inserted(1), op.Append(()), "retry"),
    "filters with a common bit": (bloom(0b11), bloom(0b10), "retry"),
    "filters without one": (bloom(0b01), bloom(0b10), "pass"),
    "what nobody knows": (op.Append(()), op.Unknown(116), "never"),
    "overlays": (op.Append(()), op.DataOverlay(()), "never"),
    "nothing at all": (op.Append(()), None, "never"),
}


@pytest.mark.parametrize("case", CASES)
def test_ours_passes_theirs_or_not(case: str) -> None:
    ours, theirs, expected = CASES[case]
    clash = check_conflict(Ours(ours, {0: PLAIN}), theirs)
    assert ("pass" if clash is None else "retry" if clash.retryable else "never") == expected


@pytest.mark.parametrize(("theirs", "passes"), [(DELETED, True), (WIDER, False)])
def test_rows_of_one_fragment_are_merged_only_if_known_and_if_nothing_else_changed(
    theirs: Fragment, passes: bool
) -> None:
    rows = {0: np.array([4], np.uint32)}
    assert (check_conflict(Ours(op.Delete((DELETED,)), {0: PLAIN}, rows), op.Delete((theirs,))) is None) is passes
    assert check_conflict(Ours(op.Delete((DELETED,)), {0: PLAIN}), op.Delete((theirs,))) is not None


def test_a_conflict_names_the_version_and_the_operation_that_won() -> None:
    conflict = check_conflicts(Ours(op.Append(())), [(4, Transaction(3, op.Append(()))), (5, Transaction(4, DROP))])
    assert conflict is not None
    assert (conflict.version, conflict.operation, conflict.retryable) == (5, "Project", True)
    assert "Project was committed first" in str(conflict.error("memory://x"))


def test_an_operation_that_is_not_ours_to_make_is_refused() -> None:
    with pytest.raises(Unsupported, match="DataOverlay"):
        check_conflict(Ours(op.DataOverlay(())), op.Append(()))
