"""What gives new columns their values: expressions over the columns there are, or a function of batches of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr import Expr, parse_value
from lancelet.ops.backfill.fields import NewFields, new_fields
from lancelet.ops.backfill.nullability import may_be_null
from lancelet.query.request import ScanRequest, bound_schema, request_for
from lancelet.table.snapshot import Snapshot

__all__ = ["Expressions", "Transform", "Values"]

_BATCH = 8192


class Values(Protocol):
    """What new columns get. It pickles, and it is the same for every version of a table: a later one may be tried."""

    @property
    def serial(self) -> bool:
        """Whether it must not be called by several threads at a time."""

    def key(self) -> str:
        """Text by which work done for it before is told from work for something else."""

    def fields(self, snapshot: Snapshot) -> NewFields:
        """The fields that get values. InvalidInput where a version does not fit."""

    def request(self, snapshot: Snapshot) -> ScanRequest:
        """What it looks at, of all rows."""

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A row of values for each row of a batch of what was asked for."""


@dataclass(frozen=True, slots=True)
class Expressions:
    """SQL expressions over the columns there are, by the names of new columns.

    >>> Expressions((("double", "x * 2"),)).key()
    '[["double", "x * 2"]]'
    """

    columns: tuple[tuple[str, str], ...]

    @property
    def serial(self) -> bool:
        """Anybody may compute them."""
        return False

    def key(self) -> str:
        """The expressions."""
        return json.dumps(self.columns)

    def _bound(self, schema: pa.Schema) -> tuple[tuple[str, Expr], ...]:
        return tuple((name, parse_value(text, schema)) for name, text in self.columns)

    def fields(self, snapshot: Snapshot) -> NewFields:
        """Columns of the expressions' types; those that can never be null may not be."""
        schema = bound_schema(snapshot.schema)
        made = [pa.field(name, expr.type, may_be_null(expr, schema)) for name, expr in self._bound(schema)]
        return new_fields(snapshot, pa.schema(made))

    def request(self, snapshot: Snapshot) -> ScanRequest:
        """The values, computed by the scan."""
        return ScanRequest(columns=self._bound(bound_schema(snapshot.schema)), batch_size=2**16)

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch itself."""
        return batch


@dataclass(frozen=True, slots=True)
class Transform:
    """A function of batches: it gets some columns of some rows, and returns a batch of as many rows of new columns."""

    function: Callable[[pa.RecordBatch], pa.RecordBatch]
    schema: pa.Schema
    #: The columns that it gets; None for all.
    columns: tuple[str, ...] | None = None
    batch_size: int = _BATCH
    #: By what name it is known between processes that carry on each other's work.
    name: str = ""

    @property
    def serial(self) -> bool:
        """What a function does besides is not known."""
        return True

    def key(self) -> str:
        """The name, and what it is given: another number of rows would be other batches."""
        return json.dumps([self.name, self.columns, self.batch_size])

    def fields(self, snapshot: Snapshot) -> NewFields:
        """Columns of the schema."""
        return new_fields(snapshot, self.schema)

    def request(self, snapshot: Snapshot) -> ScanRequest:
        """The columns, in batches of exactly the size that was asked for."""
        columns: Sequence[str] | None = self.columns
        if columns is None:
            columns = bound_schema(snapshot.schema).names[: len(snapshot.schema.fields)]
        found = request_for(snapshot, columns, batch_size=self.batch_size)
        return replace(found, strict_batch_size=True)

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What the function returns; InvalidInput where it is not what was promised."""
        made = self.function(batch)
        if not isinstance(made, pa.RecordBatch):
            found = f"the function returned a {type(made).__name__}"
            raise InvalidInput(f"{found}, expected a pyarrow.RecordBatch")
        if made.num_rows != batch.num_rows:
            raise InvalidInput(f"the function returned {made.num_rows} rows for {batch.num_rows}, expected as many")
        if not made.schema.equals(self.schema, check_metadata=False):
            found = _briefly(made.schema)
            raise InvalidInput(f"the function returned columns {found}, expected {_briefly(self.schema)}")
        return made


def _briefly(schema: pa.Schema) -> str:
    return ", ".join(f"{item.name}: {item.type}{'' if item.nullable else ' not null'}" for item in schema)
