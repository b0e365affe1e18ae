"""Searches for the nearest vectors by Spark: tasks find the closest rows of fragments, the closest of all stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import types as spark
from pyspark.sql.functions import col, row_number

from lancelet.dataset.nearest import NearestOptions, nearest_of
from lancelet.expr import Column, Expr, parse_filter
from lancelet.ops.index.segments import groups_of
from lancelet.query.facts import facts_of
from lancelet.query.nearest import DISTANCE, QUERY_INDEX, Nearest
from lancelet.query.plan import outputs_of
from lancelet.query.request import ROW_ID, bound_schema, searched_schema
from lancelet.spark.frames import parallelism, split_frame
from lancelet.spark.handle import Handle
from lancelet.spark.options import ReadOptions
from lancelet.spark.reading import Reading, plan_reading
from lancelet.spark.splits import Split
from lancelet.table.snapshot import Snapshot

__all__ = ["Search", "search_frame"]

#: Columns that only decide between rows: their ids, and whether they meet the condition.
_ID, _MEETS = "__lancelet_rowid", "__lancelet_meets"


@dataclass(frozen=True, slots=True)
class Search:
    """What is asked for besides the vectors to be near to."""

    nearest: NearestOptions
    filter: str | None = None
    columns: Sequence[str] | None = None
    #: Whether the filter chooses the rows to search, or some of those that were found.
    prefilter: bool = False
    with_row_id: bool = False
    tasks: int | None = None


def search_frame(handle: Handle, search: Search) -> DataFrame:
    """The rows nearest to the queries, with their distances, in order. Nothing is read before the frame is used."""
    snapshot = handle.address.open()
    nearest = nearest_of(search.nearest, snapshot, prefilter=search.prefilter)
    reading, shown = _reading(handle, snapshot, search, nearest)
    groups = groups_of(snapshot, None, search.tasks or parallelism(handle.spark))
    found = split_frame(handle.spark, reading, [Split(group) for group in groups])
    kept = _closest(found, nearest)
    if _MEETS in reading.schema.names:
        kept = kept.where(col(_MEETS))
    frame = kept.select(*(col(f"`{name.replace('`', '``')}`") for name in shown))
    return frame if handle.alias is None else frame.alias(handle.alias)


def _reading(handle: Handle, snapshot: Snapshot, search: Search, nearest: Nearest) -> tuple[Reading, list[str]]:
    """What all tasks have in common, and the names of the columns that are handed out."""
    known = [item.name for item in snapshot.schema.fields] if search.columns is None else list(search.columns)
    named = tuple(name for name in dict.fromkeys(known) if name not in (DISTANCE, QUERY_INDEX))
    asked = ReadOptions(columns=named, with_row_id=search.with_row_id, choices=handle.choices)
    base = plan_reading(handle.address.pinned(snapshot), asked)
    facts = facts_of(snapshot.manifest)
    outputs = outputs_of(facts, base.request)[0]
    bound = searched_schema(bound_schema(snapshot.schema), nearest)
    added: list[tuple[str, Expr, spark.DataType]] = [(DISTANCE, Column((DISTANCE,), pa.float32()), spark.FloatType())]
    if nearest.batch:
        added.append((QUERY_INDEX, Column((QUERY_INDEX,), pa.int32()), spark.IntegerType()))
    added.append((_ID, Column((ROW_ID,), pa.uint64()), spark.LongType()))
    condition = None if search.filter is None else parse_filter(search.filter, bound)
    if condition is not None and not nearest.prefilter:
        # Told of each row that is found, so that the closest of all are known before any is left out.
        added.append((_MEETS, condition, spark.BooleanType()))
    request = replace(
        base.request,
        columns=(*outputs, *((name, expr) for name, expr, _ in added)),
        nearest=nearest,
        filter=condition if nearest.prefilter else None,
    )
    fields = [spark.StructField(name, kind, True) for name, _, kind in added]
    reading = replace(base, request=request, schema=spark.StructType([*base.schema.fields, *fields]))
    first = [QUERY_INDEX] if nearest.batch else []
    stored = [name for name in base.schema.names if name != ROW_ID]
    return reading, [*first, *stored, DISTANCE, *([ROW_ID] if search.with_row_id else [])]


def _closest(found: DataFrame, nearest: Nearest) -> DataFrame:
    """Of the rows that tasks found the closest: by distance, equal ones by row id."""
    order: list[SparkColumn] = [col(DISTANCE).asc(), col(_ID).asc()]
    if not nearest.batch:
        return found.orderBy(*order).limit(nearest.k)
    place = "__lancelet_place"
    numbered = found.withColumn(place, row_number().over(Window.partitionBy(QUERY_INDEX).orderBy(*order)))
    return numbered.where(col(place) <= nearest.k).orderBy(col(QUERY_INDEX).asc(), *order)
