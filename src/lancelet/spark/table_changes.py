"""Changes of rows through the table object: deleted, updated, merged."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from lancelet.spark.conditions import Expression
from lancelet.spark.merging import Merge
from lancelet.spark.row_changes import ChangeFigures, delete_rows, update_rows
from lancelet.spark.table_core import TableCore
from lancelet.spark.table_merge import LanceMergeBuilder

__all__ = ["TableChanges"]


class TableChanges(TableCore):
    """What changes rows. Conditions and values are Spark's SQL, or columns of functions; each change is a commit."""

    def delete(self, condition: Expression | None = None, *, message: str | None = None) -> ChangeFigures:
        """Delete the rows for which a condition is true, all if there is none; what is false or null stays.

        table.delete("day < date'2026-01-01'")
        """
        return delete_rows(self._writable(), condition, message=message)

    def update(
        self,
        condition: Expression | None = None,
        set: Mapping[str, Expression] | None = None,
        *,
        message: str | None = None,
    ) -> ChangeFigures:
        """Give columns new values in the rows for which a condition is true; expressions see the values before.

        table.update("label is null", {"label": "'none'"})
        """
        return update_rows(self._writable(), condition, set or {}, message=message)

    def merge(self, source: DataFrame, condition: Expression) -> LanceMergeBuilder:
        """A merge of a frame into the table, to be told what becomes of rows: see :class:`LanceMergeBuilder`.

        Without an alias of its own the table is called ``target``, the source ``source``.
        """
        return LanceMergeBuilder(self._writable(), Merge(source, condition, ()))
