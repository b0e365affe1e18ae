"""Handles: a table as the methods of the table object see it, and frames of its rows with their addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from lancelet.expr import Expr
from lancelet.format.arrow import schema_to_arrow
from lancelet.query.request import ROW_ADDRESS
from lancelet.spark.address import Address
from lancelet.spark.changing import ADDRESS
from lancelet.spark.choices import Choices
from lancelet.spark.conditions import Expression, named_columns, same_meaning
from lancelet.spark.frames import read_frame
from lancelet.spark.options import ReadOptions
from lancelet.table.snapshot import Snapshot

__all__ = ["Handle", "addressed_rows"]


@dataclass(frozen=True, slots=True)
class Handle:
    """A table in a session: the version, if one is named, what expressions call it, and how values are shown."""

    spark: SparkSession
    address: Address
    alias: str | None = None
    choices: Choices = field(default_factory=Choices)
    #: Whether progress is drawn; None: only on a terminal.
    progress: bool | None = None

    @property
    def name(self) -> str:
        """What expressions may call the table."""
        return self.alias or "target"

    def at(self, snapshot: Snapshot) -> Handle:
        """The handle of just one version."""
        return replace(self, address=self.address.pinned(snapshot))


def addressed_rows(
    handle: Handle,
    snapshot: Snapshot,
    expressions: Sequence[Expression | None],
    *,
    condition: Expression | None = None,
    filter: Expr | None = None,
) -> DataFrame:
    """The rows of a version with the columns that expressions name, and their addresses.

    Rows of which it is certain that ``condition`` is not true of them may be left out.
    """
    names = [item.name for item in snapshot.schema.fields]
    known = {item.name: item.type for item in schema_to_arrow(snapshot.schema)}
    asked = ReadOptions(
        columns=(*named_columns(names, [*expressions, condition]), ROW_ADDRESS),
        filter=same_meaning(condition, known, handle.name) if filter is None else filter,
        choices=handle.choices,
    )
    frame = read_frame(handle.spark, handle.address.pinned(snapshot), asked)
    return frame.withColumnRenamed(ROW_ADDRESS, ADDRESS).alias(handle.name)
