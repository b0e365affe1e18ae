"""Compaction as a step: the table's plan carried out by tasks of Spark, and committed beside what others commit."""

from __future__ import annotations

from lancelet.ops.compaction.commit import commit_compaction, discard_compacted
from lancelet.ops.compaction.compact import Figures, figures_of
from lancelet.ops.compaction.options import CompactionOptions
from lancelet.ops.compaction.plan import plan_compaction
from lancelet.pipeline.declaration import Compact
from lancelet.pipeline.figures import StepFigures, StepPlan
from lancelet.pipeline.state import TableState
from lancelet.spark.jobs import Job
from lancelet.spark.jobs import committed as committed_job
from lancelet.spark.row_changes import PATIENCE
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["compacted", "plan_compact"]


class _NothingToDo(Exception):
    """There is no task."""


def _options(compact: Compact) -> CompactionOptions:
    return CompactionOptions(target_rows_per_fragment=compact.target_rows_per_fragment)


def plan_compact(state: TableState, compact: Compact) -> StepPlan:
    """What would be written anew now; what this run writes comes on top."""
    if not state.exists:
        return StepPlan("compact", "once there are rows")
    plan = plan_compaction(state.address.open(), _options(compact))
    if not plan.tasks:
        return StepPlan("compact", "nothing to put together", idle=True)
    return StepPlan("compact", f"{len(plan.tasks)} tasks: {plan.cost}", facts={"tasks": len(plan.tasks)})


def compacted(state: TableState, compact: Compact) -> StepFigures:
    """Small fragments put together, deleted rows left out; fragments that others change meanwhile stay as they are."""

    def attempt(job: Job, snapshot: Snapshot) -> tuple[Outcome, Figures]:
        plan = plan_compaction(snapshot, _options(compact))
        if not plan.tasks:
            raise _NothingToDo
        results = job.run(plan)
        job.journal.committing()
        done = commit_compaction(snapshot, results, partial=True, options=job.options)
        if isinstance(done.outcome, Committed):
            discard_compacted(snapshot.store, done.overtaken)
        return done.outcome, figures_of(done.taken)

    try:
        made = committed_job(state.spark, state.address, "compact", attempt, attempts=PATIENCE).value
    except _NothingToDo:
        return StepFigures("compact", "nothing to put together", 0.0, idle=True)
    what = f"{made.fragments_removed} fragments became {made.fragments_added}"
    facts = {"fragments_removed": made.fragments_removed, "fragments_added": made.fragments_added}
    return StepFigures("compact", what, 0.0, facts=facts)
