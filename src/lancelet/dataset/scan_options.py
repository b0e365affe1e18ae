"""What users ask of a scan, as they say it; bound to a version's columns it becomes a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.dataset.nearest import NearestOptions, nearest_of
from lancelet.errors import Corrupt, InvalidInput
from lancelet.expr import Call, Column, Expr, parse_filter, parse_value
from lancelet.format.fields import Schema
from lancelet.query.facts import facts_of
from lancelet.query.nearest import DISTANCE, QUERY_INDEX
from lancelet.query.request import (
    ROW_ADDRESS,
    ROW_ID,
    BlobHandling,
    Ordering,
    ScanRequest,
    column_named,
    searched_schema,
)
from lancelet.rows.row_sets import RowSet, parse_row_set, write_row_set
from lancelet.table.snapshot import Snapshot

__all__ = [
    "ColumnOrdering",
    "Columns",
    "Condition",
    "ScanOptions",
    "ScanStatistics",
    "bind",
    "bind_columns",
    "checked_filter",
    "condition_of",
    "serialize_row_addrs",
]

#: Columns: a list of paths, or SQL expressions by the names that their values get.
Columns: TypeAlias = "Sequence[str] | Mapping[str, str]"
#: A condition: SQL, a pyarrow expression, or Substrait bytes.
Condition: TypeAlias = "str | pc.Expression | bytes"

_BATCH_SIZE = 8192
#: Columns that are put behind the others, by the option that asks for them.
_SYSTEM = {ROW_ID: "with_row_id", ROW_ADDRESS: "with_row_address"}


@dataclass
class ColumnOrdering:
    """A column that rows are ordered by. NaN is larger than any number."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


@dataclass(frozen=True)
class ScanStatistics:
    """What a scan took, as its ``scan_stats_callback`` is told when it is through."""

    iops: int = 0
    requests: int = 0
    bytes_read: int = 0
    indices_loaded: int = 0
    parts_loaded: int = 0
    index_comparisons: int = 0
    index_cache_hits: int = 0
    index_cache_misses: int = 0
    all_counts: dict[str, int] = field(default_factory=dict)
    #: Nanoseconds.
    all_times: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """All that can be said of a scan. What only tells another implementation how to work is kept and not used."""

    columns: Columns | None = None
    filters: tuple[Condition, ...] = ()
    limit: int | None = None
    offset: int | None = None
    nearest: NearestOptions | None = None
    order_by: tuple[ColumnOrdering, ...] | None = None
    batch_size: int | None = None
    batch_size_bytes: int | None = None
    strict_batch_size: bool = False
    scan_in_order: bool = True
    fragments: tuple[int, ...] | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    include_deleted_rows: bool = False
    blob_handling: str | None = None
    prefilter: bool = False
    fast_search: bool = False
    use_scalar_index: bool | None = None
    index_segments: tuple[str, ...] | None = None
    row_addr_allowlist: bytes | None = None
    row_addr_blocklist: bytes | None = None
    scan_stats_callback: Callable[[ScanStatistics], None] | None = None
    batch_readahead: int | None = None
    fragment_readahead: int | None = None
    io_buffer_size: int | None = None
    late_materialization: bool | tuple[str, ...] | None = None
    use_stats: bool = True
    disable_scoring_autoprojection: bool = False


def bind_columns(columns: Columns, schema: pa.Schema) -> tuple[tuple[str, Expr], ...]:
    """Columns as expressions over a schema. TypeError where they are neither a list nor a mapping."""
    if isinstance(columns, Mapping):
        return tuple((name, parse_value(_text(what, name), schema)) for name, what in columns.items())
    if not isinstance(columns, list):
        raise TypeError(f"columns must be a list or dict[name, expression], got {type(columns)}")
    return tuple((name, column_named(_text(name, "columns"), schema)) for name in columns)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, got {type(value).__name__}")
    return value


