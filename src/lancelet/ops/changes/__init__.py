"""Changes between two versions of a table, as rows: what was inserted, updated and deleted, in bounded batches.

    pair = Pair.of(before, after)                 # two snapshots; None before means that there was nothing
    plan = plan_changes(pair, ChangesRequest())   # pure data, pickles: tasks of a few fragments each
    for task in plan.tasks:                       # on any machine that can open the same two versions
        for batch in run_changes(plan, task, pair):
            ...

Every batch has the schema ``plan.schema``: the columns asked for as ``after`` has them, and last ``_change_type``,
which is "insert", "update_preimage", "update_postimage" or "delete". Rows before a change come from the tasks of the
side "before", rows after it from those of the side "after", so that the two images of a row are not neighbours: ask
for ``_rowid`` among the columns to bring them together.

In a table with stable row ids a row is followed wherever it is moved, and was updated if its version of last change is
another one. Without them a row is its address: that is exact as long as rows were only appended, deleted, overwritten,
restored or given columns in place; otherwise :func:`plan_changes` says what the table lacks. A version that only moved
rows has no changes, so that whoever follows a table goes version by version: :func:`version_pairs`.

What a net comparison of two versions cannot tell, the path between them, is in their transactions.
"""

from __future__ import annotations

from lancelet.ops.changes.plan import ChangesPlan, ChangesTask, Side, plan_changes, version_pairs
from lancelet.ops.changes.request import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    KINDS,
    POSTIMAGE,
    PREIMAGE,
    ChangesRequest,
    Pair,
)
from lancelet.ops.changes.run import run_changes

__all__ = [
    "CHANGE_TYPE",
    "DELETE",
    "INSERT",
    "KINDS",
    "POSTIMAGE",
    "PREIMAGE",
    "ChangesPlan",
    "ChangesRequest",
    "ChangesTask",
    "Pair",
    "Side",
    "plan_changes",
    "run_changes",
    "version_pairs",
]
