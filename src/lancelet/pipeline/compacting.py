"""Compaction as a step of a pipeline: what the table object does, planned and told in the words of runs."""

from __future__ import annotations

from lancelet.ops.compaction.options import CompactionOptions
from lancelet.ops.compaction.plan import plan_compaction
from lancelet.pipeline.declaration import Compact
from lancelet.pipeline.figures import StepFigures, StepPlan
from lancelet.pipeline.state import TableState
from lancelet.spark.table import LanceTable

__all__ = ["compacted", "plan_compact"]


def plan_compact(state: TableState, compact: Compact) -> StepPlan:
    """What would be written anew now; what this run writes comes on top."""
    if not state.exists:
        return StepPlan("compact", "once there are rows")
    options = CompactionOptions(target_rows_per_fragment=compact.target_rows_per_fragment)
    plan = plan_compaction(state.address.open(), options)
    if not plan.tasks:
        return StepPlan("compact", "nothing to put together", idle=True)
    return StepPlan("compact", f"{len(plan.tasks)} tasks: {plan.cost}", facts={"tasks": len(plan.tasks)})


def compacted(state: TableState, compact: Compact) -> StepFigures:
    """Small fragments put together, deleted rows left out; fragments that others change meanwhile stay as they are."""
    table = LanceTable.forPath(state.spark, state.uri, storage_options=state.storage_options)
    made = table.compact(compact.target_rows_per_fragment)
    if not made.fragments_removed:
        return StepFigures("compact", "nothing to put together", 0.0, idle=True)
    what = f"{made.fragments_removed} fragments became {made.fragments_added}"
    facts = {"fragments_removed": made.fragments_removed, "fragments_added": made.fragments_added}
    return StepFigures("compact", what, 0.0, facts=facts)
