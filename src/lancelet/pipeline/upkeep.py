"""What follows the write: indexes, compaction, cleanup; each looks at the table for what there is to do."""

from __future__ import annotations

from datetime import timedelta

from lancelet.dataset.index_request import kind_of_request
from lancelet.ops.index.create import plan_create_index
from lancelet.ops.index.describe import DescribedIndex, described_indexes
from lancelet.ops.job import readable_bytes
from lancelet.pipeline.declaration import Cleanup, Index
from lancelet.pipeline.figures import StepFigures, StepPlan
from lancelet.pipeline.state import TableState
from lancelet.spark.table import LanceTable
from lancelet.table.cleanup import CleanupPlan, plan_cleanup
from lancelet.table.cleanup_policy import CleanupPolicy

__all__ = ["cleaned_up", "indexed", "plan_clean_up", "plan_index"]


def table_of(state: TableState) -> LanceTable:
    """The table object."""
    return LanceTable.forPath(state.spark, state.uri, storage_options=state.storage_options)


def _existing(state: TableState, index: Index) -> tuple[DescribedIndex | None, int]:
    """The index that is declared, if there is one, and how many rows it does not cover."""
    snapshot = state.address.open()
    total = snapshot.count_rows() or 0
    for item in described_indexes(snapshot):
        same_kind = item.label.replace("_", "").upper() == index.type.replace("_", "").upper()
        if item.name == index.name or (index.name is None and item.columns == (index.column,) and same_kind):
            return item, total - item.rows
    return None, total


def plan_index(state: TableState, index: Index) -> StepPlan:
    """What would be done for an index."""
    name = f"{index.type} on {index.column}"
    if not state.exists:
        return StepPlan("index", f"{name}: made once there are rows")
    found, rows = _existing(state, index)
    if found is None:
        kind, said = kind_of_request(index.type, index.parameters)
        made = plan_create_index(state.address.open(), index.column, kind, name=index.name, parameters=said)
        return StepPlan("index", f"{name}: made of {rows:,} rows, {made.cost}", facts={"rows": rows})
    if not rows:
        return StepPlan("index", f"{name}: up to date", idle=True)
    return StepPlan("index", f"{name}: {rows:,} rows put in", facts={"rows": rows})


def indexed(state: TableState, index: Index) -> StepFigures:
    """The index made, or brought up to date."""
    name = f"{index.type} on {index.column}"
    found, rows = _existing(state, index)
    table = table_of(state)
    if found is None and rows:
        made = table.createIndex(index.column, index.type, index.name, parameters=index.parameters)
        what = f"{name}: made of {made.num_rows:,} rows, {readable_bytes(made.num_bytes)}"
        return StepFigures("index", what, 0.0, facts={"rows": made.num_rows, "bytes": made.num_bytes})
    if found is None or not rows:
        return StepFigures("index", f"{name}: up to date", 0.0, idle=True)
    table.optimizeIndices([found.name])
    return StepFigures("index", f"{name}: {rows:,} rows put in", 0.0, facts={"rows": rows})


def _plan(state: TableState, cleanup: Cleanup) -> CleanupPlan:
    hours = cleanup.retention_hours
    policy = CleanupPolicy(
        older_than=None if hours is None else timedelta(hours=hours),
        retain_versions=cleanup.retain_versions,
        error_if_tagged=False,
    )
    return plan_cleanup(state.address.open(), policy)


def plan_clean_up(state: TableState, cleanup: Cleanup) -> StepPlan:
    """What would be removed now."""
    if not state.exists:
        return StepPlan("cleanup", "nothing to remove", idle=True)
    plan = _plan(state, cleanup)
    if not plan.versions and not plan.files:
        return StepPlan("cleanup", "nothing to remove", idle=True)
    what = f"{len(plan.versions)} versions and {len(plan.files)} files of {readable_bytes(plan.total_bytes)} removed"
    return StepPlan("cleanup", what, facts={"versions": len(plan.versions), "files": len(plan.files)})


def cleaned_up(state: TableState, cleanup: Cleanup) -> StepFigures:
    """Old versions and their files removed."""
    made = table_of(state).vacuum(cleanup.retention_hours, retainVersions=cleanup.retain_versions, errorIfTagged=False)
    if not made.num_versions and not made.num_bytes:
        return StepFigures("cleanup", "nothing to remove", 0.0, idle=True)
    what = f"{made.num_versions} versions and {readable_bytes(made.num_bytes)} removed"
    return StepFigures("cleanup", what, 0.0, facts={"versions": made.num_versions, "bytes": made.num_bytes})