def checked_filter(value: object) -> Condition:
    """``value`` itself if it is a condition; TypeError if not."""
    if isinstance(value, str | bytes | pc.Expression):
        return value
    raise TypeError(f"filter must be text or a pyarrow expression, got {type(value).__name__}")


def condition_of(snapshot: Snapshot, value: object) -> str | Expr:
    """A condition as operations take it: text as it is, everything else bound to a version's columns."""
    given = checked_filter(value)
    return given if isinstance(given, str) else parse_filter(given, facts_of(snapshot.manifest).bound)


def bind(snapshot: Snapshot, options: ScanOptions) -> ScanRequest:
    """The request that the options mean for a version; InvalidInput where they name what it does not have."""
    facts = facts_of(snapshot.manifest)
    nearest = None
    if options.nearest is not None:
        nearest = nearest_of(options.nearest, snapshot, prefilter=options.prefilter, limit=options.limit)
    schema = searched_schema(facts.bound, nearest)
    # What chooses the rows to search cannot ask how near they are.
    known = facts.bound if options.prefilter else schema
    conditions = [parse_filter(item, known) for item in options.filters]
    request = ScanRequest(
        columns=None if options.columns is None else bind_columns(options.columns, schema),
        filter=_all_of(conditions),
        nearest=nearest,
        limit=options.limit,
        offset=options.offset or 0,
        order_by=tuple(_ordering(item, schema) for item in options.order_by or ()),
        batch_size=_BATCH_SIZE if options.batch_size is None else options.batch_size,
        batch_bytes=options.batch_size_bytes,
        strict_batch_size=options.strict_batch_size,
        fragments=options.fragments,
        include_deleted=options.include_deleted_rows,
        in_order=options.scan_in_order,
        blob_handling=BlobHandling(options.blob_handling or BlobHandling.BLOBS_DESCRIPTIONS.value),
        use_scalar_index=options.use_scalar_index is not False,
        fast_search=options.fast_search,
        allowed_rows=_rows(options.row_addr_allowlist, "row_addr_allowlist"),
        blocked_rows=_rows(options.row_addr_blocklist, "row_addr_blocklist"),
    )
    return _with_added(request, options, schema, facts.stored)


def _with_added(request: ScanRequest, options: ScanOptions, schema: pa.Schema, stored: Schema) -> ScanRequest:
    """The request with the columns that are handed out without being named: those of a search, row ids, addresses."""
    first, last = [], [name for name, asked in _SYSTEM.items() if getattr(options, asked)]
    if request.nearest is not None:
        first = [QUERY_INDEX] * request.nearest.batch
        if not options.disable_scoring_autoprojection:
            last.insert(0, DISTANCE)
    if not first and not last:
        return request
    columns = request.columns
    if columns is None:
        names = [item.name for item in stored.fields]
        columns = tuple((name, Column((name,), schema.field(name).type)) for name in names)
    known = {name for name, _ in columns}
    before, behind = (
        tuple((name, Column((name,), schema.field(name).type)) for name in names if name not in known)
        for names in (first, last)
    )
    return replace(request, columns=(*before, *columns, *behind))


def serialize_row_addrs(addrs: Iterable[int]) -> bytes:
    """Row ids as ``row_addr_allowlist`` and ``row_addr_blocklist`` take them.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://allowed")
    >>> dataset.scanner(row_addr_allowlist=serialize_row_addrs([0, 2])).to_table()["x"].to_pylist()
    [1, 3]
    """
    return write_row_set(RowSet.of(np.fromiter(addrs, np.uint64)))


def _rows(data: bytes | None, name: str) -> RowSet | None:
    if data is None:
        return None
    try:
        return parse_row_set(data, what=name)
    except Corrupt as error:
        raise InvalidInput(f"{name} is no set of rows: {error}", hint="make it with serialize_row_addrs") from None


def _all_of(conditions: Sequence[Expr]) -> Expr | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return Call("and", tuple(conditions), pa.bool_())


def _ordering(item: ColumnOrdering, schema: pa.Schema) -> Ordering:
    return Ordering(column_named(item.column_name, schema), item.ascending, item.nulls_first)
