"""Builders of merges: what becomes of rows, clause by clause, in the manner of Delta's table object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lancelet.errors import InvalidInput
from lancelet.ops.attempts import Attempts
from lancelet.spark.changing import Action
from lancelet.spark.conditions import Expression
from lancelet.spark.handle import Handle
from lancelet.spark.merging import Merge, MergeClause, Side, merge_rows
from lancelet.spark.row_changes import PATIENCE, ChangeFigures

__all__ = ["LanceMergeBuilder"]


@dataclass(frozen=True)
class LanceMergeBuilder:
    """A merge of a source into a table. Each method gives a builder with one clause more.

    Of the clauses for rows of one kind the first whose condition is true counts. Conditions and values are Spark's
    SQL or columns, over the names of the table and of the source, as both are called by their aliases.

        table.alias("t").merge(changes.alias("s"), "t.id = s.id")
             .whenMatchedDelete("s.gone")
             .whenMatchedUpdateAll()
             .whenNotMatchedInsertAll("not s.gone")
             .execute()
    """

    handle: Handle
    merge: Merge
    attempts: Attempts = PATIENCE
    message: str | None = None
    properties: Mapping[str, str] | None = None

    def whenMatchedUpdate(
        self, condition: Expression | None = None, set: Mapping[str, Expression] | None = None
    ) -> LanceMergeBuilder:
        """Rows on both sides get new values in the columns that ``set`` names."""
        return self._with(Side.BOTH, Action.UPDATE, condition, _given(set, "set"))

    def whenMatchedUpdateAll(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Rows on both sides get the source's values in all columns that it has; its other columns are passed over."""
        return self._with(Side.BOTH, Action.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Rows of the table that the source has are deleted."""
        return self._with(Side.BOTH, Action.DELETE, condition, {})

    def whenNotMatchedInsert(
        self, condition: Expression | None = None, values: Mapping[str, Expression] | None = None
    ) -> LanceMergeBuilder:
        """Rows that only the source has become new rows; columns without a value are null."""
        return self._with(Side.SOURCE, Action.INSERT, condition, _given(values, "values"))

    def whenNotMatchedInsertAll(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """The same with the source's values in all columns that it has."""
        return self._with(Side.SOURCE, Action.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: Expression | None = None, set: Mapping[str, Expression] | None = None
    ) -> LanceMergeBuilder:
        """Rows that only the table has get new values."""
        return self._with(Side.TABLE, Action.UPDATE, condition, _given(set, "set"))

    def whenNotMatchedBySourceDelete(self, condition: Expression | None = None) -> LanceMergeBuilder:
        """Rows that only the table has are deleted."""
        return self._with(Side.TABLE, Action.DELETE, condition, {})

    def retries(self, count: int, seconds: float = PATIENCE.timeout) -> LanceMergeBuilder:
        """How often, and for how long, the merge is worked out anew where others change the same rows first."""
        return replace(self, attempts=Attempts(count, seconds))

    def withMessage(self, message: str) -> LanceMergeBuilder:
        """What the history says about the version."""
        return replace(self, message=message)

    def withProperties(self, properties: Mapping[str, str]) -> LanceMergeBuilder:
        """What the transaction says of itself besides, which ``history`` tells."""
        return replace(self, properties={**(self.properties or {}), **properties})

    def execute(self) -> ChangeFigures:
        """Carry it out: one commit, and the source is evaluated once.

        InvalidInput where several rows of the source would change one row of the table.
        """
        return merge_rows(
            self.handle, self.merge, attempts=self.attempts, message=self.message, properties=self.properties
        )

    def _with(
        self, side: Side, action: Action, condition: Expression | None, values: Mapping[str, Expression] | None
    ) -> LanceMergeBuilder:
        clause = MergeClause(side, action, condition, values)
        return replace(self, merge=replace(self.merge, clauses=(*self.merge.clauses, clause)))


def _given(values: Mapping[str, Expression] | None, name: str) -> Mapping[str, Expression]:
    if not values:
        raise InvalidInput(f"no column is given a value by {name!r}", hint="name a column and an expression for it")
    return dict(values)
