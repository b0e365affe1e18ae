"""Maintenance of tables, as users name it."""

from __future__ import annotations

from lancelet.dataset.optimizing import DatasetOptimizer

__all__ = ["DatasetOptimizer"]
