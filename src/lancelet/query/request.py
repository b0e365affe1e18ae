"""What is asked of a table: columns, rows, their order and how they are handed out; frozen, with nothing opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr import Column, Expr, parse_filter, parse_value
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.blobs import described_schema
from lancelet.format.fields import Schema
from lancelet.query.nearest import Nearest, search_fields
from lancelet.rows.row_sets import RowSet
from lancelet.table.snapshot import Snapshot

__all__ = [
    "CREATED_AT",
    "LAST_UPDATED_AT",
    "ROW_ADDRESS",
    "ROW_ID",
    "ROW_OFFSET",
    "SYSTEM_COLUMNS",
    "BlobHandling",
    "Columns",
    "Filter",
    "Ordering",
    "ScanRequest",
    "bound_schema",
    "column_named",
    "request_for",
    "searched_schema",
]

#: Columns that no file need hold: what is known of the rows themselves.
ROW_ID, ROW_ADDRESS, ROW_OFFSET = "_rowid", "_rowaddr", "_rowoffset"
CREATED_AT, LAST_UPDATED_AT = "_row_created_at_version", "_row_last_updated_at_version"
SYSTEM_COLUMNS = (ROW_ID, ROW_ADDRESS, ROW_OFFSET, CREATED_AT, LAST_UPDATED_AT)

#: Columns as users name them: a list of paths, or expressions by the names that their values get.
Columns: TypeAlias = "Sequence[str] | Mapping[str, str | Expr]"
#: A condition as users state it.
Filter: TypeAlias = "str | Expr"


class BlobHandling(Enum):
    """What stands for the values of blob columns: the values, or the description of where they lie."""

    ALL_BINARY = "all_binary"
    BLOBS_DESCRIPTIONS = "blobs_descriptions"
    ALL_DESCRIPTIONS = "all_descriptions"


@dataclass(frozen=True, slots=True)
class Ordering:
    """A value that rows are ordered by. NaN is larger than any number, 0.0 larger than -0.0."""

    expr: Expr
    ascending: bool = True
    nulls_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """A question to one version of a table. Every expression is bound to its :func:`bound_schema`.

    The outputs, the order and, where it chooses among rows that were found, the condition of a search may also name
    the columns of :func:`searched_schema`.

    >>> ScanRequest(limit=-1)
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: limit is -1, expected at least 0
    """

    #: What to hand out: a name and what it stands for; None for all stored columns in the order of the schema.
    columns: tuple[tuple[str, Expr], ...] | None = None
    filter: Expr | None = None
    #: The rows to look for by their vectors, handed out by distance.
    nearest: Nearest | None = None
    limit: int | None = None
    offset: int = 0
    order_by: tuple[Ordering, ...] = ()
    #: No batch has more rows, nor, where that is given, many more bytes.
    batch_size: int = 8192
    batch_bytes: int | None = None
    #: Whether all batches but the last have exactly ``batch_size`` rows.
    strict_batch_size: bool = False
    #: The fragments to read by their ids, in this order; None for all.
    fragments: tuple[int, ...] | None = None
    #: For some fragments the physical rows that may be looked at: from the first up to but not including the second.
    ranges: Mapping[int, tuple[int, int]] | None = None
    #: Whether deleted rows that files still hold are handed out; their row ids and addresses are null.
    include_deleted: bool = False
    #: Whether rows come in the order of the table where no other order is asked for.
    in_order: bool = True
    blob_handling: BlobHandling = BlobHandling.BLOBS_DESCRIPTIONS
    use_scalar_index: bool = True
    #: Whether rows that an index does not cover are left out.
    fast_search: bool = False
    #: The only rows that are wanted, by row id, and rows that are not.
    allowed_rows: RowSet | None = None
    blocked_rows: RowSet | None = None

    def __post_init__(self) -> None:
        for name, least in (("limit", 0), ("offset", 0), ("batch_size", 1), ("batch_bytes", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidInput(f"{name} is {value}, expected at least {least}")


def bound_schema(schema: Schema) -> pa.Schema:
    """The columns that expressions over a table may name: the stored ones, and those known of every row.

    >>> from lancelet.format.fields import Field
    >>> bound_schema(Schema((Field("x", "int8"),))).names[:2]
    ['x', '_rowid']
    """
    stored = schema_to_arrow(described_schema(schema))
    known = [pa.field(name, pa.uint64()) for name in SYSTEM_COLUMNS if stored.get_field_index(name) < 0]
    return pa.schema([*stored, *known], stored.metadata)


def searched_schema(bound: pa.Schema, nearest: Nearest | None) -> pa.Schema:
    """The same with the columns that a search adds; InvalidInput where the table has such a column itself.

    >>> searched_schema(pa.schema({"x": pa.int8()}), None).names
    ['x']
    """
    added = search_fields(nearest)
    taken = next((field.name for field in added if bound.get_field_index(field.name) >= 0), None)
    if taken is not None:
        raise InvalidInput(f"the table has a column {taken!r}, which a search adds", hint="rename the column")
    return pa.schema([*bound, *added], bound.metadata) if added else bound


def column_named(name: str, schema: pa.Schema) -> Column:
    """The column that a dotted path leads to; InvalidInput with the nearest name where there is none.

    >>> column_named("s.x", pa.schema({"s": pa.struct({"x": pa.int8()})})).path
    ('s', 'x')
    """
    place = schema.get_field_index(name)
    if place >= 0:
        return Column((name,), schema.field(place).type)
    steps = _steps(name)
    kind: pa.DataType = pa.struct(list(schema))
    for depth, step in enumerate(steps):
        known = [kind.field(at).name for at in range(kind.num_fields)] if pat.is_struct(kind) else []
        if step not in known:
            owner = f" in {'.'.join(steps[:depth])!r}" if depth else ""
            near = get_close_matches(step, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known[:20])}"
            raise InvalidInput(f"there is no column {step!r}{owner}", column=name, hint=hint)
        kind = kind.field(known.index(step)).type
    return Column(steps, kind)


def _steps(name: str) -> tuple[str, ...]:
    """The names in a dotted path; between backticks a dot is part of a name."""
    if "`" not in name:
        return tuple(name.split("."))
    steps, step, quoted = [], "", False
    for letter in name:
        if letter == "`":
            quoted = not quoted
        elif letter == "." and not quoted:
            steps.append(step)
            step = ""
        else:
            step += letter
    return (*steps, step)


def request_for(
    snapshot: Snapshot,
    columns: Columns | None = None,
    *,
    filter: Filter | None = None,
    order_by: Sequence[str | Ordering] = (),
    limit: int | None = None,
    offset: int = 0,
    batch_size: int = 8192,
    fragments: Sequence[int] | None = None,
) -> ScanRequest:
    """A request in terms of names and texts; what else can be asked for is set by ``dataclasses.replace``.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://requested"), pa.table({"x": [1, 2], "y": ["a", "b"]}))
    >>> found = request_for(open_snapshot(open_store("memory://requested")), ["y"], filter="x > 1")
    >>> found.columns[0][0], found.filter.function
    ('y', '>')
    """
    schema = bound_schema(snapshot.schema)
    return ScanRequest(
        columns=None if columns is None else _bound_columns(columns, schema),
        filter=parse_filter(filter, schema) if isinstance(filter, str) else filter,
        order_by=tuple(Ordering(column_named(item, schema)) if isinstance(item, str) else item for item in order_by),
        limit=limit,
        offset=offset,
        batch_size=batch_size,
        fragments=None if fragments is None else tuple(fragments),
    )


def _bound_columns(columns: Columns, schema: pa.Schema) -> tuple[tuple[str, Expr], ...]:
    if not isinstance(columns, Mapping):
        return tuple((name, column_named(name, schema)) for name in columns)
    return tuple((name, parse_value(what, schema) if isinstance(what, str) else what) for name, what in columns.items())
