"""Values of new columns that tasks of Spark compute: expressions in Lance's SQL, and functions of batches, together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import TypeAlias

import pyarrow as pa

from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.udf import BatchUDF, as_batch
from lancelet.errors import InvalidInput
from lancelet.expr import Expr, parse_value
from lancelet.ops.backfill.fields import NewFields, new_fields
from lancelet.ops.backfill.nullability import may_be_null
from lancelet.query.request import ScanRequest, bound_schema, request_for
from lancelet.table.snapshot import Snapshot

__all__ = ["ColumnFunction", "ColumnValues", "NewColumns", "column_values"]

#: A function of batches whose result is one column: anything that ``pyarrow.array`` takes.
ColumnFunction: TypeAlias = "Callable[[pa.RecordBatch], object]"
#: For each new column an expression or a function; or a function of batches that makes all of them.
NewColumns: TypeAlias = "Mapping[str, str | ColumnFunction] | BatchUDF | Callable[[pa.RecordBatch], object]"


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """New columns, each by an expression or by a function; see :class:`lancelet.ops.backfill.values.Values`."""

    expressions: tuple[tuple[str, str], ...]
    #: A function of batches, and the columns that it makes; None where there are expressions alone.
    function: Callable[[pa.RecordBatch], pa.RecordBatch] | None
    made: pa.Schema
    #: All new columns, as they are to follow each other.
    names: tuple[str, ...]
    #: What the function gets; None for all columns.
    read: tuple[str, ...] | None
    batch_size: int
    #: By what the function is told from others, also in other processes.
    known_as: str

    @property
    def serial(self) -> bool:
        """A task of Spark computes by itself anyhow."""
        return self.function is not None

    def key(self) -> str:
        """The expressions, and what the function is and gets."""
        return json.dumps([self.expressions, self.names, self.read, self.batch_size, self.known_as, str(self.made)])

    def _bound(self, schema: pa.Schema) -> dict[str, Expr]:
        return {name: parse_value(text, schema) for name, text in self.expressions}

    def fields(self, snapshot: Snapshot) -> NewFields:
        """The columns in their order."""
        schema = bound_schema(snapshot.schema)
        made = {
            name: pa.field(name, expr.type, may_be_null(expr, schema)) for name, expr in self._bound(schema).items()
        }
        made |= {item.name: item for item in self.made}
        return new_fields(snapshot, pa.schema([made[name] for name in self.names]))

    def request(self, snapshot: Snapshot) -> ScanRequest:
        """What the function gets, and behind it the values of expressions."""
        schema = bound_schema(snapshot.schema)
        found = request_for(snapshot, self._read(snapshot), batch_size=self.batch_size)
        values = tuple((f"={name}", expr) for name, expr in self._bound(schema).items())
        return replace(found, columns=(*(found.columns or ()), *values), strict_batch_size=self.function is not None)

    def _read(self, snapshot: Snapshot) -> Sequence[str]:
        if self.function is None:
            return ()
        return [item.name for item in snapshot.schema.fields] if self.read is None else self.read

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The values for a batch of what was asked for."""
        own = batch.num_columns - len(self.expressions)
        found = {name: batch.column(own + place) for place, (name, _) in enumerate(self.expressions)}
        if self.function is not None:
            made = self.function(batch.select(range(own)))
            _check(made, self.made, batch.num_rows)
            found |= dict(zip(made.schema.names, made.columns, strict=True))
        return pa.record_batch([found[name] for name in self.names], names=list(self.names))


def _check(made: pa.RecordBatch, schema: pa.Schema, rows: int) -> None:
    if made.num_rows != rows:
        raise InvalidInput(f"the function returned {made.num_rows} rows for {rows}, expected as many")
    if made.schema.names != schema.names or made.schema.types != schema.types:
        raise InvalidInput(f"the function returned columns {_briefly(made.schema)}, expected {_briefly(schema)}")


