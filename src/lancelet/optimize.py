"""Maintenance of tables, as users name it."""

from __future__ import annotations

from lancelet.dataset.compacting import (
    Compaction,
    CompactionMetrics,
    CompactionOptions,
    CompactionPlan,
    CompactionTask,
    RewriteResult,
)
from lancelet.dataset.optimizing import DatasetOptimizer
from lancelet.ops.doctor import Diagnosis, Finding, Need

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "DatasetOptimizer",
    "Diagnosis",
    "Finding",
    "Need",
    "RewriteResult",
]
