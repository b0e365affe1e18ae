"""Matching: which rows of the table the rows of a source change, which are new, and which have to go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr import keep
from lancelet.ops.join.codes import Mask
from lancelet.ops.join.tables import KeyTable, Rows
from lancelet.ops.merge.plan import SOURCE, TARGET, MergePlan
from lancelet.ops.merge.request import Duplicates, Matched
from lancelet.ops.merge.source import key_columns
from lancelet.ops.merge.target import TargetRows
from lancelet.rows.addresses import UInt64s

__all__ = ["Matches", "match_block"]


@dataclass(slots=True)
class Matches:
    """What was found for the rows of one block of a source."""

    #: Addresses of rows that are changed, ascending where windows came so, and for each the row of the block.
    changed: UInt64s
    by: Rows
    #: Addresses of rows that the block does not have and that go if no other block has them either.
    left: list[UInt64s] = field(default_factory=list)
    #: For each row of the block whether its key is in the table.
    known: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    #: Rows of the block that were passed over because one before had the same row of the table.
    skipped: int = 0


def match_block(
    plan: MergePlan, block: pa.Table, windows: Iterable[TargetRows], *, spared: Mask | None = None, last: bool = True
) -> Matches:
    """Hold a block against rows of the table.

    ``spared`` says of these rows, one after the other, which have been found in blocks before, and is brought up to
    date. Which rows are left is known with the last block only.
    """
    table = KeyTable(key_columns(block, plan.keys))
    known = np.zeros(block.num_rows, np.bool_)
    changed: list[UInt64s] = []
    by: list[npt.NDArray[np.int64]] = []
    found = Matches(np.empty(0, np.uint64), np.empty(0, np.int64), known=known)
    begin = 0
    for window in windows:
        asked, rows = table.match(window.keys)
        known[rows] = True
        if len(rows) and plan.request.matched is Matched.FAIL:
            raise _unwanted(plan, block, int(rows[0]))
        if plan.unmatched is not None:
            alone = _alone(window, asked, spared, begin)
            if last:
                found.left.append(window.addresses[alone if window.goes is None else alone & window.goes])
        begin += len(window.addresses)
        if plan.acts_on_matched and len(rows):
            asked, rows = _acting(plan, block, window, asked, rows)
            asked, rows, skipped = _once(plan, block, asked, rows)
            found.skipped += skipped
            changed.append(window.addresses[asked])
            by.append(rows)
    if changed:
        found.changed, found.by = np.concatenate(changed), np.concatenate(by)
    return found


def _alone(window: TargetRows, asked: Rows, spared: Mask | None, begin: int) -> Mask:
    """The rows of a window that no row of this block, or of any before it, has."""
    alone = np.ones(len(window.addresses), np.bool_)
    alone[asked] = False
    if spared is None:
        return alone
    mine = spared[begin : begin + len(alone)]
    mine |= ~alone
    return ~mine


def _acting(plan: MergePlan, block: pa.Table, window: TargetRows, asked: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """The pairs for which the condition is true."""
    if plan.condition is None:
        return asked, rows
    source = block.take(pa.array(rows)).to_struct_array()
    whole = source.combine_chunks() if source.num_chunks != 1 else source.chunk(0)
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    sides = pa.record_batch([whole, window.side(pa.array(asked))], names=[SOURCE, TARGET])
    true = keep(plan.condition, sides)
    return asked[true], rows[true]


def _once(plan: MergePlan, block: pa.Table, asked: Rows, rows: Rows) -> tuple[Rows, Rows, int]:
    """Each row of the table once; pairs of one row stand together."""
    again = np.flatnonzero(asked[1:] == asked[:-1]) + 1 if len(asked) > 1 else asked[:0]
    if not len(again):
        return asked, rows, 0
    if plan.request.duplicates is Duplicates.FAIL:
        raise ambiguous(plan, block, int(rows[again[0]]))
    first = np.ones(len(asked), np.bool_)
    first[again] = False
    return asked[first], rows[first], len(again)


def ambiguous(plan: MergePlan, block: pa.Table, row: int) -> InvalidInput:
    """The error for two rows of a source that are to change one row of the table."""
    found = f"several rows of the source are to change the row of the table with {_key(plan, block, row)}"
    return InvalidInput(found, hint="leave one row for each key in the source")


def _unwanted(plan: MergePlan, block: pa.Table, row: int) -> InvalidInput:
    found = f"the table has a row with {_key(plan, block, row)}, as the source has"
    return InvalidInput(found, hint="the merge was asked to fail then")


def _key(plan: MergePlan, block: pa.Table, row: int) -> str:
    values = [column[0].as_py() for column in key_columns(block.slice(row, 1), plan.keys)]
    return ", ".join(f"{'.'.join(key.path)} = {value!r}" for key, value in zip(plan.keys, values, strict=True))