def _briefly(schema: pa.Schema) -> str:
    return ", ".join(f"{item.name}: {item.type}" for item in schema)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A function that makes all columns, whatever it returns as a batch."""

    function: Callable[[pa.RecordBatch], object]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return as_batch(self.function(batch))


@dataclass(frozen=True, slots=True)
class _Each:
    """A function for each column; the types are those of ``kinds`` once they are known."""

    functions: tuple[tuple[str, ColumnFunction], ...]
    kinds: tuple[pa.DataType, ...] = ()

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        made = []
        for place, (name, function) in enumerate(self.functions):
            kind = self.kinds[place] if self.kinds else None
            try:
                made.append(_array(function(batch), kind))
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                expected = "" if kind is None else f", expected values of type {kind}"
                raise InvalidInput(f"what the function returned is no column: {error}{expected}", column=name) from None
        return pa.record_batch(made, names=[name for name, _ in self.functions])


def _array(found: object, kind: pa.DataType | None) -> pa.Array:
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if isinstance(found, pa.Array):
        return found if kind is None or found.type == kind else found.cast(kind)
    return pa.array(found, type=kind)


def column_values(
    given: NewColumns,
    dataset: LanceDataset,
    *,
    read: Sequence[str] | None = None,
    output_schema: pa.Schema | None = None,
    batch_size: int = 1024,
) -> ColumnValues:
    """What users gave, as tasks take it. A function is tried on the first rows where the schema is not given."""
    columns = None if read is None else tuple(read)
    if not isinstance(given, Mapping):
        if not callable(given):
            raise TypeError(f"new columns are a dict of expressions and functions, or a function, got {given!r}")
        schema = output_schema if output_schema is not None else getattr(given, "output_schema", None)
        whole = _Whole(given.func if isinstance(given, BatchUDF) else given)
        schema = _tried(whole, dataset, columns, batch_size) if schema is None else schema
        return ColumnValues((), whole, schema, tuple(schema.names), columns, batch_size, _known_as(whole.function))
    odd = next((name for name, value in given.items() if not (isinstance(value, str) or callable(value))), None)
    if odd is not None or not given:
        found = "no new column is given" if odd is None else f"column {odd!r} is given by {given[odd]!r}"
        raise InvalidInput(found, column=odd, hint="give an expression in Lance's SQL, or a function of batches")
    spark = next((name for name, value in given.items() if hasattr(value, "evalType")), None)
    if spark is not None:
        hint = "give the function itself: it gets a pyarrow.RecordBatch"
        raise InvalidInput("a function of Spark gets columns of a frame, not batches", column=spark, hint=hint)
    texts = tuple((name, value) for name, value in given.items() if isinstance(value, str))
    functions = tuple((name, value) for name, value in given.items() if not isinstance(value, str))
    if not functions:
        return ColumnValues(texts, None, pa.schema([]), tuple(given), (), 2**16, "")
    each = _Each(functions)
    schema = _tried(each, dataset, columns, batch_size) if output_schema is None else _ordered(output_schema, functions)
    each = replace(each, kinds=tuple(schema.types))
    known = " ".join(_known_as(function) for _, function in functions)
    return ColumnValues(texts, each, schema, tuple(given), columns, batch_size, known)


def _ordered(schema: pa.Schema, functions: Sequence[tuple[str, ColumnFunction]]) -> pa.Schema:
    names = [name for name, _ in functions]
    if sorted(schema.names) != sorted(names):
        raise InvalidInput(f"the schema has columns {schema.names}, functions are given for {names}")
    return pa.schema([schema.field(name) for name in names])


def _tried(
    function: Callable[[pa.RecordBatch], pa.RecordBatch],
    dataset: LanceDataset,
    columns: Sequence[str] | None,
    most: int,
) -> pa.Schema:
    """The schema of what a function makes of the first row; of a whole batch, where that tells no type."""
    for count in (1, most):
        rows = dataset.to_table(columns=None if columns is None else list(columns), limit=count)
        if not rows.num_rows:
            raise InvalidInput("there is no row that the function could be tried on", hint="give outputSchema")
        schema = function(rows.combine_chunks().to_batches()[0]).schema
        nameless = next((item.name for item in schema if pa.types.is_null(item.type)), None)
        if nameless is None:
            return schema
    found = f"the function makes nothing but nulls of the first {most} rows, which tells no type"
    raise InvalidInput(found, column=nameless, hint="give outputSchema")


def _known_as(function: object) -> str:
    """The name of a function and a digest of its code: what it reads from elsewhere may change all the same."""
    named = function if hasattr(function, "__qualname__") else type(function)
    text = f"{named.__module__}.{named.__qualname__}"
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return text if code is None else f"{text}:{hashlib.sha256(_code(code).encode()).hexdigest()[:16]}"


def _code(code: CodeType) -> str:
    constants = [_code(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts]
    return repr((code.co_code, code.co_names, constants))
